"""From JSON to chunks.

`parse_chunk` reads one chunk, alone. What a chunk of a stream owes to those before it is `decode.Decoder`'s business.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pydantic_core import ValidationError, from_json

from ..errors import ChunkDecodeError
from .base import BaseChunk, JsonObject
from .hot import HOT
from .surrogates import without_halves
from .vocabulary import MODULE_OF, TYPES

if TYPE_CHECKING:
    from . import Chunk

log = logging.getLogger("mastra_rx")


def parse_chunk(data: Chunk | JsonObject | str | bytes) -> Chunk:
    """Make a chunk of a dict, or of JSON text or bytes; a chunk is given back as it is.

    A type nobody knows gives an `UnknownChunk` that keeps all it had; a known type whose payload does not fit gives an
    `UnknownChunk` with the `error` attached, and a warning in the log (the wire drifts, that stops no run).

    Raises `ChunkDecodeError` where the data is not JSON, or not an object with a `type`.

    >>> from mastra_rx import parse_chunk
    >>> parse_chunk('{"type": "text-delta", "payload": {"id": "t1", "text": "Hi"}}').payload.text
    'Hi'
    >>> parse_chunk({"type": "from-the-future", "x": 1}).raw
    {'type': 'from-the-future', 'x': 1}
    """
    if isinstance(data, BaseChunk):
        return data
    if isinstance(data, str | bytes | bytearray | memoryview):
        data = cast("JsonObject", read_json(data))
    return chunk_of(data)


def read_json(text: str | bytes | bytearray | memoryview) -> Any:
    """The JSON value in `text`; `ChunkDecodeError` where there is none.

    Half an emoji (a lone `\\ud83d`) is taken, which pydantic's parser refuses; so is what is
    nested up to 400 deep.
    """
    if isinstance(text, memoryview):
        text = bytes(text)
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as first:
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
            if not _is_too_deep(value):
                return value
            reason = f"nested more than {_MAX_DEPTH} deep"
        except RecursionError:
            reason = f"nested more than {_MAX_DEPTH} deep"
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 ({error.reason} at byte {error.start})"
        except ValueError:
            reason = f"not JSON ({first})"
    shown = text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")
    raise ChunkDecodeError(reason, text=shown) from None


_MAX_DEPTH = 400  # what Python can walk through in recursion, wherever it stands


def _is_too_deep(value: Any) -> bool:
    layer: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        layer = [item for container in layer for item in _items(container)]
        if not layer:
            return False
    return True


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def chunk_of(data: JsonObject) -> Chunk:
    """The chunk that `data`, an object read from JSON, stands for."""
    if type(data) is not dict:
        raise ChunkDecodeError("not a chunk, a chunk is a JSON object with a `type`", text=_shown(data))
    kind = data.get("type")
    if not isinstance(kind, str):
        raise ChunkDecodeError("not a chunk, a chunk has a `type` that is a string", text=_shown(data))
    if kind in HOT:
        chunk = HOT[kind](data)
        if chunk is not None:
            return chunk
    cls = class_for(kind)
    if cls is None:
        return _unknown(data)
    try:
        return cast("Chunk", validate(cls, data))
    except (ValidationError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        return _misfit(cls, data, error)


def validate(cls: type[BaseChunk], data: JsonObject) -> BaseChunk:
    return cast("Any", cls).__pydantic_validator__.validate_python(data, by_alias=True, by_name=False)


def class_of(name: str) -> type[BaseChunk]:
    """The class of that name, its module imported if need be."""
    return getattr(importlib.import_module(f".{MODULE_OF[name]}", __package__), name)


@cache
def class_for(kind: str) -> type[BaseChunk] | None:
    """The class that knows chunks of the type `kind`."""
    name = TYPES.get(kind)
    if name is None:
        if kind.startswith("data-"):
            name = "DataChunk"
        elif kind.startswith(("agent-execution-event-", "workflow-execution-event-")):
            name = "NestedEventChunk"
        else:
            return None
    cls = class_of(name)
    from pydantic.dataclasses import rebuild_dataclass

    rebuild_dataclass(cast("Any", cls))
    return cls


def _unknown(data: JsonObject, error: Exception | None = None) -> Chunk:
    chunk = object.__new__(class_of("UnknownChunk"))
    texts = {name: value if isinstance(value := data.get(key), str) else None for name, key in _TEXTS.items()}
    metadata = data.get("metadata")
    state: JsonObject = {**texts, "metadata": metadata if isinstance(metadata, dict) else None}
    if error is not None:
        state["type"] = "unknown"
    chunk.__setstate__({**state, "_extra": None, "payload": data.get("payload"), "raw": data, "error": error})
    return cast("Chunk", chunk)


_TEXTS = {"type": "type", "run_id": "runId", "from_": "from", "trace_id": "traceId"}


def _misfit(cls: type[BaseChunk], data: JsonObject, error: Exception) -> Chunk:
    if isinstance(error, ValidationError) and any(e["type"] == "string_unicode" for e in error.errors()):
        mended = cast("JsonObject", without_halves(data))
        if mended != data:
            return chunk_of(mended)
    log.warning("a %s chunk does not fit and is passed on as UnknownChunk: %s", data.get("type"), error)
    return _unknown(data, error)


def _shown(data: object) -> str:
    try:
        return json.dumps(data)
    except (TypeError, ValueError, RecursionError):
        return repr(type(data))
