"""Faults of counting: usage that is added wrongly, and what a step takes over from the one before."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import finish, output_of, reasoning, step_finish, text


def usage_of(*usages: Any) -> mx.Usage:
    return output_of(*[step_finish(usage) for usage in usages], finish(usage=None)).usage.run()


NESTED = {"inputTokens": {"total": 100, "noCache": 100, "cacheRead": None}}
NESTED["outputTokens"] = {"total": 20, "reasoning": None}

SUMS = {
    "numbers": ([{"inputTokens": 10}, {"inputTokens": 20}], 30),
    "nested": ([NESTED, NESTED], 200),
    "nested and flat": ([NESTED, {"inputTokens": 1}], 101),
    "strings": ([{"inputTokens": "10"}, {"inputTokens": "20"}], 30),
    "a string and a number": ([{"inputTokens": "10"}, {"inputTokens": 20}], 30),
    "null": ([{"inputTokens": None}, {"inputTokens": 20}], 20),
    "null only": ([{"inputTokens": None}, {"inputTokens": None}], None),
    "missing": ([{}, {"inputTokens": 20}], 20),
    "no usage": ([None, {"inputTokens": 20}, None], 20),
    "nested without a total": ([{"inputTokens": {"noCache": 1}}, {"inputTokens": 20}], 20),
    "text that is no number": ([{"inputTokens": "many"}, {"inputTokens": 20}], 20),
    "an empty text": ([{"inputTokens": ""}, {"inputTokens": 20}], 20),
    "a flag": ([{"inputTokens": True}, {"inputTokens": 20}], 20),
    "a list": ([{"inputTokens": [1]}, {"inputTokens": 20}], 20),
    "NaN as text": ([{"inputTokens": "NaN"}, {"inputTokens": 20}], 20),
    "NaN": ([{"inputTokens": math.nan}, {"inputTokens": 20}], 20),
    "nested NaN": ([{"inputTokens": {"total": "nan"}}, {"inputTokens": 20}], 20),
    "Infinity as text": ([{"inputTokens": "Infinity"}, {"inputTokens": 20}], 20),
    "zero": ([{"inputTokens": 0}, {"inputTokens": 0}], 0),
    "more than a double holds": ([{"inputTokens": 2**53}, {"inputTokens": 1}], 2**53 + 1),
}


@pytest.mark.parametrize(("usages", "total"), SUMS.values(), ids=SUMS)
def test_tokens_are_summed_as_numbers(usages: list[Any], total: Any) -> None:
    """B078: nested usage is added with `+`; never a text, never NaN (D7)."""
    counted = usage_of(*usages).input_tokens
    assert counted == total
    assert counted is None or type(counted) is int


def test_the_counters_that_newer_providers_nest() -> None:
    """B078: cache and reasoning tokens are inside the main counters there."""
    nested = {
        "inputTokens": {"total": 100, "cacheRead": 80, "cacheWrite": 5},
        "outputTokens": {"total": 20, "reasoning": 7},
    }
    usage = usage_of(nested, nested)
    assert (usage.input_tokens, usage.cached_input_tokens, usage.cache_creation_input_tokens) == (200, 160, 10)
    assert (usage.output_tokens, usage.reasoning_tokens) == (40, 14)


@pytest.mark.parametrize("payload", [{}, {"output": {}}, {"output": {"usage": None}}, {"output": {"usage": {}}}])
def test_a_step_without_usage_is_unknown(payload: Any) -> None:
    """B081 in Mastra's chunks: no usage at the beginning, some at the end."""
    output = output_of({"type": "step-finish", "payload": payload}, step_finish({"outputTokens": 5}), finish(usage={}))
    usage = output.usage.run()
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (None, 5, None)


STEP = {"inputTokens": 5, "outputTokens": 5, "totalTokens": 10}


@pytest.mark.parametrize(
    "total",
    [STEP, {"inputTokens": 7, "outputTokens": 7, "totalTokens": 14}, None, {}, {"totalTokens": 10}],
    ids=["equal", "different", "null", "empty", "partly"],
)
@pytest.mark.parametrize("finishes", [1, 2])
def test_the_total_of_a_run_is_not_added_to_its_steps(total: Any, finishes: int) -> None:
    """B084: the final usage is added to interim usage that was counted already.

    The case wants a total that differs reported; as in Mastra 1.71.0 the sum over the steps holds.
    """
    output = output_of(step_finish(STEP), *[finish(usage=total)] * finishes)
    assert mx.to_wire(output.usage.run()) == STEP
    assert output.total_usage.run().total_tokens == 10
    assert mx.to_wire(list(output.full_stream)[1].payload.output.usage) == STEP


def test_a_total_counts_where_no_step_said_anything() -> None:
    """B084: what no step reported is taken from the run's total."""
    output = output_of(step_finish({"inputTokens": 5}), finish(usage={"inputTokens": 9, "outputTokens": 4}))
    usage = output.usage.run()
    assert (usage.input_tokens, usage.output_tokens) == (5, 4)


def test_the_running_usage_ends_where_the_usage_ends() -> None:
    """B084: neither does the live counter count twice."""
    chunks = [step_finish(STEP), step_finish(STEP), finish(usage=STEP)]
    running = list(mx.as_view(mx.from_chunks(chunks).pipe(ops.running_usage())))
    assert [usage.total_tokens for usage in running] == [10, 20]


EXTRA = {"cachedInputTokens": 8, "reasoningTokens": 1, "cacheCreationInputTokens": 2}
EXTRA |= {"cacheCreationInputTokens5m": 3, "cacheCreationInputTokens1h": 4}


@pytest.mark.parametrize("name", EXTRA)
def test_every_counter_is_summed(name: str) -> None:
    """B086: cached, reasoning and raw fields are lost in the reduction."""
    usage = usage_of({**STEP, **EXTRA}, {**STEP, **EXTRA})
    assert mx.to_wire(usage)[name] == 2 * EXTRA[name]


def test_counters_nobody_knows_are_summed_too() -> None:
    """B086: unknown numeric fields are preserved."""
    usage = usage_of({**STEP, "audioTokens": 3}, STEP, {**STEP, "audioTokens": "4", "label": "x"})
    assert usage.other == {"audioTokens": 7}


def test_what_the_provider_said_is_kept() -> None:
    """B086: `raw` of every step is in the steps; the run's is the last one, as in Mastra 1.71.0."""
    output = output_of(step_finish({**STEP, "raw": {"x": 1}}), step_finish({**STEP, "raw": {"x": 2}}), finish())
    assert [step.usage.raw for step in output.steps.run()] == [{"x": 1}, {"x": 2}]
    assert output.usage.run().raw == {"x": 2}


def test_a_usage_that_is_not_json_stops_the_source_and_not_the_sum() -> None:
    """B078: NaN cannot be on the wire; where a server writes it, the line is told, and what came before is kept."""
    line = json.dumps(step_finish({"inputTokens": math.nan}))
    output = mx.MastraModelOutput([json.dumps(step_finish(STEP)), line])
    with pytest.raises(mx.ChunkDecodeError, match="line 2") as raised:
        output.usage.run()
    assert raised.value.partial.usage.total_tokens == 10


@pytest.mark.parametrize("start", [True, False], ids=["started", "never started"])
@pytest.mark.parametrize("ids", [("r1", "r1"), ("r1", "r2"), ("0", "0")], ids="-".join)
def test_a_step_has_its_own_reasoning(start: bool, ids: tuple[str, str]) -> None:
    """B087: the reasoning of a step accumulates that of earlier steps; ids are used again."""
    chunks = [
        chunk
        for block, piece in zip(ids, "AB", strict=True)
        for chunk in [
            *([{"type": "reasoning-start", "payload": {"id": block}}] if start else []),
            reasoning(piece, block),
            {"type": "step-finish", "payload": {}},
        ]
    ]
    output = output_of(*chunks, finish())
    steps = output.steps.run()
    assert [step.reasoning for step in steps] == ["A", "B"]
    if start:
        assert [[part.text for part in step.reasoning_parts] for step in steps] == [["A"], ["B"]]
    assert output.reasoning.run() == "AB"
    assert list(output.reasoning_stream) == ["A", "B"]


def test_a_step_has_its_own_everything() -> None:
    """B087: the same for what else a step has."""
    kinds = {
        "source": {"type": "source", "payload": {"id": "s", "sourceType": "url", "title": "t"}},
        "file": {"type": "file", "payload": {"data": "aGk=", "mimeType": "text/plain"}},
        "tool-call": {"type": "tool-call", "payload": {"toolCallId": "c1", "toolName": "f", "args": {}}},
        "tool-result": {"type": "tool-result", "payload": {"toolCallId": "c1", "toolName": "f", "result": 1}},
    }
    output = output_of(text("A"), *kinds.values(), step_finish(STEP), text("B"), step_finish(), finish())
    first, second = output.steps.run()
    of = [(s.text, len(s.sources), len(s.files), len(s.tool_calls), len(s.tool_results)) for s in (first, second)]
    assert of == [("A", 1, 1, 1, 1), ("B", 0, 0, 0, 0)]
    assert (first.usage.total_tokens, second.usage.total_tokens) == (10, None)
