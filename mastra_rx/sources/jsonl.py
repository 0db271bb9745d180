"""Recordings: JSON Lines of chunks, a chunk a line, as the server puts it on the wire.

`record` adds one key of its own to each chunk, `recordedAt` (milliseconds since 1970), so that a recording can be
played in the rhythm in which it came; `from_jsonl` takes it away again. Files without it, from Mastra itself or written
by hand, are recordings too.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable
from reactivex.scheduler import VirtualTimeScheduler

from .. import chunks as vocabulary
from ..errors import ChunkDecodeError, SourceError
from ..shared_stream import Connection, Sink
from .framing import Lines
from .source import Running, Source, Stepped, source_error

if TYPE_CHECKING:
    from ..chunks import Chunk

    Recording = str | os.PathLike[str] | IO[bytes] | IO[str] | Iterable[str] | Iterable[bytes]

log = logging.getLogger("mastra_rx")

TIME = "recordedAt"
_BLOCK = 1 << 16


def from_jsonl(
    path: Recording, speed: float | None = None, *, on_bad_line: Literal["raise", "skip"] = "raise"
) -> Observable[Chunk]:
    """The chunks of a recording: a path, an open file (text or binary), or the lines themselves.

    `speed` is None to play as fast as can be; 1.0 keeps the recorded rhythm, 2.0 plays twice as fast. Where no times
    were recorded it makes no difference. A timed recording runs on the event loop, like any asynchronous source;
    subscribed with a virtual-time scheduler (RxPY's `TestScheduler`) it runs on that.

    A line that is not a chunk gives `ChunkDecodeError` with its number and text, after all that came before;
    `on_bad_line="skip"` logs it and goes on. A file that can't be read gives `SourceError`.

        from_jsonl("run.jsonl")
        --start--text-delta--text-delta--finish-|
    """
    if speed is not None and not speed > 0:
        raise ValueError(f"speed={speed}: give a number above 0, or None for as fast as can be")
    if on_bad_line not in ("raise", "skip"):
        raise ValueError(f'on_bad_line={on_bad_line!r}: it is "raise" or "skip"')
    skip = on_bad_line == "skip"

    def opened(sink: Sink[Chunk], scheduler: abc.SchedulerBase | None) -> Connection:
        if speed is None:
            return Stepped(_batches(path, skip), sink)
        pace: float = speed
        if isinstance(scheduler, VirtualTimeScheduler):
            return _Virtual(path, skip, pace, sink, scheduler)
        return Running(lambda: _in_rhythm(path, skip, pace), sink)

    return _Played(opened, path)


class _Played(Source):
    """A recording as a source; in Jupyter it shows itself as a timeline, which subscribes nothing."""

    def __init__(self, opener: Callable[[Sink[Chunk], abc.SchedulerBase | None], Connection], path: Recording) -> None:
        super().__init__(opener)
        self._path = path

    def _repr_html_(self) -> str | None:
        if not isinstance(self._path, str | os.PathLike):
            return None  # a file or lines that can be read only once are not to be read for a look
        from ..timeline import timeline_svg

        pairs: list[tuple[float | None, Chunk]] = []
        with suppress(SourceError):  # what came before a broken line is a picture still
            pairs.extend(read_timed(self._path))
        return timeline_svg([chunk for _, chunk in pairs], times=[at for at, _ in pairs]) if pairs else None


def read_timed(path: Recording) -> Iterator[tuple[float | None, Chunk]]:
    """Each chunk of a recording with its time in milliseconds since 1970; None where none was recorded.

    A line that is not a chunk gives `ChunkDecodeError` with its number, after all that came before; a file that can't
    be read `SourceError`.

    >>> import mastra_rx as mx
    >>> times, chunks = zip(*mx.timeline.read_timed(mx.recording("text")))
    >>> chunks[0].type
    'start'
    """
    for at, chunks in _timed_lines(path, skip=False):
        for chunk in chunks:
            yield at, chunk


def record(observable: Observable[Chunk], path: str | os.PathLike[str]) -> abc.DisposableBase:
    """Write each chunk to `path` as it comes, with the time, for `from_jsonl` to read.

    Subscribes at once; dispose what is returned to stop. A file that is there is kept until the first chunk comes, then
    written anew. A stream that fails leaves what came until then, and the
    failure in the log. Gives `SourceError` where the file can't be written.

    >>> import mastra_rx as mx, tempfile
    >>> path = tempfile.mktemp(suffix=".jsonl")
    >>> _ = mx.record(mx.from_chunks([{"type": "text-delta", "payload": {"text": "Hi"}}]), path)
    >>> mx.MastraModelOutput(mx.from_jsonl(path)).full_stream.run().payload.text
    'Hi'
    """
    try:
        file = open(path, "ab")  # noqa: SIM115  # closed when the stream ends
    except OSError as error:
        raise SourceError(f"cannot write {os.fspath(path)}: {error.strerror}") from error

    begun = False

    def begin() -> None:
        """What was recorded before is kept until something comes in its place."""
        nonlocal begun
        if not begun and file.seekable():
            file.truncate(0)
        begun = True

    def write(chunk: Chunk) -> None:
        begin()
        line = {**cast("dict[str, Any]", vocabulary.to_wire(chunk)), TIME: round(time.time() * 1000, 3)}
        file.write(vocabulary.json_of(line) + b"\n")
        file.flush()

    def complete() -> None:
        begin()
        file.close()

    def fail(error: Exception) -> None:
        file.close()
        log.error("the recorded stream failed: %s", error)

    subscription = observable.subscribe(write, fail, complete)
    return CompositeDisposable(subscription, Disposable(file.close))


def _batches(path: Recording, skip: bool) -> Iterator[Sequence[Chunk]]:
    decoder = vocabulary.Decoder()
    number = 0
    for lines in _lines(path):
        chunks: list[Chunk] = []
        try:
            _decode(decoder, chunks, [_without_time(line) for line in lines], number, skip)
        except Exception:
            yield chunks + decoder.end()
            raise
        number += len(lines)
        yield chunks
    yield decoder.end()


def _decode(decoder: vocabulary.Decoder, chunks: list[Chunk], lines: Sequence[bytes], number: int, skip: bool) -> None:
    while True:
        try:
            decoder.decode_into(chunks, lines, number)
            return
        except ChunkDecodeError as error:
            if not skip or error.line is None:
                raise
            log.warning("skipped %s", error)
            lines, number = lines[error.line - number :], error.line


def _lines(path: Recording) -> Iterator[Sequence[bytes]]:
    """The lines, a portion a read."""
    framing = Lines()
    for block in _blocks(path):
        yield framing.feed(block)
    yield framing.end()


_TIME_KEY = f'"{TIME}"'.encode()


def _without_time(line: bytes) -> bytes:
    return _timed(line)[1] if _TIME_KEY in line else line


_LAST_KEY = re.compile(rb',\s*"%b"\s*:\s*([0-9.]+)\s*}\s*$' % TIME.encode())


def _timed(line: bytes) -> tuple[float | None, bytes]:
    """The recorded time of a line in milliseconds, and the line without it."""
    found = _LAST_KEY.search(line)
    if found is None:
        return None, line
    try:
        return float(found[1]), line[: found.start()] + b"}"
    except ValueError:
        return None, line


def _blocks(path: Recording) -> Iterator[bytes]:
    if isinstance(path, str | os.PathLike):
        try:
            with Path(path).open("rb") as file:
                while block := file.read(_BLOCK):
                    yield block
        except OSError as error:
            raise SourceError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from error
        return
    read = getattr(path, "read", None)
    if read is not None:
        while block := read(_BLOCK):
            yield block.encode("utf-8", "surrogatepass") if isinstance(block, str) else block
        return
    for line in cast("Iterable[str | bytes]", path):
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        yield data if data.endswith(b"\n") else data + b"\n"


def _timed_lines(path: Recording, skip: bool) -> Iterator[tuple[float | None, Sequence[Chunk]]]:
    """The time of each line, and its chunks."""
    decoder = vocabulary.Decoder()
    at: float | None = None
    chunks: list[Chunk] = []
    try:
        for number, line in enumerate(line for lines in _lines(path) for line in lines):
            at, text = _timed(line)
            _decode(decoder, chunks, [text], number, skip)
            yield at, chunks
            chunks = []
    except Exception:
        yield at, chunks + decoder.end()
        raise
    yield at, decoder.end()


def _moments(path: Recording, skip: bool, speed: float) -> Iterator[tuple[float, Sequence[Chunk]]]:
    """The chunks of each line, and the seconds to wait before them."""
    before: float | None = None
    for at, chunks in _timed_lines(path, skip):
        wait = 0.0 if at is None or before is None else max(0.0, at - before) / 1000 / speed
        before = before if at is None else at
        yield wait, chunks


async def _in_rhythm(path: Recording, skip: bool, speed: float) -> AsyncIterator[Sequence[Chunk]]:
    loop = asyncio.get_running_loop()
    due = loop.time()
    for wait, chunks in _moments(path, skip, speed):
        due += wait
        await asyncio.sleep(max(0.0, due - loop.time()))
        yield chunks


class _Virtual:
    """A recording played in virtual time."""

    def __init__(
        self, path: Recording, skip: bool, speed: float, sink: Sink[Chunk], scheduler: abc.SchedulerBase
    ) -> None:
        self._moments = _moments(path, skip, speed)
        self._sink = sink
        self._next(scheduler)

    def step(self) -> bool:
        return False

    def dispose(self) -> None:
        self._moments = iter(())

    def _next(self, scheduler: abc.SchedulerBase) -> None:
        try:
            wait, chunks = next(self._moments)
        except StopIteration:
            self._sink.close()
            return
        except Exception as error:
            self._sink.fail(source_error(error))
            return

        def play(scheduler: abc.SchedulerBase, _: Any = None) -> None:
            self._sink.push(chunks)
            self._next(scheduler)

        scheduler.schedule_relative(wait, play)
