"""Short names for the chunks that the cases are made of, as they stand on the wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import mastra_rx as mx

Wire = dict[str, Any]

START: Wire = {"type": "start", "payload": {}}
STEP_START: Wire = {"type": "step-start", "payload": {}}
ABORT: Wire = {"type": "abort", "payload": {}}
USAGE: Wire = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}

VALUES = (
    "text",
    "object",
    "reasoning",
    "reasoning_text",
    "reasoning_parts",
    "tool_calls",
    "tool_results",
    "usage",
    "total_usage",
    "finish_reason",
    "steps",
    "sources",
    "files",
    "warnings",
    "request",
    "response",
    "provider_metadata",
    "suspend_payload",
    "resume_schema",
)
STREAMS = (
    "full_stream",
    "text_stream",
    "reasoning_stream",
    "object_stream",
    "element_stream",
    "tool_pairs",
    "tool_runs",
)


def text(piece: str, block: str = "t1") -> Wire:
    return {"type": "text-delta", "payload": {"id": block, "text": piece}}


def reasoning(piece: str, block: str = "r1") -> Wire:
    return {"type": "reasoning-delta", "payload": {"id": block, "text": piece}}


def step_finish(usage: Any = None, reason: str = "stop") -> Wire:
    return {"type": "step-finish", "payload": {"stepResult": {"reason": reason}, "output": {"usage": usage}}}


def finish(reason: Any = "stop", usage: Any = USAGE) -> Wire:
    return {"type": "finish", "payload": {"stepResult": {"reason": reason}, "output": {"usage": usage}}}


def error(value: Any) -> Wire:
    return {"type": "error", "payload": {"error": value}}


def call_start(call: str = "c1", tool: str | None = "f") -> Wire:
    return {"type": "tool-call-input-streaming-start", "payload": {"toolCallId": call, "toolName": tool}}


def call_delta(piece: str, call: str = "c1") -> Wire:
    return {"type": "tool-call-delta", "payload": {"toolCallId": call, "argsTextDelta": piece}}


def call_end(call: str = "c1") -> Wire:
    return {"type": "tool-call-input-streaming-end", "payload": {"toolCallId": call}}


def tool_call(call: str = "c1", args: Any = None, tool: str = "f") -> Wire:
    return {"type": "tool-call", "payload": {"toolCallId": call, "toolName": tool, "args": args}}


def tool_result(call: str = "c1", result: Any = None, tool: str = "f") -> Wire:
    return {"type": "tool-result", "payload": {"toolCallId": call, "toolName": tool, "result": result}}


def tool_error(call: str = "c1", error: Any = None, tool: str = "f") -> Wire:
    return {"type": "tool-error", "payload": {"toolCallId": call, "toolName": tool, "error": error}}


def of_a_server(chunk: Wire) -> Wire:
    """The chunk with the keys that a Mastra server adds to nearly all."""
    return {"runId": "run", "from": "AGENT", **chunk}


def sse(*chunks: Wire, done: bool = True) -> bytes:
    events = b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n" for chunk in chunks)
    return events + b"data: [DONE]\n\n" if done else events


def records(*chunks: Wire) -> bytes:
    return b"".join(json.dumps(chunk, ensure_ascii=False).encode() + b"\x1e" for chunk in chunks)


def lines(*chunks: Wire) -> bytes:
    return b"".join(json.dumps(chunk, ensure_ascii=False).encode() + b"\n" for chunk in chunks)


def output_of(*chunks: Wire, **options: Any) -> mx.MastraModelOutput[Any]:
    return mx.MastraModelOutput(list(chunks), **options)


async def one_by_one(items: Iterable[Any], at_close: Callable[[], None] | None = None) -> AsyncIterator[Any]:
    """An asynchronous source; `at_close` is called when it is over or closed."""
    try:
        for item in items:
            yield item
    finally:
        if at_close is not None:
            at_close()


def then_raise(items: Iterable[Any], failure: BaseException) -> Iterator[Any]:
    """A source that gives `items` and fails."""
    yield from items
    raise failure


class Seen:
    """A subscriber that writes down everything it is told."""

    def __init__(self, view: Any = None) -> None:
        self.items: list[Any] = []
        self.errors: list[Exception] = []
        self.completed = 0
        self.subscription = None if view is None else self.subscribe(view)

    def subscribe(self, view: Any) -> Any:
        return view.subscribe(self.items.append, self.errors.append, self.complete)

    def complete(self) -> None:
        self.completed += 1

    @property
    def types(self) -> list[str]:
        return [chunk.type for chunk in self.items]
