"""Structured output: the object as it grows, its elements as they are complete, and the object itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..errors import OutputValidationError
from ..schema import Schema, schema_of
from .object_result import ErrorStrategy, is_fallback
from .object_text import CUT_OFF, NOTHING, ObjectText
from .operator import Emit, Operator, operator

if TYPE_CHECKING:
    from ..chunks import Chunk, FinishChunk, StepFinishChunk

log = logging.getLogger("mastra_rx")


class ObjectStream:
    """The growing object of a run: from the wire's `object` chunks, or from text where none come.

    `emit` is called with each new state. Each step's text is read anew.
    """

    def __init__(self, emit: Emit[Any], schema: Schema[Any] | None = None) -> None:
        self._emit = emit
        self._schema = schema
        self._last: Any = NOTHING
        self._text: ObjectText | None = None
        self._on_wire = False
        self._first: Any = NOTHING  # the first state from text waits: the wire may have its own to follow

    def __call__(self, chunk: Chunk) -> None:
        if self._first is not NOTHING and chunk.type != "object":
            self.end()
        if chunk.type == "text-delta":
            if self._schema is not None and not self._on_wire:
                self._read(chunk.text, self._schema)
        elif chunk.type == "object":
            self._on_wire, self._first = True, NOTHING
            whole = without_open_half(chunk.object)
            if whole is chunk.object or whole != self._last:
                self._last = whole
                self._emit(whole)
        elif chunk.type == "object-result":
            self._on_wire = True
            if not is_fallback(chunk):
                self._add_what_is_missing(chunk.object)
        elif chunk.type in ("step-start", "step-finish", "start"):
            self._text = None

    def _read(self, text: str, schema: Schema[Any]) -> None:
        if self._text is None:
            self._text = ObjectText(schema)
        self._text.push(text)
        state = self._text.news()
        if state is not NOTHING:
            if self._last is NOTHING:
                self._first = state
            else:
                self._emit(state)
            self._last = state

    def end(self) -> None:
        """No more comes, or something else than an object of the wire: what waits is said."""
        first, self._first = self._first, NOTHING
        if first is not NOTHING:
            self._emit(first)

    def _add_what_is_missing(self, result: Any) -> None:
        """The last scalar of an array may be in the result only (D2)."""
        last: Any = self._last
        if isinstance(result, list) and isinstance(last, list):
            came, whole = cast("list[Any]", last), cast("list[Any]", result)
            if len(came) < len(whole):
                self._last = [*came, *whole[len(came) :]]
                self._emit(self._last)


def without_open_half(value: Any) -> Any:
    """`value` without half an emoji at the place where it grows, which is the last of the last (D10)."""
    if isinstance(value, str):
        return value[:-1] if "\ud800" <= value[-1:] <= "\udbff" else value
    if not value or not isinstance(value, dict | list):
        return value
    container = cast("Any", value)
    key: Any = next(reversed(container)) if isinstance(value, dict) else -1
    last = container[key]
    try:
        whole = without_open_half(last)
    except RecursionError:
        return container
    if whole is last:
        return container
    copy = container.copy()
    copy[key] = whole
    return copy


class ElementStream:
    """The elements of a growing array: each once, when it is complete (D1).

    An element is complete at its closing character where the text is known, else when the next one begins, or when the
    result comes.
    """

    def __init__(self, emit: Emit[Any], schema: Schema[Any] | None = None) -> None:
        self._emit = emit
        self._schema = schema if schema is not None and schema.kind == "array" else None
        self._text: ObjectText | None = None
        self._given = 0
        self._on_wire: int | None = None  # how many elements the wire has shown, if it shows any
        self.began = False

    def __call__(self, chunk: Chunk) -> None:
        if chunk.type == "text-delta":
            if self._schema is not None:
                self._read(chunk.text, self._schema)
        elif chunk.type == "object":
            self._on_wire = 0
            growing: Any = chunk.object
            if isinstance(growing, list):
                self._on_wire = len(cast("list[Any]", growing))
                self._give(cast("list[Any]", growing)[self._given : -1])
        elif chunk.type == "object-result":
            self._on_wire = 0
            result: Any = chunk.object
            if isinstance(result, list) and not is_fallback(chunk):
                self._give(cast("list[Any]", result)[self._given :])
        elif chunk.type == "step-finish" or chunk.type == "finish":
            self._end_text(chunk)
        elif chunk.type in ("step-start", "start"):
            self._text = None

    def _read(self, text: str, schema: Schema[Any]) -> None:
        if self._text is None:
            self._text = ObjectText(schema)
        self._text.push(text)
        complete = self._text.complete_elements(self._given)
        if self._on_wire is None:
            self._give(complete, began=self._text.has_begun)
        else:  # the text may be something else than what the wire's object is made of
            self._give(complete[: max(0, self._on_wire - self._given)])

    def _end_text(self, chunk: StepFinishChunk | FinishChunk) -> None:
        """No more text: an element that lacks only its end is part of the result, unless the model was cut off."""
        text, self._text = self._text, None
        result = chunk.payload.step_result
        if text is not None and self._on_wire is None and (result is None or result.reason not in _INCOMPLETE):
            self._give(text.all_elements(self._given), began=False)

    def _give(self, elements: list[Any], *, began: bool = True) -> None:
        self.began = self.began or began or bool(elements)
        for element in elements:
            self._given += 1
            self._emit(element)


_INCOMPLETE = CUT_OFF | {"error", "tripwire", "retry"}


def objects(schema: Any = None) -> Operator[Any]:
    """The object as it grows: plain data, not validated, a new state each time it changed.

        --text-delta('{"n": ')--text-delta('1')--text-delta('}')--finish-|
        [                           objects(Model)                       ]
        --{}--------------------{"n": 1}---------------------------------|

    From the wire's `object` chunks; where none come and `schema` is given, from text. States share what is closed and
    stay as they were.

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> deltas = [{"type": "text-delta", "payload": {"text": text}} for text in ('{"n": ', "1", "2}")]
    >>> list(mx.as_view(mx.from_chunks(deltas).pipe(ops.objects({"type": "object"}))))
    [{}, {'n': 1}, {'n': 12}]
    """
    known = None if schema is None else schema_of(schema)
    return operator(
        lambda emit: ObjectStream(emit, known), at_end=lambda feed: feed.end, at_failure=lambda feed: feed.end
    )


def elements(schema: Any = None, *, error_strategy: ErrorStrategy = "strict") -> Operator[Any]:
    """The elements of an array, each once, when it is complete (D1).

        --text-delta('[{"n": 1}, {"n"')--text-delta(': 2}]')--finish-|
        [                   elements(list[Model])                    ]
        --Model(n=1)---------------------Model(n=2)------------------|

    `schema` is the array's: elements are validated singly, and come as the type that it says. The first that does not
    fit ends the stream with `OutputValidationError`, which has its `index`; with `error_strategy="warn"` it is logged
    and left out.

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> deltas = [{"type": "text-delta", "payload": {"text": text}} for text in ("[1, 2", "2, 3", "]")]
    >>> list(mx.as_view(mx.from_chunks(deltas).pipe(ops.elements(list[int]))))
    [1, 22, 3]
    """
    known = None if schema is None else schema_of(schema)
    element = None if known is None else known.element

    def feeding(emit: Emit[Any]) -> Callable[[Chunk], Any]:
        return ElementStream(emit if element is None else validated(element, emit, error_strategy), known)

    return operator(feeding)


def validated(element: Schema[Any], emit: Emit[Any], strategy: ErrorStrategy = "strict") -> Emit[Any]:
    """Emits elements as what the schema makes of them. Strict: the first misfit raises; else it is logged, left out."""
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

    def __init__(self, emit: Emit[str], schema: Schema[Any]) -> None:
        self._emit = emit
        self._elements = ElementStream(self._element, schema)
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
