"""How even the frames of a user interface are while 50,000 chunks a second come, painted with `policy="latest"`.

    python tests/benchmarks/ui_responsiveness.py [--seconds 5] [--rate 50000] [--policy latest|each]

A loop paints 60 frames a second, in asyncio and in Tk where there is a display. A thread pushes text deltas. Printed
are the percentiles of the time between two frames (16.7 ms is even) and what was painted.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from typing import Any

from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import operators as ops

FRAME = 1 / 60


class Flood:
    """A run of so many chunks a second, from a thread of its own."""

    def __init__(self, rate: int, seconds: float) -> None:
        self._subject: Subject[Any] = Subject()
        self.output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(self._subject)
        self.output.full_stream.subscribe()
        self.rate, self.seconds = rate, seconds
        self.pushed, self.took = 0, 0.0
        self.thread = threading.Thread(target=self._push, name="the run")

    def _push(self) -> None:
        chunk = mx.parse_chunk(
            {"type": "text-delta", "runId": "r", "from": "AGENT", "payload": {"id": "1", "text": "x"}}
        )
        start, wait = time.perf_counter(), threading.Event().wait
        total = int(self.rate * self.seconds)
        while self.pushed < total:
            due = min(total, int((time.perf_counter() - start) * self.rate))
            for _ in range(due - self.pushed):
                self._subject.on_next(chunk)
            self.pushed = due
            wait(0.001)
        self.took = time.perf_counter() - start
        self._subject.on_next({"type": "finish", "payload": {"stepResult": {"reason": "stop"}}})
        self._subject.on_completed()


class Screen:
    """Paints what it was given last, once a frame."""

    def __init__(self) -> None:
        self.given, self.painted, self.chars = 0, 0, 0
        self.frames: list[float] = []
        self.over = False
        self._new: Any = None

    def take(self, snapshot: Any) -> None:
        self.given += 1
        self._new = snapshot

    def done(self) -> None:
        self.over = True

    def frame(self) -> None:
        self.frames.append(time.perf_counter())
        if self._new is not None:
            self.painted += 1
            self.chars = len(self._new.text)
            self._new = None


def report(name: str, flood: Flood, screen: Screen) -> None:
    between = sorted((b - a) * 1000 for a, b in zip(screen.frames, screen.frames[1:], strict=False))
    at = {share: between[min(len(between) - 1, int(share * len(between)))] for share in (0.5, 0.9, 0.99, 1.0)}
    rate = flood.pushed / flood.took
    print(f"{name}: {flood.pushed:,} chunks at {rate:,.0f} a second, {len(between)} frames")
    print("  between frames: " + ", ".join(f"p{share * 100:g} {ms:.1f} ms" for share, ms in at.items()))
    print(f"  callbacks {screen.given:,}, painted {screen.painted:,}, last {screen.chars:,} characters")


def in_asyncio(rate: int, seconds: float, policy: Any) -> None:
    flood, screen = Flood(rate, seconds), Screen()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        flood.output.snapshots.pipe(ops.deliver_on(loop, policy)).subscribe(screen.take, on_completed=screen.done)
        for _ in range(10):
            await asyncio.sleep(0)
        flood.thread.start()
        due = loop.time()
        while not screen.over:
            screen.frame()
            due = max(due + FRAME, loop.time())
            await asyncio.sleep(due - loop.time())
        screen.frame()

    asyncio.run(main())
    flood.thread.join()
    report(f"asyncio, {policy}", flood, screen)


def in_tk(rate: int, seconds: float, policy: Any) -> None:
    try:
        import tkinter

        root = tkinter.Tk()
    except Exception as error:
        print(f"Tk: not here ({error})")
        return
    flood, screen = Flood(rate, seconds), Screen()
    label = tkinter.Label(root, text="", width=60)
    label.pack()
    flood.output.snapshots.pipe(ops.deliver_on(root, policy)).subscribe(screen.take, on_completed=screen.done)

    def frame(due: float) -> None:
        screen.frame()
        label["text"] = f"{screen.chars:,}"
        if screen.over:
            root.destroy()
            return
        due = max(due + FRAME, time.perf_counter())
        root.after(max(1, round((due - time.perf_counter()) * 1000)), frame, due)

    flood.thread.start()
    frame(time.perf_counter())
    root.mainloop()
    flood.thread.join()
    report(f"Tk, {policy}", flood, screen)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--rate", type=int, default=50_000)
    options.add_argument("--policy", choices=["latest", "each"], default="latest")
    given = options.parse_args()
    in_asyncio(given.rate, given.seconds, given.policy)
    in_tk(given.rate, given.seconds, given.policy)


if __name__ == "__main__":
    main()
