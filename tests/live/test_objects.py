"""Structured output: objects, arrays and enums, and what happens when they do not fit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

import mastra_rx as mx
from tests.live.comparing import assert_same, assert_same_failure
from tests.live.conftest import MastraServer


class Person(BaseModel):
    name: str
    age: int
    tags: list[str] = []


class Item(BaseModel):
    id: int
    name: str


class Named(BaseModel):
    name: str


PERSON = {"name": "Ada", "age": 36, "tags": ["math", "engines"]}
ITEMS = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 3, "name": "three"}]


def test_an_object(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("object").stream("Hello", schema=Person)
    growing = list(output.object_stream)
    assert growing[0] in ({}, {"name": ""}, {"name": "A"})
    assert growing[-1] == PERSON
    assert output.object.run() == Person(name="Ada", age=36, tags=["math", "engines"])
    assert_same(mastra, output)


def test_an_object_in_asyncio(mastra: MastraServer) -> None:
    async def main() -> mx.MastraModelOutput[Person]:
        async with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
            output = client.agent("object").stream("Hello", schema=Person)
            assert (await output.object).age == 36
            return output

    assert_same(mastra, asyncio.run(main()))


@dataclass
class PlainPerson:
    name: str
    age: int


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "number"}},
    "required": ["name", "age"],
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (SCHEMA, PERSON),
        (TypeAdapter(Person), Person(name="Ada", age=36, tags=["math", "engines"])),
        (PlainPerson, PlainPerson("Ada", 36)),
    ],
    ids=["JSON schema", "TypeAdapter", "dataclass"],
)
def test_kinds_of_schemas(schema: Any, expected: Any, client: mx.MastraClient) -> None:
    assert client.agent("object").stream("Hello", schema=schema).object.run() == expected


def test_an_array(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("array").stream("Hello", schema=list[Item])
    assert list(output.element_stream) == [Item(**item) for item in ITEMS]  # D1: each once, complete
    assert output.object.run() == [Item(**item) for item in ITEMS]
    assert TypeAdapter(list[Item]).validate_json("".join(output.text_stream)) == output.object.run()  # D3
    assert_same(mastra, output)


def test_an_enum(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("enum").stream("Hello", schema=Literal["sunny", "rainy"])  # type: ignore[call-overload]
    assert output.object.run() == "sunny"
    assert_same(mastra, output)


def test_the_server_finds_that_it_does_not_fit(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("object-invalid").stream("Hello", schema=Named)
    with pytest.raises(mx.AgentError, match="Structured output validation failed: - name: must be string") as caught:
        output.object.run()
    assert caught.value.code == "STRUCTURED_OUTPUT_SCHEMA_VALIDATION_FAILED"
    assert caught.value.details == {"value": '{"name":42}'}
    assert_same_failure(mastra, output)


def test_elements_that_the_server_refuses(mastra: MastraServer, client: mx.MastraClient) -> None:
    """Our own check of each element comes first."""
    output = client.agent("array").stream("Hello", schema=list[Person])
    with pytest.raises(mx.OutputValidationError) as caught:
        list(output.element_stream)
    assert caught.value.index == 0
    with pytest.raises(mx.AgentError, match="must have required property 'age'"):
        output.object.run()
    assert_same_failure(mastra, output)


def test_a_value_that_does_not_fit_may_be_a_warning(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("object-invalid").stream("Hello", schema=Named, error_strategy="warn")
    assert output.object.run() is None
    assert output.text.run() == '{"name":42}'
    assert output.status == "success"
    assert_same(mastra, output)


def test_a_value_that_does_not_fit_may_be_replaced(mastra: MastraServer, client: mx.MastraClient) -> None:
    output = client.agent("object-invalid").stream(
        "Hello", schema=Named, error_strategy="fallback", fallback={"name": "nobody"}
    )
    assert mx.to_wire(output.object.run()) == {"name": "nobody"}
    assert output.used_fallback_value
    assert_same(mastra, output)


def test_what_the_server_takes_and_we_do_not(client: mx.MastraClient) -> None:
    """pydantic may ask for more than JSON schema can say."""
    from pydantic import field_validator

    class Shouting(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def loud(cls, name: str) -> str:
            if not name.isupper():
                raise ValueError("not loud enough")
            return name

    output = client.agent("echo").stream('{"name": "Bob"}', schema=Shouting)
    with pytest.raises(mx.OutputValidationError, match="not loud enough"):
        output.object.run()
    assert output.text.run() == '{"name": "Bob"}'
    assert client.agent("echo").stream('{"name": "BOB"}', schema=Shouting).object.run().name == "BOB"
