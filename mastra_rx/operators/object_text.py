"""The object that a step's text stands for: the rules by which Mastra reads structured output from text (semantics 12).

The schema says how the model was asked: `{"elements": [...]}` for an array, `{"result": "..."}` for an enum, the value
itself for everything else. An array that comes without its wrapper is read too.
"""

from __future__ import annotations

from typing import Any, cast

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
        self.error: PartialJSONError | None = None

    def push(self, text: str) -> None:
        """Take a piece of text. What is not JSON is remembered in `error`, and nothing more is read."""
        if self.error is None:
            try:
                self._parser.push(text)
            except PartialJSONError as error:
                self.error = error

    def news(self) -> Any:
        """The object's new state, to keep; `NOTHING` where it has not changed."""
        version = self._parser.version
        if self._schema.kind == "array":
            version += self._parser.closures  # an element that closes may be new to see, though its value is not
        if version == self._version or self.error is not None:
            return NOTHING
        self._version = version
        state = self._state()
        if state is NOTHING or (self._schema.kind != "object" and _equal(state, self._last)):
            return NOTHING
        self._last = state
        return state

    def _state(self) -> Any:
        if self._schema.kind == "object":
            value = self._parser.value
            return cast("Any", value) if isinstance(value, dict | list) else NOTHING
        if self._schema.kind == "array":
            return self._array()
        return self._enum()

    def _array(self) -> Any:
        """All complete elements, and the last one as far as it came if it is a container with something in it."""
        if not self._parser.has_value:
            return NOTHING
        closed = self._parser.closed_elements(self.path)
        value = self.elements_of(self._parser.value)
        open_one = value[len(closed) :]
        return closed + [item for item in open_one if isinstance(item, dict | list) and item]

    def _enum(self) -> Any:
        value = self._parser.value
        result = cast("dict[str, Any]", value).get("result") if isinstance(value, dict) else None
        if not isinstance(result, str) or not result:
            return NOTHING
        candidates = [
            choice for choice in self._schema.choices if isinstance(choice, str) and choice.startswith(result)
        ]
        return NOTHING if not candidates else candidates[0] if len(candidates) == 1 else result

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
    parser = PartialJSON()
    problem: PartialJSONError | None = None
    try:
        parser.push(text)
    except PartialJSONError as error:
        problem = error
    value = parser.value if problem is None else None
    if reason in CUT_OFF:
        raise OutputValidationError(
            f'Structured output was truncated because the model finished with reason "{reason}".',
            value=value if parser.has_value else text,
            reason=reason,
        )
    if problem is not None or not parser.has_value:
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
