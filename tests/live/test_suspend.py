"""Runs that wait: for an approval, or for data that resumes them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import mastra_rx as mx
from tests.live.comparing import assert_same
from tests.live.conftest import MastraServer

RESUMED = ("steps", "toolCalls")
"""The server's output of a resumed run remembers its first half, which came in an earlier stream."""


def suspended(mastra: MastraServer, client: mx.MastraClient, agent: str) -> str:
    output = client.agent(agent).stream("Hello")
    output.consume_stream().run()
    assert (output.finish_reason.run(), output.status) == ("suspended", "suspended")
    assert output.suspend_payload.run().tool_call_id == "call_1"
    assert output.resume_schema.run() is not None
    assert [pair.state for pair in output.tool_pairs] == ["unresolved"]
    assert output.get_full_output().run().error is None
    assert_same(mastra, output)
    assert output.run_id is not None
    return output.run_id


def test_an_approval(mastra: MastraServer, client: mx.MastraClient) -> None:
    run_id = suspended(mastra, client, "approval")
    output = client.agent("approval").approve_tool_call(run_id, "call_1")
    assert output.text.run() == 'Tool said: {"sent":100}'
    [pair] = output.tool_pairs
    assert (pair.tool_name, pair.state, pair.result, pair.is_orphan) == ("wireMoney", "result", {"sent": 100}, True)
    assert_same(mastra, output, *RESUMED)


def test_a_refusal(mastra: MastraServer, client: mx.MastraClient) -> None:
    run_id = suspended(mastra, client, "approval")
    output = client.agent("approval").decline_tool_call(run_id, "call_1")
    assert output.text.run() == 'Tool said: "Tool call was not approved by the user"'
    [pair] = output.tool_pairs
    assert (pair.state, str(pair.error)) == ("denied", "Tool call was not approved by the user")
    assert_same(mastra, output, *RESUMED)


def test_an_approval_in_asyncio(mastra: MastraServer) -> None:
    async def main() -> None:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            agent = client.agent("approval")
            first = agent.stream("Hello")
            waiting: Any = await first.suspend_payload
            assert first.run_id is not None
            second = agent.approve_tool_call(first.run_id, waiting.tool_call_id)
            assert [piece async for piece in second.text_stream] == ["Tool said: ", '{"sent":100}']

    asyncio.run(main())


def test_approvals_one_after_the_other(mastra: MastraServer, client: mx.MastraClient) -> None:
    """`require_tool_approval` holds for the whole run; parallel calls are asked for one by one."""
    agent = client.agent("tools")
    output = agent.stream("Hello", require_tool_approval=True)
    asked = []
    while (waiting := output.suspend_payload.run()) is not None:
        asked.append(waiting.tool_call_id)
        assert output.status == "suspended"
        assert output.run_id is not None
        output = agent.approve_tool_call(output.run_id, waiting.tool_call_id)
    assert asked == ["call_1", "call_2", "call_3"]
    assert output.status == "success"
    assert "".join(output.text_stream) == "It is 09:30 in Oslo, and 21.5 everywhere."


def test_a_tool_that_suspends(mastra: MastraServer, client: mx.MastraClient) -> None:
    run_id = suspended(mastra, client, "suspend")
    output = client.agent("suspend").resume_stream({"answer": "yes"}, run_id=run_id, tool_call_id="call_1")
    assert output.text.run() == 'Human said: {"question":"Really?","answer":"yes"}'
    assert_same(mastra, output, *RESUMED)


@pytest.mark.parametrize("finished", [False, True])
def test_a_run_that_does_not_wait(finished: bool, mastra: MastraServer, client: mx.MastraClient) -> None:
    agent = client.agent("approval")
    run_id = "nope"
    if finished:
        run_id = suspended(mastra, client, "approval")
        agent.approve_tool_call(run_id, "call_1").consume_stream().run()
    output = agent.approve_tool_call(run_id, "call_1")
    with pytest.raises(mx.SourceError, match="could not find a suspended run") as caught:
        output.text.run()
    assert caught.value.status == 500
