"""From chunks to a plain model: lanes with spans and marbles, and marks over all lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from ..chunks import parse_chunk, to_wire
from ..chunks.vocabulary import TYPES
from ..errors import ChunkDecodeError
from ..operators.run import RunReducer
from ..operators.tool_runs import RunState, ToolRun, ToolRunReducer
from .words import Wired, brief, cut, error_message, payload_of, text_of

if TYPE_CHECKING:
    from ..chunks import Chunk

Chunks = Iterable["Chunk | Mapping[str, Any] | str | bytes"]

Tone = Literal[
    "step",
    "text",
    "reasoning",
    "object",
    "args",
    "run",
    "wait",
    "background",
    "result",
    "denied",
    "error",
    "source",
    "agent",
    "data",
    "usage",
    "other",
]
"""What something is; the picture gives each tone its colour."""

MAX_LANES = 40
"""Beyond, calls of one tool (and agents, tasks, steps of one name) share a lane."""

MAX_IN_ALL = 100
"""Beyond, inner runs are shown in the lane of what they run in."""

MAX_DEPTH = 12
"""Beyond, chunks of inner runs are marbles."""


@dataclass(slots=True)
class Span:
    """From one chunk to another."""

    tone: Tone
    first: int
    last: int
    label: str = ""
    """What stands in it or beside it."""
    title: str = ""
    is_open: bool = True
    """Nothing said that it is over."""


@dataclass(slots=True)
class Marble:
    """A single chunk."""

    tone: Tone
    at: int


@dataclass(slots=True)
class Lane:
    """A row: what belongs together, in time."""

    name: str
    tone: Tone
    depth: int = 0
    spans: list[Span] = field(default_factory=list[Span])
    marbles: list[Marble] = field(default_factory=list[Marble])
    children: list[Lane] = field(default_factory=list["Lane"])
    shared_by: int = 1

    def all(self) -> list[Lane]:
        """This lane and those below it, from top to bottom."""
        lanes: list[Lane] = []
        waiting: list[Lane] = [self]
        while waiting:
            lane = waiting.pop()
            lanes.append(lane)
            waiting.extend(reversed(lane.children))
        return lanes


@dataclass(slots=True)
class Mark:
    """What concerns the whole run: a line over all lanes."""

    tone: Tone
    at: int
    label: str


@dataclass(slots=True)
class Timeline:
    """A run, ready to be laid out."""

    chunks: list[Wired]
    lanes: list[Lane]
    marks: list[Mark]
    tone: Tone
    """How it ended: `result`, `wait`, `error`, or `other` where it is not over."""
    ending: str
    counts: str


def timeline_of(chunks: Chunks) -> Timeline:
    """The model of a run; takes time in proportion to the number of chunks."""
    wired: list[Wired] = []
    run = RunReducer(include_raw=True)
    lanes = RunLanes()
    for at, (chunk, wire) in enumerate(map(both, chunks)):
        wired.append(wire)
        run.feed(chunk)
        lanes.feed(at, chunk, wire)
    lanes.end(len(wired) - 1)
    tone, ending = _ending(run)
    counts = [
        _tokens(run, wired),
        _counted(len(run.parts.steps), "step"),
        _counted(len(run.pairs.pairs), "tool call"),
        _counted(len(wired), "chunk") or "no chunks",
    ]
    return Timeline(wired, lanes.lanes(), lanes.marks, tone, ending, " · ".join(part for part in counts if part))


def both(item: Chunk | Mapping[str, Any] | str | bytes) -> tuple[Chunk, Wired]:
    """A chunk, typed and as it stands on the wire."""
    chunk = parse_chunk(cast("Any", item)) if isinstance(item, Mapping | str | bytes) else item
    try:
        wire = to_wire(chunk)
    except RecursionError:
        wire = {"type": chunk.type, "payload": "(nested too deep to be shown)"}
    return chunk, cast("Wired", wire)


def _ending(run: RunReducer) -> tuple[Tone, str]:
    reason = cut(run.finish_reason or "", 40)
    if run.failure is not None:
        return "error", f"failed: {cut(str(run.failure), 90)}"
    if run.tripwire is not None:
        return "error", f"blocked: {cut(run.tripwire.reason, 90)}"
    if run.status == "canceled":
        return "wait", "aborted"
    if run.status == "suspended":
        return "wait", "suspended"
    if run.finished:
        good = reason in ("stop", "tool-calls", "")
        return ("result" if good else "wait"), f"finished: {reason}" if reason else "finished"
    return "other", "not finished"


def _tokens(run: RunReducer, chunks: list[Wired]) -> str:
    usage = run.usage.usage
    total, parts = usage.with_total.total_tokens, (usage.input_tokens, usage.output_tokens)
    if not total and chunks:
        told = payload_of(chunks[-1])
        output = told.get("output")
        wire = told.get("usage") or (cast("dict[str, Any]", output).get("usage") if isinstance(output, dict) else None)
        return _token_count(wire)
    if not total:
        return ""
    names = zip(("in", "out"), parts, strict=True)
    known = ", ".join(f"{count:,} {name}" for name, count in names if count is not None)
    return f"{total:,} tokens" + (f" ({known})" if known else "")


def _token_count(usage: Any) -> str:
    total = cast("dict[str, Any]", usage).get("totalTokens") if isinstance(usage, dict) else None
    return f"{total:,} tokens" if isinstance(total, int | float) and total and not isinstance(total, bool) else ""


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}" if count else ""


def _folded(lanes: list[Lane], limit: int) -> list[Lane]:
    """At most about `limit` lanes: beyond, lanes of one name are one, and the rarest names share the last."""
    for lane in lanes:
        lane.children = _folded(lane.children, 12)
    if len(lanes) <= limit:
        return lanes
    by_name: dict[str, Lane] = {}
    for lane in lanes:
        name = lane.name if lane.name in by_name or len(by_name) < limit - 1 else "more"
        known = by_name.get(name)
        if known is None:
            by_name[name] = lane
            lane.name = name
        else:
            known.spans += lane.spans
            known.marbles += lane.marbles
            known.children += lane.children
            known.shared_by += 1
    for lane in by_name.values():
        lane.spans.sort(key=lambda span: span.first)
        lane.marbles.sort(key=lambda marble: marble.at)
        lane.children = _folded(lane.children, 12)
    return list(by_name.values())


def _flattened(lanes: list[Lane]) -> list[Lane]:
    """All lanes from top to bottom; inner ones only where there is room for all."""
    every = [lane for top in lanes for lane in top.all()]
    if len(every) <= MAX_IN_ALL:
        return every
    for lane in lanes:
        for inner in lane.all()[1:]:
            lane.marbles += inner.marbles
        lane.marbles.sort(key=lambda marble: marble.at)
    return lanes


_SEGMENT: dict[RunState, Tone] = {
    "input-streaming": "args",
    "input-available": "run",
    "approval-requested": "wait",
    "suspended": "wait",
    "background": "background",
}
_OUTCOME: dict[RunState, Tone] = {
    "output-available": "result",
    "output-error": "error",
    "output-denied": "denied",
    "unresolved": "other",
}
_SEGMENT_TITLE = {
    "args": "arguments streaming",
    "run": "running",
    "wait": "waiting",
    "background": "in the background",
}


class _Stages:
    """A lane of something that goes through stages: a tool call, a task, a step of a workflow."""

    def __init__(self, lane: Lane, name: str) -> None:
        self.lane = lane
        self.name = name
        self.stage: str | None = None
        self._span: Span | None = None

    def enter(self, at: int, stage: str, tone: Tone, detail: str = "") -> None:
        """A new stage begins, and the one before ends."""
        self.leave(at)
        self.stage = stage
        title = f"{self.name}: {_SEGMENT_TITLE.get(tone, stage)}" + (f"\n{detail}" if detail else "")
        self._span = Span(tone, at, at, title=title)
        self.lane.spans.append(self._span)

    def leave(self, at: int) -> None:
        if self._span is not None:
            self._span.last, self._span.is_open = at, False
            self._span = None

    def settle(self, at: int, stage: str, tone: Tone, label: str) -> None:
        """It is over."""
        self.stage = stage
        span = self._span
        self.leave(at)
        if span is None:
            span = Span(tone, at, at, title=self.name, is_open=False)
            self.lane.spans.append(span)
        span.label = label
        self.lane.marbles.append(Marble(tone, at))

    def until(self, at: int) -> None:
        """It goes on until the last chunk."""
        if self._span is not None:
            self._span.last = at


class RunLanes:
    """The lanes of one run. An inner run has one lane for its steps, text and reasoning, below what it runs in."""

    def __init__(self, inner: Lane | None = None) -> None:
        self.marks: list[Mark] = []
        self._inner = inner
        self._topics: dict[str, Lane] = {}
        self._calls: dict[str, _Stages] = {}
        self._call_lanes: list[Lane] = []
        self._tasks: dict[str, _Stages] = {}
        self._parts: dict[str, _Stages] = {}
        self._more: list[Lane] = []
        self._blocks: dict[tuple[str, str], tuple[Span, list[str]]] = {}
        self._runs: dict[tuple[int, str], RunLanes] = {}
        self._step: Span | None = None
        self._steps = 0
        self._at = 0
        self._executing = ""
        self._names = False
        self._tools = ToolRunReducer(self._tool_changed)
        self._tool_handlers = self._tools.handlers()
        self._tool_handlers.pop("tool-output")  # shown as an inner run
        self._handlers: dict[str, Callable[[str, dict[str, Any], Wired], None]] = {
            **dict.fromkeys(("text-start", "reasoning-start"), self._block_start),
            **dict.fromkeys(("text-delta", "reasoning-delta"), self._block_delta),
            **dict.fromkeys(("text-end", "reasoning-end"), self._block_end),
            **dict.fromkeys(("reasoning-signature", "redacted-reasoning"), self._reasoning),
            **dict.fromkeys(("object", "object-result", "network-object", "network-object-result"), self._object),
            **dict.fromkeys(("source", "file", "reasoning-file"), self._source),
            **dict.fromkeys(("error", "abort", "tripwire", "history-gap"), self._trouble),
            **dict.fromkeys(("tool-output",), self._tool_output),
            **dict.fromkeys(("workflow-step-output", "step-output"), self._part_output),
            "start": self._start,
            "step-start": self._step_start,
            "step-finish": self._step_finish,
            "finish": self._finish,
            "workflow-finish": self._finish,
            "network-execution-event-finish": self._finish,
            "routing-agent-text-delta": self._routing_text,
        }

    # ---- the public side ---------------------------------------------------------------------------------------------

    def feed(self, at: int, chunk: Chunk, wire: Wired) -> None:
        """Take the chunk at index `at`."""
        self._at = at
        kind = str(wire.get("type"))
        payload = payload_of(wire)
        tool = self._tool_handlers.get(chunk.type)
        if tool is not None:
            tool(chunk)
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(kind, payload, wire)
        elif kind.startswith("tool-call") or (tool is not None and not kind.startswith("background")):
            self._tool_chunk(kind, payload, wire)
        elif kind.startswith("background-task-"):
            self._task(kind.removeprefix("background-task-"), payload, wire)
        elif kind.startswith("workflow-step-"):
            self._part(kind.removeprefix("workflow-step-"), payload, wire)
        elif "-execution-" in kind and not kind.startswith("network"):
            self._execution(kind, payload, wire)
        elif kind.startswith("data-"):
            self._marble("Data", "data")
        elif kind.startswith("workflow-"):
            self._marble("Workflow", "step")
        elif kind.startswith(("routing-agent", "network")):
            self._marble("Routing", "agent")
        else:
            self._marble("Other", "other")

    def end(self, at: int) -> None:
        """Nothing more has come: what is open goes on until the last chunk."""
        if self._step is not None:
            self._step.last = at
        for stages in (*self._calls.values(), *self._tasks.values(), *self._parts.values()):
            stages.until(at)
        for run in self._runs.values():
            run.end(at)

    def lanes(self) -> list[Lane]:
        """All lanes, from top to bottom."""
        order = ("Workflow", "Steps", "Reasoning", "Text", "Object")
        last = ("Routing", "Sources, files", "Data", "Other", "Usage")
        first = [self._topics[name] for name in order if name in self._topics]
        rest = [self._topics[name] for name in last if name in self._topics]
        middle = _folded([*self._call_lanes, *self._more], MAX_LANES)
        return _flattened([*first, *middle, *rest])

    # ---- text, reasoning, objects ------------------------------------------------------------------------------------

    def _block_start(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        topic = kind.partition("-")[0]
        key = (topic, str(payload.get("id")))
        span = Span(cast("Tone", topic), self._at, self._at)
        self._lane(topic.capitalize(), span.tone).spans.append(span)
        self._blocks[key] = (span, [])

    def _block_delta(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        topic = kind.partition("-")[0]
        key = (topic, str(payload.get("id")))
        if key not in self._blocks:
            self._block_start(kind, payload, wire)
        span, pieces = self._blocks[key]
        span.last = self._at
        if len(span.label) < 200:
            pieces.append(text_of(payload, "text"))
            span.label = "".join(pieces)
            span.title = f"{topic}: {cut(span.label, 160)}"
        self._marble(topic.capitalize(), span.tone)

    def _block_end(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        topic = kind.partition("-")[0]
        block = self._blocks.pop((topic, str(payload.get("id"))), None)
        if block is None:
            self._marble(topic.capitalize(), cast("Tone", topic))
        else:
            block[0].last, block[0].is_open = self._at, False

    def _reasoning(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        self._marble("Reasoning", "reasoning")

    def _routing_text(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        self._marble("Text", "text")

    def _object(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        lane = self._lane("Object", "object")
        if not lane.spans or not lane.spans[-1].is_open:
            lane.spans.append(Span("object", self._at, self._at, title="object"))
        span = lane.spans[-1]
        span.last = self._at
        if kind.endswith("result"):
            span.is_open = False
            span.label = brief(payload.get("object") if "object" in payload else wire.get("object"))
        self._marble("Object", "object")

    def _source(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        lane = self._lane("Sources, files", "source")
        label = text_of(payload, "title", "url", "filename", "mimeType", "id") or kind
        lane.spans.append(Span("source", self._at, self._at, label, f"{kind}: {cut(label, 160)}", is_open=False))
        self._marble("Sources, files", "source")

    # ---- steps, beginning and end ------------------------------------------------------------------------------------

    def _start(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        if self._inner is not None and not self._names:
            self._names = True
            self._inner.name = cut(text_of(payload, "id"), 60) or self._inner.name
        if self._inner is None:
            self._marble("Steps", "step")
        else:
            self._marble("", "agent")

    def _step_start(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        if self._step is not None:
            self._step.last = max(self._step.first, self._at - 1)
        self._steps += 1
        self._step = Span("step", self._at, self._at, f"{self._steps}", f"step {self._steps}")
        if self._inner is None:
            self._lane("Steps", "step").spans.append(self._step)
        else:
            self._marble("", "agent")

    def _step_finish(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        if self._inner is not None:
            self._marble("", "agent")
            return
        if self._step is None:
            self._step_start(kind, payload, wire)
        step = self._step
        assert step is not None
        reason = _reason(payload)
        step.last, step.is_open = self._at, False
        step.label = f"{self._steps} · {reason}" if reason else f"{self._steps}"
        step.title = f"step {self._steps}" + (f": {reason}" if reason else "")
        self._step = None
        self._usage(payload)

    def _finish(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        reason = _reason(payload) or text_of(payload, "workflowStatus", "completionReason")
        if self._inner is not None:
            self._marble("", "error" if reason == "error" else "agent")
            return
        if self._step is not None:
            self._step.last = max(self._step.first, self._at - 1)
            self._step = None
        tone: Tone = "error" if reason in ("error", "failed", "tripwire") else "result"
        self.marks.append(Mark(tone, self._at, f"finish: {cut(reason, 40)}" if reason else "finish"))
        self._usage(payload)

    def _usage(self, payload: dict[str, Any]) -> None:
        output = payload.get("output")
        usage = payload.get("usage") or (
            cast("dict[str, Any]", output).get("usage") if isinstance(output, dict) else None
        )
        label = _token_count(usage)
        self._lane("Usage", "usage")
        self._topics["Usage"].spans.append(
            Span("usage", self._at, self._at, label, f"usage: {brief(usage) if usage else 'unknown'}", is_open=False)
        )
        self._marble("Usage", "usage")

    def _trouble(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        told = error_message(payload.get("error")) if kind == "error" else text_of(payload, "reason")
        if kind == "history-gap":
            told = f"{wire.get('missed')} chunks are not kept"
        label = f"{kind}: {cut(told, 60)}" if told else kind
        tone: Tone = "wait" if kind in ("abort", "history-gap") else "error"
        if self._inner is None:
            self.marks.append(Mark(tone, self._at, label))
        else:
            self._marble("", tone)

    # ---- tools -------------------------------------------------------------------------------------------------------

    def _tool_changed(self, run: ToolRun) -> None:
        call = self._call(run.tool_call_id, run.tool_name)
        if run.state == call.stage:
            return
        tone = _SEGMENT.get(run.state)
        if tone is not None:
            call.enter(self._at, run.state, tone, "" if run.state == "input-streaming" else brief(run.args))
            return
        label = f"→ {brief(run.result)}"
        if run.state != "output-available":
            label = f"{_OUTCOME_WORD[run.state]}{'' if run.error is None else f': {cut(str(run.error), 120)}'}"
        call.settle(self._at, run.state, _OUTCOME[run.state], label)

    def _call(self, call_id: str, name: str | None) -> _Stages:
        call = self._calls.get(call_id)
        if call is None:
            shown = cut(name or call_id, 60)
            lane = _below(self._inner, self._call_lanes, shown, "run")
            call = self._calls[call_id] = _Stages(lane, shown)
        elif name and call.name == cut(call_id, 60):
            call.name = call.lane.name = cut(name, 60)
        return call

    def _tool_chunk(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        call_id = text_of(payload, "toolCallId")
        if not call_id:
            self._marble("Other", "other")
            return
        call = self._call(call_id, text_of(payload, "toolName") or None)
        if kind in ("tool-call-approval", "tool-call-suspended"):
            if self._inner is None:
                word = "approval" if kind.endswith("approval") else "suspended"
                self.marks.append(Mark("wait", self._at, f"{word}: {cut(call.name, 40)}"))
            call.lane.marbles.append(Marble("wait", self._at))
        elif not call.lane.marbles or call.lane.marbles[-1].at != self._at:
            streams = kind in ("tool-call-delta", "tool-call-input-streaming-start", "tool-call-input-streaming-end")
            call.lane.marbles.append(Marble("args" if streams else "run", self._at))

    def _tool_output(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        call_id = text_of(payload, "toolCallId")
        parent = (
            self._call(call_id, text_of(payload, "toolName") or None).lane if call_id else self._lane("Other", "other")
        )
        self._within(parent, payload.get("output"), text_of(payload, "toolName").removeprefix("agent-"))

    # ---- inner runs --------------------------------------------------------------------------------------------------

    def _within(self, parent: Lane, inner: Any, name: str) -> None:
        """What came out of something that runs: a chunk of an inner run, or what a writer wrote."""
        if not _is_chunk(inner) or parent.depth >= MAX_DEPTH:
            parent.marbles.append(Marble("data", self._at))
            return
        wire = cast("dict[str, Any]", inner)
        try:
            chunk = parse_chunk(wire)
        except ChunkDecodeError:
            parent.marbles.append(Marble("data", self._at))
            return
        key = (id(parent), str(wire.get("runId")))
        run = self._runs.get(key)
        if run is None:
            lane = _below(parent, [], cut(name, 60) or "agent", "agent")
            run = self._runs[key] = RunLanes(lane)
        run.feed(self._at, chunk, wire)

    def _execution(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        """What a network runs: `agent-execution-start`, `agent-execution-event-text-delta`, ..."""
        what, _, event = kind.partition("-execution-")
        if event.startswith("event-"):
            key = text_of(payload, "runId") or what
            kind_inside = text_of(payload, "type") or event.removeprefix("event-")
            parent = self._parts.get(f"{what}:{self._executing}") or self._stages(self._parts, f"{what}:{key}", what)
            self._within(parent.lane, {**payload, "type": kind_inside}, what)
            return
        name = text_of(payload, "agentId", "workflowId", "toolName", "name", "primitiveId") or what
        self._executing = name
        part = self._stages(self._parts, f"{what}:{name}", name)
        if event == "start":
            part.enter(self._at, event, "run", brief(payload.get("args")))
        elif event == "end":
            part.settle(self._at, event, "result", f"→ {brief(payload.get('result'))}")
        elif event == "abort":
            part.settle(self._at, event, "denied", "aborted")
        else:
            part.enter(self._at, event, "wait")
            self.marks.append(Mark("wait", self._at, f"{cut(event, 20)}: {cut(name, 40)}"))

    # ---- tasks and steps of workflows --------------------------------------------------------------------------------

    def _task(self, event: str, payload: dict[str, Any], wire: Wired) -> None:
        task_id = text_of(payload, "taskId")
        if not task_id:
            told = payload.get("taskIds")
            known = [self._tasks[key] for key in cast("list[Any]", told) if key in self._tasks] if _texts(told) else []
            for task in known:
                task.lane.marbles.append(Marble("other", self._at))
            if not known:
                self._marble("Other", "other")
            return
        call = self._calls.get(text_of(payload, "toolCallId"))
        name = (
            f"task {cut(task_id, 9)}" if call is not None else text_of(payload, "toolName") or f"task {cut(task_id, 9)}"
        )
        task = self._stages(self._tasks, task_id, name, None if call is None else call.lane)
        if event == "started":
            task.enter(self._at, event, "background", "queued")
        elif event in ("running", "resumed"):
            task.enter(self._at, event, "run", brief(payload.get("args")))
        elif event == "suspended":
            task.enter(self._at, event, "wait", brief(payload.get("suspendPayload")))
        elif event == "completed":
            failed = payload.get("isError") is True
            task.settle(self._at, event, "error" if failed else "result", f"→ {brief(payload.get('result'))}")
        elif event == "failed":
            task.settle(self._at, event, "error", f"failed: {error_message(payload.get('error'))}")
        elif event == "cancelled":
            task.settle(self._at, event, "denied", "cancelled")
        elif event == "output":
            self._task_output(task, payload)
        else:
            task.lane.marbles.append(Marble("other", self._at))

    def _task_output(self, task: _Stages, payload: dict[str, Any]) -> None:
        inner = payload.get("payload")
        if isinstance(inner, dict) and cast("dict[str, Any]", inner).get("type") == "tool-output":
            inner = payload_of(cast("dict[str, Any]", inner)).get("output")
        self._within(task.lane, inner, "agent")

    def _part(self, event: str, payload: dict[str, Any], wire: Wired) -> None:
        name = text_of(payload, "stepName", "id") or text_of(wire, "id") or "step"
        part = self._stages(self._parts, f"step:{name}", name)
        if event == "start":
            part.enter(self._at, event, "run", brief(payload.get("payload")))
        elif event in ("suspended", "waiting"):
            part.enter(self._at, event, "wait", brief(payload.get("suspendPayload")))
        elif event in ("result", "finish"):
            status = text_of(payload, "status")
            if status == "suspended":
                part.enter(self._at, event, "wait")
            elif status == "failed":
                part.settle(self._at, event, "error", f"failed: {error_message(payload.get('error'))}")
            elif part.stage not in ("result", "finish"):
                part.settle(self._at, event, "result", f"→ {brief(payload.get('output'))}")
            else:
                part.lane.marbles.append(Marble("result", self._at))
        else:
            part.lane.marbles.append(Marble("other", self._at))

    def _part_output(self, kind: str, payload: dict[str, Any], wire: Wired) -> None:
        name = text_of(payload, "stepName", "stepId") or "step"
        self._within(self._stages(self._parts, f"step:{name}", name).lane, payload.get("output"), "agent")

    def _stages(self, known: dict[str, _Stages], key: str, name: str, parent: Lane | None = None) -> _Stages:
        stages = known.get(key)
        if stages is None:
            above = parent if parent is not None else self._inner
            lane = _below(above, self._more, cut(name, 60), "run")
            stages = known[key] = _Stages(lane, cut(name, 60))
        return stages

    # ---- lanes by topic ----------------------------------------------------------------------------------------------

    def _lane(self, name: str, tone: Tone) -> Lane:
        if self._inner is not None:
            return self._inner
        lane = self._topics.get(name)
        if lane is None:
            lane = self._topics[name] = Lane(name, tone)
        return lane

    def _marble(self, name: str, tone: Tone) -> None:
        self._lane(name, tone).marbles.append(Marble(tone, self._at))


_OUTCOME_WORD: dict[RunState, str] = {
    "output-error": "failed",
    "output-denied": "denied",
    "unresolved": "no result",
}


def _reason(payload: dict[str, Any]) -> str:
    result = payload.get("stepResult")
    return text_of(cast("dict[str, Any]", result), "reason") if isinstance(result, dict) else ""


def _is_chunk(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    data = cast("dict[str, Any]", value)
    kind = data.get("type")
    return isinstance(kind, str) and kind in TYPES and ("payload" in data or "runId" in data)


def _below(parent: Lane | None, top: list[Lane], name: str, tone: Tone) -> Lane:
    """A new lane below its parent; where it has none, one of `top`."""
    lane = Lane(name, tone, 0 if parent is None else parent.depth + 1)
    (top if parent is None else parent.children).append(lane)
    return lane


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))
