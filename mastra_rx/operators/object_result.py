"""The object itself: the server's result, or what the text stands for; validated by our schema once, at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..errors import OutputValidationError
from ..schema import Schema, schema_of
from .object_text import read_object
from .operator import Operator, Reducer, reduction

if TYPE_CHECKING:
    from ..chunks import FinishChunk, ObjectResultChunk, StepFinishChunk, TextDeltaChunk

log = logging.getLogger("mastra_rx")

ErrorStrategy = Literal["strict", "warn", "fallback"]


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """What became of the object: a value, or the reason why there is none."""

    value: Any = None
    error: OutputValidationError | None = None
    used_fallback_value: bool = False


@dataclass(frozen=True, slots=True)
class ObjectPolicy:
    """What the object must look like, and what to do when it does not."""

    schema: Schema[Any] | None = None
    strategy: ErrorStrategy = "strict"
    fallback: Any = None

    def __post_init__(self) -> None:
        if self.strategy not in ("strict", "warn", "fallback"):
            raise ValueError(f'error_strategy={self.strategy!r}: it is "strict", "warn" or "fallback"')

    def outcome(self, value: Any) -> ObjectOutcome:
        """`value` validated, once."""
        if self.schema is None:
            return ObjectOutcome(value)
        try:
            return ObjectOutcome(self.schema.validate(value))
        except OutputValidationError as error:
            return self.failed(error)

    def failed(self, error: OutputValidationError) -> ObjectOutcome:
        """What the strategy makes of an object that does not fit."""
        if self.strategy == "strict":
            return ObjectOutcome(error=error)
        log.warning("%s", error)
        if self.strategy == "fallback":
            return ObjectOutcome(self.fallback, used_fallback_value=True)
        return ObjectOutcome()


class ObjectReducer(Reducer):
    """The object of a run: the wire's first `object-result` (one of a step that a processor sends back is forgotten),
    or, where the wire says nothing of objects and a schema is given, what the text stands for.
    """

    def __init__(self, policy: ObjectPolicy | None = None) -> None:
        self._policy = policy or ObjectPolicy()
        self._result: ObjectResultChunk | None = None
        self._on_wire = False
        self._outcome: ObjectOutcome | None = None

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {"object": self.object, "object-result": self.object_result}

    def object(self, _: Any) -> None:
        self._on_wire = True

    def object_result(self, chunk: ObjectResultChunk) -> None:
        self._on_wire = True
        if self._result is None:
            self._result = chunk

    def step_finish(self, tripwire: Mapping[str, Any] | None) -> None:
        if tripwire is not None and tripwire.get("retry"):
            self._result = self._outcome = None

    @property
    def used_fallback_value(self) -> bool:
        return is_fallback(self._result) or (self._outcome is not None and self._outcome.used_fallback_value)

    def outcome(self, text: str = "", reason: str | None = None) -> ObjectOutcome:
        """The object, when nothing more comes; validated at the first call.

        `text` is what the last step wrote, `reason` why it stopped.
        """
        if self._outcome is None:
            self._outcome = self._made(text, reason)
        return self._outcome

    def _made(self, text: str, reason: str | None) -> ObjectOutcome:
        if self._result is not None:
            if is_fallback(self._result):
                return ObjectOutcome(self._result.object, used_fallback_value=True)
            return self._policy.outcome(self._result.object)
        schema = self._policy.schema
        if schema is None or self._on_wire or not text.strip():
            return ObjectOutcome()
        try:
            value = read_object(schema, text, reason)
        except OutputValidationError as error:
            return self._policy.failed(error)
        return self._policy.outcome(value)


def is_fallback(chunk: ObjectResultChunk | None) -> bool:
    """Whether the server's value is the fallback, and not the model's."""
    return chunk is not None and (chunk.metadata or {}).get("fallback") is True


def object(schema: Any = None, *, error_strategy: ErrorStrategy = "strict", fallback: Any = None) -> Operator[Any]:
    """The object, validated, when the run is complete; None where there is none.

        --text-delta('{"n": 1')--text-delta('}')--finish-|
        [                 object(Model)                  ]
        --------------------------------------------------(Model(n=1))-|

    One that does not fit `schema` ends the stream with `OutputValidationError` (`strict`), gives None (`warn`) or
    `fallback` (`fallback`).
    """
    policy = ObjectPolicy(None if schema is None else schema_of(schema), error_strategy, fallback)

    def result(reducer: _TextObject) -> Any:
        outcome = reducer.objects.outcome(*reducer.text)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    return reduction(lambda: _TextObject(policy), result)


class _TextObject(Reducer):
    """The object of a run, with the text of its last step that wrote something."""

    def __init__(self, policy: ObjectPolicy) -> None:
        self.objects = ObjectReducer(policy)
        self._pieces: list[str] = []
        self._last: tuple[str, str | None] = ("", None)

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        text = {"text-delta": self._delta, "step-finish": self._finish, "finish": self._finish}
        return {**self.objects.handlers(), **text}

    def _delta(self, chunk: TextDeltaChunk) -> None:
        self._pieces.append(chunk.text)

    def _finish(self, chunk: StepFinishChunk | FinishChunk) -> None:
        result = chunk.payload.step_result
        self._close(None if result is None else result.reason)

    def _close(self, reason: str | None) -> None:
        text, self._pieces = "".join(self._pieces), []
        if text.strip():
            self._last = (text, reason)

    @property
    def text(self) -> tuple[str, str | None]:
        self._close(None)
        return self._last
