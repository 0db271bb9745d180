"""The whole run, reduced in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from reactivex import Observable, abc
from typing_extensions import TypeVar

from .. import chunks
from ..errors import AgentError, StreamDisposed, StreamInterrupted
from .agent_error import agent_error
from .full_output import FullOutput, Status, Tripwire
from .object_result import ObjectOutcome, ObjectReducer
from .operator import Operator
from .steps import StepReducer, last_step_tripwire
from .tool_pairs import ToolPairReducer
from .usage import UsageReducer

if TYPE_CHECKING:
    from ..chunks import (
        AbortChunk,
        Chunk,
        ErrorChunk,
        FinishChunk,
        GoalChunk,
        StepFinishChunk,
        StepStartChunk,
        ToolCallApprovalChunk,
        ToolCallChunk,
        ToolCallInputStreamingEndChunk,
        ToolCallSuspendedChunk,
        TripwireChunk,
        UnknownChunk,
        WorkflowFinishChunk,
    )

R = TypeVar("R")


class RunReducer:
    """Reduces a run: a handler for each chunk type that matters, and the run's standing between the chunks.

    `feed` gives what readers are to see: the chunk, nothing (a call that is known already, a raw chunk nobody wants),
    or the chunk and one that follows from it (the call that streamed arguments make).
    """

    def __init__(
        self,
        *,
        include_raw: bool = False,
        objects: ObjectReducer | None = None,
        on_error: Callable[[], None] | None = None,
        on_tripwire: Callable[[], None] | None = None,
    ) -> None:
        self.parts = StepReducer()
        self.usage = UsageReducer()
        self.pairs = ToolPairReducer()
        self.objects = objects or ObjectReducer()
        self.status: Status = "running"
        self.failure: AgentError | None = None
        self.tripwire: Tripwire | None = None
        self.run_id: str | None = None
        self.trace_id: str | None = None
        self.finished = False
        self._in_turn = False
        self._was_suspended = False
        self._is_blocked = False
        self._turn_texts: list[str] = []
        self._turn_steps = 0
        self._reason: str | None = None
        self._warnings: list[Any] = []
        self._request: Mapping[str, Any] = {}
        self._response: Mapping[str, Any] = {}
        self._provider_metadata: Mapping[str, Any] | None = None
        self._suspension: Any = None
        self._on_error = on_error or _nothing
        self._on_tripwire = on_tripwire or _nothing
        self._include_raw = include_raw
        self._handlers = self._all_handlers()

    def feed(self, chunk: Chunk) -> Chunk | list[Chunk] | None:
        """Take a chunk; give what readers are to see of it."""
        if self.run_id is None:
            self._identify(chunk)
        handler = self._handlers.get(chunk.type)
        return chunk if handler is None else handler(chunk)

    def _identify(self, chunk: Chunk) -> None:
        self.run_id = chunk.run_id
        self.trace_id = self.trace_id or chunk.trace_id

    # ---- handlers ----------------------------------------------------------------------------------------------------

    def _all_handlers(self) -> dict[str, Callable[[Any], Any]]:
        own: dict[str, Callable[[Any], Any]] = {
            "start": self._start,
            "step-start": self._step_start,
            "tool-call-input-streaming-end": self._streaming_end,
            "tool-call": self._tool_call,
            "tool-call-approval": self._suspended,
            "tool-call-suspended": self._suspended,
            "step-finish": self._step_finish,
            "finish": self._finish,
            "error": self._failed,
            "abort": self._aborted,
            "tripwire": self._tripped,
            "goal": self._goal,
            "raw": self._raw,
            "unknown": self._misfit,
            "workflow-finish": self._workflow_end,
            "network-execution-event-finish": self._network_end,
        }
        passing = [self.parts.handlers(), self.pairs.handlers(), self.objects.handlers()]
        handlers: dict[str, Callable[[Any], Any]] = {}
        for kind in {kind for part in passing for kind in part}:
            several = [part[kind] for part in passing if kind in part]
            handlers[kind] = several[0] if kind in _RETURN_THE_CHUNK and len(several) == 1 else _passing(several)
        return {**handlers, **own}

    def _misfit(self, chunk: UnknownChunk) -> Chunk:
        """A chunk that does not fit its type ends the run all the same, if that is what the type says."""
        raw = chunk.raw
        ends: dict[str, Any] = {"finish": {}, "abort": {}, "tripwire": {}}
        ends["error"] = {"error": raw.get("error", raw.get("payload"))}
        kind = chunk.wire_type
        if kind in ends:
            self._handlers[kind](chunks.parse_chunk({"type": kind, "payload": ends[kind]}))
        return chunk

    def _start(self, chunk: Chunk) -> Chunk:
        self._in_turn = True
        self.usage.start()
        return chunk

    def _step_start(self, chunk: StepStartChunk) -> Chunk:
        self.parts.step_start(chunk)
        return self._start(chunk)

    def _streaming_end(self, chunk: ToolCallInputStreamingEndChunk) -> Chunk | list[Chunk]:
        made = self.parts.tool_calls.end(chunk)
        if isinstance(made, list):
            self.pairs.call(cast("ToolCallChunk", made[1]))
        return made

    def _tool_call(self, chunk: ToolCallChunk) -> Chunk | None:
        if self.parts.tool_calls.call(chunk) is None:
            return None
        self.usage.tool_call(chunk)
        self.pairs.call(chunk)
        return chunk

    def _suspended(self, chunk: ToolCallApprovalChunk | ToolCallSuspendedChunk) -> Chunk:
        self.status = "suspended"
        self._was_suspended = True
        self._suspension = chunk.payload
        self.pairs.call(cast("ToolCallApprovalChunk", chunk))
        return chunk

    def _step_finish(self, chunk: StepFinishChunk) -> Chunk:
        self.usage.step_finish(chunk)
        step = self.parts.step_finish(chunk)
        self._turn_steps += 1
        self._warnings = step.warnings
        self._request = step.request or self._request
        self.objects.step_finish(step.tripwire)
        return chunk

    def _finish(self, chunk: FinishChunk) -> Chunk:
        payload, metadata = chunk.payload, chunk.payload.metadata or {}
        reason = None if payload.step_result is None else payload.step_result.reason
        if self.status == "canceled":
            self._reason = "aborted"
        elif reason:
            self._reason = reason
        if self.status not in ("failed", "canceled"):
            self.status = "success"
        self._see_tripwire(chunk, reason)
        self._close_turn()
        self._response = {key: value for key, value in metadata.items() if key not in ("providerMetadata", "request")}
        self._provider_metadata = metadata.get("providerMetadata", payload.provider_metadata)
        self._suspension = None
        self.finished, self._in_turn = True, False
        totals = self.usage.finish(chunk)
        if payload.output is None:
            return chunk
        return chunk.__replace__(
            payload=payload.__replace__(output=payload.output.__replace__(usage=totals.as_totals()))
        )

    def _see_tripwire(self, chunk: FinishChunk, reason: str | None) -> None:
        if reason != "tripwire":
            return
        output = chunk.payload.output
        told = last_step_tripwire(None if output is None else output.steps)
        if told is None and self.status == "canceled":
            return  # an aborted run finishes with this reason too
        told = told or {}
        self.tripwire = Tripwire(
            told.get("reason") or "Processor tripwire triggered",
            told.get("retry"),
            told.get("metadata"),
            told.get("processorId"),
        )

    def _failed(self, chunk: ErrorChunk) -> Chunk:
        self.failure = agent_error(None if chunk.payload is None else chunk.payload.error)
        self.status = "failed"
        self._on_error()
        return chunk

    def _aborted(self, chunk: AbortChunk) -> Chunk:
        self.status = "canceled"
        return chunk

    def _tripped(self, chunk: TripwireChunk) -> Chunk:
        payload = chunk.payload
        self.tripwire = (
            Tripwire("Content blocked")
            if payload is None
            else Tripwire(payload.reason or "Content blocked", payload.retry, payload.metadata, payload.processor_id)
        )
        self._reason = "other"
        self._is_blocked = True
        self._on_tripwire()
        return chunk

    def _goal(self, chunk: GoalChunk) -> Chunk:
        self.parts.goal(chunk)
        if chunk.payload.should_continue is True:
            self.pairs.drop()
            self._turn_texts, self._turn_steps = [], 0
        return chunk

    def _raw(self, chunk: Chunk) -> Chunk | None:
        return chunk if self._include_raw else None

    def _workflow_end(self, chunk: WorkflowFinishChunk) -> Chunk:
        """The stream of a workflow is over (its own output is `WorkflowRunOutput`)."""
        self.finished, self._in_turn = True, False
        if self.status == "running" and chunk.payload.workflow_status in ("success", "failed", "suspended", "canceled"):
            self.status = cast("Status", chunk.payload.workflow_status)
        return chunk

    def _network_end(self, chunk: Chunk) -> Chunk:
        if self.status == "running":
            self.status = "success"
        self.finished, self._in_turn = True, False
        return chunk

    # ---- results -----------------------------------------------------------------------------------------------------

    def _close_turn(self) -> None:
        """Mastra's text of a turn: the last step's alone when tools were used, else all of it."""
        steps = self.parts.steps[-self._turn_steps :] if self._turn_steps else []
        tools = any(step.tool_calls or step.tool_results for step in steps)
        self._turn_texts.append(steps[-1].text if tools and not self._was_suspended else self.parts.text.of_turn)
        self.parts.text.close_turn()
        self._turn_steps, self._was_suspended = 0, False

    @property
    def text(self) -> str:
        """The text of all turns (D12); of a turn that is not over, all that came."""
        if self.status == "canceled" and not self.finished:
            self._close_turn()
        return "".join([*self._turn_texts, self.parts.text.of_turn])

    def object_outcome(self) -> ObjectOutcome:
        """The object, when nothing more comes."""
        text, reason = self.parts.text.of_step, self._reason
        if not text.strip():
            written = [step for step in self.parts.steps if step.text.strip()]
            text, reason = (written[-1].text, written[-1].finish_reason) if written else ("", None)
        return self.objects.outcome(text, reason)

    @property
    def is_over(self) -> bool:
        """Whether the run came to an end of its own: finished, aborted, tripped, suspended or failed."""
        if self._in_turn and self.status in ("success", "running"):
            return self.tripwire is not None
        return self.finished or self.tripwire is not None or self.status != "running"

    @property
    def finish_reason(self) -> str | None:
        if self.status == "canceled" and self._reason != "error":
            return "aborted"
        return "suspended" if self.status == "suspended" else self._reason

    def stop(self, error: Exception) -> None:
        """The stream ended before the run did."""
        if isinstance(error, StreamDisposed):
            self.status = "canceled"
        elif type(error) is not StreamInterrupted:  # a run that only breaks off stays `running`, as in Mastra
            self.status = "failed"

    def full(self, error: Exception | None) -> FullOutput[Any]:
        """Everything so far, with the object."""
        return self.result(error, object=self.object_outcome().value)

    def result(self, error: Exception | None = None, *, object: Any = None) -> FullOutput[Any]:
        """Everything so far, as one immutable value."""
        parts, usage = self.parts, self.usage.usage
        failed = error is not None or self.failure is not None
        return FullOutput(
            text="".join(step.text for step in parts.steps) + (parts.text.of_step if failed else ""),
            object=object,
            reasoning=parts.reasoning.text or "",
            reasoning_text=parts.reasoning.text,
            reasoning_parts=parts.reasoning.parts,
            tool_calls=parts.tool_calls.of_run,
            tool_results=parts.tool_results.of_run,
            tool_pairs=self.pairs.pairs,
            steps=parts.steps.copy(),
            usage=usage,
            total_usage=usage if self._is_blocked else usage.with_total,
            finish_reason=self.finish_reason,
            sources=parts.sources.of_run,
            files=parts.files.of_run,
            warnings=self._warnings,
            request=self._request,
            response=self._response,
            provider_metadata=self._provider_metadata,
            suspend_payload=self._suspension,
            resume_schema=getattr(self._suspension, "resume_schema", None),
            status=self.status,
            error=error if error is not None else self.failure,
            tripwire=self.tripwire,
            used_fallback_value=self.objects.used_fallback_value,
            run_id=self.run_id,
            trace_id=self.trace_id,
        )


_RETURN_THE_CHUNK = frozenset({"text-delta", "tool-call-input-streaming-start", "tool-call-delta"})
"""Handlers that say themselves what readers are to see."""


def _passing(handlers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    if len(handlers) == 1:
        only = handlers[0]

        def pass_one(chunk: Any) -> Any:
            only(chunk)
            return chunk

        return pass_one

    def pass_all(chunk: Any) -> Any:
        for handler in handlers:
            handler(chunk)
        return chunk

    return pass_all


def _nothing() -> None:
    pass


def text() -> Operator[str]:
    """The answer, when the run is complete: the last step's text when tools were used, else all; of all turns (D12).

        --text-delta("Let me see")--tool-call--step-finish--text-delta("21 degrees")--finish-|
        [                                      text()                                        ]
        --------------------------------------------------------------------------------------("21 degrees")-|

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> mx.as_view(mx.from_jsonl(mx.recording("tools")).pipe(ops.text())).run()
    'It is 21.5 degrees.'
    """
    return _reduced(lambda run: run.text)


def full_output() -> Operator[FullOutput[Any]]:
    """The whole run as one value, when it is complete; a run that failed gives it too, with `error` set.

        --start--text-delta--tool-call--tool-result--finish-|
        [                  full_output()                    ]
        ----------------------------------------------------(output)-|

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> full = mx.as_view(mx.from_jsonl(mx.recording("tools")).pipe(ops.full_output())).run()
    >>> full.text, full.usage.total_tokens
    ('It is 21.5 degrees.', 51)
    """
    return _reduced(lambda run: run.full(None))


def _reduced(result: Callable[[RunReducer], R]) -> Operator[R]:
    def apply(source: Observable[Chunk]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            run = RunReducer()

            def on_next(chunk: Chunk) -> None:
                try:
                    run.feed(chunk)
                except Exception as error:
                    observer.on_error(error)

            def complete() -> None:
                observer.on_next(result(run))
                observer.on_completed()

            return source.subscribe(on_next, observer.on_error, complete, scheduler=scheduler)

        return Observable(subscribe)

    return apply
