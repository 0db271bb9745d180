"""`from_bytes`: chunks from bytes as a server sends them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from reactivex import Observable, abc

from .. import chunks as vocabulary
from ..errors import ChunkDecodeError, StreamInterrupted
from ..shared_stream import Connection, Sink
from .framing import Detected, Framing, FramingName, Lines, framing
from .source import Running, Source, Stepped, aclose_quietly, close_quietly, source_error

if TYPE_CHECKING:
    from ..chunks import Chunk
    from ..chunks.decode import Wirelike

    Bytes = bytes | bytearray | Iterable[bytes] | AsyncIterable[bytes] | Observable[bytes]

ENDINGS = frozenset(
    {
        "finish",
        "error",
        "abort",
        "tripwire",
        "tool-call-approval",
        "tool-call-suspended",
        "workflow-finish",
        "workflow-canceled",
        "workflow-paused",
        "network-execution-event-finish",
    }
)
"""After one of these a stream may end without `[DONE]`."""


def from_bytes(byte_chunks: Bytes, framing: FramingName = "auto") -> Observable[Chunk]:
    """Chunks from bytes, cut anywhere: `bytes`, or an iterable, async iterable or Observable of `bytes`.

    `framing` is `sse` (agents), `record-separator` (workflows), `jsonl`, or `auto` to find out from the first bytes.

    Gives `ChunkDecodeError` (with the number and text of the event, record or line) where something is not a chunk, and
    `StreamInterrupted` where SSE or records break off: neither `[DONE]` nor a chunk that ends a run came. Both after
    all that came before.

        from_bytes([b'data: {"type":"text-d', b'elta",...}\\n\\ndata: [DONE]\\n\\n'])
        --text-delta-|

    >>> from mastra_rx import from_bytes
    >>> seen = []
    >>> pieces = [b'data: {"type":"finish","pay', b'load":{}}\\n\\n', b'data: [DONE]\\n\\n']
    >>> _ = from_bytes(pieces).subscribe(lambda chunk: seen.append(chunk.type))
    >>> seen
    ['finish']
    """
    check_framing(framing)
    source = byte_chunks
    if isinstance(source, bytes | bytearray | memoryview):
        source = [bytes(source)]
    if isinstance(source, Observable):
        return Source(lambda sink, scheduler: _Subscribed(source, sink, scheduler, ByteDecoder(framing)))
    if isinstance(source, AsyncIterable):
        return Source(lambda sink, _: Running(lambda: async_batches(source, ByteDecoder(framing)), sink))
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise TypeError(f"from_bytes takes bytes or an iterable of bytes, not {type(source).__name__}")
    return Source(lambda sink, _: Stepped(batches(source, lambda: ByteDecoder(framing)), sink))


def check_framing(name: FramingName) -> None:
    framing(name)


class ByteDecoder:
    """Bytes in, chunks out: a framing, a decoder of chunks, and the check that the end was an end.

    `unwrap` takes chunks out of what a server puts around them.
    """

    def __init__(
        self,
        name: FramingName = "auto",
        *,
        must_end: bool = True,
        unwrap: Callable[[bytes], Sequence[Wirelike]] | None = None,
        decoder: vocabulary.Decoder | None = None,
    ) -> None:
        self.framing: Framing = framing(name)
        self._unwrap = unwrap
        self._decoder = decoder or vocabulary.Decoder()
        self._count = 0
        self._must_end = must_end
        self._ended = False

    @property
    def done(self) -> bool:
        """`[DONE]` came."""
        return self.framing.done

    def feed(self, data: bytes, into: list[Chunk]) -> None:
        """Append the chunks that `data` completes. Raises `ChunkDecodeError`; what was before it has been appended."""
        self._decode(self.framing.feed(data), into)

    def end(self, into: list[Chunk]) -> None:
        """The bytes are over. Raises `StreamInterrupted` where they broke off."""
        try:
            self._decode(self.framing.end(), into)
        except ChunkDecodeError as error:
            into += self._decoder.end()
            if self._must_end and error.line is not None and not self._is_lines:
                raise StreamInterrupted(f"the stream broke off in the middle of a chunk ({error})") from error
            raise
        into += self._decoder.end()
        if self._must_end and not self._ended and not self.done and self._is_known and not self._is_lines:
            raise StreamInterrupted("the stream broke off: neither [DONE] nor a chunk that ends a run came")

    @property
    def _is_known(self) -> bool:
        """How the bytes are framed; where nothing came and nobody said, they are of no kind."""
        return not isinstance(self.framing, Detected) or self.framing.is_known

    def give_up(self) -> list[Chunk]:
        """The bytes failed: what was held back."""
        return self._decoder.end()

    @property
    def _is_lines(self) -> bool:
        return self.framing.place == Lines.place

    def _decode(self, texts: list[bytes], into: list[Chunk]) -> None:
        start = len(into)
        try:
            self._decoder.decode_into(into, self._unwrapped(texts), self._count, self.framing.place)
        finally:
            self._count += len(texts)
            if self._must_end:
                for chunk in into[start:]:
                    kind = getattr(chunk, "wire_type", chunk.type)
                    if kind in ENDINGS:
                        self._ended = True
                    elif kind in ("start", "step-start", "workflow-start"):
                        self._ended = False  # a further turn until idle, or a workflow that was resumed

    def _unwrapped(self, texts: list[bytes]) -> Iterable[Wirelike]:
        unwrap = self._unwrap
        if unwrap is None:
            return texts
        return (chunk for text in texts for chunk in unwrap(text) or (b"",))


def batches(source: Iterable[bytes], make_decoder: Callable[[], ByteDecoder]) -> Iterator[Sequence[Chunk]]:
    """The chunks of synchronous bytes, a batch a read."""
    decoder = make_decoder()
    try:
        for data in source:
            yield from _fed(decoder.feed, _checked(data))
            if decoder.done:
                return
        yield from _fed(lambda _, into: decoder.end(into), b"")
    except Exception:
        yield decoder.give_up()
        raise
    finally:
        close_quietly(source)


async def async_batches(source: AsyncIterable[bytes], decoder: ByteDecoder) -> AsyncIterator[Sequence[Chunk]]:
    """The chunks of asynchronous bytes, a batch a read."""
    try:
        async for data in source:
            for batch in _fed(decoder.feed, _checked(data)):
                yield batch
            if decoder.done:
                return
        for batch in _fed(lambda _, into: decoder.end(into), b""):
            yield batch
    except Exception:
        yield decoder.give_up()
        raise
    finally:
        await aclose_quietly(source)


def _fed(feed: Callable[[bytes, list[Chunk]], None], data: bytes) -> Iterator[list[Chunk]]:
    """What a feeding gives, also if it then fails."""
    chunks: list[Chunk] = []
    try:
        feed(data, chunks)
    except Exception:
        yield chunks
        raise
    yield chunks


def _checked(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(cast("bytearray | memoryview", data))
    raise TypeError(f"from_bytes takes bytes, not {type(data).__name__}; for JSON texts use from_chunks")


class _Subscribed(Connection):
    """Bytes from an Observable, which runs by itself."""

    def __init__(
        self,
        source: Observable[bytes],
        sink: Sink[Chunk],
        scheduler: abc.SchedulerBase | None,
        decoder: ByteDecoder,
    ) -> None:
        self._sink = sink
        self._decoder = decoder
        self._subscription: abc.DisposableBase | None = None
        self._over = False
        self._subscription = source.subscribe(
            self._next, lambda error: self._end(source_error(error)), self._complete, scheduler=scheduler
        )
        if self._over:
            self.dispose()

    def step(self) -> bool:
        return False

    def dispose(self) -> None:
        if self._subscription is not None:
            self._subscription.dispose()

    def _next(self, data: bytes) -> None:
        if not self._over and self._push(self._decoder.feed, data) and self._decoder.done:
            self._end(None)

    def _complete(self) -> None:
        if not self._over and self._push(lambda _, into: self._decoder.end(into), b""):
            self._end(None)

    def _push(self, feed: Callable[[bytes, list[Chunk]], None], data: bytes) -> bool:
        chunks: list[Chunk] = []
        failure: Exception | None = None
        try:
            feed(_checked(data), chunks)
        except Exception as error:
            failure = source_error(error)
        self._sink.push(chunks)
        if failure is not None:
            self._end(failure)
        return failure is None

    def _end(self, error: Exception | None) -> None:
        if self._over:
            return
        self._over = True
        if error is None:
            self._sink.close()
        else:
            self._sink.push(self._decoder.give_up())
            self._sink.fail(error)
        self.dispose()
