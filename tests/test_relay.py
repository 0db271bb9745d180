"""Relays: the bytes of a run for other readers, who read back what was sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx.relay import Relay
from tests.cases.wire import ABORT, Wire, error, finish, of_a_server, text, tool_call, tool_result
from tests.conftest import Recording

LIMIT = 5.0
DONE = b"data: [DONE]\n\n"


def events(data: bytes) -> list[tuple[int | None, Any]]:
    """The events as a browser reads them: the id, if there is one, and the data."""
    found: list[tuple[int | None, Any]] = []
    for block in data.split(b"\n\n"):
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if line and not line.startswith(b":"))
        if b"data" in fields:
            number = int(fields[b"id"]) if b"id" in fields else None
            found.append(
                (number, fields[b"data"].decode() if fields[b"data"] == b"[DONE]" else json.loads(fields[b"data"]))
            )
    return found


async def read(relay: Relay, count: int | None = None) -> list[bytes]:
    """What the relay gives: all, or `count` portions and then the client leaves."""
    got: list[bytes] = []
    portions = aiter(relay)
    async with asyncio.timeout(LIMIT):
        async for portion in portions:
            got.append(portion)
            if count is not None and len(got) == count:
                break
    await portions.aclose()  # type: ignore[attr-defined]
    return got


def run_of(pieces: int) -> list[Wire]:
    return [of_a_server(text(f"{number} ")) for number in range(pieces)] + [of_a_server(finish())]


class Feed:
    """A run that the test drives by hand."""

    def __init__(self, **options: Any) -> None:
        self._subject: Subject[Any] = Subject()
        self.output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(self._subject, **options)
        self.output.full_stream.subscribe()  # connected from here on

    def put(self, *chunks: Wire) -> None:
        for chunk in chunks:
            self._subject.on_next(of_a_server(chunk))

    def end(self) -> None:
        self.put(finish())
        self._subject.on_completed()


# ---- the bytes are the run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["sse", "jsonl"])
@pytest.mark.parametrize("how", ["for", "async for"])
def test_what_is_read_back_is_the_run(recording: Recording, form: str, how: str) -> None:
    output = mx.MastraModelOutput(recording.lines)
    relay = mx.relay.sse(output) if form == "sse" else mx.relay.jsonl(output)
    portions = list(relay) if how == "for" else asyncio.run(read(relay))
    framing: Any = "sse" if form == "sse" else "jsonl"
    again = mx.MastraModelOutput(mx.from_bytes(portions, framing=framing))
    sent, come = all_of(output), all_of(again)
    if come and come[-1].type == "error" and sent[-1:] != come[-1:]:
        come.pop()  # told in place of a source that failed
    assert [mx.to_wire(chunk) for chunk in come] == [mx.to_wire(chunk) for chunk in sent]
    assert [type(chunk) for chunk in come] == [type(chunk) for chunk in sent]
    if recording.is_agent_run:
        assert again.status == output.status
        assert pairs(again) == pairs(output)


def all_of(output: mx.MastraModelOutput[Any]) -> list[Any]:
    """Every chunk; that the run broke off is said by other tests."""
    chunks: list[Any] = []
    output.full_stream.subscribe(chunks.append, lambda _: None)
    return chunks


def pairs(output: mx.MastraModelOutput[Any]) -> list[Any]:
    found: list[Any] = []
    output.tool_pairs.subscribe(found.append, lambda _: None)
    return [(pair.tool_call_id, pair.tool_name, pair.args, pair.state, pair.result) for pair in found]


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_it_does_not_matter_how_the_network_cuts_it(cut: int) -> None:
    output = mx.MastraModelOutput([text("grün "), text("👍 \u2028 \\ \n\n data: x"), finish()])
    data = b"".join(mx.relay.sse(output))
    again = mx.MastraModelOutput(mx.from_bytes([data[i : i + cut] for i in range(0, len(data), cut)], framing="sse"))
    assert again.text.run() == "grün 👍 \u2028 \\ \n\n data: x"


def test_half_an_emoji_in_a_result_can_be_sent() -> None:
    result = tool_result(result={"text": "\ud83d"})
    output = mx.MastraModelOutput([tool_call(args={}), result, finish()])
    for relay in (mx.relay.sse(output), mx.relay.jsonl(output)):
        assert b"\\ud83d" in b"".join(relay)


def test_ids_count_from_zero_and_the_end_has_none() -> None:
    output = mx.MastraModelOutput(run_of(2))
    numbers = [number for number, _ in events(b"".join(mx.relay.sse(output)))]
    assert numbers == [0, 1, 2, None]


def test_json_lines_are_lines() -> None:
    output = mx.MastraModelOutput(run_of(3))
    data = b"".join(mx.relay.jsonl(output))
    assert data.endswith(b"\n")
    assert [json.loads(line)["type"] for line in data.splitlines()] == ["text-delta"] * 3 + ["finish"]
    assert b"".join(mx.relay.jsonl(output, start=2)) == b"".join(data.splitlines(keepends=True)[2:])


# ---- going on where a client left off --------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [0, "0", 3, "3", " 3 "])
def test_a_client_that_comes_again_goes_on_after_the_last_event_it_had(last: str | int) -> None:
    output = mx.MastraModelOutput(run_of(5))
    had = int(last)
    got = events(b"".join(mx.relay.sse(output, last_event_id=last)))
    assert [number for number, _ in got] == [*range(had + 1, 6), None]
    assert got == events(b"".join(mx.relay.sse(output)))[had + 1 :]


@pytest.mark.parametrize("nonsense", [None, "", "abc", "-1", "1.5", "²", "٣x", "9" * 5000 + "x"])
def test_nonsense_gives_the_run_from_the_start(nonsense: str | None) -> None:
    """The header is whatever the client sends."""
    output = mx.MastraModelOutput(run_of(2))
    assert len(events(b"".join(mx.relay.sse(output, last_event_id=nonsense)))) == 4


@pytest.mark.parametrize("beyond", ["99", "9" * 5000])
def test_a_client_that_has_had_it_all_is_told_that_it_is_over(beyond: str) -> None:
    output = mx.MastraModelOutput(run_of(2))
    assert b"".join(mx.relay.sse(output, last_event_id=beyond)) == DONE


def test_what_came_before_and_after_the_break_is_the_run() -> None:
    async def main() -> None:
        feed = Feed()
        feed.put(text("a"), text("b"), text("c"))
        first = await read(mx.relay.sse(feed.output), 2)
        last = events(b"".join(first))[-1][0]
        feed.put(text("d"))
        rest = asyncio.create_task(read(mx.relay.sse(feed.output, last_event_id=str(last))))
        await asyncio.sleep(0)
        feed.put(text("e"))
        feed.end()
        got = events(b"".join(first + await rest))
        assert [number for number, _ in got] == [0, 1, 2, 3, 4, 5, None]
        again = mx.MastraModelOutput(mx.from_bytes([b"".join(first), b"".join(rest.result())], framing="sse"))
        assert await again.text == "abcde"

    asyncio.run(main())


# ---- many clients ----------------------------------------------------------------------------------------------------


def test_each_client_gets_all_whenever_it_comes_and_one_that_leaves_disturbs_nobody() -> None:
    async def main() -> None:
        feed = Feed()
        early = asyncio.create_task(read(mx.relay.sse(feed.output)))
        leaves = asyncio.create_task(read(mx.relay.sse(feed.output), 2))
        cancelled = asyncio.create_task(read(mx.relay.sse(feed.output)))
        await asyncio.sleep(0)
        feed.put(text("a"), text("b"), text("c"))
        assert len(await leaves) == 2
        cancelled.cancel()
        assert isinstance((await asyncio.gather(cancelled, return_exceptions=True))[0], asyncio.CancelledError)
        late = asyncio.create_task(read(mx.relay.sse(feed.output)))
        await asyncio.sleep(0)
        feed.put(text("d"))
        feed.end()
        assert await early == await late == list(await read(mx.relay.sse(feed.output)))
        assert [number for number, _ in events(b"".join(await early))] == [0, 1, 2, 3, 4, None]
        assert feed.output._stream._readers == ()

    asyncio.run(main())


def test_a_client_that_leaves_is_unsubscribed() -> None:
    async def main() -> None:
        feed = Feed()
        feed.put(text("a"))
        before = len(feed.output._stream._readers)
        await read(mx.relay.sse(feed.output), 1)
        task = asyncio.create_task(read(mx.relay.sse(feed.output)))
        while len(feed.output._stream._readers) == before:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        del task
        assert len(feed.output._stream._readers) == before

    asyncio.run(main())


def test_one_relay_can_be_read_twice() -> None:
    relay = mx.relay.sse(mx.MastraModelOutput(run_of(3)))
    assert list(relay) == list(relay) == asyncio.run(read(relay))


def test_a_run_that_comes_from_another_thread_is_relayed_as_it_comes() -> None:
    async def main() -> list[bytes]:
        feed, go_on = Feed(), threading.Event()

        def run() -> None:
            feed.put(text("a"))
            assert go_on.wait(LIMIT)
            feed.put(text("b"))
            feed.end()

        portions: AsyncIterator[bytes] = aiter(mx.relay.sse(feed.output))
        thread = threading.Thread(target=run)
        thread.start()
        async with asyncio.timeout(LIMIT):
            first = await anext(portions)
            go_on.set()
            rest = [portion async for portion in portions]
        thread.join(LIMIT)
        return [first, *rest]

    got = events(b"".join(asyncio.run(main())))
    assert [data if data == "[DONE]" else data["type"] for _, data in got] == ["text-delta"] * 2 + ["finish", "[DONE]"]


def test_a_client_of_a_blocking_run_does_not_hold_the_loop() -> None:
    """A thread drives a source that blocks; a client that comes meanwhile must not make the server wait for it."""
    started, go_on = threading.Event(), threading.Event()

    def source() -> Iterator[Wire]:
        yield text("a")
        started.set()
        assert go_on.wait(LIMIT)
        yield text("b")
        yield finish()

    output = mx.MastraModelOutput(source())
    thread = threading.Thread(target=lambda: output.consume_stream().run())
    thread.start()
    assert started.wait(LIMIT)

    async def main() -> list[bytes]:
        client = asyncio.create_task(read(mx.relay.sse(output)))
        for _ in range(20):
            await asyncio.sleep(0)
        go_on.set()  # the loop is not held, or this would never be reached
        return await client

    got = events(b"".join(asyncio.run(main())))
    thread.join(LIMIT)
    assert [data if data == "[DONE]" else data["type"] for _, data in got] == ["text-delta"] * 2 + ["finish", "[DONE]"]


# ---- heartbeats ------------------------------------------------------------------------------------------------------


def test_silence_is_filled_with_comments_that_lose_nothing() -> None:
    async def main() -> None:
        feed = Feed()
        portions = aiter(mx.relay.sse(feed.output, heartbeat=0.01))
        async with asyncio.timeout(LIMIT):
            assert [await anext(portions) for _ in range(3)] == [b": heartbeat\n\n"] * 3
            for number in range(20):
                feed.put(text(f"{number} "))
                if number % 3 == 0:
                    await asyncio.sleep(0.012)
            feed.end()
            rest = [portion async for portion in portions]
        again = mx.MastraModelOutput(mx.from_bytes(rest, framing="sse"))
        assert await again.text == "".join(f"{number} " for number in range(20))
        assert [number for number, _ in events(b"".join(rest))] == [*range(21), None]

    asyncio.run(main())


def test_no_heartbeat_where_none_is_wanted() -> None:
    async def main() -> None:
        feed = Feed()
        for relay in (mx.relay.sse(feed.output, heartbeat=None), mx.relay.jsonl(feed.output)):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(aiter(relay)), 0.05)

    asyncio.run(main())


# ---- history, and runs that fail -------------------------------------------------------------------------------------


def test_numbers_stay_right_where_the_beginning_is_gone() -> None:
    feed = Feed(history=4)
    feed.put(*[text(str(number)) for number in range(10)])
    feed.end()
    got = events(b"".join(mx.relay.sse(feed.output)))
    kept = [
        (number, data["payload"]["text"]) for number, data in got if number is not None and data["type"] == "text-delta"
    ]
    assert kept == [(7, "7"), (8, "8"), (9, "9")]
    assert [number for number, _ in events(b"".join(mx.relay.sse(feed.output, last_event_id=8)))] == [9, 10, None]


def test_a_reader_that_falls_behind_more_than_once_still_counts_right() -> None:
    """A gap says how many chunks are missing from where the reader stands."""
    chunks = [mx.parse_chunk(text(str(number))) for number in range(3)]
    stream = [mx.HistoryGap(missed=5), chunks[0], mx.HistoryGap(missed=2), chunks[1], chunks[2]]
    output: Any = SimpleNamespace(
        full_stream=mx.as_view(rx.from_iterable(stream)), is_over=True, run_id="r", settled=SimpleNamespace(error=None)
    )
    assert [number for number, _ in events(b"".join(mx.relay.sse(output)))] == [5, 8, 9, None]


@pytest.mark.parametrize("how", ["for", "async for"])
def test_a_source_that_fails_is_told_as_a_run_that_failed(how: str) -> None:
    def source() -> Iterator[Wire]:
        yield of_a_server(text("a"))
        raise ConnectionError("socket hang up")

    output = mx.MastraModelOutput(source())
    relay = mx.relay.sse(output)
    portions = list(relay) if how == "for" else asyncio.run(read(relay))
    got = events(b"".join(portions))
    assert [number for number, _ in got][:2] == [0, 1]
    assert got[1][1]["type"] == "error"
    assert got[1][1]["runId"] == "run"
    again = mx.MastraModelOutput(mx.from_bytes(portions, framing="sse"))
    assert "".join(again.text_stream) == "a"
    with pytest.raises(mx.AgentError, match="socket hang up"):
        again.text.run()


def test_a_client_that_has_had_the_failure_is_not_told_again() -> None:
    """An EventSource comes again by itself, every few seconds, until it is told that the run is over."""

    def source() -> Iterator[Wire]:
        yield text("a")
        raise ConnectionError("socket hang up")

    output = mx.MastraModelOutput(source())
    assert [data if data == "[DONE]" else data["type"] for _, data in events(b"".join(mx.relay.sse(output)))] == [
        "text-delta",
        "error",
        "[DONE]",
    ]
    assert b"".join(mx.relay.sse(output, last_event_id=1)) == DONE


def test_a_bad_line_is_a_failure_too() -> None:
    output = mx.MastraModelOutput([json.dumps(text("a")), "no JSON"])
    got = events(b"".join(mx.relay.sse(output)))
    assert (got[1][1]["type"], got[1][1]["payload"]["error"]["name"]) == ("error", "ChunkDecodeError")


@pytest.mark.parametrize(
    "last", [error({"message": "boom"}), ABORT, finish("tripwire")], ids=lambda chunk: chunk["type"]
)
def test_a_run_that_ended_otherwise_is_over_too(last: Wire) -> None:
    output = mx.MastraModelOutput([text("a"), last])
    assert b"".join(mx.relay.sse(output)).endswith(DONE)


def test_a_run_that_broke_off_is_not_called_done() -> None:
    """So that who reads it knows that the rest did not come."""
    output = mx.MastraModelOutput([text("a")])
    data = b"".join(mx.relay.sse(output))
    assert DONE not in data
    with pytest.raises(mx.StreamInterrupted):
        mx.MastraModelOutput(mx.from_bytes([data], framing="sse")).text.run()


def test_disposing_the_output_ends_its_clients() -> None:
    async def main() -> None:
        feed = Feed()
        client = asyncio.create_task(read(mx.relay.sse(feed.output)))
        await asyncio.sleep(0)
        feed.put(text("a"))
        while len(feed.output._stream._readers) < 2:
            await asyncio.sleep(0)
        feed.output.dispose()
        assert DONE not in b"".join(await client)

    asyncio.run(main())


def test_the_headers_keep_proxies_from_holding_it_back() -> None:
    assert mx.relay.HEADERS == {"cache-control": "no-cache", "x-accel-buffering": "no"}
