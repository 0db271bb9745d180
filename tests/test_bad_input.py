"""Bad input: said clearly or borne; what came before is there; no error of a library below comes through."""

from __future__ import annotations

import json
import typing
from typing import Any

import pydantic
import pytest
import reactivex

import mastra_rx as mx
from mastra_rx import operators as ops
from mastra_rx import relay
from tests.cases.wire import finish, step_finish, text


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def event(wire: Any) -> bytes:
    return b"data: " + json.dumps(wire).encode() + b"\n\n"


def texts_and_error(source: Any) -> tuple[list[str], Exception | None]:
    texts: list[str] = []
    errors: list[Exception] = []
    source.pipe(ops.text_deltas()).subscribe(texts.append, errors.append)
    return texts, errors[0] if errors else None


# ---- server-sent events ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", [b"retry: " + b"9" * 5000, b"retry: -1", b"id: " + b"9" * 5000, b"unheard: of"])
def test_an_odd_field_harms_nobody(field: bytes) -> None:
    came, error = texts_and_error(mx.from_bytes([event(text("a")) + field + b"\n\n" + event(text("b"))]))
    assert came == ["a", "b"]
    assert isinstance(error, mx.StreamInterrupted)


@pytest.mark.parametrize("data", [b"[" * 100_000, b"1e999", b'{"message":NaN}', b'{"payload":1}', b"\xff", b""])
def test_whatever_an_error_event_says_is_the_runs_error(data: bytes) -> None:
    """Also where it is not JSON, or JSON of no chunk."""
    body = event(text("a")) + b"event: error\ndata: " + data + b"\n\n"
    output = mx.MastraModelOutput(mx.from_bytes([body]))
    assert list(output.text_stream) == ["a"]
    with pytest.raises(mx.AgentError):
        output.text.run()


# ---- chunks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "at", [999999999999999999999999999999, 1e400, -1e300, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_a_moment_that_no_date_can_hold(at: Any) -> None:
    chunk = mx.parse_chunk({"type": "step-start", "payload": {"startedAt": at}})
    assert mx.to_wire(chunk)["payload"]["startedAt"]  # the misfit keeps what came


@pytest.mark.parametrize("kind", [[], {}, 5, None])
def test_a_type_that_is_no_text(kind: Any) -> None:
    with pytest.raises(mx.ChunkDecodeError, match="`type` that is a string"):
        mx.parse_chunk({"type": kind})
    came, error = texts_and_error(mx.from_chunks([text("a"), {"type": kind}]))
    assert came == ["a"]
    assert isinstance(error, mx.ChunkDecodeError)


def test_chunks_of_a_file_before_one_that_cannot_be_read(tmp_path: Any) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(text("a")) + '\n{"type": []}\n')
    came, error = texts_and_error(mx.from_jsonl(path))
    assert came == ["a"]
    assert isinstance(error, mx.ChunkDecodeError)
    assert error.line == 2


@pytest.mark.parametrize("count", [10**400, "9" * 400, -(10**30), "1e999", float("inf"), [], True])
def test_what_is_no_count_of_tokens_is_unknown(count: Any) -> None:
    wire = step_finish()
    wire["payload"]["output"] = {"usage": {"inputTokens": count, "outputTokens": 2}}
    end = {"type": "finish", "payload": {}}
    output = mx.MastraModelOutput([wire, end])
    assert output.usage.run().input_tokens is None
    assert output.snapshots.run().usage.output_tokens == 2
    assert mx.as_view(mx.from_chunks([wire, end]).pipe(ops.usage())).run().output_tokens == 2


# ---- depth -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [150, 300, 390])
def test_what_is_nested_deep_goes_in_and_out(depth: int) -> None:
    wire = {"type": "object", "object": nested(depth)}
    output = mx.MastraModelOutput(mx.from_bytes([event(wire) + event(finish())]))
    assert json.loads(b"".join(relay.jsonl(output)).splitlines()[0])["object"] == nested(depth)
    assert output.snapshots.run().status == "success"


@pytest.mark.parametrize("depth", [401, 700, 5000, 100_000])
def test_what_is_nested_too_deep_is_refused(depth: int) -> None:
    body = event(text("a")) + b'data: {"type":"object","object":' + b"[" * depth + b"]" * depth + b"}\n\n"
    came, error = texts_and_error(mx.from_bytes([body]))
    assert came == ["a"]
    assert isinstance(error, mx.ChunkDecodeError)
    assert "deep" in str(error)


def test_a_dict_nested_too_deep_to_be_written() -> None:
    output = mx.MastraModelOutput([text("a"), {"type": "object", "object": nested(3000)}, finish()])
    first, second, end = b"".join(relay.sse(output)).decode().split("\n\n")[:3]
    assert '"a"' in first
    assert "nested too deep" in second
    assert end == "data: [DONE]"
    assert list(output.object_stream)


def test_an_error_nested_too_deep_is_an_error_still() -> None:
    output = mx.MastraModelOutput([{"type": "error", "payload": {"error": nested(3000)}}])
    with pytest.raises(mx.AgentError):
        output.text.run()
    assert output.snapshots.run().status == "failed"


# ---- relays ----------------------------------------------------------------------------------------------------------


def test_a_history_gap_that_came_by_wire_is_a_chunk() -> None:
    assert b"".join(relay.sse(mx.MastraModelOutput([{"type": "history-gap"}, finish()]))).endswith(b"[DONE]\n\n")


def test_a_number_that_json_has_not_is_null() -> None:
    wire = {"type": "data-x", "data": {"at": [float("inf"), 1.5]}}
    sent = b"".join(relay.jsonl(mx.MastraModelOutput([wire, finish()]))).splitlines()[0]
    assert json.loads(sent)["data"] == {"at": [None, 1.5]}


@pytest.mark.parametrize("heartbeat", [0, -1.0])
def test_a_heartbeat_takes_time(heartbeat: float) -> None:
    with pytest.raises(ValueError, match="heartbeat"):
        relay.sse(mx.MastraModelOutput([]), heartbeat=heartbeat)


@pytest.mark.parametrize("history", ["x", 1.5, True, 0])
def test_history_is_a_number_of_chunks(history: Any) -> None:
    with pytest.raises(ValueError, match="history"):
        mx.MastraModelOutput([], history=history)


# ---- files that are there already -----------------------------------------------------------------------------------


def test_a_recording_is_kept_until_another_begins(tmp_path: Any) -> None:
    path = tmp_path / "run.jsonl"
    mx.record(mx.from_chunks([text("old"), text("old")]), path)
    mx.record(reactivex.throw(ConnectionError("nobody there")), path)
    assert texts_and_error(mx.from_jsonl(path))[0] == ["old", "old"]
    mx.record(mx.from_chunks([text("new")]), path)
    assert texts_and_error(mx.from_jsonl(path))[0] == ["new"]
    mx.record(mx.from_chunks([]), path)
    assert path.read_bytes() == b""


def test_what_has_no_snapshots_cannot_be_watched() -> None:
    output: Any = mx.WorkflowRunOutput([])
    with pytest.raises(TypeError, match="WorkflowRunOutput"):
        mx.jupyter.watch(output)


# ---- schemas ---------------------------------------------------------------------------------------------------------


def cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {}}
    schema["properties"]["a"] = schema
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/a", "a": [1]},
        {"$ref": "#/a", "a": 5},
        {"$ref": "#/a/²", "a": [1]},
        {"$ref": "#/a/" + "9" * 5000, "a": [1]},
        {"$schema": 5},
        {"$schema": []},
        cyclic(),
        pydantic.TypeAdapter(typing.Callable[[], int]),
    ],
    ids=lambda schema: str(schema)[:30],
)
def test_what_is_no_schema_is_refused_at_once(schema: Any) -> None:
    with pytest.raises(mx.SchemaError):
        mx.MastraModelOutput([], schema=schema)


@pytest.mark.parametrize("value", [[float("inf")], [10**400]])
def test_numbers_that_cannot_be_checked(value: Any) -> None:
    output = mx.MastraModelOutput(
        [{"type": "object-result", "object": value}, finish()], schema={"items": {"multipleOf": 0.1}}
    )
    with pytest.raises(mx.OutputValidationError, match="cannot be checked"):
        output.object.run()
