"""Faults of structured output: what is validated when, and what is told of an object that does not fit."""

from __future__ import annotations

import logging
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, model_validator

import mastra_rx as mx
from tests.cases.wire import USAGE, Seen, finish, output_of, text, tool_call, tool_result


class Number(BaseModel):
    n: int
    unit: str = "m"


def texts(*pieces: str) -> list[Any]:
    return [text(piece) for piece in pieces]


@pytest.mark.parametrize("schema", [None, {"type": "object"}], ids=["no schema", "schema"])
def test_an_object_that_was_cut_off(schema: Any) -> None:
    """B045: a truncated object is repaired and returned as complete after finish reason `length`."""
    written = '{"name":"Ana","items":["a","b"'
    output = output_of(*texts(written), {"type": "text-end", "payload": {"id": "t1"}}, finish("length"), schema=schema)
    assert output.text.run() == written
    assert output.finish_reason.run() == "length"
    if schema is None:
        assert output.object.run() is None
        return
    with pytest.raises(mx.OutputValidationError, match="length") as caught:
        output.object.run()
    assert caught.value.reason == "length"
    assert caught.value.value == {"name": "Ana", "items": ["a", "b"]}
    assert caught.value.partial.text == written


@pytest.mark.parametrize("value", [False, 0, "", [], {}, None], ids=repr)
def test_falsy_objects(value: Any) -> None:
    """B047: a falsy but valid value is treated as missing."""
    result = {"type": "object-result", "object": value}
    assert output_of(result, finish()).object.run() == value
    assert type(output_of(result, finish()).object.run()) is type(value)
    assert output_of(*texts("ignored"), result, finish(), schema={}).object.run() == value


@pytest.mark.parametrize(
    ("written", "schema", "value"), [("false", bool, False), ("0", int, 0), ('""', str, ""), ("[]", list[int], [])]
)
def test_falsy_objects_of_text(written: str, schema: Any, value: Any) -> None:
    """B047: nor where the value is read from text."""
    assert output_of(*texts(written), finish(), schema=schema).object.run() == value


def test_elements_are_what_the_schema_makes_of_them() -> None:
    """B048: array mode validates elements but returns raw ones."""
    output = output_of(*texts('{"elements":[{"n":"3"}]}'), finish(), schema=list[Number])
    assert Seen(output.element_stream).items == [Number(n=3)]
    assert output.object.run() == [Number(n=3)]


CALLS: list[dict[str, Any]] = []


class User(BaseModel):
    name: str = Field(min_length=5)


class Ticket(BaseModel):
    status: Literal["pending", "done"]
    tags: list[str] = Field(min_length=1)
    user: User

    @model_validator(mode="before")
    @classmethod
    def seen(cls, value: Any) -> Any:
        CALLS.append(value)
        return value


PIECES = ['{"status":"pen', 'ding","tags":[', '"a"],"user":{"name":"Al', 'ice"}}']


def test_what_is_unfinished_is_not_validated() -> None:
    """B050: validating unfinished values raises mid-stream."""
    CALLS.clear()
    output = output_of(*texts(*PIECES), finish(), schema=Ticket)
    seen = Seen(output.object_stream)
    assert not seen.errors
    assert seen.items == [
        {"status": "pen"},
        {"status": "pending", "tags": []},
        {"status": "pending", "tags": ["a"], "user": {"name": "Al"}},
        {"status": "pending", "tags": ["a"], "user": {"name": "Alice"}},
    ]
    assert CALLS == []
    assert output.object.run().user.name == "Alice"
    with pytest.raises(mx.OutputValidationError, match="user: Field required"):
        output_of(*texts('{"status":"done","tags":["a"]}'), finish(), schema=Ticket).object.run()


def test_a_partial_is_of_one_type() -> None:
    """B051: the last item of a list is a dict while earlier ones are models; here all is plain data."""
    schema = {"type": "object", "properties": {"items": {"type": ["array", "null"]}}}
    for given in (schema, dict[str, list[Number] | None]):
        seen = Seen(output_of(*texts('{"items":[{"n":"A"},{"n":"B'), finish(), schema=given).object_stream)
        assert seen.items[-1] == {"items": [{"n": "A"}, {"n": "B"}]}
        assert {type(item) for item in seen.items[-1]["items"]} == {dict}


def test_a_validator_sees_only_what_is_whole() -> None:
    """B053: a validator cannot know that it sees a partial; here it never does."""
    CALLS.clear()
    output = output_of(*texts(*PIECES), finish(), schema=Ticket)
    assert Seen(output.object_stream).completed == 1
    output.object.run()
    assert CALLS == [{"status": "pending", "tags": ["a"], "user": {"name": "Alice"}}]


class TestAnObjectThatDoesNotFit:
    """B054: warn and fallback cannot be told from no object."""

    CHUNKS = (*texts("[1,2,3]"), tool_call(args={}), tool_result(result=1), finish())

    def output(self, **options: Any) -> mx.MastraModelOutput[Any]:
        return output_of(*self.CHUNKS, schema={"type": "object"}, **options)

    def test_strict(self) -> None:
        """B054: strict raises."""
        output = self.output()
        with pytest.raises(mx.OutputValidationError) as caught:
            output.object.run()
        assert caught.value.value == [1, 2, 3]
        assert output.error is caught.value
        assert not output.used_fallback_value

    def test_warn(self, caplog: pytest.LogCaptureFixture) -> None:
        """B054: warn gives None, and says so in the log."""
        with caplog.at_level(logging.WARNING, "mastra_rx"):
            assert self.output(error_strategy="warn").object.run() is None
        assert "Structured output validation failed" in caplog.text

    def test_fallback(self) -> None:
        """B054: fallback gives the value and tells that it is one."""
        output = self.output(error_strategy="fallback", fallback={"a": 0})
        assert output.object.run() == {"a": 0}
        assert output.used_fallback_value

    @pytest.mark.parametrize("strategy", ["strict", "warn", "fallback"])
    def test_all_else_is_untouched(self, strategy: str) -> None:
        """B054: text, usage and calls are the same with each."""
        output = self.output(error_strategy=strategy)
        assert output.text.run() == "[1,2,3]"
        assert output.usage.run().total_tokens == USAGE["totalTokens"]
        assert [call.payload.tool_call_id for call in output.tool_calls.run()] == ["c1"]
        assert output.finish_reason.run() == "stop"
