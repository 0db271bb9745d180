"""Nested runs: agents and workflows that run inside a tool, a step, a task or a network.

What they let out comes wrapped in chunks of the outer run; here it is unwrapped, by one rule for all wrappings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from .. import chunks
from ..errors import ChunkDecodeError
from .groups import ChunkGroup, Grouping, grouping
from .operator import Operator

if TYPE_CHECKING:
    from ..chunks import Chunk

NestedKind = Literal["tool", "step", "task", "agent", "workflow"]


@dataclass(frozen=True, slots=True)
class NestedKey:
    """Where a nested run runs: parallel ones never have the same key."""

    kind: NestedKind
    """What it runs inside: a tool call, a workflow step, a background task, or a network's agent or workflow."""
    id: str | None
    """The tool call's, step's, task's, or run's id."""
    run_id: str | None = None
    """The nested run's own id, where it says one."""
    name: str | None = None
    """The tool's, step's or agent's name."""

    @property
    def tool_call_id(self) -> str | None:
        """The call it runs inside."""
        return self.id if self.kind == "tool" else None


@dataclass(frozen=True, slots=True)
class Inner:
    """A chunk of a nested run, and whose it is."""

    key: NestedKey
    chunk: Chunk


def inner_of(chunk: Chunk) -> Inner | None:
    """The chunk that `chunk` wraps; None where it wraps none."""
    unwrap = _WRAPPINGS.get(chunk.type)
    if unwrap is None:
        if "-execution-event-" not in chunk.type or not hasattr(chunk, "payload"):
            return None
        unwrap = _event
    try:
        return unwrap(chunk)
    except ChunkDecodeError:
        return None


def _tool_output(chunk: Any) -> Inner | None:
    payload = chunk.payload
    return _inner("tool", payload.tool_call_id, payload.tool_name, payload.output)


def _tool_call(chunk: Any) -> Inner | None:
    return _tool_output(chunk)


def _step_output(chunk: Any) -> Inner | None:
    payload = chunk.payload
    name = payload.step_name or getattr(payload, "step_id", None)
    return _inner("step", name, name, payload.output)


def _task_output(chunk: Any) -> Inner | None:
    payload = chunk.payload
    output = payload.payload
    if isinstance(output, dict) and cast("dict[str, Any]", output).get("type") == "tool-output":
        inner: Any = cast("dict[str, Any]", output).get("payload")
        output = cast("dict[str, Any]", inner).get("output") if isinstance(inner, dict) else None
    return _inner("task", payload.task_id, payload.tool_name, output)


def _event(chunk: Any) -> Inner | None:
    """A network's `agent-execution-event-*`. The run's id stands at the top or one level down, by server version."""
    who, _, kind = chunk.type.partition("-execution-event-")
    if who not in ("agent", "workflow"):
        return None
    inner: Any = chunk.payload
    if not isinstance(inner, dict):
        return None
    wire: dict[str, Any] = cast("dict[str, Any]", inner)
    wire = dict(wire) if isinstance(wire.get("type"), str) else {"type": kind, "payload": wire}
    wire.setdefault("runId", chunk.run_id)
    wire.setdefault("from", chunk.from_)
    run_id = wire["runId"] if isinstance(wire["runId"], str) else None
    return Inner(NestedKey(cast("NestedKind", who), run_id, run_id), chunks.chunk_of(wire))


def _inner(kind: NestedKind, id: str | None, name: str | None, output: Any) -> Inner | None:
    """A chunk has a type, and a payload or a sender; anything else is what a tool's writer wrote."""
    if not isinstance(output, dict):
        return None
    wire = cast("dict[str, Any]", output)
    if not isinstance(wire.get("type"), str) or not wire.keys() & {"payload", "from", "runId", "object", "data"}:
        return None
    run_id = wire.get("runId")
    return Inner(NestedKey(kind, id, run_id if isinstance(run_id, str) else None, name), chunks.chunk_of(wire))


_WRAPPINGS: dict[str, Callable[[Any], Inner | None]] = {
    "tool-output": _tool_output,
    "tool-call": _tool_call,
    "step-output": _step_output,
    "workflow-step-output": _step_output,
    "background-task-output": _task_output,
}


class NestedRuns:
    """Sorts the chunks of nested runs by run. A run that names itself late keeps the key it began with."""

    def __init__(self, put: Callable[[NestedKey, Chunk], None], close: Callable[[NestedKey], None]) -> None:
        self._put = put
        self._close = close
        self._keys: dict[tuple[str, str | None], dict[str | None, NestedKey]] = {}

    def __call__(self, chunk: Chunk) -> None:
        inner = inner_of(chunk)
        if inner is not None and self._is_of_a_run(inner):
            self._put(self._key(inner.key), inner.chunk)
        for place in _places_closed_by(chunk):
            for key in self._keys.pop(place, {}).values():
                self._close(key)

    def _is_of_a_run(self, inner: Inner) -> bool:
        """Data of its own that a tool writes begins no run; it belongs to the one that runs there, if any."""
        key = inner.key
        begins = key.run_id is not None or not inner.chunk.type.startswith("data-")
        return begins or bool(self._keys.get((key.kind, key.id)))

    def _key(self, key: NestedKey) -> NestedKey:
        runs = self._keys.setdefault((key.kind, key.id), {})
        if key.run_id is None and runs:
            return next(reversed(runs.values()))  # a chunk without a run belongs to the one that came last here
        known = runs.pop(key.run_id, None) or runs.pop(None, None) or key
        runs[key.run_id] = known  # at the end: it came last
        return known


def _places_closed_by(chunk: Any) -> list[tuple[str, str | None]]:
    """The places in which nothing runs any more after this chunk."""
    kind = chunk.type
    if kind in ("tool-result", "tool-error", "tool-output-denied"):
        return [("tool", chunk.payload.tool_call_id)]
    if kind in ("background-task-completed", "background-task-failed", "background-task-cancelled"):
        return [("task", chunk.payload.task_id)]
    if kind == "workflow-step-result":
        return [("step", name) for name in {chunk.payload.id, chunk.payload.step_name}]
    if kind in ("agent-execution-end", "workflow-execution-end"):
        return [(kind.partition("-")[0], chunk.payload.run_id)]
    return []


def nested(tool_call_id: str | None = None, agent_id: str | None = None) -> Operator[ChunkGroup]:
    """Each run inside the run, as a live stream of its own chunks; `key` is a `NestedKey`.

        --tool-output(c1, a)--tool-output(c2, x)--tool-output(c1, b)--tool-result(c1)-|
        [                                  nested()                                   ]
        --(c1)----------------(c2)-----------------------------------------------------|
           --a-------------------------------------b----------------|

    Inside tools, workflow steps, background tasks and networks. Apply it again to an inner stream for the runs inside
    that. `tool_call_id` keeps the runs inside one call, `agent_id` those of one agent (the tool `agent-NAME` counts as
    the agent NAME).
    """

    def feeding(groups: Grouping) -> Callable[[Chunk], Any]:
        named: set[NestedKey] = set()

        def wanted(key: NestedKey, chunk: Any) -> bool:
            if tool_call_id is not None and key.tool_call_id != tool_call_id:
                return False
            if agent_id is None or key.name in (agent_id, f"agent-{agent_id}"):
                return True
            if chunk.type == "start" and chunk.payload is not None and chunk.payload.id == agent_id:
                named.add(key)  # inside a step or a network the agent says itself who it is
            return key in named

        def put(key: NestedKey, chunk: Chunk) -> None:
            if wanted(key, chunk):
                groups.put(key, chunk)

        return NestedRuns(put, groups.close)

    return grouping("nested run", feeding)
