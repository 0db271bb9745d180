"""Evaluations: whether a goal is reached, or a task complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .operator import Emit, Operator, operator

if TYPE_CHECKING:
    from ..chunks import Chunk, GoalPayload, IsTaskCompletePayload


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of a goal, or one completion check."""

    kind: Literal["goal", "is-task-complete"]
    passed: bool | None
    iteration: int | None
    reason: str | None
    """The judge's feedback, or why it stopped."""
    goes_on: bool
    """The work so far is judged not enough: the values of the run start anew (D14)."""
    payload: GoalPayload | IsTaskCompletePayload
    """All that it said."""


def evaluations() -> Operator[Evaluation]:
    """Evaluations of a goal and completion checks, as they come.

    --text-delta--goal(passed=False)--text-delta--goal(passed=True)--finish-|
    [                             evaluations()                             ]
    --------------(False)-------------------------(True)---------------------|
    """

    def feeding(emit: Emit[Evaluation]) -> Callable[[Chunk], Any]:
        def feed(chunk: Chunk) -> None:
            if chunk.type == "goal":
                payload = chunk.payload
                goes_on = payload.should_continue is True
                emit(Evaluation("goal", payload.passed, payload.iteration, payload.reason, goes_on, payload))
            elif chunk.type == "is-task-complete":
                check = chunk.payload
                emit(Evaluation("is-task-complete", check.passed, check.iteration, check.reason, False, check))

        return feed

    return operator(feeding)
