"""The object that a step's text stands for: the rules by which Mastra reads structured output from text (semantics 12).

The schema says how the model was asked: `{"elements": [...]}` for an array, `{"result": "..."}` for an enum, the value
itself for everything else. An array that comes without its wrapper is read too.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json

from ..errors import OutputValidationError, PartialJSONError
from ..partial_json import PartialJSON
from ..schema import Schema

NOTHING: Any = object()

CUT_OFF = frozenset({"length", "content-filter"})
"""Finish reasons after which the object is incomplete, however it looks."""


class ObjectText:
    """Reads one step's text: `news` after each `push`."""

    def __init__(self, schema: Schema[Any]) -> None:
        self._schema = schema
        self._parser = PartialJSON()
        self._version = 0
        self._last: Any = NOTHING
        self._was_open = False
        self.error: PartialJSONError | None = None

    def push(self, text: str) -> None:
        """Take a piece of text. What is not JSON is remembered in `error`, and nothing more is read."""
        if self.error is None:
            try:
                self._parser.push(text)
            except PartialJSONError as error:
                self.error = error

    @property
    def has_begun(self) -> bool:
        """Whether there is a value, however little of it."""
        return self.error is None and self._parser.has_value

    def news(self) -> Any:
        """The object's new state, to keep; `NOTHING` where it has not changed."""
        if self.error is not None:
            return NOTHING
        if self._schema.kind == "array":
            return self._news_of_array()
        if self._parser.version == self._version:
            return NOTHING
        self._version = self._parser.version
        if self._schema.kind == "enum":
            return self._news_of_enum()
        value = self._parser.value
        return cast("Any", value) if isinstance(value, dict | list) else NOTHING

    def _news_of_array(self) -> Any:
        """All complete elements, and the last one as far as it came if it is a container with something in it.

        Complete elements never change, so there is news if their number does, or the last one that was shown open.
        """
        version = self._parser.version + self._parser.closures  # one that closes may be new to see, its value is not
        if version == self._version or not self._parser.has_value:
            return NOTHING
        self._version = version
        elements = self.elements_of(self._parser.value)
        closed = self._parser.closed_count(self.path)
        shows_open = len(elements) > closed and bool(elements[-1]) and isinstance(elements[-1], dict | list)
        if not shows_open:
            elements = elements[:closed]
        if self._last is not NOTHING and len(elements) == len(self._last):
            may_differ = elements and (shows_open or self._was_open)
            if not may_differ or _equal(elements[-1], self._last[-1]):
                self._was_open = shows_open
                return NOTHING
        self._last, self._was_open = elements, shows_open
        return elements

    def _news_of_enum(self) -> Any:
        value = self._parser.value
        result = cast("dict[str, Any]", value).get("result") if isinstance(value, dict) else None
        if not isinstance(result, str) or not result:
            return NOTHING
        candidates = [
            choice for choice in self._schema.choices if isinstance(choice, str) and choice.startswith(result)
        ]
        shown = candidates[0] if len(candidates) == 1 else result
        if not candidates or shown == self._last:
            return NOTHING
        self._last = shown
        return shown

    @property
    def path(self) -> tuple[str, ...]:
        """Where in the text's value the array stands."""
        return () if self._parser.is_array else ("elements",)

    def elements_of(self, value: Any) -> list[Any]:
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get("elements")
        return cast("list[Any]", value) if isinstance(value, list) else []

    def complete_elements(self, start: int) -> list[Any]:
        """The elements that are closed, from index `start` on."""
        return self._parser.closed_elements(self.path, start)

    def all_elements(self, start: int) -> list[Any]:
        """The elements when no more text comes: an open last one counts as it is."""
        return [] if self.error is not None else self.elements_of(self._parser.value)[start:]


def _equal(state: Any, last: Any) -> bool:
    try:
        return state == last
    except RecursionError:  # too deep to compare: something has changed, or there would be no new version
        return False


def read_object(schema: Schema[Any], text: str, reason: str | None) -> Any:
    """The object in a whole text, not validated. Raises `OutputValidationError` where there is none.

    `reason` is why the model stopped: after `length` and `content-filter` there is none, however the text looks.
    """
    value, problem = _whole(text)
    if reason in CUT_OFF:
        raise OutputValidationError(
            f'Structured output was truncated because the model finished with reason "{reason}".',
            value=text if value is NOTHING else value,
            reason=reason,
        )
    if value is NOTHING:
        why = str(problem) if problem is not None else "there is no JSON in the text"
        raise OutputValidationError(f"Structured output is not JSON: {why}", value=text, errors=[why]) from problem
    if schema.kind == "array":
        return ObjectText(schema).elements_of(value)
    if schema.kind == "enum":
        result = cast("dict[str, Any]", value).get("result") if isinstance(value, dict) else None
        if not isinstance(result, str):
            raise OutputValidationError("Invalid enum format: expected object with result property", value=value)
        return result
    return value


def _whole(text: str) -> tuple[Any, PartialJSONError | None]:
    """The value of a whole text. Plain JSON, the usual case, is read by the quickest parser there is."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return from_json(text, allow_inf_nan=False), None
        except ValueError:
            pass
    parser = PartialJSON()
    try:
        parser.push(text)
    except PartialJSONError as error:
        return NOTHING, error
    return (parser.value if parser.has_value else NOTHING), None
