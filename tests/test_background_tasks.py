"""Background tasks: one live value a task, from the agent's stream and the task manager's, merged in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import START, Seen, Wire, finish, of_a_server, text, tool_call, tool_result
from tests.conftest import Recording, recordings

# ---- The recordings --------------------------------------------------------------------------------------------------

RECORDED = [recording for recording in recordings() if recording.name.startswith("bg-")]

ENDS: dict[str, list[str]] = {
    "bg-cancelled": ["cancelled"],
    "bg-chained": ["completed", "completed"],
    "bg-completed": ["completed"],
    "bg-failed": ["failed"],
    "bg-fast": ["completed"],
    "bg-idle-timeout": ["running"],
    "bg-manager-stream": ["completed"],
    "bg-output": ["completed"],
    "bg-plain-stream": ["started"],
    "bg-progress-wait": ["started"],
    "bg-suspended": ["suspended"],
    "bg-timeout": ["failed"],
}
"""How the recorded tasks ended."""


def test_every_recording_is_looked_at() -> None:
    assert {recording.name for recording in RECORDED} == set(ENDS)


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_a_recorded_task_ends_as_it_did(recording: Recording) -> None:
    tasks = last_states(recording.wire)
    assert [task.state for task in tasks] == ENDS[recording.name]
    for task in tasks:
        assert task.tool_name == "research"
        assert task.run_id == recording.wire[0].get("runId", "run-bg-manager-stream")
        assert task.is_over == (task.ended_at is not None)
        assert task.late == ()


@pytest.mark.parametrize("recording", [r for r in RECORDED if b"task-running" in r.path.read_bytes()], ids=str)
def test_a_recorded_task_knows_its_call(recording: Recording) -> None:
    calls = {c["payload"]["toolCallId"]: c["payload"]["args"] for c in recording.wire if c["type"] == "tool-call"}
    for task in last_states(recording.wire):
        assert task.args == calls.get(task.tool_call_id, {"topic": "a"})  # the manager's own stream has no calls
        assert task.agent_id == "worker"
        assert task.started_at is not None


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_what_the_chunks_say_is_what_the_tasks_say(recording: Recording) -> None:
    said = {c["type"]: c["payload"] for c in recording.wire if c["type"].startswith("background-task-")}
    task = last_states(recording.wire)[-1]
    assert task.result == said.get("background-task-completed", {}).get("result")
    if failed := said.get("background-task-failed"):
        assert task.error is not None
        assert str(task.error) == failed["error"]["message"]
    assert task.suspend_payload == said.get("background-task-suspended", {}).get("suspendPayload")
    outputs = [c["payload"]["payload"] for c in recording.wire if c["type"] == "background-task-output"]
    assert task.output == outputs


def test_each_state_is_told_once_and_stays_as_it_was() -> None:
    output = mx.MastraModelOutput(Recording("bg-output").wire)
    states = list(output.background_tasks)
    assert [(task.state, len(task.output)) for task in states] == [
        ("started", 0),
        ("running", 0),
        ("running", 1),
        ("running", 2),
        ("completed", 2),
    ]
    assert list(output.background_tasks) == states  # late readers see the same


# ---- The call that a task runs for -----------------------------------------------------------------------------------


def test_the_pair_settles_with_the_real_result_not_with_the_placeholder() -> None:
    (pair,) = mx.MastraModelOutput(Recording("bg-completed").wire).tool_pairs
    assert (pair.state, pair.result, pair.is_placeholder) == ("result", {"topic": "solana", "answer": 42}, False)
    assert pair.outcome is not None
    assert pair.outcome.type == "background-task-completed"


def test_a_result_that_comes_twice_settles_once() -> None:
    """A task that ends while its turn still streams tells its result twice: as a tool result, and as completed."""
    pairs = list(mx.MastraModelOutput(Recording("bg-fast").wire).tool_pairs)
    assert [(pair.state, pair.result) for pair in pairs] == [("result", {"topic": "solana", "ok": True})]
    assert pairs[0].outcome is not None
    assert pairs[0].outcome.type == "tool-result"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("bg-failed", "job crashed"),
        ("bg-timeout", "Task timed out after 80ms"),
        ("bg-cancelled", "the background task was cancelled"),
    ],
)
def test_the_pair_of_a_task_that_did_not_make_it(name: str, why: str) -> None:
    (pair,) = mx.MastraModelOutput(Recording(name).wire).tool_pairs
    assert (pair.state, str(pair.error), pair.is_placeholder) == ("error", why, False)


@pytest.mark.parametrize("name", ["bg-plain-stream", "bg-idle-timeout", "bg-progress-wait", "bg-suspended"])
def test_the_pair_of_a_task_that_has_not_ended_has_the_placeholder(name: str) -> None:
    (pair,) = mx.MastraModelOutput(Recording(name).wire).tool_pairs
    assert pair.is_placeholder
    assert pair.result.startswith("Background task started. Task ID: ")


def test_the_placeholder_is_known_by_its_words_where_the_metadata_is_missing() -> None:
    words = "Background task started. Task ID: k. The tool runs in the background."
    (pair,) = mx.MastraModelOutput([tool_call(), tool_result(result=words), finish()]).tool_pairs
    assert pair.is_placeholder


# ---- What came too late, or twice ------------------------------------------------------------------------------------


def task(kind: str, task_id: str = "k", **payload: Any) -> Wire:
    payload = {"taskId": task_id, "toolName": "f", "toolCallId": f"call-{task_id}", "runId": "run", **payload}
    chunk: Wire = {"type": f"background-task-{kind}", "payload": payload}
    return of_a_server(chunk) if kind == "started" else chunk


def last_states(chunks: list[Wire]) -> list[mx.BackgroundTask]:
    seen = Seen(mx.as_view(mx.from_chunks(chunks).pipe(ops.background_tasks())))
    assert seen.completed == 1
    return list({task.task_id: task for task in seen.items}.values())


@pytest.mark.parametrize("first", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("then", ["completed", "failed", "cancelled", "running", "resumed", "suspended", "output"])
def test_the_first_end_counts_and_what_comes_after_it_is_noted(first: str, then: str) -> None:
    told = {"result": 1} if first == "completed" else {"error": {"message": "no"}} if first == "failed" else {}
    chunks = [task("started"), task(first, **told), task(then, result=2, error={"message": "later"}, payload={})]
    (end,) = last_states(chunks)
    assert (end.state, end.result) == (first, told.get("result"))
    assert str(end.error) == ("no" if first == "failed" else "None")
    assert end.late == (then,)
    assert len(end.output) == 0


def test_a_start_after_the_end_is_not_late() -> None:
    """The agent says `started` and the manager all the rest: a fast task ends before the agent has said so."""
    (end,) = last_states([task("running", args={"x": 1}), task("completed", result=1), task("started")])
    assert (end.state, end.result, end.args, end.late) == ("completed", 1, {"x": 1}, ())


def test_the_same_news_twice_is_told_once() -> None:
    chunks = [task("started"), task("running"), task("running"), task("suspended", suspendPayload=1)]
    output = mx.MastraModelOutput([*chunks, task("suspended", suspendPayload=1), finish()])
    assert [state.state for state in output.background_tasks] == ["started", "running", "suspended"]


def test_a_suspended_task_that_goes_on() -> None:
    chunks = [
        task("running"),
        task("suspended", suspendPayload={"ask": 1}),
        task("resumed"),
        task("completed", result=2),
    ]
    seen = Seen(mx.as_view(mx.from_chunks(chunks).pipe(ops.background_tasks())))
    assert [(task.state, task.suspend_payload) for task in seen.items] == [
        ("running", None),
        ("suspended", {"ask": 1}),
        ("running", None),
        ("completed", None),
    ]


def test_both_names_of_the_payload_of_a_suspension() -> None:
    """The reference calls it `suspendData`, the wire of 1.71.0 `suspendPayload`."""
    states = last_states([task("suspended", "a", suspendData=1), task("suspended", "b", suspendPayload=2)])
    assert [state.suspend_payload for state in states] == [1, 2]


def test_a_result_that_is_an_error() -> None:
    (end,) = last_states([task("completed", result={"message": "broken"}, isError=True)])
    assert (end.state, str(end.error)) == ("completed", "broken")


def test_the_values_of_the_run_do_not_mind() -> None:
    chunks = [START, text("Hi"), task("started"), finish(), task("completed", result=1), task("completed", result=1)]
    output = mx.MastraModelOutput(chunks)
    assert output.text.run() == "Hi"
    assert output.status == "success"


# ---- Any interleaving ------------------------------------------------------------------------------------------------

TASK_IDS = ("k1", "k2", "k3")


@st.composite
def task_lives(draw: st.DrawFn) -> tuple[list[Wire], list[Wire]]:
    """What the agent and the manager say of a few tasks, each in its order."""
    agent: list[Wire] = [START]
    lives: list[list[Wire]] = []
    for task_id in TASK_IDS[: draw(st.integers(1, 3))]:
        call = f"call-{task_id}"
        agent += [tool_call(call), task("started", task_id), tool_result(call, "Background task started. Task ID: x")]
        life = [task("running", task_id, args={"of": task_id}, agentId="worker", startedAt="2026-01-15T09:30:00.001Z")]
        life += [
            task("output", task_id, payload={"type": "data-n", "data": number})
            for number in range(draw(st.integers(0, 3)))
        ]
        if draw(st.booleans()):
            life += [task("suspended", task_id, suspendPayload=1), task("resumed", task_id)]
        match draw(st.sampled_from(["completed", "failed", "cancelled", "suspended", "nothing"])):
            case "completed":
                life.append(task("completed", task_id, result={"of": task_id}))
            case "failed":
                life.append(task("failed", task_id, error={"message": task_id}))
            case "nothing":
                pass
            case kind:
                life.append(task(kind, task_id))
        lives.append(life)
    return [of_a_server(chunk) for chunk in (*agent, text("Started."), finish())], draw(merged(*lives))


@st.composite
def merged(draw: st.DrawFn, *streams: list[Wire]) -> list[Wire]:
    """The streams merged, each in its own order."""
    turns = draw(st.permutations([which for which, stream in enumerate(streams) for _ in stream]))
    iterators = [iter(stream) for stream in streams]
    return [next(iterators[which]) for which in turns]


def summary(chunks: list[Wire]) -> dict[str, Any]:
    return {
        end.task_id: (
            end.state,
            end.result,
            str(end.error),
            list(end.output),
            (end.args, end.agent_id, end.run_id, end.tool_call_id, end.tool_name),
            (end.started_at, end.ended_at, end.suspend_payload, end.late),
        )
        for end in last_states(chunks)
    }


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_any_interleaving_gives_the_same_tasks(data: st.DataObject) -> None:
    agent, manager = data.draw(task_lives())
    interleaved = data.draw(merged(agent, manager))
    assert summary(interleaved) == summary([*agent, *manager])


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_any_interleaving_gives_the_same_pairs(data: st.DataObject) -> None:
    agent, manager = data.draw(task_lives())

    def pairs(chunks: list[Wire]) -> dict[str, Any]:
        full = mx.MastraModelOutput(chunks).get_full_output().run()
        return {p.tool_call_id: (p.state, p.result, str(p.error), p.is_placeholder) for p in full.tool_pairs}

    assert pairs(data.draw(merged(agent, manager))) == pairs([*agent, *manager])


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_a_manager_that_repeats_an_end_changes_nothing_but_the_note(data: st.DataObject) -> None:
    agent, manager = data.draw(task_lives())
    ends = [c for c in manager if c["type"].removeprefix("background-task-") in ("completed", "failed", "cancelled")]
    before, after = summary([*agent, *manager]), summary([*agent, *manager, *ends])
    assert {key: value[:-1] for key, value in after.items()} == {key: value[:-1] for key, value in before.items()}
    for state, *_, (*_, late) in after.values():
        assert late == ((state,) if state in ("completed", "failed", "cancelled") else ())
