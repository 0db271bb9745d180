"""Partial JSON: text that grows, and the value it stands for so far.

    parser = PartialJSON()
    parser.push('{"name": "An')      parser.value == {"name": "An"}
    parser.push('a", "tags": ["x')   parser.value == {"name": "Ana", "tags": ["x"]}

Work is in proportion to what is pushed, never to what came before. A value that is taken copies the containers that are
still open, each one level deep, and shares what is closed: it stays as it was when more is pushed.

What is shown of an unfinished text (AI SDK 7's rules):

    a key           when its value has begun
    a string        what came, up to the last whole escape; half an emoji is held back (D10)
    a literal       whole, at its first letter
    a number        its longest beginning that is a number; a bare `-` nothing
    nothing that appeared disappears
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from .errors import PartialJSONError

Json = Any
Key = str | int
Path = Sequence[Key]

_space = re.compile(r"[ \t\n\r]*").match
_plain = re.compile(r'[^"\\\x00-\x1f]*').match
_digits = re.compile(r"[-+0-9.eE]*").match
_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").match
_whole_number = re.compile(_number.__self__.pattern.join(("(", ")(?=[^-+0-9.eE])"))).match
_leading_zero = re.compile(r"-?0[0-9]|[.+]|-[^0-9]|.*?[eE.][eE.]").match
_halves = re.compile("[\ud800-\udfff]")
_pairs = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_not_hex = re.compile("[^0-9a-fA-F]").search

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS: dict[str, tuple[str, Json]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_RAW = "\n\r\t"
_MANY = 1024  # pieces of a string that are joined to one

_NOTHING: Any = object()


class PartialJSON:
    """An incremental parser.

    Takes what models write around JSON too: a code fence, prose, `<|message|>`, raw newlines and tabs in strings. With
    `strict=True` it takes nothing but JSON. `max_depth` bounds how deep the value may nest; the parser itself does not
    recurse and takes any depth.

    Text that is not JSON raises `PartialJSONError`, with the position; the value stays what it was. A trailing comma,
    and text after the value, are forgiven.

    >>> parser = PartialJSON()
    >>> parser.push('{"a": [1, 2')
    >>> parser.value
    {'a': [1, 2]}
    >>> parser.closed(("a", 0)), parser.closed(("a", 1))
    (True, False)
    """

    def __init__(self, *, strict: bool = False, max_depth: int | None = None) -> None:
        self._core = _Core(raw_control=not strict, max_depth=max_depth)
        self._opening: _Opening | None = None if strict else _Opening()
        self._prose: _Prose | None = None
        self._is_message = False
        self._error: PartialJSONError | None = None
        self._lines = _Lines()

    def push(self, delta: str) -> None:
        """Take the next piece of text, of any length."""
        if self._error is not None:
            raise self._error
        try:
            self._take(delta, delta)
        except _Mistake as mistake:
            self._error = self._lines.error(mistake, delta)
            raise self._error from None
        self._lines.add(delta)

    def _take(self, text: str, delta: str) -> None:
        if self._opening is None and self._prose is None:
            self._core.push(text)
            return
        if self._opening is not None:
            decided = self._opening.feed(text)
            if decided is None:
                return
            text, is_prose, skipped = decided
            self._opening = None
            self._core.offset += skipped
            if is_prose:
                self._prose = _Prose(self._core, looks_for_message=not self._is_message)
        if self._prose is None:
            self._core.push(text)
            return
        rest = self._prose.feed(text)
        if rest is not None:  # `<|message|>`, the first: what comes after it is read as a text of its own
            self._prose, self._opening, self._is_message = None, _Opening(), True
            self._core = self._core.fresh()
            self._core.offset = self._lines.count + len(delta) - len(rest)
            self._take(rest, delta)
        elif not self._core.is_broken:
            try:
                self._core.push(text)  # it may be a scalar
            except _Mistake:
                self._core.is_broken = True

    @property
    def value(self) -> Json:
        """The value so far, to keep; None also where nothing has begun (see `has_value`)."""
        if self._prose is not None and self._prose.found is not _NOTHING:
            return self._prose.found
        if self._core.is_broken:
            return None
        value = self._core.value()
        return None if value is _NOTHING else value

    @property
    def has_value(self) -> bool:
        """Whether a value has begun."""
        if self._prose is not None:
            return self._prose.found is not _NOTHING or (not self._core.is_broken and self._core.has_value)
        return self._core.has_value

    @property
    def version(self) -> int:
        """Changes when the value does."""
        return self._core.version + (0 if self._prose is None else self._prose.version)

    @property
    def closures(self) -> int:
        """How many values have closed; counts on where `version` stands still, at a closing quote for example."""
        return self._core.closures + (0 if self._prose is None else self._prose.version)

    @property
    def is_complete(self) -> bool:
        """Whether the value is closed: it will not change any more (in prose, a later object may take its place)."""
        if self._prose is not None and self._prose.found is not _NOTHING:
            return True
        return self._core.is_done and not self._core.is_broken

    @property
    def is_array(self) -> bool:
        """Whether the value is an array, closed or not."""
        if self._prose is not None and self._prose.found is not _NOTHING:
            return isinstance(self._prose.found, list)
        return self._core.is_array

    @property
    def is_prose(self) -> bool:
        """Whether the text begins with something else than JSON: an object shows only once it is closed."""
        return self._prose is not None

    def closed(self, path: Path) -> bool:
        """Whether the value at `path` (keys and indexes) is there and complete."""
        value = self._at(path)
        return value is not _NOTHING and value is not _OPEN

    def closed_count(self, path: Path) -> int:
        """How many elements of the array at `path` are complete."""
        if self._prose is not None and self._prose.found is not _NOTHING:
            value = _walk(self._prose.found, path)
        else:
            value = self._core.container_at(path)
        return len(cast("list[Json]", value)) if isinstance(value, list) else 0

    def closed_elements(self, path: Path, start: int = 0) -> list[Json]:
        """The complete elements of the array at `path`, from index `start` on."""
        if self._prose is not None and self._prose.found is not _NOTHING:
            value = _walk(self._prose.found, path)
        else:
            value = self._core.container_at(path)
        return cast("list[Json]", value)[start:] if isinstance(value, list) else []

    def _at(self, path: Path) -> Json:
        if self._prose is not None and self._prose.found is not _NOTHING:
            return _walk(self._prose.found, path)
        return self._core.closed_at(path)


class _Mistake(Exception):
    """Something is wrong at an offset; becomes a `PartialJSONError` where the position is known."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset


class _Lines:
    """Where in the text an offset is."""

    def __init__(self) -> None:
        self.count = 0  # characters of the text so far
        self._lines = 0
        self._line_start = 0

    def add(self, delta: str) -> None:
        if "\n" in delta:
            self._lines += delta.count("\n")
            self._line_start = self.count + delta.rindex("\n") + 1
        self.count += len(delta)

    def error(self, mistake: _Mistake, delta: str) -> PartialJSONError:
        offset = mistake.offset
        line, start = self._lines, self._line_start
        before = delta[: max(0, offset - self.count)]
        if "\n" in before:
            line += before.count("\n")
            start = self.count + before.rindex("\n") + 1
        return PartialJSONError(mistake.reason, offset=offset, line=line + 1, column=max(0, offset - start) + 1)


class _Open:
    """A container that is being filled with what is closed; the open child is in the frame above."""

    __slots__ = ("container", "key")

    def __init__(self, container: dict[str, Json] | list[Json]) -> None:
        self.container = container
        self.key: str | None = None


_OPEN: Any = object()


class _Core:
    """The parser of plain JSON: a stack of open containers, and a state that is the method which reads on."""

    def __init__(self, *, raw_control: bool, max_depth: int | None, offset: int = 0) -> None:
        self.offset = offset
        self.version = 0
        self.closures = 0
        self.is_broken = False
        self._raw_control = raw_control
        self._max_depth = max_depth
        self._stack: list[_Open] = []
        self._root: Json = _NOTHING
        self._state: Callable[[str, int], int] = self._value
        self._stalled: int | None = None
        self._after_comma = False
        self._after_number = False
        self._pieces: list[str] = []  # of the open string, key or number
        self._joined: list[str] = []
        self._is_key = False
        self._escape = ""
        self._half = ""
        self._scalar: Json = _NOTHING  # the open number or literal as shown
        self._literal = ""
        self._matched = 0
        self._length = self._weighed = 0  # of the open number: how long it is, and was when it was last read

    def fresh(self) -> _Core:
        return _Core(raw_control=self._raw_control, max_depth=self._max_depth)

    def push(self, text: str) -> None:
        index, end = 0, len(text)
        while index < end:
            index = self._state(text, index)
        self.offset += end

    @property
    def is_done(self) -> bool:
        return self._state == self._done

    @property
    def is_array(self) -> bool:
        return isinstance(self._stack[0].container if self._stack else self._root, list)

    @property
    def has_value(self) -> bool:
        return self._root is not _NOTHING or bool(self._stack) or self.value() is not _NOTHING

    # ---- the value so far --------------------------------------------------------------------------------------------

    def value(self) -> Json:
        if self._root is not _NOTHING:
            return self._root
        child = self._open_scalar()
        for frame in reversed(self._stack):
            container = frame.container
            copy: Any = container.copy()
            if child is not _NOTHING:
                if frame.key is None:
                    copy.append(child)
                else:
                    copy[frame.key] = child
            child = copy
        return child

    def _open_scalar(self) -> Json:
        state = self._state
        if state == self._string or state == self._escaped:
            return _NOTHING if self._is_key else self._text()
        return self._scalar

    def _text(self) -> str:
        pieces = self._pieces
        if self._joined or len(pieces) > 1:
            pieces[:] = ["".join([*self._joined, *pieces])]
            self._joined.clear()
        return pieces[0] if pieces else ""

    def container_at(self, path: Path) -> Json:
        """The container at `path`, as far as its children are closed."""
        for depth, frame in enumerate(self._stack):
            if depth == len(path):
                return frame.container
            if not self._is_open_child(frame, path[depth]):
                return _walk(frame.container, path[depth:])
        return _walk(self._root, path) if self._root is not _NOTHING else _NOTHING

    def closed_at(self, path: Path) -> Json:
        for depth, frame in enumerate(self._stack):
            if depth == len(path):
                return _OPEN
            if not self._is_open_child(frame, path[depth]):
                return _walk(frame.container, path[depth:])
        return _walk(self._root, path) if self._root is not _NOTHING else _NOTHING

    def _is_open_child(self, frame: _Open, key: Key) -> bool:
        """Whether `key` names the child of `frame` that is being read."""
        if self._state in (self._after_value, self._key) and frame is self._stack[-1]:
            return False
        return key == (len(frame.container) if isinstance(frame.container, list) else frame.key)

    # ---- states: each reads from `index` on and gives the index where it stopped -------------------------------------

    def _value(self, text: str, index: int) -> int:
        index = _space(text, index).end()  # type: ignore[union-attr]  # always matches
        if index == len(text):
            return index
        char = text[index]
        if char == '"':
            self._go_on(index)
            self._is_key = False
            self._state = self._string
            self.version += 1
        elif char == "{" or char == "[":
            self._go_on(index)
            self._open(char, index)
        elif char in "-0123456789":
            self._go_on(index)
            self._state = self._in_number
            return index
        elif char in _LITERALS:
            self._go_on(index)
            self._literal, self._scalar = _LITERALS[char]
            self._matched = 0
            self._state = self._in_literal
            self.version += 1
            return index
        elif char == "]" and self._stack and self._stack[-1].key is None and self._stalled is None:
            self._close("]", index)
        else:
            self._stall(char, index, forgiven=bool(self._stack) and not self._at_array_start)
        return index + 1

    @property
    def _at_array_start(self) -> bool:
        return self._stack[-1].key is None and not self._after_comma

    def _key(self, text: str, index: int) -> int:
        index = _space(text, index).end()  # type: ignore[union-attr]  # always matches
        if index == len(text):
            return index
        char = text[index]
        if char == '"':
            self._go_on(index)
            self._is_key = True
            self._state = self._string
        elif char == "}" and (self._stalled is None or not self._after_comma):
            self._go_on(index)
            self._close("}", index)
        else:
            self._stall(char, index, forgiven=True)
        return index + 1

    def _colon(self, text: str, index: int) -> int:
        index = _space(text, index).end()  # type: ignore[union-attr]  # always matches
        if index == len(text):
            return index
        if text[index] == ":":
            self._go_on(index)
            self._state = self._value
            self._after_comma = False
        else:
            self._stall(text[index], index, forgiven=True)
        return index + 1

    def _after_value(self, text: str, index: int) -> int:
        start = index
        index = _space(text, index).end()  # type: ignore[union-attr]  # always matches
        if index == len(text):
            self._after_number = self._after_number and index == start
            return index
        char = text[index]
        frame = self._stack[-1]
        is_list = isinstance(frame.container, list)
        if char == "," and self._stalled is None:
            frame.key = None  # what follows is not the child that has just closed
            self._after_comma = True
            self._state = self._value if is_list else self._key
        elif char == ("]" if is_list else "}") and self._stalled is None:
            self._close(char, index)
        else:
            wrong_closer = self._after_number and index == start and char in "]}"
            if not wrong_closer or self._stalled is not None:
                at = self._stalled if self._stalled is not None else self.offset + index
                expected = "',' or ']'" if is_list else "',' or '}'"
                raise _Mistake(f"unexpected {char!r}, expected {expected}", at)
            self._stalled = self.offset + index
        self._after_number = False
        return index + 1

    def _string(self, text: str, index: int) -> int:
        stop = _plain(text, index).end()  # type: ignore[union-attr]  # always matches
        if stop > index:
            self._add(text[index:stop])
        if stop == len(text):
            return stop
        char = text[stop]
        if char == '"':
            self._end_string()
        elif char == "\\":
            self._escape = ""
            self._state = self._escaped
        elif self._raw_control and char in _RAW:
            self._add(char)
        else:
            raise _Mistake(f"a raw control character {char!r} in a string", self.offset + stop)
        return stop + 1

    def _escaped(self, text: str, index: int) -> int:
        char = text[index]
        if not self._escape:
            if char == "u":
                self._escape = "u"
                return index + 1
            if char not in _ESCAPES:
                raise _Mistake(f"unknown escape \\{char}", self.offset + index)
            self._add(_ESCAPES[char])
            self._state = self._string
            return index + 1
        take = text[index : index + 5 - len(self._escape)]
        self._escape += take
        if wrong := _not_hex(take):
            raise _Mistake(f"not a hexadecimal digit: {wrong[0]!r}", self.offset + index + wrong.start())
        if len(self._escape) == 5:
            self._add(chr(int(self._escape[1:], 16)))
            self._state = self._string
        return index + len(take)

    def _add(self, piece: str) -> None:
        if self._half or not piece.isascii():
            piece = self._without_halves(self._half + piece)
            if not piece:
                return
        pieces = self._pieces
        pieces.append(piece)
        if len(pieces) > _MANY:
            self._joined.append("".join(pieces))
            pieces.clear()
        if not self._is_key:
            self.version += 1

    def _without_halves(self, text: str) -> str:
        """Half an emoji at the end is held back for the other half; one that is alone becomes U+FFFD (D10)."""
        self._half = ""
        if not _halves.search(text):
            return text
        text = _pairs.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return _halves.sub("\ufffd", text)

    def _end_string(self) -> None:
        if self._half:
            self._half = ""
            self._add("\ufffd")
        text = self._text()
        self._pieces, self._joined = [], []
        if self._is_key:
            self._stack[-1].key = text
            self._state = self._colon
        else:
            self._finish(text)

    def _in_number(self, text: str, index: int) -> int:
        if not self._pieces and (whole_one := _whole_number(text, index)) is not None:
            self.version += 1
            self._finish(_as_number(whole_one[1], self.offset + index))
            self._after_number = True
            return whole_one.end()
        stop = _digits(text, index).end()  # type: ignore[union-attr]  # always matches
        if stop > index:
            self._pieces.append(text[index:stop])
            self._length += stop - index
            if (
                self._length < 64 or self._length > 1.1 * self._weighed
            ):  # so that endless digits cost no more than they are
                self._show_number(self.offset + stop)
        if stop < len(text):
            self._show_number(self.offset + stop)
            whole = self._text()
            match = _number(whole)
            if match is None or (match.end() != len(whole) and self._stack):
                at = len(whole) if match is None else match.end()
                raise _Mistake(f"not a number: {whole}", self.offset + stop - len(whole) + at)
            self._pieces, self._joined = [], []
            self._length = self._weighed = 0
            number, self._scalar = self._scalar, _NOTHING
            self._finish(number)
            self._after_number = True
        return stop

    def _show_number(self, end: int) -> None:
        whole = self._text()
        self._weighed = len(whole)
        offset = end - len(whole)
        if wrong := _leading_zero(whole):
            raise _Mistake(f"not a number: {whole}", offset + wrong.end() - 1)
        match = _number(whole)
        if match is None:
            return
        shown = match[0]
        number = _as_number(shown, offset)
        if number != self._scalar:
            self._scalar = number
            self.version += 1
        elif type(number) is not type(self._scalar):
            self._scalar = number

    def _in_literal(self, text: str, index: int) -> int:
        literal = self._literal
        take = text[index : index + len(literal) - self._matched]
        if not literal.startswith(take, self._matched):
            wrong = next(n for n, char in enumerate(take) if char != literal[self._matched + n])
            raise _Mistake(f"unexpected {take[wrong]!r}, expected {literal!r}", self.offset + index + wrong)
        self._matched += len(take)
        if self._matched == len(literal):
            value, self._scalar = self._scalar, _NOTHING
            self._finish(value)
        return index + len(take)

    def _done(self, text: str, index: int) -> int:
        return len(text)  # what follows the value is not read

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _open(self, char: str, index: int) -> None:
        if self._max_depth is not None and len(self._stack) >= self._max_depth:
            raise _Mistake(f"nested deeper than {self._max_depth}", self.offset + index)
        self._stack.append(_Open({} if char == "{" else []))
        self._state = self._key if char == "{" else self._value
        self._after_comma = False
        self.version += 1

    def _close(self, char: str, index: int) -> None:
        self._finish(self._stack.pop().container)

    def _finish(self, value: Json) -> None:
        """A value is closed: put it where it belongs."""
        self.closures += 1
        self._after_number = False
        if not self._stack:
            self._root = value
            self._state = self._done
            return
        frame = self._stack[-1]
        container = frame.container
        if isinstance(container, list):
            container.append(value)
        else:
            container[cast("str", frame.key)] = value
        self._state = self._after_value

    def _stall(self, char: str, index: int, *, forgiven: bool) -> None:
        """Something is not JSON. If nothing follows, it is forgiven; else it is the mistake."""
        if not forgiven:
            raise _Mistake(f"unexpected {char!r}", self.offset + index)
        if self._stalled is None:
            self._stalled = self.offset + index

    def _go_on(self, index: int) -> None:
        if self._stalled is not None:
            raise _Mistake("not JSON", self._stalled)


def _as_number(text: str, offset: int) -> int | float:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise _Mistake(f"a number of {len(text)} digits is too long", offset) from None


def _walk(value: Json, path: Path) -> Json:
    for key in path:
        if isinstance(value, dict):
            value = cast("dict[str, Json]", value).get(cast("str", key), _NOTHING)
        elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(cast("list[Json]", value)):
            value = cast("list[Json]", value)[key]
        else:
            return _NOTHING
    return value


# ---- what models write around JSON -----------------------------------------------------------------------------------

_FENCE = "```json"
_MESSAGE = "<|message|>"


class _Opening:
    """Reads until it is clear whether JSON begins, perhaps in a code fence, or prose."""

    def __init__(self) -> None:
        self._seen = ""
        self._skipped = 0
        self._in_fence = self._began = False

    def feed(self, text: str) -> tuple[str, bool, int] | None:
        """The text to go on with, whether it is prose, and how many characters were skipped; None: not clear yet."""
        if not self._began and text:
            self._began = True
            if text[0] == "\ufeff":
                text, self._skipped = text[1:], 1
        seen = self._seen + text
        if not self._seen:
            seen = self._without_blanks(seen)
        if seen and seen[0] == "`" and not self._in_fence:
            if len(seen) <= len(_FENCE) and _FENCE.startswith(seen):
                self._seen = seen
                return None
            if not seen.startswith(_FENCE) or re.match(r"\w", seen[len(_FENCE)]):
                return seen, True, self._skipped
            self._in_fence, self._seen = True, ""
            self._skipped += len(_FENCE)
            seen = self._without_blanks(seen[len(_FENCE) :])
        return (seen, seen[0] not in "{[", self._skipped) if seen else None

    def _without_blanks(self, text: str) -> str:
        rest = text.lstrip(" \t\r\n")
        self._skipped += len(text) - len(rest)
        return rest


class _Prose:
    """Text that does not begin with JSON: its value is the last object in it that is closed (Mastra 1.71.0)."""

    def __init__(self, core: _Core, *, looks_for_message: bool) -> None:
        self.found: Json = _NOTHING
        self._fresh = core.fresh
        self._looks_for_message = looks_for_message
        self._known = ""
        self.version = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._object: list[str] = []
        self._tail = ""

    _marks = re.compile(r'["\\{}]')

    def feed(self, text: str) -> str | None:
        """Read on. What follows `<|message|>`, if that comes, is given back."""
        if self._looks_for_message:
            window = self._tail + text
            at = window.find(_MESSAGE)
            if at >= 0:
                rest = window[at + len(_MESSAGE) :]
                if rest:
                    return rest
            self._tail = window[-len(_MESSAGE) :] if at < 0 else window[at:]
        self._scan(text)
        return None

    def _scan(self, text: str) -> None:
        if not text:
            return
        start = 0
        if self._escaped:
            self._escaped = False
            start_at = 1
        else:
            start_at = 0
        for mark in self._marks.finditer(text, start_at):
            index, char = mark.start(), mark[0]
            if index < start_at:
                continue
            if char == "\\":
                start_at = index + 2
                self._escaped = start_at > len(text)
            elif char == '"':
                self._in_string = not self._in_string
            elif self._in_string:
                continue
            elif char == "{":
                if not self._depth:
                    start = index
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if not self._depth:
                    self._object.append(text[start : index + 1])
                    self._take("".join(self._object))
                    self._object = []
        if self._depth:
            self._object.append(text[start:])

    def _take(self, text: str) -> None:
        core = self._fresh()
        try:
            core.push(text)
        except _Mistake:
            return
        if not core.is_done:
            return
        self.found = core.value()
        try:
            known = json.dumps(self.found, sort_keys=True)  # unlike `==`, tells 1 from true
        except RecursionError:
            known = text
        if known != self._known:
            self._known = known
            self.version += 1
