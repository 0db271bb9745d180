"""The chunks of a recording, with the times at which they came."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..chunks import parse_chunk
from ..errors import ChunkDecodeError, SourceError

if TYPE_CHECKING:
    from ..chunks import Chunk

TIME = "recordedAt"
"""The key that `mx.record` adds to each chunk: milliseconds since 1970."""


def read_timed(path: str | os.PathLike[str]) -> Iterator[tuple[float | None, Chunk]]:
    """Each chunk of a JSON Lines recording with its time in milliseconds; None where none was recorded.

    A line that is not a chunk gives `ChunkDecodeError` with its number; a file that can't be read `SourceError`.

    >>> import mastra_rx as mx
    >>> times, chunks = zip(*read_timed(mx.recording("text")))
    >>> chunks[0].type
    'start'
    """
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _timed(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, number)
    except OSError as error:
        raise SourceError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from error


def _timed(line: bytes, number: int) -> tuple[float | None, Chunk]:
    try:
        if TIME.encode() not in line:
            return None, parse_chunk(line)
        data: Any = json.loads(line)
        at: Any = cast("dict[str, Any]", data).pop(TIME, None) if isinstance(data, dict) else None
        is_time = isinstance(at, int | float) and not isinstance(at, bool)
        return (float(at) if is_time else None), parse_chunk(cast("Any", data))
    except ChunkDecodeError as error:
        raise error.at(number, "line") from error.__cause__
    except (ValueError, RecursionError):
        return None, parse_chunk(line)
