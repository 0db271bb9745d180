"""The usage tree: who used what, in the run and in the runs inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from .nested import NestedKey, NestedRuns
from .operator import Emit, Operator, operator
from .usage import Usage

if TYPE_CHECKING:
    from ..chunks import Chunk


@dataclass(frozen=True, slots=True)
class StepUsage:
    """What one step used."""

    usage: Usage
    model_id: str | None = None


@dataclass(frozen=True, slots=True)
class UsageNode:
    """What a run used by itself, and the runs inside it."""

    key: NestedKey | None
    """Where it runs; None for the outermost run."""
    agent: str | None
    """The agent's or workflow's id, where it said one."""
    steps: tuple[StepUsage, ...] = ()
    rest: Usage = field(default_factory=Usage)
    """What was reported for the run, but for none of its steps."""
    nested: tuple[UsageNode, ...] = ()

    @property
    def own(self) -> Usage:
        """Without the runs inside."""
        return _sum([*(step.usage for step in self.steps), self.rest])

    @property
    def total(self) -> Usage:
        """With the runs inside; nothing is counted twice."""
        return _sum([self.own, *(node.total for node in self.nested)])

    @property
    def by_model(self) -> dict[str | None, Usage]:
        """The total by model."""
        sums: dict[str | None, Usage] = {}
        for node in self.walk():
            for step in node.steps:
                sums[step.model_id] = sums.get(step.model_id, Usage()) + step.usage
            if node.rest != Usage():
                sums[None] = sums.get(None, Usage()) + node.rest
        return sums

    @property
    def by_agent(self) -> dict[str | None, Usage]:
        """The total by agent."""
        sums: dict[str | None, Usage] = {}
        for node in self.walk():
            sums[node.agent] = sums.get(node.agent, Usage()) + node.own
        return sums

    @property
    def by_task(self) -> dict[str | None, Usage]:
        """What background tasks used, by task id, with the runs inside."""
        tasks = [node for node in self.walk() if node.key is not None and node.key.kind == "task"]
        return {cast("NestedKey", node.key).id: node.total for node in tasks}

    def walk(self) -> Iterator[UsageNode]:
        """This run and all inside, the outer ones first."""
        yield self
        for node in self.nested:
            yield from node.walk()

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        name = self.agent or ("run" if self.key is None else self.key.name or self.key.id or self.key.kind)
        own, total = self.own.with_total.total_tokens, self.total.with_total.total_tokens
        yield f"{indent}{name}: {own:,} tokens" + (f" ({total:,} with nested runs)" if self.nested else "")
        for node in self.nested:
            yield from node._lines(indent + "  ")


def _sum(usages: list[Usage]) -> Usage:
    return reduce(lambda one, other: one + other, usages, Usage())


class UsageTreeReducer:
    """Sums a run's steps, and keeps a reducer for each run inside it."""

    def __init__(self, key: NestedKey | None = None) -> None:
        self._key = key
        self._agent: str | None = None
        self._steps: list[StepUsage] = []
        self._turn = Usage()
        self._turn_is_over = False
        self._rest = Usage()
        self._told = Usage()
        self._inside: dict[NestedKey, UsageTreeReducer] = {}
        self._nested = NestedRuns(self._put, lambda _: None)

    def __call__(self, chunk: Chunk) -> None:
        handler = self._HANDLERS.get(chunk.type)
        if handler is not None:
            handler(self, chunk)
        self._nested(chunk)

    def _put(self, key: NestedKey, chunk: Chunk) -> None:
        inside = self._inside.get(key)
        if inside is None:
            inside = self._inside[key] = UsageTreeReducer(key)
        inside(chunk)

    def _begin(self) -> None:
        if self._turn_is_over:
            self._turn, self._turn_is_over = Usage(), False

    def _start(self, chunk: Any) -> None:
        self._begin()
        if self._agent is None and chunk.payload is not None:
            self._agent = getattr(chunk.payload, "id", None) or getattr(chunk.payload, "workflow_id", None)

    def _step_finish(self, chunk: Any) -> None:
        payload = chunk.payload
        usage = Usage.of(None if payload.output is None else payload.output.usage)
        metadata: dict[str, Any] = payload.metadata or {}
        self._begin()
        self._turn += usage
        self._steps.append(StepUsage(usage, metadata.get("modelId") or metadata.get("model")))

    def _finished(self, chunk: Any) -> None:
        """Counts for what no step of the turn reported; a second end of the same turn adds nothing."""
        if self._turn_is_over:
            return
        self._turn_is_over = True
        payload = chunk.payload
        told = Usage.of(payload.extra.get("usage") or (None if payload.output is None else payload.output.usage))
        self._rest += told.but_for(self._turn)

    def _routed(self, chunk: Any) -> None:
        """A routing agent has no steps of its own: it reports once for each decision."""
        self._steps.append(StepUsage(Usage.of(chunk.payload.usage)))

    def _executed(self, chunk: Any) -> None:
        """What an agent of a network used, told again at its end; counts only if its own chunks did not tell."""
        payload = chunk.payload
        inside = next((inside for key, inside in self._inside.items() if key.run_id == payload.run_id), None)
        if inside is None:  # nothing was streamed of it
            key = NestedKey(chunk.type.partition("-")[0], payload.run_id, payload.run_id)
            inside = self._inside[key] = UsageTreeReducer(key)
        inside._told = Usage.of(payload.usage)
        inside._agent = inside._agent or payload.agent_id or payload.workflow_id

    _HANDLERS: dict[str, Callable[[UsageTreeReducer, Any], None]] = {  # noqa: RUF012  # methods, not state
        "start": _start,
        "workflow-start": _start,
        "step-finish": _step_finish,
        "finish": _finished,
        "routing-agent-end": _routed,
        "agent-execution-end": _executed,
        "workflow-execution-end": _executed,
    }

    @property
    def node(self) -> UsageNode:
        """The tree so far."""
        nested = tuple(inside.node for inside in self._inside.values())
        rest = self._rest
        inside = [self._rest, *(step.usage for step in self._steps), *(node.total for node in nested)]
        if _sum(inside) == Usage():
            rest = self._told  # else what an outer end tells again is counted already
        agent = self._agent or (None if self._key is None else _agent_of(self._key))
        return UsageNode(self._key, agent, tuple(self._steps), rest, nested)


def _agent_of(key: NestedKey) -> str | None:
    return None if key.name is None else key.name.removeprefix("agent-")


def usage_tree() -> Operator[UsageNode]:
    """Who used what, when the run is complete: by step, nested run, agent, model and task; nothing counted twice.

    --step-finish(15)--tool-output(step-finish(7))--step-finish(36)--finish-|
    [                             usage_tree()                              ]
    ------------------------------------------------------------------------(own 51, total 58)-|
    """

    def feeding(emit: Emit[UsageNode]) -> Callable[[Chunk], Any]:
        return _TreeFeed(emit)

    return operator(feeding, at_end=lambda feed: feed.end)


class _TreeFeed(UsageTreeReducer):
    def __init__(self, emit: Emit[UsageNode]) -> None:
        super().__init__()
        self._emit = emit

    def end(self) -> None:
        self._emit(self.node)
