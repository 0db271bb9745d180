"""The usage tree: who used what, with and without the runs inside, nothing counted twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import START, Wire, finish, tool_call
from tests.conftest import Recording, recordings
from tests.test_nested import in_call, in_network_agent, in_network_workflow, in_step, in_task_tool, in_tool, of_run

COUNTS = ("input_tokens", "output_tokens", "total_tokens", "reasoning_tokens", "cached_input_tokens")


def counts(usage: mx.Usage) -> dict[str, float]:
    """What is known and not 0: a `finish` has 0 for what nobody reported."""
    return {name: value for name in COUNTS if (value := getattr(usage, name))}


def tree_of(chunks: list[Wire]) -> mx.UsageNode:
    return mx.as_view(mx.from_chunks(chunks).pipe(ops.usage_tree())).run()


def step(tokens: int, model: str = "m1") -> Wire:
    usage = {"inputTokens": tokens, "outputTokens": 1, "totalTokens": tokens + 1}
    return {"type": "step-finish", "payload": {"output": {"usage": usage}, "metadata": {"modelId": model}}}


def started(agent: str) -> Wire:
    return {"type": "start", "payload": {"id": agent}}


# ---- The recordings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", [r for r in recordings() if r.is_agent_run or r.name.startswith("bg-")], ids=str)
def test_a_recorded_tree_is_the_recorded_usage(recording: Recording) -> None:
    output = mx.MastraModelOutput(recording.source())
    full = output.get_full_output().run()
    nodes: list[mx.UsageNode] = []
    output.usage_tree.subscribe(nodes.append, lambda _: None)
    for tree in (
        nodes if full.error is None else []
    ):  # a value is that of the moment of the error, the tree's of the end
        # Mastra counts what an agent inside a call told with the run itself
        node_total = tree.total if recording.name == "unit-usage-tool-call-nested" else tree.own
        assert counts(node_total) == counts(full.usage)


def test_the_recorded_agent_inside_a_tool_is_counted_beside_the_run() -> None:
    tree = mx.MastraModelOutput(Recording("nested-agent").wire).usage_tree.run()
    assert (tree.agent, tree.own.total_tokens, tree.total.total_tokens) == ("assistant", 51, 61)
    (inner,) = tree.nested
    assert (inner.agent, inner.own.total_tokens, inner.total.total_tokens) == ("researcher", 10, 10)
    assert inner.key is not None
    assert inner.key.tool_call_id == "call_1"
    assert {agent: usage.total_tokens for agent, usage in tree.by_agent.items()} == {"assistant": 51, "researcher": 10}
    assert {model: usage.total_tokens for model, usage in tree.by_model.items()} == {"mock-model-1": 61}
    assert str(tree) == "assistant: 51 tokens (61 with nested runs)\n  researcher: 10 tokens"


def test_the_recorded_network_uses_what_it_says() -> None:
    recording = Recording("network-basic")
    tree = tree_of(recording.wire)
    told = recording.expected["promises"]["usage"]["value"]
    assert tree.own.total_tokens == 18
    assert tree.total.total_tokens == told["totalTokens"] == 42
    assert [(inner.agent, inner.own.total_tokens) for inner in tree.nested] == [("researcher", 24)]


def test_the_recorded_workflow_uses_what_its_agent_does() -> None:
    recording = Recording("workflow-agent-step")
    tree = tree_of(recording.wire)
    assert tree.agent == "story"
    assert tree.own == mx.Usage()
    assert tree.total.total_tokens == recording.expected["promises"]["usage"]["value"]["totalTokens"] == 24
    assert [(inner.agent, inner.total.total_tokens) for inner in tree.nested] == [("writer", 24)]


# ---- What is told more than once -------------------------------------------------------------------------------------


def usage_of(tokens: int) -> Wire:
    return {"inputTokens": tokens, "outputTokens": 1, "totalTokens": tokens + 1}


def test_the_total_of_a_finish_is_not_added_to_its_steps() -> None:
    assert tree_of([START, step(10), step(20), finish(usage=usage_of(31))]).total.total_tokens == 32


def test_a_finish_counts_where_no_step_told() -> None:
    assert tree_of([START, finish(usage=usage_of(30))]).total.total_tokens == 31


def test_a_finish_fills_in_what_its_steps_did_not_tell() -> None:
    """As for `output.usage`."""
    chunks = [START, step(10), finish(usage={"inputTokens": 99, "reasoningTokens": 3})]
    assert counts(tree_of(chunks).own) == {
        "input_tokens": 10,
        "output_tokens": 1,
        "total_tokens": 11,
        "reasoning_tokens": 3,
    }


def test_a_finish_that_comes_twice_counts_once() -> None:
    assert tree_of([START, finish(usage=usage_of(30)), finish(usage=usage_of(30))]).total.total_tokens == 31


def test_each_turn_counts_whatever_the_others_told() -> None:
    """One turn tells by step, the next one only at its end."""
    tree = tree_of([START, step(10), finish(usage=usage_of(10)), START, finish(usage=usage_of(20))])
    assert tree.own.total_tokens == 11 + 21
    assert (
        tree.own.total_tokens
        == mx.as_view(mx.from_chunks([START, step(10), finish(), START, finish(usage=usage_of(20))]).pipe(ops.usage()))
        .run()
        .total_tokens
    )


def test_an_inner_run_that_is_told_in_its_chunks_and_at_its_end() -> None:
    end = {"type": "agent-execution-end", "payload": {"runId": "r", "agentId": "a", "usage": usage_of(10)}}
    inner = [in_network_agent(chunk) for chunk in of_run("r", started("a"), step(10), finish(usage=usage_of(10)))]
    assert tree_of([*inner, end]).total.total_tokens == 11


def test_an_inner_run_that_is_told_at_its_end_only() -> None:
    end = {"type": "agent-execution-end", "payload": {"runId": "r", "agentId": "a", "usage": usage_of(10)}}
    tree = tree_of([end])
    assert [(inner.agent, inner.total.total_tokens) for inner in tree.nested] == [("a", 11)]
    tree = tree_of([*(in_network_agent(chunk) for chunk in of_run("r", started("a"))), end])
    assert [(inner.agent, inner.total.total_tokens) for inner in tree.nested] == [("a", 11)]


def test_a_workflow_of_a_network_whose_end_tells_the_sum_of_its_agents() -> None:
    inner = [in_step(chunk) for chunk in of_run("agent", started("a"), step(10), finish())]
    workflow = [in_network_workflow(chunk) for chunk in of_run("w", *inner)]
    end = {"type": "workflow-execution-end", "payload": {"runId": "w", "workflowId": "w", "usage": usage_of(10)}}
    assert tree_of([*workflow, end]).total.total_tokens == 11


def test_an_agent_inside_a_call_that_is_told_with_the_call_too() -> None:
    """`tool-call.payload.output` repeats the end that came as tool output."""
    end = of_run("r", {"type": "finish", "payload": {"usage": usage_of(10), "stepResult": {"reason": "stop"}}})[0]
    assert tree_of([in_call(end)]).total.total_tokens == 11
    assert tree_of([in_tool(end), in_call(end)]).total.total_tokens == 11
    told_by_steps = [in_tool(chunk) for chunk in of_run("r", step(10))]
    assert tree_of([*told_by_steps, in_call(end)]).total.total_tokens == 11


def test_usage_by_task_and_model() -> None:
    chunks = [
        *[started("boss"), step(10, "big"), tool_call()],
        *(in_task_tool(chunk, "k1") for chunk in of_run("r1", started("a"), step(20, "small"), finish())),
        *(in_task_tool(chunk, "k2") for chunk in of_run("r2", started("a"), step(30, "small"), finish())),
        finish(),
    ]
    tree = tree_of(chunks)
    assert {task: usage.total_tokens for task, usage in tree.by_task.items()} == {"k1": 21, "k2": 31}
    assert {agent: usage.total_tokens for agent, usage in tree.by_agent.items()} == {"boss": 11, "a": 52}
    assert {model: usage.total_tokens for model, usage in tree.by_model.items()} == {"big": 11, "small": 52}


# ---- Any tree --------------------------------------------------------------------------------------------------------

TREES = st.recursive(
    st.tuples(st.lists(st.integers(0, 99), max_size=3), st.just([])),
    lambda inside: st.tuples(st.lists(st.integers(0, 99), max_size=3), st.lists(inside, max_size=3)),
    max_leaves=8,
)


def chunks_of(tree: Any, name: str = "r") -> list[Wire]:
    steps, inside = tree
    chunks = [started(name), *(step(tokens, f"m{tokens % 2}") for tokens in steps)]
    for number, inner in enumerate(inside):
        wrap = (in_tool, in_step, in_task_tool)[number % 3]
        chunks += [
            wrap(chunk, f"p{number}") for chunk in of_run(f"{name}-{number}", *chunks_of(inner, f"{name}-{number}"))
        ]
    total = sum(tokens for tokens in steps)
    return [
        *chunks,
        finish(usage={"inputTokens": total, "outputTokens": len(steps), "totalTokens": total + len(steps)}),
    ]


def all_steps(tree: Any) -> list[int]:
    steps, inside = tree
    return [*steps, *(tokens for inner in inside for tokens in all_steps(inner))]


@given(TREES)
@settings(deadline=None, max_examples=100)
def test_the_total_is_the_sum_of_all_steps_whichever_way_it_is_split(tree: Any) -> None:
    steps = all_steps(tree)
    node = tree_of(chunks_of(tree))
    expected = sum(steps) + len(steps)
    assert (node.own.total_tokens or 0) == sum(tree[0]) + len(tree[0])
    assert (node.total.total_tokens or 0) == expected
    for split in (node.by_agent, node.by_model):
        assert sum(usage.total_tokens or 0 for usage in split.values()) == expected
    assert sum(inner.own.total_tokens or 0 for inner in node.walk()) == expected
    assert len(list(node.walk())) == len(str(node).splitlines())
