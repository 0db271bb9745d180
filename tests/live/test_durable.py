"""Durable agents: runs that are seen again, from any chunk, while they run and after their end."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from typing import Any

import pytest

import mastra_rx as mx
from tests.live.comparing import assert_same
from tests.live.conftest import MastraServer

TYPES = [
    "start",
    "step-start",
    "response-metadata",
    "text-start",
    "text-delta",
    "text-delta",
    "text-delta",
    "text-end",
    "step-finish",
    "finish",
]


def new_id() -> str:
    return f"run-{uuid.uuid4()}"


def test_a_durable_run(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("durable").stream("Hello", run_id=new_id())
    assert [chunk.type for chunk in output.full_stream] == TYPES
    assert output.text.run() == "Durable hello."
    assert_same(mastra, output)


@pytest.mark.parametrize("offset", [0, 3, 5, 9])
def test_it_is_seen_again_from_an_offset(offset: int, mastra: MastraServer, client: mx.MastraClient) -> None:
    agent, run_id = client.agent("durable"), new_id()
    agent.stream("Hello", run_id=run_id).consume_stream().run()
    output = agent.observe(run_id, offset)
    assert [chunk.type for chunk in output.full_stream] == TYPES[offset:]
    pieces = ["Durable ", "hello", "."]
    assert list(output.text_stream) == pieces[max(0, offset - 4) :]
    assert output.finish_reason.run() == "stop"
    assert output.run_id == run_id
    if offset == 0:
        assert_same(mastra, output)


def test_two_see_a_run_live(mastra: MastraServer) -> None:
    async def main() -> None:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            agent, run_id = client.agent("durable-slow"), new_id()
            first = agent.stream("Hello", run_id=run_id)
            async for _ in first.text_stream:
                break
            second = agent.observe(run_id, 5)
            text = "".join(f"d{n} " for n in range(40))
            assert await second.text == text.removeprefix("d0 ")
            assert await first.text == text

    asyncio.run(main())


def test_leaving_the_stream_aborts_the_run_which_can_still_be_seen(
    mastra: MastraServer, client: mx.MastraClient
) -> None:
    agent, run_id, prompt = client.agent("durable-slow"), new_id(), f"left {uuid.uuid4()}"
    output = agent.stream(prompt, run_id=run_id)
    pieces = list(itertools.islice(output.text_stream, 4))
    output.dispose()
    assert len(mastra.aborts(prompt)) == 1
    again = agent.observe(run_id)
    assert "".join(again.text_stream).startswith("".join(pieces))
    assert again.finish_reason.run() == "abort"


def test_leaving_an_observer_does_not_abort_the_run(mastra: MastraServer, client: mx.MastraClient) -> None:
    agent, run_id, prompt = client.agent("durable-slow"), new_id(), f"watched {uuid.uuid4()}"
    output = agent.stream(prompt, run_id=run_id)
    output.consume_stream()
    next(iter(output.text_stream))
    with agent.observe(run_id) as watcher:
        next(iter(watcher.text_stream))
    assert output.text.run() == "".join(f"d{n} " for n in range(40))
    assert [abort for abort in mastra.get("/_test/aborts") if abort["user"] == prompt] == []


def test_a_durable_run_with_tools(mastra: MastraServer, client: mx.MastraClient) -> None:
    agent, run_id = client.agent("durable-tools"), new_id()
    output = agent.stream("Hello", run_id=run_id)
    assert output.text.run() == 'Done: {"city":"Oslo","tempC":21.5}'
    assert_same(mastra, output)
    again = agent.observe(run_id)
    assert [(pair.tool_name, pair.result) for pair in again.tool_pairs] == [
        ("weather", {"city": "Oslo", "tempC": 21.5})
    ]
    assert again.text.run() == output.text.run()
    assert mx.to_wire(again.usage.run()) == mx.to_wire(output.usage.run())


def test_a_durable_stream_goes_on_after_an_approval(client: mx.MastraClient) -> None:
    """It does not end at the approval: who waits for it gets the rest too."""
    agent, run_id = client.agent("durable-approval"), new_id()
    output = agent.stream("Hello", run_id=run_id)
    types: list[Any] = []
    for chunk in output.full_stream:
        types.append(chunk.type)
        if chunk.type == "tool-call-approval":
            approved = agent.approve_tool_call(run_id, "call_1")
            assert approved.text.run() == 'Tool said: {"sent":100}'
    assert types[-1] == "finish"
    assert output.text.run() == 'Tool said: {"sent":100}'


@pytest.mark.parametrize("agent", ["durable", "text"])
def test_a_run_that_the_server_does_not_keep_is_silent(agent: str, mastra: MastraServer) -> None:
    with mx.MastraClient(mastra.base_url, idle_timeout=0.1, backoff=0.01) as client:
        output = client.agent(agent).observe(new_id())
        with pytest.raises(mx.StreamInterrupted, match="silence"):
            output.text.run()
