"""Faults of user interfaces: callbacks on the wrong thread, loops that are not woken, threads that are left."""

from __future__ import annotations

import asyncio
import datetime
import os
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from reactivex import operators as rxops
from reactivex.scheduler import EventLoopScheduler, NewThreadScheduler, TimeoutScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler, AsyncIOThreadSafeScheduler
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import Seen, finish, one_by_one, sse, text
from tests.ui.conftest import display  # noqa: F401  # a fixture
from tests.ui.feeds import LIMIT, Feed, let_go_of, module, threads_of, wait_for


@pytest.mark.parametrize("how", ["deliver_on", "async for", "await"])
def test_a_sleeping_loop_is_woken_by_another_thread(how: str) -> None:
    """B131: an item from another thread is seen only when the loop wakes up for something else."""

    async def main() -> None:
        feed, me = Feed(), threading.get_ident()
        came: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if how == "deliver_on":
            pieces = feed.output.text_stream.pipe(ops.deliver_on(asyncio.get_running_loop()))
            pieces.subscribe(lambda _: came.done() or came.set_result(threading.get_ident()))
        elif how == "async for":

            async def read() -> None:
                async for _ in feed.output.text_stream:
                    came.set_result(threading.get_ident())
                    return

            reader = asyncio.create_task(read())
        else:

            async def value() -> None:
                await feed.output.text
                came.set_result(threading.get_ident())

            reader = asyncio.create_task(value())
        await asyncio.sleep(0.02)  # everything has subscribed; from here on the loop has nothing to do
        start = time.monotonic()
        feed.run(text("a"))
        assert await asyncio.wait_for(came, LIMIT) == me
        assert time.monotonic() - start < LIMIT / 3, "only the limit woke the loop"
        feed.stop()
        if how != "deliver_on":
            await reader

    asyncio.run(main())


def test_values_from_a_worker_arrive_on_qts_thread() -> None:
    """B133: RxPY's Qt scheduler starts timers on the worker's thread, where they never fire."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    module("PySide6.QtCore")
    widgets = module("PySide6.QtWidgets")
    app = widgets.QApplication.instance() or widgets.QApplication([])
    feed, threads, seen = Feed(), set[int](), Seen()

    def take(piece: str) -> None:
        threads.add(threading.get_ident())
        seen.items.append(piece)

    feed.output.text_stream.pipe(ops.deliver_on(app)).subscribe(take, seen.errors.append, seen.complete)
    feed.run(text("a"), text("b"))
    wait_for(lambda: seen.completed, app.processEvents)
    assert (seen.items, threads) == (["a", "b"], {threading.get_ident()})
    feed.stop()


def test_nothing_is_left_of_a_tk_window(display: str) -> None:  # noqa: F811
    """B134: RxPY's Tk scheduler runs periodic work on a timer thread, which keeps the program from ending."""
    tkinter = module("tkinter")
    root = tkinter.Tk()
    before = set(threading.enumerate())
    feed, threads = Feed().run_on(), set[int]()
    feed.output.text_stream.pipe(ops.deliver_on(root)).subscribe(lambda _: threads.add(threading.get_ident()))
    root.after(100, root.destroy)
    root.mainloop()
    let_go_of(root)
    feed.stop()
    assert threads == {threading.get_ident()}
    assert threads_of(before) == set()


def test_a_synchronous_reader_reads_on_its_own_thread() -> None:
    """B136: a callback on the pump's thread has no script context, and what it writes is lost.

    Streamlit's own side of this is in tests/ui/test_streamlit.py.
    """
    feed, readers = Feed(), set[int]()

    def pieces() -> Iterator[str]:
        for piece in feed.output.text_stream:
            readers.add(threading.get_ident())
            yield piece

    feed.run(text("a"), text("b"))
    assert list(pieces()) == ["a", "b"]
    assert readers == {threading.get_ident()}
    feed.stop()
    assert not readers & feed.threads


@pytest.mark.parametrize("loop_runs", [False, True], ids=["no loop", "a loop runs in this thread's parent"])
def test_an_asynchronous_source_feeds_a_synchronous_reader(loop_runs: bool) -> None:
    """B137: a loop made anew for each item; it fails where a loop runs already, as in a notebook."""
    loops = set[asyncio.AbstractEventLoop]()

    async def source() -> AsyncIterator[Any]:
        for chunk in (text("a"), text("b"), finish()):
            loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0)
            yield chunk

    def read() -> list[str]:
        return list(mx.MastraModelOutput(source()).text_stream)

    async def main() -> list[str]:
        return await asyncio.to_thread(read)

    assert (asyncio.run(main()) if loop_runs else read()) == ["a", "b"]
    assert len(loops) == 1


SCHEDULERS: dict[str, Callable[[], Any]] = {
    "asyncio": lambda: AsyncIOScheduler(asyncio.get_running_loop()),
    "asyncio, thread-safe": lambda: AsyncIOThreadSafeScheduler(asyncio.get_running_loop()),
    "event loop": lambda: EventLoopScheduler(exit_if_empty=True),
    "new thread": NewThreadScheduler,
    "timeout": TimeoutScheduler.singleton,
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_an_idle_limit_in_seconds_holds_on_each_scheduler(name: str) -> None:
    """B139: absolute times are off by decades on loop schedulers, so that a limit fires at once or never."""

    async def main() -> None:
        feed: Subject[Any] = Subject()
        output = mx.MastraModelOutput(feed)
        output.full_stream.subscribe()
        ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        pieces: list[str] = []
        loop = asyncio.get_running_loop()
        limited = output.text_stream.pipe(rxops.timeout(0.2, scheduler=SCHEDULERS[name]()), ops.deliver_on(loop))
        limited.subscribe(pieces.append, ended.set_result)
        start = time.monotonic()
        for piece in "abc":
            feed.on_next(text(piece))
            await asyncio.sleep(0.01)
        await asyncio.wait_for(ended, LIMIT)
        assert pieces == ["a", "b", "c"], "it fired at once"
        assert time.monotonic() - start >= 0.19

    asyncio.run(main())


def test_an_idle_limit_holds_in_virtual_time() -> None:
    """B139: the same by a clock that the test turns."""
    scheduler, feed, seen = TestScheduler(), Subject[Any](), Seen()
    output = mx.MastraModelOutput(feed)
    output.full_stream.subscribe()
    seen.subscribe(output.text_stream.pipe(rxops.timeout(30.0, scheduler=scheduler)))
    feed.on_next(text("a"))
    scheduler.advance_by(datetime.timedelta(seconds=29).total_seconds())
    assert seen.errors == []
    scheduler.advance_by(2)
    assert (seen.items, len(seen.errors)) == (["a"], 1)


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous"])
def test_an_output_can_be_made_where_no_loop_is(kind: str) -> None:
    """B140: `asyncio.get_event_loop()` outside of a loop warns, and from 3.14 on raises."""
    texts: list[str] = []

    def work() -> None:
        chunks = [text("a"), text("b"), finish()]
        output = mx.MastraModelOutput(one_by_one(chunks) if kind == "asynchronous" else chunks)
        texts.append(output.text.run())
        texts.append("".join(output.text_stream))
        texts.append(output.snapshots.run().text)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(LIMIT)
    assert texts == ["ab", "ab", "ab"]


def test_a_burst_leaves_room_for_the_screen() -> None:
    """B169: five hundred events in one network read."""
    data = sse(*[text(f"{number} ") for number in range(499)], finish())

    async def main() -> None:
        loop, frames, painted = asyncio.get_running_loop(), 0, list[str]()
        done = asyncio.Event()
        output = mx.MastraModelOutput(mx.from_bytes(one_by_one([data]), framing="sse"))
        newest = output.snapshots.pipe(ops.deliver_on(loop, "latest"))
        newest.subscribe(lambda snapshot: painted.append(snapshot.text), on_completed=done.set)
        pieces = asyncio.create_task(_collected(output.text_stream))
        while not (done.is_set() and pieces.done()):
            frames += 1
            await asyncio.sleep(0)
        assert len(await pieces) == 499
        assert painted[-1] == "".join(f"{number} " for number in range(499))
        assert len(painted) < 50
        assert frames > 5, "the screen had no turn"

    asyncio.run(asyncio.wait_for(main(), LIMIT))


async def _collected(view: Any) -> list[Any]:
    return [value async for value in view]
