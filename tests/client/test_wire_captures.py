"""What a real server sent, served byte for byte and cut at random places, gives the same chunks as the recorded bytes.

And what we ask for is what the official client asks for.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import BaseModel, ConfigDict

import mastra_rx as mx
from mastra_rx.client.http import Call, Http
from mastra_rx.client.streams import EnvelopePosition, read
from tests.client.conftest import Connect
from tests.client.scripted import (
    END,
    FINISH,
    HANG,
    HEAD,
    RESET,
    STEPS,
    WORKFLOW_HEAD,
    ScriptedServer,
    answer,
    chunked,
    delta,
    records,
    sse,
)

WIRE = Path(__file__).parent.parent / "wire"
ENVELOPES = {"durable-observe", "durable-observe-offset"}
REFUSED = {"error-no-agent": 404, "error-no-messages": 400}
NOT_A_STREAM = {"workflow-create-run", *REFUSED}
EMPTY = {"observe-non-durable"}


@dataclass(frozen=True)
class Capture:
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def body(self) -> bytes:
        return (WIRE / f"{self.name}.response.body.bin").read_bytes()

    @property
    def head(self) -> bytes:
        """As it was received; the body is framed anew where it was chunked."""
        return (WIRE / f"{self.name}.response.headers.txt").read_bytes().rstrip() + b"\r\n\r\n"

    @property
    def request(self) -> tuple[str, str, dict[str, str], Any]:
        """Method, path, query and body."""
        first, _, rest = (WIRE / f"{self.name}.request.http").read_bytes().partition(b"\r\n")
        method, target, _ = first.decode().split(" ")
        _, _, body = rest.partition(b"\r\n\r\n")
        url = urlsplit(target)
        return method, url.path, dict(_pairs(url.query)), json.loads(body) if body else None


def _pairs(query: str) -> list[tuple[str, str]]:
    return [(key, values[0]) for key, values in parse_qs(query).items()]


CAPTURES = [Capture(path.name.removesuffix(".info.json")) for path in sorted(WIRE.glob("*.info.json"))]
STREAMS = [capture for capture in CAPTURES if capture.name not in NOT_A_STREAM | EMPTY]


def cut(data: bytes, seed: int) -> list[bytes]:
    """In pieces of random lengths: one byte, a few, or many."""
    random_ = random.Random(seed)
    pieces: list[bytes] = []
    while data:
        length = random_.choice((1, 2, random_.randint(1, 20), random_.randint(1, 400), random_.randint(1, 4000)))
        pieces.append(data[:length])
        data = data[length:]
    return pieces


def from_the_recording(capture: Capture) -> list[Any]:
    """What the parser of recorded bytes makes of the whole body, and the type of the error that ended it."""
    seen: list[Any] = []

    def failed(error: Exception) -> None:
        seen.append(type(error))

    mx.from_bytes(capture.body).subscribe(lambda chunk: seen.append(mx.to_wire(chunk)), failed)
    return seen


async def from_the_server(url: str, capture: Capture, *, must_end: bool = True) -> list[Any]:
    """The same over HTTP. Read below the outputs, which tell readers of repeated tool calls only once."""
    http = Http(url, idle_timeout=5)
    seen: list[Any] = []
    unwrap = EnvelopePosition(0)._unwrap if capture.name in ENVELOPES else None
    try:
        async with asyncio.timeout(20):
            async for batch in read(http, Call("/api/x"), must_end=must_end, unwrap=unwrap):
                seen += [mx.to_wire(chunk) for chunk in batch]
    except mx.SourceError as error:
        seen.append(type(error))
    finally:
        await http.aclose()
    return seen


def served(capture: Capture, pieces: Sequence[bytes], end: bytes = END) -> list[Any]:
    """The pieces as HTTP chunks, each in a write of its own."""
    return [capture.head, *(chunked(piece) for piece in pieces), end]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("capture", [c for c in STREAMS if c.name not in ENVELOPES], ids=str)
def test_a_capture_cut_at_random_places(capture: Capture, seed: int) -> None:
    expected = from_the_recording(capture)
    with ScriptedServer(served(capture, cut(capture.body, seed))) as server:
        assert asyncio.run(from_the_server(server.url, capture)) == expected
        assert server.wait_until_alone()
    assert expected


@pytest.mark.parametrize("capture", [c for c in STREAMS if c.name not in ENVELOPES], ids=str)
def test_a_capture_in_one_write(capture: Capture) -> None:
    script = [capture.head + chunked(capture.body, end=True)]
    with ScriptedServer(script) as server:
        assert asyncio.run(from_the_server(server.url, capture)) == from_the_recording(capture)


@pytest.mark.parametrize("name", ["text", "workflow-stream", "odd-values"])
def test_a_capture_one_byte_a_read(name: str) -> None:
    capture = Capture(name)
    with ScriptedServer(served(capture, [bytes([byte]) for byte in capture.body])) as server:
        assert asyncio.run(from_the_server(server.url, capture)) == from_the_recording(capture)


@pytest.mark.parametrize("capture", [c for c in STREAMS if c.name in ENVELOPES], ids=str)
def test_envelopes_are_opened(capture: Capture, connect: Connect) -> None:
    events = [json.loads(event[6:]) for event in capture.body.split(b"\n\n") if event.startswith(b"data: {")]
    chunks = [event["data"] for event in events if "type" in event["data"]]
    with ScriptedServer(served(capture, cut(capture.body, 1))) as server:
        output = connect(server).agent("durable").observe("run", events[0]["index"])
        got = [mx.to_wire(chunk) for chunk in output.full_stream]
        assert got[:-1] == chunks
        assert (got[-1]["type"], got[-1]["payload"]) == ("finish", events[-1]["data"])
        assert output.text.run() == "".join(c["payload"]["text"] for c in chunks if c["type"] == "text-delta")


def test_a_run_that_nobody_keeps_stays_silent(connect: Connect) -> None:
    capture = Capture("observe-non-durable")
    assert capture.body == b""
    with ScriptedServer([capture.head, HANG]) as server:
        output = connect(server).agent("text").observe("unknown")
        output.full_stream.subscribe(print)
        assert not server.left.wait(0.2)
        output.dispose()
        assert server.left.wait(5)


@pytest.mark.parametrize("name", ["text", "workflow-stream"])
def test_a_server_that_does_not_close_after_the_end(name: str) -> None:
    """`[DONE]` or the last HTTP chunk is the end; the real server keeps the connection open."""
    capture = Capture(name)
    with ScriptedServer([*served(capture, [capture.body]), HANG]) as server:
        assert asyncio.run(from_the_server(server.url, capture)) == from_the_recording(capture)


@pytest.mark.parametrize(("name", "status"), REFUSED.items())
def test_a_refusal_has_the_servers_words(name: str, status: int, connect: Connect) -> None:
    capture = Capture(name)
    with ScriptedServer([capture.head + capture.body]) as server:
        output = connect(server).agent("x").stream("Hello")
        with pytest.raises(mx.SourceError) as caught:
            output.text.run()
    body = json.loads(capture.body)
    assert (caught.value.status, caught.value.body) == (status, body)
    assert body["error"] in str(caught.value)
    assert all(issue["message"] in str(caught.value) for issue in body.get("issues", []))


def test_a_run_is_created(connect: Connect) -> None:
    capture = Capture("workflow-create-run")
    with ScriptedServer([capture.head + capture.body]) as server:
        client = connect(server)
        assert client.workflow("demo").create_run("wf-1").run() == json.loads(capture.body)["runId"]
        sent = server.requests[0]
    assert (sent.method, sent.path, sent.query, sent.json) == (
        "POST",
        "/api/workflows/demo/create-run",
        {"runId": "wf-1"},
        None,
    )


# ---- what we ask -----------------------------------------------------------------------------------------------------

USER = [{"role": "user", "content": "Hello"}]
LIST: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "properties": {"id": {"type": "number"}}, "required": ["id"]},
}

ASKED = {
    "text": lambda c: c.agent("text").stream(USER),
    "text-string-messages": lambda c: c.agent("text").stream("Hello"),
    "raw-chunks": lambda c: c.agent("raw").stream(USER, include_raw=True),
    "object-array": lambda c: c.agent("array").stream(USER, schema=LIST),
    "approval-approve": lambda c: c.agent("approve").approve_tool_call("run-approve-1", "call_1"),
    "suspend-resume": lambda c: c.agent("suspend").resume_stream(
        {"answer": "yes"}, run_id="run-suspend-1", tool_call_id="call_1"
    ),
    "background-stream-until-idle": lambda c: c.agent("worker").until_idle(
        USER, memory={"thread": "thread-w", "resource": "user-w"}
    ),
    "background-stream-untilIdle-option": lambda c: c.agent("workerbg").stream(
        USER, memory={"thread": "thread-w2", "resource": "user-w"}, until_idle=True
    ),
    "background-tasks-stream": lambda c: c.background_tasks.stream(agent_id="worker"),
    "network": lambda c: c.agent("planner").network(
        USER, memory={"thread": "thread-n", "resource": "user-w"}, max_steps=3
    ),
    "durable-observe-offset": lambda c: c.agent("durable").observe("run-durable-1", 3),
    "workflow-stream": lambda c: c.workflow("demo").stream({"x": 21}, run_id="wf-1"),
    "workflow-observe-offset": lambda c: c.workflow("demo").observe("wf-1", 3),
}


@pytest.mark.parametrize("name", ASKED)
def test_requests_are_those_that_were_captured(name: str, connect: Connect) -> None:
    body = records(STEPS) if name.startswith("workflow") else sse([FINISH])
    with ScriptedServer([WORKFLOW_HEAD if name.startswith("workflow") else HEAD, chunked(body, end=True)]) as server:
        ASKED[name](connect(server)).consume_stream().run()
        sent = server.requests[0]
    method, path, query, wanted = Capture(name).request
    assert (sent.method, sent.path, sent.query, sent.json) == (method, path, query, wanted)
    assert sent.headers.get("content-type") == (None if wanted is None else "application/json")


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    age: float


class Message(BaseModel):
    role: str
    content: str


def openDialog(title: str) -> dict[str, str]:  # the name that was captured
    """Open"""
    return {"opened": title}


def official() -> list[dict[str, Any]]:
    return json.loads((WIRE / "client-js-requests.json").read_text("utf-8"))


def sent_by(make: Any, connect: Connect, *scripts: Any) -> list[Any]:
    with ScriptedServer(*(scripts or ([HEAD, chunked(sse([FINISH]), end=True)],))) as server:
        make(connect(server)).consume_stream().run()
        return server.requests


def test_requests_are_those_of_the_official_client(connect: Connect) -> None:
    plain, options, structured, idle, tools, _ = official()
    makes = [
        (plain, lambda c: c.agent("text").stream("Hello")),
        (
            options,
            lambda c: c.agent("text").stream(
                [Message(role="user", content="Hi")],
                max_steps=3,
                memory={"thread": "t", "resource": "r"},
                model_settings={"temperature": 0.1},
                request_context={"tenant": "x"},
            ),
        ),
        (structured, lambda c: c.agent("object").stream("Hello", schema=Person, error_strategy="warn")),
        (idle, lambda c: c.agent("worker").until_idle("Hello", memory={"thread": "t9", "resource": "r"}, max_idle=0.5)),
        (tools, lambda c: c.agent("client2").stream("Hello", client_tools=[openDialog])),
    ]
    for wanted, make in makes:
        [request] = sent_by(make, connect)
        assert (request.method, request.path) == (wanted["method"], wanted["url"])
        assert comparable(request.json) == comparable(wanted["body"])


SCHEMA_DIALECT = {"$schema", "title", "requireApproval"}
"""Written by one of the two only, and without effect: the dialect, pydantic's titles, and a false `requireApproval`."""


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in SCHEMA_DIALECT}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def test_a_client_tool_goes_on_as_with_the_official_client_and_keeps_the_prompt(connect: Connect) -> None:
    call = {"toolCallId": "call_1", "toolName": "openDialog", "args": {"title": "Hi"}}
    finish = {**FINISH, "payload": {"stepResult": {"reason": "tool-calls"}}}
    first = [delta("Opening. "), {"type": "tool-call", "runId": "r", "from": "AGENT", "payload": call}, finish]
    _, request = sent_by(
        lambda c: c.agent("client2").stream("Hello", client_tools=[openDialog]),
        connect,
        [HEAD, chunked(sse(first), end=True)],
        [HEAD, chunked(sse([delta("Done."), FINISH]), end=True)],
    )
    wanted = official()[5]["body"]
    prompt, assistant, result = request.json["messages"]
    assert prompt == {"role": "user", "content": "Hello"}  # the official client loses it where it was a string
    assert assistant == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Opening. "}, {"type": "tool-call", **call}],
    }  # the same as the official client's `parts`, which the server makes of it
    assert result == wanted["messages"][1]
    assert comparable(request.json["clientTools"]) == comparable(wanted["clientTools"])


def test_a_drop_in_the_middle_of_a_capture(connect: Connect) -> None:
    """Cut off anywhere before the run's end: the chunks that were whole, then StreamInterrupted."""
    capture = Capture("tools")
    body = capture.body[: capture.body.index(b'"type":"finish"')]
    random_ = random.Random(7)
    for at in (random_.randrange(1, len(body)) for _ in range(20)):
        events = body[:at].split(b"\n\n")[:-1]
        whole = [json.loads(event.removeprefix(b"data: ")) for event in events]
        with ScriptedServer([capture.head, chunked(body[:at]), RESET]) as server:
            output = connect(server).agent("text").stream("Hello")
            got: list[Any] = []
            with pytest.raises(mx.StreamInterrupted):  # noqa: PT012
                for chunk in output.full_stream:
                    got.append(chunk)  # noqa: PERF402  # what came before the error counts
            assert [mx.to_wire(chunk) for chunk in got] == whole
            assert len(server.requests) == 1


def test_the_answer_to_a_call_that_is_not_json(connect: Connect) -> None:
    with ScriptedServer([answer("200 OK", "x")[:-3] + b"x x"]) as server, pytest.raises(mx.SourceError, match="JSON"):
        connect(server).agents().run()
