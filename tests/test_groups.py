"""Sub-streams: the chunks of a step or a run as a live stream of its own; evaluations; the step that runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rxops
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import START, STEP_START, Seen, Wire, finish, one_by_one, step_finish, text, then_raise
from tests.conftest import Recording, recordings

TWO_STEPS = [START, STEP_START, text("a"), text("b"), step_finish(), STEP_START, text("c"), step_finish(), finish()]


def grouped(chunks: Any, by: Any) -> list[tuple[Any, list[str]]]:
    """Keys and texts of the groups, each read after the end."""
    groups = list(mx.as_view(mx.from_chunks(chunks).pipe(by)))  # all first: see the last test
    return [(group.key, [chunk.payload.text for chunk in group if chunk.type == "text-delta"]) for group in groups]


def of_run(run: str | None, chunk: Wire) -> Wire:
    return chunk if run is None else {"runId": run, "from": "AGENT", **chunk}


# ---- Steps -----------------------------------------------------------------------------------------------------------


def test_by_step() -> None:
    assert grouped(TWO_STEPS, ops.by_step()) == [(0, ["a", "b"]), (1, ["c"])]


def test_chunks_outside_of_steps_are_in_none() -> None:
    groups = list(mx.as_view(mx.from_chunks(TWO_STEPS).pipe(ops.by_step())))
    for group in groups:
        kinds = [chunk.type for chunk in group]
        assert (kinds[0], kinds[-1]) == ("step-start", "step-finish")
    assert sum(len(list(group)) for group in groups) == len(TWO_STEPS) - 2  # start and finish


def test_a_step_that_breaks_off_ends_where_the_next_one_begins() -> None:
    chunks = [STEP_START, text("a"), STEP_START, text("b")]
    assert grouped(chunks, ops.by_step()) == [(0, ["a"]), (1, ["b"])]


@pytest.mark.parametrize(
    "recording", [r for r in recordings() if r.name.startswith(("bg-", "tool-", "nested"))], ids=str
)
def test_recorded_steps(recording: Recording) -> None:
    groups = list(mx.as_view(mx.from_chunks(recording.wire).pipe(ops.by_step())))
    starts = [chunk for chunk in recording.wire if chunk["type"] == "step-start"]
    assert len(groups) == len(starts)
    assert [mx.to_wire(list(group))[0] for group in groups] == starts


def test_steps_come_when_they_close() -> None:
    feed: Subject[Any] = Subject()
    seen = Seen(mx.as_view(mx.from_chunks(feed).pipe(ops.steps())))
    counts: list[int] = []
    for chunk in TWO_STEPS:
        feed.on_next(chunk)
        counts.append(len(seen.items))
    assert counts == [0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert [step.text for step in seen.items] == ["ab", "c"]


def test_the_step_that_runs() -> None:
    feed: Subject[Any] = Subject()
    output = mx.MastraModelOutput(feed)
    texts: list[str | None] = []
    output.full_stream.subscribe(
        lambda _: texts.append(None if output.current_step is None else output.current_step.text)
    )
    for chunk in TWO_STEPS:
        feed.on_next(chunk)
    assert texts == [None, "", "a", "ab", None, "", "c", None, None]


# ---- Runs ------------------------------------------------------------------------------------------------------------


def test_by_run() -> None:
    chunks = [of_run("a", text("a1")), of_run("b", text("b1")), of_run("a", text("a2")), of_run("b", text("b2"))]
    assert grouped(chunks, ops.by_run()) == [("a", ["a1", "a2"]), ("b", ["b1", "b2"])]


def test_chunks_that_name_no_run_go_to_the_run_that_came_last() -> None:
    chunks = [text("0"), of_run("a", text("a1")), text("a2"), of_run("b", text("b1")), text("b2")]
    assert grouped(chunks, ops.by_run()) == [(None, ["0"]), ("a", ["a1", "a2"]), ("b", ["b1", "b2"])]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.text(min_size=1, max_size=3)), max_size=30))
@settings(deadline=None, max_examples=100)
def test_every_chunk_is_in_one_run_in_its_order(pieces: list[tuple[str | None, str]]) -> None:
    chunks = [of_run(run, text(piece)) for run, piece in pieces]
    expected: dict[str | None, list[str]] = {}
    last = None
    for run, piece in pieces:
        last = run or last
        expected.setdefault(last, []).append(mx.parse_chunk(text(piece)).payload.text)
    live: dict[str | None, list[str]] = {}

    def listen(group: Any) -> None:
        live[group.key] = []
        group.pipe(ops.text_deltas()).subscribe(live[group.key].append)

    mx.from_chunks(chunks).pipe(ops.by_run()).subscribe(listen)
    assert live == expected == dict(grouped(chunks, ops.by_run()))


# ---- What all sub-streams have ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [ops.by_run, ops.by_step, ops.turns])
def test_a_sub_stream_can_be_read_live_late_and_twice(by: Any) -> None:
    feed: Subject[Any] = Subject()
    groups: list[Any] = []
    live: list[str] = []

    def listen(group: Any) -> None:
        groups.append(group)
        group.subscribe(lambda chunk: live.append(chunk.type), on_completed=lambda: live.append("(end)"))

    mx.from_chunks(feed).pipe(by()).subscribe(listen)
    for chunk in TWO_STEPS:
        feed.on_next(chunk)
    feed.on_completed()
    late = [kind for group in groups for kind in [*(chunk.type for chunk in group), "(end)"]]
    assert live == late == [kind for group in groups for kind in [*(chunk.type for chunk in group), "(end)"]]


@pytest.mark.parametrize("by", [ops.by_run, ops.by_step, ops.turns, ops.nested])
def test_a_source_that_fails_fails_the_sub_streams_that_are_open(by: Any) -> None:
    inner = {"type": "tool-output", "payload": {"toolCallId": "c", "toolName": "f", "output": of_run("r", text("x"))}}
    chunks = [START, STEP_START, inner]
    groups = Seen()
    groups.subscribe(mx.from_chunks(then_raise(chunks, ConnectionError("gone"))).pipe(by()))
    assert [type(error) for error in groups.errors] == [mx.SourceError]
    (group,) = groups.items
    seen = Seen(group)
    assert seen.types
    assert [type(error) for error in seen.errors] == [mx.SourceError]


@pytest.mark.parametrize("by", [ops.by_run, ops.by_step, ops.turns])
def test_one_sub_stream_picked_out_goes_on_to_its_end(by: Any) -> None:
    feed: Subject[Any] = Subject()
    seen = Seen(mx.as_view(mx.from_chunks(feed).pipe(by(), rxops.take(1), rxops.flat_map(lambda group: group))))
    for chunk in TWO_STEPS:
        feed.on_next(chunk)
    feed.on_completed()
    expected, *_ = mx.as_view(mx.from_chunks(TWO_STEPS).pipe(by()))
    assert seen.types == [chunk.type for chunk in expected]
    assert seen.completed == 1


def test_a_sub_stream_that_nobody_feeds_any_more_says_so() -> None:
    """Who left the stream of turns and reads one of them later must not wait for ever."""

    async def scene() -> None:
        feed: Subject[Any] = Subject()
        output = mx.MastraModelOutput(feed)
        turns: list[Any] = []
        subscription = output.turns.subscribe(turns.append)
        for chunk in (START, text("a")):
            feed.on_next(chunk)
        subscription.dispose()
        with pytest.raises(mx.StreamDisposed):
            await turns[0].text
        assert (await turns[0].get_full_output()).text == "a"

    asyncio.run(asyncio.wait_for(scene(), 5))


def test_the_source_is_closed_when_nobody_listens_any_more() -> None:
    async def scene() -> None:
        closed = asyncio.Event()
        source = mx.from_chunks(one_by_one([START] * 10_000, closed.set))
        groups: list[Any] = []
        got: list[Any] = []
        subscription = source.pipe(ops.by_run()).subscribe(groups.append)
        while not groups:
            await asyncio.sleep(0)
        reading = groups[0].pipe(rxops.take(3)).subscribe(got.append)
        subscription.dispose()
        await closed.wait()
        reading.dispose()
        assert len(got) == 3

    asyncio.run(asyncio.wait_for(scene(), 5))


# ---- Goals and completion checks -------------------------------------------------------------------------------------


def goal(passed: bool, **payload: Any) -> Wire:
    return {"type": "goal", "payload": {"passed": passed, "iteration": 1, "shouldContinue": not passed, **payload}}


def check(passed: bool, **payload: Any) -> Wire:
    return {"type": "is-task-complete", "payload": {"passed": passed, "iteration": 1, **payload}}


def test_evaluations_come_as_they_are_made() -> None:
    chunks = [text("x"), goal(False, reason="too short"), check(False), text("y"), goal(True), check(True), finish()]
    output = mx.MastraModelOutput(chunks)
    assert [(e.kind, e.passed, e.reason, e.goes_on) for e in output.evaluations] == [
        ("goal", False, "too short", True),
        ("is-task-complete", False, None, False),
        ("goal", True, None, False),
        ("is-task-complete", True, None, False),
    ]
    assert [e.payload.iteration for e in output.evaluations] == [1, 1, 1, 1]


def test_a_goal_that_goes_on_starts_the_values_anew_and_keeps_the_streams() -> None:
    """D14."""
    output = mx.MastraModelOutput([STEP_START, text("x"), step_finish(), goal(False), text("y"), goal(True), finish()])
    assert output.text.run() == "y"
    assert list(output.text_stream) == ["x", "y"]


@pytest.mark.parametrize("name", ["unit-goal-continue-midstep", "unit-goal-stop"])
def test_recorded_goals(name: str) -> None:
    recording = Recording(name)
    evaluations = list(mx.MastraModelOutput(recording.wire).evaluations)
    goals = [chunk["payload"] for chunk in recording.wire if chunk["type"] == "goal"]
    assert [e.goes_on for e in evaluations] == [goal.get("shouldContinue") is True for goal in goals]
    assert all(isinstance(e, mx.Evaluation) for e in evaluations)


def test_operators_work_on_any_observable() -> None:
    feed: Observable[Any] = mx.MastraModelOutput(TWO_STEPS).full_stream
    assert [step.text for step in mx.as_view(feed.pipe(ops.steps()))] == ["ab", "c"]


def test_a_sub_stream_can_be_read_in_the_loop_that_finds_it() -> None:
    """One chunk at a time from a generator: the loop stands still while its body waits for the sub-stream."""
    output = mx.MastraModelOutput(
        chunk for chunk in [of_run("a", START), of_run("a", text("x")), of_run("a", finish())]
    )

    def read() -> list[list[str]]:
        groups = mx.as_view(output.full_stream.pipe(ops.by_run()))
        return [list(mx.as_view(group.pipe(ops.text_deltas()))) for group in groups]

    assert within(2, read) == [["x"]]


def test_the_values_of_a_nested_run_can_be_read_in_the_loop_that_finds_it() -> None:
    inner = [START, text("x"), text("y"), finish()]
    wires = [START, *(of_tool("call-1", chunk) for chunk in inner), *(of_tool("call-2", chunk) for chunk in inner)]
    output = mx.MastraModelOutput(wire for wire in [*wires, finish()])

    def read() -> list[tuple[str, str, int]]:
        return [(next(iter(run.text_stream)), run.text.run(), len(list(run.full_stream))) for run in output.nested]

    assert within(2, read) == [("x", "xy", 4)] * 2
    assert [turn.finish_reason.run() for turn in output.turns] == ["stop"]


def of_tool(call_id: str, inner: Any) -> Any:
    payload = {"toolCallId": call_id, "toolName": "agent-writer", "output": {**inner, "runId": call_id}}
    return {"type": "tool-output", "payload": payload}


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """What `call` gives; a call that hangs fails the test and no more."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs, or it failed"
    return found[0]
