"""Structured output: the object as it grows, its elements as they are complete, and the object itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..errors import OutputValidationError
from ..schema import Schema, schema_of
from .object_result import ErrorStrategy, is_fallback
from .operator import Emit, Operator, operator

if TYPE_CHECKING:
    from ..chunks import Chunk

log = logging.getLogger("mastra_rx")


class ObjectStream:
    """The growing object of a run, from the wire's `object` chunks.

    `emit` is called with each new state.
    """

    def __init__(self, emit: Emit[Any]) -> None:
        self._emit = emit
        self._last: Any = None

    def __call__(self, chunk: Chunk) -> None:
        if chunk.type == "object":
            self._last = chunk.object
            self._emit(chunk.object)
        elif chunk.type == "object-result" and not is_fallback(chunk):
            self._add_what_is_missing(chunk.object)

    def _add_what_is_missing(self, result: Any) -> None:
        """The last scalar of an array may be in the result only (D2)."""
        if isinstance(result, list) and isinstance(self._last, list):
            came, whole = len(cast("list[Any]", self._last)), cast("list[Any]", result)
            if came < len(whole):
                self._last = [*cast("list[Any]", self._last), *whole[came:]]
                self._emit(self._last)


class ElementStream:
    """The elements of a growing array: each once, when it is complete (D1).

    An element is complete when the next one begins, or when the result comes.
    """

    def __init__(self, emit: Emit[Any]) -> None:
        self._emit = emit
        self._given = 0
        self.began = False

    def __call__(self, chunk: Chunk) -> None:
        if chunk.type == "object" and isinstance(chunk.object, list):
            self.began = True
            self._give(chunk.object[:-1])
        elif chunk.type == "object-result" and isinstance(chunk.object, list) and not is_fallback(chunk):
            self.began = True
            self._give(chunk.object)

    def _give(self, complete: list[Any]) -> None:
        for element in complete[self._given :]:
            self._given += 1
            self._emit(element)


def objects() -> Operator[Any]:
    """The object as it grows: plain data, not validated, a new state each time it changed.

        --object({})--object({"n": 1})--object-result({"n": 1})--finish-|
        [                           objects()                           ]
        --{}----------{"n": 1}-------------------------------------------|

    The last scalar of an array, which Mastra may leave out, is there (D2).
    """
    return operator(ObjectStream)


def elements(schema: Any = None) -> Operator[Any]:
    """The elements of an array, each once, when it is complete (D1).

        --object([{"a": 1}])--object([{"a": 1, "b": 2}, {}])--object-result([...])--finish-|
        [                                   elements()                                     ]
        ----------------------{"a": 1, "b": 2}----------------{...}-------------------------|

    `schema` is the array's: elements are validated singly, and come as the type that it says.
    """
    element = None if schema is None else schema_of(schema).element

    def feeding(emit: Emit[Any]) -> Callable[[Chunk], Any]:
        return ElementStream(emit if element is None else validated(element, emit))

    return operator(feeding)


def validated(element: Schema[Any], emit: Emit[Any], strategy: ErrorStrategy = "strict") -> Emit[Any]:
    """Emits elements as what the schema makes of them. Strict: the first misfit raises; else it is logged and left out."""
    index = -1

    def emit_valid(value: Any) -> None:
        nonlocal index
        index += 1
        try:
            valid = element.validate(value)
        except OutputValidationError as error:
            numbered = OutputValidationError(f"element {index}: {error}", value=value, errors=error.errors, index=index)
            if strategy == "strict":
                raise numbered from error
            log.warning("%s", numbered)
        else:
            emit(valid)

    return emit_valid


class ArrayText:
    """The text of an array run: JSON built from complete elements; joined, it parses to the array (D3)."""

    def __init__(self, emit: Emit[str]) -> None:
        self._emit = emit
        self._elements = ElementStream(self._element)
        self._before = "["

    def __call__(self, chunk: Chunk) -> None:
        self._elements(chunk)

    def _element(self, value: Any) -> None:
        self._emit(self._before + json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        self._before = ","

    def end(self) -> None:
        """Close the array, if one began."""
        if self._elements.began:
            self._emit("[]" if self._before == "[" else "]")
