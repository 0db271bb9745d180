"""Tool runs: each call live, from the first piece of its arguments on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import AgentError
from .operator import Emit, Operator, operator
from .tool_calls import CallKey, ToolCallReducer
from .tool_pairs import ToolPair, ToolPairReducer

if TYPE_CHECKING:
    from ..chunks import (
        BackgroundTaskStartedChunk,
        Chunk,
        ToolCallApprovalChunk,
        ToolCallChunk,
        ToolCallDeltaChunk,
        ToolCallInputStreamingStartChunk,
        ToolCallSuspendedChunk,
        ToolOutputChunk,
    )

RunState = Literal[
    "input-streaming",
    "input-available",
    "approval-requested",
    "suspended",
    "background",
    "output-available",
    "output-error",
    "output-denied",
    "unresolved",
]


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A call as it stands: immutable, a new one each time something changed.

    `state` goes from `input-streaming` (arguments are coming) to `input-available` (the tool runs) to one of
    `output-available`, `output-error`, `output-denied` or `unresolved`; on the way it may be `approval-requested`,
    `suspended` or, handed to the task manager, `background`.
    """

    tool_call_id: str
    tool_name: str | None
    state: RunState
    args: Any = None
    """The arguments; while they stream, as far as they have come."""
    result: Any = None
    error: AgentError | None = None
    output: tuple[Any, ...] = ()
    """What the running tool let out, as it came."""
    suspension: Any = None
    """The payload of the approval or the suspension that the call waits for."""
    task_id: str | None = None
    """The background task that runs it."""
    provider_executed: bool = False
    _pieces: tuple[list[str], int] = field(default=((), 0), repr=False, compare=False)  # type: ignore[assignment]

    @property
    def args_text(self) -> str:
        """The arguments' text, as far as it has come."""
        pieces, count = self._pieces
        return "".join(pieces[:count])


class ToolRunReducer:
    """Follows each call. `changed` is called with each new state of one."""

    def __init__(self, changed: Emit[ToolRun]) -> None:
        self._changed = changed
        self._calls = ToolCallReducer()
        self._pairs = ToolPairReducer(self._settled)
        self._runs: dict[CallKey, ToolRun] = {}
        self._latest: dict[str, CallKey] = {}
        self._pieces: dict[CallKey, list[str]] = {}

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        own: dict[str, Callable[[Any], Any]] = {
            "tool-call-input-streaming-start": self._start,
            "tool-call-delta": self._delta,
            "tool-call-input-streaming-end": self._end_of_input,
            "tool-call": self._call,
            "tool-call-approval": self._waiting("approval-requested"),
            "tool-call-suspended": self._waiting("suspended"),
            "tool-output": self._output,
            "background-task-started": self._background,
        }
        return {**self._pairs.handlers(), **own}

    def _start(self, chunk: ToolCallInputStreamingStartChunk) -> None:
        self._calls.start(chunk)
        payload = chunk.payload
        key = (chunk.run_id, payload.tool_call_id)
        pieces = self._pieces.setdefault(key, [])
        self._put(
            key,
            tool_name=payload.tool_name,
            provider_executed=bool(payload.provider_executed),
            _pieces=(pieces, len(pieces)),
        )

    def _delta(self, chunk: ToolCallDeltaChunk) -> None:
        key = (chunk.run_id, chunk.tool_call_id)
        known = self._runs.get(key)
        if known is not None and known.state != "input-streaming":
            return  # a stray piece after the end changes nothing
        self._calls.delta(chunk)
        pieces = self._pieces.setdefault(key, [])
        pieces.append(chunk.args_text_delta)
        name = chunk.tool_name or (None if known is None else known.tool_name)
        self._put(key, tool_name=name, _pieces=(pieces, len(pieces)))

    def _end_of_input(self, chunk: Chunk) -> None:
        made = self._calls.end(cast("Any", chunk))
        if isinstance(made, list):
            self._called(cast("ToolCallChunk", made[1]))

    def _call(self, chunk: ToolCallChunk) -> None:
        new = self._calls.call(chunk) is not None
        key = (chunk.run_id, chunk.payload.tool_call_id)
        if new or self._runs[key].state == "input-streaming":
            self._called(chunk)

    def _called(self, call: ToolCallChunk) -> None:
        payload = call.payload
        key = (call.run_id, payload.tool_call_id)
        self._put(
            key,
            state="input-available",
            tool_name=payload.tool_name,
            args=payload.args,
            error=AgentError(payload.args_error) if payload.args_error else None,
            provider_executed=bool(payload.provider_executed),
        )
        self._pairs.call(call)

    def _waiting(self, state: RunState) -> Callable[[ToolCallApprovalChunk | ToolCallSuspendedChunk], None]:
        def waiting(chunk: ToolCallApprovalChunk | ToolCallSuspendedChunk) -> None:
            payload = chunk.payload
            key = (chunk.run_id, payload.tool_call_id)
            self._put(key, state=state, tool_name=payload.tool_name, args=payload.args, suspension=payload)
            self._pairs.call(cast("ToolCallApprovalChunk", chunk))

        return waiting

    def _output(self, chunk: ToolOutputChunk) -> None:
        key = self._key_of(chunk.payload.tool_call_id)
        if key is not None:
            run = self._runs[key]
            self._put(key, output=(*run.output, chunk.payload.output))

    def _background(self, chunk: BackgroundTaskStartedChunk) -> None:
        key = self._key_of(chunk.payload.tool_call_id)
        if key is not None:
            self._put(key, state="background", task_id=chunk.payload.task_id)

    def _settled(self, pair: ToolPair) -> None:
        states: dict[str, RunState] = {"result": "output-available", "error": "output-error", "denied": "output-denied"}
        key = self._key_of(pair.tool_call_id) or (None, pair.tool_call_id)
        state = "background" if pair.is_placeholder else states.get(pair.state, "unresolved")
        known = self._runs.get(key)
        if state == "unresolved" and known is not None and known.state in ("approval-requested", "suspended"):
            return  # it goes on waiting, in another stream
        self._put(key, tool_name=pair.tool_name, state=state, args=pair.args, result=pair.result, error=pair.error)

    def _key_of(self, call_id: str | None) -> CallKey | None:
        return None if call_id is None else self._latest.get(call_id)

    def _put(self, key: CallKey, **changes: Any) -> None:
        run = self._runs.get(key)
        if run is None:
            run = ToolRun(key[1], changes.pop("tool_name", None), changes.pop("state", "input-streaming"))
            self._latest[key[1]] = key
        run = self._runs[key] = replace(run, **changes)
        self._changed(run)

    def end(self) -> None:
        """The run is over: calls whose input never ended, or that nothing came of, are unresolved."""
        self._pairs.end()
        for key, run in list(self._runs.items()):
            if run.state == "input-streaming":
                self._put(key, state="unresolved")


def tool_runs() -> Operator[ToolRun]:
    """Each call live: its new state whenever something about it changed.

        --streaming-start--delta--delta--streaming-end--tool-result--finish-|
        [                           tool_runs()                             ]
        --(input-streaming)-(..)---(..)--(input-available)-(output-available)-|

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> runs = mx.as_view(mx.from_jsonl(mx.recording("tools")).pipe(ops.tool_runs()))
    >>> [run.state for run in runs][-3:]
    ['input-streaming', 'input-available', 'output-available']
    """

    def feeding(emit: Emit[ToolRun]) -> Callable[[Chunk], Any]:
        return _RunFeed(emit)

    return operator(feeding, at_end=lambda feed: feed.runs.end)


class _RunFeed:
    def __init__(self, emit: Emit[ToolRun]) -> None:
        self.runs = ToolRunReducer(emit)
        self._handlers = self.runs.handlers()

    def __call__(self, chunk: Chunk) -> None:
        handler = self._handlers.get(chunk.type)
        if handler is not None:
            handler(chunk)
