"""Workflow chunks (Mastra 1.71.0, WorkflowStreamEvent)."""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, Date, Json, JsonObject, Wire, wire


@wire
class WorkflowStartPayload(Wire):
    workflow_id: str | None = None


@wire
class WorkflowStartChunk(BaseChunk):
    """A workflow run begins."""

    type: Literal["workflow-start"] = "workflow-start"
    payload: WorkflowStartPayload | None = None


@wire
class WorkflowFinishOutput(Wire):
    usage: JsonObject | None = None


@wire
class WorkflowFinishPayload(Wire):
    workflow_status: str | None = None
    """`success`, `failed`, `suspended`, `tripwire`, `canceled` or `paused`."""
    final_workflow_result: Json = None
    """Only where the run succeeded."""
    output: WorkflowFinishOutput | None = None
    metadata: JsonObject | None = None
    """`error` and `errorMessage` where the run failed."""
    tripwire: Json = None


@wire
class WorkflowFinishChunk(BaseChunk):
    """A workflow run is over or suspended."""

    type: Literal["workflow-finish"] = "workflow-finish"
    payload: WorkflowFinishPayload


@wire
class WorkflowCanceledChunk(BaseChunk):
    """A workflow run was cancelled."""

    type: Literal["workflow-canceled"] = "workflow-canceled"
    payload: JsonObject | None = None


@wire
class WorkflowPausedChunk(BaseChunk):
    """A workflow run was paused."""

    type: Literal["workflow-paused"] = "workflow-paused"
    payload: JsonObject | None = None


@wire
class WorkflowStepPayload(Wire):
    """What the chunks about one step say; each kind fills a part of it."""

    id: str | None = None
    step_name: str | None = None
    step_call_id: str | None = None
    status: str | None = None
    """`running`, `success`, `failed`, `suspended` or `waiting`."""
    payload: Json = None
    """The step's input."""
    output: Json = None
    error: Json = None
    resume_payload: Json = None
    suspend_payload: Json = None
    suspend_output: Json = None
    tripwire: Json = None
    metadata: JsonObject | None = None
    started_at: Date | None = None
    ended_at: Date | None = None
    suspended_at: Date | None = None
    resumed_at: Date | None = None


@wire
class WorkflowStepStartChunk(BaseChunk):
    """A step begins."""

    type: Literal["workflow-step-start"] = "workflow-step-start"
    id: str | None = None
    payload: WorkflowStepPayload


@wire
class WorkflowStepFinishChunk(BaseChunk):
    """A step is done; Mastra 1.71.0 hides it."""

    type: Literal["workflow-step-finish"] = "workflow-step-finish"
    payload: WorkflowStepPayload


@wire
class WorkflowStepSuspendedChunk(BaseChunk):
    """A step suspended the run."""

    type: Literal["workflow-step-suspended"] = "workflow-step-suspended"
    payload: WorkflowStepPayload


@wire
class WorkflowStepWaitingChunk(BaseChunk):
    """A step sleeps or waits for an event."""

    type: Literal["workflow-step-waiting"] = "workflow-step-waiting"
    payload: WorkflowStepPayload


@wire
class WorkflowStepOutputPayload(Wire):
    output: Json = None
    """A chunk of an agent that runs inside the step, or what the step's writer wrote."""
    step_name: str | None = None
    step_id: str | None = None
    run_id: str | None = None


@wire
class WorkflowStepOutputChunk(BaseChunk):
    """What a running step lets out."""

    type: Literal["workflow-step-output"] = "workflow-step-output"
    payload: WorkflowStepOutputPayload


@wire
class WorkflowStepProgressPayload(Wire):
    id: str | None = None
    step_name: str | None = None
    completed_count: int | None = None
    total_count: int | None = None
    current_index: int | None = None
    iteration_status: str | None = None
    """`success`, `failed` or `suspended`."""
    iteration_output: Json = None


@wire
class WorkflowStepProgressChunk(BaseChunk):
    """One more item of a foreach step is done."""

    type: Literal["workflow-step-progress"] = "workflow-step-progress"
    payload: WorkflowStepProgressPayload


@wire
class WorkflowStepResultChunk(BaseChunk):
    """How a step ended."""

    type: Literal["workflow-step-result"] = "workflow-step-result"
    payload: WorkflowStepPayload
