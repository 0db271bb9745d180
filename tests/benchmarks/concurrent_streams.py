"""500 streams at once on one event loop, from a server on this machine.

    python -m tests.benchmarks.concurrent_streams [STREAMS] [DELTAS]

Prints chunks a second, peak memory, and how much memory is left after the streams have ended. Fails only where a stream
does not complete or a chunk is lost. The server is a process of its own, so that what is measured is the client.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import mastra_rx as mx

EVENTS_A_WRITE = 10


def serve(streams: int, deltas: int, ready: Connection) -> None:
    """Answers each request with a run of its own; writes take turns, so that all streams are open together."""
    all_here = asyncio.Event()
    waiting = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        name = json.loads(await reader.readexactly(length))["messages"]
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        waiting += 1
        if waiting % streams == 0:
            all_here.set()
        await all_here.wait()
        for first in range(0, deltas, EVENTS_A_WRITE):
            await send(writer, [delta(name, n) for n in range(first, min(first + EVENTS_A_WRITE, deltas))])
            await asyncio.sleep(0)
        await send(writer, [{"type": "finish", "runId": name, "payload": {"stepResult": {"reason": "stop"}}}])
        end = b"data: [DONE]\n\n"
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))
        await writer.drain()
        writer.close()
        waiting -= 1
        if not waiting:
            all_here.clear()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=streams)
        ready.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(ready.poll, None)

    asyncio.run(main())


async def send(writer: asyncio.StreamWriter, chunks: list[dict[str, Any]]) -> None:
    data = b"".join(b"data: %s\n\n" % json.dumps(chunk, separators=(",", ":")).encode() for chunk in chunks)
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
    await writer.drain()


def delta(name: str, n: int) -> dict[str, Any]:
    return {"type": "text-delta", "runId": name, "from": "AGENT", "payload": {"id": "t", "text": f"{n} "}}


async def run(client: mx.MastraClient, name: str, deltas: int) -> int:
    """Read one stream while it comes, and its values after; gives the number of chunks."""
    output = client.agent("agent").stream(name)
    count = 0
    async for _ in output.full_stream:
        count += 1
    assert count == deltas + 1, f"{name}: {count} chunks of {deltas + 1}"
    assert await output.text == "".join(f"{n} " for n in range(deltas)), f"{name}: a delta is lost or out of order"
    assert output.run_id == name
    assert output.status == "success"
    return count


async def measure(port: int, streams: int, deltas: int) -> None:
    async with mx.MastraClient(f"http://127.0.0.1:{port}", idle_timeout=60) as client:
        await run_all(client, streams, deltas)  # pools, caches and the allocator are warm from now on
        before = resident()
        peak = Peak()
        started = time.perf_counter()
        with peak:
            chunks = await run_all(client, streams, deltas)
        took = time.perf_counter() - started
        again = [resident() - before]
        for _ in range(2):
            await run_all(client, streams, deltas)
            again.append(resident() - before)
    assert len(asyncio.all_tasks()) == 1, asyncio.all_tasks()
    print(f"{streams} streams of {deltas + 1} chunks, all complete, no chunk lost")
    print(f"{chunks / took:,.0f} chunks a second ({took:.2f} s)")
    print(f"peak memory {peak.highest / 1e6:.0f} MB, {(peak.highest - before) / 1e6:.0f} MB above the start")
    print("growth after they ended, after 1, 2 and 3 rounds: " + ", ".join(f"{size / 1e6:+.1f} MB" for size in again))


async def run_all(client: mx.MastraClient, streams: int, deltas: int) -> int:
    total = sum(await asyncio.gather(*(run(client, f"run {n}", deltas) for n in range(streams))))
    gc.collect()
    return total


class Peak:
    """The highest resident memory while it is entered."""

    def __enter__(self) -> Peak:
        self.highest = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.highest = max(self.highest, resident())


def resident() -> int:
    """Bytes of memory that this process has."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(streams: int = 500, deltas: int = 200) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(streams, deltas, theirs), daemon=True)
    server.start()
    try:
        asyncio.run(measure(ours.recv(), streams, deltas))
    finally:
        ours.send(None)
        server.join(10)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
