"""Workflows: their steps, live, and what a run came to."""

from __future__ import annotations

from typing import Any

import pytest

import mastra_rx as mx
from tests.cases.wire import Seen, Wire, then_raise
from tests.conftest import Recording, recordings
from tests.test_conformance import without_undefined

RECORDED = [recording for recording in recordings() if recording.name.startswith("workflow-")]


def test_there_are_recordings() -> None:
    assert len(RECORDED) >= 4


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_a_recorded_run_comes_to_what_it_did(recording: Recording) -> None:
    told = without_undefined(recording.expected["promises"])
    theirs = told["result"]["value"]
    output = mx.WorkflowRunOutput(recording.wire)
    full = output.get_full_output().run()
    assert output.status == full.status == recording.expected["status"] == theirs["status"]
    assert full.result == theirs.get("result")
    assert list(full.steps) == theirs["stepExecutionPath"]
    for name, step in full.steps.items():
        theirs_of_step = theirs["steps"][name]
        assert step.status == theirs_of_step["status"]
        assert step.output == theirs_of_step.get("output")
        assert step.resume_payload == theirs_of_step.get("resumePayload")
        assert str(step.error) == theirs_of_step.get("error", {}).get("message", "None")
        assert step.started_at is not None
        assert step.started_at.timestamp() * 1000 == theirs_of_step["startedAt"]
    usage = full.usage.__to_wire__()
    assert {key: value for key, value in usage.items() if key != "raw"} == told["usage"]["value"]
    assert [mx.to_wire(chunk) for chunk in output.full_stream] == recording.wire


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_a_recorded_result(recording: Recording) -> None:
    output = mx.WorkflowRunOutput(recording.wire)
    if recording.expected["status"] != "failed":
        assert output.result.run() == recording.expected["promises"]["result"]["value"]["result"]
        return
    with pytest.raises(mx.AgentError, match="step bad: out of range") as failure:
        output.result.run()
    assert output.error is failure.value
    assert list(output.steps.run()) == ["bad"]


# ---- Steps, live -----------------------------------------------------------------------------------------------------


def step(kind: str, name: str = "a", **payload: Any) -> Wire:
    return {"type": f"workflow-step-{kind}", "runId": "run", "payload": {"id": name, "stepName": name, **payload}}


def finished(status: str = "success", **payload: Any) -> Wire:
    return {"type": "workflow-finish", "runId": "run", "payload": {"workflowStatus": status, "metadata": {}, **payload}}


def states(*chunks: Wire, of: str) -> list[Any]:
    return [getattr(step, of) for step in mx.WorkflowRunOutput(list(chunks)).step_stream]


def test_steps_are_told_as_they_change() -> None:
    output = mx.WorkflowRunOutput(Recording("workflow-basic").wire)
    told = [(step.id, step.status) for step in output.step_stream]
    assert told == [("double", "running"), ("double", "success"), ("label", "running"), ("label", "success")]


def test_a_step_for_each_item() -> None:
    progress = [step("progress", completedCount=count, totalCount=3, iterationStatus="success") for count in (1, 2, 3)]
    chunks = [step("start", status="running"), *progress, step("result", status="success", output=[1, 2, 3])]
    assert states(*chunks, of="completed_count") == [None, 1, 2, 3, 3]
    (last,) = mx.WorkflowRunOutput([*chunks, finished()]).steps.run().values()
    assert (last.status, last.completed_count, last.total_count, last.output) == ("success", 3, 3, [1, 2, 3])


def test_steps_that_wait_and_are_suspended() -> None:
    chunks = [
        *(step("start", name, status="running") for name in "abc"),
        step("suspended", "a", status="suspended", suspendPayload={"ask": 1}),
        step("waiting", "b", status="waiting"),
        step("suspended", "c"),
        finished("suspended"),
    ]
    output = mx.WorkflowRunOutput(chunks)
    full = output.get_full_output().run()
    assert {name: step.status for name, step in full.steps.items()} == {
        "a": "suspended",
        "b": "waiting",
        "c": "suspended",
    }
    assert full.suspended == ("a", "c")
    assert full.steps["a"].suspend_payload == {"ask": 1}
    assert (output.status, output.result.run(), output.is_over) == ("suspended", None, True)


def test_a_step_that_is_tried_again() -> None:
    chunks = [
        step("start", status="running", payload={"x": 1}),
        step("result", status="failed", error={"message": "busy"}, endedAt=1),
        step("start", status="running", payload={"x": 1}),
        step("result", status="success", output=2, endedAt=2),
    ]
    assert states(*chunks, of="starts") == [1, 1, 2, 2]
    assert [str(error) for error in states(*chunks, of="error")] == ["None", "busy", "None", "None"]
    assert states(*chunks, of="output") == [None, None, None, 2]
    assert states(*chunks, of="input") == [{"x": 1}] * 4


def test_the_step_that_failed_is_blamed_not_one_that_was_tried_again() -> None:
    chunks = [
        step("start", "a", status="running"),
        step("result", "a", status="failed", error={"message": "busy"}),
        step("start", "a", status="running"),
        step("result", "a", status="success", output=1),
        step("start", "b", status="running"),
        step("result", "b", status="failed", error={"message": "broken"}),
        finished("failed"),
    ]
    with pytest.raises(mx.AgentError, match="step b: broken"):
        mx.WorkflowRunOutput(chunks).result.run()


def test_a_step_of_a_loop_has_the_output_of_its_last_round() -> None:
    rounds = [chunk for n in (1, 2, 3) for chunk in (step("start", status="running"), step("result", output=n))]
    (last,) = mx.WorkflowRunOutput([*rounds, finished()]).steps.run().values()
    assert (last.output, last.starts) == (3, 3)


def test_a_state_stays_as_it_was_told() -> None:
    seen = Seen(mx.WorkflowRunOutput([step("start", status="running"), step("result", status="success")]).step_stream)
    assert [each.status for each in seen.items] == ["running", "success"]


# ---- Ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", ["error", "errorMessage"])
def test_why_it_failed_where_the_finish_says_so(told: str) -> None:
    reason: Any = {"message": "no"} if told == "error" else "no"
    output = mx.WorkflowRunOutput([finished("failed", metadata={told: reason})])
    with pytest.raises(mx.AgentError, match=r"^no$"):
        output.result.run()


@pytest.mark.parametrize(("kind", "status"), [("workflow-canceled", "canceled"), ("workflow-paused", "paused")])
def test_a_run_that_was_stopped(kind: str, status: str) -> None:
    output = mx.WorkflowRunOutput([step("start", status="running"), {"type": kind, "payload": {}}])
    assert (output.result.run(), output.status) == (None, status)


@pytest.mark.parametrize("status", ["tripwire", "canceled", "paused", "waiting"])
def test_the_other_statuses(status: str) -> None:
    output = mx.WorkflowRunOutput([finished(status)])
    assert (output.result.run(), output.status) == (None, status)


def test_a_stream_that_breaks_off() -> None:
    output = mx.WorkflowRunOutput([step("start", status="running"), step("result", status="success", output=1)])
    with pytest.raises(mx.StreamInterrupted) as broken:
        output.result.run()
    assert broken.value.partial.steps["a"].output == 1
    assert output.status == "running"


def test_a_source_that_fails() -> None:
    output = mx.WorkflowRunOutput(then_raise([step("start", status="running")], ConnectionError("gone")))
    with pytest.raises(mx.SourceError):
        output.result.run()
    assert output.status == "failed"
    assert output.get_full_output().run().steps["a"].status == "running"


def test_usage_of_agents_inside_is_summed_whatever_it_looks_like() -> None:
    def inner(**payload: Any) -> Wire:
        return step("output", output={"type": "finish", "from": "AGENT", "payload": payload})

    chunks = [
        inner(usage={"inputTokens": 1, "outputTokens": "2", "totalTokens": 3}),
        inner(output={"usage": {"inputTokens": 10, "totalTokens": 30}}),
        inner(),
        step("output", output={"type": "note"}),
        step("output", output="text"),
        finished(),
    ]
    usage = mx.WorkflowRunOutput(chunks).usage.run()
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.reasoning_tokens) == (11, 2, 33, 0)


def test_the_agents_inside_are_outputs_and_are_in_the_usage_tree() -> None:
    output = mx.WorkflowRunOutput(Recording("workflow-agent-step").wire)
    (inner,) = output.nested
    assert inner.text.run()
    assert output.usage_tree.run().total.total_tokens == output.usage.run().total_tokens
