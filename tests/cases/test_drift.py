"""Faults of wire drift and of order: chunks that lack something, say something new, or come at another place."""

from __future__ import annotations

import asyncio
import itertools
import logging
from pathlib import Path
from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx import Usage
from tests.cases.wire import (
    ABORT,
    STREAMS,
    USAGE,
    VALUES,
    Seen,
    call_delta,
    call_end,
    call_start,
    error,
    finish,
    lines,
    of_a_server,
    output_of,
    reasoning,
    records,
    sse,
    step_finish,
    text,
    tool_call,
    tool_result,
)
from tests.conftest import Recording, recordings

# ---- what is missing, new or different -------------------------------------------------------------------------------

NO_PAYLOAD = {
    "data": {"type": "data-workspace-metadata", "data": {"x": 1}},
    "data without data": {"type": "data-x"},
    "data with a payload": {"type": "data-x", "payload": {"x": 1}},
    "object": {"type": "object", "object": {"a": 1}},
    "object-result": {"type": "object-result", "object": {"a": 1}},
    "unknown": {"type": "from-the-future"},
    "unknown with null": {"type": "from-the-future", "payload": None},
    "start": {"type": "start"},
    "step-start": {"type": "step-start"},
    "text-start": {"type": "text-start"},
    "text-delta": {"type": "text-delta"},
    "text-end": {"type": "text-end"},
    "reasoning-start": {"type": "reasoning-start"},
    "reasoning-delta": {"type": "reasoning-delta"},
    "tool-call": {"type": "tool-call"},
    "tool-call-delta": {"type": "tool-call-delta"},
    "tool-result": {"type": "tool-result"},
    "step-finish": {"type": "step-finish"},
    "source": {"type": "source"},
    "goal": {"type": "goal"},
    "raw": {"type": "raw"},
    "watch": {"type": "watch"},
    "response-metadata": {"type": "response-metadata"},
    "background-task-started": {"type": "background-task-started"},
}


@pytest.mark.parametrize("chunk", NO_PAYLOAD.values(), ids=NO_PAYLOAD)
@pytest.mark.parametrize("of", [dict, of_a_server])
def test_a_chunk_without_payload_does_not_stop_the_run(chunk: Any, of: Any) -> None:
    """B163: a chunk without payload aborts the run."""
    output = output_of(text("Hello"), of(chunk), text(" world"), finish(), include_raw=True)
    assert output.text.run() == "Hello world"
    assert (output.status, output.error) == ("success", None)
    full = list(output.full_stream)
    assert mx.to_wire(full[1]) == of(chunk), "it is surfaced, with all it had"
    for name in (*VALUES, *STREAMS):
        seen = Seen(getattr(output, name))
        assert (seen.errors, seen.completed) == ([], 1), name


@pytest.mark.parametrize("of", [dict, of_a_server])
@pytest.mark.parametrize("source", ["list", "bytes"])
@pytest.mark.parametrize("payload", [{}, {"payload": None}, {"payload": {}}], ids=["missing", "null", "empty"])
def test_a_finish_without_payload_is_a_finish(of: Any, source: str, payload: Any) -> None:
    """B163: the end of a run is its end, whatever it says about it."""
    chunks = [of(text("a")), of({"type": "finish", **payload})]
    output: Any = mx.MastraModelOutput(chunks if source == "list" else mx.from_bytes([sse(*chunks, done=False)]))
    assert output.text.run() == "a"
    assert output.status == "success"


ENDS = {
    "finish": ({"type": "finish", "payload": "done"}, "success", None),
    "a finish with an odd field": ({"type": "finish", "payload": {"stepResult": "stop"}}, "success", None),
    "error": ({"type": "error", "payload": "boom"}, "failed", "boom"),
    "an error beside the payload": ({"type": "error", "payload": [], "error": "boom"}, "failed", "boom"),
    "abort": ({"type": "abort", "payload": "by the user"}, "canceled", None),
    "tripwire": ({"type": "tripwire", "payload": "pii"}, "running", None),
}


@pytest.mark.parametrize(("chunk", "status", "message"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("source", ["list", "bytes"])
def test_an_end_that_does_not_fit_is_an_end(chunk: Any, status: str, message: str | None, source: str) -> None:
    """B163: neither an unknown type nor a payload that does not fit stops a run, or hides how it ended."""
    chunks = [text("a"), chunk]
    output: Any = mx.MastraModelOutput(chunks if source == "list" else mx.from_bytes([sse(*chunks, done=False)]))
    full = output.get_full_output().run()
    assert output.status == status
    assert (None if full.error is None else str(full.error)) == message


def test_data_is_surfaced() -> None:
    """B163: what a tool wrote for the user interface is on its chunk."""
    (chunk,) = [c for c in output_of(NO_PAYLOAD["data"], finish()).full_stream if c.type.startswith("data-")]
    assert chunk.data == {"x": 1}


VARIATIONS = {
    "null id": {"type": "text-delta", "payload": {"text": "a", "id": None}},
    "no id": {"type": "text-delta", "payload": {"text": "a"}},
    "null run": {"type": "text-delta", "runId": None, "from": "SOMETHING_NEW", "payload": {"text": "a", "extra": 1}},
    "extra at the top": {"type": "text-delta", "payload": {"text": "a"}, "new": {"deep": [1]}},
    "null metadata": {"type": "text-delta", "payload": {"text": "a", "providerMetadata": None}, "metadata": None},
    "empty role": {"type": "text-delta", "from": "", "role": "", "payload": {"id": "", "text": "a"}},
    "a null beside": {"type": "text-delta", "payload": {"id": "t", "text": "a"}, "traceId": None},
    "keys like attributes": {"type": "text-delta", "payload": {"text": "a", "extra": 1, "self": 2}, "raw": 3},
}


@pytest.mark.parametrize("chunk", VARIATIONS.values(), ids=VARIATIONS)
@pytest.mark.parametrize("of", [dict, of_a_server])
def test_a_harmless_variation_is_taken(chunk: Any, of: Any, caplog: pytest.LogCaptureFixture) -> None:
    """B165: a strict schema rejects a harmless variation; unknown values and fields are kept."""
    wire = of(chunk)
    with caplog.at_level(logging.WARNING):
        parsed = mx.parse_chunk(wire)
    assert parsed.type == "text-delta"
    assert parsed.text == "a"
    assert mx.to_wire(parsed) == wire
    assert not caplog.records


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "text-delta", "run_id": "r", "payload": {"text": "a"}},
        {"type": "text-delta", "from_": "r", "payload": {"text": "a"}},
        {"type": "text-delta", "payload": {"text": "a", "provider_metadata": {"x": 1}}},
        {"type": "text-delta", "payload": {"text": "a", "provider_metadata": 1}},
    ],
)
def test_a_key_that_is_spelled_like_an_attribute_is_a_field_nobody_knows(chunk: Any) -> None:
    """B165: it is kept as it came, like any other extra field."""
    parsed = mx.parse_chunk(chunk)
    assert (parsed.type, parsed.text) == ("text-delta", "a")
    assert mx.to_wire(parsed) == chunk


def test_variations_add_up() -> None:
    """B165: in one run."""
    assert output_of(*VARIATIONS.values(), finish()).text.run() == "a" * len(VARIATIONS)


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "text-delta", "payload": {"id": 0, "text": "a"}},
        {"type": "text-delta", "runId": 7, "payload": {"text": "a"}},
        {"type": "text-delta", "payload": {"text": 5}},
        {"type": "text-delta", "payload": "a"},
        {"type": "text-delta", "payload": []},
        {"type": "source", "payload": {"id": []}},
    ],
)
def test_what_does_not_fit_is_told_and_does_not_stop_the_run(chunk: Any, caplog: pytest.LogCaptureFixture) -> None:
    """B165: what is more than harmless is passed on with the reason, and logged."""
    with caplog.at_level(logging.WARNING):
        output = output_of(chunk, text("b"), finish())
        assert output.text.run() == "b"
    first = next(iter(output.full_stream))
    assert (first.type, first.wire_type) == ("unknown", chunk["type"])
    assert first.error is not None
    assert mx.to_wire(first) == chunk
    assert len(caplog.records) == 1


OTHER_DIALECTS = {
    "AI SDK 5 part": {"type": "text-delta", "id": "t", "delta": "Hi"},
    "AI SDK 4 part": {"type": "text-delta", "textDelta": "Hi"},
    "an older Mastra": {"type": "text-delta", "payload": {"textDelta": "Hi"}},
    "AI SDK 5 text": {"type": "text-delta", "id": "t", "text": "Hi"},
}


@pytest.mark.parametrize("chunk", OTHER_DIALECTS.values(), ids=OTHER_DIALECTS)
def test_another_dialect_is_not_an_empty_text_in_silence(chunk: Any, caplog: pytest.LogCaptureFixture) -> None:
    """B166: two dialects for the same thing.

    Decoders for other dialects come with their sources. Until then what is not Mastra's is said to be so.
    """
    with caplog.at_level(logging.WARNING):
        first = next(iter(output_of(chunk, finish()).full_stream))
    assert first.type == "unknown"
    assert first.error is not None
    assert "text-delta chunk does not fit" in caplog.text


@pytest.mark.parametrize(
    "data", [b'0:"Hi"\n', b"Hello", b"<!doctype html>", b'[{"type":"start"}]', b'"text"\n', b"HTTP/1.1 200 OK\r\n\r\n"]
)
def test_what_is_no_stream_of_chunks_is_an_error(data: bytes) -> None:
    """B166: the wrong dialect gives a clear error, and not an empty text."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(mx.from_bytes([data]))
    with pytest.raises(mx.ChunkDecodeError):
        output.text.run()


REASONS = ["stop", "length", "content-filter", "tool-calls", "suspended", "other", "unknown", "retry", "error"]
REASONS += ["from-the-future", "x" * 1_000, "ünïcode"]


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("where", ["finish", "step"])
def test_any_finish_reason_passes(reason: str, where: str) -> None:
    """B168: the finish reason is lost, and so are reasons that only Mastra has."""
    output = output_of(step_finish(None, reason), finish(reason if where == "finish" else "stop"))
    assert output.steps.run()[0].finish_reason == reason
    assert output.finish_reason.run() == (reason if where == "finish" else "stop")
    assert output.status == "success"


@pytest.mark.parametrize("reason", [None, ""])
def test_a_finish_without_a_reason_is_a_finish(reason: Any) -> None:
    """B168: as in Mastra 1.71.0 there is then none."""
    assert output_of(text("a"), finish(reason)).finish_reason.run() is None


def test_a_finish_with_the_reason_tripwire_is_a_tripwire() -> None:
    """B168: a reason with a consequence."""
    output = output_of({"type": "finish", "payload": {"stepResult": {"reason": "tripwire"}, "output": {}}})
    assert output.finish_reason.run() == "tripwire"
    assert output.tripwire is not None
    assert output.tripwire.reason == "Processor tripwire triggered"


@pytest.mark.parametrize("made", [sse, records, lines])
@pytest.mark.parametrize("count", [500, 20_000])
def test_everything_in_one_read(made: Any, count: int) -> None:
    """B169: a server sends everything in one write."""
    data = made(*[text(str(at)) for at in range(count)], finish())
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(mx.from_bytes([data]))
    live, late = Seen(output.text_stream), Seen(output.text_stream)
    assert live.items == late.items == [str(at) for at in range(count)]
    assert len(output.text.run()) == sum(len(str(at)) for at in range(count))


def test_everything_in_one_read_lets_the_loop_run() -> None:
    """B169: a user interface gets its chance between the chunks."""

    async def main() -> int:
        data = sse(*[text("a")] * 500, finish())
        turns, over = 0, False

        async def paint() -> None:
            nonlocal turns
            while not over:
                turns += 1
                await asyncio.sleep(0)

        painting = asyncio.ensure_future(paint())
        output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(mx.from_bytes([data]))
        pieces = [piece async for piece in output.text_stream]
        over = True
        await painting
        assert len(pieces) == 500
        return turns

    assert asyncio.run(main()) >= 5


# ---- order -----------------------------------------------------------------------------------------------------------


def block(kind: str, at: str, name: str) -> dict[str, Any]:
    return {"type": f"{kind}-{at}", "payload": {"id": name}}


THINK = [block("reasoning", "start", "r1"), reasoning("think"), block("reasoning", "end", "r1")]
SAY = [block("text", "start", "t1"), text("Paris"), block("text", "end", "t1")]


def interleavings(one: list[Any], two: list[Any]) -> list[list[Any]]:
    """Every way to lay two sequences into one that keeps both orders."""
    size = len(one) + len(two)
    ways = []
    for places in itertools.combinations(range(size), len(one)):
        ones, twos = iter(one), iter(two)
        ways.append([next(ones) if at in places else next(twos) for at in range(size)])
    return ways


@pytest.mark.parametrize("chunks", interleavings(THINK, SAY), ids=lambda c: "".join(x["type"][0] for x in c))
def test_blocks_may_overlap(chunks: list[Any]) -> None:
    """B142: reasoning is lost where text-start comes before reasoning-end."""
    output = output_of(*chunks, step_finish(), finish())
    assert (output.reasoning_text.run(), output.text.run()) == ("think", "Paris")
    assert [part.text for part in output.reasoning_parts.run()] == ["think"]
    assert output.steps.run()[0].reasoning == "think"


@pytest.mark.parametrize("after", [[], [block("text", "end", "t9"), block("reasoning", "end", "r9")]])
@pytest.mark.parametrize("of", [dict, of_a_server])
def test_a_delta_needs_no_start(after: list[Any], of: Any) -> None:
    """B144: a delta without its start. Nothing is dropped, nothing raises."""
    output = output_of(*map(of, [text("x", "t9"), reasoning("y", "r9"), *after, finish()]))
    assert (output.text.run(), output.reasoning.run()) == ("x", "y")
    assert list(output.text_stream) == ["x"]
    # As in Mastra 1.71.0 a block that never started has no part; its text is in the reasoning.
    assert output.reasoning_parts.run() == []


def test_a_tool_delta_needs_no_start() -> None:
    """B144: the same for arguments; without a start there is no name, and so no call."""
    output = output_of(call_delta('{"a":1}'), call_end(), tool_call("c1", {"a": 1}), finish())
    assert [call.payload.args for call in output.tool_calls.run()] == [{"a": 1}]


@pytest.mark.parametrize("between", [[step_finish()], [], [step_finish(), {"type": "step-start"}]], ids=len)
@pytest.mark.parametrize("ids", [("t1", "t1"), ("t1", "t2")], ids="-".join)
def test_an_id_may_be_used_again(between: list[Any], ids: tuple[str, str]) -> None:
    """B145: two text parts in one run; ids are used again after a step."""
    first, second = (
        [block("text", "start", name), text(piece, name), block("text", "end", name)]
        for name, piece in zip(ids, "AB", strict=True)
    )
    output = output_of(*first, *between, *second, step_finish(), finish())
    assert output.text.run() == "AB"
    texts = [step.text for step in output.steps.run()]
    assert texts == (["A", "B"] if between else ["AB"])
    assert [c.payload.id for c in output.full_stream if c.type == "text-delta"] == list(ids)


def test_the_last_step_has_its_own_text() -> None:
    """B145: where the last step never closed, its text is in the run's."""
    output = output_of(text("A"), step_finish(), text("B"), finish())
    assert output.text.run() == "AB"
    assert [step.text for step in output.steps.run()] == ["A"]


FIRST = [call_start("a"), call_delta('{"x"', "a"), call_delta(":1}", "a"), call_end("a")]
SECOND = [call_start("b"), call_delta('{"y":2}', "b"), call_end("b")]


@pytest.mark.parametrize("of", [dict, of_a_server])
def test_calls_may_overlap(of: Any) -> None:
    """B147: the second tool call starts before the first ends, and the consumer throws."""
    for chunks in interleavings(FIRST, SECOND):
        output = output_of(*map(of, [*chunks[:3], text("between"), *chunks[3:], finish()]))
        args = {call.payload.tool_call_id: call.payload.args for call in output.tool_calls.run()}
        assert args == {"a": {"x": 1}, "b": {"y": 2}}
        assert output.text.run() == "between"
        states = [(run.tool_call_id, run.state) for run in output.tool_runs]
        assert states.count(("a", "input-available")) == states.count(("b", "input-available")) == 1


OPEN = {
    "text": [block("text", "start", "t1"), text("a"), finish()],
    "reasoning": [block("reasoning", "start", "r1"), reasoning("a"), finish()],
    "arguments": [call_start(), call_delta('{"a":'), finish()],
    "a streamed call": [call_start(), call_delta('{"a":1}'), call_end(), tool_result("c1", 1), step_finish(), finish()],
    "bad arguments": [call_start(), call_delta('{"a":'), call_end(), tool_result("c1", 1), step_finish(), finish()],
    "arguments as text": [tool_call("c1", "nope"), finish()],
    "totals": [
        step_finish(USAGE),
        step_finish({**USAGE, "inputTokens": "2", "reasoningTokens": 1}),
        finish(usage=None),
    ],
    "half an emoji": [text("a\ud83d"), text("\ude00"), text("\ud83d"), finish()],
    "unknown": [{"type": "from-the-future", "x": [None]}, {"type": "text-delta", "payload": 5}, finish()],
    "an error": [text("a"), error({"message": "x", "code": None}), finish("error")],
    "an abort": [text("a"), ABORT, finish("tripwire")],
    "a tripwire": [text("a"), {"type": "tripwire", "payload": {"reason": "x"}}],
    "a break": [text("a")],
    "two turns": [{"type": "start"}, text("a"), finish(), {"type": "start"}, text("b"), finish()],
}


def views_of(output: mx.MastraModelOutput[Any]) -> dict[str, Any]:
    views: dict[str, Any] = {}
    for name in (*STREAMS, *VALUES):
        seen = Seen(getattr(output, name))
        views[name] = ([mx.to_wire(item) for item in seen.items], [str(one) for one in seen.errors], seen.completed)
    for name in ("usage", "total_usage"):
        # A finish chunk says 0 where a count is unknown, as Mastra's does; who replays it cannot know better.
        views[name] = ([Usage.of(usage).as_totals() for usage in views[name][0]], *views[name][1:])
    views["status"] = (output.status, mx.to_wire(output.tripwire))
    return views


def recorded(output: mx.MastraModelOutput[Any], path: Path) -> mx.MastraModelOutput[Any]:
    mx.record(output.full_stream, path)
    return mx.MastraModelOutput(mx.from_jsonl(path))


@pytest.mark.parametrize("chunks", OPEN.values(), ids=OPEN)
@pytest.mark.parametrize("of", [dict, of_a_server])
def test_a_recording_gives_the_same_views(chunks: list[Any], of: Any, tmp_path: Path) -> None:
    """B148: compaction moves open groups behind the terminal event. A recording keeps the order and closes nothing."""
    output = output_of(*map(of, chunks))
    again = recorded(output, tmp_path / "run.jsonl")
    assert views_of(again) == views_of(output)


# The arguments that only a swallowed call had are in the values, but in no chunk of the stream.
FILLED_IN = {"unit-tool-synth-empty-then-real", "unit-tool-synth-nonobject"}
RUNS = [recording for recording in recordings() if recording.is_agent_run and recording.name not in FILLED_IN]


@pytest.mark.parametrize("recording", RUNS, ids=str)
def test_a_recording_of_a_replay_is_the_recording(recording: Recording, tmp_path: Path) -> None:
    """B148: the same for every recorded run; only a failure of the source itself is not in a recording."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(recording.lines)
    again = recorded(output, tmp_path / "run.jsonl")
    assert views_of(again) == views_of(output)
