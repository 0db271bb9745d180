"""Streams of a server as sources of chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from ..chunks.decode import Decoder
from ..chunks.parse import read_json
from ..errors import StreamInterrupted
from ..sources.byte_stream import ByteDecoder
from ..sources.source import Running, Source, aclose_quietly
from .http import Call, Http

if TYPE_CHECKING:
    from ..chunks import Chunk

Batches = AsyncIterator[Sequence["Chunk"]]
Unwrap = Callable[[bytes], Sequence[Any]]

_DRAIN = 0.2
"""Seconds to wait for the end of a body whose last chunk has come, so that its connection can be used again."""

_EARLY = 100
"""How many chunks of an observed run may wait for one that is missing before them."""

_ATTEMPTS = 5
"""How often an observed stream is taken up again without one new chunk in between."""


def source(batches: Callable[[], Batches]) -> Source:
    """A cold source of what an asynchronous generator gives, run on the event loop."""
    return Source(lambda sink, _: Running(batches, sink))


async def read(
    http: Http,
    call: Call,
    *,
    must_end: bool = True,
    unwrap: Unwrap | None = None,
    decoder: Decoder | None = None,
) -> Batches:
    """The chunks of a call, a batch a read. Closing the generator closes the response: the server aborts the run.

    `decoder` is given where the stream goes on elsewhere if it breaks off here: half an emoji waits for its other half.
    """
    inner = decoder or Decoder()
    try:
        async for batch in _read(http, call, inner, must_end, unwrap):
            yield batch
    except StreamInterrupted:
        if decoder is None and (rest := inner.end()):
            yield rest
        raise


async def _read(http: Http, call: Call, inner: Decoder, must_end: bool, unwrap: Unwrap | None) -> Batches:
    came = False
    async with http.stream(call) as (content_type, data):
        decoder = ByteDecoder(_framing(content_type), must_end=must_end, unwrap=unwrap, decoder=inner)
        async for piece in data:
            chunks: list[Chunk] = []
            try:
                decoder.feed(piece, chunks)
            finally:
                if chunks:
                    came = True
                    yield chunks
            if decoder.done:
                await _drain(data)
                return
        chunks = []
        try:
            decoder.end(chunks)
        finally:
            if chunks:
                came = True
                yield chunks
        if must_end and not came:
            raise StreamInterrupted("the answer ended before its first chunk")


def _framing(content_type: str) -> Any:
    """What the server says it sends; found out from the bytes where it says nothing that helps."""
    return "sse" if content_type.startswith("text/event-stream") else "auto"


async def _drain(data: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, StreamInterrupted):
        async with asyncio.timeout(_DRAIN):
            async for _ in data:
                pass


async def observed(http: Http, call_at: Callable[[int], Call], where: Position) -> Batches:
    """A run that the server keeps, taken up again where a connection drops: each chunk once."""
    without_news = 0
    decoder = Decoder()
    while True:
        before = where.next
        batches = read(http, call_at(where.next), unwrap=where.unwrap, decoder=decoder)
        try:
            async for batch in batches:
                where.passed(batch)
                yield batch
            yield [*decoder.decode(where.rest()), *decoder.end()]
            return
        except StreamInterrupted as error:
            without_news = 0 if where.next > before else without_news + 1
            if without_news >= _ATTEMPTS:
                yield [*decoder.decode(where.rest()), *decoder.end()]
                raise StreamInterrupted(f"{error}; taking it up again at chunk {where.next} failed") from error
            await asyncio.sleep(http.backoff * 2**without_news)
        finally:
            await aclose_quietly(batches)


class Position:
    """The number of the next chunk. Workflows send plain chunks, which are counted here."""

    unwrap: Unwrap | None = None

    def __init__(self, offset: int) -> None:
        if offset < 0:
            raise ValueError(f"offset={offset}: chunks are counted from 0")
        self.next = offset

    def passed(self, batch: Sequence[Chunk]) -> None:
        """These came."""
        self.next += len(batch)

    def rest(self) -> list[Any]:
        """What was held back; there will be no more."""
        return []


class EnvelopePosition(Position):
    """Durable agents send envelopes: `{"type", "data": chunk, "index", ...}`.

    A server may mix what happens now into what it sends again: that waits for what is missing before it.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.unwrap = self._unwrap
        self._early: dict[int, dict[str, Any]] = {}

    def passed(self, batch: Sequence[Chunk]) -> None:
        pass

    def _unwrap(self, text: bytes) -> list[Any]:
        envelope: Any = read_json(text)
        index: Any = cast("dict[str, Any]", envelope).get("index") if isinstance(envelope, dict) else None
        if not isinstance(index, int):
            return [text]  # a plain chunk after all
        if index < self.next:
            return []  # sent again
        self._early[index] = cast("dict[str, Any]", envelope)
        if len(self._early) > _EARLY:
            self.next = min(self._early)  # what is missing is lost
        chunks: list[Any] = []
        while (came := self._early.pop(self.next, None)) is not None:
            self.next += 1
            chunks += _opened(came)
        return chunks

    def rest(self) -> list[Any]:
        early, self._early = self._early, {}
        return [chunk for index in sorted(early) for chunk in _opened(early[index])]


def _opened(envelope: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunk in an envelope; the end of the run, whose data is none, becomes one; other events have none."""
    data, kind = envelope.get("data"), envelope.get("type")
    if isinstance(data, dict) and "type" in data:
        return [cast("dict[str, Any]", data)]
    if kind in ("finish", "error", "abort"):
        return [{"type": kind, "runId": envelope.get("runId"), "from": "AGENT", "payload": data or {}}]
    return []
