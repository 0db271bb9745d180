"""Networks: what the routing agent chose, and what the run came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ..errors import AgentError, StreamDisposed, StreamInterrupted
from .agent_error import agent_error
from .operator import Emit, Operator, PassingReducer, operator
from .usage import Usage

if TYPE_CHECKING:
    from ..chunks import Chunk

NetworkStatus = Literal["running", "success", "failed", "canceled", "suspended"]


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """What the routing agent chose for one iteration, and what came of it."""

    iteration: int | None
    primitive_type: str | None
    """`agent`, `workflow`, `tool`, or `none` where it answered by itself."""
    primitive_id: str | None
    prompt: str | None
    reason: str | None
    """Why it chose so."""
    result: Any = None
    """What the primitive gave; None while it runs."""
    is_done: bool = False
    usage: Usage = field(default_factory=Usage)
    """What the choice itself used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFullOutput:
    """Everything a run of a network came to."""

    status: NetworkStatus = "running"
    result: Any = None
    object: Any = None
    text: str = ""
    """What the routing agent answered by itself."""
    decisions: list[RoutingDecision] = field(default_factory=list[RoutingDecision])
    usage: Usage = field(default_factory=Usage)
    completion_reason: str | None = None
    error: Exception | None = None
    run_id: str | None = None


class NetworkReducer(PassingReducer):
    """Follows a run. `decided`, if given, is called with each decision, and again when it is done."""

    def __init__(self, decided: Emit[RoutingDecision] | None = None) -> None:
        self._decided = decided
        self.decisions: list[RoutingDecision] = []
        self.status: NetworkStatus = "running"
        self.failure: AgentError | None = None
        self.is_over = False
        self._pieces: list[str] = []
        self._result: Any = None
        self._object: Any = None
        self._usage: Usage | None = None
        self._completion_reason: str | None = None
        super().__init__()

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        executed = ("agent-execution-end", "workflow-execution-end", "tool-execution-end")
        suspended = ("agent-execution-suspended", "workflow-execution-suspended", "tool-execution-suspended")
        approvals = ("agent-execution-approval", "tool-execution-approval")
        return {
            "routing-agent-end": self._routed,
            "routing-agent-text-delta": self._text,
            **dict.fromkeys(executed, self._executed),
            **dict.fromkeys((*suspended, *approvals), self._suspended),
            "network-object": self._grown,
            "network-object-result": self._grown,
            "network-execution-event-finish": self._finish,
            "abort": self._aborted,
            "routing-agent-abort": self._aborted,
            "error": self._failed,
        }

    def _routed(self, chunk: Any) -> None:
        payload = chunk.payload
        by_itself = payload.primitive_type in (None, "none")
        decision = RoutingDecision(
            payload.iteration,
            payload.primitive_type,
            payload.primitive_id,
            payload.prompt,
            payload.selection_reason,
            payload.result if by_itself else None,
            by_itself,
            Usage.of(payload.usage),
        )
        self.decisions.append(decision)
        self._say(decision)

    def _executed(self, chunk: Any) -> None:
        if self.decisions and not self.decisions[-1].is_done:
            self.decisions[-1] = replace(self.decisions[-1], result=chunk.payload.result, is_done=True)
            self._say(self.decisions[-1])

    def _say(self, decision: RoutingDecision) -> None:
        if self._decided is not None:
            self._decided(decision)

    def _text(self, chunk: Any) -> None:
        self._pieces.append(chunk.payload.text)

    def _grown(self, chunk: Any) -> None:
        self._object = chunk.payload.object

    def _finish(self, chunk: Any) -> None:
        payload = chunk.payload
        self._result, self._completion_reason = payload.result, payload.completion_reason
        self._object = payload.object if payload.object is not None else self._object
        self._usage = Usage.of(payload.usage)
        self.is_over = True
        if self.status in ("running", "suspended"):
            self.status = "success"

    def _suspended(self, _: Chunk) -> None:
        self.status = "suspended"
        self.is_over = True

    def _aborted(self, _: Chunk) -> None:
        self.status = "canceled"
        self.is_over = True

    def _failed(self, chunk: Any) -> None:
        self.status = "failed"
        self.is_over = True
        self.failure = agent_error(None if chunk.payload is None else chunk.payload.error)

    def stop(self, error: Exception) -> None:
        """The stream ended before the run did."""
        if isinstance(error, StreamDisposed):
            self.status = "canceled"
        elif type(error) is not StreamInterrupted:
            self.status = "failed"

    def full(self, error: Exception | None) -> NetworkFullOutput:
        """Everything so far, as one immutable value."""
        usage = self._usage
        if usage is None:
            usage = sum((decision.usage for decision in self.decisions), Usage())
        return NetworkFullOutput(
            status=self.status,
            result=self._result,
            object=self._object,
            text="".join(self._pieces),
            decisions=self.decisions.copy(),
            usage=usage,
            completion_reason=self._completion_reason,
            error=error or self.failure,
            run_id=self.run_id,
        )


def routing_decisions() -> Operator[RoutingDecision]:
    """What a network's routing agent chose, as it chose, and again when the chosen primitive is done.

    --routing-agent-end(a)--agent-execution-end(a)--network-...-finish-|
    [                     routing_decisions()                         ]
    --(a)-------------------(a, done)----------------------------------|
    """

    def feeding(emit: Emit[RoutingDecision]) -> Callable[[Chunk], Any]:
        return NetworkReducer(emit).feed

    return operator(feeding)
