"""A real web application: FastAPI under uvicorn, and a page in headless Chromium that shows the text as it grows."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import mastra_rx as mx
from tests.cases.wire import text
from tests.ui.feeds import LIMIT, Feed, module, recorded, wait_for

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>A run</title>
<h1>A run</h1>
<p id="text"></p>
<p id="status">waiting</p>
<script>
  const text = document.getElementById("text"), status = document.getElementById("status")
  window.ids = []; window.opened = 0
  const events = new EventSource("/run")
  events.onopen = () => { window.opened += 1; status.textContent = "running" }
  events.onmessage = event => {
    if (event.data === "[DONE]") { status.textContent = "done"; events.close(); return }
    window.ids.push(Number(event.lastEventId))
    const chunk = JSON.parse(event.data)
    if (chunk.type === "text-delta") text.textContent += chunk.payload.text
  }
</script>
"""


class Server:
    """The application, and what its clients sent."""

    def __init__(self) -> None:
        fastapi, responses = module("fastapi"), module("fastapi.responses")
        uvicorn = module("uvicorn")
        self.feed = Feed()
        self.asked: list[str | None] = []
        self.cut_after: int | None = None
        self.open = 0
        app = fastapi.FastAPI()

        @app.get("/", response_class=responses.HTMLResponse)
        def page() -> str:
            return PAGE

        def run(request: Any) -> Any:
            last = request.headers.get("last-event-id")
            self.asked.append(last)
            events = self._events(mx.relay.sse(self.feed.output, last_event_id=last, heartbeat=0.05))
            return responses.StreamingResponse(events, media_type="text/event-stream", headers=mx.relay.HEADERS)

        run.__annotations__["request"] = fastapi.Request
        app.get("/run")(run)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), name="the server")
        self._thread.start()
        wait_for(lambda: self._server.started)

    async def _events(self, relay: mx.relay.Relay) -> Any:
        """The relay; the first client's connection breaks off where the test says so."""
        cut, self.cut_after = self.cut_after, None
        self.open += 1
        try:
            if cut is not None:
                yield b"retry: 50\n\n"
            async for portion in relay:
                yield portion
                cut = None if cut is None else cut - (not portion.startswith(b":"))
                if cut == 0:
                    return
        finally:
            self.open -= 1

    def stop(self) -> None:
        self.feed.stop()
        self.feed.output.dispose()
        self._server.should_exit = True
        self._thread.join(LIMIT)
        self._listener.close()
        assert not self._thread.is_alive()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


class Client:
    """A client that reads lines on a thread of its own."""

    def __init__(self, server: Server, last_event_id: int | None = None) -> None:
        headers = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
        self._response = urllib.request.urlopen(
            urllib.request.Request(f"{server.address}/run", headers=headers), timeout=LIMIT
        )
        self.type = self._response.headers["content-type"]
        self.data = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, http.client.HTTPException):  # it left
            while portion := self._response.read1(65536):
                self.data += portion

    def all(self) -> bytes:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()
        self._response.close()
        return self.data

    def leave(self) -> None:
        self._response.fp.raw._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT)
        self._response.close()


def text_of(data: bytes) -> str:
    return mx.MastraModelOutput(mx.from_bytes([data], framing="sse")).text.run()


# ---- over the wire ---------------------------------------------------------------------------------------------------


def test_clients_early_late_and_one_that_leaves(server: Server) -> None:
    early, leaves = Client(server), Client(server)
    lines = recorded("text-plain").read_bytes().splitlines()
    server.feed.run(*lines[: len(lines) // 2], then_finish=False)
    wait_for(lambda: b"text-delta" in early.data and b"text-delta" in leaves.data)
    leaves.leave()
    wait_for(lambda: server.open == 1)
    late = Client(server)
    server.feed.run(*lines[len(lines) // 2 :])
    wanted = mx.MastraModelOutput(mx.from_jsonl(recorded("text-plain"))).text.run()
    assert text_of(early.all()) == text_of(late.all()) == text_of(Client(server).all()) == wanted
    assert early.type.startswith("text/event-stream")
    assert server.open == 0


def test_heartbeats_fill_the_silence(server: Server) -> None:
    client = Client(server)
    wait_for(lambda: client.data.count(b": heartbeat\n\n") >= 3)
    server.feed.run(text("a"))
    assert text_of(client.all()) == "a"


def test_a_client_goes_on_where_it_was(server: Server) -> None:
    server.feed.run(*[text(str(number)) for number in range(5)])
    server.feed.stop()
    events = [line for line in Client(server, last_event_id=2).all().split(b"\n") if line.startswith(b"id:")]
    assert events == [b"id: 3", b"id: 4", b"id: 5"]


# ---- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = module("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium or its driver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1000,500",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(option)
    from selenium.webdriver.chrome.service import Service

    browser = webdriver.Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


def reader(browser: Any, name: str) -> Callable[[], str]:
    return lambda: browser.execute_script("return document.getElementById(arguments[0]).textContent", name)


@pytest.mark.browser
def test_the_page_shows_the_text_as_it_grows(server: Server, browser: Any, tmp_path: Path) -> None:
    browser.get(server.address)
    shown, status = reader(browser, "text"), reader(browser, "status")
    server.feed.run(text("The text "), then_finish=False)
    wait_for(lambda: shown() == "The text ")
    assert status() == "running"
    server.feed.run(text("grows: "), text("grün 👍"), then_finish=False)
    wait_for(lambda: shown() == "The text grows: grün 👍")
    server.feed.run()
    wait_for(lambda: status() == "done")
    assert browser.save_screenshot(str(tmp_path / "page.png"))


@pytest.mark.browser
def test_the_page_comes_again_and_goes_on(server: Server, browser: Any) -> None:
    server.cut_after = 3
    browser.get(server.address)
    shown, status = reader(browser, "text"), reader(browser, "status")
    server.feed.run(*[text(f"{number} ") for number in range(6)], then_finish=False)
    wait_for(lambda: shown() == "0 1 2 3 4 5 ")
    server.feed.run(text("6 "))
    wait_for(lambda: status() == "done")
    assert shown() == "0 1 2 3 4 5 6 "
    assert json.loads(browser.execute_script("return JSON.stringify(window.ids)")) == list(range(8))
    assert browser.execute_script("return window.opened") == 2
    assert server.asked == [None, "2"]


@pytest.mark.browser
def test_two_pages_at_once_and_one_is_closed(server: Server, browser: Any) -> None:
    browser.get(server.address)
    first = browser.current_window_handle
    server.feed.run(text("a"), then_finish=False)
    wait_for(lambda: reader(browser, "text")() == "a")
    browser.switch_to.new_window("tab")
    browser.get(server.address)
    wait_for(lambda: reader(browser, "text")() == "a")
    wait_for(lambda: server.open == 2)
    browser.close()
    browser.switch_to.window(first)
    wait_for(lambda: server.open == 1)
    server.feed.run(text("b"))
    wait_for(lambda: reader(browser, "status")() == "done")
    assert reader(browser, "text")() == "ab"
