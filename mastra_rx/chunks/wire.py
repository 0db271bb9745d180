"""`to_wire`: a chunk, or any value a view gives, back as JSON-able data with the wire's names."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import cast

from .base import Json, Wire, always_there, bytes_to_wire, date_to_wire, fields_of, wire_name


def to_wire(value: object) -> Json:
    """Give `value` as JSON-able data (dicts, lists, str, numbers, bool, None) with the wire's camelCase names.

    Lossless for chunks: what `parse_chunk` was given comes back, unknown fields included. Attributes that are None and
    were not on the wire are left out, as `JSON.stringify` leaves out `undefined`. Other values of the views
    (`Usage`, `Step`, `FullOutput`, pydantic models, exceptions, ...) become objects with the wire's names.

    >>> from mastra_rx import parse_chunk, to_wire
    >>> to_wire(parse_chunk({"type": "text-delta", "runId": "r", "payload": {"id": "t", "text": "Hi", "new": 1}}))
    {'type': 'text-delta', 'runId': 'r', 'payload': {'id': 't', 'text': 'Hi', 'new': 1}}
    """
    if value is None or isinstance(value, str | int | float):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Wire):
        return _wire(value)
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_wire(item) for item in cast("list[object]", value)]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes_to_wire(bytes(cast("bytes | bytearray | memoryview", value)))
    if isinstance(value, datetime):
        return date_to_wire(value)
    return _foreign(value)


def json_of(wire: Json) -> bytes:
    """The JSON text of what `to_wire` gives, in UTF-8, as `JSON.stringify` writes it."""
    try:
        return json.dumps(wire, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:  # half an emoji inside a tool's result
        return json.dumps(wire, separators=(",", ":")).encode()
    except ValueError:
        return json_of(finite(wire))


def finite(wire: Json) -> Json:
    """With null for numbers that JSON does not have."""
    if isinstance(wire, dict):
        return {key: finite(value) for key, value in cast("dict[str, Json]", wire).items()}
    if isinstance(wire, list):
        return [finite(value) for value in cast("list[Json]", wire)]
    return None if isinstance(wire, float) and not math.isfinite(wire) else wire


def _wire(piece: Wire) -> Json:
    cls = piece.__class__
    if cls.__name__ == "UnknownChunk":
        return getattr(piece, "raw")  # noqa: B009  # only this class has it
    required = always_there(cls)
    data = {
        alias: to_wire(value)
        for alias, name in fields_of(cls).items()
        if (value := getattr(piece, name)) is not None or alias in required
    }
    if cls.__name__ == "ToolCallPayload" and "args" in piece.extra:  # made of the text that stands there
        data.pop("argsText", None)
        data.pop("argsError", None)
    data.update(piece.extra)
    return data


def _foreign(value: object) -> Json:
    own = getattr(value, "__to_wire__", None)
    if own is not None:
        return to_wire(own())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value) if field.repr)
        return {wire_name(name): to_wire(item) for name, item in pairs if item is not None}
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    if isinstance(value, Enum):
        return to_wire(value.value)
    if isinstance(value, BaseException):
        return {"name": type(value).__name__, "message": str(value)}
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, by_alias=True, fallback=repr)
