"""Text that grows gives values that grow: equal to Mastra's table, at the end to `json.loads`, however it is cut."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mastra_rx as mx
from mastra_rx.chunks.surrogates import without_halves
from mastra_rx.partial_json import PartialJSON
from tests.conftest import HERE

NOTHING = "nothing"
ERROR = "error"

settings.register_profile("partial-json", deadline=None, max_examples=150)
fast = settings(settings.get_profile("partial-json"))


def parsed(*deltas: str, **options: Any) -> PartialJSON:
    parser = PartialJSON(**options)
    for delta in deltas:
        parser.push(delta)
    return parser


def shown(deltas: Any, **options: Any) -> Any:
    """What is there after all of `deltas`: a value, `NOTHING`, or `ERROR`."""
    try:
        parser = parsed(*deltas, **options)
    except mx.PartialJSONError:
        return ERROR
    return [parser.value] if parser.has_value else NOTHING


def same(a: Any, b: Any) -> bool:
    """Equal as JSON: 1 is 1.0, and neither is true."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and isinstance(a, bool) == isinstance(b, bool) and isinstance(a, str) == isinstance(b, str)


def cut(text: str, places: list[int]) -> list[str]:
    """`text` in pieces, some of them empty."""
    at = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


def grown(old: Any, new: Any) -> bool:
    """Whether everything in `old` is still in `new`."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and grown(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return isinstance(new, list) and len(old) <= len(new) and all(map(grown, old, new))
    if isinstance(old, str):
        return isinstance(new, str) and new.startswith(old)
    if old is None or isinstance(old, bool):
        return new is old
    return isinstance(new, int | float) and not isinstance(new, bool)


CUTS = st.lists(st.integers(0, 10_000), max_size=12)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\n\t{}[],:😀é'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)
DOCUMENTS = st.builds(
    lambda value, ascii_only, indent: json.dumps(value, ensure_ascii=ascii_only, indent=indent),
    VALUES,
    st.booleans(),
    st.sampled_from([None, 0, 2, "\t"]),
)


# ---- Mastra's table --------------------------------------------------------------------------------------------------

TABLE = json.loads((HERE / "tables" / "partial-json.table.json").read_text("utf-8"))
UNFINISHED_ESCAPE = re.compile(r"(\\ud83d)?\\u[0-9a-fA-F]{0,3}$|\\ud83d\\?$|\ud83d$")

DIFFERENCES = {
    "D10": UNFINISHED_ESCAPE,
    "D16": re.compile(r"^\d{16,}$|__proto__|prototype"),
    "AI SDK 7 shows more": re.compile(r'^\[-$|e\+\d+[,"b:]*$'),
}


def difference(text: str) -> str | None:
    return next((name for name, texts in DIFFERENCES.items() if texts.search(text)), None)


def recorded(row: dict[str, Any]) -> Any:
    """What Mastra 1.71.0 made of the input; a text that has not begun is a failure there."""
    if "value" in row:
        return [plain(row["value"])]
    return NOTHING if row["input"].strip() in ("", "-") else ERROR


def plain(value: Any) -> Any:
    """The table writes the numbers that JSON has not as {"$number": "NaN"}."""
    if isinstance(value, dict):
        return float(value["$number"]) if "$number" in value else {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def as_escaped(text: str) -> str:
    return ascii(text)[-60:]


@pytest.mark.parametrize("row", TABLE, ids=[as_escaped(row["input"]) for row in TABLE])
def test_every_input_of_the_table(row: dict[str, Any]) -> None:
    text, theirs = row["input"], recorded(row)
    ours = shown([text], strict=True)
    assert same(shown(text, strict=True), ours), "letter by letter is something else than at once"
    if difference(text) is None:
        assert same(ours, theirs)
    else:
        assert not same(ours, theirs), f"no longer differs: take it from {difference(text)}"


@pytest.mark.parametrize("text", [row["input"] for row in TABLE if difference(row["input"]) == "D10"], ids=as_escaped)
def test_an_unfinished_escape_shows_the_string_up_to_it(text: str) -> None:
    """D10"""
    assert shown([text], strict=True) == shown([UNFINISHED_ESCAPE.sub("", text)], strict=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12345678901234567890", 12345678901234567890),
        ('{"__proto__":{"x":1}}', {"__proto__": {"x": 1}}),
        ('{"a":{"__proto__":1}}', {"a": {"__proto__": 1}}),
        ('{"constructor":{"prototype":1}}', {"constructor": {"prototype": 1}}),
    ],
)
def test_the_limits_of_javascript_are_not_ours(text: str, value: Any) -> None:
    """D16"""
    assert parsed(text, strict=True).value == parsed(*text, strict=True).value == value


@pytest.mark.parametrize(
    ("text", "value"), [("[-", []), ("[1,-", [1]), ('{"n":-12.5e+1', {"n": -125.0}), ("[1e-2,", [0.01]), ("[1e+", [1])]
)
def test_a_number_is_shown_up_to_its_last_digit(text: str, value: Any) -> None:
    """AI SDK 7's rule, which shows more than Mastra 1.71.0."""
    assert parsed(text, strict=True).value == parsed(*text, strict=True).value == value


EQUALITY = [
    row
    for row in json.loads((HERE / "tables" / "deep-equal.table.json").read_text("utf-8"))
    if "$" not in json.dumps(row)  # undefined and NaN are not JSON
]


@pytest.mark.parametrize("row", EQUALITY, ids=str)
def test_a_version_is_new_where_the_value_is(row: dict[str, Any]) -> None:
    """The table of deep equality, where one value can take the place of another: in prose."""
    parser = parsed("first", json.dumps({"v": row["a"]}))
    before = parser.version
    parser.push("then" + json.dumps({"v": row["b"]}))
    assert (parser.version == before) == row["equal"]


# ---- laws ------------------------------------------------------------------------------------------------------------


@fast
@given(DOCUMENTS, CUTS)
def test_the_last_value_is_that_of_json(document: str, cuts: list[int]) -> None:
    whole = json.loads(document)
    for options in ({}, {"strict": True}):
        parser = parsed(*cut(document, cuts), **options)
        assert parser.has_value
        assert same(parser.value, whole)
        parser.push(" ")  # a number at the top ends with what follows it
        assert parser.is_complete
        assert same(parser.value, whole)


@fast
@given(DOCUMENTS)
def test_nothing_that_appeared_disappears(document: str) -> None:
    parser, before, had_value = PartialJSON(strict=True), None, False
    for letter in document:
        parser.push(letter)
        assert parser.has_value or not had_value
        if had_value:
            assert grown(before, parser.value)
        before, had_value = parser.value, parser.has_value


@fast
@given(DOCUMENTS, CUTS)
def test_a_snapshot_stays_as_it_was(document: str, cuts: list[int]) -> None:
    parser = PartialJSON(strict=True)
    snapshots: list[tuple[Any, Any]] = []
    for delta in cut(document, cuts):
        parser.push(delta)
        snapshots.append((parser.value, deepcopy(parser.value)))
    assert all(same(value, copy) for value, copy in snapshots)


@fast
@given(DOCUMENTS, CUTS)
def test_many_pushes_equal_one(document: str, cuts: list[int]) -> None:
    parser, text = PartialJSON(strict=True), ""
    for delta in cut(document, cuts):
        parser.push(delta)
        text += delta
        assert same([parser.value, parser.has_value], [(once := parsed(text, strict=True)).value, once.has_value])
        assert parser.is_complete == once.is_complete


@fast
@given(DOCUMENTS)
def test_the_version_changes_with_the_value(document: str) -> None:
    parser = PartialJSON(strict=True)
    before, version = None, parser.version
    for letter in document:
        parser.push(letter)
        assert same(parser.value, before) or parser.version != version
        before, version = parser.value, parser.version


def written(value: Any, path: tuple[Any, ...], at: int, ends: dict[tuple[Any, ...], int]) -> str:
    """`value` as JSON that begins at `at`; `ends` tells for each path how much text it takes until it is closed."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        text = "{" if isinstance(value, dict) else "["
        for number, (key, item) in enumerate(items):
            text += ("," if number else "") + (json.dumps(key) + " : " if isinstance(value, dict) else " ")
            text += written(item, (*path, key), at + len(text), ends)
        text += "}" if isinstance(value, dict) else "]"
    else:
        text = json.dumps(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    ends[path] = at + len(text) + is_number  # a number ends where something else begins
    return text


@fast
@given(VALUES)
def test_closed_tells_what_is_complete(value: Any) -> None:
    ends: dict[tuple[Any, ...], int] = {}
    document = written(value, (), 0, ends) + " "
    parser = PartialJSON(strict=True)
    for count, letter in enumerate(document, 1):
        parser.push(letter)
        for path, end in ends.items():
            assert parser.closed(path) == (count >= end), (document[:count], path)
    assert not parser.closed(("no", "such", "path"))


@fast
@given(st.lists(VALUES, max_size=4), st.dictionaries(TEXTS, VALUES, max_size=2), CUTS)
@example([1, 2], {"note": 1}, [14, 21])
def test_closed_elements_are_never_lost(elements: list[Any], more: dict[str, Any], cuts: list[int]) -> None:
    document = json.dumps({**more, "elements": elements})[:-1] + ', "note": "x"}'
    parser, closed = PartialJSON(strict=True), list[Any]()
    for delta in cut(document, cuts):
        parser.push(delta)
        now = parser.closed_elements(("elements",))
        assert same(now[: len(closed)], closed)
        assert all(parser.closed(("elements", index)) for index in range(len(now)))
        closed = now
    assert same(closed, elements)
    assert same(parser.closed_elements(("elements",), 1), elements[1:])


@pytest.mark.parametrize("rest", ["", '"', '"b', '"b"', '"b":', '"b": "x', '"\\'])
def test_what_is_closed_stays_closed_while_a_key_is_typed(rest: str) -> None:
    parser = parsed('{"a": [1, 2], ' + rest, strict=True)
    assert parser.closed(("a",))
    assert parser.closed(("a", 1))
    assert parser.closed_elements(("a",)) == [1, 2]
    assert not parser.closed(("b",))
    assert not parser.closed(())


# ---- halves of an emoji ----------------------------------------------------------------------------------------------

HALVES = st.lists(st.sampled_from(["\\ud83d", "\\ude00", "\ud83d", "\ude00", "a", "é", "\\n", "\\u0041"]), max_size=8)


def whole_text(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@fast
@given(HALVES, HALVES)
@example(["\\ud83d", "a"], [])
@example(["\\ude00"], [])
@example(["\\ud83d"], [])
def test_a_half_is_never_shown(key: list[str], string: list[str]) -> None:
    """D10: it is held back for its other half, and one that has none becomes U+FFFD."""
    document = '{{"{}": "{}", "x": ["{}"]}}'.format("".join(key), "".join(string), "".join(string))
    parser = PartialJSON(strict=True)
    before, version = None, 0
    for letter in document:
        parser.push(letter)
        json.dumps(parser.value, ensure_ascii=False).encode()
        assert parser.value == before or parser.version != version, "a new value without a new version"
        before, version = parser.value, parser.version
    wanted = {whole_text(k): v for k, v in json.loads(document).items()}
    wanted = {k: [whole_text(v[0])] if isinstance(v, list) else whole_text(v) for k, v in wanted.items()}
    assert parser.value == wanted


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, 3000])
def test_halves_meet_however_long_the_string_is(length: int) -> None:
    for first, second in (("\\ud83d", "\\ude00"), ("\ud83d", "\ude00"), ("\\ud83d", "\ude00")):
        parser = parsed('"', *"a" * length, first, strict=True)
        assert parser.value == "a" * length
        parser.push(second)
        assert parser.value == "a" * length + "😀"
        parser.push('"')
        assert parser.value == "a" * length + "😀"


# ---- errors ----------------------------------------------------------------------------------------------------------

MISTAKES = {
    "a letter in a literal": ('{"a": trux}', (9, 1, 10)),
    "a literal in line 3": ('{\n "a": 1,\n "b": nil}', (18, 3, 8)),
    "a missing comma": ('{"a":1 "b":2}', (7, 1, 8)),
    "a missing comma in line 2": ("[1,\n 2 3]", (7, 2, 4)),
    "NaN": ("[NaN]", (1, 1, 2)),
    "Infinity": ('\n\n{"a":Infinity}', (7, 3, 6)),
    "an unknown escape": ('["a\\x"]', (4, 1, 5)),
    "a bad digit of an escape": ('["\\u12g4"]', (6, 1, 7)),
    "a raw newline": ('["a\nb"]', (3, 1, 4)),
    "a single quote": ("{'a':1}", (1, 1, 2)),
    "a key without quotes": ("{a:1}", (1, 1, 2)),
    "a leading zero": ("[01]", (2, 1, 3)),
    "a plus": ("[+1]", (1, 1, 2)),
    "two points": ("[1.2.3]", (4, 1, 5)),
    "nothing at all": ("@", (0, 1, 1)),
}


@pytest.mark.parametrize(("text", "place"), MISTAKES.values(), ids=MISTAKES)
@settings(deadline=None, max_examples=25)
@given(cuts=CUTS)
def test_an_error_tells_where(text: str, place: tuple[int, int, int], cuts: list[int]) -> None:
    """However the text was cut."""
    with pytest.raises(mx.PartialJSONError) as caught:
        parsed(*cut(text, cuts), strict=True)
    error = caught.value
    assert (error.offset, error.line, error.column) == place
    assert f"line {error.line}, column {error.column}" in str(error)


@pytest.mark.parametrize("before", ["", " \n", "```json\n", "\ufeff", "Sure!\n<|message|>", "<|message|>\n```json\n"])
@settings(deadline=None, max_examples=25)
@given(cuts=CUTS)
def test_an_error_counts_what_stands_before_the_json(before: str, cuts: list[int]) -> None:
    text = before + '{"a": 1,\n "b": nil}'
    with pytest.raises(mx.PartialJSONError) as caught:
        parsed(*cut(text, cuts))
    error = caught.value
    assert error.offset == text.index("il")
    assert (error.line, error.column) == (text[: error.offset].count("\n") + 1, 8)


def test_after_an_error_the_value_stays_and_the_error_comes_again() -> None:
    parser = parsed('{"a": [1, 2')
    with pytest.raises(mx.PartialJSONError) as first:
        parser.push("; 3]}")
    with pytest.raises(mx.PartialJSONError) as again:
        parser.push("]}")
    assert again.value is first.value
    assert parser.value == {"a": [1, 2]}
    assert not parser.is_complete


@pytest.mark.parametrize("text", ['{"a":1,}', "[1,]", '{"a":1} and more', '{"a":1}}', "[1] [2]", '{"a":1}\n```'])
def test_what_is_forgiven(text: str) -> None:
    for options in ({}, {"strict": True}):
        for deltas in ([text], list(text)):
            parser = parsed(*deltas, **options)
            assert parser.value in ({"a": 1}, [1])
            assert parser.is_complete


# ---- fuzz ------------------------------------------------------------------------------------------------------------

JSON_LIKE = st.text(st.sampled_from('{}[]",:\\u0123dD8eE+-.truefalsn \n\t`<|>😀\ud83d\ude00\ufeff'), max_size=60)
TOKENS = st.lists(
    st.sampled_from(
        [
            '{"a":',
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"',
            "1",
            "-1.5e+3",
            "true",
            "nul",
            '"x"',
            "\\",
            "\\u00",
            "\\ud83d",
            "NaN",
            "```json",
            "```",
            "<|message|>",
            "text ",
            "\n",
            "\ufeff",
            "\x00",
            "\ude00",
            "",
        ]
    ),
    max_size=30,
).map("".join)
NOISE = st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))


def read(deltas: list[str], **options: Any) -> Any:
    parser = PartialJSON(**options)
    try:
        for delta in deltas:
            parser.push(delta)
            _ = parser.value, parser.is_array, parser.closed(("a", 0)), parser.closed_elements(("a",)), parser.version
    except mx.PartialJSONError:
        return ERROR
    assert parser.has_value or parser.value is None
    return [parser.value, parser.has_value, parser.is_complete]


@settings(deadline=None, max_examples=400)
@given(JSON_LIKE | TOKENS | NOISE | st.text(max_size=40), CUTS)
def test_any_text_is_a_value_or_the_one_error(text: str, cuts: list[int]) -> None:
    for strict in (False, True):
        once = read([text], strict=strict)
        assert repr(read(cut(text, cuts), strict=strict)) == repr(once)
        assert repr(read(list(text), strict=strict)) == repr(once)


def refuse(name: str) -> Any:
    raise ValueError(name)


@settings(deadline=None, max_examples=400)
@given(JSON_LIKE | TOKENS)
def test_what_json_takes_is_taken(text: str) -> None:
    try:
        whole = json.loads(text, parse_constant=refuse)
    except ValueError:
        return
    assert json.dumps(parsed(text, strict=True).value) == json.dumps(without_halves(whole))


# ---- what models write around JSON -----------------------------------------------------------------------------------

OBJECT = '{"a": [1, "x\\"}y"], "b": {"c": "}{", "d": "\\\\"}}'
WRAPPERS = [
    "%s",
    " \n\t%s\n",
    "\ufeff%s",
    "```json\n%s\n```",
    "```json%s```",
    " \n```json \n%s\n``` \nThere you are!",
    "\ufeff```json\n%s",
    "```\n%s\n```",
    "```JSON\n%s\n```",
    "```jsonc\n%s\n```",
    "Here you go: %s",
    "Sure, `%s` is it.",
    "It is not {this}, it is %s",
    "10 items: %s",
    'He said "yes {" and wrote %s',
    "<|message|>%s",
    "<|channel|>final<|message|>%s",
    "<|channel|>final<|message|>```json\n%s\n```<|end|>",
    "<|message|>Here: %s",
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@settings(deadline=None, max_examples=40)
@given(cuts=CUTS)
def test_what_stands_around_is_left_out_wherever_it_is_cut(wrapper: str, cuts: list[int]) -> None:
    text = wrapper % OBJECT
    for deltas in (cut(text, cuts), list(text)):
        parser = parsed(*deltas)
        assert parser.value == json.loads(OBJECT)
        assert parser.is_complete


@pytest.mark.parametrize("wrapper", WRAPPERS[1:])
def test_strict_takes_nothing_but_json(wrapper: str) -> None:
    if wrapper.isspace() or not wrapper.strip("\n\t %s"):
        return
    assert shown([wrapper % OBJECT], strict=True) in (ERROR, [10])


def test_in_prose_an_object_shows_once_it_is_closed() -> None:
    parser = PartialJSON()
    parser.push('The answer: {"a": {"b": 1}')
    assert parser.is_prose
    assert not parser.has_value
    parser.push("}")
    assert parser.value == {"a": {"b": 1}}
    parser.push(', or rather {"a": 2}.')
    assert parser.value == {"a": 2}


def test_an_empty_delta_changes_nothing() -> None:
    for text in ('{"a": "x\\"y"}', 'prose {"a": "x\\"y"}', '```json\n{"a": "x\\"y"}'):
        parser = PartialJSON()
        for letter in text:
            parser.push("")
            parser.push(letter)
        assert parser.value == {"a": 'x"y'}


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_of_javascript_are_no_json_in_prose_either(constant: str) -> None:
    assert shown([f'Here: {{"a": {constant}}}']) in (ERROR, NOTHING)


def test_a_lone_half_in_prose_is_replaced() -> None:
    """D10"""
    assert parsed('Here: {"a\\ud83d": ["\\ude00"]}').value == {"a\ufffd": ["\ufffd"]}


@pytest.mark.parametrize("char", ["\n", "\r", "\t", "\r\n"])
def test_raw_white_space_in_strings(char: str) -> None:
    text = f'{{"code": "a{char}b'
    assert parsed(text).value == parsed(*text).value == {"code": f"a{char}b"}
    with pytest.raises(mx.PartialJSONError, match="control character"):
        parsed(text, strict=True)


@pytest.mark.parametrize("char", ["\x00", "\x1f", "\b"])
def test_other_control_characters_are_no_json(char: str) -> None:
    for strict in (False, True):
        with pytest.raises(mx.PartialJSONError, match="control character"):
            parsed(f'["a{char}"]', strict=strict)


def test_message_marks_without_number() -> None:
    text = "<|message|>" * 3000 + '{"a": 1}'
    assert parsed(text).value == {"a": 1}


# ---- depth -----------------------------------------------------------------------------------------------------------


def test_max_depth() -> None:
    assert parsed("[[[1]]]", max_depth=3).value == [[[1]]]
    assert parsed('[[], {"a": []}, []]', max_depth=3).is_complete
    for deltas in (["[[[[1]]]]"], list("[[[[1]]]]")):
        with pytest.raises(mx.PartialJSONError, match="deeper than 3") as caught:
            parsed(*deltas, max_depth=3)
        assert caught.value.offset == 3


def test_max_depth_holds_in_prose() -> None:
    text = 'Here: {"a": {"a": {"a": {}}}}'
    assert shown([text], max_depth=3) in (ERROR, NOTHING)
    assert shown([text], max_depth=4) == [{"a": {"a": {"a": {}}}}]


# ---- size ------------------------------------------------------------------------------------------------------------

MB = 1_000_000


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.perf_counter()
    yield
    took = time.perf_counter() - began
    assert took < seconds, f"took {took:.1f} s"


def in_pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def large(name: str, scale: float = 1) -> str:
    if name == "flat object":
        return json.dumps({f"k{index}": index for index in range(int(100_000 * scale))})
    if name == "string":
        return json.dumps("é\n" + "x" * int(10 * MB * scale))
    if name == "escapes":
        return json.dumps("\n😀" * int(100_000 * scale))
    return json.dumps(list(range(int(MB * scale))))


@pytest.mark.parametrize("name", ["flat object", "string", "escapes", "numbers"])
def test_large_in_large_deltas(name: str) -> None:
    text = large(name)
    with within(3):
        parser = parsed(*in_pieces(text, MB))
    assert parser.is_complete
    assert parser.value == json.loads(text)


@pytest.mark.parametrize("name", ["flat object", "string", "escapes", "numbers"])
def test_large_letter_by_letter(name: str) -> None:
    text = large(name, 0.05)
    with within(3):
        parser = parsed(*text)
    assert parser.value == json.loads(text)


@pytest.mark.parametrize("size", [1, MB])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_any_depth(opening: str, closing: str, size: int) -> None:
    depth = 100_000
    with within(3):
        parser = parsed(*in_pieces(opening * depth + ("" if opening == "[" else "1"), size))
        half = parser.value
        assert not parser.is_complete
        for piece in in_pieces(closing * depth, size):
            parser.push(piece)
    assert parser.is_complete
    for value in (half, parser.value):
        levels = 0
        while isinstance(value, dict | list) and value:
            value = value["a"] if isinstance(value, dict) else value[0]
            levels += 1
        assert levels == (depth if opening != "[" else depth - 1)


def seconds_for(text: str) -> float:
    began = time.perf_counter()
    parser = PartialJSON()
    for letter in text:
        parser.push(letter)
    return time.perf_counter() - began


ENDLESS = {
    "blanks before": lambda count: " " * count,
    "blanks in a fence": lambda count: "```json" + " " * count,
    "blanks inside": lambda count: "[" + " " * count,
    "blanks behind": lambda count: "[]" + " " * count,
    "digits": lambda count: "[0." + "1" * count,
    "a string": lambda count: '["' + "x" * count,
    "an open object in prose": lambda count: "x {" + "x" * count,
    "prose": lambda count: "x" * count,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_work_is_in_proportion_to_what_comes(name: str) -> None:
    """Ten times the text takes about ten times the time, also where a model is caught in a loop."""
    make = ENDLESS[name]
    short = min(seconds_for(make(1000)) for _ in range(3))
    assert seconds_for(make(10_000)) < 40 * short + 0.02
