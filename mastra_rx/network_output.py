"""`NetworkRunOutput`: every view of a network's run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from . import operators as ops
from .operators.network import NetworkFullOutput, NetworkReducer, NetworkStatus, RoutingDecision
from .output import NestedOutput, outputs_of
from .run_output import Outcome, RunOutput, Settled
from .view import View

if TYPE_CHECKING:
    from .operators.usage import Usage
    from .sources.iterables import Chunks

V = TypeVar("V")


class NetworkRunOutput(RunOutput[NetworkFullOutput]):
    """Every view of a network's run, from one subscription to its source.

    `source` and `history` as for `MastraModelOutput`. Values settle when the stream ends; those of a run that failed
    raise `AgentError`.
    """

    def __init__(self, source: Chunks, *, history: int | None = None) -> None:
        self._run = NetworkReducer()
        super().__init__(source, self._run, history=history)

    @cached_property
    def decisions(self) -> View[RoutingDecision]:
        """What the routing agent chose, as it chose, and again when the chosen primitive is done."""
        return self._streamed("decisions", ops.routing_decisions())

    @cached_property
    def text_stream(self) -> View[str]:
        """What the routing agent answers by itself."""
        return self._streamed("text_stream", ops.routing_text())

    @cached_property
    def nested(self) -> View[NestedOutput]:
        """Each run of an agent inside the run, as an output of its own; `key` says where it runs."""
        return outputs_of(self._stream.pipe(ops.nested()), "nested")

    @cached_property
    def result(self) -> View[Any]:
        """The network's final answer."""
        return self._settled_value("result", lambda full: full.result)

    @cached_property
    def object(self) -> View[Any]:
        """The network's structured answer; None where none was asked for."""
        return self._settled_value("object", lambda full: full.object)

    @cached_property
    def usage(self) -> View[Usage]:
        """The usage of the routing agent and of all that it chose."""
        return self._settled_value("usage", lambda full: full.usage)

    @property
    def status(self) -> NetworkStatus:
        """`running`, `success`, `failed`, `canceled` or `suspended`, as of the chunk that readers get now."""
        return self._run.status

    @property
    def error(self) -> Exception | None:
        """Why the run failed, as soon as that is known."""
        return self._run.failure or (None if self._outcome is None else self._outcome.error)

    def _settled_value(self, name: str, project: Callable[[NetworkFullOutput], V]) -> View[V]:
        def get(outcome: Outcome[NetworkFullOutput]) -> V:
            error = outcome.error or self._run.failure
            if error is not None:
                raise error
            return project(outcome.full)

        return View(Settled(self, get), name)

    def __repr__(self) -> str:
        name = f" {self.run_id}" if self.run_id else ""
        return f"<NetworkRunOutput{name}: {self.status}, {self._stream.position} chunks>"
