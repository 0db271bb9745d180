"""A real Qt application, offscreen: what is in its widgets, on which thread it came, and what is left at the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import finish, text
from tests.ui.feeds import LIMIT, Feed, module, recorded, threads_of, timed, wait_for

QtCore = module("PySide6.QtCore")
QtWidgets = module("PySide6.QtWidgets")
shiboken6 = module("shiboken6")

pytestmark = pytest.mark.qt


@pytest.fixture(scope="session")
def app() -> Any:
    return QtWidgets.QApplication.instance() or QtWidgets.QApplication([])


class Window:
    """A window with a text and a status line."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.widget = QtWidgets.QWidget()
        self.text = QtWidgets.QPlainTextEdit()
        self.status = QtWidgets.QLabel("waiting")
        layout = QtWidgets.QVBoxLayout(self.widget)
        layout.addWidget(self.text)
        layout.addWidget(self.status)
        self.widget.show()
        self.threads = set[int]()

    def append(self, piece: str) -> None:
        self.threads.add(threading.get_ident())
        self.text.insertPlainText(piece)

    def done(self) -> None:
        self.threads.add(threading.get_ident())
        self.status.setText("done")

    def failed(self, error: Exception) -> None:
        self.threads.add(threading.get_ident())
        self.status.setText(str(error))

    @property
    def shown(self) -> str:
        return self.text.toPlainText()

    def until(self, condition: Callable[[], Any]) -> None:
        """Run Qt's own event loop until the condition holds."""
        loop, look = QtCore.QEventLoop(), QtCore.QTimer()
        look.timeout.connect(lambda: condition() and loop.quit())
        look.start(5)
        late: list[bool] = []
        limit = QtCore.QTimer()
        limit.setSingleShot(True)
        limit.timeout.connect(lambda: (late.append(True), loop.quit()))
        limit.start(int(LIMIT * 1000))
        loop.exec()
        look.stop()
        limit.stop()
        assert not late, "it did not happen in time"


@pytest.fixture
def window(app: Any) -> Iterator[Window]:
    window = Window(app)
    yield window
    if shiboken6.isValid(window.widget):
        shiboken6.delete(window.widget)


def test_a_run_from_another_thread_is_on_the_screen(window: Window) -> None:
    feed = Feed()
    pieces = feed.output.text_stream.pipe(ops.deliver_on(window.widget))
    pieces.subscribe(window.append, window.failed, window.done)
    feed.run(*recorded("text-plain").read_bytes().splitlines(), then_finish=False)
    wanted = mx.MastraModelOutput(mx.from_jsonl(recorded("text-plain"))).text.run()
    window.until(lambda: window.shown == wanted)
    feed.output.dispose()
    window.until(lambda: window.status.text() == "done")
    assert window.threads == {threading.get_ident()}
    assert threading.get_ident() not in feed.threads
    feed.stop()


def test_a_recording_in_its_own_rhythm(window: Window, tmp_path: Path) -> None:
    output = mx.MastraModelOutput(mx.from_jsonl(timed("tool-one", tmp_path), speed=1))
    states: list[str] = []
    output.tool_runs.pipe(ops.deliver_on(window.widget)).subscribe(lambda run: states.append(run.state))
    output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(window.append, window.failed, window.done)
    window.until(lambda: window.status.text() == "done")
    assert window.shown == "It is 21.5 degrees."
    assert (states[0], states[-1]) == ("input-streaming", "output-available")
    assert window.threads == {threading.get_ident()}


def test_latest_paints_the_newest(window: Window) -> None:
    feed, painted = Feed(), list[str]()

    def paint(snapshot: mx.Snapshot) -> None:
        painted.append(snapshot.text)
        window.text.setPlainText(snapshot.text)

    feed.output.snapshots.pipe(ops.deliver_on(window.widget, "latest")).subscribe(paint, on_completed=window.done)
    feed.run(*[text(f"{number} ") for number in range(3000)])
    window.until(lambda: window.status.text() == "done")
    assert window.shown == "".join(f"{number} " for number in range(3000))
    assert len(painted) < 1500


def test_a_failure_is_on_the_screen(window: Window) -> None:
    async def source() -> Any:
        yield text("a")
        raise ConnectionError("socket hang up")

    output = mx.MastraModelOutput(source())
    output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(window.append, window.failed, window.done)
    window.until(lambda: "socket hang up" in window.status.text())
    assert window.shown == "a"
    assert window.threads == {threading.get_ident()}


def test_dispose_stops_it(window: Window) -> None:
    feed = Feed().run_on()
    subscription = feed.output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(window.append)
    window.until(lambda: window.shown)
    subscription.dispose()
    shown, position = window.shown, feed.output._stream.position
    window.until(lambda: feed.output._stream.position > position + 50)
    assert window.shown == shown
    feed.stop()


def test_the_window_is_deleted_in_the_middle(window: Window) -> None:
    before = set(threading.enumerate())
    feed, seen, errors = Feed().run_on(), list[str](), list[Exception]()
    readers = len(feed.output._stream._readers)
    feed.output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(seen.append, errors.append)
    window.until(lambda: seen)
    shiboken6.delete(window.widget)
    count, position = len(seen), feed.output._stream.position
    window.until(lambda: feed.output._stream.position > position + 50)
    assert (len(seen), errors) == (count, [])
    assert len(feed.output._stream._readers) == readers
    feed.stop()
    assert threads_of(before) == set()


def test_a_callback_that_deletes_the_window(window: Window) -> None:
    feed, seen = Feed(), list[str]()

    def close(piece: str) -> None:
        seen.append(piece)
        window.widget.deleteLater()

    feed.output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(close)
    feed.run(text("a"))
    window.until(lambda: not shiboken6.isValid(window.widget))
    feed.run(text("b"), text("c"))
    feed.stop()
    window.app.processEvents()
    assert seen == ["a"]


def test_an_object_on_a_thread_of_its_own(window: Window) -> None:
    """A worker of Qt's, with a QThread: delivered there."""
    thread, worker = QtCore.QThread(), QtCore.QObject()
    worker.moveToThread(thread)
    thread.start()
    feed, threads, done = Feed(), set[Any](), threading.Event()
    pieces = feed.output.text_stream.pipe(ops.deliver_on(worker))
    pieces.subscribe(lambda _: threads.add(QtCore.QThread.currentThread()), on_completed=done.set)
    feed.run(text("a"), text("b"))
    assert done.wait(LIMIT)
    assert threads == {thread}
    thread.quit()
    assert thread.wait(int(LIMIT * 1000))
    feed.stop()


def test_subscribed_on_another_thread(window: Window) -> None:
    def subscribe() -> None:
        output = mx.MastraModelOutput([text("a"), text("b"), finish()])
        output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(window.append, window.failed, window.done)

    thread = threading.Thread(target=subscribe)
    thread.start()
    window.until(lambda: window.status.text() == "done")
    thread.join(LIMIT)
    assert window.shown == "ab"
    assert window.threads == {threading.get_ident()}


def test_subscriptions_do_not_use_up_qts_event_types(window: Window) -> None:
    """There are 64,536 for users, for the whole life of the application."""
    first = QtCore.QEvent.registerEventType()
    for _ in range(50):
        Feed().output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(window.append).dispose()
    assert abs(QtCore.QEvent.registerEventType() - first) <= 2


def test_wait_for_gives_turns(window: Window) -> None:
    """The loop may also be run by hand, as test suites of Qt programs do."""
    feed = Feed()
    feed.output.text_stream.pipe(ops.deliver_on(window.widget)).subscribe(window.append)
    feed.run(text("a"))
    wait_for(lambda: window.shown == "a", window.app.processEvents)
    feed.stop()
