"""Workflows: start, suspend and resume, failures, parallel steps, and runs seen again."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

import mastra_rx as mx
from tests.live.conftest import MastraServer


def types(output: Any) -> list[str]:
    return [chunk.type for chunk in output.full_stream]


def test_two_steps(client: mx.MastraClient) -> None:
    output = client.workflow("two-steps").start({"x": 20})
    assert [(step.id, step.status) for step in output.step_stream] == [
        ("double", "running"),
        ("double", "success"),
        ("increment", "running"),
        ("increment", "success"),
    ]
    assert output.result.run() == {"x": 41}
    assert (output.status, output.error) == ("success", None)
    steps = output.steps.run()
    assert (steps["double"].input, steps["double"].output) == ({"x": 20}, {"x": 40})
    assert (steps["increment"].input, steps["increment"].output) == ({"x": 40}, {"x": 41})
    assert steps["double"].started_at <= steps["increment"].ended_at  # type: ignore[operator]
    assert output.usage.run().total_tokens == 0


def test_in_asyncio(mastra: MastraServer) -> None:
    async def main() -> None:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            workflow = client.workflow("two-steps")
            run_id = await workflow.create_run()
            output = workflow.stream({"x": 1}, run_id=run_id)
            assert await output.result == {"x": 3}
            assert output.run_id == run_id
            assert [step.id async for step in output.step_stream if step.status == "success"] == ["double", "increment"]

    asyncio.run(main())


def test_a_run_is_seen_again_from_any_chunk(client: mx.MastraClient) -> None:
    workflow = client.workflow("two-steps")
    output = workflow.start({"x": 20})
    chunks = [mx.to_wire(chunk) for chunk in output.full_stream]
    assert output.run_id is not None
    for offset in range(len(chunks)):
        again = workflow.observe(output.run_id, offset)
        assert [mx.to_wire(chunk) for chunk in again.full_stream] == chunks[offset:]
        assert again.result.run() == {"x": 41}


def test_a_run_that_is_over_is_not_run_again(client: mx.MastraClient) -> None:
    workflow = client.workflow("two-steps")
    output = workflow.start({"x": 20})
    output.consume_stream().run()
    assert output.run_id is not None
    with pytest.raises(mx.SourceError, match="already finished") as caught:
        workflow.stream({"x": 20}, run_id=output.run_id).result.run()
    assert caught.value.status == 409


def test_suspend_and_resume(client: mx.MastraClient) -> None:
    workflow, run_id = client.workflow("suspend-resume"), f"run-{uuid.uuid4()}"
    output = workflow.start({"x": 3}, run_id=run_id)
    assert output.result.run() is None
    assert output.status == "suspended"
    full = output.get_full_output().run()
    assert (full.suspended, full.error) == (("ask-for-add",), None)
    assert full.steps["ask-for-add"].suspend_payload["ask"] == "How much to add?"

    resumed = workflow.resume_stream({"add": 5}, run_id=run_id, step="ask-for-add")
    assert resumed.result.run() == {"x": 11}
    assert resumed.status == "success"

    whole = workflow.observe(run_id)
    assert types(whole) == types(output) + types(resumed)
    assert (whole.result.run(), whole.status) == ({"x": 11}, "success")
    assert whole.steps.run()["ask-for-add"].starts == 2


def test_a_step_that_fails(client: mx.MastraClient) -> None:
    output = client.workflow("failing").start({"x": 3})
    with pytest.raises(mx.AgentError, match="step explode: step exploded"):
        output.result.run()
    assert (output.status, str(output.error)) == ("failed", "step explode: step exploded")
    steps = output.steps.run()
    assert (steps["double"].status, steps["explode"].status) == ("success", "failed")
    assert str(steps["explode"].error) == "step exploded"
    assert output.get_full_output().run().error is output.error


def test_input_that_does_not_fit(client: mx.MastraClient) -> None:
    output = client.workflow("two-steps").start({"x": "twenty"})
    with pytest.raises(mx.AgentError, match="expected number, received string") as caught:
        output.result.run()
    assert caught.value.code == "WORKFLOW_SCHEMA_VALIDATION_FAILED"


def test_parallel_steps_and_foreach(client: mx.MastraClient) -> None:
    output = client.workflow("parallel-foreach").start({"x": 20})
    seen = list(output.step_stream)
    assert [step.id for step in seen[:2]] == ["double", "increment"]  # both run before one of them is done
    assert [step.status for step in seen[:2]] == ["running", "running"]
    counts = [step.completed_count for step in seen if step.id == "triple" and step.completed_count is not None]
    assert counts[:3] == [1, 2, 3]
    assert output.result.run() == [{"x": 120}, {"x": 63}, {"x": 300}]
    assert output.steps.run()["triple"].total_count == 3


def test_an_agent_inside_a_step(client: mx.MastraClient) -> None:
    output = client.workflow("agent-step").start({"prompt": "hi"})
    assert output.result.run() == {"text": "Hello from Mastra."}
    assert output.usage.run().total_tokens == 24
    inner = [chunk.payload.output for chunk in output.full_stream if chunk.type == "workflow-step-output"]
    agent: mx.MastraModelOutput[Any] = mx.MastraModelOutput(inner)
    assert list(agent.text_stream) == ["Hello ", "from ", "Mastra", "."]
    assert agent.usage.run().total_tokens == 24


def test_what_is_not_there(client: mx.MastraClient) -> None:
    with pytest.raises(mx.SourceError) as caught:
        client.workflow("nope").start({}).result.run()
    assert caught.value.status == 404
    assert "double" in client.workflow("two-steps").details().run()["steps"]
