"""Relays: the chunks of an output as bytes for a browser, or for another `from_bytes`.

    @app.get("/run")
    async def run(request: Request):
        events = mx.relay.sse(output, last_event_id=request.headers.get("last-event-id"))
        return StreamingResponse(events, media_type="text/event-stream", headers=mx.relay.HEADERS)

and in the page:

    const source = new EventSource("/run")
    source.onmessage = ({data}) => data === "[DONE]" ? source.close() : show(JSON.parse(data))

A run that was cut off has no `[DONE]`: the browser comes again, until the page closes its `EventSource`.

Any number of clients read one output: a late one gets the run from the start, one that comes again goes on after the
last event it had, one that leaves disturbs nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, cast

from .chunks.open import HistoryGap
from .chunks.wire import json_of, to_wire
from .errors import SourceError, StreamDisposed
from .run_output import RunOutput

if TYPE_CHECKING:
    from .chunks import Chunk

HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""What to send along with server-sent events, so that no proxy holds them back."""


def sse(output: RunOutput[Any], *, last_event_id: str | int | None = None, heartbeat: float | None = 15.0) -> Relay:
    """Server-sent events: a chunk an event, its number as the id, `[DONE]` when the run is over.

    `last_event_id` is the number of the last event the client has had, as browsers send it in `Last-Event-ID`; None or
    nonsense gives the run from the start. A comment goes out after `heartbeat` seconds of silence (async only).

    >>> import mastra_rx as mx
    >>> output = mx.MastraModelOutput([{"type": "finish", "payload": {}}])
    >>> b"".join(mx.relay.sse(output))
    b'id: 0\\ndata: {"type":"finish","payload":{}}\\n\\ndata: [DONE]\\n\\n'
    """
    if heartbeat is not None and not heartbeat > 0:
        raise ValueError(f"heartbeat={heartbeat}: give seconds, more than 0, or None for none")
    last = "" if last_event_id is None else str(last_event_id).strip()
    start = int(last[:18]) + 1 if last.isascii() and last.isdigit() else 0
    return Relay(output, _Events(), start, heartbeat)


def jsonl(output: RunOutput[Any], *, start: int = 0) -> Relay:
    """JSON Lines: a chunk a line, from chunk `start` on."""
    return Relay(output, _Lines(), start, None)


class Relay:
    """Bytes, for `async for` (FastAPI, Starlette) and `for` (Flask, Django)."""

    def __init__(self, output: RunOutput[Any], form: _Form, start: int, heartbeat: float | None) -> None:
        self._output = output
        self._form = form
        self._start = start
        self._heartbeat = heartbeat

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._output.full_stream)
        counter = _Counter(self._start)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._heartbeat):
                        chunk = await anext(chunks)
                except TimeoutError:
                    yield self._form.silence
                    continue
                except StopAsyncIteration:
                    break
                number = counter.number(chunk)
                if number is not None:
                    yield self._written(number, chunk)
        except SourceError as error:
            for portion in self._failure(counter, error):
                yield portion
        finally:
            await cast("Any", chunks).aclose()
        if self._is_over:
            yield self._form.end

    def __iter__(self) -> Iterator[bytes]:
        counter = _Counter(self._start)
        try:
            for chunk in self._output.full_stream:
                number = counter.number(chunk)
                if number is not None:
                    yield self._written(number, chunk)
        except SourceError as error:
            yield from self._failure(counter, error)
        if self._is_over:
            yield self._form.end

    @property
    def _is_over(self) -> bool:
        """Whether all came; not so where the output was disposed before."""
        return self._output.is_over and not isinstance(self._output.settled.error, StreamDisposed)

    def _written(self, number: int, chunk: Chunk) -> bytes:
        try:
            return self._form.chunk(number, to_wire(chunk))
        except RecursionError:
            raise SourceError(f"chunk {number}, {chunk.type}, is nested too deep to be sent") from None

    def _failure(self, counter: _Counter, error: SourceError) -> Iterator[bytes]:
        """The source failed: the client is told by an error chunk, as it would be told of a run that failed."""
        told = {"name": type(error).__name__, "message": str(error)}
        wire = {"type": "error", "runId": self._output.run_id, "from": "SYSTEM", "payload": {"error": told}}
        if counter.next >= self._start:  # a client that comes again has had it
            yield self._form.chunk(counter.next, wire)


class _Counter:
    """Numbers chunks as every reader of the output does."""

    def __init__(self, start: int) -> None:
        self.next = 0
        self._start = start

    def number(self, chunk: Chunk) -> int | None:
        """The chunk's number; None for one that is not to be sent."""
        if isinstance(chunk, HistoryGap):
            self.next += chunk.missed
            return None
        number, self.next = self.next, self.next + 1
        return number if number >= self._start else None


class _Form:
    """How chunks look as bytes."""

    silence = b""
    end = b""

    def chunk(self, number: int, wire: Any) -> bytes:
        raise NotImplementedError


class _Events(_Form):
    silence = b": heartbeat\n\n"
    end = b"data: [DONE]\n\n"

    def chunk(self, number: int, wire: Any) -> bytes:
        return b"id: %d\ndata: %s\n\n" % (number, json_of(wire))


class _Lines(_Form):
    def chunk(self, number: int, wire: Any) -> bytes:
        return json_of(wire) + b"\n"
