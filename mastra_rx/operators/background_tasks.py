"""Background tasks: what became of tool calls that were handed to the task manager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ..errors import AgentError
from .agent_error import tool_error
from .operator import Emit, Operator, Reducer, operator
from .outputs import Outputs

if TYPE_CHECKING:
    from ..chunks import Chunk

TaskState = Literal["started", "running", "suspended", "completed", "failed", "cancelled"]

ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """A task as it stands: immutable, a new one each time something changed."""

    task_id: str
    state: TaskState
    tool_name: str | None = None
    tool_call_id: str | None = None
    """The call that the task runs for."""
    agent_id: str | None = None
    run_id: str | None = None
    args: Any = None
    output: Outputs = field(default_factory=lambda: Outputs([]))
    """What it let out, as it came: a sequence."""
    result: Any = None
    error: AgentError | None = None
    suspend_payload: Any = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    late: tuple[str, ...] = ()
    """What came after it had ended, and was ignored: the first end counts."""

    @property
    def is_over(self) -> bool:
        """Whether it completed, failed or was cancelled."""
        return self.state in ENDED


class BackgroundTaskReducer(Reducer):
    """Follows each task, from chunks of the agent's stream and of the manager's, in any order.

    `changed` is called with each new state of a task.
    """

    def __init__(self, changed: Emit[BackgroundTask]) -> None:
        self._changed = changed
        self.tasks: dict[str, BackgroundTask] = {}

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "background-task-started": self._alive("started"),
            "background-task-running": self._alive("running"),
            "background-task-resumed": self._alive("running"),
            "background-task-suspended": self._suspended,
            "background-task-output": self._output,
            "background-task-completed": self._ended("completed"),
            "background-task-failed": self._ended("failed"),
            "background-task-cancelled": self._ended("cancelled"),
        }

    def _alive(self, state: TaskState) -> Callable[[Any], None]:
        def alive(chunk: Any) -> None:
            known = self.tasks.get(chunk.payload.task_id)
            if state == "started" and known is not None:
                # the agent says `started` and the manager `running`, in either order: it tells nothing new
                self._put(chunk, known.state)
            elif not self._is_late(chunk, known):
                self._put(chunk, state, suspend_payload=None)

        return alive

    def _suspended(self, chunk: Any) -> None:
        payload = chunk.payload
        if not self._is_late(chunk, self.tasks.get(payload.task_id)):
            told = payload.suspend_payload if payload.suspend_payload is not None else payload.suspend_data
            self._put(chunk, "suspended", suspend_payload=told)

    def _output(self, chunk: Any) -> None:
        known = self.tasks.get(chunk.payload.task_id)
        if not self._is_late(chunk, known):
            output = (known.output if known is not None else Outputs([])).with_one(chunk.payload.payload)
            self._put(chunk, "running" if known is None else known.state, output=output)

    def _ended(self, state: TaskState) -> Callable[[Any], None]:
        def ended(chunk: Any) -> None:
            payload = chunk.payload
            if self._is_late(chunk, self.tasks.get(payload.task_id)):
                return
            error: AgentError | None = None
            if state == "failed":
                error = tool_error(payload.error)
            elif state == "completed" and payload.is_error:
                error = tool_error(payload.result)
            result = payload.result if state == "completed" else None
            self._put(chunk, state, result=result, error=error, ended_at=payload.completed_at, suspend_payload=None)

        return ended

    def _is_late(self, chunk: Any, known: BackgroundTask | None) -> bool:
        """Whether the task has ended already; then it is only noted that something came."""
        if known is None or not known.is_over:
            return False
        kind = chunk.type.removeprefix("background-task-")
        self.tasks[known.task_id] = known = replace(known, late=(*known.late, kind))
        self._changed(known)
        return True

    def _put(self, chunk: Any, state: TaskState, **changes: Any) -> None:
        payload = chunk.payload
        before = self.tasks.get(payload.task_id)
        task = before or BackgroundTask(payload.task_id, state)
        told: dict[str, Any] = {
            "tool_name": payload.tool_name,
            "tool_call_id": payload.tool_call_id,
            "agent_id": payload.agent_id,
            "run_id": payload.run_id or chunk.run_id,
            "args": getattr(payload, "args", None),
            "started_at": task.started_at or getattr(payload, "started_at", None),
        }
        known = {name: value for name, value in told.items() if value is not None}
        task = replace(task, state=state, **{**known, **changes})
        if task != before:
            self.tasks[payload.task_id] = task
            self._changed(task)


def background_tasks() -> Operator[BackgroundTask]:
    """Each background task live: its new state whenever something about it changed.

        --started(k)--running(k)--finish--output(k)--completed(k)-|
        [                   background_tasks()                    ]
        --(started)---(running)-----------(running)--(completed)---|

    From the agent's stream and the task manager's, merged in any order. The first end of a task counts; what comes
    after it is ignored and noted in `late`.
    """

    def feeding(emit: Emit[BackgroundTask]) -> Callable[[Chunk], Any]:
        handlers = BackgroundTaskReducer(emit).handlers()

        def feed(chunk: Chunk) -> None:
            handler = handlers.get(chunk.type)
            if handler is not None:
                handler(chunk)

        return feed

    return operator(feeding)
