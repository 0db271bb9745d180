"""`from_chunks`: anything that gives chunks, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from reactivex import Observable, abc

from .. import chunks as vocabulary
from ..errors import SourceError
from ..shared_stream import Connection, Pullable, Sink
from .source import Running, Source, Stepped, aclose_quietly, close_quietly, source_error

if TYPE_CHECKING:
    from ..chunks import Chunk
    from ..chunks.decode import Wirelike

    Chunks = Observable[Any] | Iterable[Wirelike] | AsyncIterable[Wirelike]

_BATCH = 256


def from_chunks(source: Chunks) -> Observable[Chunk]:
    """Chunks from an Observable, an iterable or an async iterable of `Chunk`, `dict`, JSON `str` or JSON `bytes`.

    A synchronous source runs where it is subscribed, an asynchronous one on the running event loop (without one, on a
    thread of our own). A source that fails gives `SourceError`, an item that is no chunk `ChunkDecodeError`, after
    all that came before.

        from_chunks([{"type": "text-delta", ...}, {"type": "finish", ...}])
        --text-delta--finish-|

    >>> from mastra_rx import from_chunks
    >>> seen = []
    >>> _ = from_chunks(['{"type": "text-delta", "payload": {"text": "Hi"}}']).subscribe(seen.append)
    >>> seen[0].payload.text
    'Hi'
    """
    given: object = source
    if isinstance(source, Source):
        return source
    if isinstance(source, Observable):
        return Source(lambda sink, scheduler: _Subscribed(source, sink, scheduler))
    if isinstance(source, AsyncIterable):
        return Source(lambda sink, _: Running(lambda: _async_batches(source), sink))
    if isinstance(source, str | bytes | Mapping) or not isinstance(source, Iterable):
        raise TypeError(
            f"a source is an Observable, an iterable or an async iterable of chunks, not {type(given).__name__}; "
            "for bytes as a server sends them use from_bytes, for a file from_jsonl"
        )
    return Source(lambda sink, _: Stepped(_batches(source), sink))


def _batches(source: Iterable[Wirelike]) -> Iterator[Sequence[Chunk]]:
    decoder = vocabulary.Decoder()
    count = 0
    try:
        for items in _portions(source):
            chunks: list[Chunk] = []
            try:
                decoder.decode_into(chunks, items, count)
            except Exception:
                yield chunks
                raise
            count += len(items)
            yield chunks
        yield decoder.end()
    except Exception:
        yield decoder.end()
        raise
    finally:
        close_quietly(source)


def _portions(source: Iterable[Wirelike]) -> Iterator[Sequence[Wirelike]]:
    """What is there already comes in portions, what may have to be waited for one by one."""
    if isinstance(source, list | tuple):
        items = cast("Sequence[Wirelike]", source)
        for start in range(0, len(items), _BATCH):
            yield items[start : start + _BATCH]
    else:
        for item in source:
            yield (item,)


async def _async_batches(source: AsyncIterable[Wirelike]) -> AsyncIterator[Sequence[Chunk]]:
    decoder = vocabulary.Decoder()
    count = 0
    try:
        async for item in source:
            yield decoder.decode((item,), count)
            count += 1
        yield decoder.end()
    except Exception:
        yield decoder.end()
        raise
    finally:
        await aclose_quietly(source)


class _Subscribed(Connection):
    """The connection to an Observable, which runs by itself, or can be pulled."""

    def __init__(self, source: Observable[Any], sink: Sink[Chunk], scheduler: abc.SchedulerBase | None) -> None:
        self._decoder = vocabulary.Decoder()
        self._sink = sink
        self._count = 0
        self._subscription: abc.DisposableBase | None = None
        self._over = False
        self._source = source
        self._subscription = source.subscribe(self._next, self._fail, self._complete, scheduler=scheduler)
        if self._over:
            self.dispose()

    def step(self) -> bool | None:
        return self._source.pull() if isinstance(self._source, Pullable) else False

    def dispose(self) -> None:
        if self._subscription is not None:
            self._subscription.dispose()

    def _next(self, item: Wirelike) -> None:
        try:
            chunks = self._decoder.decode((item,), self._count)
        except Exception as error:
            self._over = True
            self._sink.push(self._decoder.end())
            self._sink.fail(source_error(error))
            self.dispose()
            return
        self._count += 1
        self._sink.push(chunks)

    def _fail(self, error: object) -> None:
        self._sink.push(self._decoder.end())
        self._sink.fail(source_error(error) if isinstance(error, Exception) else SourceError(str(error)))

    def _complete(self) -> None:
        self._sink.push(self._decoder.end())
        self._sink.close()
