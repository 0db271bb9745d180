"""Faults of partial JSON: what shows of a value whose text is not whole."""

from __future__ import annotations

import time
from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx.partial_json import PartialJSON
from tests.cases.wire import Seen, finish, output_of, text

ANY = {"type": "object"}


def reading(*pieces: str, schema: Any = ANY) -> mx.MastraModelOutput[Any]:
    return output_of(*[text(piece) for piece in pieces], finish(), schema=schema)


def states(*pieces: str, schema: Any = ANY) -> list[Any]:
    seen = Seen(reading(*pieces, schema=schema).object_stream)
    assert not seen.errors
    return seen.items


def values(*pieces: str, strict: bool = False) -> list[Any]:
    parser = PartialJSON(strict=strict)
    got: list[Any] = []
    for piece in pieces:
        parser.push(piece)
        got.append(parser.value)
    return got


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        (['{"a":"x', "\\u", "12", '34"}'], ["x", "x", "x", "x\u1234"]),
        (['{"a":"x', "\\", 'n"}'], ["x", "x", "x\n"]),
        (['{"a":"x', "\\", "u", "0041", "\\"], ["x", "x", "x", "xA", "xA"]),
        (['{"a":"x\\ud8', "3d", "\\ude", '00"}'], ["x", "x", "x", "x😀"]),
    ],
)
def test_a_cut_inside_an_escape(pieces: list[str], wanted: list[str]) -> None:
    """B027: a cut inside \\uXXXX makes the whole partial vanish."""
    assert [value["a"] for value in values(*pieces)] == wanted
    assert [state["a"] for state in states(*pieces)] == list(dict.fromkeys(wanted))


def test_a_number_in_progress() -> None:
    """B029: the value of a number in progress disappears and returns."""
    pieces = ['{"price":1', ".", '5,"q":-', "2}"]
    assert values(*pieces) == [{"price": 1}, {"price": 1}, {"price": 1.5}, {"price": 1.5, "q": -2}]
    assert states(*pieces) == [{"price": 1}, {"price": 1.5}, {"price": 1.5, "q": -2}]
    assert values('{"n":1', "e", "-", "2", "}") == [{"n": 1}, {"n": 1}, {"n": 1}, {"n": 0.01}, {"n": 0.01}]


@pytest.mark.parametrize(
    ("pieces", "snapshots", "wanted"),
    [
        (['{"elements":["al', 'pha","be', 'ta"]}'], [[], ["alpha"], ["alpha", "beta"]], ["alpha", "beta"]),
        (['{"elements":[1,2', "5", "]}"], [[1], [1, 25]], [1, 25]),
    ],
)
def test_a_scalar_in_progress_is_no_element(pieces: list[str], snapshots: list[Any], wanted: list[Any]) -> None:
    """B030: a truncated trailing primitive is emitted as if it were final."""
    assert states(*pieces, schema={"type": "array"}) == snapshots
    assert Seen(reading(*pieces, schema={"type": "array"}).element_stream).items == wanted


def test_an_incomplete_string() -> None:
    """B033: an incomplete string value is dropped; here only an incomplete key is."""
    pieces = ['{"answer":"hel', 'lo","items":["alpha","bet', 'a"],"mo', 're"']
    assert values(*pieces) == [
        {"answer": "hel"},
        {"answer": "hello", "items": ["alpha", "bet"]},
        {"answer": "hello", "items": ["alpha", "beta"]},
        {"answer": "hello", "items": ["alpha", "beta"]},
    ]


def test_raw_control_characters() -> None:
    """B034: a raw tab or line break inside a string makes the value None; strict says what is wrong."""
    pieces = ['{"code":"a\tb\r\nc', '"}']
    assert values(*pieces) == [{"code": "a\tb\r\nc"}] * 2
    assert reading(*pieces).object.run() == {"code": "a\tb\r\nc"}
    with pytest.raises(mx.PartialJSONError, match="control character") as caught:
        values(*pieces, strict=True)
    assert caught.value.offset == 10


def test_structure_inside_an_unclosed_string() -> None:
    """B036: a comma or colon inside an unclosed string is read as structure."""
    assert values('{"text":"Here is a list: a, b') == [{"text": "Here is a list: a, b"}]
    assert values(*'{"text":"[{a: b}, ')[-1] == {"text": "[{a: b}, "}


def test_tabs_between_tokens() -> None:
    """B037: a tab is not read as insignificant white space."""
    written = '[{"a":1\t\t,\t"b":2}]'
    assert values(written) == [[{"a": 1, "b": 2}]]
    assert values(*written)[-1] == [{"a": 1, "b": 2}]


def test_only_distinct_snapshots() -> None:
    """B039: snapshots alternate between nothing and the object."""
    assert states('{"a":', " ", '"x"', "}") == [{}, {"a": "x"}]
    assert states("{", '"a"', ":", ' "', "x", '"', "}", "\n") == [{}, {"a": ""}, {"a": "x"}]


@pytest.mark.parametrize("before", ["", " \n", "\ufeff", "\ufeff\n"])
@pytest.mark.parametrize(
    "pieces", [["```js", 'on\n{"a"', ":1}\n``", "`"], ["```json{", '"a":1}```'], ["```", "json", '\n{"a":', "1}"]]
)
def test_a_fence_while_it_streams(before: str, pieces: list[str]) -> None:
    """B040: a code fence that comes in pieces stops the parser."""
    pieces = [*before, *pieces]
    assert states(*pieces) == [{}, {"a": 1}]
    assert reading(*pieces).object.run() == {"a": 1}


def test_text_keeps_its_spaces() -> None:
    """B042: trimming what is held back joins words."""
    for schema in (None, ANY):
        output = reading("Hello", " world", schema=schema)
        assert "".join(output.text_stream) == output.text.run() == "Hello world"


def seconds_to_read(count: int) -> float:
    source = [text('{"t":"'), *[text("a")] * count, text('"}'), finish()]
    output = output_of(*source, schema=ANY)
    seen = Seen(output.full_stream)  # decoding is not what is measured
    assert len(seen.items) == len(source)
    states = 0

    def see(state: Any) -> None:
        nonlocal states
        states += 1

    began = time.perf_counter()
    output.object_stream.subscribe(see)
    took = time.perf_counter() - began
    assert states == count + 1
    return took


def test_time_grows_with_the_text() -> None:
    """B043: the whole text is parsed again for each delta; here twice as many take twice as long."""
    half = min(seconds_to_read(20_000) for _ in range(2))
    assert seconds_to_read(40_000) < 3.5 * half


def test_nothing_is_parsed_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """B043: with no reader of objects there is no parsing."""
    pushed: list[str] = []
    monkeypatch.setattr(PartialJSON, "push", lambda self, delta: pushed.append(delta))
    output = reading(*'{"t":"abc"}')
    assert output.text.run() == '{"t":"abc"}'
    assert list(output.text_stream) == list('{"t":"abc"}')
    assert pushed == []
