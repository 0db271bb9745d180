"""A schema in any form: what it says about a value, and what is no schema."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter
from typing_extensions import TypedDict

import mastra_rx as mx
from mastra_rx.schema import schema_of


class Recipe(BaseModel):
    name: str
    minutes: int = 10


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    colour: Colour


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict, total=False):
    title: str


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


Recipes = RootModel[list[Recipe]]

TYPES: dict[str, tuple[Any, str, Any, Any]] = {
    "model": (Recipe, "object", {"name": "Soup", "minutes": "5"}, Recipe(name="Soup", minutes=5)),
    "dataclass": (Point, "object", {"x": 1}, Point(1, 0)),
    "TypedDict": (Movie, "object", {"title": "M"}, {"title": "M"}),
    "dict": (dict[str, int], "object", {"a": "1"}, {"a": 1}),
    "list of models": (list[Recipe], "array", [{"name": "Soup"}], [Recipe(name="Soup")]),
    "tuple": (tuple[int, ...], "array", [1, 2], (1, 2)),
    "set": (set[int], "array", [1, 2], {1, 2}),
    "root model": (Recipes, "array", [{"name": "Soup"}], Recipes([Recipe(name="Soup")])),
    "adapter": (TypeAdapter(list[Point]), "array", [{"x": 1}], [Point(1)]),
    "adapter of a model": (TypeAdapter(Recipe), "object", {"name": "Soup"}, Recipe(name="Soup")),
    "Literal": (Literal["a", "b"], "enum", "a", "a"),
    "Enum": (Colour, "enum", "red", Colour.RED),
    "one Literal": (Literal["a"], "object", "a", "a"),
    "str": (str, "object", "a", "a"),
    "int": (int, "object", 3, 3),
    "bool": (bool, "object", False, False),
    "union": (int | str, "object", "a", "a"),
    "optional list": (list[int] | None, "object", [1], [1]),
    "annotated": (Annotated[list[int], Field(min_length=1)], "array", [1], [1]),
    "strict types": (
        Strict,
        "object",
        {"day": "2024-02-29", "colour": "red"},
        Strict(day=date(2024, 2, 29), colour=Colour.RED),
    ),
}


@pytest.mark.parametrize(("spec", "kind", "value", "wanted"), TYPES.values(), ids=TYPES)
def test_a_type(spec: Any, kind: str, value: Any, wanted: Any) -> None:
    schema = schema_of(spec)
    assert schema.kind == kind
    assert schema.validate(value) == wanted
    assert type(schema.validate(value)) is type(wanted)
    assert schema_of(schema) is schema


@pytest.mark.parametrize(
    "spec",
    [
        list[Recipe],
        TypeAdapter(list[Recipe]),
        tuple[Recipe, ...],
        Annotated[list[Recipe], Field(min_length=1)],
        Sequence[Recipe],
    ],
    ids=str,
)
def test_elements_of_a_typed_array_are_typed(spec: Any) -> None:
    element = schema_of(spec).element
    assert element is not None
    assert element.validate({"name": "Soup", "minutes": "5"}) == Recipe(name="Soup", minutes=5)


def test_what_has_no_elements() -> None:
    for spec in (Recipe, dict[str, int], int, {"type": "object"}, {"type": "array"}, tuple[int, str]):
        assert schema_of(spec).element is None


@pytest.mark.parametrize(
    ("spec", "value", "where", "index"),
    [
        (Recipe, {"minutes": 1}, "name", None),
        (Recipe, None, "root", None),
        (list[Recipe], [{"name": "a"}, {"name": 1}], "1.name", 1),
        (list[int], [1] * 10 + ["x"], "10", 10),
        ({"type": "object", "required": ["a"]}, {}, "root", None),
        (
            {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
            [{}, {"n": "x"}],
            "1.n",
            1,
        ),
        ({"type": "array", "items": {"type": "number"}}, [1, "x"], "1", 1),
        (dict[str, int], {"3": "x"}, "3", None),
    ],
)
def test_a_misfit_says_where(spec: Any, value: Any, where: str, index: int | None) -> None:
    with pytest.raises(mx.OutputValidationError, match=r"^Structured output validation failed") as caught:
        schema_of(spec).validate(value)
    error = caught.value
    assert error.errors[0].partition(":")[0] == where
    assert error.index == index
    assert error.value == value


def test_of_several_misfits_the_first_element_is_named() -> None:
    """Positions are numbers: 2 comes before 10."""
    value = [1, 1, "x", *[1] * 7, "y"]
    for spec in (list[int], {"type": "array", "items": {"type": "number"}}):
        with pytest.raises(mx.OutputValidationError) as caught:
            schema_of(spec).validate(value)
        assert caught.value.index == 2
        assert [error.partition(":")[0] for error in caught.value.errors] == ["2", "10"]


def test_of_many_misfits_twenty_are_told() -> None:
    with pytest.raises(mx.OutputValidationError, match="and 30 more") as caught:
        schema_of(list[int]).validate(["x"] * 50)
    assert len(caught.value.errors) == 50


# ---- JSON schema -----------------------------------------------------------------------------------------------------

NODE = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
    "required": ["id"],
}


@pytest.mark.parametrize("definitions", ["$defs", "definitions"])
def test_references_are_followed(definitions: str) -> None:
    ref = {"$ref": f"#/{definitions}/node"}
    node = {**NODE, "properties": {"id": {"type": "integer"}, "next": ref}}
    for spec in (ref, {"type": "array", "items": ref}):
        schema = schema_of({**spec, definitions: {"node": node}})
        nodes = [{"id": 1, "next": {"id": 2}}, {"id": 1, "next": {"id": "x"}}]
        fits, not_fits = ([nodes[0]], [nodes[1]]) if schema.kind == "array" else nodes
        assert schema.validate(fits) == fits
        with pytest.raises(mx.OutputValidationError, match=r"next\.id"):
            schema.validate(not_fits)
        if schema.kind == "array":
            assert schema.element is not None
            assert schema.element.validate(nodes[0]) == nodes[0]


def test_the_kind_of_a_reference() -> None:
    for definition, kind in (({"type": "array"}, "array"), ({"enum": ["a"]}, "enum"), ({"type": "object"}, "object")):
        schema = schema_of({"$ref": "#/$defs/it", "$defs": {"it": definition}})
        assert schema.kind == kind
    assert schema_of({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"enum": ["x", "y"]}}}).choices == ["x", "y"]


def test_a_tree_refers_to_its_root() -> None:
    """`#` is the whole schema also where an element is validated alone."""
    tree = {"type": "array", "items": {"type": "object", "properties": {"children": {"$ref": "#"}}}}
    schema = schema_of(tree)
    value = [{"children": [{"children": []}]}]
    assert schema.validate(value) == value
    assert schema.element is not None
    assert schema.element.validate(value[0]) == value[0]
    with pytest.raises(mx.OutputValidationError):
        schema.element.validate({"children": {}})


@pytest.mark.parametrize(
    "spec",
    [
        {"$ref": "#/$defs/any", "$defs": {"any": True}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/any"}}, "$defs": {"any": True}},
        {"type": "object", "properties": {"a": True}},
        {"type": "array", "items": True},
    ],
    ids=str,
)
def test_true_is_a_schema_in_a_schema(spec: Any) -> None:
    schema = schema_of(spec)
    value = [1] if schema.kind == "array" else {"a": 1}
    assert schema.validate(value) == value


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2024-02-30"),
        ("email", "a@b.c", "ab.c"),
        ("ipv4", "127.0.0.1", "1.2.3"),
        ("uuid", "7f3a2c1e-0d4b-4c6a-9e8f-001122334455", "7f3a"),
        ("no-such-format", "x", None),
    ],
)
def test_formats_are_checked(name: str, good: str, bad: str | None) -> None:
    schema = schema_of({"type": "string", "format": name})
    assert schema.validate(good) == good
    if bad is not None:
        with pytest.raises(mx.OutputValidationError, match=name):
            schema.validate(bad)


def test_the_draft_is_the_schemas_own() -> None:
    tuple_of = [{"type": "integer"}, {"type": "string"}]
    old = schema_of({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": tuple_of})
    new = schema_of(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array", "prefixItems": tuple_of}
    )
    for schema in (old, new):
        assert schema.validate([1, "a"]) == [1, "a"]
        with pytest.raises(mx.OutputValidationError):
            schema.validate(["a", 1])
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}
    with pytest.raises(mx.OutputValidationError):
        schema_of(draft4).validate(1)
    with pytest.raises(mx.SchemaError):  # exclusiveMinimum is a number today
        schema_of({"minimum": 1, "exclusiveMinimum": True})


def test_defaults_are_filled_in_and_other_keys_left_out() -> None:
    """As the validators of Mastra do."""
    inner = {"type": "object", "properties": {"b": {"default": 1}}, "additionalProperties": False}
    schema = schema_of(
        {"type": "object", "properties": {"a": inner, "l": {"items": inner}}, "additionalProperties": False}
    )
    value = {"a": {"x": 1}, "l": [{}, {"b": 2}], "more": 1}
    assert schema.validate(value) == {"a": {"b": 1}, "l": [{"b": 1}, {"b": 2}]}
    assert value == {"a": {"x": 1}, "l": [{}, {"b": 2}], "more": 1}, "the value itself was changed"


def test_a_default_belongs_to_its_value() -> None:
    schema = schema_of({"type": "object", "properties": {"a": {"default": []}}})
    schema.validate({})["a"].append(1)
    assert schema.validate({}) == {"a": []}


def test_a_value_may_be_deep() -> None:
    """It fits or it does not: a value is no reason to find fault with the schema."""
    value: Any = {}
    for _ in range(3000):
        value = {"next": value}
    schema = schema_of({"type": "object", "properties": {"next": {"$ref": "#"}}})
    with suppress(mx.OutputValidationError):
        schema.validate(value)


# ---- what is no schema -----------------------------------------------------------------------------------------------


class Plain:
    pass


class Opaque(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: Plain


NONSENSE: dict[str, Any] = {
    "text": "Recipe",
    "JSON": '{"type": "object"}',
    "bytes": b"{}",
    "a number": 5,
    "a list": [int],
    "a tuple": (int,),
    "a set": {int},
    "true": True,
    "...": ...,
    "a class": Plain,
    "an object": Plain(),
    "an instance of a model": Recipe(name="x"),
    "a function": lambda value: value,
    "no such type": {"type": "nonsense"},
    "a type that is a number": {"type": 5},
    "properties that are a list": {"type": "object", "properties": []},
    "a pattern that is none": {"type": "string", "pattern": "("},
    "a reference to nothing": {"type": "object", "properties": {"a": {"$ref": "#/$defs/nope"}}},
    "a type without a JSON schema": Opaque,
}


@pytest.mark.parametrize("spec", NONSENSE.values(), ids=NONSENSE)
def test_what_is_no_schema(spec: Any) -> None:
    """It is refused where it is given, not when the run is over."""
    with pytest.raises(mx.SchemaError):
        schema_of(spec)
    with pytest.raises(TypeError):
        mx.MastraModelOutput([], schema=spec)
