"""`WorkflowRunOutput`: every view of a workflow's run."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import operators as ops
from .operators.workflow import WorkflowFullOutput, WorkflowReducer, WorkflowStatus, WorkflowStep
from .output import NestedOutput, outputs_of
from .run_output import Outcome, RunOutput, Settled
from .view import View

if TYPE_CHECKING:
    from .operators.usage import Usage
    from .sources.iterables import Chunks


class WorkflowRunOutput(RunOutput[WorkflowFullOutput]):
    """Every view of a workflow's run, from one subscription to its source.

    `source` and `history` as for `MastraModelOutput`. Values settle when the stream ends. A run that failed makes
    `result` raise `AgentError`; one that was suspended has the result None and the status `suspended`.

    >>> import mastra_rx as mx
    >>> start = {"type": "workflow-step-start", "payload": {"id": "a", "status": "running"}}
    >>> done = {"type": "workflow-finish", "payload": {"workflowStatus": "success", "finalWorkflowResult": 42}}
    >>> output = mx.WorkflowRunOutput([start, done])
    >>> output.result.run(), output.status
    (42, 'success')
    """

    def __init__(self, source: Chunks, *, history: int | None = None) -> None:
        self._run = WorkflowReducer()
        super().__init__(source, self._run, history=history)

    @cached_property
    def step_stream(self) -> View[WorkflowStep]:
        """Each step live: its new state whenever something about it changed."""
        return self._streamed("step_stream", ops.workflow_steps())

    @cached_property
    def nested(self) -> View[NestedOutput]:
        """Each run of an agent inside the run, as an output of its own; `key` says where it runs."""
        return outputs_of(self._stream.pipe(ops.nested()), "nested")

    @cached_property
    def result(self) -> View[Any]:
        """What the run gave."""

        def get(outcome: Outcome[WorkflowFullOutput]) -> Any:
            error = outcome.error or self._run.failure
            if error is not None:
                raise error
            return outcome.full.result

        return View(Settled(self, get), "result")

    @cached_property
    def steps(self) -> View[dict[str, WorkflowStep]]:
        """The steps as they ended, by id."""
        return self._value("steps", lambda: self._full.steps)

    @cached_property
    def usage(self) -> View[Usage]:
        """The usage of the agents that ran inside."""
        return self._value("usage", lambda: self._full.usage)

    @property
    def status(self) -> WorkflowStatus:
        """`running`, `success`, `failed`, `suspended`, `waiting`, `tripwire`, `canceled` or `paused`, as of now."""
        return self._run.status

    @property
    def error(self) -> Exception | None:
        """Why the run failed, as soon as that is known."""
        return self._run.failure or (None if self._outcome is None else self._outcome.error)

    def __repr__(self) -> str:
        name = f" {self.run_id}" if self.run_id else ""
        return f"<WorkflowRunOutput{name}: {self.status}, {self._stream.position} chunks>"
