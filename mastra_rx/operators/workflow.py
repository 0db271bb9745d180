"""Workflows: their steps, live, and what a run came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import AgentError, StreamDisposed, StreamInterrupted
from .agent_error import agent_error, tool_error
from .operator import Emit, Operator, PassingReducer, operator
from .usage import Usage, nested_value

if TYPE_CHECKING:
    from ..chunks import (
        Chunk,
        WorkflowFinishChunk,
        WorkflowStepOutputChunk,
        WorkflowStepProgressChunk,
        WorkflowStepStartChunk,
    )

WorkflowStatus = Literal["running", "success", "failed", "suspended", "waiting", "tripwire", "canceled", "paused"]


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """A step as it stands: immutable, a new one each time something changed."""

    id: str
    status: str = "running"
    """`running`, `success`, `failed`, `suspended` or `waiting`."""
    input: Any = None
    output: Any = None
    error: AgentError | None = None
    suspend_payload: Any = None
    resume_payload: Any = None
    completed_count: int | None = None
    """Of a foreach step: how many items are done."""
    total_count: int | None = None
    starts: int = 1
    """How often it was started: more than once where it was retried, resumed or is part of a loop."""
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFullOutput:
    """Everything a run of a workflow came to."""

    status: WorkflowStatus = "running"
    result: Any = None
    steps: dict[str, WorkflowStep] = field(default_factory=dict[str, WorkflowStep])
    usage: Usage = field(default_factory=Usage)
    suspended: tuple[str, ...] = ()
    """The steps that wait to be resumed."""
    error: Exception | None = None
    run_id: str | None = None


class WorkflowReducer(PassingReducer):
    """Follows a run. `changed`, if given, is called with each new state of a step."""

    def __init__(self, changed: Emit[WorkflowStep] | None = None) -> None:
        self._changed = changed
        self.steps: dict[str, WorkflowStep] = {}
        self.usage = Usage(0, 0, 0, 0, 0, 0)
        self.status: WorkflowStatus = "running"
        self.value: Any = None
        self.failure: Exception | None = None
        self.is_over = False
        super().__init__()

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "workflow-step-start": self._step,
            "workflow-step-result": self._step,
            "workflow-step-finish": self._step,
            "workflow-step-suspended": self._step,
            "workflow-step-waiting": self._step,
            "workflow-step-progress": self._progress,
            "workflow-step-output": self._output,
            "workflow-finish": self._finish,
            "workflow-canceled": self._ended("canceled"),
            "workflow-paused": self._ended("paused"),
        }

    def _step(self, chunk: WorkflowStepStartChunk) -> None:
        payload = chunk.payload
        name = payload.id or payload.step_name
        if name is None:
            return
        known = self.steps.get(name)
        starts = chunk.type == "workflow-step-start"
        step = known or WorkflowStep(name)
        status = payload.status or {"workflow-step-suspended": "suspended", "workflow-step-waiting": "waiting"}.get(
            chunk.type, step.status
        )
        changes: dict[str, Any] = {
            "input": payload.payload,
            "output": payload.output,
            "suspend_payload": payload.suspend_payload,
            "resume_payload": payload.resume_payload,
            "started_at": payload.started_at,
            "ended_at": payload.ended_at,
            "error": None if payload.error is None else tool_error(payload.error),
        }
        known_changes = {key: value for key, value in changes.items() if value is not None}
        if starts and known is not None:  # tried again, resumed, or the next round of a loop
            step = replace(known, output=None, error=None, ended_at=None)
            known_changes["starts"] = known.starts + 1
        self._put(replace(step, status=status, **known_changes))

    def _progress(self, chunk: WorkflowStepProgressChunk) -> None:
        payload = chunk.payload
        name = payload.id or payload.step_name
        if name is not None:
            step = self.steps.get(name) or WorkflowStep(name)
            self._put(replace(step, completed_count=payload.completed_count, total_count=payload.total_count))

    def _output(self, chunk: WorkflowStepOutputChunk) -> None:
        """The usage of an agent that ran inside counts for the run (Mastra 1.71.0)."""
        inner = chunk.payload.output
        if isinstance(inner, dict) and cast("dict[str, Any]", inner).get("type") == "finish":
            payload: Any = cast("dict[str, Any]", inner).get("payload")
            told = nested_value(payload, "usage") or nested_value(nested_value(payload, "output"), "usage")
            self.usage += Usage.of(told)

    def _finish(self, chunk: WorkflowFinishChunk) -> None:
        payload = chunk.payload
        metadata = payload.metadata or {}
        self.status = cast("WorkflowStatus", payload.workflow_status or "success")
        self.value = payload.final_workflow_result
        self.is_over = True
        if self.status == "failed":
            told = metadata.get("error") or metadata.get("errorMessage")
            self.failure = agent_error(told) if told else self._failed_step()

    def _failed_step(self) -> AgentError:
        """Over HTTP the finish does not say why: the step that failed does."""
        for name, step in self.steps.items():
            if step.error is not None:
                return AgentError(f"step {name}: {step.error}", data=step.error.data, cause=step.error)
        return AgentError("the workflow failed")

    def _ended(self, status: WorkflowStatus) -> Callable[[Chunk], None]:
        def ended(_: Chunk) -> None:
            self.status = status
            self.is_over = True

        return ended

    def _put(self, step: WorkflowStep) -> None:
        self.steps[step.id] = step
        if self._changed is not None:
            self._changed(step)

    def stop(self, error: Exception) -> None:
        """The stream ended before the run did."""
        if isinstance(error, StreamDisposed):
            self.status = "canceled"
        elif type(error) is not StreamInterrupted:
            self.status = "failed"

    def full(self, error: Exception | None) -> WorkflowFullOutput:
        """Everything so far, as one immutable value."""
        return WorkflowFullOutput(
            status=self.status,
            result=self.value,
            steps=dict(self.steps),
            usage=self.usage,
            suspended=tuple(name for name, step in self.steps.items() if step.status == "suspended"),
            error=error or self.failure,
            run_id=self.run_id,
        )


def workflow_steps() -> Operator[WorkflowStep]:
    """Each step live: its new state whenever something about it changed.

    --step-start(a)--step-result(a)--step-start(b)--step-suspended(b)--workflow-finish-|
    [                               workflow_steps()                                   ]
    --(a, running)---(a, success)----(b, running)---(b, suspended)----------------------|
    """

    def feeding(emit: Emit[WorkflowStep]) -> Callable[[Chunk], Any]:
        return WorkflowReducer(emit).feed

    return operator(feeding)
