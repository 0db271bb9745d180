"""The benchmark: python -m tests.benchmarks [--peer DIR]

Prints a table of microseconds a chunk. With `--peer`, a folder in which `@mastra/core` is installed and which has
`mastra.mjs INPUT READERS [SCHEMA]`, the real MastraModelOutput runs on the same files in turn, and ratios are printed.
Each row is measured in processes of its own. On a shared machine only the ratios mean something.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import inputs

HERE = Path(__file__).parents[2]


def ours(case: str, path: Path, readers: int = 1, reps: int = 5) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.measure", case, str(path), str(readers)]
    return _run(command, HERE, reps)


def theirs(peer: Path, path: Path, readers: int = 1, schema: Path | None = None, reps: int = 5) -> dict[str, Any]:
    command = ["node", "mastra.mjs", str(path), str(readers), *([] if schema is None else [str(schema)])]
    return _run(command, peer, reps)


def _run(command: list[str], folder: Path, reps: int) -> dict[str, Any]:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "REPS": str(reps)}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


class Table:
    """Rows as they are measured."""

    def __init__(self, peer: Path | None) -> None:
        self._peer = peer
        print(f"{'':44}{'us/chunk':>10}{'Mastra':>10}{'ratio':>8}{'peak MB':>9}  ")

    def row(
        self,
        name: str,
        case: str,
        path: Path,
        readers: int = 1,
        *,
        schema: Path | None = None,
        peer_reps: int = 5,
        reps: int = 5,
    ) -> float:
        mine = ours(case, path, readers, reps)
        per_chunk = mine["ms"] * 1000 / mine["chunks"]
        line = f"{name:44}{per_chunk:>10.2f}"
        if self._peer is not None and peer_reps:
            peer = theirs(self._peer, path, readers, schema, peer_reps)
            their_chunk = peer["ms"] * 1000 / peer["chunks"]
            line += f"{their_chunk:>10.2f}{their_chunk / per_chunk:>7.1f}x"
        else:
            line += f"{'':>10}{'':>8}"
        print(f"{line}{mine['rss_mb']:>9}", flush=True)
        return per_chunk


def main() -> None:
    parser = argparse.ArgumentParser(description="Times mastra_rx, and the real Mastra beside it.")
    parser.add_argument("--peer", type=Path, help="a folder with mastra.mjs and @mastra/core installed")
    parser.add_argument("--quick", action="store_true", help="small inputs, to see that it runs")
    arguments = parser.parse_args()
    peer = None if arguments.peer is None else arguments.peer.resolve()
    count = 2_000 if arguments.quick else 100_000

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schema = folder / "schema.json"
        schema.write_text(json.dumps(inputs.SCHEMA), "utf-8")
        text = inputs.write(inputs.text(count), folder / "text.jsonl")
        small = inputs.write(inputs.text(count // 10), folder / "small.jsonl")
        tools = inputs.write(inputs.tool_arguments(count), folder / "tools.jsonl")

        table = Table(peer)
        for readers in (1, 3, 12):
            table.row(f"{count:,} text chunks, {readers} readers, every value", "read", text, readers)
        for readers in (1, 3, 12):
            table.row(f"the same by async for, {readers} readers", "asyncio", text, readers)
        table.row(f"{count:,} pieces of tool arguments", "read", tools)
        sizes = (2_000, 10_000) if arguments.quick else (2_000, 10_000, 100_000, 1_000_000)
        costs: dict[int, float] = {}
        for size in sizes:
            path = inputs.write(inputs.document(size), folder / f"object-{size}.jsonl")
            peer_reps = {2_000: 3, 10_000: 3, 100_000: 1}.get(size, 0)
            costs[size] = table.row(
                f"object of {size // 1000} KB in 4-character deltas", "object", path, schema=schema, peer_reps=peer_reps
            )
        for size in sizes:
            path = inputs.write(inputs.document(size, array=True), folder / f"array-{size}.jsonl")
            table.row(f"elements of an array of {size // 1000} KB", "elements", path, peer_reps=0)
        table.row("late replay", "replay", text, peer_reps=0)
        table.row("decoding alone", "decode", text, peer_reps=0)

        print()
        one, ten = ours("read", small)["ms"], ours("read", text)["ms"]
        print(f"ten times the chunks take {ten / one:.1f} times as long")
        print(f"a delta at {max(sizes) // 1000} KB costs {costs[max(sizes)] / costs[10_000]:.1f} times one at 10 KB")
        print(f"a kept text chunk weighs {ours('weigh', text, reps=1)['bytes_a_chunk']} bytes")
        if not arguments.quick:
            long = inputs.write(inputs.text(1_000_000), folder / "long.jsonl")
            growth = ours("bounded", long, reps=1)
            print(f"1,000,000 chunks with history=1000 grow the process by {growth['growth_mb']} MB")
        print(f"import mastra_rx takes {import_ratio():.1f} times as long as import reactivex, pydantic")


def import_ratio() -> float:
    """The quickest of several starts each, less an empty start; of modules that are compiled, as installed ones are."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def quickest(code: str) -> float:
        times: list[float] = []
        for _ in range(9):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE, env=env)
            times.append(time.perf_counter() - start)
        return min(times)

    empty = quickest("pass")
    return (quickest("import mastra_rx") - empty) / (quickest("import reactivex, pydantic") - empty)


if __name__ == "__main__":
    main()
