"""One measurement in a process of its own: python -m tests.benchmarks.measure CASE INPUT [READERS]

Prints one JSON line: {"chunks", "ms", "seen", "objects", "rss_mb"}, the median of REPS runs (default 5), as the peer
does.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from reactivex.scheduler import CurrentThreadScheduler

import mastra_rx as mx
from tests.benchmarks.inputs import ARRAY_SCHEMA, SCHEMA

VALUES = (
    "text",
    "reasoning",
    "reasoning_text",
    "tool_calls",
    "tool_results",
    "usage",
    "total_usage",
    "finish_reason",
    "steps",
    "sources",
    "files",
    "warnings",
)


def read(path: str, readers: int) -> dict[str, int]:
    """Callbacks: `readers` of the full stream, then every value."""
    output = mx.MastraModelOutput(mx.from_jsonl(path))
    seen: list[list[Any]] = [[] for _ in range(readers)]

    def subscribe(*_: Any) -> None:
        for box in seen:
            output.full_stream.subscribe(box.append)

    CurrentThreadScheduler.singleton().schedule(subscribe)
    for name in VALUES:
        getattr(output, name).run()
    return {"seen": sum(map(len, seen)), "chunks": len(seen[0])}


def read_asyncio(path: str, readers: int) -> dict[str, int]:
    """The same by `async for`."""

    async def run() -> dict[str, int]:
        output = mx.MastraModelOutput(mx.from_jsonl(path))

        async def count() -> int:
            seen = 0
            async for _ in output.full_stream:
                seen += 1
            return seen

        counts = await asyncio.gather(*(count() for _ in range(readers)))
        for name in VALUES:
            await getattr(output, name)
        return {"seen": sum(counts), "chunks": counts[0]}

    return asyncio.run(run())


def read_object(path: str, _: int, schema: dict[str, Any] = SCHEMA) -> dict[str, int]:
    """A reader of the growing object, one of the full stream, and the object."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(mx.from_jsonl(path), schema=schema)
    chunks = objects = 0

    def count_chunk(_: Any) -> None:
        nonlocal chunks
        chunks += 1

    def count_object(_: Any) -> None:
        nonlocal objects
        objects += 1

    def subscribe(*_: Any) -> None:
        output.full_stream.subscribe(count_chunk)
        output.object_stream.subscribe(count_object)

    CurrentThreadScheduler.singleton().schedule(subscribe)
    for name in (*VALUES, "object"):
        getattr(output, name).run()
    return {"seen": chunks, "objects": objects, "chunks": chunks}


def read_elements(path: str, _: int) -> dict[str, int]:
    """A reader of the elements, one of the full stream, and the array."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(mx.from_jsonl(path), schema=ARRAY_SCHEMA)
    chunks: list[Any] = []
    elements: list[Any] = []

    def subscribe(*_: Any) -> None:
        output.full_stream.subscribe(chunks.append)
        output.element_stream.subscribe(elements.append)

    CurrentThreadScheduler.singleton().schedule(subscribe)
    output.object.run()
    return {"seen": len(chunks), "objects": len(elements), "chunks": len(chunks)}


def replay_late(path: str, _: int) -> dict[str, int]:
    """A reader that comes after the end. Only its replay is timed."""
    output = _kept.get(path)
    if output is None:
        output = _kept[path] = mx.MastraModelOutput(mx.from_jsonl(path))
        output.text.run()
    seen: list[Any] = []
    start = time.perf_counter()
    output.full_stream.subscribe(seen.append)
    return {"seen": len(seen), "chunks": len(seen), "us": round((time.perf_counter() - start) * 1e6)}


_kept: dict[str, mx.MastraModelOutput[Any]] = {}


def decode(path: str, _: int) -> dict[str, int]:
    """Only the source: bytes to chunks, which are dropped."""
    count = 0

    def see(_: Any) -> None:
        nonlocal count
        count += 1

    mx.from_jsonl(path).subscribe(see)
    return {"seen": count, "chunks": count}


def weigh(path: str, _: int) -> dict[str, int]:
    """What a kept chunk weighs: the growth of the process by a run that is kept."""
    warm = mx.MastraModelOutput(mx.from_jsonl(mx.recording("text")))
    warm.text.run()
    gc.collect()
    before = _rss()
    output = mx.MastraModelOutput(mx.from_jsonl(path))
    output.text.run()
    gc.collect()
    count = len(output._stream.so_far)
    return {"seen": count, "chunks": count, "bytes_a_chunk": round((_rss() - before) / count)}


def bounded(path: str, _: int) -> dict[str, int]:
    """A long run with `history=1000`: the growth of the process."""
    before = _rss()
    output = mx.MastraModelOutput(mx.from_jsonl(path), history=1000)
    count = 0

    def see(_: Any) -> None:
        nonlocal count
        count += 1

    output.full_stream.subscribe(see)
    return {"seen": count, "chunks": count, "growth_mb": round((_rss() - before) / 1e6)}


def _rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


CASES: dict[str, Callable[[str, int], dict[str, int]]] = {
    "read": read,
    "asyncio": read_asyncio,
    "object": read_object,
    "elements": read_elements,
    "replay": replay_late,
    "decode": decode,
    "weigh": weigh,
    "bounded": bounded,
}


def main() -> None:
    case, path = CASES[sys.argv[1]], sys.argv[2]
    readers = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    runs: list[dict[str, float]] = []
    for _ in range(int(os.environ.get("REPS", "5"))):
        gc.collect()
        start = time.perf_counter()
        told = case(path, readers)
        ms = told["us"] / 1000 if "us" in told else (time.perf_counter() - start) * 1000
        runs.append({**told, "ms": ms})
    runs.sort(key=lambda run: run["ms"])
    median = runs[len(runs) // 2]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**median, "rss_mb": round(peak / 1e6)}))


if __name__ == "__main__":
    main()
