"""Sources: chunks from bytes cut anywhere, from recordings, and from whatever gives chunks."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import operators as rxops
from reactivex.scheduler import HistoricalScheduler
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

import mastra_rx as mx
from mastra_rx import (
    ChunkDecodeError,
    MastraModelOutput,
    SourceError,
    StreamInterrupted,
    from_bytes,
    from_chunks,
    from_jsonl,
)
from tests.conftest import Recording


def delta(text: str, id: str = "1") -> dict[str, Any]:
    return {"type": "text-delta", "payload": {"id": id, "text": text}}


FINISH: dict[str, Any] = {"type": "finish", "payload": {"stepResult": {"reason": "stop"}}}
HELLO = [delta("Hel"), delta("lo, Zoë 👋"), FINISH]


def compact(chunk: Any) -> str:
    return json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))


def read(source: Any) -> list[Any]:
    """What a source gives: chunks as the wire's data, then the error that ended it, if one did."""
    seen: list[Any] = []
    source.subscribe(lambda chunk: seen.append(mx.to_wire(chunk)), seen.append)
    return seen


async def read_async(source: Any) -> list[Any]:
    seen: list[Any] = []
    done = asyncio.get_running_loop().create_future()
    source.subscribe(
        lambda chunk: seen.append(mx.to_wire(chunk)),
        lambda error: (seen.append(error), done.set_result(None)),
        lambda: done.set_result(None),
    )
    await asyncio.wait_for(done, 10)
    return seen


def sse(chunks: Iterable[Any], end: str = "\n", *, done: bool = True) -> bytes:
    text = "".join(f"data: {compact(chunk)}{end}{end}" for chunk in chunks)
    return (text + (f"data: [DONE]{end}{end}" if done else "")).encode()


def jsonl(chunks: Iterable[Any], end: str = "\n") -> bytes:
    return "".join(compact(chunk) + end for chunk in chunks).encode()


def records(chunks: Iterable[Any]) -> bytes:
    return "".join(compact(chunk) + "\x1e" for chunk in chunks).encode()


BOM = b"\xef\xbb\xbf"
WIRES: dict[str, bytes] = {
    "sse": sse(HELLO),
    "sse crlf": sse(HELLO, "\r\n"),
    "sse cr": sse(HELLO, "\r"),
    "sse bom": BOM + sse(HELLO),
    "sse comments": b": ping\n\n" + sse(HELLO).replace(b"data", b"event: message\nid: 7\nretry: 10\n: hm\ndata"),
    "sse without done": sse(HELLO, done=False),
    "sse without the last blank line": sse(HELLO, done=False).rstrip(b"\n"),
    "sse no space": sse(HELLO).replace(b"data: ", b"data:"),
    "sse leading blank lines": b"\n\r\n\r" + sse(HELLO),
    "sse in several data lines": sse(HELLO).replace(b',"payload"', b',\ndata: "payload"'),
    "jsonl": jsonl(HELLO),
    "jsonl crlf": jsonl(HELLO, "\r\n"),
    "jsonl bom": BOM + jsonl(HELLO),
    "jsonl blank lines": b"\n" + jsonl(HELLO, "\n\n\r\n  \n"),
    "jsonl without the last line feed": jsonl(HELLO).rstrip(b"\n"),
    "records": records(HELLO),
    "records bom": BOM + records(HELLO),
    "records first separator": b"\x1e" + records(HELLO),
    "records without the last": records(HELLO).rstrip(b"\x1e"),
    "records of RFC 7464": b"".join(b"\x1e" + compact(chunk).encode() + b"\n" for chunk in HELLO),
}


def framing_of(name: str) -> Any:
    return {"sse": "sse", "jsonl": "jsonl", "records": "record-separator"}[name.split()[0]]


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


# ---- framings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("auto", [True, False], ids=["auto", "named"])
def test_any_one_cut_gives_the_same_chunks(name: str, auto: bool) -> None:
    data = WIRES[name]
    framing = "auto" if auto else framing_of(name)
    for cut in range(len(data) + 1):
        assert read(from_bytes([data[:cut], data[cut:]], framing)) == HELLO, cut


@pytest.mark.parametrize("name", WIRES)
def test_byte_by_byte(name: str) -> None:
    data = WIRES[name]
    assert read(from_bytes(pieces(data, range(1, len(data))))) == HELLO


@given(st.sampled_from(sorted(WIRES)), st.data())
def test_any_cuts_give_the_same_chunks(name: str, data: st.DataObject) -> None:
    wire = WIRES[name]
    cuts = data.draw(st.lists(st.integers(0, len(wire)), max_size=20))
    assert read(from_bytes(pieces(wire, cuts))) == HELLO


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    ["\u2028", "\u2029", "\x85", "\x0b\x0c", "\r\n", "\x1e", "\ufeff", "data: x\n\n", "[DONE]", '"}\\']
)


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=6), st.sampled_from(["sse", "jsonl", "record-separator"]), st.booleans(), st.data())
def test_any_text_survives_any_framing(texts: list[str], name: Any, auto: bool, data: st.DataObject) -> None:
    """Separators and ends of other framings, line separators of Unicode: nothing is cut there."""
    chunks = [*map(delta, texts), FINISH]
    wire = {"sse": sse, "jsonl": jsonl, "record-separator": records}[name](chunks)
    cuts = data.draw(st.lists(st.integers(0, len(wire)), max_size=8))
    assert read(from_bytes(pieces(wire, cuts), "auto" if auto else name)) == chunks


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
@pytest.mark.parametrize("frame", [sse, jsonl, records])
def test_unicode_line_separators_end_nothing(separator: str, frame: Callable[[Any], bytes]) -> None:
    chunks = [delta(f"a{separator}b"), FINISH]
    assert separator.encode() in frame(chunks)
    assert read(from_bytes(frame(chunks))) == chunks


def test_an_event_without_data_is_none() -> None:
    wire = b"event: ping\n\nid: 3\n\nretry: 5\n\n: hello\n\ndata\n\ndata:\n\n" + sse(HELLO)
    assert read(from_bytes([wire])) == HELLO


def test_one_bom_is_taken_away_and_only_at_the_beginning() -> None:
    assert read(from_bytes([BOM, sse(HELLO)])) == HELLO
    inside = [delta("\ufeffx"), FINISH]
    assert read(from_bytes([sse(inside)])) == inside


def test_the_first_event_after_a_bom_is_not_lost_when_the_bom_is_cut() -> None:
    assert read(from_bytes([b"\xef", b"\xbb", b"\xbf", sse(HELLO)])) == HELLO


def test_events_know_the_last_id_and_the_retry_time() -> None:
    from mastra_rx.sources.framing import Events

    events = Events()
    events.feed(b"id: 7\nretry: 1500\n\nid: bad\0id\nretry: soon\n\n")
    assert (events.last_event_id, events.retry) == ("7", 1500)
    events.feed(b"id\n\n")
    assert events.last_event_id == ""


def test_what_comes_after_done_is_not_read() -> None:
    closed: list[str] = []

    def source() -> Iterator[bytes]:
        try:
            yield sse(HELLO) + sse([delta("more")])
            yield sse([delta("more")])
        finally:
            closed.append("closed")

    assert read(from_bytes(source())) == HELLO
    assert closed == ["closed"]


def test_an_event_named_error_becomes_an_error_chunk() -> None:
    wire = b'event: error\ndata: {"message":"upstream"}\n\n'
    (chunk,) = read(from_bytes([wire]))
    assert chunk == {"type": "error", "payload": {"error": {"message": "upstream"}}}
    output = MastraModelOutput(from_bytes([wire]))
    with pytest.raises(mx.AgentError, match="upstream"):
        output.text.run()


def test_an_event_named_error_whose_data_is_text_becomes_an_error_chunk() -> None:
    """Data of such an event need not be JSON."""
    (chunk,) = read(from_bytes([b"event: error\ndata: upstream is down\n\n"]))
    assert chunk == {"type": "error", "payload": {"error": "upstream is down"}}


@pytest.mark.parametrize("name", ["sse", "records"])
def test_bytes_that_break_off_are_told(name: str) -> None:
    data = sse(HELLO[:2], done=False) if name == "sse" else records(HELLO[:2])
    for cut in (len(data), len(data) - 9):
        *chunks, error = read(from_bytes([data[:cut]]))
        assert chunks == HELLO[: len(chunks)]
        assert type(error) is StreamInterrupted


@pytest.mark.parametrize("kind", ["finish", "error", "abort", "tripwire", "tool-call-approval", "tool-call-suspended"])
@pytest.mark.parametrize("frame", [lambda chunks: sse(chunks, done=False), records], ids=["sse", "records"])
def test_a_terminal_chunk_is_an_end(kind: str, frame: Any) -> None:
    payload = {"toolCallId": "1", "toolName": "t", "args": {}} if kind.startswith("tool") else {}
    seen = read(from_bytes([frame([delta("a"), {"type": kind, "payload": payload}])]))
    assert [chunk["type"] for chunk in seen] == ["text-delta", kind]


@pytest.mark.parametrize("data", [b"", BOM, b"\n\r\n", b"  "])
def test_no_bytes_are_no_chunks(data: bytes) -> None:
    assert read(from_bytes([data])) == []
    assert read(from_bytes([])) == []


@pytest.mark.parametrize(
    "data", [b"<html>no</html>", b"HTTP/1.1 502 Bad Gateway", b"date: today\n\n", b"[1, 2]", b"\xff\xfe"]
)
@pytest.mark.parametrize("cut", [False, True])
def test_what_is_no_stream_is_refused_with_its_text(data: bytes, cut: bool) -> None:
    (error,) = read(from_bytes(pieces(data, range(1, len(data))) if cut else [data]))
    assert type(error) is ChunkDecodeError
    assert error.text
    assert error.text in data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("name", "wire", "number", "place"),
    [
        ("sse", sse(HELLO[:2], done=False) + b"data: {oops}\n\n" + sse([FINISH]), 3, "event"),
        ("jsonl", jsonl(HELLO[:2]) + b"{oops}\n" + jsonl([FINISH]), 3, "line"),
        ("jsonl with blanks", b"\n\n" + jsonl(HELLO[:2]) + b"\n{oops}\n", 6, "line"),
        ("record-separator", records(HELLO[:2]) + b"{oops}\x1e" + records([FINISH]), 3, "record"),
    ],
)
@pytest.mark.parametrize("cuts", [False, True], ids=["whole", "byte by byte"])
def test_what_is_no_chunk_is_told_with_its_number_and_text(
    name: str, wire: bytes, number: int, place: str, cuts: bool
) -> None:
    *chunks, error = read(from_bytes(pieces(wire, range(1, len(wire))) if cuts else [wire]))
    assert chunks == HELLO[:2]
    assert type(error) is ChunkDecodeError
    assert (error.line, error.text) == (number, "{oops}")
    assert f"{place} {number}" in str(error)


@pytest.mark.parametrize("text", ["{", "null", "[]", "1", '"x"', '{"no": "type"}', '{"type": 1}', "{'type': 'finish'}"])
def test_json_that_is_no_chunk_is_refused(text: str) -> None:
    *chunks, error = read(from_chunks([HELLO[0], text]))
    assert chunks == HELLO[:1]
    assert (type(error), error.line, error.text) == (ChunkDecodeError, 2, text)


def test_bytes_that_are_not_utf8_are_refused() -> None:
    (error,) = read(from_bytes([b'{"type":"text-delta","payload":{"id":"1","text":"\xff"}}\n']))
    assert type(error) is ChunkDecodeError
    assert error.line == 1


async def async_pieces(data: list[Any]) -> AsyncIterator[Any]:
    for item in data:
        await asyncio.sleep(0)
        yield item


@pytest.mark.parametrize("name", WIRES)
def test_the_same_bytes_from_an_async_iterable_and_an_observable(name: str) -> None:
    cut = pieces(WIRES[name], range(3, len(WIRES[name]), 7))
    assert asyncio.run(read_async(from_bytes(async_pieces(cut)))) == HELLO
    assert read(from_bytes(rx.of(*cut))) == HELLO
    assert read(from_bytes(WIRES[name])) == HELLO
    assert read(from_bytes(bytearray(WIRES[name]))) == HELLO


def test_bytes_of_an_observable_that_never_completes_end_with_done() -> None:
    left: list[str] = []
    source = rx.of(sse(HELLO)).pipe(rxops.concat(rx.never()), rxops.finally_action(lambda: left.append("left")))
    assert MastraModelOutput(from_bytes(source)).text.run() == "Hello, Zoë 👋"
    assert left == ["left"]


def test_bytes_that_are_none_are_refused() -> None:
    for source in ("text", 5, None):
        with pytest.raises(TypeError, match="bytes"):
            from_bytes(source)  # type: ignore[arg-type]
    (error,) = read(from_bytes(["text"]))  # type: ignore[list-item]
    assert type(error) is SourceError
    assert "from_chunks" in str(error)
    with pytest.raises(ValueError, match="framing"):
        from_bytes(b"", "xml")  # type: ignore[arg-type]


# ---- recordings ------------------------------------------------------------------------------------------------------


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", [name for name in WIRES if name.startswith("jsonl")])
def test_a_recording_may_be_a_path_a_file_or_lines(name: str, tmp_path: Path) -> None:
    data = WIRES[name]
    path = written(tmp_path / "run.jsonl", data)
    assert read(from_jsonl(path)) == HELLO
    assert read(from_jsonl(str(path))) == HELLO
    with path.open("rb") as file:
        assert read(from_jsonl(file)) == HELLO
    with path.open(encoding="utf-8") as file:
        assert read(from_jsonl(file)) == HELLO
    assert read(from_jsonl(data.splitlines())) == HELLO
    assert read(from_jsonl(data.decode().split("\n"))) == HELLO


def test_a_path_can_be_played_any_number_of_times(tmp_path: Path) -> None:
    source = from_jsonl(written(tmp_path / "run.jsonl", jsonl(HELLO)))
    assert read(source) == read(source) == HELLO


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (error,) = read(from_jsonl(tmp_path / "none.jsonl"))
    assert type(error) is SourceError
    assert "none.jsonl" in str(error)
    assert isinstance(error.__cause__, FileNotFoundError)


BROKEN = jsonl(HELLO[:1]) + b"\n{broken\n" + jsonl(HELLO[1:2]) + b"true\n" + jsonl(HELLO[2:])


@pytest.mark.parametrize("speed", [None, 1.0])
def test_a_bad_line_ends_the_recording_after_what_came_before(speed: float | None) -> None:
    *chunks, error = asyncio.run(read_async(from_jsonl(io.BytesIO(BROKEN), speed)))
    assert chunks == HELLO[:1]
    assert (type(error), error.line, error.text) == (ChunkDecodeError, 3, "{broken")


@pytest.mark.parametrize("speed", [None, 1.0])
def test_bad_lines_may_be_skipped(speed: float | None, caplog: pytest.LogCaptureFixture) -> None:
    source = from_jsonl(io.BytesIO(BROKEN), speed, on_bad_line="skip")
    assert asyncio.run(read_async(source)) == HELLO
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(messages) == 2
    assert "line 3" in messages[0]
    assert "{broken" in messages[0]
    assert "line 5" in messages[1]


@given(st.lists(st.sampled_from(["good", "bad", "blank"]), max_size=12))
def test_bad_lines_anywhere(kinds: list[str]) -> None:
    lines = [
        {"good": compact(delta(str(number))), "bad": "oops", "blank": ""}[kind] for number, kind in enumerate(kinds)
    ]
    good = [delta(str(number)) for number, kind in enumerate(kinds) if kind == "good"]
    assert read(from_jsonl(lines, on_bad_line="skip")) == good
    seen = read(from_jsonl(lines))
    if "bad" in kinds:
        first = kinds.index("bad")
        assert seen[:-1] == [delta(str(number)) for number in range(first) if kinds[number] == "good"]
        assert (seen[-1].line, seen[-1].text) == (first + 1, "oops")
    else:
        assert seen == good


def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="speed"):
        from_jsonl("x", speed=0)
    with pytest.raises(ValueError, match="on_bad_line"):
        from_jsonl("x", on_bad_line="ignore")  # type: ignore[arg-type]


# ---- record, then play -----------------------------------------------------------------------------------------------


def test_what_was_recorded_plays_the_same(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    mx.record(from_chunks(recording.lines), path)
    assert read(from_jsonl(path)) == read(from_chunks(recording.lines))


def test_a_recording_is_json_lines_with_one_key_more(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    mx.record(from_chunks(HELLO), path)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    times = [line.pop("recordedAt") for line in lines]
    assert lines == HELLO
    assert times == sorted(times)
    assert all(isinstance(time, int | float) for time in times)


@given(st.lists(TEXTS, max_size=5))
def test_any_text_is_recorded(texts: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        mx.record(from_chunks(map(delta, texts)), path)
        assert read(from_jsonl(path)) == [delta(text) for text in texts]


def test_recording_an_output_while_others_read_it(tmp_path: Path) -> None:
    output = MastraModelOutput(iter(HELLO))
    mx.record(output.full_stream, tmp_path / "run.jsonl")
    assert output.text.run() == "Hello, Zoë 👋"
    assert read(from_jsonl(tmp_path / "run.jsonl")) == [mx.to_wire(chunk) for chunk in output.full_stream]


def test_a_recording_that_is_stopped_or_fails_keeps_what_came(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source: Subject[Any] = Subject()
    stopped = mx.record(from_chunks(source), tmp_path / "stopped.jsonl")
    mx.record(from_chunks(source), tmp_path / "failed.jsonl")
    source.on_next(HELLO[0])
    stopped.dispose()
    source.on_next(HELLO[1])
    source.on_error(ConnectionError("gone"))
    assert read(from_jsonl(tmp_path / "stopped.jsonl")) == HELLO[:1]
    assert read(from_jsonl(tmp_path / "failed.jsonl")) == HELLO[:2]
    assert "gone" in caplog.text


def test_a_recording_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot write"):
        mx.record(from_chunks(HELLO), tmp_path / "no" / "run.jsonl")


def timed(chunks: list[Any], times: list[float | None], separators: tuple[str, str] = (",", ":")) -> bytes:
    lines = [
        json.dumps(chunk if at is None else {**chunk, "recordedAt": at}, ensure_ascii=False, separators=separators)
        for chunk, at in zip(chunks, times, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


class Trickle(io.RawIOBase):
    """A file that gives a few bytes a read."""

    def __init__(self, data: bytes, first: int, size: int = 1 << 16) -> None:
        self._pieces = iter([data[:first], *(data[at : at + size] for at in range(first, len(data), size))])

    def read(self, _: int = -1) -> bytes:
        return next(self._pieces, b"")


def test_the_time_is_taken_away_wherever_a_file_is_cut() -> None:
    data = timed(HELLO, [1000.5, 1010.0, 1020])
    for cut in range(1, len(data)):
        assert read(from_jsonl(Trickle(data, cut))) == HELLO, cut
    assert read(from_jsonl(Trickle(data, 1, 1))) == HELLO


def test_the_time_is_taken_away_also_when_json_has_spaces() -> None:
    """A recording that another program wrote anew is a recording."""
    data = timed(HELLO, [1000.5, 1010.0, 1020], (", ", ": "))
    assert read(from_jsonl(io.BytesIO(data))) == HELLO


def test_a_key_of_that_name_inside_a_payload_stays() -> None:
    chunks = [{"type": "data-x", "data": {"a": 1, "recordedAt": 5}}, FINISH]
    assert read(from_jsonl(io.BytesIO(jsonl(chunks)))) == chunks
    assert read(from_jsonl(io.BytesIO(timed(chunks, [1, 2])))) == chunks


# ---- the rhythm ------------------------------------------------------------------------------------------------------

START = 1_700_000_000_000


def played(data: bytes, speed: float, scheduler: Any) -> list[tuple[float, str]]:
    """When each chunk comes, in virtual milliseconds since the subscription."""
    seen: list[tuple[float, str]] = []
    begin = scheduler.now

    def note(what: str) -> None:
        seen.append((round((scheduler.now - begin).total_seconds() * 1000), what))

    from_jsonl(io.BytesIO(data), speed).subscribe(
        lambda chunk: note(chunk.type), lambda _: note("error"), lambda: note("done"), scheduler=scheduler
    )
    scheduler.start()
    return seen


@pytest.mark.parametrize("make", [TestScheduler, HistoricalScheduler])
@pytest.mark.parametrize(
    ("speed", "times"), [(1.0, [0, 1000, 60_000]), (2.0, [0, 500, 30_000]), (0.5, [0, 2000, 120_000])]
)
def test_the_recorded_rhythm_in_virtual_time(make: Any, speed: float, times: list[float]) -> None:
    data = timed(HELLO, [START, START + 1000, START + 60_000])
    seen = played(data, speed, make())
    assert seen == list(zip([*times, times[-1]], ["text-delta", "text-delta", "finish", "done"], strict=True))


def test_where_no_times_were_recorded_speed_makes_no_difference() -> None:
    assert [at for at, _ in played(jsonl(HELLO), 1.0, TestScheduler())] == [0, 0, 0, 0]


def test_lines_without_a_time_come_with_the_one_before_and_a_clock_that_went_back_waits_for_nothing() -> None:
    data = timed([*HELLO, FINISH], [START, None, START - 500, START])
    assert [at for at, _ in played(data, 1.0, TestScheduler())] == [0, 0, 0, 500, 500]


def test_a_bad_line_in_virtual_time() -> None:
    data = timed(HELLO[:2], [START, START + 100]) + b"oops\n"
    assert played(data, 1.0, TestScheduler()) == [(0, "text-delta"), (100, "text-delta"), (100, "error")]


def test_an_output_in_virtual_time() -> None:
    """The shared stream passes its first subscriber's scheduler on."""
    scheduler = TestScheduler()
    output = MastraModelOutput(from_jsonl(io.BytesIO(timed(HELLO, [START, START + 1000, START + 3000])), 1.0))
    seen: list[tuple[float, Any]] = []
    output.text_stream.pipe(rxops.buffer_with_time(2.0)).subscribe(
        lambda pieces: seen.append((round(scheduler.clock, 1), pieces)), scheduler=scheduler
    )
    scheduler.advance_to(10.0)
    assert seen[0][1] == ["Hel", "lo, Zoë 👋"]
    assert [pieces for _, pieces in seen[1:]] == [[]]


def test_dispose_in_virtual_time_stops_the_playing() -> None:
    scheduler = TestScheduler()
    seen: list[str] = []
    data = timed(HELLO, [START, START + 1000, START + 2000])
    subscription = from_jsonl(io.BytesIO(data), 1.0).subscribe(
        lambda chunk: seen.append(chunk.type), on_completed=lambda: seen.append("done"), scheduler=scheduler
    )
    scheduler.advance_to(1.5)
    subscription.dispose()
    scheduler.start()
    assert seen == ["text-delta", "text-delta"]


def test_the_rhythm_on_an_event_loop() -> None:
    data = timed(HELLO, [START, START + 10, START + 20])

    async def main() -> float:
        loop = asyncio.get_running_loop()
        start = loop.time()
        assert await MastraModelOutput(from_jsonl(io.BytesIO(data), 1.0)).text == "Hello, Zoë 👋"
        return loop.time() - start

    assert asyncio.run(main()) >= 0.019


# ---- from_chunks -----------------------------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[Any], Any]] = {
    "dict": lambda chunk: chunk,
    "str": compact,
    "bytes": lambda chunk: compact(chunk).encode(),
    "Chunk": mx.parse_chunk,
}
CARRIERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda items: items,
    "tuple": tuple,
    "generator": lambda items: (item for item in items),
    "iterator": iter,
    "Observable": lambda items: rx.from_iterable(items),
    "async generator": async_pieces,
    "from_chunks": from_chunks,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_anything_that_gives_chunks_is_a_source(shape: str, carrier: str) -> None:
    async def main() -> list[Any]:
        return await read_async(from_chunks(CARRIERS[carrier]([SHAPES[shape](chunk) for chunk in HELLO])))

    assert asyncio.run(main()) == HELLO


@pytest.mark.parametrize("source", [5, None, "text", b"bytes", {"type": "finish"}])
def test_what_gives_no_chunks_is_refused_with_a_hint(source: Any) -> None:
    with pytest.raises(TypeError, match="from_bytes"):
        from_chunks(source)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_item_that_is_no_chunk(carrier: str) -> None:
    async def main() -> list[Any]:
        return await read_async(from_chunks(CARRIERS[carrier]([HELLO[0], "oops", HELLO[1]])))

    chunk, error = asyncio.run(main())
    assert chunk == HELLO[0]
    assert (type(error), error.line, error.text) == (ChunkDecodeError, 2, "oops")


def test_a_source_that_fails() -> None:
    cause = ConnectionError("gone")

    def sync() -> Iterator[Any]:
        yield HELLO[0]
        raise cause

    async def asynchronous() -> AsyncIterator[Any]:
        yield HELLO[0]
        raise cause

    for source in (sync(), asynchronous(), rx.of(HELLO[0]).pipe(rxops.concat(rx.throw(cause)))):
        chunk, error = asyncio.run(read_async(from_chunks(source)))
        assert chunk == HELLO[0]
        assert type(error) is SourceError
        assert error.__cause__ is cause


HALVES = [
    '{"type":"text-delta","payload":{"id":"1","text":"a\\ud83d"}}',
    '{"type":"text-delta","payload":{"id":"1","text":"\\ude00b"}}',
]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_emoji_cut_in_two_is_made_whole(carrier: str) -> None:
    async def main() -> list[Any]:
        return await read_async(from_chunks(CARRIERS[carrier](HALVES)))

    assert asyncio.run(main()) == [delta("a"), delta("😀b")]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_half_an_emoji_that_finds_no_other_becomes_a_replacement(carrier: str) -> None:
    async def main() -> list[Any]:
        return await read_async(from_chunks(CARRIERS[carrier](HALVES[:1])))

    assert asyncio.run(main()) == [delta("a"), delta("\ufffd")]


def failing(items: list[Any]) -> Iterator[Any]:
    yield from items
    raise ConnectionError("gone")


async def failing_async(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
    raise ConnectionError("gone")


def failing_observable(items: list[Any]) -> Any:
    return rx.of(*items).pipe(rxops.concat(rx.throw(ConnectionError("gone"))))


@pytest.mark.parametrize("carrier", [failing, failing_async, failing_observable])
@pytest.mark.parametrize("take", ["from_chunks", "from_bytes"])
def test_half_an_emoji_is_not_lost_when_the_source_fails(take: str, carrier: Any) -> None:
    async def main() -> list[Any]:
        if take == "from_chunks":
            return await read_async(from_chunks(carrier(HALVES[:1])))
        return await read_async(from_bytes(carrier([HALVES[0].encode() + b"\n"])))

    *chunks, error = asyncio.run(main())
    assert chunks == [delta("a"), delta("\ufffd")]
    assert type(error) is SourceError


@pytest.mark.parametrize("source", [from_chunks, from_jsonl], ids=["from_chunks", "from_jsonl"])
def test_half_an_emoji_is_not_lost_before_a_bad_line(source: Any) -> None:
    *chunks, error = read(source([HALVES[0], "oops"]))
    assert chunks == [delta("a"), delta("\ufffd")]
    assert (type(error), error.line) == (ChunkDecodeError, 2)


def test_a_cold_source_is_closed_when_its_reader_leaves() -> None:
    closed: list[str] = []

    def source() -> Iterator[Any]:
        try:
            while True:
                yield HELLO[0]
        finally:
            closed.append("closed")

    assert read(from_chunks(source()).pipe(rxops.take(2))) == [HELLO[0]] * 2
    assert closed == ["closed"]


def test_an_observable_is_left_when_it_gives_what_is_no_chunk() -> None:
    left: list[str] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        observer.on_next("oops")
        return rx.disposable.Disposable(lambda: left.append("left"))

    (error,) = read(from_chunks(rx.create(subscribe)))
    assert type(error) is ChunkDecodeError
    assert left == ["left"]
    assert MastraModelOutput(rx.create(subscribe)).get_full_output().run().error is not None
    assert left == ["left", "left"]
