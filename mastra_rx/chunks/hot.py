"""The few types that make up a run, made without pydantic.

Nine of ten chunks are deltas of one plain shape, for which pydantic's answer is known beforehand. Exactly that shape is
made here, three times as fast; everything else (a missing key, `null`, provider metadata, an unknown field) gives None
and takes the road through pydantic. A test holds both roads equal.

An immutable object is filled as a draft, whose attributes can be set, and then becomes one of the real class: same
slots, same layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from .base import BaseChunk, JsonObject, Wire

if TYPE_CHECKING:
    from . import Chunk

    Maker = Callable[[JsonObject], Chunk | None]


_OPEN = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}  # the interpreter is fast only with both

_new = object.__new__
_Draft: Any = type("_Draft", (BaseChunk,), {"__slots__": ("payload",), **_OPEN})


def _draft_of(payload_cls: type[Wire]) -> Any:
    slots = cast("Any", payload_cls).__slots__
    return type(f"_Draft{payload_cls.__name__}", (Wire,), {"__slots__": slots, **_OPEN})


def _text_maker(kind: str, cls: type[BaseChunk], payload_cls: type[Wire]) -> Maker:
    draft = _draft_of(payload_cls)

    def make(data: JsonObject) -> Chunk | None:
        payload = data.get("payload")
        if len(data) != 4 or type(payload) is not dict or len(cast("JsonObject", payload)) != 2:
            return None
        try:
            run_id, from_, block, text = data["runId"], data["from"], payload["id"], payload["text"]
        except KeyError:
            return None
        if not (type(text) is type(block) is type(run_id) is type(from_) is str):
            return None
        inner = _new(draft)
        inner.id = block
        inner.text = text
        inner.provider_metadata = None
        inner.__class__ = payload_cls
        return _envelope(kind, cls, run_id, from_, inner)

    return make


def _arguments_maker(kind: str, cls: type[BaseChunk], payload_cls: type[Wire]) -> Maker:
    draft = _draft_of(payload_cls)

    def make(data: JsonObject) -> Chunk | None:
        payload = data.get("payload")
        if len(data) != 4 or type(payload) is not dict:
            return None
        size = len(cast("JsonObject", payload))
        try:
            run_id, from_, call, text = data["runId"], data["from"], payload["toolCallId"], payload["argsTextDelta"]
            name = payload["toolName"] if size == 3 else None
        except KeyError:
            return None
        if size not in (2, 3) or not (type(text) is type(call) is type(run_id) is type(from_) is str):
            return None
        if size == 3 and type(name) is not str:
            return None
        inner = _new(draft)
        inner.tool_call_id = call
        inner.args_text_delta = text
        inner.tool_name = name
        inner.provider_metadata = None
        inner.__class__ = payload_cls
        return _envelope(kind, cls, run_id, from_, inner)

    return make


def _envelope(kind: str, cls: type[BaseChunk], run_id: str, from_: str, payload: Wire) -> Chunk:
    chunk = _new(_Draft)
    chunk.type = kind
    chunk.run_id = run_id
    chunk.from_ = from_
    chunk.trace_id = chunk.metadata = None
    chunk.payload = payload
    chunk.__class__ = cls
    return cast("Chunk", chunk)


def _text_delta(data: JsonObject) -> Chunk | None:
    from .text import TextDeltaChunk, TextDeltaPayload

    HOT["text-delta"] = _text_maker("text-delta", TextDeltaChunk, TextDeltaPayload)
    return HOT["text-delta"](data)


def _reasoning_delta(data: JsonObject) -> Chunk | None:
    from .reasoning import ReasoningDeltaChunk, ReasoningDeltaPayload

    HOT["reasoning-delta"] = _text_maker("reasoning-delta", ReasoningDeltaChunk, ReasoningDeltaPayload)
    return HOT["reasoning-delta"](data)


def _tool_call_delta(data: JsonObject) -> Chunk | None:
    from .tool import ToolCallDeltaChunk, ToolCallDeltaPayload

    HOT["tool-call-delta"] = _arguments_maker("tool-call-delta", ToolCallDeltaChunk, ToolCallDeltaPayload)
    return HOT["tool-call-delta"](data)


HOT: dict[object, Maker] = {
    "text-delta": _text_delta,
    "reasoning-delta": _reasoning_delta,
    "tool-call-delta": _tool_call_delta,
}
"""Type -> maker. Each first call imports the class and puts the real maker in its place."""
