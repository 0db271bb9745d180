"""A TCP server that answers HTTP requests exactly as it is told, byte by byte, and dies where it is told to.

It runs on a thread of its own, so that asyncio and blocking tests can use it alike.

    with ScriptedServer([HEAD, chunked(sse(CHUNKS)), RESET]) as server: ...

Each request takes the next script; the last one is used for all further ones. A script is a list of steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

T = TypeVar("T")

# ---- steps: bytes are written; the connection is closed after the last one, unless one says something else ----------


class Mark:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


RESET = Mark("RESET")
"""Break the connection off, without a proper close."""
HANG = Mark("HANG")
"""Say nothing more, until the client leaves."""
KEEP = Mark("KEEP")
"""Keep the connection open for the next request."""

Step = bytes | Mark | threading.Event
Script = Sequence[Step]


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass
class ScriptedServer:
    scripts: list[Script]
    requests: list[Request] = field(default_factory=list)
    open_connections: int = 0
    connections: int = 0
    left: threading.Event = field(default_factory=threading.Event)
    """A client closed its connection in the middle of an answer."""

    def __init__(self, *scripts: Script, answer: Callable[[Request], Script] | None = None) -> None:
        self.scripts = list(scripts)
        self.answer = answer
        self.requests = []
        self.open_connections = self.connections = 0
        self.left = threading.Event()
        self._idle = threading.Event()
        self._idle.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ScriptedServer:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="scripted server")
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024))
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()

    def wait_until_alone(self, seconds: float = 5) -> bool:
        """Whether all clients have closed their connections, or do so in time."""
        return self._idle.wait(seconds)

    def _call(self, work: Awaitable[T]) -> T:
        async def run() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        self.connections += 1
        self._idle.clear()
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while (request := await _request(reader)) is not None:
                    self.requests.append(request)
                    if not await self._play(self._script(request), reader, writer):
                        break
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()
            self.open_connections -= 1
            if not self.open_connections:
                self._idle.set()

    def _script(self, request: Request) -> Script:
        if self.answer is not None:
            return self.answer(request)
        return self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]

    async def _play(self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        gone = asyncio.create_task(_gone(reader)) if KEEP not in script else None
        try:
            for step in script:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif isinstance(step, threading.Event):
                    await asyncio.to_thread(step.wait, 10)
                elif step is RESET:
                    writer.transport.abort()
                    return False
                elif step is KEEP:
                    return True
                elif gone is not None:
                    await gone
                    self.left.set()
            return False
        except ConnectionError:
            self.left.set()
            return False
        finally:
            if gone is not None:
                gone.cancel()


async def _gone(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        while await reader.read(1 << 16):
            pass


async def _request(reader: asyncio.StreamReader) -> Request | None:
    first = await reader.readline()
    if not first:
        return None
    method, target, _ = first.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while line := (await reader.readline()).decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Request(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))


# ---- what to write ---------------------------------------------------------------------------------------------------


def head(
    content_type: str | None = "text/event-stream", status: str = "200 OK", *more: str, chunked: bool = True
) -> bytes:
    """The status line and the headers."""
    lines = [f"HTTP/1.1 {status}", *more]
    if content_type is not None:
        lines.append(f"content-type: {content_type}")
    if chunked:
        lines.append("transfer-encoding: chunked")
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


HEAD = head("text/event-stream", "200 OK", "connection: close")
WORKFLOW_HEAD = head("text/plain", "200 OK", "connection: close")
OPEN_HEAD = head()
"""Of an answer after which the connection stays open, for `KEEP`."""
END = b"0\r\n\r\n"
"""The end of a chunked body."""


def chunked(*pieces: bytes, end: bool = False) -> bytes:
    """Pieces in HTTP's chunked framing."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece) + (END if end else b"")


def answer(status: str, body: Any, *more: str) -> bytes:
    """A whole answer with a JSON body."""
    data = json.dumps(body).encode()
    return (
        head("application/json", status, f"content-length: {len(data)}", "connection: close", *more, chunked=False)
        + data
    )


def sse(chunks: Iterable[Any], *, done: bool = True) -> bytes:
    events = b"".join(b"data: " + compact(chunk) + b"\n\n" for chunk in chunks)
    return events + (b"data: [DONE]\n\n" if done else b"")


def records(chunks: Iterable[Any]) -> bytes:
    return b"".join(compact(chunk) + b"\x1e" for chunk in chunks)


def envelopes(chunks: Sequence[Any], start: int = 0, run_id: str = "r") -> list[dict[str, Any]]:
    """The chunks of a durable run as they are observed: the last one is the end of the run."""
    return [
        {"type": "finish", "runId": run_id, "data": chunk["payload"], "index": index}
        if chunk["type"] == "finish"
        else {"type": "chunk", "runId": run_id, "data": chunk, "index": index}
        for index, chunk in enumerate(chunks, start)
    ]


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# ---- a run -----------------------------------------------------------------------------------------------------------


def delta(text: str) -> dict[str, Any]:
    return {"type": "text-delta", "runId": "r", "from": "AGENT", "payload": {"id": "t1", "text": text}}


START: dict[str, Any] = {"type": "start", "runId": "r", "from": "AGENT", "payload": {"id": "agent"}}
FINISH: dict[str, Any] = {
    "type": "finish",
    "runId": "r",
    "from": "AGENT",
    "payload": {
        "stepResult": {"reason": "stop"},
        "output": {"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}},
    },
}
RUN = [START, delta("Hello "), delta("Zoë "), delta("👋"), FINISH]
TEXT = "Hello Zoë 👋"

STEPS: list[dict[str, Any]] = [
    {"type": "workflow-start", "runId": "w", "from": "WORKFLOW", "payload": {"workflowId": "flow"}},
    {"type": "workflow-step-start", "runId": "w", "from": "WORKFLOW", "payload": {"id": "a", "status": "running"}},
    {
        "type": "workflow-step-result",
        "runId": "w",
        "from": "WORKFLOW",
        "payload": {"id": "a", "status": "success", "output": {"x": 2}},
    },
    {
        "type": "workflow-finish",
        "runId": "w",
        "from": "WORKFLOW",
        "payload": {"workflowStatus": "success", "finalWorkflowResult": {"x": 2}},
    },
]
