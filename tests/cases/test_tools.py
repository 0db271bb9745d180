"""Faults of tool calls: arguments that stream, calls that come twice, results that find their call."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from reactivex.subject import Subject

import mastra_rx as mx
from tests.cases.wire import (
    ABORT,
    STREAMS,
    Seen,
    call_delta,
    call_end,
    call_start,
    finish,
    of_a_server,
    output_of,
    step_finish,
    text,
    tool_call,
    tool_error,
    tool_result,
)


def streamed(*pieces: str, call: str = "c1", tool: str | None = "f") -> list[Any]:
    return [call_start(call, tool), *[call_delta(piece, call) for piece in pieces], call_end(call)]


def calls_of(output: mx.MastraModelOutput[Any]) -> list[Any]:
    return [call.payload for call in output.tool_calls.run()]


# ---- when a call is made ---------------------------------------------------------------------------------------------

PREFIX_PARSES = {
    "whole, then blanks": (['{"query":"t"}', "  "], {"query": "t"}),
    "blanks first": (["  ", '{"query":"t"}'], {"query": "t"}),
    "an empty object first": (["{", "}"], {}),
    "an object in an object": (['{"a":', '{"b":1}', "}"], {"a": {"b": 1}}),
    "a digit that is a number already": (["1", "2"], 12),
    "a list": (["[1]", "\n"], [1]),
    "letter by letter": (list('{"query": "t", "limit": 10}'), {"query": "t", "limit": 10}),
}


@pytest.mark.parametrize(("pieces", "args"), PREFIX_PARSES.values(), ids=PREFIX_PARSES)
def test_a_call_is_made_at_the_end_of_its_arguments(pieces: list[str], args: Any) -> None:
    """B056: a call is made because a prefix happens to parse."""
    feed: Subject[Any] = Subject()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feed)
    full, runs = Seen(output.full_stream), Seen(output.tool_runs)
    for chunk in streamed(*pieces)[:-1]:
        feed.on_next(chunk)
        assert "tool-call" not in full.types
        assert {run.state for run in runs.items} == {"input-streaming"}
    feed.on_next(call_end())
    assert full.types[-2:] == ["tool-call-input-streaming-end", "tool-call"]
    feed.on_next(finish())
    feed.on_completed()
    assert full.types.count("tool-call") == 1
    assert [payload.args for payload in calls_of(output)] == [args]
    assert [run.state for run in runs.items].count("input-available") == 1


def test_a_prefix_is_never_the_call() -> None:
    """B056: `{...}` followed by more is one call with bad arguments, not a good one made too early."""
    output = output_of(*streamed('{"query": "test"}', ', "limit": 10}'), finish())
    (payload,) = calls_of(output)
    assert payload.args is None
    assert payload.args_text == '{"query": "test"}, "limit": 10}'
    assert payload.args_error


@pytest.mark.parametrize("ending", [[], [finish()], [step_finish(), finish()], [ABORT], [ABORT, finish("tripwire")]])
def test_arguments_that_were_cut_off_make_no_call(ending: list[Any]) -> None:
    """B056: truncated arguments must never reach an executor.

    The case lets the end of a step close a call too; Mastra 1.71.0 makes it at its own end only, and so do we.
    """
    output = output_of(call_start(), call_delta('{"path":"/"}'), *ending)
    full, runs = Seen(output.full_stream), Seen(output.tool_runs)
    assert "tool-call" not in full.types
    assert output.get_full_output().run().tool_calls == []
    assert runs.items[-1].state == "unresolved"


# ---- arguments that are no JSON --------------------------------------------------------------------------------------

BAD_ARGUMENTS = [
    '{"n":?}',
    "{",
    '{"a":1',
    '{"a":1}}',
    '{"a":1}{"b":2}',
    "not json",
    "{'a':1}",
    "[1,",
    "NaN",
    '{"n":NaN}',
    '{"a":1,}',
    "undefined",
]


@pytest.mark.parametrize("raw", BAD_ARGUMENTS)
@pytest.mark.parametrize("sent", ["streamed", "whole"])
def test_bad_arguments_do_not_end_the_stream(raw: str, sent: str) -> None:
    """B058, B070, B071: malformed arguments raise and kill the stream, or come on as a string; the raw text is lost."""
    chunks = streamed(raw[:2], raw[2:], tool="search") if sent == "streamed" else [tool_call("c1", raw, "search")]
    output = output_of(*chunks, text("after"), finish())
    assert list(output.text_stream) == ["after"]
    assert output.text.run() == "after"
    assert output.finish_reason.run() == "stop"
    (payload,) = calls_of(output)
    assert payload.args is None
    assert payload.args_text == raw
    assert payload.args_error
    assert (payload.tool_name, payload.tool_call_id) == ("search", "c1"), "an error names its tool and its call"
    run = next(run for run in output.tool_runs if run.state == "input-available")
    assert (run.tool_name, run.tool_call_id, run.args) == ("search", "c1", None)
    assert isinstance(run.error, mx.AgentError)


@pytest.mark.parametrize("raw", ["", "text", '{"a":1}', '"{}"', "{"])
@pytest.mark.parametrize("of", [dict, of_a_server])
def test_arguments_are_never_a_string(raw: str, of: Any) -> None:
    """B071: invalid tool input is forwarded as a string; the wire gets back what it gave."""
    wire = of(tool_call("c1", raw))
    chunk = mx.parse_chunk(wire)
    assert chunk.payload.args is None
    assert chunk.payload.args_text == raw
    assert chunk.payload.args_error
    assert mx.to_wire(chunk) == wire


@pytest.mark.parametrize("wire", [tool_call("c1", None), {"type": "tool-call", "payload": {"toolCallId": "c1"}}])
def test_a_call_without_arguments_is_a_call(wire: Any) -> None:
    """B058: `null` or no arguments at all; there is no text to keep, so nothing is said to be wrong with it."""
    output = output_of(wire, text("after"), finish())
    assert output.text.run() == "after"
    (payload,) = calls_of(output)
    assert (payload.args, payload.args_text, payload.args_error) == (None, None, None)


# ---- calls that come twice, or half ----------------------------------------------------------------------------------

NATIVE = tool_call("c1", {})
ONE_CALL = {
    "streamed only": streamed("{}"),
    "native only": [NATIVE],
    "both": [*streamed("{}"), NATIVE],
    "native first": [NATIVE, *streamed("{}")],
    "native inside": [call_start(), NATIVE, call_delta("{}"), call_end()],
    "native twice": [NATIVE, NATIVE],
    "both, in the next step": [*streamed("{}"), step_finish(), NATIVE],
    "streamed twice": [*streamed("{}"), *streamed("{}")],
    "two ends": [*streamed("{}"), call_end()],
    "two starts": [call_start(), *streamed("{}")],
    "an approval between": [
        *streamed("{}"),
        {"type": "tool-call-approval", "payload": {"toolCallId": "c1", "toolName": "f", "args": {}}},
        NATIVE,
    ],
}


@pytest.mark.parametrize("chunks", ONE_CALL.values(), ids=ONE_CALL)
@pytest.mark.parametrize("of", [dict, of_a_server])
def test_a_call_comes_once(chunks: list[Any], of: Any) -> None:
    """B059, B067: streaming chunks and the native tool-call are both present, or only one of them."""
    output = output_of(*[of(chunk) for chunk in chunks], of(tool_result("c1", 1)), of(finish()))
    assert [(payload.tool_call_id, payload.args) for payload in calls_of(output)] == [("c1", {})]
    assert [chunk.type for chunk in output.full_stream].count("tool-call") == 1
    assert [(pair.args, pair.result) for pair in output.tool_pairs] == [({}, 1)]
    states = [run.state for run in output.tool_runs]
    assert states.count("input-available") == 1
    assert states[-1] == "output-available"


LATER_ARGUMENTS = {
    "nothing streamed": streamed(),
    "an empty object streamed": streamed("{}"),
    "null streamed": streamed("null"),
    "not JSON streamed": streamed('{"a":'),
    "not JSON in the first call": [tool_call("c1", "{")],
    "no arguments in the first call": [tool_call("c1", None)],
}


@pytest.mark.parametrize("first", LATER_ARGUMENTS.values(), ids=LATER_ARGUMENTS)
@pytest.mark.parametrize("view", ["tool_calls", "steps", "full output", "pairs", "runs"])
def test_arguments_that_only_the_native_call_has_reach_every_view(first: list[Any], view: str) -> None:
    """B059: the native call fills in what the streamed one lacked; all views agree on the arguments."""
    output = output_of(*first, tool_call("c1", {"a": 1}), tool_result("c1", 2), step_finish(), finish())
    args: Any
    match view:
        case "tool_calls":
            args = [call.args for call in calls_of(output)]
        case "steps":
            args = [call.payload.args for call in output.steps.run()[0].tool_calls]
        case "full output":
            args = [pair.args for pair in output.get_full_output().run().tool_pairs]
        case "pairs":
            args = [pair.args for pair in output.tool_pairs]
        case _:
            last = list(output.tool_runs)[-1]
            args = [last.args]
            assert last.error is None
    assert args == [{"a": 1}]


@pytest.mark.parametrize("pieces", [[], [""], ["", "", ""], [" "], ["\n", ""]])
def test_a_call_without_arguments_has_none(pieces: list[str]) -> None:
    """B061: a call with zero or empty deltas."""
    (payload,) = calls_of(output_of(*streamed(*pieces, tool="now"), finish()))
    assert (payload.tool_name, payload.args, payload.args_error) == ("now", {}, None)


@pytest.mark.parametrize("pieces", [["", '{"a":', "", "1}", ""], ['{"a":1}', ""], ["", "", '{"a":1}']])
def test_an_empty_delta_may_come_anywhere(pieces: list[str]) -> None:
    """B061: an empty delta is legal."""
    (payload,) = calls_of(output_of(*streamed(*pieces), finish()))
    assert (payload.args, payload.args_error) == ({"a": 1}, None)


STRAY = {
    "a brace": [call_delta("}")],
    "nothing": [call_delta("")],
    "more arguments": [call_delta('{"b":2}')],
    "and an end": [call_delta("}"), call_end()],
    "an end alone": [call_end()],
    "in the next step": [step_finish(), call_delta("}"), call_end()],
}


@pytest.mark.parametrize("stray", STRAY.values(), ids=STRAY)
@pytest.mark.parametrize("settled", [False, True])
def test_what_comes_after_the_end_changes_nothing(stray: list[Any], settled: bool) -> None:
    """B067, B068: a stray piece of arguments after the end, or an empty one that makes the call again."""
    result = [tool_result("c1", 1)] if settled else []
    output = output_of(*streamed('{"a":1}'), *result, *stray, finish())
    without = output_of(*streamed('{"a":1}'), *result, *[c for c in stray if c["type"] == "step-finish"], finish())
    assert [payload.args for payload in calls_of(output)] == [{"a": 1}]
    assert [chunk.type for chunk in output.full_stream].count("tool-call") == 1
    assert [run.state for run in output.tool_runs] == [run.state for run in without.tool_runs]


# ---- pairs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
@pytest.mark.parametrize("of", [dict, of_a_server])
def test_results_find_their_call(order: tuple[str, ...], of: Any) -> None:
    """B073: results in completion order are paired by position."""
    results = {"a": 1, "b": 2, "c": 3}
    chunks = [*[tool_call(call, {}) for call in results], *[tool_result(call, results[call]) for call in order]]
    output = output_of(*[of(chunk) for chunk in [*chunks, finish()]])
    paired = [(pair.tool_call_id, pair.result) for pair in output.get_full_output().run().tool_pairs]
    assert paired == [("a", 1), ("b", 2), ("c", 3)], "a list of pairs is in call order"
    arrived = [(call, results[call]) for call in order]
    assert [(c.payload.tool_call_id, c.payload.result) for c in output.tool_results.run()] == arrived
    # The stream gives each pair once it is settled, so it is in the order of the results.
    assert [(pair.tool_call_id, pair.result) for pair in output.tool_pairs] == arrived


@pytest.mark.parametrize("result", [None, 0, "", False, [], {}])
def test_an_empty_result_is_a_result(result: Any) -> None:
    """B073: a falsy result settles its call."""
    (pair,) = output_of(tool_call("a", {}), tool_result("a", result), finish()).tool_pairs
    assert (pair.state, pair.result) == ("result", result)


def test_equal_ids_of_two_runs_are_two_calls() -> None:
    """B073: providers number calls anew in every run of a stream."""
    turns = [
        {**chunk, "runId": run, "from": "AGENT"}
        for run in ("one", "two")
        for chunk in [{"type": "start"}, tool_call("c", {"run": run}), tool_result("c", run), finish()]
    ]
    output = output_of(*turns)
    assert [(pair.args["run"], pair.result) for pair in output.tool_pairs] == [("one", "one"), ("two", "two")]


APPROVAL = {"type": "tool-call-approval", "payload": {"toolCallId": "c1", "toolName": "del", "args": {}}}
SUSPENSION = {"type": "tool-call-suspended", "payload": {"toolCallId": "c1", "toolName": "del", "suspendPayload": {}}}
PENDING = {
    "approval": [APPROVAL],
    "a call, then its approval": [tool_call("c1", {}, "del"), APPROVAL],
    "suspension": [SUSPENSION],
    "a call alone": [tool_call("c1", {}, "del")],
    "streamed": streamed("{}", tool="del"),
}
ENDINGS = {
    "finish": [{"type": "step-finish", "payload": {}}, finish()],
    "close": [],
    "abort": [ABORT],
    "error": [{"type": "error", "payload": {"error": "x"}}],
}


@pytest.mark.parametrize("pending", PENDING.values(), ids=PENDING)
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_call_nothing_came_of_is_unresolved(pending: list[Any], ending: list[Any]) -> None:
    """B075: after a denied approval no chunk at all comes for the pending call."""
    output = output_of(*pending, *ending)
    for name in STREAMS:
        seen = Seen(getattr(output, name))
        assert (seen.errors, seen.completed) == ([], 1), name
    (pair,) = output.tool_pairs
    assert (pair.tool_call_id, pair.tool_name, pair.state, pair.result) == ("c1", "del", "unresolved", None)
    assert [pair.state for pair in output.get_full_output().run().tool_pairs] == ["unresolved"]


def test_a_denial_that_is_said_is_a_denial() -> None:
    """B075: the newer chunk for it."""
    denied = {"type": "tool-output-denied", "payload": {"toolCallId": "c1", "approval": {"reason": "no"}}}
    (pair,) = output_of(tool_call("c1", {}), denied, finish()).tool_pairs
    assert (pair.state, str(pair.error)) == ("denied", "no")


TOOL_ERRORS = {
    "message": ({"message": "x"}, "x"),
    "cause": ({"name": "Error", "cause": {"message": "x"}, "id": "TOOL_EXECUTION_FAILED"}, "x"),
    "details": ({"details": {"errorMessage": "x"}}, "x"),
    "name": ({"name": "ToolNotFoundError"}, "ToolNotFoundError"),
    "text": ("x", "x"),
}


@pytest.mark.parametrize(("wire", "message"), TOOL_ERRORS.values(), ids=TOOL_ERRORS)
def test_a_tool_that_failed_fails_its_pair_and_not_the_run(wire: Any, message: str) -> None:
    """B076: the call and its outcome are two moments; an error of a tool is no error of the run."""
    feed: Subject[Any] = Subject()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feed)
    runs, pairs = Seen(output.tool_runs), Seen(output.tool_pairs)
    feed.on_next(tool_call("c1", {}))
    assert [run.state for run in runs.items] == ["input-available"]
    assert not pairs.items
    feed.on_next(tool_error("c1", wire))
    assert [run.state for run in runs.items] == ["input-available", "output-error"]
    assert [(pair.state, str(pair.error)) for pair in pairs.items] == [("error", message)]
    feed.on_next(text("sorry"))
    feed.on_next(finish())
    feed.on_completed()
    assert (output.status, output.error) == ("success", None)
    assert output.text.run() == "sorry"
    assert output.tool_results.run() == []


@pytest.mark.parametrize("wire", [None, {}, 5, [], True])
def test_an_error_that_says_nothing_is_an_error_all_the_same(wire: Any) -> None:
    """B076: whatever a tool threw."""
    (pair,) = output_of(tool_call("c1", {}), tool_error("c1", wire), finish()).tool_pairs
    assert pair.state == "error"
    assert isinstance(pair.error, mx.AgentError)
