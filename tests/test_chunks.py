"""Chunks: the whole vocabulary, both roads of decoding, and what every chunk can do."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import mastra_rx as mx
from mastra_rx.chunks import TYPES, Decoder, class_of
from mastra_rx.chunks.base import Wire as WirePiece
from mastra_rx.chunks.hot import HOT
from mastra_rx.chunks.parse import class_for, validate
from tests.conftest import Recording

Wire = dict[str, Any]

REFERENCE = [
    "response-metadata",
    "text-start",
    "text-delta",
    "text-end",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "reasoning-signature",
    "redacted-reasoning",
    "source",
    "file",
    "reasoning-file",
    "custom",
    "tool-call",
    "tool-call-approval",
    "tool-call-suspended",
    "tool-result",
    "tool-call-input-streaming-start",
    "tool-call-delta",
    "tool-call-input-streaming-end",
    "finish",
    "error",
    "raw",
    "start",
    "step-start",
    "step-finish",
    "tool-error",
    "tool-output-denied",
    "abort",
    "object",
    "object-result",
    "tool-output",
    "step-output",
    "watch",
    "tripwire",
    "is-task-complete",
    "goal",
    "background-task-started",
    "background-task-completed",
    "background-task-failed",
    "background-task-progress",
    "background-task-running",
    "background-task-cancelled",
    "background-task-output",
    "background-task-suspended",
    "background-task-resumed",
    "workflow-start",
    "workflow-finish",
    "workflow-canceled",
    "workflow-paused",
    "workflow-step-start",
    "workflow-step-finish",
    "workflow-step-suspended",
    "workflow-step-waiting",
    "workflow-step-output",
    "workflow-step-progress",
    "workflow-step-result",
    "routing-agent-start",
    "routing-agent-text-delta",
    "routing-agent-text-start",
    "routing-agent-end",
    "routing-agent-abort",
    "agent-execution-start",
    "agent-execution-approval",
    "agent-execution-suspended",
    "agent-execution-end",
    "agent-execution-abort",
    "workflow-execution-start",
    "workflow-execution-end",
    "workflow-execution-suspended",
    "workflow-execution-abort",
    "tool-execution-start",
    "tool-execution-end",
    "tool-execution-approval",
    "tool-execution-suspended",
    "tool-execution-abort",
    "network-execution-event-step-finish",
    "network-execution-event-finish",
    "network-validation-start",
    "network-validation-end",
    "network-object",
    "network-object-result",
]
"""The types of @mastra/core 1.71.0 and of the two ChunkType references; beside them `data-*` and nested events."""


# ---- the vocabulary --------------------------------------------------------------------------------------------------


def test_all_types_of_the_reference_are_known_and_no_others() -> None:
    assert set(TYPES) == set(REFERENCE)


@pytest.mark.parametrize("kind", REFERENCE)
def test_a_chunk_of_each_type_is_of_the_class_that_says_that_type(kind: str) -> None:
    cls = class_of(TYPES[kind])
    assert {field.name: field.default for field in dataclasses.fields(cls)}["type"] == kind
    assert issubclass(cls, mx.BaseChunk)


@pytest.mark.parametrize("kind", ["data-weather", "data-", "data-x-y"])
def test_data_chunks_of_any_name_are_known(kind: str) -> None:
    wire = {"type": kind, "data": {"x": [1]}, "id": "d", "transient": True}
    chunk = mx.parse_chunk(wire)
    assert isinstance(chunk, mx.DataChunk)
    assert (chunk.type, chunk.data, chunk.run_id) == (kind, {"x": [1]}, None)
    assert mx.to_wire(chunk) == wire


@pytest.mark.parametrize("kind", ["agent-execution-event-text-delta", "workflow-execution-event-workflow-step-start"])
def test_events_of_nested_runs_are_known(kind: str) -> None:
    wire = {"type": kind, "runId": "r", "from": "NETWORK", "payload": {"type": "text-delta", "payload": {"text": "x"}}}
    assert isinstance(chunk := mx.parse_chunk(wire), mx.NestedEventChunk)
    assert mx.to_wire(chunk) == wire


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "tripwire", "payload": {"reason": "no"}},
        {"type": "tripwire"},
        {"type": "background-task-completed", "payload": {"taskId": "t", "runId": "r", "result": 1}},
        {"type": "object", "object": {"n": None}},
        {"type": "object", "object": None},
        {"type": "object-result", "object": [], "metadata": {"fallback": True}},
        {"type": "workflow-step-start", "payload": {"id": "s", "stepName": "s", "startedAt": 1}},
        {"type": "finish", "payload": {"stepResult": {"reason": "stop"}}},
        {"type": "finish", "payload": {}},
        {"payload": {"id": "t", "text": "x", "type": "text-end"}, "type": "text-end", "from": "AGENT", "runId": "r"},
        {"type": "abort", "runId": "r"},
        {"type": "text-delta", "payload": {"id": "t", "text": "x"}, "runId": "r", "from": "AGENT", "traceId": "tr"},
    ],
    ids=lambda wire: wire["type"],
)
def test_keys_that_real_chunks_lack_may_be_missing(wire: Wire) -> None:
    chunk = mx.parse_chunk(wire)
    assert chunk.type == wire["type"]
    assert mx.to_wire(chunk) == wire


# ---- two roads, one answer -------------------------------------------------------------------------------------------

IDS: Wire = {"runId": "r", "from": "AGENT"}
PLAIN: dict[str, Wire] = {
    "text-delta": {"id": "t", "text": "x"},
    "reasoning-delta": {"id": "t", "text": "x"},
    "tool-call-delta": {"toolCallId": "c", "argsTextDelta": "{", "toolName": "weather"},
    "tool-call-input-streaming-start": {"toolCallId": "c", "toolName": "weather", "dynamic": True},
    "tool-call-input-streaming-end": {"toolCallId": "c"},
    "tool-call": {"toolCallId": "c", "toolName": "weather", "args": {"city": "Oslo"}},
    "tool-result": {"toolCallId": "c", "toolName": "weather", "result": [1], "isError": False},
}
ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False), st.text(max_size=3),
    st.lists(st.integers(0, 1), max_size=2), st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
)  # fmt: skip
KEYS = sorted(
    {key for payload in PLAIN.values() for key in payload} | {"providerMetadata", "providerExecuted", "title"}
)


@st.composite
def hot_chunks(draw: st.DrawFn) -> Wire:
    """Chunks of a hot type with keys missing, null, unknown or of a wrong type."""
    kind = draw(st.sampled_from(sorted(PLAIN)))
    payload: Any = dict(PLAIN[kind])
    for key in draw(st.sets(st.sampled_from(KEYS), max_size=2)):
        payload[key] = draw(ODD)
    for key in draw(st.sets(st.sampled_from(sorted(payload)), max_size=1)):
        del payload[key]
    if draw(st.booleans()):
        payload["unknown"] = draw(ODD)
    whole: Wire = {"type": kind, **IDS, "payload": draw(st.one_of(st.just(payload), st.just(payload), ODD))}
    for key in draw(st.sets(st.sampled_from(["runId", "from", "traceId", "metadata", "unknown"]), max_size=1)):
        whole[key] = draw(ODD)
    for key in draw(st.sets(st.sampled_from(["runId", "from", "payload"]), max_size=1)):
        whole.pop(key, None)
    return whole


def the_long_road(wire: Wire) -> mx.BaseChunk | None:
    cls = class_for(wire["type"])
    assert cls is not None
    try:
        return validate(cls, wire)
    except (ValidationError, ValueError, KeyError, TypeError):
        return None


@given(hot_chunks())
@example({"type": "tool-call", **IDS, "payload": {"toolCallId": "c", "args": None}})
@example({"type": "tool-call", **IDS, "payload": {"toolCallId": "c", "args": "{"}})
@example({"type": "tool-result", **IDS, "payload": {"toolCallId": "c", "result": ""}})
@example({"type": "tool-call-delta", **IDS, "payload": {"toolCallId": "c", "argsTextDelta": "", "toolName": None}})
def test_the_fast_road_gives_what_pydantic_gives(wire: Wire) -> None:
    quick, long = HOT[wire["type"]](wire), the_long_road(copy.deepcopy(wire))
    if quick is None:
        return  # not the plain shape: pydantic's road is the only one
    assert long is not None, "the fast road took what pydantic refuses"
    assert quick == long
    assert long == quick
    assert repr(quick) == repr(long)
    assert (quick.__class__, quick.type) == (long.__class__, long.type)
    assert mx.to_wire(quick) == mx.to_wire(long) == wire


@pytest.mark.parametrize("kind", PLAIN)
def test_the_plain_shape_takes_the_fast_road(kind: str) -> None:
    assert HOT[kind]({"type": kind, **IDS, "payload": PLAIN[kind]}) is not None


@given(hot_chunks())
def test_nothing_that_came_is_lost_and_nothing_is_made_up(wire: Wire) -> None:
    before = copy.deepcopy(wire)
    chunk = mx.parse_chunk(wire)
    assert mx.to_wire(chunk) == before
    assert wire == before, "the wire's data is not changed"
    again = mx.parse_chunk(json.dumps(wire))
    assert again.type == chunk.type
    assert mx.to_wire(again) == before


# ---- lossless --------------------------------------------------------------------------------------------------------


def test_recordings_come_back_as_they_were(recording: Recording) -> None:
    for line, wire in zip(recording.lines, recording.wire, strict=True):
        if "\\ud" not in line.decode():  # half an emoji is the decoder's business
            assert mx.to_wire(mx.parse_chunk(line)) == wire


def test_unknown_fields_are_kept_and_readable() -> None:
    wire = {"type": "text-delta", "payload": {"id": "t", "text": "x", "new": {"a": 1}}, "newer": [1], "runId": None}
    chunk = mx.parse_chunk(wire)
    assert isinstance(chunk, mx.TextDeltaChunk)
    assert chunk.extra == {"newer": [1], "runId": None}
    assert chunk.payload.extra == {"new": {"a": 1}}
    assert mx.to_wire(chunk) == wire


def test_to_wire_is_json_able_for_what_views_give() -> None:
    output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools")))
    for view in (output.usage, output.steps, output.tool_calls, output.get_full_output(), output.snapshots):
        json.dumps(mx.to_wire(view.run()))
    assert mx.to_wire(output.usage.run())["totalTokens"] == 51


# ---- what every chunk can do -----------------------------------------------------------------------------------------

SAMPLES: list[Wire] = [
    *({"type": kind, **IDS, "payload": payload} for kind, payload in PLAIN.items()),
    {"type": "text-delta", "payload": {"text": "x", "new": 1}, "newer": None},
    {"type": "file", **IDS, "payload": {"data": {"0": 1, "1": 255}, "mimeType": "image/png"}},
    {"type": "step-start", **IDS, "payload": {"startedAt": 1735689600000, "request": {}}},
    {"type": "data-x", "data": [1]},
    {"type": "from-the-future", "x": {"y": 1}},
    {"type": "finish", **IDS, "payload": {"stepResult": {"reason": "stop"}, "output": {"usage": {"inputTokens": 1}}}},
]


@pytest.mark.parametrize("wire", SAMPLES, ids=lambda wire: wire["type"])
def test_chunks_are_copied_and_pickled_whole(wire: Wire) -> None:
    chunk = mx.parse_chunk(wire)
    for other in (
        copy.copy(chunk),
        copy.deepcopy(chunk),
        pickle.loads(pickle.dumps(chunk)),
        pickle.loads(pickle.dumps(chunk, protocol=2)),
    ):
        assert other == chunk
        assert other is not chunk
        assert type(other).__name__ == type(chunk).__name__
        assert mx.to_wire(other) == wire
        assert repr(other) == repr(chunk)


@pytest.mark.parametrize("wire", SAMPLES, ids=lambda wire: wire["type"])
def test_chunks_are_immutable_and_say_why(wire: Wire) -> None:
    chunk = mx.parse_chunk(wire)
    for piece in (chunk, getattr(chunk, "payload", None)):
        if isinstance(piece, WirePiece):
            for name in ("type", "run_id", "payload", "text", "made_up", "extra"):
                with pytest.raises(dataclasses.FrozenInstanceError, match="is immutable, since every view shares it"):
                    setattr(piece, name, "x")
                with pytest.raises(dataclasses.FrozenInstanceError):
                    delattr(piece, name)
    with pytest.raises(TypeError):
        hash(chunk)
    assert not hasattr(chunk, "__dict__")
    assert mx.to_wire(chunk) == wire


def test_replace_makes_a_changed_copy_and_keeps_what_is_unknown() -> None:
    chunk = mx.parse_chunk({"type": "text-delta", **IDS, "payload": {"id": "t", "text": "x"}, "newer": 1})
    assert isinstance(chunk, mx.TextDeltaChunk)
    changed = chunk.__replace__(payload=chunk.payload.__replace__(text="y"))
    assert (changed.text, chunk.text, changed.extra) == ("y", "x", {"newer": 1})
    assert mx.to_wire(changed) == {"type": "text-delta", **IDS, "payload": {"id": "t", "text": "y"}, "newer": 1}


def test_chunks_can_be_made_by_hand() -> None:
    made = mx.TextDeltaChunk(run_id="r", from_="AGENT", payload=mx.TextDeltaPayload(id="t", text="x"))
    assert made == mx.parse_chunk({"type": "text-delta", **IDS, "payload": {"id": "t", "text": "x"}})
    assert made != mx.parse_chunk({"type": "text-delta", **IDS, "payload": {"id": "t", "text": "y"}})
    assert mx.parse_chunk(made) is made


def test_chunks_match_by_class_and_attributes() -> None:
    for wire in (SAMPLES[0], {**SAMPLES[0], "newer": 1}):  # both roads
        match mx.parse_chunk(wire):
            case mx.TextDeltaChunk(payload=mx.TextDeltaPayload(text=text)):
                assert text == "x"
            case other:
                pytest.fail(repr(other))


def test_the_union_is_a_type_that_pydantic_validates() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(mx.Chunk)
    for wire in SAMPLES:
        assert adapter.validate_python(wire) == mx.parse_chunk(wire)
        assert adapter.dump_python(adapter.validate_python(wire)) == mx.to_wire(mx.parse_chunk(wire))
    assert TypeAdapter(list[mx.Chunk]).validate_python(SAMPLES)[0].type == "text-delta"


# ---- bytes and dates -------------------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_bytes_come_as_an_object_with_index_keys(data: bytes) -> None:
    wire = {
        "type": "file",
        **IDS,
        "payload": {"data": {str(i): byte for i, byte in enumerate(data)}, "mimeType": "x/y"},
    }
    chunk = mx.parse_chunk(json.dumps(wire))
    assert isinstance(chunk, mx.FileChunk)
    assert chunk.payload.data == data
    assert mx.to_wire(chunk) == wire


@pytest.mark.parametrize("data", [{"1": 1}, {"0": 256}, {"0": "x"}, {"0": 1, "2": 3}])
def test_what_only_looks_like_bytes_stops_no_run(data: Wire) -> None:
    wire = {"type": "file", **IDS, "payload": {"data": data, "mimeType": "x/y"}}
    chunk = mx.parse_chunk(wire)
    assert isinstance(chunk, mx.UnknownChunk)
    assert mx.to_wire(chunk) == wire


@pytest.mark.parametrize(
    "moment", [1735689600000, 1735689600000.5, "2025-01-01T00:00:00.000Z", "2025-01-01T01:00:00+01:00"]
)
def test_dates_come_as_text_or_as_milliseconds(moment: Any) -> None:
    wire = {"type": "step-start", **IDS, "payload": {"startedAt": moment}}
    chunk = mx.parse_chunk(wire)
    assert isinstance(chunk, mx.StepStartChunk)
    assert chunk.payload is not None
    assert chunk.payload.started_at is not None
    assert chunk.payload.started_at.replace(microsecond=0) == datetime(2025, 1, 1, tzinfo=UTC)
    assert mx.to_wire(chunk) == wire


# ---- what nobody knows -----------------------------------------------------------------------------------------------


def test_a_type_from_the_future_is_kept_whole() -> None:
    wire = {"type": "from-the-future", "runId": "r", "from": "MARS", "payload": [1], "x": {"y": None}}
    chunk = mx.parse_chunk(wire)
    assert isinstance(chunk, mx.UnknownChunk)
    assert (chunk.type, chunk.wire_type, chunk.run_id, chunk.payload) == ("from-the-future",) * 2 + ("r", [1])
    assert (chunk.raw, chunk.error) == (wire, None)
    assert mx.to_wire(chunk) == wire


def test_a_known_type_that_does_not_fit_says_why_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    wire = {"type": "text-delta", "payload": {"text": 1}}
    with caplog.at_level(logging.WARNING, "mastra_rx"):
        chunk = mx.parse_chunk(wire)
    assert isinstance(chunk, mx.UnknownChunk)
    assert (chunk.type, chunk.wire_type) == ("unknown", "text-delta")
    assert isinstance(chunk.error, ValidationError)
    assert "text-delta" in caplog.text
    assert mx.to_wire(chunk) == wire


@pytest.mark.parametrize(
    "data", ["", "nul", "[]", "1", '"x"', "{}", '{"type": 1}', '{"type": null}', '{"a":NaN}', b"\xff"]
)
def test_what_is_no_chunk_is_an_error_that_shows_it(data: Any) -> None:
    with pytest.raises(mx.ChunkDecodeError):
        mx.parse_chunk(data)


# ---- an emoji that the provider split --------------------------------------------------------------------------------


def delta(text: str, kind: str = "text-delta", block: str = "t") -> bytes:
    """A line as a server writes it: halves of an emoji escaped."""
    return json.dumps({"type": kind, **IDS, "payload": {"id": block, "text": text}}).encode()


def decode_all(lines: Iterable[bytes]) -> list[mx.Chunk]:
    """Every chunk of a stream that is already there."""
    decoder = Decoder()
    return decoder.decode(lines) + decoder.end()


def texts(*lines: bytes) -> list[str]:
    deltas = (mx.TextDeltaChunk, mx.ReasoningDeltaChunk)
    return [chunk.payload.text for chunk in decode_all(lines) if isinstance(chunk, deltas)]


def test_the_half_is_held_back_and_joined_to_the_next_delta() -> None:
    assert texts(delta("a\ud83d"), delta("\ude00b")) == ["a", "\U0001f600b"]
    assert texts(delta("\ud83d"), delta(""), delta("\ude00")) == ["", "", "\U0001f600"]


def test_halves_wait_for_their_own_block() -> None:
    thought = [delta("\ud83d", "reasoning-delta"), delta("\ude01", "reasoning-delta")]
    lines = [delta("\ud83d"), delta("x", block="u"), thought[0], delta("\ude00"), thought[1]]
    assert texts(*lines) == ["", "x", "", "\U0001f600", "\U0001f601"]


def test_a_half_that_never_finds_its_other_is_replaced() -> None:
    assert texts(delta("a\ud83d")) == ["a", "\ufffd"]
    assert texts(delta("\ude00a")) == ["\ufffda"]
    assert texts(delta("\ud83d"), delta("x")) == ["", "\ufffdx"]
    end = json.dumps({"type": "text-end", **IDS, "payload": {"id": "t"}}).encode()
    chunks = decode_all([delta("\ud83d"), end])
    assert [chunk.type for chunk in chunks] == ["text-delta", "text-delta", "text-end"]


@given(st.text(st.characters(codec="utf-8"), max_size=8), st.data())
def test_any_cut_between_utf_16_units_gives_the_text_again(text: str, data: st.DataObject) -> None:
    units = text.encode("utf-16-le")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(units) // 2))))
    edges = pairwise([0, *(2 * cut for cut in cuts), len(units)])
    pieces = [units[start:end].decode("utf-16-le", "surrogatepass") for start, end in edges]
    assert "".join(texts(*map(delta, pieces))) == text


def test_a_decoder_can_be_fed_chunk_by_chunk() -> None:
    decoder = Decoder()
    assert [chunk.type for chunk in decoder.decode([delta("\ud83d"), b" ", ""])] == ["text-delta"]
    joined = decoder.decode([delta("\ude00")])[0]
    assert isinstance(joined, mx.TextDeltaChunk)
    assert joined.text == "\U0001f600"
    assert joined.text.encode()
    assert decoder.end() == []
