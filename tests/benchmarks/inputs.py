"""The benchmark's inputs: runs as JSON Lines, the same for us and for the real Mastra."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "name": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "price": {"type": "number"},
                    "ok": {"type": "boolean"},
                    "note": {"type": "string"},
                },
                "required": ["id", "name"],
            },
        },
    },
    "required": ["title", "items"],
}
ARRAY_SCHEMA: dict[str, Any] = SCHEMA["properties"]["items"]

_RUN = {"runId": "r1", "from": "AGENT"}
_ARGS = {"city": "London", "unit": "celsius", "days": [1, 2, 3, 4, 5], "note": "some text to make it longer...."}


def text(count: int) -> Iterator[dict[str, Any]]:
    """`count` deltas of 3 characters."""
    return _run((_delta("Hel") for _ in range(count)), count)


def tool_arguments(count: int) -> Iterator[dict[str, Any]]:
    """`count` pieces of arguments, 20 to a call, each call with its result."""

    def calls() -> Iterator[dict[str, Any]]:
        args = json.dumps(_ARGS, separators=(",", ":"))
        size = -(-len(args) // 20)
        for number in range(count // 20):
            call = {"toolCallId": f"c{number}", "toolName": "w"}
            yield _chunk("tool-call-input-streaming-start", call)
            for at in range(20):
                piece = args[at * size : (at + 1) * size]
                yield _chunk("tool-call-delta", {"toolCallId": call["toolCallId"], "argsTextDelta": piece})
            yield _chunk("tool-call-input-streaming-end", {"toolCallId": call["toolCallId"]})
            yield _chunk("tool-call", {**call, "args": _ARGS})
            yield _chunk("tool-result", {**call, "args": _ARGS, "result": {"t": 1}})

    return _run(calls(), count)


def document(size: int, *, array: bool = False) -> Iterator[dict[str, Any]]:
    """A JSON document of about `size` bytes in deltas of 4 characters."""
    items = _items(size)
    value = {"elements": items} if array else {"title": "report", "items": items}
    whole = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _run((_delta(whole[at : at + 4]) for at in range(0, len(whole), 4)), size)


def write(chunks: Iterator[dict[str, Any]], path: Path) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for chunk in chunks:
            file.write(json.dumps(chunk, ensure_ascii=False, separators=(",", ":")) + "\n")
    return path


def _items(size: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    written = 20
    while written < size:
        number = len(items)
        item = {
            "id": number,
            "name": f"item number {number}",
            "tags": ["alpha", "beta"],
            "price": 12.5 + number,
            "ok": number % 2 == 0,
            "note": f'some free text with "quotes" and é {number}',
        }
        items.append(item)
        written += len(json.dumps(item, ensure_ascii=False, separators=(",", ":"))) + 1
    return items


def _run(middle: Iterator[dict[str, Any]], tokens: int) -> Iterator[dict[str, Any]]:
    usage = {"inputTokens": 10, "outputTokens": tokens, "totalTokens": tokens + 10}
    end = {"stepResult": {"reason": "stop", "warnings": []}, "metadata": {}}
    messages = {"messages": {"all": [], "user": [], "nonUser": []}}
    yield _chunk("start", {})
    yield _chunk("step-start", {"request": {}, "warnings": []})
    yield _chunk("text-start", {"id": "t"})
    yield from middle
    yield _chunk("text-end", {"id": "t"})
    yield _chunk("step-finish", {"id": "x", "output": {"usage": usage}, **end, **messages})
    yield _chunk("finish", {"output": {"usage": usage, "steps": []}, **end, **messages})


def _delta(piece: str) -> dict[str, Any]:
    return _chunk("text-delta", {"id": "t", "text": piece})


def _chunk(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {**_RUN, "type": kind, "payload": payload}
