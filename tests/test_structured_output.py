"""Structured output read from text: the growing object, its elements, the result; as Mastra 1.71.0 reads it."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import logging
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, field_validator
from reactivex.subject import Subject
from typing_extensions import TypedDict

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import START, STEP_START, Seen, error, finish, output_of, step_finish, text
from tests.conftest import HERE


class Recipe(BaseModel):
    name: str
    minutes: int = 10


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict):
    title: str


class Colour(enum.Enum):
    RED = "red"
    ROSE = "rose"


def texts(*pieces: str) -> list[Any]:
    return [text(piece) for piece in pieces]


def reading(schema: Any, *pieces: str, reason: str = "stop", **options: Any) -> mx.MastraModelOutput[Any]:
    return output_of(*texts(*pieces), finish(reason), schema=schema, **options)


def items(view: Any) -> list[Any]:
    seen = Seen(view)
    assert not seen.errors
    assert seen.completed == 1
    return seen.items


# ---- Mastra's table --------------------------------------------------------------------------------------------------

TABLE = json.loads((HERE / "tables" / "object-handlers.table.json").read_text("utf-8"))
VIEWS = {"objectStream": "object_stream", "elementStream": "element_stream", "textStream": "text_stream"}

ENDS = "the stream of elements ends at, or leaves out, the one that does not fit"
OF_AN_ARRAY = "D17: elements come from text where the schema is an array's"

DIFFERENCES: dict[str, dict[str, str]] = {
    "obj-array-root": {"elementStream": OF_AN_ARRAY},
    "obj-proto": {"final": "D16", "objectStream": "D16"},
    "obj-bigint": {"final": "D16", "objectStream": "D16"},
    "arrN-chars": {"objectStream": "D2", "elementStream": "D2", "textStream": "D3"},
    "arrN-one": {"textStream": "D3"},
    "arrN-bare": dict.fromkeys(("final", *VIEWS), "D17"),
    "arrN-nulls": {"objectStream": "D2", "elementStream": ENDS, "textStream": "D3"},
    "arrN-invalid": {"elementStream": ENDS, "textStream": "D3"},
    "arrS-chars": {"textStream": "D3"},
    "arrO-chars": {"elementStream": "D1", "textStream": "D3"},
    "arrO-emptyobj": {"elementStream": "D1", "textStream": "D3"},
    "arrA-chars": {"elementStream": "D1", "textStream": "D3"},
    "arrEn-chars": {"textStream": "D3"},
    "arrN-truncated": {"elementStream": "D2", "textStream": "D3"},
    "arrN-fence": {"textStream": "D3"},
    "native-arr": {"objectStream": "D2", "textStream": "D3"},
}


class Row:
    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.name: str = row["name"]
        options = row["options"]
        ours = {"error_strategy": options.get("errorStrategy"), "fallback": options.get("fallbackValue")}
        self.options = {key: value for key, value in ours.items() if value is not None}
        self.named = DIFFERENCES.get(self.name, {})

    def __str__(self) -> str:
        return "-".join([self.name, *[v for k, v in self.options.items() if k == "error_strategy"]])

    def output(self) -> mx.MastraModelOutput[Any]:
        return reading(self.row["schema"], *self.row["deltas"], reason=self.row["finishReason"], **self.options)

    @property
    def final(self) -> Any:
        """The object, or that there was an error."""
        (last,) = self.row["final"] or [{"object": None}]
        return "error" if last.get("type") == "error" else [last["object"]]

    def check(self, view: str, ours: Any, theirs: Any) -> None:
        equal = json.dumps(ours) == json.dumps(theirs)
        if view in self.named:
            assert not equal, f"{view} no longer differs: take it from the table ({self.named[view]})"
        else:
            assert equal, f"ours is {ours}, Mastra's {theirs}"


ROWS = [Row(row) for row in TABLE]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_final_value_of_the_table(row: Row) -> None:
    output = row.output()
    try:
        ours: Any = [output.object.run()]
    except mx.OutputValidationError:
        ours = "error"
    row.check("final", ours, row.final)
    fallback = any((last.get("metadata") or {}).get("fallback") for last in row.row["final"])
    assert output.used_fallback_value == fallback
    assert output.text.run() == "".join(row.row["deltas"])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_emission_of_the_table(row: Row, view: str) -> None:
    row.check(view, Seen(getattr(row.output(), VIEWS[view])).items, row.row[view])


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_messages_of_the_table(row: Row) -> None:
    """They begin as Mastra's do; what is wrong is told in the words of the validator."""
    if row.final != "error" or "final" in row.named:
        return
    theirs: str = row.row["final"][0]["message"]
    with pytest.raises(mx.OutputValidationError) as caught:
        row.output().object.run()
    if row.name == "obj-tool-calls":
        assert str(caught.value).startswith("Structured output is not JSON")
    else:
        assert str(caught.value).startswith(theirs.partition(":")[0])


def test_every_named_row_is_in_the_table() -> None:
    assert DIFFERENCES.keys() <= {row.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_how_text_is_cut_does_not_matter(row: Row) -> None:
    whole, letters = "".join(row.row["deltas"]), list("".join(row.row["deltas"]))
    results = []
    for deltas in ([whole], letters):
        output = reading(row.row["schema"], *deltas, reason=row.row["finishReason"], error_strategy="warn")
        results.append((output.object.run(), Seen(output.element_stream).items, Seen(output.object_stream).items[-1:]))
    assert results[0] == results[1]


# ---- D3 --------------------------------------------------------------------------------------------------------------

ELEMENTS = st.lists(
    st.integers() | st.text(st.characters(exclude_categories=["Cs"])) | st.dictionaries(st.text("ab"), st.none()),
    max_size=6,
)


@settings(deadline=None, max_examples=60)
@given(
    ELEMENTS,
    st.booleans(),
    st.integers(1, 9),
    st.dictionaries(st.sampled_from(["note", "x"]), st.text("ab"), max_size=2),
)
def test_the_text_of_an_array_is_the_array(elements: list[Any], bare: bool, size: int, more: dict[str, str]) -> None:
    """D3, D1, D2: however it is cut, each element comes once; joined, the text parses to the object."""
    whole = json.dumps(elements if bare else {"elements": elements, **more})
    output = reading({"type": "array"}, *[whole[at : at + size] for at in range(0, len(whole), size)])
    assert output.object.run() == elements
    assert json.loads("".join(output.text_stream)) == elements
    assert items(output.element_stream) == elements
    states = items(output.object_stream)
    assert states[-1] == elements
    assert [len(state) for state in states] == sorted(len(state) for state in states), "an element disappeared"


def test_without_an_array_text_is_what_came() -> None:
    assert items(reading({"type": "object"}, '{"a"', ":1}").text_stream) == ['{"a"', ":1}"]
    assert items(reading(list[int], "").text_stream) == []


# ---- schemas of every form -------------------------------------------------------------------------------------------

FORMS: dict[str, tuple[Any, str, Any]] = {
    "model": (Recipe, '{"name": "Soup", "minutes": "5"}', Recipe(name="Soup", minutes=5)),
    "dataclass": (Point, '{"x": 1}', Point(1)),
    "TypedDict": (Movie, '{"title": "M"}', {"title": "M"}),
    "list": (list[Recipe], '{"elements": [{"name": "Soup"}]}', [Recipe(name="Soup")]),
    "bare list": (list[Recipe], '[{"name": "Soup"}]', [Recipe(name="Soup")]),
    "list of lists": (list[list[int]], "[[1], [], [2, 3]]", [[1], [], [2, 3]]),
    "list of a Literal": (list[Literal["a", "b"]], '{"elements": ["a", "b"]}', ["a", "b"]),
    "Literal": (Literal["red", "rose"], '{"result": "rose"}', "rose"),
    "Enum": (Colour, '{"result": "red"}', Colour.RED),
    "adapter": (TypeAdapter(list[Point]), '{"elements": [{"x": 1}]}', [Point(1)]),
    "JSON schema": ({"type": "object", "properties": {"a": {"type": "integer"}}}, '{"a": 1}', {"a": 1}),
    "JSON schema of an array": ({"type": "array", "items": {"type": "integer"}}, '{"elements": [1]}', [1]),
    "JSON schema of an enum": ({"enum": ["a", "b"]}, '{"result": "b"}', "b"),
    "str": (str, '"hello"', "hello"),
    "int": (int, "42", 42),
    "bool": (bool, "false", False),
    "None": (type(None), "null", None),
    "union": (Recipe | Point, '{"x": 3}', Point(3)),
    "optional": (Recipe | None, "null", None),
}


@pytest.mark.parametrize(("schema", "written", "wanted"), FORMS.values(), ids=FORMS)
def test_the_object_is_of_the_schemas_type(schema: Any, written: str, wanted: Any) -> None:
    for pieces in ([written], list(written)):
        output = reading(schema, *pieces)
        assert output.object.run() == wanted
        assert type(output.object.run()) is type(wanted)
        assert output.get_full_output().run().object == wanted
        (value,) = mx.as_view(mx.from_chunks([*texts(*pieces), finish()]).pipe(ops.object(schema)))
        assert value == wanted
        if isinstance(wanted, list):
            assert items(output.element_stream) == wanted


def test_the_stream_of_objects_is_plain_data() -> None:
    output = reading(Recipe, '{"na', 'me": "S', 'oup", "minutes": "', '5"}')
    assert items(output.object_stream) == [
        {},
        {"name": "S"},
        {"name": "Soup", "minutes": ""},
        {"name": "Soup", "minutes": "5"},
    ]


def test_an_enum_is_told_as_soon_as_only_one_is_left() -> None:
    assert items(reading(Colour, *'{"result": "rose"}').object_stream) == ["r", "rose"]
    assert items(reading(Literal["apple", "banana"], *'{"result": "banana"}').object_stream) == ["banana"]


def test_states_stay_as_they_were() -> None:
    states = items(reading({"type": "object"}, *'{"a": [{"b": "cd"}, 1], "e": {"f": []}}').object_stream)
    assert states[:4] == [{}, {"a": []}, {"a": [{}]}, {"a": [{"b": ""}]}]
    assert len({json.dumps(state) for state in states}) == len(states)


# ---- validation ------------------------------------------------------------------------------------------------------


def counted(bad: str | None = None) -> tuple[type[BaseModel], list[str]]:
    """A model that counts how often it is validated, and refuses the name `bad`."""
    calls: list[str] = []

    class Counted(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def count(cls, name: str) -> str:
            calls.append(name)
            if name == bad:
                raise ValueError("a bad name")
            return name

    return Counted, calls


def test_partials_are_never_validated_and_the_object_once() -> None:
    model, calls = counted()
    output = reading(model, *'{"name": "Soup"}')
    assert len(items(output.object_stream)) == 6
    assert calls == []
    for _ in range(2):
        assert output.object.run().name == "Soup"
        assert output.get_full_output().run().object.name == "Soup"
    assert calls == ["Soup"]


def test_an_object_that_does_not_fit_is_validated_once() -> None:
    model, calls = counted(bad="Soup")
    with pytest.raises(mx.OutputValidationError, match="a bad name"):
        reading(model, '{"name": "Soup"}').object.run()
    assert calls == ["Soup"]


def test_an_element_is_validated_once_as_it_closes() -> None:
    model, calls = counted()
    feed: Subject[Any] = Subject()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feed, schema=list[model])  # type: ignore[valid-type]
    seen = Seen(output.element_stream)
    for piece, wanted in (
        ('{"elements": [{"name": "a"', []),
        ("}", ["a"]),
        (', {"name"', ["a"]),
        (': "b"}', ["a", "b"]),
    ):
        feed.on_next(text(piece))
        assert [item.name for item in seen.items] == calls == wanted


@pytest.mark.parametrize("validator", [lambda value: 1 / 0, lambda value: {}["x"]])
def test_a_validator_that_raises_something_else_spoils_the_object_only(validator: Any) -> None:
    class Model(BaseModel):
        a: int

        @field_validator("a")
        @classmethod
        def check(cls, value: int) -> int:
            return validator(value)

    output = reading(Model, '{"a": 1}')
    assert output.text.run() == '{"a": 1}'
    with pytest.raises(mx.OutputValidationError):
        output.object.run()
    assert isinstance(output.get_full_output().run().error, mx.OutputValidationError)


@pytest.mark.parametrize("schema", [list[int], {"type": "array", "items": {"type": "integer"}}], ids=str)
class TestAnElementThatDoesNotFit:
    PIECES = ('{"elements": [1, ', '2, "x", ', '4, "y"]}')

    def test_strict(self, schema: Any) -> None:
        output = reading(schema, *self.PIECES)
        seen = Seen(output.element_stream)
        assert seen.items == [1, 2]
        (misfit,) = seen.errors
        assert isinstance(misfit, mx.OutputValidationError)
        assert (misfit.index, misfit.value) == (2, "x")
        assert str(misfit).startswith("element 2: ")
        with pytest.raises(mx.OutputValidationError) as caught:
            output.object.run()
        assert caught.value.index == 2
        assert caught.value.value == [1, 2, "x", 4, "y"]
        assert output.finish_reason.run() == "stop"
        assert output.get_full_output().run().error is caught.value

    def test_warn(self, schema: Any, caplog: pytest.LogCaptureFixture) -> None:
        output = reading(schema, *self.PIECES, error_strategy="warn")
        with caplog.at_level(logging.WARNING, "mastra_rx"):
            assert items(output.element_stream) == [1, 2, 4]
            assert [record.getMessage()[:9] for record in caplog.records] == ["element 2", "element 4"]
            assert output.object.run() is None
        assert "Structured output validation failed" in caplog.text
        assert output.error is None
        assert output.get_full_output().run().error is None

    def test_fallback(self, schema: Any) -> None:
        output = reading(schema, *self.PIECES, error_strategy="fallback", fallback=[0])
        assert output.object.run() == [0]
        assert output.used_fallback_value
        assert output.status == "success"
        assert output.get_full_output().run().error is None


def test_a_fallback_is_not_validated() -> None:
    output = reading(Recipe, '{"name": 1}', error_strategy="fallback", fallback="none")
    assert output.object.run() == "none"


def test_no_such_strategy() -> None:
    with pytest.raises(ValueError, match="error_strategy='lenient'"):
        output_of(schema=Recipe, error_strategy="lenient")


@pytest.mark.parametrize("written", ["Let me check.", '{"name": nil}', "{'name': 1}", "```json\n"])
def test_what_is_not_json(written: str) -> None:
    output = reading(Recipe, written)
    with pytest.raises(mx.OutputValidationError) as caught:
        output.object.run()
    assert caught.value.value == written
    assert output.text.run() == written
    assert reading(Recipe, written, error_strategy="warn").object.run() is None


@pytest.mark.parametrize("pieces", [[], [""], [" ", "\n"]])
def test_no_text_no_object(pieces: list[str]) -> None:
    output = reading(Recipe, *pieces)
    assert output.object.run() is None
    assert items(output.object_stream) == []
    assert output.get_full_output().run().error is None


@pytest.mark.parametrize("reason", ["length", "content-filter"])
@pytest.mark.parametrize("written", ['{"name": "Soup"}', '{"name": "Sou'])
def test_an_object_that_was_cut_off_is_none(reason: str, written: str) -> None:
    output = reading(Recipe, written, reason=reason)
    assert items(output.object_stream)[-1] == json.loads(written.removesuffix('"}') + '"}')
    with pytest.raises(mx.OutputValidationError, match=f'reason "{reason}"') as caught:
        output.object.run()
    assert caught.value.reason == reason
    assert output.finish_reason.run() == reason
    assert reading(Recipe, written, reason=reason, error_strategy="warn").object.run() is None
    assert reading(Recipe, written, reason=reason, error_strategy="fallback", fallback=1).object.run() == 1


def test_an_array_that_was_cut_off_keeps_its_complete_elements() -> None:
    output = reading(list[str], '["a", "b", "c', reason="length")
    assert items(output.element_stream) == ["a", "b"]
    assert items(reading(list[str], '["a", "b", "c').element_stream) == ["a", "b", "c"]


# ---- steps, the wire, readers ----------------------------------------------------------------------------------------


def test_each_step_is_read_anew() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    steps = [START, STEP_START, *texts('{"a"', ": 1"), step_finish(reason="tool-calls")]
    steps += [STEP_START, *texts('{"a"', ": 2}"), step_finish(), finish()]
    output = output_of(*steps, schema=schema)
    assert items(output.object_stream) == [{}, {"a": 1}, {}, {"a": 2}]
    assert output.object.run() == {"a": 2}
    (value,) = mx.as_view(mx.from_chunks(steps).pipe(ops.object(schema)))
    assert value == {"a": 2}


def shown_on_the_wire(value: Any) -> Any:
    return {"type": "object", "object": value}


def result(value: Any, **more: Any) -> Any:
    return {"type": "object-result", "object": value, **more}


def test_objects_of_the_wire_come_before_those_of_the_text() -> None:
    """Mastra sends an object before the text that it was made of."""
    wire = [{}, {"a": 1}, {"a": 12}]
    chunks = [c for o, t in zip(wire, ['{"a"', ":1", "2}"], strict=True) for c in (shown_on_the_wire(o), text(t))]
    for schema in (None, {"type": "object"}):
        output = output_of(*chunks, result({"a": 12}), finish(), schema=schema)
        assert items(output.object_stream) == wire
        assert output.object.run() == {"a": 12}


def test_the_wires_result_comes_before_that_of_the_text() -> None:
    output = output_of(*texts('{"name": "text"}'), result({"name": "wire"}), finish(), schema=Recipe)
    assert output.object.run() == Recipe(name="wire")


def test_the_wires_elements_come_once() -> None:
    chunks = [
        shown_on_the_wire([]),
        *texts('{"elements": ['),
        shown_on_the_wire([1]),
        *texts("1, 2"),
        result([1, 2]),
        finish(),
    ]
    assert items(output_of(*chunks, schema=list[int]).element_stream) == [1, 2]
    assert items(output_of(*chunks).element_stream) == [1, 2]


def test_a_server_that_refuses_the_object_fails_the_run() -> None:
    chunks = [*texts('{"name": 1}'), error({"message": "Structured output validation failed"}), finish("error")]
    with pytest.raises(mx.AgentError, match="validation failed"):
        output_of(*chunks, schema=Recipe).object.run()


def test_a_fallback_of_the_server_is_taken_as_it_is() -> None:
    output = output_of(*texts("no"), result("none", metadata={"fallback": True}), finish(), schema=Recipe)
    assert output.object.run() == "none"
    assert output.used_fallback_value
    assert items(output.object_stream) == []


def test_without_a_schema_text_is_no_object() -> None:
    output = output_of(*texts('{"a": 1}'), finish())
    assert output.object.run() is None
    assert items(output.object_stream) == items(output.element_stream) == []


def test_every_reader_sees_the_same_early_or_late() -> None:
    feed: Subject[Any] = Subject()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feed, schema=list[Recipe])
    views = (output.object_stream, output.element_stream, output.text_stream, output.object)
    readers = [[Seen(view) for view in views]]
    for piece in ('{"elements": [{"na', 'me": "a"}, {"name"', ': "b"}', "]}"):
        feed.on_next(text(piece))
        readers.append([Seen(view) for view in views])
    feed.on_next(finish())
    feed.on_completed()
    readers.append([Seen(view) for view in views])
    first = [seen.items for seen in readers[0]]
    assert first[0] == [[], [{"name": "a"}], [{"name": "a"}, {"name": "b"}]]
    assert first[1] == [Recipe(name="a"), Recipe(name="b")]
    assert json.loads("".join(first[2])) == [{"name": "a"}, {"name": "b"}]
    assert first[3] == [first[1]]
    assert all([seen.items for seen in reader] == first for reader in readers)
    assert all(seen.completed == 1 for reader in readers for seen in reader)


def test_in_asyncio() -> None:
    async def chunks() -> Any:
        for chunk in [*texts('[{"name": "a"}, ', '{"name": "b"}]'), finish()]:
            await asyncio.sleep(0)
            yield chunk

    async def main() -> None:
        output = mx.MastraModelOutput[list[Recipe]](chunks(), schema=list[Recipe])
        assert [recipe.name async for recipe in output.element_stream] == ["a", "b"]
        assert [len(state) async for state in output.object_stream] == [1, 2]
        assert await output.object == [Recipe(name="a"), Recipe(name="b")]

    asyncio.run(main())


def test_what_came_is_told_before_the_source_fails() -> None:
    def source() -> Any:
        yield text('{"a": 1')
        raise ConnectionError("socket hang up")

    output = mx.MastraModelOutput(source(), schema={"type": "object"})
    seen = Seen(output.object_stream)
    assert seen.items == [{"a": 1}]
    assert len(seen.errors) == 1


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "object"}], ids=["array", "object"])
def test_depth_is_no_obstacle(schema: Any) -> None:
    depth = 5000
    written = '{"elements": ' + "[" * depth
    output = reading(schema, written, *["["] * 5, error_strategy="warn")
    seen = Seen(output.object_stream)
    assert not seen.errors
    assert len(seen.items) == 6
    assert Seen(output.element_stream).completed == 1


def test_a_schema_that_is_none_is_refused_at_once() -> None:
    for nonsense in ("Recipe", 5, [Recipe], {"type": "nonsense"}, object()):
        with pytest.raises(mx.SchemaError):
            output_of(schema=nonsense)
        with pytest.raises(mx.SchemaError):
            ops.objects(nonsense)
        with pytest.raises(mx.SchemaError):
            ops.elements(nonsense)
