"""Cases of the kinds background-tasks and nested-agents, and those of resume that need no server."""

from __future__ import annotations

from typing import Any

from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import (
    START,
    Seen,
    Wire,
    error,
    finish,
    output_of,
    reasoning,
    step_finish,
    text,
    tool_call,
    tool_result,
)

# ---- Background tasks ------------------------------------------------------------------------------------------------


def task(kind: str, **payload: Any) -> Wire:
    told = {"taskId": "k1", "toolName": "research", "toolCallId": "c1", **payload}
    return {"type": f"background-task-{kind}", "payload": told}


def test_a_task_is_linked_to_its_call_and_the_placeholder_does_not_close_it() -> None:
    """B150: `background-task-started` is dropped; users fish the id out of a result's text."""
    placeholder = tool_result("c1", "Background task started. Task ID: k1. ...", "research")
    output = output_of(task("started"), placeholder, finish())
    (state,) = output.background_tasks
    assert (state.task_id, state.tool_call_id, state.state) == ("k1", "c1", "started")
    (pair,) = output.tool_pairs
    assert pair.is_placeholder


def test_the_run_is_complete_before_its_tasks_are() -> None:
    """B152: the agent's stream finishes before its tasks; what comes after `finish` is no error."""
    feed: Subject[Any] = Subject()
    output = mx.MastraModelOutput(feed)
    states = Seen(output.background_tasks)
    for chunk in (START, task("started"), text("Hi"), finish()):
        feed.on_next(chunk)
    assert output.status == "success"
    assert output.is_over
    assert not states.completed
    feed.on_next(task("completed", result=1))
    assert [state.state for state in states.items] == ["started", "completed"]
    feed.on_completed()
    assert states.completed == 1
    assert output.text.run() == "Hi"


def test_a_task_that_nobody_hears_of_again_does_not_hang() -> None:
    """B152: the transport ends first; the task stays as it was known."""
    states = Seen(output_of(START, task("started"), finish()).background_tasks)
    assert [state.state for state in states.items] == ["started"]
    assert states.completed == 1


def test_the_first_end_of_a_task_counts() -> None:
    """B153: the end comes twice, or after a cancellation."""
    output = output_of(task("cancelled"), task("completed", result=1), task("completed", result=1), finish())
    states = list(output.background_tasks)
    assert {state.task_id for state in states} == {"k1"}
    assert (states[-1].state, states[-1].result) == ("cancelled", None)
    assert states[-1].late == ("completed", "completed")
    (pair,) = output.tool_pairs
    assert pair.state == "error"


# ---- Nested agents ---------------------------------------------------------------------------------------------------


def inside(chunk: Wire, call: str = "c1", tool: str | None = "agent-foo") -> Wire:
    return {"type": "tool-output", "payload": {"toolCallId": call, "toolName": tool, "output": chunk}}


def test_pieces_of_arguments_of_an_inner_call() -> None:
    """B155: inner tool input is dropped; here the inner run has it, and the outer one does not."""
    delta = {"type": "tool-call-delta", "payload": {"toolCallId": "n1", "argsTextDelta": '{"a"'}}
    output = output_of(inside(delta), finish())
    (inner,) = output.nested
    assert mx.to_wire(list(inner.full_stream)) == [delta]
    assert {run.tool_call_id for run in inner.tool_runs} == {"n1"}
    assert output.tool_calls.run() == []
    assert {run.tool_call_id for run in output.tool_runs} <= {"c1"}


def test_two_agents_at_once() -> None:
    """B157: the second one's text is put on the first one's card."""
    output = output_of(inside(text("A"), "c1"), inside(text("B"), "c2"), inside(text("A2"), "c1"), finish())
    texts = {inner.key.tool_call_id: "".join(inner.text_stream) for inner in list(output.nested)}
    assert texts == {"c1": "AA2", "c2": "B"}


def test_the_run_id_at_either_level() -> None:
    """B158: `runId` and `from` stand at the root or one level down, by version."""
    nested = {"type": "text-delta", "runId": "r2", "from": "AGENT", "payload": {"id": "m", "text": "abil"}}
    rooted = {"type": "text-delta", "payload": {"id": "m", "text": "ity"}}
    kind = "agent-execution-event-text-delta"
    output = output_of(
        {"type": kind, "payload": nested}, {"type": kind, "runId": "r2", "from": "AGENT", "payload": rooted}
    )
    (inner,) = output.nested
    assert inner.key.run_id == "r2"
    assert "".join(inner.text_stream) == "ability"
    assert {chunk.run_id for chunk in inner.full_stream} == {"r2"}


def test_inner_reasoning() -> None:
    """B160: nested reasoning is not passed on, and one waits for it in vain where there is none."""
    output = output_of(inside(reasoning("h"), tool=None), inside(text("x"), "c2"), finish())
    first, second = output.nested
    assert list(first.reasoning_stream) == ["h"]
    assert list(second.reasoning_stream) == []
    assert second.get_full_output().run().reasoning == ""
    assert output.reasoning_text.run() is None


def test_steps_are_counted_by_run() -> None:
    """B161: an inner run's steps break up the outer run's."""
    step = {"type": "step-start", "payload": {}}
    output = output_of(
        step, text("a"), inside(step), inside(text("x")), inside(step_finish()), text("b"), step_finish(), finish()
    )
    assert [each.text for each in output.steps.run()] == ["ab"]
    (inner,) = output.nested
    assert [each.text for each in inner.get_full_output().run().steps] == ["x"]
    groups = list(mx.as_view(output.full_stream.pipe(ops.by_step())))
    assert [group.key for group in groups] == [0]


# ---- Resumed runs ----------------------------------------------------------------------------------------------------


def test_runs_in_one_stream_are_kept_apart() -> None:
    """B019: a failed run is replayed with the next one, and its text is put before it."""
    failed = [{**chunk, "runId": "A"} for chunk in (START, text("par"), error({"message": "no"}))]
    good = [{**chunk, "runId": "B"} for chunk in (START, text("ok"), finish())]
    groups = mx.as_view(mx.from_chunks([*failed, *good]).pipe(ops.by_run()))
    first, second = (mx.NestedOutput(group) for group in list(groups))
    assert second.text.run() == "ok"
    assert first.get_full_output().run().text == "par"
    assert isinstance(first.error or first.get_full_output().run().error, mx.AgentError)
    assert (first.key, second.key) == ("A", "B")


def test_nothing_comes_after_the_end_was_asked_for() -> None:
    """B021: a resumed run that was stopped or superseded keeps writing."""
    first: Subject[Any] = Subject()
    second: Subject[Any] = Subject()
    one, two = mx.MastraModelOutput(first), mx.MastraModelOutput(second)
    seen_one, seen_two = Seen(one.full_stream), Seen(two.full_stream)
    first.on_next(text("a"))
    one.dispose()
    first.on_next(text("late"))
    for chunk in (text("b"), finish()):
        second.on_next(chunk)
    assert seen_one.types == ["text-delta"]
    assert seen_one.completed == 1
    assert seen_two.types == ["text-delta", "finish"]
    assert not first.observers


def test_a_result_whose_call_came_in_an_earlier_stream() -> None:
    """B024: a resumed stream begins with the result of a call that it does not have."""
    output = output_of(
        tool_result("c1", {"ok": True}, "ship"), tool_call("c2"), tool_result("c2", 2), text("Done"), finish()
    )
    orphan, known = output.tool_pairs
    assert (orphan.is_orphan, orphan.tool_name, orphan.result) == (True, "ship", {"ok": True})
    assert (known.is_orphan, known.result) == (False, 2)
    assert [result.payload.tool_call_id for result in output.tool_results.run()] == ["c1", "c2"]
    assert output.text.run() == "Done"


def test_two_readers_of_one_resumed_run_both_end() -> None:
    """B025: of two streams of one run, one never ends."""
    feed: Subject[Any] = Subject()
    outputs = [mx.WorkflowRunOutput(feed), mx.WorkflowRunOutput(feed)]
    seen = [Seen(output.full_stream) for output in outputs] + [Seen(outputs[0].full_stream)]
    feed.on_next({"type": "workflow-finish", "payload": {"workflowStatus": "success", "finalWorkflowResult": 1}})
    feed.on_completed()
    assert [(each.types, each.completed) for each in seen] == [(["workflow-finish"], 1)] * 3
    assert [output.result.run() for output in outputs] == [1, 1]


def test_a_position_is_one_number_for_all_readers() -> None:
    """B022: a cursor is counted in chunks by one and in converted parts by the other.

    There is one sequence, that of the chunks: `history` and the marker of a gap count in it too.
    """
    chunks = [START, text("a"), text("b"), finish()]
    output = mx.MastraModelOutput(chunks, history=2)
    assert output.text.run() == "ab"
    gap, *rest = output.full_stream
    assert gap.missed + len(rest) == len(chunks)
    assert [chunk.type for chunk in rest] == ["text-delta", "finish"]
