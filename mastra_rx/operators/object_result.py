"""The object itself: what the server sent as the result, validated by our schema once, at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..errors import OutputValidationError
from ..schema import Schema
from .operator import Reducer

if TYPE_CHECKING:
    from ..chunks import ObjectResultChunk

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
    """Remembers the wire's first `object-result`; one of a step that a processor sends back is forgotten."""

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
    def remembered(self) -> Any:
        """The wire's result as it came; None where there is none."""
        return None if self._result is None else self._result.object

    @property
    def used_fallback_value(self) -> bool:
        return is_fallback(self._result) or (self._outcome is not None and self._outcome.used_fallback_value)

    def outcome(self) -> ObjectOutcome:
        """The object, when nothing more comes. Validated at the first call."""
        if self._outcome is None:
            if self._result is None:
                self._outcome = ObjectOutcome()
            elif is_fallback(self._result):
                self._outcome = ObjectOutcome(self._result.object, used_fallback_value=True)
            else:
                self._outcome = self._policy.outcome(self._result.object)
        return self._outcome


def is_fallback(chunk: ObjectResultChunk | None) -> bool:
    """Whether the server's value is the fallback, and not the model's."""
    return chunk is not None and (chunk.metadata or {}).get("fallback") is True
