"""How chunks and values read in the picture: one line, cut to length."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

Wired = Mapping[str, Any]
"""A chunk as it stands on the wire."""

_TEXT_KEYS = ("text", "argsTextDelta")
_TELLING = ("toolName", "stepName", "title", "agentId", "workflowId", "primitiveId", "taskId", "id")
_VALUES = ("error", "result", "suspendPayload", "output", "args", "reason", "url", "data", "object")


def payload_of(chunk: Wired) -> dict[str, Any]:
    """The payload, `{}` where there is none or it is no object."""
    payload = chunk.get("payload")
    return cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}


def text_of(data: Mapping[str, Any], *keys: str) -> str:
    """The first of these keys that has a text; `""` where none has."""
    for key in keys:
        value = data.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def cut(text: str, limit: int) -> str:
    """The text on one line, with an ellipsis where it is longer than `limit` characters."""
    line = " ".join(text[: 2 * limit + 8].split())
    return line if len(line) <= limit and len(text) <= 2 * limit + 8 else line[: max(0, limit - 1)].rstrip() + "…"


def brief(value: Any, limit: int = 160) -> str:
    """A value as JSON on one line, cut; costs no more than what is shown."""
    if isinstance(value, str):
        return cut(value, limit)
    pieces: list[str] = []
    _write(value, pieces, limit, 12)
    return cut("".join(pieces), limit)


def _write(value: Any, pieces: list[str], budget: int, depth: int) -> int:
    """Append JSON until the budget is used up; give what is left of it."""
    if isinstance(value, dict | list) and depth > 0:
        is_dict = isinstance(value, dict)
        pieces.append("{" if is_dict else "[")
        items = cast("dict[Any, Any]", value).items() if is_dict else enumerate(cast("list[Any]", value))
        for number, (key, item) in enumerate(items):
            lead = (", " if number else "") + (f"{str(key)[: budget + 1]}: " if is_dict else "")
            pieces.append(lead)
            budget = _write(item, pieces, budget - len(lead), depth - 1)
            if budget <= 0:
                pieces.append("…")
                return budget
        pieces.append("}" if is_dict else "]")
        return budget - 2
    if isinstance(value, dict | list):
        text = "…"
    elif isinstance(value, str):
        text = json.dumps(value[: budget + 1], ensure_ascii=False)
    elif value is None or isinstance(value, bool):
        text = json.dumps(value)
    else:
        text = str(value)[: budget + 1]
    pieces.append(text)
    return budget - len(text)


def error_message(value: Any) -> str:
    """What an error on the wire says of itself."""
    if isinstance(value, Mapping):
        data = cast("Mapping[str, Any]", value)
        for part in (data, data.get("cause"), data.get("details")):
            if isinstance(part, Mapping) and (
                found := text_of(cast("Mapping[str, Any]", part), "message", "errorMessage")
            ):
                return cut(found, 160)
        return text_of(data, "name") or brief(value)
    return "" if value is None else brief(value)


def describe(chunk: Wired, limit: int = 160) -> str:
    """A chunk in a line: its type, and what tells most of it."""
    kind = cut(str(chunk.get("type")), 60)
    payload = payload_of(chunk)
    for key in _TEXT_KEYS:
        if isinstance(payload.get(key), str):
            return f"{kind}  {brief([payload[key]], limit)[1:-1]}"
    told = [text_of(payload, *_TELLING)]
    for source in (payload, chunk):
        key = next((key for key in _VALUES if source.get(key) is not None), None)
        if key is not None:
            told.append(error_message(source[key]) if key == "error" else brief(source[key], limit))
            break
    result = payload.get("stepResult")
    if isinstance(result, dict):
        told.append(text_of(cast("dict[str, Any]", result), "reason"))
    return "  ".join([kind, *(cut(part, limit) for part in told if part)])


def describe_many(chunks: Sequence[Wired], limit: int = 200) -> str:
    """Neighbours in a line: how many of each type, and the text they make together."""
    counts = Counter(str(chunk.get("type")) for chunk in chunks)
    counted = ", ".join(f"{count:,} × {cut(kind, 60)}" for kind, count in counts.most_common(4))
    pieces: list[str] = []
    room = limit
    for chunk in chunks:
        if piece := text_of(payload_of(chunk), *_TEXT_KEYS):
            pieces.append(piece)
            room -= len(piece)
            if room < 0:
                break
    text = cut("".join(pieces), limit)
    return f"{counted}\n{text}" if text else counted


def milliseconds(ms: float) -> str:
    """A duration as one reads it: `340 ms`, `2.5 s`, `1 min 20 s`."""
    if ms < 1000:
        return f"{ms:.3g} ms" if ms < 10 else f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.3g} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
