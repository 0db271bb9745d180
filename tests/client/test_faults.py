"""A server that dies, stalls, talks nonsense or refuses, at every point of an answer.

Each fault gives its documented error, with what came before it; nothing hangs, and nothing is left behind (conftest).
Every request is counted: a run that may have begun is never asked for twice.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

import mastra_rx as mx
from mastra_rx.client.tools import MAX_ROUNDS
from tests.client.conftest import Connect
from tests.client.scripted import (
    END,
    FINISH,
    HANG,
    HEAD,
    KEEP,
    OPEN_HEAD,
    RESET,
    RUN,
    START,
    STEPS,
    TEXT,
    WORKFLOW_HEAD,
    Request,
    Script,
    ScriptedServer,
    answer,
    chunked,
    delta,
    envelopes,
    head,
    records,
    sse,
)

CUT = sse(RUN[:3], done=False)
"""The first three chunks of a run, whole."""


def read(output: Any) -> tuple[list[Any], Exception | None]:
    """The chunks that came, and the error after them; blocking."""
    got: list[Any] = []
    try:
        for chunk in output.full_stream:
            got.append(mx.to_wire(chunk))  # noqa: PERF401  # what came before the error counts
    except mx.MastraRxError as error:
        return got, error
    return got, None


async def read_async(output: Any) -> tuple[list[Any], Exception | None]:
    got: list[Any] = []
    try:
        async with asyncio.timeout(10):
            async for chunk in output.full_stream:
                got.append(mx.to_wire(chunk))  # noqa: PERF401
    except mx.MastraRxError as error:
        return got, error
    return got, None


async def alone() -> None:
    """No task but this one is left on the loop."""
    for _ in range(100):
        if len(asyncio.all_tasks()) == 1:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"left behind: {asyncio.all_tasks()}")


Reading = Callable[[ScriptedServer, dict[str, Any], Callable[[mx.MastraClient], Any]], Any]


def in_a_script(
    server: ScriptedServer, options: dict[str, Any], make: Callable[[mx.MastraClient], Any]
) -> tuple[Any, list[Any], Exception | None]:
    with mx.MastraClient(server.url, **options) as client:
        output = make(client)
        return (output, *read(output))


def in_asyncio(
    server: ScriptedServer, options: dict[str, Any], make: Callable[[mx.MastraClient], Any]
) -> tuple[Any, list[Any], Exception | None]:
    async def main() -> tuple[Any, list[Any], Exception | None]:
        async with mx.MastraClient(server.url, **options) as client:
            output = make(client)
            result = (output, *await read_async(output))
        await alone()
        return result

    return asyncio.run(main())


@pytest.fixture(params=[in_a_script, in_asyncio], ids=["script", "asyncio"])
def reading(request: pytest.FixtureRequest) -> Reading:
    """Reads an output to its end, and looks that the server is alone again after that."""

    def run(server: ScriptedServer, options: dict[str, Any], make: Callable[[mx.MastraClient], Any]) -> Any:
        started = time.monotonic()
        result = request.param(server, {"idle_timeout": 5, "backoff": 0.01, **options}, make)
        assert time.monotonic() - started < 8
        assert server.wait_until_alone(), "a connection is still open"
        return result

    return run


def stream(client: mx.MastraClient) -> mx.MastraModelOutput[Any]:
    return client.agent("agent").stream("Hello")


# ---- it dies ---------------------------------------------------------------------------------------------------------

BEFORE_AN_ANSWER: dict[str, Script] = {
    "at once": [RESET],
    "properly, but without a word": [b""],
    "in the status line": [b"HTTP/1.1 20", RESET],
    "in the headers": [HEAD[:30], RESET],
    "closes in the headers": [HEAD[:30]],
}


@pytest.mark.parametrize("script", BEFORE_AN_ANSWER.values(), ids=BEFORE_AN_ANSWER.keys())
def test_it_dies_before_it_answers(script: Script, reading: Reading) -> None:
    """The request was sent, so a run may have begun: it is not sent again."""
    with ScriptedServer(script) as server:
        output, got, error = reading(server, {}, stream)
        assert (got, type(error)) == ([], mx.SourceError)
        assert "before an answer came" in str(error)
        assert len(server.requests) == 1
        assert error.partial is not None
        assert output.status == "failed"


AFTER_THE_HEADERS: dict[str, tuple[Script, int]] = {
    "after the headers": ([HEAD, RESET], 0),
    "closes after the headers": ([HEAD], 0),
    "in the length of a chunk": ([HEAD, chunked(CUT), b"1f", RESET], 3),
    "in the data of a chunk": ([HEAD, chunked(CUT), b"50\r\ndata: {"], 3),
    "after a chunk": ([HEAD, chunked(CUT), RESET], 3),
    "closes after a chunk": ([HEAD, chunked(CUT)], 3),
    "ends the body after a chunk": ([HEAD, chunked(CUT, end=True)], 3),
    "ends the body in an event": ([HEAD, chunked(CUT, b'data: {"type":"text-de', end=True)], 3),
    "ends the body in a character": ([HEAD, chunked(CUT, sse([delta("👋")])[:-30], end=True)], 3),
    "no length, closes": ([head(chunked=False), CUT], 3),
    "less than the length it gave": (
        [head("text/event-stream", "200 OK", "content-length: 9999", chunked=False), CUT],
        3,
    ),
    "no chunked framing": ([HEAD, b"data: {}\n\n"], 0),
}


@pytest.mark.parametrize(("script", "count"), AFTER_THE_HEADERS.values(), ids=AFTER_THE_HEADERS.keys())
def test_it_dies_in_the_answer(script: Script, count: int, reading: Reading) -> None:
    with ScriptedServer(script) as server:
        output, got, error = reading(server, {}, stream)
        assert got == RUN[:count]
        assert type(error) is mx.StreamInterrupted
        assert len(server.requests) == 1
        assert error.partial is not None
        assert error.partial.text == ("Hello Zoë " if count else "")
        with pytest.raises(mx.StreamInterrupted):
            output.text.run()


@pytest.mark.parametrize("end", [RESET, b"", END], ids=["reset", "close", "end of the body"])
def test_it_dies_after_finish_without_done(end: Any, reading: Reading) -> None:
    """The run is over for all that matters to it; only `[DONE]` lacks."""
    with ScriptedServer([HEAD, chunked(sse(RUN, done=False)), end]) as server:
        output, got, error = reading(server, {}, stream)
        assert got == RUN
        assert error is None or type(error) is mx.StreamInterrupted
        if end is END:
            assert error is None
            assert output.text.run() == TEXT
        else:
            assert output.get_full_output().run().text == TEXT


@pytest.mark.parametrize("end", [RESET, b"", HANG], ids=["reset", "close", "no end"])
def test_it_dies_after_done(end: Any, reading: Reading) -> None:
    with ScriptedServer([HEAD, chunked(sse(RUN)), end]) as server:
        output, got, error = reading(server, {}, stream)
        assert (got, error) == (RUN, None)
        assert output.text.run() == TEXT


def test_it_dies_in_the_second_turn_of_a_run_until_idle(reading: Reading) -> None:
    """The first turn's `finish` is not the end of the stream."""
    with ScriptedServer([HEAD, chunked(sse([*RUN, START, delta("Second ")], done=False), end=True)]) as server:
        output, got, error = reading(server, {}, lambda client: client.agent("agent").until_idle("Hello"))
        assert got == [*RUN, START, delta("Second ")]
        assert type(error) is mx.StreamInterrupted
        assert type(output.get_full_output().run().error) is mx.StreamInterrupted


def test_half_an_emoji_before_the_drop_is_told(reading: Reading) -> None:
    """A half that never finds its other becomes U+FFFD, also where the stream breaks off."""
    half = b'data: {"type":"text-delta","runId":"r","payload":{"id":"t1","text":"ok \\ud83d"}}\n\n'
    with ScriptedServer([HEAD, chunked(half), RESET]) as server:
        output, _, error = reading(server, {}, stream)
        assert type(error) is mx.StreamInterrupted
        assert output.get_full_output().run().text == "ok \ufffd"


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ([WORKFLOW_HEAD, chunked(records(STEPS[:2])), RESET], 2),
        ([WORKFLOW_HEAD, chunked(records(STEPS[:2]), end=True)], 2),
        ([WORKFLOW_HEAD, chunked(records(STEPS[:3])[:-20], end=True)], 2),
        ([WORKFLOW_HEAD, chunked(records(STEPS[:3])[:-20]), RESET], 2),
    ],
    ids=["reset", "end of the body", "ends in a record", "reset in a record"],
)
def test_a_workflow_that_breaks_off(script: Script, count: int, reading: Reading) -> None:
    with ScriptedServer(script) as server:
        output, got, error = reading(server, {}, lambda client: client.workflow("flow").start({"x": 1}))
        assert got == STEPS[:count]
        assert type(error) is mx.StreamInterrupted
        assert len(server.requests) == 1
        assert error.partial.steps["a"].status == "running"
        with pytest.raises(mx.StreamInterrupted):
            output.result.run()


def test_a_workflow_needs_no_separator_at_the_end(reading: Reading) -> None:
    with ScriptedServer([WORKFLOW_HEAD, chunked(records(STEPS)[:-1], end=True)]) as server:
        output, got, error = reading(server, {}, lambda client: client.workflow("flow").start({"x": 1}))
        assert (got, error) == (STEPS, None)
        assert (output.result.run(), output.status) == ({"x": 2}, "success")


# ---- it stalls -------------------------------------------------------------------------------------------------------


def test_silence_before_the_answer(reading: Reading) -> None:
    with ScriptedServer([HANG]) as server:
        _, got, error = reading(server, {"idle_timeout": 0.1}, stream)
        assert got == []
        assert type(error) is mx.SourceError
        assert len(server.requests) == 1
        assert server.left.wait(5)


def test_silence_in_the_answer(reading: Reading) -> None:
    with ScriptedServer([HEAD, chunked(CUT), HANG]) as server:
        _, got, error = reading(server, {"idle_timeout": 0.1}, stream)
        assert got == RUN[:3]
        assert type(error) is mx.StreamInterrupted
        assert "silence for 0.1 seconds" in str(error)
        assert error.partial.text == "Hello Zoë "
        assert server.left.wait(5)
        assert len(server.requests) == 1


def test_nobody_is_there(reading: Reading) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ScriptedServer([HANG])
    server.port = port
    started = time.monotonic()
    _, got, error = reading(server, {"retries": 3, "backoff": 0.02}, stream)
    assert got == []
    assert type(error) is mx.SourceError
    assert f"cannot reach http://127.0.0.1:{port}" in str(error)
    assert time.monotonic() - started > 0.02 * (1 + 2 + 4) * 0.5  # it was tried again, with growing pauses


# ---- it refuses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", ["400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found", "409 Conflict", "500 Oops"]
)
def test_refusals_are_not_tried_again(status: str, reading: Reading) -> None:
    with ScriptedServer([answer(status, {"error": "because"})]) as server:
        output, got, error = reading(server, {}, stream)
        assert got == []
        assert type(error) is mx.SourceError
        assert (error.status, error.body) == (int(status[:3]), {"error": "because"})
        assert str(error).endswith(f"/api/agents/agent/stream answered {status[:3]}: because")
        assert len(server.requests) == 1
        assert output.status == "failed"


@pytest.mark.parametrize("status", ["429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable"])
def test_a_server_that_did_not_take_the_request_is_asked_again(status: str, reading: Reading) -> None:
    busy: Script = [answer(status, {"error": "busy"})]
    with ScriptedServer(busy, busy, [HEAD, chunked(sse(RUN), end=True)]) as server:
        output, got, error = reading(server, {}, stream)
        assert (got, error) == (RUN, None)
        assert output.text.run() == TEXT
        assert [request.body for request in server.requests] == [server.requests[0].body] * 3


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_server_that_stays_busy(status: str, reading: Reading) -> None:
    with ScriptedServer([answer(status, {"error": "busy"})]) as server:
        _, got, error = reading(server, {"retries": 2}, stream)
        assert (got, type(error), error.status) == ([], mx.SourceError, int(status[:3]))
        assert len(server.requests) == 3


def test_retry_after_is_heeded(reading: Reading) -> None:
    busy: Script = [answer("429 Too Many Requests", {}, "retry-after: 0")]
    with ScriptedServer(busy, busy, busy, [HEAD, chunked(sse(RUN), end=True)]) as server:
        _, got, error = reading(server, {"backoff": 60}, stream)
        assert (got, error) == (RUN, None)


def test_a_refusal_in_plain_text(reading: Reading) -> None:
    script: Script = [head("text/html", "504 Gateway Timeout", "content-length: 9", chunked=False), b"<p>no</p>"]
    with ScriptedServer(script) as server:
        _, _, error = reading(server, {}, stream)
        assert (error.status, error.body) == (504, "<p>no</p>")


def test_a_refusal_that_breaks_off(reading: Reading) -> None:
    script: Script = [head("application/json", "500 Oops", "content-length: 99", chunked=False), b'{"err', RESET]
    with ScriptedServer(script) as server:
        _, _, error = reading(server, {}, stream)
        assert (type(error), error.status) == (mx.SourceError, 500)
        assert len(server.requests) == 1


# ---- it talks nonsense -----------------------------------------------------------------------------------------------

GARBAGE: dict[str, tuple[Script, int, type[Exception]]] = {
    "not HTTP": ([b"SSH-2.0-OpenSSH_9.9\r\n"], 0, mx.SourceError),
    "no JSON in an event": ([HEAD, chunked(CUT + b"data: {nope}\n\n", end=True)], 3, mx.ChunkDecodeError),
    "no object in an event": ([HEAD, chunked(CUT + b"data: 42\n\n", end=True)], 3, mx.ChunkDecodeError),
    "no type in an event": ([HEAD, chunked(CUT + b'data: {"a":1}\n\n', end=True)], 3, mx.ChunkDecodeError),
    "no UTF-8 in an event": ([HEAD, chunked(CUT + b'data: {"type":"\xff\xfe"}\n\n', end=True)], 3, mx.ChunkDecodeError),
    "HTML": ([head("text/html"), chunked(b"<html><body>Log in</body></html>\n", end=True)], 0, mx.SourceError),
    "JSON": ([answer("200 OK", {"error": "oh"})], 0, mx.SourceError),
    "nothing": ([HEAD, END], 0, mx.StreamInterrupted),
    "no content": ([head(None, "204 No Content", chunked=False)], 0, mx.StreamInterrupted),
    "random bytes": ([HEAD, chunked(bytes(range(256)) * 20, end=True)], 0, mx.StreamInterrupted),
}


@pytest.mark.parametrize(("script", "count", "kind"), GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage(script: Script, count: int, kind: type[Exception], reading: Reading) -> None:
    with ScriptedServer(script) as server:
        _, got, error = reading(server, {}, stream)
        assert got == RUN[:count]
        assert isinstance(error, kind)
        assert len(server.requests) == 1
        assert error.partial is not None


def test_garbage_while_observing(reading: Reading) -> None:
    """An error that a second attempt would only meet again is told at once."""
    events = sse(envelopes(RUN[:3]), done=False) + b"data: {nope}\n\n"
    with ScriptedServer([HEAD, chunked(events, end=True)]) as server:
        _, got, error = reading(server, {}, lambda client: client.agent("agent").observe("r"))
        assert got == RUN[:3]
        assert type(error) is mx.ChunkDecodeError
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/octet-stream", None, "TEXT/EVENT-STREAM; charset=latin-1", ""]
)
def test_a_wrong_content_type_does_not_matter(kind: str | None, reading: Reading) -> None:
    with ScriptedServer([head(kind), chunked(sse(RUN), end=True)]) as server:
        _, got, error = reading(server, {}, stream)
        assert (got, error) == (RUN, None)


def test_a_line_of_20_megabytes(reading: Reading) -> None:
    long = delta("x" * 20_000_000)
    with ScriptedServer([HEAD, chunked(sse([START, long, FINISH])), END]) as server:
        output, got, error = reading(server, {}, stream)
        assert error is None
        assert got == [START, long, FINISH]
        assert len(output.text.run()) == 20_000_000


def test_a_line_of_20_megabytes_that_breaks_off(reading: Reading) -> None:
    long = sse([START, delta("x" * 20_000_000)])[:-100]
    with ScriptedServer([HEAD, chunked(long), RESET]) as server:
        _, got, error = reading(server, {}, stream)
        assert (got, type(error)) == ([START], mx.StreamInterrupted)


# ---- what must not matter --------------------------------------------------------------------------------------------

BODY = sse(RUN)


def compressed(body: bytes) -> bytes:
    """With a flush after each event, as a server that streams does it."""
    packer = zlib.compressobj(wbits=31)
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    return chunked(
        *(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events), packer.flush(), end=True
    )


SAME: dict[str, Script] = {
    "everything in one write": [HEAD + chunked(BODY, end=True)],
    "one byte a read": [HEAD, *(chunked(bytes([byte])) for byte in BODY), END],
    "one byte a TCP write": [bytes([byte]) for byte in HEAD + chunked(BODY, end=True)],
    "no chunked framing": [head(chunked=False), BODY],
    "with a length": [head("text/event-stream", "200 OK", f"content-length: {len(BODY)}", chunked=False), BODY],
    "gzip": [head("text/event-stream", "200 OK", "content-encoding: gzip"), compressed(BODY)],
    "gzip in one piece": [
        head("text/event-stream", "200 OK", "content-encoding: gzip"),
        chunked(gzip.compress(BODY), end=True),
    ],
    "deflate, byte by byte": [
        head("text/event-stream", "200 OK", "content-encoding: deflate"),
        *(chunked(bytes([byte])) for byte in zlib.compress(BODY)),
        END,
    ],
    "comments, CRLF and a byte order mark": [
        HEAD,
        chunked(b"\xef\xbb\xbf: connected\r\n\r\n" + BODY.replace(b"\n", b"\r\n"), end=True),
    ],
}


@pytest.mark.parametrize("script", SAME.values(), ids=SAME.keys())
def test_the_same_chunks(script: Script, reading: Reading) -> None:
    with ScriptedServer(script) as server:
        output, got, error = reading(server, {}, stream)
        assert (got, error) == (RUN, None)
        assert output.text.run() == TEXT


def test_broken_compression(reading: Reading) -> None:
    script: Script = [head("text/event-stream", "200 OK", "content-encoding: gzip"), chunked(b"not gzip", end=True)]
    with ScriptedServer(script) as server:
        _, got, error = reading(server, {}, stream)
        assert (got, type(error)) == ([], mx.SourceError)
        assert "compressed" in str(error)


@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
def test_redirects_are_followed_with_the_request(status: str, reading: Reading) -> None:
    moved: Script = [head(None, status, "location: /moved?a=1", "content-length: 0", chunked=False), KEEP]
    with ScriptedServer(moved, [HEAD, chunked(sse(RUN), end=True)]) as server:
        _, got, error = reading(server, {}, stream)
        assert (got, error) == (RUN, None)
        first, second = server.requests
        assert (second.method, second.target, second.json) == ("POST", "/moved?a=1", first.json)


def test_redirects_that_never_end(reading: Reading) -> None:
    moved: Script = [head(None, "307 Temporary Redirect", "location: /", "content-length: 0", chunked=False), KEEP]
    with ScriptedServer(moved) as server:
        _, got, error = reading(server, {}, stream)
        assert (got, type(error)) == ([], mx.SourceError)


# ---- observing goes on -----------------------------------------------------------------------------------------------

MANY = [START, *(delta(f"{n} ") for n in range(20)), FINISH]


def dropping(chunks: list[Any], every: int, end: Any, *, durable: bool, again: int = 0) -> Callable[[Request], Script]:
    """A server that keeps a run, and gives `every` chunks a connection; `again` of them were sent before."""

    def script(request: Request) -> Script:
        at = request.json["offset"] if durable else int(request.query["offset"])
        first = max(0, at - again) if durable else at
        last = min(at + every, len(chunks))
        told = envelopes(chunks[first:last], first) if durable else chunks[first:last]
        body = sse(told, done=last == len(chunks)) if durable else records(told)
        begin = HEAD if durable else WORKFLOW_HEAD
        return [begin, chunked(body, end=True)] if last == len(chunks) else [begin, chunked(body), end]

    return script


@pytest.mark.parametrize("every", [1, 3, 7])
@pytest.mark.parametrize(
    "end", [RESET, b"", END, b"20\r\ndata: {"], ids=["reset", "close", "end of the body", "half a chunk"]
)
def test_a_durable_run_is_taken_up_again(every: int, end: Any, reading: Reading) -> None:
    with ScriptedServer(answer=dropping(MANY, every, end, durable=True)) as server:
        output, got, error = reading(server, {"backoff": 0.001}, lambda client: client.agent("agent").observe("r"))
        assert error is None
        assert got[:-1] == MANY[:-1]
        assert (got[-1]["type"], got[-1]["payload"]) == ("finish", FINISH["payload"])
        assert [request.json["offset"] for request in server.requests] == list(range(0, len(MANY), every))
        assert output.text.run() == "".join(f"{n} " for n in range(20))
        assert output.finish_reason.run() == "stop"


def test_a_server_that_repeats_chunks(reading: Reading) -> None:
    with ScriptedServer(answer=dropping(MANY, 4, RESET, durable=True, again=3)) as server:
        output, got, error = reading(server, {"backoff": 0.001}, lambda client: client.agent("agent").observe("r", 2))
        assert error is None
        assert got[:-1] == MANY[2:-1]
        assert output.text.run() == "".join(f"{n} " for n in range(1, 20))


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(
    "end", [RESET, b"", END, b'20\r\n{"type":'], ids=["reset", "close", "end of the body", "half a chunk"]
)
def test_a_workflow_is_taken_up_again(every: int, end: Any, reading: Reading) -> None:
    with ScriptedServer(answer=dropping(STEPS, every, end, durable=False)) as server:
        output, got, error = reading(server, {"backoff": 0.001}, lambda client: client.workflow("flow").observe("w"))
        assert (got, error) == (STEPS, None)
        assert [int(request.query["offset"]) for request in server.requests] == list(range(0, len(STEPS), every))
        assert output.result.run() == {"x": 2}


def test_an_observed_run_that_is_silent_is_taken_up_again(reading: Reading) -> None:
    with ScriptedServer(answer=dropping(MANY, 8, HANG, durable=True)) as server:
        options = {"backoff": 0.001, "idle_timeout": 0.1}
        _, got, error = reading(server, options, lambda client: client.agent("agent").observe("r"))
        assert (len(got), error) == (len(MANY), None)


def test_an_observed_workflow_that_was_suspended_in_between(reading: Reading) -> None:
    """The finish of its first part is not the end: the second part had begun when the body ended."""
    finish = {**STEPS[-1], "payload": {"workflowStatus": "suspended"}}
    both = [*STEPS[:2], finish, *STEPS]
    with ScriptedServer(answer=dropping(both, 4, END, durable=False)) as server:
        output, got, error = reading(server, {"backoff": 0.001}, lambda client: client.workflow("flow").observe("w"))
        assert (got, error) == (both, None)
        assert (output.result.run(), output.status) == ({"x": 2}, "success")


def test_half_an_emoji_at_the_drop_finds_its_other_half(reading: Reading) -> None:
    halves = [{**delta(""), "payload": {"id": "t1", "text": half}} for half in ("\ud83d", "\ude00")]

    def escaped(envelope: Any) -> bytes:
        return b"data: " + json.dumps(envelope).encode() + b"\n\n"

    def script(request: Request) -> Script:
        at = request.json["offset"]
        event = escaped(envelopes([START, *halves, FINISH])[at])
        return [HEAD, chunked(event), RESET] if at < 3 else [HEAD, chunked(event + b"data: [DONE]\n\n", end=True)]

    with ScriptedServer(answer=script) as server:
        output, _, error = reading(server, {"backoff": 0.001}, lambda client: client.agent("agent").observe("r"))
        assert error is None
        assert output.text.run() == "😀"


def events(chunks: list[Any], *indices: int) -> bytes:
    return sse([envelopes([chunks[index]], index)[0] for index in indices], done=False)


@pytest.mark.parametrize("first", [[3, 0, 1, 2, 3], [3, 2], [2, 3, 2, 3], [4, 3, 2]])
def test_what_happens_now_waits_for_what_is_sent_again(first: list[int], reading: Reading) -> None:
    """B018: a live chunk comes before the history, the history from its start, some of it twice."""
    rest = [index for index in range(2, len(MANY)) if index not in first]
    body = events(MANY, *first, *rest) + b"data: [DONE]\n\n"
    with ScriptedServer([HEAD, chunked(body, end=True)]) as server:
        _, got, error = reading(server, {}, lambda client: client.agent("agent").observe("r", 2))
        assert error is None
        assert [chunk["type"] for chunk in got] == [chunk["type"] for chunk in MANY[2:]]
        assert got[:-1] == MANY[2:-1]


@pytest.mark.parametrize("missing", [0, 5])
def test_a_chunk_that_never_comes_holds_nothing_back_for_ever(missing: int, reading: Reading) -> None:
    indices = [index for index in range(len(MANY)) if index != missing]
    body = events(MANY, *indices) + b"data: [DONE]\n\n"
    with ScriptedServer([HEAD, chunked(body, end=True)]) as server:
        _, got, error = reading(server, {}, lambda client: client.agent("agent").observe("r"))
        assert error is None
        assert got[:-1] == [MANY[index] for index in indices][:-1]


def test_a_drop_with_chunks_that_came_early(reading: Reading) -> None:
    """B016: after the drop the server begins at the first chunk again."""
    again = events(MANY, *range(len(MANY))) + b"data: [DONE]\n\n"
    with ScriptedServer([HEAD, chunked(events(MANY, 0, 1, 5, 6)), RESET], [HEAD, chunked(again, end=True)]) as server:
        _, got, error = reading(server, {"backoff": 0.001}, lambda client: client.agent("agent").observe("r"))
        assert error is None
        assert got[:-1] == MANY[:-1]
        assert [request.json["offset"] for request in server.requests] == [0, 2]


def test_observing_gives_up_when_nothing_new_comes(reading: Reading) -> None:
    events = sse(envelopes(RUN[:2]), done=False)
    with ScriptedServer([HEAD, chunked(events), RESET], [HEAD, RESET]) as server:
        _, got, error = reading(server, {"backoff": 0.001}, lambda client: client.agent("agent").observe("r"))
        assert got == RUN[:2]
        assert type(error) is mx.StreamInterrupted
        assert "at chunk 2" in str(error)
        assert error.partial.text == "Hello "
        assert 3 <= len(server.requests) <= 10
        assert {request.json["offset"] for request in server.requests[1:]} == {2}


def test_observing_outlives_a_server_that_restarts(reading: Reading) -> None:
    """The connection drops, then the server refuses for a moment, or does not answer: the run is kept all the same."""
    events = sse(envelopes(RUN[:2]), done=False)
    rest = [HEAD, chunked(sse(envelopes(RUN[2:], 2)), end=True)]
    with ScriptedServer([HEAD, chunked(events), RESET], [answer("503 Starting", {})], [RESET], rest) as server:
        output, got, error = reading(server, {"backoff": 0.001}, lambda client: client.agent("agent").observe("r"))
        assert error is None
        assert got[:-1] == RUN[:-1]
        assert output.text.run() == TEXT


def test_what_cannot_be_observed_is_told_at_once(reading: Reading) -> None:
    with ScriptedServer([answer("404 Not Found", {"error": "no such agent"})]) as server:
        _, _, error = reading(server, {}, lambda client: client.agent("agent").observe("r"))
        assert (type(error), error.status) == (mx.SourceError, 404)
        assert len(server.requests) == 1


@pytest.mark.parametrize("make", [lambda c: c.agent("a").observe("r", -1), lambda c: c.workflow("w").observe("r", -1)])
def test_chunks_are_counted_from_0(make: Any) -> None:
    with pytest.raises(ValueError, match="offset=-1"):
        make(mx.MastraClient("http://127.0.0.1:9"))


# ---- somebody leaves -------------------------------------------------------------------------------------------------


def test_dispose_closes_the_connection(connect: Connect) -> None:
    with ScriptedServer([HEAD, chunked(CUT), HANG]) as server:
        output = stream(connect(server))
        for _ in itertools.islice(output.full_stream, 3):
            pass
        output.dispose()
        assert server.left.wait(5)
        with pytest.raises(mx.StreamDisposed) as caught:
            output.text.run()
        assert caught.value.partial.text == "Hello Zoë "
        assert (output.status, len(server.requests)) == ("canceled", 1)
        assert len(list(output.full_stream)) == 3


def test_leaving_the_context_closes_the_connection(connect: Connect) -> None:
    with ScriptedServer([HEAD, chunked(CUT), HANG]) as server:
        with stream(connect(server)) as output:
            next(iter(output.text_stream))
        assert server.left.wait(5)
        assert server.wait_until_alone()


def test_leaving_the_context_closes_the_connection_in_asyncio() -> None:
    async def main(server: ScriptedServer) -> None:
        async with mx.MastraClient(server.url) as client:
            async with stream(client) as output:
                async for _ in output.text_stream:
                    break
            await asyncio.to_thread(server.left.wait, 5)
            assert server.left.is_set()
            with pytest.raises(mx.StreamDisposed):
                await output.text
        await alone()

    with ScriptedServer([HEAD, chunked(CUT), HANG]) as server:
        asyncio.run(main(server))
        assert server.wait_until_alone()


@pytest.mark.parametrize(
    "script",
    [[HANG], [HEAD, HANG], [answer("503 Busy", {}, "retry-after: 30")]],
    ids=["before the answer", "before a chunk", "while it waits to ask again"],
)
def test_dispose_when_nothing_came_yet(script: Script, connect: Connect) -> None:
    with ScriptedServer(script) as server:
        output = stream(connect(server))
        failed: list[Exception] = []
        output.text.subscribe(print, failed.append)
        deadline = time.monotonic() + 5
        while not server.requests and time.monotonic() < deadline:
            time.sleep(0.005)
        output.dispose()
        assert [type(error) for error in failed] == [mx.StreamDisposed]
        assert server.wait_until_alone()


def test_dispose_before_the_start_asks_nothing(connect: Connect) -> None:
    with ScriptedServer([HANG]) as server:
        output = stream(connect(server))
        output.dispose()
        with pytest.raises(mx.StreamDisposed):
            output.text.run()
        assert server.connections == 0


def test_dispose_while_it_is_taken_up_again(connect: Connect) -> None:
    with ScriptedServer([HEAD, chunked(sse(envelopes(RUN[:2]), done=False)), RESET]) as server:
        output = connect(server, backoff=60).agent("agent").observe("r")
        seen: list[Any] = []
        output.full_stream.subscribe(seen.append)
        deadline = time.monotonic() + 5
        while len(seen) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        output.dispose()
        assert len(server.requests) == 1


def test_a_loop_that_stops_in_the_middle_of_a_run() -> None:
    """`asyncio.run` cancels what is left: readers elsewhere are told."""
    outputs: list[mx.MastraModelOutput[Any]] = []

    async def main(server: ScriptedServer) -> None:
        async with mx.MastraClient(server.url) as client:
            output = stream(client)
            outputs.append(output)
            async for _ in output.text_stream:
                break

    with ScriptedServer([HEAD, chunked(CUT), HANG]) as server:
        asyncio.run(main(server))
        assert server.wait_until_alone()
        full = outputs[0].get_full_output().run()
        assert type(full.error) is mx.StreamInterrupted
        assert full.text == "Hello Zoë "


def test_nothing_is_sent_before_somebody_asks(connect: Connect) -> None:
    with ScriptedServer([HEAD, chunked(sse(RUN), end=True)]) as server:
        client = connect(server)
        outputs = [stream(client), client.agent("a").observe("r"), client.workflow("w").start({})]
        views = [client.agents(), client.agent("a").details(), client.workflow("w").create_run()]
        assert all(repr(thing) for thing in (*outputs, *views, outputs[0].text, outputs[0].full_stream))
        assert server.connections == 0
        assert outputs[0].text.run() == TEXT
        assert outputs[0].text.run() == TEXT
        assert len(list(outputs[0].full_stream)) == len(RUN)
        assert len(server.requests) == 1


def test_dispose_in_a_callback(connect: Connect) -> None:
    with ScriptedServer([HEAD, chunked(CUT), HANG]) as server:
        output = stream(connect(server))
        over = threading.Event()
        output.text_stream.subscribe(lambda _: output.dispose(), on_completed=over.set)
        assert over.wait(5)
        assert server.left.wait(5)
        assert output.status == "canceled"


# ---- client tools ----------------------------------------------------------------------------------------------------

CALL = {"type": "tool-call", "runId": "r", "from": "AGENT"}
CALL |= {"payload": {"toolCallId": "call_1", "toolName": "look", "args": {"at": "this"}}}
ASKS = [START, delta("Let me look. "), CALL, {**FINISH, "payload": {"stepResult": {"reason": "tool-calls"}}}]
TURN: Script = [HEAD, chunked(sse(ASKS), end=True)]


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def with_tool(client: mx.MastraClient) -> mx.MastraModelOutput[Any]:
    return client.agent("agent").stream("Hello", client_tools=[look])


@pytest.mark.parametrize(
    ("script", "kind", "count"),
    [
        ([answer("500 Oops", {"error": "oops"})], mx.SourceError, 0),
        ([RESET], mx.SourceError, 0),
        ([HEAD, chunked(CUT), RESET], mx.StreamInterrupted, 3),
    ],
    ids=["refused", "reset", "breaks off"],
)
def test_the_second_request_of_a_run_with_client_tools_fails(
    script: Script, kind: type[Exception], count: int, reading: Reading
) -> None:
    """What came before is kept: the first turn, and what the tool gave."""
    with ScriptedServer(TURN, script) as server:
        _, got, error = reading(server, {}, with_tool)
        assert got[: len(ASKS)] == ASKS
        assert got[len(ASKS)]["payload"]["result"] == "seen this"
        assert got[len(ASKS) + 1 :] == RUN[:count]
        assert type(error) is kind
        assert error.partial is not None
        assert [result.payload.result for result in error.partial.tool_results] == ["seen this"]
        assert len(server.requests) == 2


def test_a_turn_that_breaks_off_runs_no_tool(reading: Reading) -> None:
    called: list[str] = []

    def look(at: str) -> None:
        called.append(at)

    with ScriptedServer([HEAD, chunked(sse(ASKS[:3], done=False)), RESET]) as server:
        _, got, error = reading(server, {}, lambda client: client.agent("a").stream("Hello", client_tools=[look]))
        assert (got, type(error), called) == (ASKS[:3], mx.StreamInterrupted, [])
        assert len(server.requests) == 1


def test_a_model_that_only_calls_tools_is_stopped(reading: Reading) -> None:
    with ScriptedServer(TURN) as server:
        output, got, error = reading(server, {}, with_tool)
        assert error is None
        assert len(server.requests) == MAX_ROUNDS
        assert [chunk["type"] for chunk in got].count("tool-result") == MAX_ROUNDS - 1, "the last round asks in vain"
        assert output.finish_reason.run() == "tool-calls"


def test_dispose_while_a_client_tool_runs(connect: Connect) -> None:
    """An async tool is cancelled, and nothing more is asked of the server."""
    begun, cancelled = threading.Event(), threading.Event()

    async def wait(at: str) -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    wait.__name__ = "look"
    with ScriptedServer(TURN, [HEAD, chunked(sse(RUN), end=True)]) as server:
        output = connect(server).agent("a").stream("Hello", client_tools=[wait])
        output.full_stream.subscribe(lambda _: None)
        assert begun.wait(5)
        output.dispose()
        assert cancelled.wait(5)
        assert output.text.run() == "Let me look. "  # the first turn had finished
        assert len(server.requests) == 1


# ---- connections -----------------------------------------------------------------------------------------------------


def test_a_connection_is_used_again(connect: Connect) -> None:
    with ScriptedServer([OPEN_HEAD, chunked(sse(RUN), end=True), KEEP]) as server:
        client = connect(server)
        assert [stream(client).text.run() for _ in range(5)] == [TEXT] * 5
        assert (len(server.requests), server.connections) == (5, 1)
        client.close()
        assert server.wait_until_alone()


def test_outputs_of_one_loop_share_a_pool() -> None:
    async def main(server: ScriptedServer) -> list[str]:
        async with mx.MastraClient(server.url) as client:
            first = await asyncio.gather(*(stream(client).text for _ in range(20)))
            connections = server.connections
            second = await asyncio.gather(*(stream(client).text for _ in range(20)))
            assert server.connections == connections
        await alone()
        return [*first, *second]

    with ScriptedServer([OPEN_HEAD, chunked(sse(RUN), end=True), KEEP]) as server:
        assert asyncio.run(main(server)) == [TEXT] * 40
        assert server.wait_until_alone()


def test_a_client_of_ones_own() -> None:
    async def main(server: ScriptedServer) -> None:
        async with httpx2.AsyncClient(headers={"x-mine": "1"}, auth=("me", "secret")) as own:
            async with mx.MastraClient(server.url, headers={"x-tenant": "t"}, http_client=own) as client:
                assert await stream(client).text == TEXT
            assert not own.is_closed
        await alone()

    with ScriptedServer([OPEN_HEAD, chunked(sse(RUN), end=True), KEEP]) as server:
        asyncio.run(main(server))
        headers = server.requests[0].headers
    assert (headers["x-mine"], headers["x-tenant"]) == ("1", "t")
    assert headers["authorization"].startswith("Basic ")


def test_an_output_may_be_read_from_another_loop_and_after_its_loop() -> None:
    """The run belongs to the loop that started it; what came can be read everywhere."""
    started: list[mx.MastraModelOutput[Any]] = []

    async def first(server: ScriptedServer) -> None:
        async with mx.MastraClient(server.url) as client:
            started.append(stream(client))
            assert await started[0].text == TEXT

    async def second() -> list[str]:
        assert await started[0].text == TEXT
        return [piece async for piece in started[0].text_stream]

    with ScriptedServer([HEAD, chunked(sse(RUN), end=True)]) as server:
        asyncio.run(first(server))
        assert "".join(asyncio.run(second())) == started[0].text.run() == TEXT
        assert len(server.requests) == 1


def test_one_client_in_a_script_and_in_two_loops(connect: Connect) -> None:
    """A pool for each loop: a connection never crosses over."""

    async def main(client: mx.MastraClient) -> str:
        text = await stream(client).text
        await client.aclose()
        return text

    with ScriptedServer([OPEN_HEAD, chunked(sse(RUN), end=True), KEEP]) as server:
        client = connect(server)
        assert stream(client).text.run() == TEXT
        assert [asyncio.run(main(client)) for _ in range(2)] == [TEXT] * 2
        assert stream(client).text.run() == TEXT
        assert (len(server.requests), server.connections) == (4, 3)


def test_a_client_that_was_closed_can_be_used_again(connect: Connect) -> None:
    with ScriptedServer([OPEN_HEAD, chunked(sse(RUN), end=True), KEEP]) as server:
        client = connect(server)
        client.close()
        assert stream(client).text.run() == TEXT
        client.close()
        assert stream(client).text.run() == TEXT


def test_closing_the_client_in_the_middle_of_a_run(connect: Connect) -> None:
    """Readers are told; nobody waits for ever."""
    with ScriptedServer([HEAD, chunked(CUT), HANG]) as server:
        client = connect(server)
        output = stream(client)
        pieces = iter(output.text_stream)
        next(pieces)
        client.close()
        with pytest.raises(mx.SourceError) as caught:
            output.text.run()
        assert caught.value.partial.text == "Hello Zoë "
        assert server.wait_until_alone()


def test_500_runs_one_after_the_other_leave_nothing(connect: Connect) -> None:
    """Some complete, some are left: one connection at a time, and none at the end."""
    whole: Script = [OPEN_HEAD, chunked(sse(RUN), end=True), KEEP]
    with ScriptedServer(
        answer=lambda request: whole if request.json["messages"] == "all" else [HEAD, chunked(CUT), HANG]
    ) as server:
        client = connect(server)
        for n in range(500):
            with client.agent("a").stream("all" if n % 10 else "some") as output:
                next(iter(output.text_stream))
                if n % 10:
                    assert output.text.run() == TEXT
        client.close()
        assert server.wait_until_alone()
        assert len(server.requests) == 500


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"base_url": "localhost:4111"}, ValueError), ({"http_client": httpx2.Client}, TypeError)],
)
def test_what_is_no_server(options: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        mx.MastraClient(**options)


def test_a_request_that_is_not_json(reading: Reading) -> None:
    with ScriptedServer([HANG]) as server:
        _, _, error = reading(server, {}, lambda client: client.agent("a").stream("Hello", extra=float("nan")))
        assert type(error) is mx.SourceError
        assert "not JSON" in str(error)
        assert server.connections == 0


def test_a_message_that_is_nothing_json_knows(reading: Reading) -> None:
    with ScriptedServer([HANG]) as server:
        _, _, error = reading(server, {}, lambda client: client.agent("a").stream("Hello", extra=object()))
        assert isinstance(error, mx.SourceError)
        assert server.connections == 0


CLOSES_IN_A_CALLBACK = """
import sys, threading
import mastra_rx as mx

client = mx.MastraClient(sys.argv[1])
over = threading.Event()
client.agent("agent").stream("Hello").text.subscribe(lambda text: (client.close(), print(text), over.set()))
over.wait(5)
"""


def test_close_in_a_callback_does_not_hang() -> None:
    """Callbacks of a plain script run on the library's loop, which must not wait for itself."""
    run = [{**chunk, "payload": {"id": "t1", "text": "x"}} if chunk["type"] == "text-delta" else chunk for chunk in RUN]
    with ScriptedServer([OPEN_HEAD, chunked(sse(run), end=True), KEEP]) as server:
        command = [sys.executable, "-c", CLOSES_IN_A_CALLBACK, server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert (done.stdout, done.stderr) == ("xxx\n", "")
        assert server.wait_until_alone()


# ---- without the extra -----------------------------------------------------------------------------------------------

HIDDEN = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "httpx2":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
import mastra_rx as mx

print(mx.MastraModelOutput(mx.from_jsonl(mx.recording("text"))).text.run() != "")
try:
    mx.MastraClient
except ModuleNotFoundError as error:
    print(error)
"""


def test_without_the_http_extra_all_else_works_and_the_error_names_it() -> None:
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr == ""
    works, error = done.stdout.splitlines()
    assert works == "True"
    assert 'pip install "mastra-rx[http]"' in error
