"""Tool runs: each call live, from the first piece of its arguments on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import AgentError, PartialJSONError
from ..partial_json import PartialJSON
from .operator import Emit, Operator, operator
from .outputs import Outputs
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


class Arguments:
    """Arguments that stream: what came until a moment, as text and as far as it parses.

    Nothing is joined, parsed or copied before somebody looks: whoever looks at each state pays for the open containers
    only, whoever looks at an older one later for its text.
    """

    __slots__ = ("_count", "_live", "_pieces")

    def __init__(self, live: _Live) -> None:
        self._live = live
        self._pieces = live.pieces
        self._count = len(live.pieces)

    @property
    def text(self) -> str:
        return "".join(self._pieces[: self._count])

    @property
    def value(self) -> Any:
        return self._live.value(self._count)


class _Live:
    """The pieces of one call's arguments, and the parser that has read some of them."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        self._parser = PartialJSON(strict=True)
        self._read = 0
        self._broken = False
        self._mutex = threading.Lock()  # a screen may look from a thread of its own

    def value(self, count: int) -> Any:
        """What the first `count` pieces stand for."""
        with self._mutex:
            if count >= self._read:
                unread, self._read = self.pieces[self._read : count], count
                try:
                    if not self._broken:
                        self._parser.push("".join(unread))
                except PartialJSONError:
                    self._broken = True  # shows what came before; the call will say why
                return self._parser.value
        return _Live(self.pieces[:count]).value(count)


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
    result: Any = None
    error: AgentError | None = None
    output: Outputs = field(default_factory=lambda: Outputs([]))
    """What the running tool let out, as it came: a sequence."""
    suspension: Any = None
    """The payload of the approval or the suspension that the call waits for."""
    task_id: str | None = None
    """The background task that runs it."""
    provider_executed: bool = False
    input: Any = field(default=None, repr=False)
    """The arguments, or an `Arguments` while they stream; `args` and `args_text` look at it."""

    @property
    def args(self) -> Any:
        """The arguments; while they stream, as far as they have come; None where they could not be parsed (D6)."""
        if isinstance(self.input, Arguments):
            return self.input.value if self.state == "input-streaming" else None
        return self.input

    @property
    def args_text(self) -> str:
        """The text of the arguments while they stream, and where they could not be parsed; else `""`."""
        return self.input.text if isinstance(self.input, Arguments) else ""


class ToolRunReducer:
    """Follows each call. `changed` is called with each new state of one."""

    def __init__(self, changed: Emit[ToolRun]) -> None:
        self._changed = changed
        self._calls = ToolCallReducer()
        self._pairs = ToolPairReducer(self._settled)
        self._runs: dict[CallKey, ToolRun] = {}
        self._latest: dict[str, CallKey] = {}
        self._streaming: dict[CallKey, _Live] = {}

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
        known = self._runs.get(key)
        if known is not None and known.state != "input-streaming":
            return  # the call is made already, to say so again could make it run again
        live = self._streaming.setdefault(key, _Live([]))
        self._put(
            key,
            tool_name=payload.tool_name,
            provider_executed=bool(payload.provider_executed),
            input=Arguments(live),
        )

    def _delta(self, chunk: ToolCallDeltaChunk) -> None:
        key = (chunk.run_id, chunk.tool_call_id)
        known = self._runs.get(key)
        if known is not None and known.state != "input-streaming":
            return  # a stray piece after the end changes nothing
        self._calls.delta(chunk)
        live = self._streaming.setdefault(key, _Live([]))
        live.pieces.append(chunk.args_text_delta)
        name = chunk.tool_name or (None if known is None else known.tool_name)
        self._put(key, tool_name=name, input=Arguments(live))

    def _end_of_input(self, chunk: Chunk) -> None:
        made = self._calls.end(cast("Any", chunk))
        if isinstance(made, list):
            self._called(cast("ToolCallChunk", made[1]))

    def _call(self, chunk: ToolCallChunk) -> None:
        new = self._calls.call(chunk) is not None
        key = (chunk.run_id, chunk.payload.tool_call_id)
        if new or self._runs[key].state == "input-streaming":
            self._called(chunk)
        else:
            self._pairs.repeated(chunk)

    def _called(self, call: ToolCallChunk) -> None:
        payload = call.payload
        key = (call.run_id, payload.tool_call_id)
        live = self._streaming.pop(key, None)
        unparsable = payload.args_error is not None
        self._put(
            key,
            state="input-available",
            tool_name=payload.tool_name,
            input=Arguments(live or _Live([payload.args_text or ""])) if unparsable else payload.args,
            error=AgentError(payload.args_error) if payload.args_error else None,
            provider_executed=bool(payload.provider_executed),
        )
        self._pairs.call(call)

    def _waiting(self, state: RunState) -> Callable[[ToolCallApprovalChunk | ToolCallSuspendedChunk], None]:
        def waiting(chunk: ToolCallApprovalChunk | ToolCallSuspendedChunk) -> None:
            payload = chunk.payload
            key = (chunk.run_id, payload.tool_call_id)
            self._put(key, state=state, tool_name=payload.tool_name, input=payload.args, suspension=payload)
            self._pairs.call(cast("ToolCallApprovalChunk", chunk))

        return waiting

    def _output(self, chunk: ToolOutputChunk) -> None:
        key = self._key_of(chunk.payload.tool_call_id)
        if key is not None:
            self._put(key, output=self._runs[key].output.with_one(chunk.payload.output))

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
        changes: dict[str, Any] = {"tool_name": pair.tool_name, "state": state, "result": pair.result}
        known_args = pair.args is not None  # a repeated call may have told what could not be parsed
        if pair.error is not None or known is None or known.error is None or known_args:
            changes["error"] = pair.error
        if known is None or not isinstance(known.input, Arguments) or known.state == "input-streaming" or known_args:
            changes["input"] = pair.args
        self._put(key, **changes)

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
