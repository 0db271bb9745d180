"""Networks: what the routing agent chose, and what the run came to."""

from __future__ import annotations

from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import Wire, error, then_raise
from tests.conftest import Recording, recordings
from tests.test_conformance import without_undefined

RECORDED = [recording for recording in recordings() if recording.name.startswith("network-")]


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_a_recorded_run_comes_to_what_it_did(recording: Recording) -> None:
    told = {name: without_undefined(promise.get("value")) for name, promise in recording.expected["promises"].items()}
    output = mx.NetworkRunOutput(recording.wire)
    full = output.get_full_output().run()
    assert output.status == full.status == told["status"]
    assert full.object == told["object"]
    assert output.usage.run().__to_wire__() == told["usage"]
    assert full.result == output.result.run() == recording.wire[-1]["payload"]["result"]
    assert full.completion_reason == recording.wire[-1]["payload"]["completionReason"]
    assert [mx.to_wire(chunk) for chunk in output.full_stream] == recording.wire


def test_the_recorded_decision() -> None:
    output = mx.NetworkRunOutput(Recording("network-basic").wire)
    chosen, done = output.decisions
    assert (chosen.iteration, chosen.primitive_type, chosen.primitive_id) == (0, "agent", "researcher")
    assert (chosen.prompt, chosen.reason) == ("find facts", "Needs research")
    assert (chosen.is_done, chosen.result) == (False, None)
    assert (done.is_done, done.result) == (True, "Sub facts")
    assert done.usage.total_tokens == 18
    assert list(output.text_stream) == ["Network ", "answer"]
    assert output.get_full_output().run().text == "Network answer"


def test_the_text_of_the_agents_it_chose_is_not_its_own() -> None:
    chunks = mx.from_chunks(Recording("network-basic").wire)
    assert list(mx.as_view(chunks.pipe(ops.text_deltas()))) == []
    (inner,) = mx.as_view(chunks.pipe(ops.nested()))
    assert "".join(mx.as_view(inner.pipe(ops.text_deltas()))) == "Sub facts"


def test_the_agents_it_chose_are_outputs_and_are_in_the_usage_tree() -> None:
    output = mx.NetworkRunOutput(Recording("network-basic").wire)
    assert [run.text.run() for run in output.nested] == ["Sub facts"]
    assert output.usage_tree.run().total.total_tokens == output.usage.run().total_tokens


# ---- Made by hand ----------------------------------------------------------------------------------------------------


def routed(iteration: int, kind: str, name: str, **payload: Any) -> Wire:
    told = {"iteration": iteration, "primitiveType": kind, "primitiveId": name, "prompt": "p", "selectionReason": "r"}
    return {"type": "routing-agent-end", "runId": "net", "payload": {**told, "usage": {"totalTokens": 1}, **payload}}


def executed(kind: str, result: Any, **payload: Any) -> Wire:
    return {"type": f"{kind}-execution-end", "runId": "net", "payload": {"result": result, **payload}}


def finished(**payload: Any) -> Wire:
    told = {"result": "answer", "completionReason": "done", "usage": {"totalTokens": 9}}
    return {"type": "network-execution-event-finish", "runId": "net", "payload": {**told, **payload}}


def test_several_decisions() -> None:
    chunks = [
        routed(0, "agent", "a"),
        executed("agent", "of a"),
        routed(1, "workflow", "w"),
        executed("workflow", {"of": "w"}),
        routed(2, "tool", "t"),
        executed("tool", [1]),
        routed(3, "none", "", result="that is all"),
        finished(),
    ]
    full = mx.NetworkRunOutput(chunks).get_full_output().run()
    assert [(d.iteration, d.primitive_type, d.result, d.is_done) for d in full.decisions] == [
        (0, "agent", "of a", True),
        (1, "workflow", {"of": "w"}, True),
        (2, "tool", [1], True),
        (3, "none", "that is all", True),
    ]
    assert (full.status, full.result, full.usage.total_tokens) == ("success", "answer", 9)


def test_decisions_are_told_when_made_and_when_done() -> None:
    output = mx.NetworkRunOutput([routed(0, "agent", "a"), executed("agent", 1), routed(1, "none", "", result=2)])
    assert [(d.iteration, d.is_done) for d in output.decisions] == [(0, False), (0, True), (1, True)]


def test_an_object_as_it_grows_and_as_it_ended() -> None:
    grown = [{"type": "network-object", "payload": {"object": {"a": 1}}}]
    result = [{"type": "network-object-result", "payload": {"object": {"a": 1, "b": 2}}}]
    assert mx.NetworkRunOutput([*grown, finished()]).object.run() == {"a": 1}
    assert mx.NetworkRunOutput([*grown, *result, finished()]).object.run() == {"a": 1, "b": 2}
    assert mx.NetworkRunOutput([*grown, finished(object={"c": 3})]).object.run() == {"c": 3}
    assert mx.NetworkRunOutput([finished()]).object.run() is None


@pytest.mark.parametrize(
    "kind", ["agent-execution-suspended", "workflow-execution-suspended", "tool-execution-approval"]
)
def test_a_network_that_waits(kind: str) -> None:
    payload = {"toolCallId": "c", "toolName": "t", "args": {}, "runId": "r"}
    output = mx.NetworkRunOutput([routed(0, "agent", "a"), {"type": kind, "payload": payload}])
    assert output.result.run() is None
    assert (output.status, output.usage.run().total_tokens) == ("suspended", 1)
    (decision,) = output.get_full_output().run().decisions
    assert not decision.is_done


@pytest.mark.parametrize("kind", ["abort", "routing-agent-abort"])
def test_a_network_that_was_stopped(kind: str) -> None:
    output = mx.NetworkRunOutput([routed(0, "agent", "a"), {"type": kind, "payload": {}}])
    assert output.result.run() is None
    assert output.status == "canceled"


def test_a_network_that_fails() -> None:
    output = mx.NetworkRunOutput([routed(0, "agent", "a"), error({"message": "overloaded"})])
    with pytest.raises(mx.AgentError, match="overloaded"):
        output.result.run()
    assert output.status == "failed"
    assert len(output.get_full_output().run().decisions) == 1


def test_an_error_inside_an_agent_is_not_the_networks() -> None:
    inner = {
        "type": "agent-execution-event-error",
        "payload": {"type": "error", "runId": "r", **error({"message": "x"})},
    }
    output = mx.NetworkRunOutput([routed(0, "agent", "a"), inner, finished()])
    assert output.result.run() == "answer"


def test_a_stream_that_breaks_off() -> None:
    output = mx.NetworkRunOutput([routed(0, "agent", "a")])
    with pytest.raises(mx.StreamInterrupted) as broken:
        output.result.run()
    assert broken.value.partial.decisions[0].primitive_id == "a"


def test_a_source_that_fails() -> None:
    output = mx.NetworkRunOutput(then_raise([routed(0, "agent", "a")], ConnectionError("gone")))
    with pytest.raises(mx.SourceError):
        output.result.run()
    assert output.status == "failed"
