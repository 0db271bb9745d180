"""Faults of framing: bytes that are cut, decoded or ended wrongly."""

from __future__ import annotations

import asyncio
import codecs
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx.sources.framing import Events
from tests.cases.wire import START, Seen, error, finish, lines, one_by_one, output_of, records, sse, text

FRAMINGS = {"sse": sse, "record-separator": records, "jsonl": lines}

TEXTS = {
    "accent": "mañana",
    "emoji": "a👩‍👩‍👧b",
    "cjk": "日本語",
    "separators": "a\u2028b\u2029c\u0085d",
    "bom inside": "a\ufeffb",
    "replacement": "a\ufffdb",
}


def read(pieces: Any, framing: Any = "auto") -> list[Any]:
    return list(mx.as_view(mx.from_bytes(pieces, framing)))


def wire_of(chunks: list[Any]) -> list[Any]:
    return [mx.to_wire(chunk) for chunk in chunks]


def single_cuts(data: bytes) -> list[list[bytes]]:
    return [[data[:at], data[at:]] for at in range(len(data) + 1)]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", FRAMINGS)
@pytest.mark.parametrize("framing", ["named", "auto"])
def test_a_character_cut_in_two_stays_whole(name: str, content: str, framing: str) -> None:
    """B001: a fresh text decoder for each network chunk corrupts a character cut in two."""
    wire = [text(content), finish()]
    data = FRAMINGS[name](*wire)
    framing = name if framing == "named" else "auto"
    for pieces in [*single_cuts(data), byte_by_byte(data)]:
        assert wire_of(read(pieces, framing)) == wire


@pytest.mark.parametrize("kind", ["sync", "async", "observable"])
def test_a_cut_character_stays_whole_in_every_kind_of_source(kind: str) -> None:
    """B001: the decoder belongs to the connection, whatever brings the bytes."""
    data = sse(text("mañana"), finish())
    for pieces in single_cuts(data):
        source = {"sync": pieces, "async": one_by_one(pieces), "observable": rx.from_iterable(pieces)}[kind]

        async def collect(source: Any = source) -> list[Any]:
            return [chunk async for chunk in mx.as_view(mx.from_bytes(source))]

        assert asyncio.run(collect())[0].text == "mañana"


@pytest.mark.parametrize("cut", [b"\xc3", b"\xe2\x9c", b"\xf0\x9f\x92"])
def test_a_character_that_never_ends_is_no_chunk(cut: bytes) -> None:
    """B001: the decoder is flushed at the end; half a character is neither dropped in silence nor made U+FFFD."""
    with pytest.raises(mx.SourceError):
        read([b'data: {"type":"text-delta","payload":{"text":"ma' + cut], "sse")


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
@pytest.mark.parametrize("name", FRAMINGS)
def test_only_line_ends_end_a_line(name: str, separator: str) -> None:
    """B003: str.splitlines() splits inside JSON at U+2028, U+2029 and U+0085."""
    chunks = read([FRAMINGS[name](text(f"a{separator}b"), finish())], name)
    assert [chunk.type for chunk in chunks] == ["text-delta", "finish"]
    assert chunks[0].text == f"a{separator}b"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_a_line_feed_ends_a_line_of_a_recording(tmp_path: Any, end: str) -> None:
    """B003: the same for recorded files, which also lose one CR."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines(text("a\u2028b\u2029c\u0085d"), finish()).replace(b"\n", end.encode()))
    assert mx.MastraModelOutput(mx.from_jsonl(path)).text.run() == "a\u2028b\u2029c\u0085d"


@pytest.mark.parametrize("control", ["\x0b", "\x0c", "\x1c", "\x1d", "\x85"])
def test_data_that_is_not_json_is_not_split_either(control: str) -> None:
    """B003: splitlines() also breaks at VT, FF, FS and GS; here such data stays one event."""
    assert Events().feed(f"data: a{control}b\n\n".encode()) == [f"a{control}b".encode()]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_a_line_end_cut_in_two_is_one_line_end(end: bytes) -> None:
    """B004: CRLF cut between CR and LF produces a false empty line."""
    data = b'data: {"type":' + end + b'data: "finish","payload":{}}' + end + end
    for pieces in [*single_cuts(data), byte_by_byte(data)]:
        events = Events()
        assert [one for piece in pieces for one in events.feed(piece)] + events.end() == [
            b'{"type":\n"finish","payload":{}}'
        ]
        assert [chunk.type for chunk in read(pieces)] == ["finish"]


def test_an_empty_read_between_cr_and_lf_changes_nothing() -> None:
    """B004: nor do reads that bring nothing."""
    pieces = [b'data: {"type":\r', b"", b'\ndata: "finish","payload":{}}\r', b"", b"\n\r", b"", b"\n"]
    assert [chunk.type for chunk in read(pieces)] == ["finish"]


@pytest.mark.parametrize(
    "frame",
    [
        b"retry: 3000\n\n",
        b": heartbeat\n\n",
        b"id: 7\n\n",
        b"event: ping\n\n",
        b"data:\n\n",
        b"data\n\n",
        b"data: \n\n",
        b"\n\n\n",
        b"unknown: field\n\n",
        b":\n\n",
    ],
)
def test_an_event_without_data_is_none(frame: bytes) -> None:
    """B006: a meta-only event (retry, id, comment) is treated as data and parsed."""
    data = frame + sse(finish()) + frame
    for pieces in [[data], byte_by_byte(data)]:
        assert [chunk.type for chunk in read(pieces, "sse")] == ["finish"]


def test_what_the_meta_events_say_is_remembered() -> None:
    """B006: the reconnect delay and the last event id are kept."""
    events = Events()
    texts = events.feed(b'retry: 3000\n\n: heartbeat\n\nid: 7\n\ndata: {"type":"finish","payload":{}}\n\n')
    assert texts == [b'{"type":"finish","payload":{}}']
    assert (events.retry, events.last_event_id) == (3000, "7")
    events.feed(b"retry: soon\n\nid: 8\0\n\n")
    assert (events.retry, events.last_event_id) == (3000, "7"), "what is not a number, or holds a NUL, is ignored"


@pytest.mark.parametrize("name", FRAMINGS)
@pytest.mark.parametrize("framing", ["named", "auto"])
def test_a_leading_bom_swallows_nothing(name: str, framing: str) -> None:
    """B007: a leading byte order mark swallows the first event."""
    data = codecs.BOM_UTF8 + FRAMINGS[name](START, text("a\ufeff"), finish())
    for pieces in [[data], byte_by_byte(data), [b"", data[:1], b"", data[1:]]]:
        chunks = read(pieces, name if framing == "named" else "auto")
        assert [chunk.type for chunk in chunks] == ["start", "text-delta", "finish"]
        assert chunks[1].text == "a\ufeff", "a mark later on is content"


def test_a_recording_saved_with_a_bom_is_read(tmp_path: Any) -> None:
    """B007: the same hazard for files."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + lines(text("Hi"), finish()))
    assert mx.MastraModelOutput(mx.from_jsonl(path)).text.run() == "Hi"


@pytest.mark.parametrize("field", ["", "event: message\n", "event: chunk\n", "event:\n", "event\n", "id: 1\n", ": x\n"])
def test_the_name_of_an_event_does_not_matter(field: str) -> None:
    """B009: frames without an `event:` field are dropped."""
    data = f'{field}data: {{"type":"finish","payload":{{}}}}\n\n'.encode()
    assert [chunk.type for chunk in read([data], "sse")] == ["finish"]


def test_server_sent_events_are_utf_8() -> None:
    """B010: without a charset the transport guesses Latin-1, and a NEL then splits the line."""
    data = sse(text("✅ ok \u0085 Ã…"), finish())
    assert "\u0085" in data.decode("latin-1"), "the guess would have split here"
    assert read([data])[0].text == "✅ ok \u0085 Ã…"
    with pytest.raises(mx.SourceError, match="not str"):
        read([data.decode()])


@pytest.mark.parametrize("framing", ["sse", "record-separator", "auto"])
def test_a_stream_that_breaks_off_is_interrupted(framing: str) -> None:
    """B012: a truncated response looks the same as a clean end."""
    made = records if framing == "record-separator" else lambda *chunks: sse(*chunks, done=False)
    output = mx.MastraModelOutput(mx.from_bytes([made(START, text("Hel"))], framing))
    pieces = Seen(output.text_stream)
    assert pieces.items == ["Hel"]
    assert [type(error) for error in pieces.errors] == [mx.StreamInterrupted]
    for view in (output.text, output.finish_reason, output.usage):
        with pytest.raises(mx.StreamInterrupted):
            view.run()
    full = output.get_full_output().run()
    assert isinstance(full.error, mx.StreamInterrupted)
    assert full.finish_reason is None
    assert full.usage.total_tokens is None


def test_a_list_that_breaks_off_is_interrupted() -> None:
    """B012: the same for a source whose end says nothing: its streams complete, its values raise."""
    output = output_of(START, text("Hel"))
    pieces = Seen(output.text_stream)
    assert (pieces.items, pieces.completed) == (["Hel"], 1)
    with pytest.raises(mx.StreamInterrupted):
        output.text.run()


def test_what_came_before_the_break_is_in_partial() -> None:
    """B012: the text so far is not lost with the error."""
    output = output_of(START, text("Hel"), text("lo"))
    with pytest.raises(mx.StreamInterrupted) as raised:
        output.text.run()
    assert raised.value.partial.text == "Hello"


def test_every_cut_of_a_run_before_its_end_is_noticed() -> None:
    """B012: a decoder whose buffer is not empty at the end must not call it a success."""
    whole = sse(START, text("Hel"), done=False)
    ending = sse(finish(), done=False)
    data = whole + ending
    for at in range(1, len(whole) + len(ending) - len(b"}\n\n") + 1):
        output = mx.MastraModelOutput(mx.from_bytes([data[:at]], "sse"))
        with pytest.raises(mx.StreamInterrupted):
            output.text.run()


@pytest.mark.parametrize("silence", [b": heartbeat\n\n", b"retry: 3000\n\n", b"\n\n"])
def test_a_stream_of_nothing_but_heartbeats_is_interrupted(silence: bytes) -> None:
    """B012: no chunk at all, and no [DONE], is a break too."""
    seen = Seen(mx.from_bytes([silence], "sse"))
    assert [type(error) for error in seen.errors] == [mx.StreamInterrupted]


def test_done_alone_is_no_success() -> None:
    """B012: [DONE] proves that the response was whole, not that the run was."""
    output = mx.MastraModelOutput(mx.from_bytes([sse(START, text("Hel"))]))
    assert list(output.text_stream) == ["Hel"]
    with pytest.raises(mx.StreamInterrupted):
        output.text.run()


@pytest.mark.parametrize(
    "ending",
    [
        finish(),
        error("x"),
        {"type": "abort", "payload": {}},
        {"type": "tripwire", "payload": {"reason": "x"}},
        {"type": "tool-call-approval", "payload": {"toolCallId": "c1", "toolName": "f", "args": {}}},
        {"type": "tool-call-suspended", "payload": {"toolCallId": "c1", "toolName": "f", "suspendPayload": {}}},
    ],
    ids=lambda chunk: chunk["type"],
)
def test_no_done_after_the_end_of_a_run_is_no_error(ending: Any) -> None:
    """B012: some servers leave [DONE] out."""
    seen = Seen(mx.from_bytes([sse(START, text("Hel"), ending, done=False)]))
    assert (len(seen.items), seen.errors, seen.completed) == (3, [], 1)


def test_an_event_is_parsed_when_it_is_whole() -> None:
    """B013: an event split across reads is parsed piecewise."""
    network: Subject[bytes] = Subject()
    seen = Seen(mx.from_bytes(network))
    network.on_next(b'data: {"type":"text-delta","payload":{"te')
    assert not seen.items
    network.on_next(b'xt":"hello"}}')
    assert not seen.items
    network.on_next(b"\n")
    assert not seen.items, "the blank line ends an event, not the line"
    network.on_next(b"\ndata: [DO")
    assert [chunk.text for chunk in seen.items] == ["hello"]
    assert seen.completed == 0
    network.on_next(b"NE]\n\n")
    assert (len(seen.items), seen.errors, seen.completed) == (1, [], 1)


def test_nothing_after_done_is_read() -> None:
    """B013: [DONE] ends the stream, also in the middle of a read."""
    seen = Seen(mx.from_bytes([sse(finish()) + sse(text("late"))]))
    assert (seen.types, seen.completed) == (["finish"], 1)


def test_heartbeats_are_no_chunks() -> None:
    """B015: heartbeat comments among the events.

    The idle limit that tells a silent pipe from a slow one is the HTTP source's; it comes with it.
    """
    beat = b": heartbeat\n\n"
    data = beat * 3 + sse(text("a"), done=False) + beat + sse(finish(), done=False) + beat
    for pieces in [[data], byte_by_byte(data)]:
        assert [chunk.type for chunk in read(pieces)] == ["text-delta", "finish"]


def test_a_heartbeat_inside_an_event_does_not_end_it() -> None:
    """B015: a comment line is no blank line."""
    assert read([b'data: {"type":\n: heartbeat\ndata: "finish","payload":{}}\n\n'])[0].type == "finish"
