"""From what stands on the command line to a source of chunks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote

from reactivex import Observable

from ..errors import ChunkDecodeError, SourceError
from ..recordings import RECORDINGS, recording
from ..sources import from_bytes, from_chunks, from_jsonl
from ..sources.framing import Detected, Lines
from ..timeline import read_timed
from ..view import as_view

if TYPE_CHECKING:
    from ..chunks import Chunk

DEFAULT = "tools"
PACE = 0.03
"""Seconds between the chunks of a bundled recording: about what a model takes."""
UNDECIDED = Detected().place
_BLOCK = 1 << 16


class NothingToOpen(Exception):
    """There is no such recording, or the file cannot be read; the message says which."""


def opened(what: str | None, speed: float | None = None, prompt: str | None = None) -> Observable[Chunk]:
    """The chunks of a bundled recording, of a file, of standard input (`-`), or of an agent's run (`http://...`).

    `speed` scales the recorded rhythm, or the pace of a bundled recording; None is as fast as can be. What comes
    through a pipe or from a server comes when it comes. `prompt` is what the agent is asked. Raises `NothingToOpen`.
    """
    name = DEFAULT if what is None else what
    if name.startswith(("http://", "https://")):
        return asked(name, prompt)
    if prompt is not None:
        raise NothingToOpen(f"--prompt goes with the address of an agent, not with {name}")
    if name == "-":
        return from_bytes(_as_they_come(sys.stdin.buffer))
    if name in RECORDINGS:
        return _bundled(name, speed)
    path = Path(name)
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a directory")
        if path.exists() and not path.is_file():  # a named pipe, `<(curl ...)`
            return from_bytes(_as_they_come(path.open("rb")))
        return from_jsonl(path, speed) if _is_lines(path) else from_bytes(_blocks(path))
    except OSError as error:
        raise NothingToOpen(_why(name, error)) from None


def asked(address: str, prompt: str | None) -> Observable[Chunk]:
    """A run of the agent at `http://HOST/api/agents/ID`. Raises `NothingToOpen`."""
    base, found, agent_id = address.rstrip("/").partition("/api/agents/")
    if not found or not agent_id or "/" in agent_id:
        raise NothingToOpen(f"{address} is not the address of an agent, as in http://localhost:4111/api/agents/weather")
    if prompt is None:
        raise NothingToOpen(f'ask the agent something: --prompt "..." (for {address})')
    try:
        from ..client import MastraClient
    except ModuleNotFoundError as error:
        raise NothingToOpen(str(error)) from None
    return MastraClient(base).agent(unquote(agent_id)).stream(prompt).full_stream


def timed(name: str, prompt: str | None = None) -> tuple[list[float | None], list[Chunk], SourceError | None]:
    """The times of a recording, its chunks, and why it ends there, if it is broken. Raises `NothingToOpen`."""
    path = recording(name) if name in RECORDINGS else Path(name)
    is_recording = prompt is None and name != "-" and path.is_file() and _is_lines(path)
    times: list[float | None] = []
    chunks: list[Chunk] = []
    try:
        for time, chunk in read_timed(path) if is_recording else _untimed(opened(name, prompt=prompt)):
            times.append(time)
            chunks.append(chunk)
    except SourceError as error:
        return times, chunks, error
    return times, chunks, None


def _untimed(source: Observable[Chunk]) -> Iterator[tuple[None, Chunk]]:
    return ((None, chunk) for chunk in as_view(source))


def _why(name: str, error: OSError) -> str:
    why = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and Path(name).name == name:
        return f"cannot read {name}: no such file, and the recordings are {', '.join(RECORDINGS)}"
    return f"cannot read {name}: {why[:1].lower()}{why[1:]}"


def _bundled(name: str, speed: float | None) -> Observable[Chunk]:
    path = recording(name)
    return from_jsonl(path) if speed is None else from_chunks(_paced(path.read_bytes().splitlines(), PACE / speed))


def _paced(lines: Iterable[bytes], seconds: float) -> Iterator[bytes]:
    for line in lines:
        yield line
        time.sleep(seconds)


def _is_lines(path: Path) -> bool:
    """Whether the file is a recording. What cannot be told is one too: its reader says which line is broken."""
    found = Detected()
    try:
        for block in _blocks(path):
            found.feed(block)
            if found.place != UNDECIDED:
                break
        else:
            found.end()
    except ChunkDecodeError:
        return True
    return found.place in (Lines.place, UNDECIDED)


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(partial(file.read, _BLOCK), b"")


def _as_they_come(file: BinaryIO) -> Iterator[bytes]:
    """What is there, as soon as it is there."""
    read = getattr(file, "read1", file.read)
    return iter(partial(read, _BLOCK), b"")
