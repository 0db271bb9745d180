"""Tool pairs: each call with what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import AgentError
from .agent_error import tool_error
from .operator import Emit, Operator, operator
from .tool_calls import CallKey, ToolCallReducer

if TYPE_CHECKING:
    from ..chunks import (
        BackgroundTaskCancelledChunk,
        BackgroundTaskCompletedChunk,
        BackgroundTaskFailedChunk,
        Chunk,
        ToolCallApprovalChunk,
        ToolCallChunk,
        ToolErrorChunk,
        ToolOutputDeniedChunk,
        ToolResultChunk,
    )

PairState = Literal["result", "error", "denied", "unresolved"]


@dataclass(frozen=True, slots=True)
class ToolPair:
    """A call and what came of it.

    `state` is `result`, `error`, `denied` (somebody declined), or `unresolved` (nothing came before the run ended:
    suspended, aborted, or left to the client).
    """

    tool_call_id: str
    tool_name: str | None
    args: Any
    state: PairState
    result: Any = None
    """What the tool gave back."""
    error: AgentError | None = None
    """Why the tool failed, or why it was denied."""
    call: ToolCallChunk | None = None
    """The chunk of the call; None where it came in an earlier stream, as in a resumed run."""
    outcome: ToolResultChunk | ToolErrorChunk | ToolOutputDeniedChunk | Chunk | None = None
    """The chunk that settled it."""
    is_placeholder: bool = False
    """The tool runs in the background and its real result did not come: `result` is the note the model got."""

    @property
    def is_orphan(self) -> bool:
        """The outcome came without its call."""
        return self.call is None


@dataclass(slots=True)
class _Open:
    """A call that is known, and what came of it so far."""

    tool_call_id: str
    tool_name: str | None
    args: Any
    call: ToolCallChunk | None
    state: PairState = "unresolved"
    result: Any = None
    error: AgentError | None = None
    outcome: Any = None
    is_placeholder: bool = False
    settled: bool = False

    @property
    def pair(self) -> ToolPair:
        return ToolPair(
            self.tool_call_id,
            self.tool_name,
            self.args if self.call is None else self.call.payload.args,  # which a repeated call may have filled in
            self.state,
            self.result,
            self.error,
            self.call,
            self.outcome,
            self.is_placeholder,
        )


class ToolPairReducer:
    """Pairs by id, whatever the order. `settled`, if given, is called with each pair once it is settled."""

    def __init__(self, settled: Emit[ToolPair] | None = None) -> None:
        self._settled = settled
        self._open: dict[CallKey, _Open] = {}
        self._latest: dict[str, CallKey] = {}

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        """For chunks in which each call comes once: see `ToolCallReducer`."""
        return {
            "tool-call": self.call,
            "tool-call-approval": self.call,
            "tool-call-suspended": self.call,
            "tool-result": self.result,
            "tool-error": self.error,
            "tool-output-denied": self.denied,
            "background-task-completed": self.task_completed,
            "background-task-failed": self.task_failed,
            "background-task-cancelled": self.task_cancelled,
        }

    def call(self, chunk: ToolCallChunk | ToolCallApprovalChunk) -> None:
        payload = chunk.payload
        call = chunk if chunk.type == "tool-call" else None
        key = (chunk.run_id, payload.tool_call_id)
        known = self._open.get(key)
        if known is None:
            self._open[key] = _Open(payload.tool_call_id, payload.tool_name, payload.args, call)
            self._latest[payload.tool_call_id] = key
        elif call is not None and known.call is None:
            known.call = call
            known.args = payload.args

    def repeated(self, call: ToolCallChunk) -> None:
        """A call that is known came again: the one that says more is the call."""
        known = self._open.get((call.run_id, call.payload.tool_call_id))
        if known is not None and known.call is not None and (call.payload.args or not known.call.payload.args):
            known.call = call

    def result(self, chunk: ToolResultChunk) -> None:
        payload = chunk.payload
        if payload.is_error:
            error = tool_error(payload.result)
            self._settle(chunk, payload.tool_call_id, "error", payload.result, error)
        elif is_placeholder(chunk):
            known = self._known(chunk, payload.tool_call_id)
            if not known.settled:
                known.state, known.result, known.outcome = "result", payload.result, chunk
                known.is_placeholder = True
        else:
            self._settle(chunk, payload.tool_call_id, "result", payload.result)

    def error(self, chunk: ToolErrorChunk) -> None:
        error = tool_error(chunk.payload.error)
        self._settle(chunk, chunk.payload.tool_call_id, "error", error=error)

    def denied(self, chunk: ToolOutputDeniedChunk) -> None:
        reason = (chunk.payload.approval or {}).get("reason")
        error = AgentError(str(reason or "the call was declined"))
        self._settle(chunk, chunk.payload.tool_call_id, "denied", error=error)

    def task_completed(self, chunk: BackgroundTaskCompletedChunk) -> None:
        payload = chunk.payload
        if payload.is_error:
            self._settle_task(chunk, "error", payload.result, error=tool_error(payload.result))
        else:
            self._settle_task(chunk, "result", payload.result)

    def task_failed(self, chunk: BackgroundTaskFailedChunk) -> None:
        self._settle_task(chunk, "error", error=tool_error(chunk.payload.error))

    def task_cancelled(self, chunk: BackgroundTaskCancelledChunk) -> None:
        self._settle_task(chunk, "error", error=AgentError("the background task was cancelled"))

    def _settle_task(self, chunk: Any, state: PairState, result: Any = None, error: AgentError | None = None) -> None:
        call_id = chunk.payload.tool_call_id
        if call_id is not None:
            self._settle(chunk, call_id, state, result, error, run_id=chunk.payload.run_id)

    def _settle(
        self,
        chunk: Any,
        call_id: str,
        state: PairState,
        result: Any = None,
        error: AgentError | None = None,
        *,
        run_id: str | None = None,
    ) -> None:
        known = self._known(chunk, call_id, run_id)
        if known.settled:
            return  # a background task and its turn may both tell; the first one counts
        known.state, known.result, known.error, known.outcome = state, result, error, chunk
        known.is_placeholder, known.settled = False, True
        if self._settled is not None:
            self._settled(known.pair)

    def _known(self, chunk: Any, call_id: str, run_id: str | None = None) -> _Open:
        key = (run_id or chunk.run_id, call_id)
        known = self._open.get(key) or self._open.get(self._latest.get(call_id, key))
        if known is None:
            payload = chunk.payload
            known = self._open[key] = _Open(call_id, payload.tool_name, getattr(payload, "args", None), None)
            self._latest[call_id] = key
        return known

    def end(self) -> None:
        """The run is over: what is still open stays unresolved, or with its placeholder."""
        for known in self._open.values():
            if not known.settled:
                known.settled = True
                if self._settled is not None:
                    self._settled(known.pair)

    @property
    def pairs(self) -> list[ToolPair]:
        """All pairs in the order of their calls, settled or not."""
        return [known.pair for known in self._open.values()]

    def drop(self) -> None:
        """A goal goes on: the values start anew."""
        self._open = {}
        self._latest = {}


def is_placeholder(chunk: ToolResultChunk) -> bool:
    """Whether the result only tells the model that the tool now runs in the background."""
    mastra = (chunk.payload.provider_metadata or {}).get("mastra")
    task = cast("dict[str, Any]", mastra).get("backgroundTask") if isinstance(mastra, dict) else None
    if isinstance(task, dict):
        return cast("dict[str, Any]", task).get("status") == "running"
    result = chunk.payload.result
    return isinstance(result, str) and result.startswith("Background task started. Task ID:")


def tool_pairs() -> Operator[ToolPair]:
    """Each call with its outcome, once it is settled; what never settles comes last, as `unresolved`.

        --call(a)--call(b)--result(b)--result(a)--call(c)--finish-|
        [                       tool_pairs()                      ]
        -------------------(b, result)-(a, result)-----------------(c, unresolved)-|

    Survives ids that come twice, results before their calls (resumed runs) and calls that never settle.

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> pairs = mx.as_view(mx.from_jsonl(mx.recording("tools")).pipe(ops.tool_pairs()))
    >>> [(pair.tool_name, pair.args, pair.state) for pair in pairs]
    [('weather', {'city': 'Tokyo'}, 'result')]
    """

    def feeding(emit: Emit[ToolPair]) -> Callable[[Chunk], Any]:
        return _PairFeed(emit)

    return operator(feeding, at_end=lambda feed: feed.pairs.end)


class _PairFeed:
    def __init__(self, emit: Emit[ToolPair]) -> None:
        self._calls = ToolCallReducer().handlers()
        self.pairs = ToolPairReducer(emit)
        self._handlers = self.pairs.handlers()

    def __call__(self, chunk: Chunk) -> None:
        known = self._calls.get(chunk.type)
        passed: Chunk | list[Chunk] | None = chunk if known is None else known(chunk)
        if passed is None:
            self.pairs.repeated(cast("ToolCallChunk", chunk))
        for one in passed if isinstance(passed, list) else [passed]:
            handler = None if one is None else self._handlers.get(one.type)
            if handler is not None:
                handler(one)
