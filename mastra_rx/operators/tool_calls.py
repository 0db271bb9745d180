"""Tool calls: one a call, whether its arguments were streamed, sent whole, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import chunks
from ..errors import ChunkDecodeError
from .operator import Operator, Reducer, reduction

if TYPE_CHECKING:
    from ..chunks import (
        Chunk,
        ToolCallChunk,
        ToolCallDeltaChunk,
        ToolCallInputStreamingEndChunk,
        ToolCallInputStreamingStartChunk,
        ToolCallInputStreamingStartPayload,
    )

CallKey = tuple[str | None, str]
"""A call is known by its run and its id: turns of one stream may use an id again."""


@dataclass(slots=True)
class _Streaming:
    """Arguments that are being streamed."""

    start: ToolCallInputStreamingStartPayload | None = None
    pieces: list[str] = field(default_factory=list[str])


class ToolCallReducer(Reducer):
    """The calls of a run and of its step.

    The end of streamed arguments makes a call; a `tool-call` chunk of a call that is known already is swallowed, and
    only fills in what the known one lacks (Mastra 1.71.0). Arguments that are not JSON are None, their text and the
    reason are kept (D6).
    """

    def __init__(self) -> None:
        self._calls: dict[CallKey, ToolCallChunk] = {}
        self._step_calls: dict[CallKey, ToolCallChunk] = {}
        self._streaming: dict[CallKey, _Streaming] = {}

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "tool-call-input-streaming-start": self.start,
            "tool-call-delta": self.delta,
            "tool-call-input-streaming-end": self.end,
            "tool-call": self.call,
        }

    def start(self, chunk: ToolCallInputStreamingStartChunk) -> Chunk:
        key = (chunk.run_id, chunk.payload.tool_call_id)
        self._streaming.setdefault(key, _Streaming()).start = chunk.payload
        return chunk

    def delta(self, chunk: ToolCallDeltaChunk) -> Chunk:
        key = (chunk.run_id, chunk.tool_call_id)
        streaming = self._streaming.get(key)
        if streaming is None:
            streaming = self._streaming[key] = _Streaming()
        streaming.pieces.append(chunk.args_text_delta)
        if not chunk.tool_name and streaming.start is not None:
            return chunk.__replace__(payload=chunk.payload.__replace__(tool_name=streaming.start.tool_name))
        return chunk

    def end(self, chunk: ToolCallInputStreamingEndChunk) -> Chunk | list[Chunk]:
        """The end, and the call that it makes if its start was seen and the call is new."""
        key = (chunk.run_id, chunk.payload.tool_call_id)
        streaming = self._streaming.pop(key, None)
        if streaming is None or streaming.start is None:
            return chunk
        call = _synthetic_call(chunk, streaming.start, "".join(streaming.pieces))
        return [chunk, call] if self._add(key, call) else chunk

    def call(self, chunk: ToolCallChunk) -> ToolCallChunk | None:
        """The call, or None if it is known already."""
        return chunk if self._add((chunk.run_id, chunk.payload.tool_call_id), chunk) else None

    def _add(self, key: CallKey, call: ToolCallChunk) -> bool:
        known = self._calls.get(key)
        if known is None:
            self._calls[key] = self._step_calls[key] = call
            return True
        _fill_in(known, call)
        return False

    @property
    def of_run(self) -> list[ToolCallChunk]:
        return list(self._calls.values())

    @property
    def of_step(self) -> list[ToolCallChunk]:
        return list(self._step_calls.values())

    def close_step(self) -> None:
        self._step_calls = {}

    def drop(self) -> None:
        """A goal goes on: the calls of the run start anew; the step keeps its own."""
        self._calls = {}
        self._streaming = {}


def _synthetic_call(
    end: ToolCallInputStreamingEndChunk, start: ToolCallInputStreamingStartPayload, text: str
) -> ToolCallChunk:
    payload: dict[str, Any] = {"tool_call_id": end.payload.tool_call_id, "args": {}}
    if text.strip():
        try:
            payload["args"] = chunks.read_json(text)
        except ChunkDecodeError as error:
            payload.update(args=None, args_text=text, args_error=error.reason)
    for name in ("tool_name", "provider_executed", "provider_metadata", "dynamic", "title", "observability"):
        payload[name] = getattr(start, name)
    return chunks.make_tool_call(end.run_id, end.from_, payload)


def _fill_in(known: ToolCallChunk, more: ToolCallChunk) -> None:
    """In place, as in Mastra 1.71.0: the chunk is in the log and in every view; the repeated call is shown to none."""
    old, new = known.payload, more.payload
    changes: dict[str, Any] = {}
    args: Any = old.args
    if not (isinstance(args, dict | list) and args) and not isinstance(args, str) and new.args:
        changes["args"] = new.args
        changes["args_error"] = changes["args_text"] = None
    for name in ("provider_metadata", "dynamic", "observability"):
        if getattr(old, name) is None and getattr(new, name) is not None:
            changes[name] = getattr(new, name)
    rest = {key: value for key, value in old.extra.items() if key not in {chunks.wire_name(name) for name in changes}}
    if changes:
        old.__setstate__({**changes, "_extra": rest or None})


def tool_calls() -> Operator[list[ToolCallChunk]]:
    """The calls in the order in which they came, when the run is complete; one a call, with its arguments.

    --streaming-start--delta--streaming-end--tool-call--finish-|
    [                       tool_calls()                       ]
    ------------------------------------------------------------([call])-|
    """
    return reduction(ToolCallReducer, lambda reducer: reducer.of_run)
