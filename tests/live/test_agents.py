"""Agents: text, tools, reasoning, failures, leaving, unicode, and what the server tells about its agents."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from typing import Any

import pytest
from pydantic import BaseModel

import mastra_rx as mx
from tests.live.comparing import assert_same, assert_same_failure
from tests.live.conftest import MastraServer

TEXT = "Hello from Mastra."
PIECES = ["Hello ", "from ", "Mastra", "."]

# ---- text ------------------------------------------------------------------------------------------------------------


def test_text_in_a_script(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("text").stream("Hello")
    assert list(output.text_stream) == PIECES
    assert output.text.run() == TEXT
    assert output.usage.run().total_tokens == 24
    assert (output.finish_reason.run(), output.status, output.error) == ("stop", "success", None)
    assert_same(mastra, output)


def test_text_in_asyncio(mastra: MastraServer) -> None:
    async def main() -> mx.MastraModelOutput[Any]:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            output = client.agent("text").stream("Hello")
            assert [piece async for piece in output.text_stream] == PIECES
            assert await output.text == TEXT
            assert (await output.get_full_output()).text == TEXT
            return output

    assert_same(mastra, asyncio.run(main()))


def test_text_with_callbacks(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("text").stream("Hello")
    pieces: list[str] = []
    output.text_stream.subscribe(pieces.append)
    output.consume_stream().run()
    assert pieces == PIECES
    assert_same(mastra, output)


def test_twenty_runs_at_once(mastra: MastraServer) -> None:
    async def main() -> list[str]:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            outputs = [client.agent("echo").stream(f"This is number {n}.") for n in range(20)]
            texts = await asyncio.gather(*(output.text for output in outputs))
            assert len({output.run_id for output in outputs}) == 20
            return texts

    assert asyncio.run(main()) == [f"This is number {n}." for n in range(20)]


class Message(BaseModel):
    role: str
    content: str


@pytest.mark.parametrize(
    "messages",
    [
        "Say this, please.",
        ["Never mind.", "Say this, please."],
        [{"role": "user", "content": "Say this, please."}],
        [Message(role="user", content="Say this, please.")],
        ({"role": "user", "content": text} for text in ("First.", "Say this, please.")),
    ],
    ids=["a text", "texts", "dicts", "models", "an iterator"],
)
def test_messages(messages: Any, mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("echo").stream(messages)
    assert output.text.run() == "Say this, please."
    assert_same(mastra, output)


def test_the_run_id_may_be_chosen(mastra: MastraServer, client: mx.MastraClient) -> None:
    run_id = f"mine-{uuid.uuid4()}"
    output = client.agent("text").stream("Hello", run_id=run_id)
    assert output.text.run() == TEXT
    assert output.run_id == run_id
    assert_same(mastra, output)


def test_options_reach_the_server(mastra: MastraServer, client: mx.MastraClient) -> None:
    """One that the server knows by another spelling, and one that only stops the tools."""
    output = client.agent("tools").stream("Hello", max_steps=1, model_settings={"temperature": 0.1})
    output.consume_stream().run()
    assert len(output.steps.run()) == 1
    assert output.finish_reason.run() == "tool-calls"
    assert_same(mastra, output)


@pytest.mark.parametrize("wanted", [False, True])
def test_raw_chunks(wanted: bool, mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("text").stream("Hello", include_raw=wanted)
    types = [chunk.type for chunk in output.full_stream]
    assert types.count("raw") == (4 if wanted else 0)
    assert_same(mastra, output)


def test_sources_files_warnings_and_metadata(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("text-extras").stream("Hello")
    assert [source.payload.url for source in output.sources.run()] == ["https://example.com/a"]
    assert len(output.files.run()) == 1
    assert output.warnings.run() == [{"type": "other", "message": "scripted warning"}]
    assert output.provider_metadata.run() == {"scripted": {"cacheHit": True}}
    usage = output.usage.run()
    assert (usage.input_tokens, usage.reasoning_tokens, usage.cached_input_tokens) == (11, 2, 3)
    assert_same(mastra, output)


def test_unicode(mastra: MastraServer, client: mx.MastraClient) -> None:
    """An emoji in two halves, line ends that are none, and the text of the end mark."""
    output = client.agent("unicode").stream("Hello")
    pieces = list(output.text_stream)
    text = "\U0001f600 \u2028 \x85 \x1e \n\ndata: [DONE]\n\nGrüße, 世界\r\n"
    assert "".join(pieces) == output.text.run() == text
    for piece in pieces:
        piece.encode()
    assert_same(mastra, output)


def test_2000_deltas(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("many-deltas").stream("Hello")
    assert list(output.text_stream) == [f"{n} " for n in range(2000)]
    assert_same(mastra, output)


def test_reasoning(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("reasoning").stream("Hello")
    assert list(output.reasoning_stream) == ["First ", "I think.", "Then ", "again."]
    assert output.reasoning.run() == output.reasoning_text.run() == "First I think.Then again."  # D9
    assert len(output.reasoning_parts.run()) == 2
    assert output.text.run() == "The answer is 42."
    assert_same(mastra, output)


# ---- tools -----------------------------------------------------------------------------------------------------------


def test_tools_over_several_steps(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("tools").stream("Hello")
    types = [chunk.type for chunk in output.full_stream]
    assert "data-clock" in types
    assert "tool-output" in types
    pairs = list(output.tool_pairs)
    assert [
        (pair.tool_call_id, pair.tool_name, pair.state) for pair in sorted(pairs, key=lambda p: p.tool_call_id)
    ] == [
        ("call_1", "weather", "result"),
        ("call_2", "clock", "result"),
        ("call_3", "weather", "result"),
    ]
    assert {pair.tool_call_id: pair.result for pair in pairs}["call_3"] == {"city": "Rome", "tempC": 21.5}
    assert len(output.steps.run()) == 3
    assert output.text.run() == "It is 09:30 in Oslo, and 21.5 everywhere."
    assert output.usage.run().input_tokens == 120
    assert_same(mastra, output)


def test_tool_runs_are_seen_live(client: mx.MastraClient) -> None:
    output = client.agent("tools").stream("Hello")
    states = [(run.tool_call_id, run.state) for run in output.tool_runs]
    first = [state for call_id, state in states if call_id == "call_1"]
    assert len(set(first)) > 1, first
    assert len({call_id for call_id, _ in states}) == 3


def test_a_tool_that_fails(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("tool-error").stream("Hello")
    [pair] = output.tool_pairs
    assert (pair.state, str(pair.error)) == ("error", "Error: fragile broke on glass")
    assert output.text.run() == "The tool failed."
    assert output.status == "success"
    assert_same(mastra, output)


def test_a_sub_agent(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("nested").stream("Hello")
    [pair] = output.tool_pairs
    assert pair.tool_name == "agent-helper"
    assert output.text.run().startswith("Helper said: ")
    assert [chunk.type for chunk in output.full_stream].count("tool-output") == 8
    assert_same(mastra, output)


# ---- failures --------------------------------------------------------------------------------------------------------


def test_a_provider_error_in_the_middle(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("error-mid-stream").stream("Hello")
    assert list(output.text_stream) == ["Before "]
    with pytest.raises(mx.AgentError, match="Overloaded") as caught:
        output.text.run()
    error = caught.value
    assert (error.name, error.status_code, error.is_retryable) == ("AI_APICallError", 529, False)
    assert error.partial.text == "Before "
    assert_same_failure(mastra, output)


def test_a_model_that_throws(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("error-throws").stream("Hello")
    errors: list[Exception] = []
    output.consume_stream(errors.append).run()
    assert [str(error) for error in errors] == ["Invalid API key"]
    assert_same_failure(mastra, output)


@pytest.mark.parametrize(
    ("agent", "text", "reason", "processor"),
    [
        ("tripwire", "", "Blocked by gatekeeper", "gatekeeper"),
        ("tripwire-output", "fine still fine ", "Blocked by censor", "censor"),
    ],
)
def test_a_tripwire(
    agent: str, text: str, reason: str, processor: str, mastra: MastraServer, client: mx.MastraClient
) -> None:
    output = client.agent(agent).stream("Hello")
    assert output.text.run() == text
    assert output.finish_reason.run() == "other"
    assert output.tripwire is not None
    assert (output.tripwire.reason, output.tripwire.processor_id) == (reason, processor)
    assert_same(mastra, output)


def test_an_agent_that_is_not_there(client: mx.MastraClient) -> None:
    output = client.agent("nope").stream("Hello")
    with pytest.raises(mx.SourceError, match="Agent with id nope not found") as caught:
        output.text.run()
    assert (caught.value.status, output.status) == (404, "failed")
    assert caught.value.partial.text == ""


def test_a_request_that_the_server_does_not_understand(client: mx.MastraClient) -> None:
    output = client.agent("text").stream("Hello", max_steps="many")
    with pytest.raises(mx.SourceError, match=r"Invalid request body.*maxSteps") as caught:
        output.text.run()
    assert caught.value.status == 400


# ---- leaving ---------------------------------------------------------------------------------------------------------


def test_dispose_aborts_the_run(mastra: MastraServer, client: mx.MastraClient) -> None:
    prompt = f"slow {uuid.uuid4()}"
    output = client.agent("slow").stream(prompt)
    pieces = list(itertools.islice(output.text_stream, 5))
    output.dispose()
    [abort] = mastra.aborts(prompt)
    assert abort["reason"] == "Client connection prematurely closed."
    assert abort["deltas"] < 500
    with pytest.raises(mx.StreamDisposed) as caught:
        output.text.run()
    assert caught.value.partial.text.startswith("".join(pieces))
    assert output.run_id is not None
    theirs = mastra.views(output.run_id)
    assert (output.status, theirs["status"]) == ("canceled", "canceled")
    # What we were told is a beginning of what was made; the server goes on until it hears of the abort.
    assert theirs["promises"]["text"]["value"].startswith(caught.value.partial.text)


def test_leaving_the_context_aborts_the_run_in_asyncio(mastra: MastraServer) -> None:
    prompt = f"slow {uuid.uuid4()}"

    async def main() -> None:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            async with client.agent("slow").stream(prompt) as output:
                async for _ in output.text_stream:
                    break
            aborts = await asyncio.to_thread(mastra.aborts, prompt)
            assert len(aborts) == 1
            assert output.status == "canceled"

    asyncio.run(main())


def test_a_reader_that_leaves_does_not_stop_the_run(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("many-deltas").stream("Hello")
    assert next(iter(output.text_stream)) == "0 "
    assert len(output.text.run().split()) == 2000
    assert_same(mastra, output)


# ---- what is there ---------------------------------------------------------------------------------------------------


def test_agents_and_tools(client: mx.MastraClient) -> None:
    agents = client.agents().run()
    assert {"text", "tools", "durable"} <= set(agents)
    details = client.agent("tools").details().run()
    assert (details["name"], details["description"]) == ("tools", "Scripted agent: tools")
    assert list(client.agent("tools").tools().run()) == ["weather", "clock"]
    assert "two-steps" in client.workflows().run()
    with pytest.raises(mx.SourceError) as caught:
        client.agent("nope").details().run()
    assert caught.value.status == 404


def test_agents_in_asyncio(mastra: MastraServer) -> None:
    async def main() -> dict[str, Any]:
        async with mx.MastraClient(mastra.base_url) as client:
            return await client.agents()

    assert "text" in asyncio.run(main())
