"""Framing: where one chunk ends and the next begins in a stream of bytes that may be cut anywhere.

    sse                 `data: {...}` and a blank line an event (agents); WHATWG HTML, "Server-sent events"
    record-separator    JSON and the byte 0x1E a record (workflows)
    jsonl               JSON and a line feed a line (recordings)

Each framing is fed bytes and gives the JSON texts that are complete, as bytes: they are UTF-8 whatever a server says.
Work is in proportion to the bytes, also if they come one by one.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, Protocol, cast

from ..errors import ChunkDecodeError

FramingName = Literal["auto", "sse", "record-separator", "jsonl"]

BOM = b"\xef\xbb\xbf"


class Framing(Protocol):
    """Takes bytes, gives the texts that are complete."""

    @property
    def place(self) -> str:
        """What a text is called in an error: `event`, `record` or `line`."""
        ...

    @property
    def done(self) -> bool:
        """The server said that no more comes (`[DONE]`)."""
        ...

    def feed(self, data: bytes) -> list[bytes]:
        """The texts that these bytes complete."""
        ...

    def end(self) -> list[bytes]:
        """What is left when no more bytes come: a text that lacked only its end."""
        ...


def framing(name: FramingName) -> Framing:
    """The framing of that name."""
    try:
        return {"auto": Detected, "sse": Events, "record-separator": Records, "jsonl": Lines}[name]()
    except KeyError:
        raise ValueError(f"framing={name!r}: it is auto, sse, record-separator or jsonl") from None


class _Cut:
    """Pieces between separators. A piece that grows is not copied again and again."""

    def __init__(self, separator: bytes) -> None:
        self._separator = separator
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        head, found, rest = data.partition(self._separator)
        if not found:
            self._parts.append(data)
            return []
        self._parts.append(head)
        first = b"".join(self._parts)
        *pieces, last = rest.split(self._separator)
        self._parts = [last]
        return [first, *pieces]

    def end(self) -> bytes:
        rest = b"".join(self._parts)
        self._parts = []
        return rest


class _Opening:
    """Takes away one byte order mark, if the stream begins with it."""

    def __init__(self) -> None:
        self._seen: bytes | None = b""

    def feed(self, data: bytes) -> bytes:
        if self._seen is None:
            return data
        seen = self._seen + data
        if len(seen) < len(BOM) and BOM.startswith(seen):
            self._seen = seen
            return b""
        self._seen = None
        return seen.removeprefix(BOM)

    def end(self) -> bytes:
        seen, self._seen = self._seen or b"", None
        return seen


class Lines:
    """JSON Lines: a line feed ends a text, a carriage return before it is dropped, blank lines are skipped."""

    place = "line"
    done = False

    def __init__(self) -> None:
        self._opening = _Opening()
        self._cut = _Cut(b"\n")

    def feed(self, data: bytes) -> list[bytes]:
        return [line.removesuffix(b"\r") for line in self._cut.feed(self._opening.feed(data))]

    def end(self) -> list[bytes]:
        return [self._opening.end() + self._cut.end().removesuffix(b"\r")]


class Records:
    """JSON texts, each followed by 0x1E; one before the first is taken too (RFC 7464), one after the last may lack."""

    place = "record"
    done = False

    def __init__(self) -> None:
        self._opening = _Opening()
        self._cut = _Cut(b"\x1e")

    def feed(self, data: bytes) -> list[bytes]:
        return self._cut.feed(self._opening.feed(data))

    def end(self) -> list[bytes]:
        return [self._opening.end() + self._cut.end()]


class Events:
    """Server-sent events. Lines end at CR, LF or CRLF, and nowhere else.

    `last_event_id` and `retry` (milliseconds) are what the server said last. An event without data is none. `[DONE]`
    ends the stream. An event named `error` whose data is not a chunk becomes an `error` chunk.
    """

    place = "event"

    def __init__(self) -> None:
        self.done = False
        self.last_event_id: str | None = None
        self.retry: int | None = None
        self._opening = _Opening()
        self._cut = _Cut(b"\n")
        self._after_cr = False
        self._data: list[bytes] = []
        self._event = b""

    def feed(self, data: bytes) -> list[bytes]:
        texts: list[bytes] = []
        for line in self._cut.feed(self._with_line_feeds(self._opening.feed(data))):
            if self.done:
                break
            self._take(line, texts)
        return texts

    def end(self) -> list[bytes]:
        texts: list[bytes] = []
        if not self.done:
            self._take(self._opening.end() + self._cut.end(), texts)
            self._take(b"", texts)
        return texts

    def _with_line_feeds(self, data: bytes) -> bytes:
        if self._after_cr and data:
            data = data.removeprefix(b"\n")  # the second half of a CRLF whose first half ended a line already
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _take(self, line: bytes, texts: list[bytes]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line:
            self._dispatch(texts)
        elif not line.startswith(b":"):
            self._field(line)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id" and b"\0" not in value:
            self.last_event_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 16:  # milliseconds
            self.retry = int(value)

    def _dispatch(self, texts: list[bytes]) -> None:
        data, self._data = b"\n".join(self._data), []
        event, self._event = self._event, b""
        if data == b"[DONE]":
            self.done = True
        elif event == b"error":
            texts.append(_error_chunk(data))
        elif data:
            texts.append(data)


def _error_chunk(data: bytes) -> bytes:
    """The data of an event named `error`, if it is a chunk; else an `error` chunk of whatever it says."""
    try:
        value: Any = json.loads(data or b"null")
    except (ValueError, RecursionError):
        value = data.decode("utf-8", "replace")
    if isinstance(value, dict):
        said = cast("dict[str, Any]", value)
        if isinstance(said.get("type"), str) and "payload" in said:
            return data
        value = said.get("error", cast("Any", said))
    try:
        return json.dumps({"type": "error", "payload": {"error": value}}, allow_nan=False).encode()
    except ValueError:
        return json.dumps({"type": "error", "payload": {"error": data.decode("utf-8", "replace")}}).encode()


_SSE_START = re.compile(rb"(data|event|id|retry)?:|(data|event|id|retry)[\r\n]")
_MAYBE_SSE = re.compile(rb"[\r\n]*(d(a(t(a)?)?)?|e(v(e(n(t)?)?)?)?|i(d)?|r(e(t(r(y)?)?)?)?)?")


class Detected:
    """Finds out which framing it is from the first bytes."""

    def __init__(self) -> None:
        self._found: Framing | None = None
        self._seen = b""

    @property
    def place(self) -> str:
        return "chunk" if self._found is None else self._found.place

    @property
    def is_known(self) -> bool:
        return self._found is not None

    @property
    def done(self) -> bool:
        return self._found is not None and self._found.done

    def feed(self, data: bytes) -> list[bytes]:
        if self._found is None:
            self._seen += data
            self._found = _detect(self._seen)
            if self._found is None:
                return []
            data, self._seen = self._seen, b""
        return self._found.feed(data)

    def end(self) -> list[bytes]:
        if self._found is None:
            if not self._seen.strip():
                return []
            self._found = _detect(self._seen, complete=True)
            if self._found is None:
                raise _unrecognised(self._seen)
            return self._found.feed(self._seen) + self._found.end()
        return self._found.end()


def _detect(seen: bytes, *, complete: bool = False) -> Framing | None:
    text = seen.removeprefix(BOM)
    if not complete and BOM.startswith(seen):
        return None
    start = text.lstrip(b" \t\r\n")
    if start.startswith(b"\x1e"):
        return Records()
    if start.startswith(b"{"):
        separator, line_end = start.find(b"\x1e"), start.find(b"\n")
        if separator >= 0 and (line_end < 0 or separator < line_end):
            return Records()
        return Lines() if line_end >= 0 or complete else None
    if _SSE_START.match(start):
        return Events()
    if complete or _MAYBE_SSE.fullmatch(start) is None:
        if complete and not start:
            return Lines()
        raise _unrecognised(start)
    return None


def _unrecognised(seen: bytes) -> ChunkDecodeError:
    return ChunkDecodeError(
        "neither server-sent events nor record-separated JSON nor JSON Lines; is this the response of a Mastra server?",
        text=seen[:200].decode("utf-8", "replace"),
    )
