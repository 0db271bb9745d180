"""Nested runs: each inner run is a stream and an output of its own, at any depth, and parallel ones never mix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import operators as rxops
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import START, STEP_START, Wire, finish, reasoning, step_finish, text, tool_call, tool_result
from tests.conftest import Recording

# ---- The recordings --------------------------------------------------------------------------------------------------


def test_the_recorded_agent_inside_a_tool() -> None:
    recording = Recording("nested-agent")
    output = mx.MastraModelOutput(recording.wire)
    (inner,) = output.nested
    assert (inner.key.kind, inner.key.tool_call_id, inner.key.name) == ("tool", "call_1", "agent-researcher")
    assert inner.text.run() == "Sub answer"
    assert inner.key.run_id == inner.run_id == "ea40fe47-58a7-4d84-a320-00000000002c"
    assert (inner.status, inner.finish_reason.run()) == ("success", "stop")
    assert [step.text for step in inner.steps.run()] == ["Sub answer"]
    assert output.text.run() == recording.expected["text"] == "Summary."
    assert list(output.text_stream) == recording.expected["textStream"]
    wrapped = [c["payload"]["output"] for c in recording.wire if c["type"] == "tool-output"]
    assert mx.to_wire(list(inner.full_stream)) == wrapped


def test_the_recorded_agent_inside_a_workflow_step() -> None:
    chunks = mx.from_chunks(Recording("workflow-agent-step").wire)
    (group,) = mx.as_view(chunks.pipe(ops.nested()))
    assert (group.key.kind, group.key.id, group.key.run_id) == ("step", "ask", "run-inner")
    inner = mx.NestedOutput(group)
    assert inner.text.run() == "Once upon."
    assert inner.usage.run().total_tokens == 24


def test_the_recorded_agent_inside_a_network() -> None:
    chunks = mx.from_chunks(Recording("network-basic").wire)
    (group,) = mx.as_view(chunks.pipe(ops.nested()))
    assert (group.key.kind, group.key.run_id) == ("agent", "86b3f8b5-1eb0-45ab-a4ce-000000000094")
    assert mx.NestedOutput(group).text.run() == "Sub facts"


def test_what_a_tool_writes_is_no_run() -> None:
    """A workflow step and a background task that report progress."""
    for name in ("workflow-basic", "bg-manager-stream", "bg-output"):
        assert list(mx.as_view(mx.from_chunks(Recording(name).wire).pipe(ops.nested()))) == []


# ---- Every wrapping --------------------------------------------------------------------------------------------------


def in_tool(chunk: Wire, call: str = "c1", tool: str = "agent-a") -> Wire:
    return {"type": "tool-output", "payload": {"toolCallId": call, "toolName": tool, "output": chunk}}


def in_step(chunk: Wire, step: str = "s1") -> Wire:
    return {"type": "workflow-step-output", "payload": {"stepName": step, "output": chunk}}


def in_old_step(chunk: Wire, step: str = "s1") -> Wire:
    return {"type": "step-output", "payload": {"stepName": step, "output": chunk}}


def in_task(chunk: Wire, task: str = "k1") -> Wire:
    return {"type": "background-task-output", "payload": {"taskId": task, "toolName": "agent-a", "payload": chunk}}


def in_task_tool(chunk: Wire, task: str = "k1") -> Wire:
    return in_task(in_tool(chunk), task)


def in_network_agent(chunk: Wire, run: str = "n1") -> Wire:
    return {"type": f"agent-execution-event-{chunk['type']}", "payload": {"runId": run, **chunk}}


def in_network_workflow(chunk: Wire, run: str = "n1") -> Wire:
    return {"type": f"workflow-execution-event-{chunk['type']}", "payload": {"runId": run, **chunk}}


def in_call(chunk: Wire, call: str = "c1") -> Wire:
    return {"type": "tool-call", "payload": {"toolCallId": call, "toolName": "agent-a", "args": {}, "output": chunk}}


WRAPPINGS: dict[str, tuple[Callable[..., Wire], str]] = {
    "tool-output": (in_tool, "tool"),
    "workflow-step-output": (in_step, "step"),
    "step-output": (in_old_step, "step"),
    "background-task-output": (in_task, "task"),
    "background-task-output of tool-output": (in_task_tool, "task"),
    "agent-execution-event": (in_network_agent, "agent"),
    "workflow-execution-event": (in_network_workflow, "workflow"),
}

RUN = [START, STEP_START, reasoning("hm"), text("in"), text("side"), step_finish({"inputTokens": 7}), finish()]


def of_run(run: str, *chunks: Wire) -> list[Wire]:
    return [{"runId": run, "from": "AGENT", **chunk} for chunk in chunks]


@pytest.mark.parametrize("name", WRAPPINGS)
def test_every_wrapping_gives_a_run_of_its_own(name: str) -> None:
    wrap, kind = WRAPPINGS[name]
    inner_chunks = of_run("inner", *RUN)
    wrapped = [wrap(chunk) for chunk in inner_chunks]
    output = mx.MastraModelOutput([START, text("out"), *wrapped, text("side"), finish()])
    (inner,) = output.nested
    assert (inner.key.kind, inner.key.run_id) == (kind, "inner")
    assert inner.text.run() == "inside"
    assert inner.reasoning.run() == "hm"
    assert [chunk.type for chunk in inner.full_stream] == [chunk["type"] for chunk in RUN]
    # nothing of it is in the outer run
    assert output.text.run() == "outside"
    assert list(output.text_stream) == ["out", "side"]
    assert output.reasoning_text.run() is None
    assert output.steps.run() == []
    assert output.status == "success"


def test_a_call_that_carries_what_an_agent_gave() -> None:
    (inner,) = mx.MastraModelOutput([START, in_call(of_run("inner", finish())[0]), finish()]).nested
    assert (inner.key.kind, inner.key.id, inner.key.run_id) == ("tool", "c1", "inner")


@pytest.mark.parametrize("output", [None, 5, "text", [], {}, {"type": "note", "at": 1}, {"type": 7, "payload": {}}])
def test_what_is_no_chunk_is_no_run(output: Any) -> None:
    assert list(mx.MastraModelOutput([in_tool(output), in_task(output), in_step(output), finish()]).nested) == []


def test_data_that_a_tool_writes_belongs_to_the_run_inside_it_and_makes_none() -> None:
    data: Wire = {"type": "data-progress", "data": 1}
    assert list(mx.MastraModelOutput([in_task(data), in_tool(data), finish()]).nested) == []
    (inner,) = mx.MastraModelOutput([in_task(data), *map(in_task_tool, of_run("r", START)), in_task(data)]).nested
    assert [chunk.type for chunk in inner.full_stream] == ["start", "data-progress"]


def test_an_inner_chunk_of_an_unknown_type_is_kept() -> None:
    (inner,) = mx.MastraModelOutput([in_tool({"type": "novel", "runId": "r", "payload": {"x": 1}}), finish()]).nested
    (chunk,) = inner.full_stream
    assert mx.to_wire(chunk) == {"type": "novel", "runId": "r", "payload": {"x": 1}}


def test_an_inner_error_fails_the_inner_run_alone() -> None:
    broken = [START, text("so far"), {"type": "error", "payload": {"error": {"message": "inner"}}}]
    output = mx.MastraModelOutput([START, *map(in_tool, of_run("r", *broken)), tool_result("c1"), text("ok"), finish()])
    (inner,) = output.nested
    with pytest.raises(mx.AgentError, match="inner"):
        inner.text.run()
    assert inner.get_full_output().run().text == "so far"
    assert output.text.run() == "ok"
    assert output.status == "success"


# ---- Live, and late --------------------------------------------------------------------------------------------------


def test_an_inner_run_is_live_and_ends_with_its_tool() -> None:
    feed: Subject[Any] = Subject()
    output = mx.MastraModelOutput(feed)
    seen: list[str] = []
    output.nested.subscribe(
        lambda inner: inner.text_stream.subscribe(seen.append, on_completed=lambda: seen.append("(end)"))
    )
    feed.on_next(in_tool(text("a")))
    assert seen == ["a"]
    feed.on_next(in_tool(text("b")))
    feed.on_next(tool_result("c1"))
    assert seen == ["a", "b", "(end)"]


@pytest.mark.parametrize(
    ("wrap", "end"),
    [
        (in_tool, {"type": "tool-result", "payload": {"toolCallId": "c1", "toolName": "agent-a", "result": 1}}),
        (in_tool, {"type": "tool-error", "payload": {"toolCallId": "c1", "toolName": "agent-a", "error": "no"}}),
        (in_task, {"type": "background-task-completed", "payload": {"taskId": "k1", "result": 1}}),
        (in_task, {"type": "background-task-failed", "payload": {"taskId": "k1", "error": {"message": "no"}}}),
        (in_task, {"type": "background-task-cancelled", "payload": {"taskId": "k1"}}),
        (in_step, {"type": "workflow-step-result", "payload": {"id": "s1", "stepName": "s1", "status": "success"}}),
        (in_network_agent, {"type": "agent-execution-end", "payload": {"runId": "r", "agentId": "a"}}),
        (in_network_workflow, {"type": "workflow-execution-end", "payload": {"runId": "r", "workflowId": "w"}}),
    ],
)
def test_what_ends_an_inner_run(wrap: Callable[..., Wire], end: Wire) -> None:
    feed: Subject[Any] = Subject()
    ended: list[Any] = []
    mx.MastraModelOutput(feed).nested.subscribe(
        lambda inner: inner.full_stream.subscribe(on_completed=lambda: ended.append(inner.key.kind))
    )
    (chunk,) = of_run("r", text("a"))
    feed.on_next(wrap(chunk))
    assert ended == []
    feed.on_next(end)
    assert len(ended) == 1


def test_the_placeholder_of_a_background_task_does_not_end_the_task() -> None:
    placeholder = tool_result("c1", "Background task started. Task ID: k1.")
    chunks = [tool_call("c1"), placeholder, *map(in_task_tool, of_run("r", *RUN)), finish()]
    (inner,) = mx.MastraModelOutput(chunks).nested
    assert inner.text.run() == "inside"


def test_one_run_picked_out_and_read_live() -> None:
    """`take(1)` leaves the stream of runs; the one that it took goes on to its end."""
    feed: Subject[Any] = Subject()
    seen: list[str] = []
    mx.MastraModelOutput(feed).nested.pipe(rxops.take(1), rxops.flat_map(lambda inner: inner.text_stream)).subscribe(
        seen.append, on_completed=lambda: seen.append("(end)")
    )
    for chunk in (in_tool(text("a")), in_tool(text("x"), "c2"), in_tool(text("b")), tool_result("c1")):
        feed.on_next(chunk)
    assert seen == ["a", "b", "(end)"]


# ---- Picking ---------------------------------------------------------------------------------------------------------


def test_runs_by_tool_call_and_by_agent() -> None:
    chunks = [
        *(in_tool(chunk, "c1", "agent-a") for chunk in of_run("r1", START, text("1"))),
        *(in_tool(chunk, "c2", "agent-b") for chunk in of_run("r2", START, text("2"))),
        *(in_tool(chunk, "c3", "a") for chunk in of_run("r3", START, text("3"))),
        *(in_step(chunk) for chunk in of_run("r4", {"type": "start", "payload": {"id": "a"}}, text("4"))),
        *(in_network_agent(chunk) for chunk in of_run("r5", {"type": "start", "payload": {"id": "a"}}, text("5"))),
    ]

    def picked(**which: str) -> list[str]:
        groups = mx.as_view(mx.from_chunks(chunks).pipe(ops.nested(**which)))
        return ["".join(mx.as_view(group.pipe(ops.text_deltas()))) for group in list(groups)]

    assert picked() == ["1", "2", "3", "4", "5"]
    assert picked(tool_call_id="c2") == ["2"]
    assert picked(agent_id="b") == ["2"]
    assert picked(agent_id="a") == ["1", "3", "4", "5"]  # in a step and a network the agent says who it is
    assert picked(agent_id="a", tool_call_id="c3") == ["3"]
    assert picked(agent_id="nobody") == []


# ---- Which run a chunk belongs to ------------------------------------------------------------------------------------


def test_two_runs_in_one_place() -> None:
    """A tool that runs two agents at once."""
    a, b = of_run("a", text("a1"), text("a2")), of_run("b", text("b1"), text("b2"))
    output = mx.MastraModelOutput([in_tool(a[0]), in_tool(b[0]), in_tool(a[1]), in_tool(b[1]), finish()])
    assert {inner.key.run_id: list(inner.text_stream) for inner in list(output.nested)} == {
        "a": ["a1", "a2"],
        "b": ["b1", "b2"],
    }


def test_a_chunk_without_a_run_belongs_to_the_one_that_came_last_in_its_place() -> None:
    a, b = of_run("a", text("a1"), text("a2")), of_run("b", text("b1"))
    output = mx.MastraModelOutput([in_tool(a[0]), in_tool(b[0]), in_tool(a[1]), in_tool(text("a3")), finish()])
    assert {inner.key.run_id: list(inner.text_stream) for inner in list(output.nested)}["a"] == ["a1", "a2", "a3"]


def test_a_run_that_names_itself_late_is_one_run() -> None:
    chunks = [in_tool(text("a")), *map(in_tool, of_run("r", text("b"))), in_tool(text("c")), finish()]
    (inner,) = mx.MastraModelOutput(chunks).nested
    assert list(inner.text_stream) == ["a", "b", "c"]


def test_the_same_call_id_again_is_another_run() -> None:
    """Providers number calls anew in every turn."""
    chunks = [*map(in_tool, of_run("r1", *RUN)), tool_result("c1"), *map(in_tool, of_run("r2", *RUN)), finish()]
    assert [inner.text.run() for inner in list(mx.MastraModelOutput(chunks).nested)] == ["inside", "inside"]


# ---- Any nesting -----------------------------------------------------------------------------------------------------

Path = tuple[str, ...]


@st.composite
def nestings(draw: st.DrawFn, deepest: int) -> tuple[list[Wire], dict[Path, str]]:
    """The chunks of a run with runs inside runs, interleaved; and the text of each run, by its path."""
    texts: dict[Path, str] = {}
    kinds = st.sampled_from([in_tool, in_step, in_task_tool, in_network_agent])

    def run(path: Path, depth: int, breadth: int) -> list[Wire]:
        pieces = [f"{'/'.join(path)}:{number} " for number in range(draw(st.integers(1, 3)))]
        texts[path] = "".join(pieces)
        streams = [[START, *map(text, pieces), step_finish({"inputTokens": 1}), finish()]]
        for child in range(breadth if depth else 0):
            name = f"r{child}"
            wrap = draw(kinds)
            inside = of_run("-".join((*path, name)), *run((*path, name), depth - 1, 1 if depth > 4 else breadth))
            place = "n" + "-".join((*path, name)) if wrap is in_network_agent else name
            streams.append([wrap(chunk, place) for chunk in inside])
        order = draw(st.permutations([which for which, stream in enumerate(streams) for _ in stream]))
        iterators = [iter(stream) for stream in streams]
        return [next(iterators[which]) for which in order]

    depth = draw(st.integers(0, deepest))
    return run((), depth, draw(st.integers(1, 3)) if depth <= 3 else 1), texts


def texts_of(output: mx.MastraModelOutput[Any], path: Path = ()) -> dict[Path, str]:
    """The text of each run that is found, by its path."""
    found = {path: "".join(output.text_stream)}
    for inner in list(output.nested):
        found.update(texts_of(inner, (*path, inner.key.run_id.rpartition("-")[2])))
    return found


@given(nestings(2))
@settings(deadline=None, max_examples=25)
def test_each_run_has_its_own_chunks_and_parallel_ones_never_mix(nesting: tuple[list[Wire], dict[Path, str]]) -> None:
    chunks, texts = nesting
    assert texts_of(mx.MastraModelOutput(chunks)) == texts


@given(st.lists(st.sampled_from([in_tool, in_step, in_task_tool, in_network_agent]), min_size=1, max_size=50))
@settings(deadline=None, max_examples=15)
def test_each_run_of_a_chain_has_its_own_chunks(wrappings: list[Callable[..., Wire]]) -> None:
    chunks: list[Wire] = []
    for depth, wrap in enumerate(reversed(wrappings)):
        inside = of_run(f"r{depth}", START, text(f"{depth}"), *chunks, finish())
        chunks = [wrap(chunk) for chunk in inside]
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput([START, text("outermost"), *chunks, finish()])
    texts = []
    while True:
        texts.append(output.text.run())
        inner = list(output.nested)
        if not inner:
            break
        (output,) = inner
    assert texts == ["outermost", *(str(depth) for depth in reversed(range(len(wrappings))))]


def test_50_deep() -> None:
    chunks = RUN
    for depth in range(50):
        chunks = [START, text(f"level {depth}"), *map(in_tool, of_run(f"r{depth}", *chunks)), finish()]
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(chunks)
    depth = 0
    while inner := list(output.nested):
        (output,) = inner
        depth += 1
    assert depth == 50
    assert output.text.run() == "inside"
