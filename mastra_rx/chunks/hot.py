"""The few types that make up a run, made without pydantic.

Nine of ten chunks have one plain shape, for which pydantic's answer is known beforehand. Exactly that shape is made
here, several times as fast; everything else (a missing key, `null`, provider metadata, an unknown field) gives None and
takes the road through pydantic. A test holds both roads equal.

Deltas are kept compact: one object with the text in a slot of its own, whose `payload` is made when somebody asks for
it. That halves what a kept chunk weighs, and what the garbage collector has to walk through.

An immutable object is filled as a draft, whose attributes can be set, and then becomes one of the real class: same
slots, same layout.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from .base import BaseChunk, JsonObject, Wire, fields_of, wire_name
from .vocabulary import MODULE_OF, TYPES

if TYPE_CHECKING:
    from . import Chunk, ToolCallChunk, ToolCallDeltaChunk

    Maker = Callable[[JsonObject], Chunk | None]

_new = object.__new__
_OPEN = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}  # the interpreter is fast only with both
_Draft: Any = type("_Draft", (BaseChunk,), {"__slots__": ("payload",), **_OPEN})


def _draft_of(cls: type[Wire], base: type[Wire] = Wire) -> Any:
    """A class of the same layout as `cls`, whose instances can be filled."""
    return type(f"_Draft{cls.__name__}", (base,), {"__slots__": cast("Any", cls).__slots__, **_OPEN})


def _compact(cls: type[BaseChunk], slots: tuple[str, ...], payload: Callable[[Any], Wire]) -> Any:
    """A subclass of a delta that holds what its payload would, and passes for the class itself."""

    def reduce(self: Any) -> Any:
        return _restored, (cls, {**self.__getstate__()})

    body = {
        "__slots__": slots,
        "__class__": property(lambda _: cls),
        "__reduce__": reduce,
        "payload": property(payload),
    }
    return type(cls.__name__, (cls,), body)


def _restored(cls: type[Wire], state: JsonObject) -> Wire:
    piece = _new(cls)
    piece.__setstate__(state)
    return piece


def _text_maker(kind: str, cls: type[BaseChunk], payload_cls: type[Wire]) -> Maker:
    payload_draft = _draft_of(payload_cls)

    def payload(chunk: Any) -> Wire:
        inner = _new(payload_draft)
        inner.id = chunk.id
        inner.text = chunk.text
        inner.provider_metadata = inner._extra = None
        inner.__class__ = payload_cls
        return inner

    compact = _compact(cls, ("id", "text"), payload)
    draft = _draft_of(compact, cls)

    def make(data: JsonObject) -> Any:
        inner: JsonObject | None = data.get("payload")
        if len(data) != 4 or type(inner) is not dict or len(inner) != 2:
            return None
        try:
            run_id, from_, block, text = data["runId"], data["from"], inner["id"], inner["text"]
        except KeyError:
            return None
        if not (type(text) is type(block) is type(run_id) is type(from_) is str):
            return None
        chunk = _new(draft)
        chunk.type = kind
        chunk.run_id = run_id
        chunk.from_ = from_
        chunk.id = block
        chunk.text = text
        chunk.trace_id = chunk.metadata = chunk._extra = None
        type_set(chunk, compact)
        return chunk

    return make


def _arguments_maker() -> Maker:
    from .tool import ToolCallDeltaChunk, ToolCallDeltaPayload

    payload_draft = _draft_of(ToolCallDeltaPayload)

    def payload(chunk: Any) -> Wire:
        inner = _new(payload_draft)
        inner.tool_call_id = chunk.tool_call_id
        inner.args_text_delta = chunk.args_text_delta
        inner.tool_name = chunk.tool_name
        inner.provider_metadata = inner._extra = None
        inner.__class__ = ToolCallDeltaPayload
        return inner

    compact = _compact(ToolCallDeltaChunk, ("tool_call_id", "args_text_delta", "tool_name"), payload)
    draft = _draft_of(compact, ToolCallDeltaChunk)

    def make(data: JsonObject) -> Any:
        inner: JsonObject | None = data.get("payload")
        if len(data) != 4 or type(inner) is not dict:
            return None
        size = len(inner)
        try:
            run_id, from_, call, text = data["runId"], data["from"], inner["toolCallId"], inner["argsTextDelta"]
            name = inner["toolName"] if size == 3 else None
        except KeyError:
            return None
        if size not in (2, 3) or not (type(text) is type(call) is type(run_id) is type(from_) is str):
            return None
        if size == 3 and type(name) is not str:
            return None
        chunk = _new(draft)
        chunk.type = "tool-call-delta"
        chunk.run_id = run_id
        chunk.from_ = from_
        chunk.tool_call_id = call
        chunk.args_text_delta = text
        chunk.tool_name = name
        chunk.trace_id = chunk.metadata = chunk._extra = None
        type_set(chunk, compact)
        return chunk

    return make


type_set: Callable[[object, type], None] = cast("Any", object).__dict__["__class__"].__set__


def fill_in_tool_name(chunk: ToolCallDeltaChunk, name: str) -> None:
    """Give a chunk that was just made, and that nobody else has yet, its tool's name."""
    object.__setattr__(chunk, "tool_name", name)


def make_tool_call(run_id: str | None, from_: str | None, fields: dict[str, Any]) -> ToolCallChunk:
    """A call made of what is known about it; arguments that are None without an error are the model's own `null`."""
    from .tool import ToolCallChunk, ToolCallPayload

    inner, chunk = _new(ToolCallPayload), _new(ToolCallChunk)
    null = {"args": None} if fields["args"] is None and "args_error" not in fields else None
    inner.__setstate__({**dict.fromkeys(fields_of(ToolCallPayload).values()), **fields, "_extra": null})
    ids = {"type": "tool-call", "run_id": run_id, "from_": from_}
    chunk.__setstate__({**ids, "trace_id": None, "metadata": None, "payload": inner, "_extra": None})
    return chunk


def _plain_maker(kind: str, cls: type[BaseChunk], payload_cls: type[Wire]) -> Maker:
    """A maker for any payload whose fields are texts, flags, objects and whatever JSON."""
    draft = _draft_of(payload_cls)
    fields = {
        wire_name(name): (name, _PLAIN[hint])
        for name, hint in get_type_hints(payload_cls, _HERE).items()
        if hint in _PLAIN
    }
    names = [field.name for field in dataclasses.fields(cast("Any", payload_cls))]
    required = {wire_name(field.name) for field in dataclasses.fields(cast("Any", payload_cls)) if _is_required(field)}

    def make(data: JsonObject) -> Any:
        payload: JsonObject | None = data.get("payload")
        if len(data) != 4 or type(payload) is not dict or not required <= payload.keys():
            return None
        try:
            run_id, from_ = data["runId"], data["from"]
        except KeyError:
            return None
        if not (type(run_id) is type(from_) is str):
            return None
        inner = _new(draft)
        for name in names:
            setattr(inner, name, None)
        for key, value in payload.items():
            name, allowed = fields.get(key, _UNKNOWN)
            if type(value) not in allowed:
                return None
            setattr(inner, name, value)
        inner._extra = None
        inner.__class__ = payload_cls
        chunk = _new(_Draft)
        chunk.type = kind
        chunk.run_id = run_id
        chunk.from_ = from_
        chunk.trace_id = chunk.metadata = chunk._extra = None
        chunk.payload = inner
        chunk.__class__ = cls
        return chunk

    return make


_HERE = {"Any": Any, "JsonObject": JsonObject, "Json": Any}
_TEXT, _FLAG, _OBJECT = frozenset({str}), frozenset({bool}), frozenset({dict})
_JSON = frozenset({dict, list, int, float, bool})  # a text may stand for arguments that could not be parsed
_PLAIN: dict[Any, frozenset[type]] = {
    str: _TEXT,
    str | None: _TEXT,
    bool | None: _FLAG,
    JsonObject | None: _OBJECT,
    Any: _JSON,
}
_UNKNOWN: tuple[str, frozenset[type]] = ("", frozenset())


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _text_delta(data: JsonObject) -> Chunk | None:
    from .text import TextDeltaChunk, TextDeltaPayload

    HOT["text-delta"] = _text_maker("text-delta", TextDeltaChunk, TextDeltaPayload)
    return HOT["text-delta"](data)


def _reasoning_delta(data: JsonObject) -> Chunk | None:
    from .reasoning import ReasoningDeltaChunk, ReasoningDeltaPayload

    HOT["reasoning-delta"] = _text_maker("reasoning-delta", ReasoningDeltaChunk, ReasoningDeltaPayload)
    return HOT["reasoning-delta"](data)


def _tool_call_delta(data: JsonObject) -> Chunk | None:
    HOT["tool-call-delta"] = _arguments_maker()
    return HOT["tool-call-delta"](data)


def _plain(kind: str) -> Maker:
    def first(data: JsonObject) -> Chunk | None:
        module: Any = importlib.import_module(f".{MODULE_OF[TYPES[kind]]}", __package__)
        name = TYPES[kind]
        HOT[kind] = _plain_maker(kind, getattr(module, name), getattr(module, f"{name.removesuffix('Chunk')}Payload"))
        return HOT[kind](data)

    return first


HOT: dict[object, Maker] = {
    "text-delta": _text_delta,
    "reasoning-delta": _reasoning_delta,
    "tool-call-delta": _tool_call_delta,
    "tool-call-input-streaming-start": _plain("tool-call-input-streaming-start"),
    "tool-call-input-streaming-end": _plain("tool-call-input-streaming-end"),
    "tool-call": _plain("tool-call"),
    "tool-result": _plain("tool-result"),
}
"""Type -> maker. Each first call imports the class and puts the real maker in its place."""
