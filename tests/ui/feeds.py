"""What drives the screens of these tests: runs on threads of their own, and a way to wait that does not hang."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from reactivex.subject import Subject

import mastra_rx as mx
from tests.cases.wire import finish, of_a_server, text

LIMIT = 15.0
RECORDINGS = Path(__file__).parent.parent / "recordings"


def wait_for(condition: Callable[[], Any], turn: Callable[[], Any] | None = None, limit: float = LIMIT) -> None:
    """Until the condition holds; `turn` gives the user interface its turn meanwhile."""
    nothing = threading.Event()
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        if turn is None:
            nothing.wait(0.005)
        else:
            turn()


def threads_of(before: set[threading.Thread]) -> set[threading.Thread]:
    """The new threads that stay; those about to end get the time to. Our own loop stays by design, and is left out."""
    new = {thread for thread in threading.enumerate() if thread not in before and thread.name != "mastra_rx"}
    for thread in new:
        thread.join(LIMIT)
    return {thread for thread in new if thread.is_alive()}


class Feed:
    """A run that comes from a thread of its own, as from an HTTP client that blocks."""

    def __init__(self) -> None:
        self._subject: Subject[Any] = Subject()
        self.output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(self._subject)
        self.output.full_stream.subscribe()  # connected from here on
        self.threads = set[int]()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self, *chunks: Any, then_finish: bool = True) -> Feed:
        """Push these chunks, and the end, from another thread."""

        def push() -> None:
            self.threads.add(threading.get_ident())
            for chunk in chunks:
                self._subject.on_next(chunk)
            if then_finish:
                self._subject.on_next(of_a_server(finish()))
                self._subject.on_completed()

        return self._start(push)

    def run_on(self) -> Feed:
        """Push pieces of text from another thread until `stop`."""

        def push() -> None:
            self.threads.add(threading.get_ident())
            number = 0
            while not self._stop.wait(0.0005):
                self._subject.on_next(text(f"{number} "))
                number += 1

        return self._start(push)

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LIMIT)
            assert not self._thread.is_alive()

    def _start(self, push: Callable[[], None]) -> Feed:
        self._thread = threading.Thread(target=push, name="the run", daemon=True)
        self._thread.start()
        return self


def recorded(name: str) -> Path:
    return RECORDINGS / f"{name}.jsonl"


def timed(name: str, to: Path, milliseconds: float = 5.0) -> Path:
    """The recording with times, so that `from_jsonl(path, speed=1)` plays it on a loop of its own, chunk by chunk."""
    lines = recorded(name).read_bytes().splitlines()
    path = to / f"{name}.jsonl"
    path.write_bytes(
        b"".join(line[:-1] + b',"recordedAt":%.1f}\n' % (number * milliseconds) for number, line in enumerate(lines))
    )
    return path


async def slowly(chunks: list[Any], seconds: float = 0.005) -> AsyncIterator[Any]:
    """An asynchronous source."""
    for chunk in chunks:
        await asyncio.sleep(seconds)
        yield chunk


def module(name: str) -> Any:
    """The toolkit, or a skip that says why."""
    return pytest.importorskip(name, reason=f"{name} is not installed", exc_type=ImportError)


def let_go_of(root: Any) -> None:
    """Destroy a Tk window and free its interpreter here: freed by the collector on another thread, it would abort."""
    widgets, found = [root], [root]
    while found:
        found = [child for widget in found for child in widget.children.values()]
        widgets += found
    with suppress(Exception):  # a test may have destroyed it
        root.destroy()
    for widget in widgets:
        widget.__dict__.pop("tk", None)
