"""A real Tk window: what is on the screen, on which thread it came, and what is left when the window is gone."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import operators as rxops
from reactivex.scheduler import NewThreadScheduler

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import finish, text
from tests.ui.feeds import LIMIT, Feed, let_go_of, module, recorded, threads_of, timed, wait_for

tkinter = module("tkinter")

pytestmark = pytest.mark.display


class Window:
    """A window with a text and a status line."""

    def __init__(self) -> None:
        self.root = tkinter.Tk()
        self.text = tkinter.Text(self.root)
        self.text.pack()
        self.status = tkinter.Label(self.root, text="waiting")
        self.status.pack()
        self.threads = set[int]()
        self.faults: list[Any] = []
        self.root.report_callback_exception = lambda *fault: self.faults.append(fault)
        self.root.tk.eval("proc bgerror {message} { lappend ::faults $message }; set ::faults {}")

    def append(self, piece: str) -> None:
        self.threads.add(threading.get_ident())
        self.text.insert("end", piece)

    def done(self) -> None:
        self.threads.add(threading.get_ident())
        self.status["text"] = "done"

    def failed(self, error: Exception) -> None:
        self.threads.add(threading.get_ident())
        self.status["text"] = str(error)

    @property
    def shown(self) -> str:
        return self.text.get("1.0", "end-1c")

    @property
    def tcl_faults(self) -> str:
        return self.root.tk.eval("set ::faults")

    def until(self, condition: Callable[[], Any]) -> None:
        """Run Tk's own main loop until the condition holds."""
        late: list[bool] = []

        def look() -> None:
            if condition() or late:
                self.root.quit()
            else:
                self.root.after(5, look)

        limit = self.root.after(int(LIMIT * 1000), lambda: late.append(True))
        look()
        self.root.mainloop()
        self.root.after_cancel(limit)
        assert not late, "it did not happen in time"


@pytest.fixture
def window(display: str) -> Iterator[Window]:
    window = Window()
    parts = window.text, window.status
    yield window
    let_go_of(window.root)
    for part in parts:
        part.__dict__.pop("tk", None)
    gc.collect()
    assert window.faults == []


def test_a_run_from_another_thread_is_on_the_screen(window: Window) -> None:
    feed = Feed()
    pieces = feed.output.text_stream.pipe(ops.deliver_on(window.root))
    pieces.subscribe(window.append, window.failed, window.done)
    feed.run(*recorded("text-plain").read_bytes().splitlines(), then_finish=False)
    feed.output.full_stream.subscribe()
    wanted = mx.MastraModelOutput(mx.from_jsonl(recorded("text-plain"))).text.run()
    window.until(lambda: window.shown == wanted)
    feed.output.dispose()
    window.until(lambda: window.status["text"] == "done")
    assert window.threads == {threading.get_ident()}
    assert threading.get_ident() not in feed.threads
    feed.stop()


def test_a_recording_in_its_own_rhythm(window: Window, tmp_path: Path) -> None:
    """An asynchronous source runs on a loop of its own; Tk only paints."""
    output = mx.MastraModelOutput(mx.from_jsonl(timed("tool-one", tmp_path), speed=1))
    states: list[str] = []
    runs = output.tool_runs.pipe(ops.deliver_on(window.root))
    runs.subscribe(lambda run: states.append(run.state))
    output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(window.append, window.failed, window.done)
    window.until(lambda: window.status["text"] == "done")
    assert window.shown == "It is 21.5 degrees."
    assert states[0] == "input-streaming"
    assert states[-1] == "output-available"
    assert window.threads == {threading.get_ident()}


def test_latest_paints_the_newest(window: Window) -> None:
    feed, painted = Feed(), list[str]()

    def paint(snapshot: mx.Snapshot) -> None:
        painted.append(snapshot.text)
        window.text.replace("1.0", "end", snapshot.text)

    feed.output.snapshots.pipe(ops.deliver_on(window.root, "latest")).subscribe(paint, on_completed=window.done)
    feed.run(*[text(f"{number} ") for number in range(5000)])
    window.until(lambda: window.status["text"] == "done")
    assert window.shown == "".join(f"{number} " for number in range(5000))
    assert len(painted) < 2500


def test_a_blocking_source_that_is_subscribed_elsewhere(window: Window) -> None:
    """RxPY's `subscribe_on` has the source run on a thread; the window never waits for it."""
    go_on = threading.Event()

    def blocking() -> Iterator[Any]:
        yield text("a")
        assert go_on.wait(LIMIT)
        yield text("b")
        yield finish()

    before = set(threading.enumerate())
    output = mx.MastraModelOutput(blocking())
    pieces = output.text_stream.pipe(rxops.subscribe_on(NewThreadScheduler()), ops.deliver_on(window.root))
    pieces.subscribe(window.append, window.failed, window.done)
    window.until(lambda: window.shown == "a")
    go_on.set()
    window.until(lambda: window.status["text"] == "done")
    assert window.shown == "ab"
    assert window.threads == {threading.get_ident()}
    assert threads_of(before) == set()


def test_a_failure_is_on_the_screen(window: Window) -> None:
    async def source() -> Any:
        yield text("a")
        raise ConnectionError("socket hang up")

    output = mx.MastraModelOutput(source())
    output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(window.append, window.failed, window.done)
    window.until(lambda: "socket hang up" in window.status["text"])
    assert window.shown == "a"
    assert window.threads == {threading.get_ident()}


def test_dispose_stops_it(window: Window) -> None:
    feed = Feed().run_on()
    subscription = feed.output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(window.append)
    window.until(lambda: window.shown)
    subscription.dispose()
    shown, position = window.shown, feed.output._stream.position
    window.until(lambda: feed.output._stream.position > position + 50)
    assert window.shown == shown
    feed.stop()


def test_the_window_is_destroyed_in_the_middle(window: Window) -> None:
    """Nothing raises, no thread is left, nothing piles up, and the run goes on for its other readers."""
    before = set(threading.enumerate())
    feed, other = Feed().run_on(), list[str]()
    feed.output.text_stream.subscribe(other.append)
    readers = len(feed.output._stream._readers)
    feed.output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(window.append, window.failed, window.done)
    window.root.after(100, window.root.destroy)
    window.root.mainloop()  # ends with the window
    assert window.threads == {threading.get_ident()}
    count = len(other)
    wait_for(lambda: len(other) > count + 50)
    assert len(feed.output._stream._readers) == readers
    feed.stop()
    assert threads_of(before) == set()


def test_a_part_of_the_window_is_destroyed_in_the_middle(window: Window) -> None:
    """A dialog or a tab that goes: nothing is painted there any more, and Tk has nothing to complain about."""
    feed = Feed().run_on()
    part = tkinter.Frame(window.root)
    label = tkinter.Label(part, text="")
    readers = len(feed.output._stream._readers)
    pieces = feed.output.text_stream.pipe(ops.deliver_on(part))
    pieces.subscribe(lambda piece: label.configure(text=piece), window.failed)
    window.until(lambda: label["text"])
    part.destroy()
    position = feed.output._stream.position
    window.until(lambda: feed.output._stream.position > position + 50)
    assert window.status["text"] == "waiting"
    assert window.tcl_faults == ""
    assert len(feed.output._stream._readers) == readers
    feed.stop()


def test_a_callback_that_destroys_the_window(window: Window) -> None:
    feed = Feed()
    seen: list[str] = []

    def close(piece: str) -> None:
        seen.append(piece)
        window.root.destroy()

    feed.output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(close)
    feed.run(*[text(str(number)) for number in range(10)])
    window.root.mainloop()
    assert seen == ["0"]
    feed.stop()


def test_a_callback_that_raises_is_reported_by_tk_and_detached(window: Window) -> None:
    feed, others = Feed(), list[str]()
    seen: list[str] = []

    def broken(piece: str) -> None:
        seen.append(piece)
        raise RuntimeError("bug in a callback")

    readers = len(feed.output._stream._readers)
    feed.output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(broken)
    feed.output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(others.append, on_completed=window.done)
    feed.run(*[text(str(number)) for number in range(10)], then_finish=False)
    window.until(lambda: len(others) == 10)
    feed.stop()
    assert seen == ["0"]
    assert [str(fault[1]) for fault in window.faults] == ["bug in a callback"]
    window.faults.clear()
    assert len(feed.output._stream._readers) == readers + 1


def test_subscribed_on_another_thread_while_tk_does_not_run(window: Window) -> None:
    """Tk can't be asked there; that must not look like a run without text."""
    errors: list[BaseException] = []

    def subscribe() -> None:
        output = mx.MastraModelOutput([text("a"), finish()])
        try:
            output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(window.append, errors.append)
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=subscribe)
    thread.start()
    thread.join(LIMIT)
    assert [type(error) for error in errors] == [RuntimeError]
    assert "thread" in str(errors[0])


def test_subscribed_on_another_thread_while_tk_runs(window: Window) -> None:
    def subscribe() -> None:
        output = mx.MastraModelOutput([text("a"), text("b"), finish()])
        output.text_stream.pipe(ops.deliver_on(window.root)).subscribe(window.append, window.failed, window.done)

    thread = threading.Thread(target=subscribe)
    window.root.after(10, thread.start)
    window.until(lambda: window.status["text"] == "done")
    thread.join(LIMIT)
    assert window.shown == "ab"
    assert window.threads == {threading.get_ident()}
