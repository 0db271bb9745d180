"""Client tools: Python functions that the agent calls here; the run goes on in the same output."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import mastra_rx as mx
from tests.live.comparing import assert_same, known
from tests.live.conftest import MastraServer


def open_dialog(title: str) -> dict[str, str]:
    """Open a dialog."""
    return {"opened": title}


async def read_clipboard(title: str) -> dict[str, str]:
    """Read the clipboard."""
    await asyncio.sleep(0)
    return {"read": title}


def broken(title: str) -> None:
    """Never works."""
    raise RuntimeError(f"no {title}")


PROMPTS: dict[str, Any] = {
    "a text": "Hello",
    "texts": ["Hi", "Hello"],
    "dicts": [{"role": "user", "content": "Hello"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
def test_prompts_of_any_kind_are_kept(prompt: Any, mastra: MastraServer, client: mx.MastraClient) -> None:
    """The official client loses a prompt that is a string: its model is shown 0 user messages."""
    output = client.agent("client-tools").stream(prompt, client_tools=[open_dialog])
    count = len(prompt) if isinstance(prompt, list) else 1
    assert list(output.text_stream)[-1] == "Last: Hello"
    assert output.text.run() == f'Results: {{"opened":"Title 1"}}. User messages: {count}. Last: Hello'
    assert output.status == "success"


def test_each_turn_is_a_run_of_the_server(mastra: MastraServer, client: mx.MastraClient) -> None:
    """The output covers both turns (D12), the server's has a view for each."""
    output = client.agent("client-tools").stream("Hello", client_tools=[open_dialog])
    chunks = list(output.full_stream)
    first, second = dict.fromkeys(chunk.run_id for chunk in chunks)
    theirs = [mastra.views(run_id)["promises"] for run_id in (first, second)]
    assert [promises["finishReason"]["value"] for promises in theirs] == ["tool-calls", "stop"]
    assert output.text.run() == theirs[1]["text"]["value"]
    usage = mx.to_wire(output.usage.run())
    for name in ("inputTokens", "outputTokens", "totalTokens"):
        assert usage[name] == sum(promises["usage"]["value"][name] for promises in theirs)
    assert mx.to_wire(output.tool_calls.run())[0]["payload"] == known(theirs[0]["toolCalls"]["value"][0]["payload"])
    assert len(output.steps.run()) == sum(len(promises["steps"]["value"]) for promises in theirs)
    result = next(chunk for chunk in chunks if chunk.type == "tool-result")
    assert chunks.index(result) == next(n for n, chunk in enumerate(chunks) if chunk.run_id == second) - 1


def test_sync_and_async_tools_in_parallel(client: mx.MastraClient) -> None:
    output = client.agent("client-tools").stream("Hello", client_tools=[open_dialog, read_clipboard])
    assert [(pair.tool_name, pair.state, pair.result) for pair in output.tool_pairs] == [
        ("open_dialog", "result", {"opened": "Title 1"}),
        ("read_clipboard", "result", {"read": "Title 2"}),
    ]
    assert output.text.run().startswith('Results: {"opened":"Title 1"}, {"read":"Title 2"}. User messages: 1.')


def test_in_asyncio(mastra: MastraServer) -> None:
    async def main() -> str:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            output = client.agent("client-tools").stream("Hello", client_tools=[read_clipboard])
            return await output.text

    assert asyncio.run(main()) == 'Results: {"read":"Title 1"}. User messages: 1. Last: Hello'


def test_a_tool_that_raises_is_an_error_that_the_model_sees(client: mx.MastraClient) -> None:
    output = client.agent("client-tools").stream("Hello", client_tools=[broken])
    [pair] = output.tool_pairs
    assert (pair.state, str(pair.error)) == ("error", "no Title 1")
    assert output.text.run() == 'Results: {"error":"no Title 1"}. User messages: 1. Last: Hello'
    assert output.status == "success"


def test_arguments_that_do_not_fit_are_an_error_that_the_model_sees(client: mx.MastraClient) -> None:
    called: list[int] = []

    def resize(title: int) -> None:
        """Resize."""
        called.append(title)

    output = client.agent("client-tools").stream("Hello", client_tools=[resize])
    [pair] = output.tool_pairs
    assert pair.state == "error"
    assert "do not fit" in str(pair.error)
    assert called == []


def test_a_conversation_that_the_server_keeps(client: mx.MastraClient, fresh: Callable[[], dict[str, str]]) -> None:
    output = client.agent("client-tools").stream("Hello", client_tools=[open_dialog], memory=fresh())
    assert output.text.run() == 'Results: {"opened":"Title 1"}. User messages: 1. Last: Hello'


class Window(BaseModel):
    title: str
    tags: set[str]


def test_what_a_tool_gives_becomes_json(client: mx.MastraClient) -> None:
    def open_window(title: str, size: int = 3) -> Window:
        """Open a window."""
        return Window(title=f"{title} {size}", tags={"new"})

    output = client.agent("client-tools").stream("Hello", client_tools=[open_window])
    assert output.text.run().startswith('Results: {"title":"Title 1 3","tags":["new"]}.')


def test_a_slow_tool_does_not_stop_the_loop(mastra: MastraServer) -> None:
    """Sync tools run on a thread."""
    goes_on = threading.Event()

    def wait(title: str) -> bool:
        """Wait."""
        return goes_on.wait(5)

    async def main() -> str:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            output = client.agent("client-tools").stream("Hello", client_tools=[wait])
            async for chunk in output.full_stream:
                if chunk.type == "finish":
                    goes_on.set()
                    break
            return await output.text

    assert asyncio.run(main()).startswith("Results: true.")


def test_a_run_without_calls_is_one_run(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("text").stream("Hello", client_tools=[open_dialog])
    assert output.text.run() == "Hello from Mastra."
    assert_same(mastra, output)
