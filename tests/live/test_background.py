"""Background tasks: a run until idle covers all turns, and each call has its real result. And a network of agents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import mastra_rx as mx
from tests.live.conftest import MastraServer

Fresh = Callable[[], dict[str, str]]


def turns(mastra: MastraServer, output: mx.MastraModelOutput[Any]) -> list[dict[str, Any]]:
    """What the server's outputs, one for each turn, resolved to."""
    run_ids = dict.fromkeys(chunk.run_id for chunk in output.full_stream if chunk.type == "start")
    return [mastra.views(run_id)["promises"] for run_id in run_ids if run_id is not None]


def test_until_idle(mastra: MastraServer, client: mx.MastraClient, fresh: Fresh) -> None:
    output = client.agent("background").until_idle("Hello", memory=fresh())
    assert "".join(output.text_stream).startswith("Started.Heard of call_")
    pairs = {pair.tool_call_id: pair for pair in output.tool_pairs}
    assert pairs["call_1"].result == {"topic": "topic 1", "answer": 42}
    assert pairs["call_2"].result == {"topic": "topic 2", "archived": True}
    assert not any(pair.is_placeholder for pair in pairs.values())
    assert output.status == "success"

    first, second = turns(mastra, output)
    # The agent has memory, so its second output begins with the text of the first; together they are ours (D12).
    assert first["text"]["value"] == "Started."
    assert output.text.run() == second["text"]["value"] == "".join(output.text_stream)
    usage = mx.to_wire(output.usage.run())
    for name in ("inputTokens", "outputTokens", "totalTokens"):
        assert usage[name] == sum(turn["usage"]["value"][name] for turn in (first, second))
    assert len(output.steps.run()) == len(first["steps"]["value"]) + len(second["steps"]["value"])


def test_until_idle_in_asyncio(mastra: MastraServer, fresh: Fresh) -> None:
    async def main() -> tuple[str, list[str]]:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            output = client.agent("background").until_idle("Hello", memory=fresh())
            return await output.text, [pair.state async for pair in output.tool_pairs]

    text, states = asyncio.run(main())
    assert text.startswith("Started.Heard of")
    assert states == ["result", "result"]


def test_the_turns_may_have_one_run_id(mastra: MastraServer, client: mx.MastraClient, fresh: Fresh) -> None:
    memory = fresh()
    run_id = f"run-{memory['thread']}"
    output = client.agent("background").until_idle("Hello", memory=memory, run_id=run_id)
    assert output.text.run().startswith("Started.Heard of call_")
    assert output.run_id == run_id
    segments = [mastra.views(run_id, segment)["promises"] for segment in (0, 1)]
    assert segments[0]["text"]["value"] == "Started."
    assert output.usage.run().input_tokens == sum(one["usage"]["value"]["inputTokens"] for one in segments)


def test_until_idle_as_an_option(client: mx.MastraClient, fresh: Fresh) -> None:
    output = client.agent("background").stream("Hello", memory=fresh(), until_idle=True)
    assert output.text.run().startswith("Started.Heard of call_")


def test_nothing_is_awaited_longer_than_asked(client: mx.MastraClient, fresh: Fresh) -> None:
    """The server ends the stream; what did not come is a placeholder."""
    output = client.agent("background").until_idle("Hello", memory=fresh(), max_idle=0.03)
    assert output.text.run() == "Started."
    assert output.status == "success"
    pairs = {pair.tool_call_id: pair for pair in output.tool_pairs}
    assert pairs["call_2"].is_placeholder


def test_a_task_that_fails(mastra: MastraServer, client: mx.MastraClient, fresh: Fresh) -> None:
    output = client.agent("background-fail").until_idle("Hello", memory=fresh())
    assert output.text.run() == "Started.Heard of call_1."
    [pair] = output.tool_pairs
    assert pair.state == "error"
    assert "doomed failed on topic 1" in str(pair.error)
    assert output.status == "success"
    assert output.text.run() == turns(mastra, output)[-1]["text"]["value"]


def test_tasks_are_listed(mastra: MastraServer, client: mx.MastraClient, fresh: Fresh) -> None:
    output = client.agent("background-suspend").until_idle("Hello", memory=fresh())
    assert output.text.run() == "Started.Heard of call_1."
    suspended = next(chunk for chunk in output.full_stream if chunk.type == "background-task-suspended")
    task_id = suspended.payload.task_id
    listed = client.background_tasks.list(run_id=output.run_id).run()
    assert [task["id"] for task in listed["tasks"]] == [task_id]
    assert client.background_tasks.get(task_id).run()["status"] == "suspended"
    with pytest.raises(mx.SourceError) as caught:  # this version of the server has no such route
        client.background_tasks.resume(task_id, {"answer": "yes"}).run()
    assert caught.value.status == 404
    mastra.post(f"/_test/background-tasks/{task_id}/resume", {"resumeData": {"answer": "yes"}})


def test_what_happens_to_tasks_can_be_watched(client: mx.MastraClient, fresh: Fresh) -> None:
    with client.background_tasks.stream(agent_id="background") as watched:
        types: list[str] = []
        started = client.agent("background")
        chunks = iter(watched.full_stream)
        output = started.until_idle("Hello", memory=fresh())
        output.consume_stream()
        for chunk in chunks:
            types.append(chunk.type)
            if types.count("background-task-completed") == 2:
                break
        output.text.run()
    assert "background-task-running" in types


def test_a_suspended_tool_and_then_a_task(client: mx.MastraClient, fresh: Fresh) -> None:
    agent, memory = client.agent("suspend-then-background"), fresh()
    first = agent.until_idle("Hello", memory=memory)
    assert first.finish_reason.run() == "suspended"
    assert first.run_id is not None
    second = agent.resume_stream({"answer": "yes"}, run_id=first.run_id, tool_call_id="call_1", memory=memory)
    assert second.text.run() == "Started."
    assert second.status == "success"


def test_a_network(mastra: MastraServer, client: mx.MastraClient, fresh: Fresh) -> None:
    output = client.agent("network").network("Hello", max_steps=3, memory=fresh())
    types = [chunk.type for chunk in output.full_stream]
    assert types[0] == "routing-agent-start"
    assert types[-1] == "network-execution-event-finish"
    assert "agent-execution-event-text-delta" in types
    assert output.status == "success"
    assert output.run_id is not None
    theirs = mastra.views(output.run_id)
    assert theirs["status"] == "success"
    finish = list(output.full_stream)[-1]
    assert mx.to_wire(finish)["payload"]["result"] == "Network answer"
    usage = theirs["promises"]["usage"]["value"]
    assert mx.to_wire(finish)["payload"]["usage"]["inputTokens"] == usage["inputTokens"]
    assert output.usage.run().input_tokens == usage["inputTokens"]
