"""The timeline: pure functions from chunks to a picture and a page."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx.timeline import read_timed, timeline_page, timeline_svg
from mastra_rx.timeline.axis import axis_of
from mastra_rx.timeline.lanes import Lane, Timeline, timeline_of
from mastra_rx.timeline.layout import Drawing, Text, draw

RECORDINGS = Path(__file__).parent / "recordings"
EVERY = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))
SVG = "{http://www.w3.org/2000/svg}"


def chunk(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "runId": "r", "from": "AGENT", "payload": payload}


def recorded(name: str) -> list[Any]:
    return [chunk for _, chunk in read_timed(RECORDINGS / f"{name}.jsonl")]


def names(timeline: Timeline) -> list[str]:
    return [("  " * lane.depth) + lane.name for lane in timeline.lanes]


def lane(timeline: Timeline, name: str) -> Lane:
    return next(lane for lane in timeline.lanes if lane.name == name)


def drawn(chunks: list[Any], times: list[float] | None = None, width: float = 1200) -> Drawing:
    timeline = timeline_of(chunks)
    return draw(timeline, axis_of(timeline.chunks, times), width)


def overlapping(texts: list[Text]) -> Iterator[tuple[str, str]]:
    for one, other in combinations(texts, 2):
        (left, top, right, bottom), (left2, top2, right2, bottom2) = one.box, other.box
        if left < right2 and left2 < right and top < bottom2 and top2 < bottom:
            yield one.content, other.content


def many_calls(count: int) -> list[dict[str, Any]]:
    """Calls that stream together, run together and end in another order."""
    chunks = [chunk("start", id="a"), chunk("step-start")]
    for n in range(count):
        name = ("weather", "search_documents", "a_tool_with_a_rather_long_name")[n % 3]
        call = {"toolCallId": f"call_{n}", "toolName": name}
        chunks += [
            chunk("tool-call-input-streaming-start", **call),
            chunk("tool-call-delta", **call, argsTextDelta='{"city":"Tokyo"}'),
            chunk("tool-call-input-streaming-end", toolCallId=f"call_{n}"),
            chunk("tool-call", **call, args={"city": "Tokyo"}),
        ]
    for n in reversed(range(count)):
        call = {"toolCallId": f"call_{n}", "toolName": "weather"}
        failed = n % 7 == 3
        chunks.append(
            chunk("tool-error", **call, error={"message": "no"})
            if failed
            else chunk("tool-result", **call, result={"n": n})
        )
    return [
        *chunks,
        chunk("step-finish", stepResult={"reason": "tool-calls"}, output={"usage": {"totalTokens": 10}}),
        chunk("finish", stepResult={"reason": "stop"}),
    ]


def long_run(count: int) -> list[dict[str, Any]]:
    deltas = [chunk("text-delta", id="t", text="word ") for _ in range(count)]
    return [chunk("start"), chunk("step-start"), chunk("text-start", id="t"), *deltas, chunk("finish")]


# ---- lanes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text-plain", ["Steps", "Text", "Usage"]),
        ("tool-one", ["Steps", "Text", "weather", "Usage"]),
        ("reasoning-signature", ["Steps", "Reasoning", "Text", "Usage"]),
        ("nested-agent", ["Steps", "Text", "agent-researcher", "  researcher", "Usage"]),
        ("bg-completed", ["Steps", "Text", "research", "  task a837144e…", "Usage"]),
        ("workflow-basic", ["Workflow", "double", "label", "Data", "Usage"]),
        ("workflow-agent-step", ["Workflow", "ask", "  writer", "Usage"]),
        ("network-basic", ["Text", "researcher", "  researcher", "Routing", "Usage"]),
    ],
)
def test_a_run_has_the_lanes_of_what_happened_in_it(name: str, expected: list[str]) -> None:
    assert names(timeline_of(recorded(name))) == expected


@pytest.mark.parametrize("name", ["text", "tools", "reasoning", "object"])
def test_bundled_recordings_have_lanes(name: str) -> None:
    timeline = timeline_of(chunk for _, chunk in read_timed(mx.recording(name)))
    assert "Steps" in names(timeline)
    assert timeline.tone == "result"


def test_a_call_streams_its_arguments_runs_and_gives_its_result() -> None:
    weather = lane(timeline_of(recorded("tool-one")), "weather")
    assert [(span.tone, span.first, span.last) for span in weather.spans] == [("args", 2, 6), ("run", 6, 8)]
    assert weather.marbles[-1].tone == "result"
    assert weather.spans[-1].label == '→ {city: "Tokyo", tempC: 21.5}'


@pytest.mark.parametrize(
    ("chunks", "tone"),
    [
        ([chunk("tool-error", toolCallId="c", toolName="t", error={"message": "no"})], "error"),
        ([chunk("tool-output-denied", toolCallId="c", toolName="t")], "denied"),
        ([chunk("tool-call-suspended", toolCallId="c", toolName="t")], "wait"),
        ([chunk("tool-call-approval", toolCallId="c", toolName="t")], "wait"),
    ],
)
def test_how_a_call_ended_is_marked(chunks: list[dict[str, Any]], tone: str) -> None:
    call = chunk("tool-call", toolCallId="c", toolName="t", args={})
    marbles = lane(timeline_of([call, *chunks]), "t").marbles
    assert marbles[-1].tone == tone


@pytest.mark.parametrize(
    ("name", "tone", "label", "ending"),
    [
        ("error-mid-stream", "error", "error: Overloaded", "failed: Overloaded"),
        ("abort-mid-stream", "wait", "abort", "aborted"),
        ("tripwire-input", "error", "tripwire: Prompt injection detected", "blocked: Prompt injection detected"),
        ("tool-approval", "wait", "approval: ", "suspended"),
    ],
)
def test_what_went_wrong_is_marked_where_it_came(name: str, tone: str, label: str, ending: str) -> None:
    timeline = timeline_of(recorded(name))
    mark = next(mark for mark in timeline.marks if mark.label.startswith(label))
    assert (mark.tone, timeline.ending) == (tone, ending)
    assert str(timeline.chunks[mark.at]["type"]).startswith(label.partition(":")[0]) or tone == "wait"


def test_every_chunk_is_somewhere_in_the_picture() -> None:
    for name in EVERY:
        timeline = timeline_of(recorded(name))
        shown = {mark.at for mark in timeline.marks}
        for one in timeline.lanes:
            shown |= {marble.at for marble in one.marbles}
            shown |= {at for span in one.spans for at in (span.first, span.last)}
        assert set(range(len(timeline.chunks))) <= shown, name


def test_beyond_forty_calls_those_of_one_tool_share_a_lane() -> None:
    assert len(timeline_of(many_calls(30)).lanes) == 32
    timeline = timeline_of(many_calls(300))
    assert [(one.name, one.shared_by) for one in timeline.lanes[1:-1]] == [
        ("weather", 100),
        ("search_documents", 100),
        ("a_tool_with_a_rather_long_name", 100),
    ]


# ---- the axis --------------------------------------------------------------------------------------------------------


def test_the_axis_shows_time_where_it_is_known() -> None:
    chunks = [chunk("text-delta", text="a")] * 4
    axis = axis_of(chunks, [1000, None, 1400, 2000])
    assert axis.times == [0, 200, 400, 1000]
    assert axis.places == [0, 0.2, 0.4, 1]


def test_the_axis_shows_the_order_where_time_is_not_known() -> None:
    axis = axis_of([chunk("text-delta", text="a")] * 4, None)
    assert axis.times is None
    assert axis.places == [0.125, 0.375, 0.625, 0.875]
    assert [tick.label for tick in axis.ticks] == ["1", "2", "3", "4"]


def test_the_axis_of_order_has_the_times_that_chunks_tell() -> None:
    timeline = timeline_of(recorded("tool-one"))
    assert [tick.label for tick in axis_of(timeline.chunks, None).ticks] == ["+0 ms", "+2 ms"]


@pytest.mark.parametrize("times", [[5.0, 5.0], [None, None], [], [float("nan"), 1.0], [9.0, 1.0]])
def test_times_that_tell_nothing_leave_the_order(times: list[float | None]) -> None:
    assert axis_of([chunk("start"), chunk("finish")], times).times is None


def test_a_recording_is_read_with_its_times(tmp_path: Path) -> None:
    mx.record(mx.from_chunks([chunk("start"), chunk("finish")]), tmp_path / "run.jsonl")
    times, chunks = zip(*read_timed(tmp_path / "run.jsonl"), strict=True)
    assert all(isinstance(at, float) for at in times)
    assert [mx.to_wire(one) for one in chunks] == [chunk("start"), chunk("finish")]
    assert [at for at, _ in read_timed(mx.recording("text"))] == [None] * len(list(read_timed(mx.recording("text"))))


def test_a_broken_recording_is_read_until_it_breaks(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"type":"start"}\n{"type":"text-delta","payload":{"text":"a\\ud83d"}}\n{"type":"text-d')
    chunks: list[Any] = []
    with pytest.raises(mx.ChunkDecodeError, match="line 3"):
        chunks.extend(one for _, one in read_timed(path))
    assert [one.type for one in chunks] == ["start", "text-delta", "text-delta"]
    picture: Any = mx.from_jsonl(path)
    assert "<svg" in picture._repr_html_()


def test_half_an_emoji_finds_its_other_half_in_a_recording_too(tmp_path: Path) -> None:
    halves = [{"type": "text-delta", "payload": {"id": "t", "text": half}} for half in ("\ud83d", "\ude00")]
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, halves)))
    assert "".join(one.payload.text for _, one in read_timed(tmp_path / "run.jsonl")) == "\U0001f600"


def test_a_line_that_is_no_chunk_is_told_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text('{"type":"start"}\n\nnonsense\n')
    with pytest.raises(mx.ChunkDecodeError, match="line 3"):
        list(read_timed(tmp_path / "run.jsonl"))
    with pytest.raises(mx.SourceError):
        list(read_timed(tmp_path / "missing.jsonl"))


# ---- the picture -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_the_picture_of_every_recording_is_well_formed_and_no_text_overlaps(name: str) -> None:
    chunks = recorded(name)
    root = ET.fromstring(timeline_svg(chunks))
    assert root.tag == f"{SVG}svg"
    for width in (700, 1200):
        assert list(overlapping(drawn(chunks, width=width).texts)) == []


@pytest.mark.parametrize("count", [30, 40])
def test_thirty_calls_do_not_overlap(count: int) -> None:
    chunks = many_calls(count)
    for times in (None, [index**1.5 for index in range(len(chunks))]):
        drawing = drawn(chunks, times)
        assert list(overlapping(drawing.texts)) == []
        inside = [text for text in drawing.texts if text.box[0] < 0 or text.box[2] > drawing.width]
        assert inside == []


def test_shapes_stay_within_the_picture() -> None:
    for name in EVERY:
        drawing = drawn(recorded(name))
        for shape in drawing.shapes:
            assert 0 <= shape.x <= drawing.width, name
            assert shape.x + (shape.width if shape.kind in ("bar", "track") else 0) <= drawing.width, name
            assert 0 <= shape.y <= drawing.height, name


def test_a_long_run_is_small_and_takes_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        chunks = [mx.parse_chunk(one) for one in long_run(count)]
        begun = time.perf_counter()
        svg = timeline_svg(chunks)
        assert len(svg) < 50_000
        return time.perf_counter() - begun

    seconds(100)
    few, many = min(seconds(4_000) for _ in range(3)), min(seconds(40_000) for _ in range(3))
    assert many < 25 * few
    assert many < 5


def test_many_kinds_and_calls_stay_under_a_megabyte() -> None:
    chunks: list[dict[str, Any]] = []
    for n in range(5_000):
        call = {"toolCallId": f"c{n}", "toolName": f"tool{n % 90}"}
        chunks += [chunk("step-start"), chunk("tool-call", **call, args={}), chunk("tool-result", **call, result=n)]
        chunks.append(chunk("source", id=str(n), url=f"https://example.com/{n}"))
    assert len(timeline_svg(chunks)) < 1_000_000


def test_an_inner_run_in_an_inner_run_without_end_is_shown() -> None:
    inner: dict[str, Any] = chunk("text-delta", text="deep")
    for n in range(60):
        inner = chunk("tool-output", output=inner, toolCallId=f"c{n}", toolName="agent-x")
    ET.fromstring(timeline_svg([inner]))


def test_nothing_is_a_picture_too() -> None:
    ET.fromstring(timeline_svg([]))
    assert "no chunks" in timeline_svg([])
    assert timeline_page([]).startswith("<!doctype html>")


HOSTILE = "</script><script>alert(1)</script>&<!--]]>\"'\u0000\ud83d\u2028"


@pytest.mark.parametrize("kind", ["text-delta", "error", "tool-call", "data-x", HOSTILE])
def test_hostile_text_is_only_text(kind: str) -> None:
    payload = {
        "text": HOSTILE,
        "error": HOSTILE,
        "toolCallId": HOSTILE,
        "toolName": HOSTILE,
        "args": {HOSTILE: HOSTILE},
    }
    chunks = [chunk(kind, **payload), {"type": kind, "payload": HOSTILE}, {"type": kind, "data": float("nan")}]
    svg = timeline_svg(chunks, times=[1, 2, 3])
    ET.fromstring(svg)
    svg.encode()
    page = timeline_page(chunks, title=HOSTILE)
    page.encode()
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "alert(1)</" not in page
    ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


def test_theme_and_width_are_checked() -> None:
    assert 'data-theme="dark"' in timeline_svg([], theme="dark")
    assert 'width="800"' in timeline_svg([], width=800)
    with pytest.raises(ValueError, match="theme"):
        timeline_svg([], theme="blue")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="width"):
        timeline_svg([], width=10)


# ---- the page --------------------------------------------------------------------------------------------------------


def data_of(page: str) -> dict[str, Any]:
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


def test_the_page_has_the_chunks_as_they_came() -> None:
    chunks = recorded("tool-one")
    assert data_of(timeline_page(chunks))["chunks"] == [mx.to_wire(one) for one in chunks]


def test_the_page_knows_the_state_of_the_values_and_calls_at_each_chunk() -> None:
    data = data_of(timeline_page(recorded("tool-one")))
    assert [(at, change["state"]) for at, _, change in data["tools"]] == [
        (2, "input-streaming"),
        (6, "input-available"),
        (8, "output-available"),
    ]
    state: dict[str, Any] = {}
    for _, change in data["run"]:
        state |= change
    assert (state["status"], state["finishReason"], state["steps"]) == ("success", "stop", 2)
    assert state["usage"]["totalTokens"] == 51


def test_the_page_needs_nothing_from_outside() -> None:
    page = timeline_page(recorded("tool-one"))
    assert (
        "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "").partition('id="data"')[0]
    )


@pytest.mark.parametrize("name", EVERY)
def test_every_recording_has_a_page(name: str) -> None:
    assert len(data_of(timeline_page(recorded(name)))["chunks"]) == len(recorded(name))


def test_a_page_of_twenty_thousand_chunks_stays_small() -> None:
    chunks = [mx.parse_chunk(one) for one in long_run(20_000)]
    assert len(timeline_page(chunks)) < 3_000_000
