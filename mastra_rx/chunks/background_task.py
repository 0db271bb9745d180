"""Background task chunks (ChunkType reference, "Background task chunks").

`background-task-started` and `-progress` come from the agent, the others from the task manager, which leaves out
`run_id` and `from_` at the top (they stand in the payload).
"""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, Date, Json, JsonObject, Wire, wire


@wire
class BackgroundTaskPayload(Wire):
    """What every chunk about one task says."""

    task_id: str
    tool_name: str | None = None
    tool_call_id: str | None = None
    run_id: str | None = None
    agent_id: str | None = None


@wire
class BackgroundTaskStartedPayload(BackgroundTaskPayload):
    pass


@wire
class BackgroundTaskStartedChunk(BaseChunk):
    """A call was handed to the task manager."""

    type: Literal["background-task-started"] = "background-task-started"
    payload: BackgroundTaskStartedPayload


@wire
class BackgroundTaskRunningPayload(BackgroundTaskPayload):
    started_at: Date | None = None
    args: Json = None


@wire
class BackgroundTaskRunningChunk(BaseChunk):
    """A worker picked the task up."""

    type: Literal["background-task-running"] = "background-task-running"
    payload: BackgroundTaskRunningPayload


@wire
class BackgroundTaskProgressPayload(Wire):
    task_ids: list[str] | None = None
    running_count: int | None = None
    elapsed_ms: float | None = None
    """Milliseconds since the run began."""


@wire
class BackgroundTaskProgressChunk(BaseChunk):
    """How many tasks are running."""

    type: Literal["background-task-progress"] = "background-task-progress"
    payload: BackgroundTaskProgressPayload


@wire
class BackgroundTaskOutputPayload(BackgroundTaskPayload):
    payload: Json = None
    """The inner chunk: a tool-output or a data-* chunk."""


@wire
class BackgroundTaskOutputChunk(BaseChunk):
    """What a running task lets out."""

    type: Literal["background-task-output"] = "background-task-output"
    payload: BackgroundTaskOutputPayload


@wire
class BackgroundTaskCompletedPayload(BackgroundTaskPayload):
    result: Json = None
    completed_at: Date | None = None
    is_error: bool | None = None


@wire
class BackgroundTaskCompletedChunk(BaseChunk):
    """A task gave its result."""

    type: Literal["background-task-completed"] = "background-task-completed"
    payload: BackgroundTaskCompletedPayload


@wire
class BackgroundTaskFailedPayload(BackgroundTaskPayload):
    error: JsonObject | None = None
    """`{"message": ...}`."""
    completed_at: Date | None = None


@wire
class BackgroundTaskFailedChunk(BaseChunk):
    """A task threw or timed out."""

    type: Literal["background-task-failed"] = "background-task-failed"
    payload: BackgroundTaskFailedPayload


@wire
class BackgroundTaskSuspendedPayload(BackgroundTaskPayload):
    args: Json = None
    suspend_payload: Json = None
    """What the tool passed to `suspend`, as Mastra 1.71.0 sends it."""
    suspend_data: Json = None
    """The same by the name that the ChunkType reference gives it."""
    suspended_at: Date | None = None


@wire
class BackgroundTaskSuspendedChunk(BaseChunk):
    """A task suspended itself and waits to be resumed."""

    type: Literal["background-task-suspended"] = "background-task-suspended"
    payload: BackgroundTaskSuspendedPayload


@wire
class BackgroundTaskResumedPayload(BackgroundTaskPayload):
    started_at: Date | None = None
    args: Json = None


@wire
class BackgroundTaskResumedChunk(BaseChunk):
    """A suspended task runs again."""

    type: Literal["background-task-resumed"] = "background-task-resumed"
    payload: BackgroundTaskResumedPayload


@wire
class BackgroundTaskCancelledPayload(BackgroundTaskPayload):
    completed_at: Date | None = None


@wire
class BackgroundTaskCancelledChunk(BaseChunk):
    """A task was cancelled before it was done."""

    type: Literal["background-task-cancelled"] = "background-task-cancelled"
    payload: BackgroundTaskCancelledPayload
