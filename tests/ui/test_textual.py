"""A real Textual app, run by its pilot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import text
from tests.ui.feeds import LIMIT, Feed, module, recorded, timed

module("textual")
from textual.app import App, ComposeResult  # noqa: E402
from textual.widgets import Static  # noqa: E402

pytestmark = pytest.mark.textual


class Screen(App[None]):
    """A text and a status line; what is subscribed is up to the test."""

    def __init__(self, subscribe: Callable[[Screen], Any]) -> None:
        super().__init__()
        self._subscribe_to = subscribe
        self.shown = ""
        self.threads = set[int]()
        self.painted = 0

    def compose(self) -> ComposeResult:
        yield Static("", id="text", markup=False)
        yield Static("waiting", id="status", markup=False)

    def on_mount(self) -> None:
        self._subscribe_to(self)

    def append(self, piece: str) -> None:
        self.paint(self.shown + piece)

    def paint(self, shown: str) -> None:
        self.threads.add(threading.get_ident())
        self.painted += 1
        self.shown = shown
        self.query_one("#text", Static).update(shown)

    def done(self) -> None:
        self.threads.add(threading.get_ident())
        self.query_one("#status", Static).update("done")

    def failed(self, error: Exception) -> None:
        self.query_one("#status", Static).update(str(error))

    def on_screen(self, name: str) -> str:
        """What the widget paints, as characters."""
        widget = self.query_one(name, Static)
        return " ".join(" ".join(strip.text for strip in widget.render_lines(widget.size.region)).split())


async def until(pilot: Any, condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():
            await pilot.pause(0.005)


def run(app: Screen, check: Callable[[Any], Any]) -> None:
    async def main() -> None:
        async with app.run_test(size=(100, 30)) as pilot:
            await check(pilot)

    asyncio.run(main())


@pytest.mark.parametrize("target", ["loop", "call_from_thread"])
def test_a_run_from_another_thread_is_on_the_screen(target: str) -> None:
    feed = Feed()
    wanted = mx.MastraModelOutput(mx.from_jsonl(recorded("text-plain"))).text.run()

    def subscribe(app: Screen) -> None:
        where: Any = asyncio.get_running_loop() if target == "loop" else app.call_from_thread
        pieces = feed.output.text_stream.pipe(ops.deliver_on(where))
        pieces.subscribe(app.append, app.failed, app.done)
        feed.run(*recorded("text-plain").read_bytes().splitlines())

    async def check(pilot: Any) -> None:
        await until(pilot, lambda: app.on_screen("#status") == "done")
        assert app.on_screen("#text") == " ".join(wanted.split())
        assert app.threads == {threading.get_ident()}

    app = Screen(subscribe)
    run(app, check)
    assert threading.get_ident() not in feed.threads
    feed.stop()


def test_a_recording_in_its_own_rhythm(tmp_path: Path) -> None:
    output = mx.MastraModelOutput(mx.from_jsonl(timed("tool-one", tmp_path), speed=1))

    def subscribe(app: Screen) -> None:
        pieces = output.text_stream.pipe(ops.deliver_on(asyncio.get_running_loop()))
        pieces.subscribe(app.append, app.failed, app.done)

    async def check(pilot: Any) -> None:
        await until(pilot, lambda: app.on_screen("#status") == "done")
        assert app.on_screen("#text") == "It is 21.5 degrees."

    app = Screen(subscribe)
    run(app, check)


def test_latest_paints_the_newest() -> None:
    feed = Feed()

    def subscribe(app: Screen) -> None:
        newest = feed.output.snapshots.pipe(ops.deliver_on(asyncio.get_running_loop(), "latest"))
        newest.subscribe(lambda snapshot: app.paint(snapshot.text), app.failed, app.done)
        feed.run(*[text(f"{number} ") for number in range(2000)])

    async def check(pilot: Any) -> None:
        await until(pilot, lambda: app.on_screen("#status") == "done")
        assert app.shown == "".join(f"{number} " for number in range(2000))
        assert app.painted < 1000

    app = Screen(subscribe)
    run(app, check)
    feed.stop()


def test_a_callback_knows_its_app() -> None:
    """Textual keeps the app in a context variable: without it, mounting a widget from a callback fails."""
    feed = Feed()

    def subscribe(app: Screen) -> None:
        pieces = feed.output.text_stream.pipe(ops.deliver_on(asyncio.get_running_loop()))
        pieces.subscribe(lambda piece: app.mount(Static(piece, classes="piece")), app.failed, app.done)
        feed.run(text("a"), text("b"))

    async def check(pilot: Any) -> None:
        await until(pilot, lambda: len(app.query(".piece")) == 2)
        await until(pilot, lambda: app.on_screen("#status") == "done")

    app = Screen(subscribe)
    run(app, check)
    feed.stop()


def test_the_app_ends_in_the_middle() -> None:
    feed, other = Feed().run_on(), list[str]()
    feed.output.text_stream.subscribe(other.append)
    readers = len(feed.output._stream._readers)

    def subscribe(app: Screen) -> None:
        app.text_of_run = feed.output.text_stream.pipe(ops.deliver_on(asyncio.get_running_loop())).subscribe(app.append)

    async def check(pilot: Any) -> None:
        await until(pilot, lambda: app.shown)

    app = Screen(subscribe)
    run(app, check)  # the loop is closed at its end
    count = len(other)
    limit = threading.Event()
    for _ in range(int(LIMIT / 0.005)):
        if len(other) > count + 50:
            break
        limit.wait(0.005)
    assert len(other) > count + 50
    assert len(feed.output._stream._readers) == readers
    feed.stop()
