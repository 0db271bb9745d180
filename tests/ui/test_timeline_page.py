"""The page of a run in a real browser: scrubbed, filtered, searched and clicked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from mastra_rx.timeline import read_timed, timeline_page

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")), reason="needs chromium and chromedriver"
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that selenium leaves to the collector
]

RECORDINGS = Path(__file__).parent.parent / "recordings"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1280,1400"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


class Page:
    """What a reader sees and does."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser = browser
        browser.get(path.as_uri())

    def one(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def texts(self, selector: str) -> list[str]:
        """The texts of all, read at once when the page has painted: it makes its rows anew meanwhile."""
        script = """
            const [selector, done] = arguments;
            const read = () => done([...document.querySelectorAll(selector)].map((element) => element.innerText));
            requestAnimationFrame(() => requestAnimationFrame(read));
        """
        return self.browser.execute_async_script(script, selector)

    def press(self, *keys: str, on: str = "body") -> None:
        self.one(on).send_keys(*keys)

    def scrub(self, number: int) -> None:
        """Move the slider to the chunk of this number, counted from 1."""
        script = "const s = arguments[0]; s.value = arguments[1]; s.dispatchEvent(new Event('input'));"
        self.browser.execute_script(script, self.one("#position"), number - 1)

    @property
    def position(self) -> str:
        return self.text("#where")

    @property
    def facts(self) -> dict[str, str]:
        names = [div.get_attribute("data-name") for div in self.all("dl div")]
        return dict(zip(names, self.texts("dl div dd"), strict=True))

    @property
    def calls(self) -> list[list[str]]:
        return [text.split("\n") for text in self.texts("#tools li")]

    @property
    def rows(self) -> list[str]:
        return [text.split("\n")[1] for text in self.texts(".row")]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Any:
    def open_page(chunks: list[Any], times: list[float] | None = None) -> Page:
        path = tmp_path / "run.html"
        path.write_text(timeline_page(chunks, times=times, title="A run"), "utf-8")
        browser.get_log("browser")
        return Page(browser, path)

    yield open_page
    assert [entry["message"] for entry in browser.get_log("browser")] == []  # neither errors nor refused requests


def recorded(name: str) -> list[Any]:
    return [chunk for _, chunk in read_timed(RECORDINGS / f"{name}.jsonl")]


def chunk(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "runId": "r", "from": "AGENT", "payload": payload}


def test_it_opens_at_the_end_of_the_run(opened: Any) -> None:
    page = opened(recorded("tool-one"))
    assert page.text("h1") == "A run"
    assert page.position == "18 of 18 · finish"
    assert page.text("#text") == "It is 21.5 degrees."
    assert page.facts["Status"] == "success"
    assert page.facts["Finish reason"] == "stop"
    assert page.facts["Tokens"].split("\n") == ["51", "40 in, 11 out"]
    assert page.calls == [["weather", "output-available", '{"city":"Tokyo"}', '→ {"city":"Tokyo","tempC":21.5}']]


def test_scrubbing_shows_the_state_at_each_chunk(opened: Any) -> None:
    page = opened(recorded("tool-one"))
    page.scrub(5)
    assert page.position == "5 of 18 · tool-call-delta"
    assert page.calls == [["weather", "input-streaming", '{"city":"Tokyo']]
    assert page.facts["Status"] == "running"
    assert not page.one("#text-box").is_displayed()
    page.scrub(8)
    assert page.calls == [["weather", "input-available", '{"city":"Tokyo"}']]
    page.scrub(14)
    assert page.text("#text") == "It is 21.5"
    page.press("\ue014")  # right arrow
    assert page.text("#text") == "It is 21.5 degrees."
    page.press("\ue011")  # home
    assert page.position == "1 of 18 · start"
    page.press("\ue014", on="#position")
    assert page.position == "2 of 18 · step-start"
    page.one("#next").click()
    assert page.position == "3 of 18 · tool-call-input-streaming-start"


def test_reasoning_and_objects_grow(opened: Any) -> None:
    chunks = [
        chunk("reasoning-delta", id="r", text="Hm, "),
        {"type": "object", "object": {"a": 1}},
        chunk("reasoning-delta", id="r", text="so"),
        {"type": "object-result", "object": {"a": 1, "b": 2}},
    ]
    page = opened(chunks)
    assert page.text("#reasoning") == "Hm, so"
    page.scrub(2)
    assert page.text("#reasoning") == "Hm, "
    assert page.text("#object") == '{\n  "a": 1\n}'


def test_errors_are_shown_from_where_they_came(opened: Any) -> None:
    page = opened(recorded("error-mid-stream"))
    assert page.facts["Error"] == "Overloaded"
    page.scrub(4)
    assert "Error" not in page.facts


def test_filter_and_search(opened: Any) -> None:
    page = opened(recorded("tool-one"))
    assert len(page.rows) == 18
    page.one("[data-type=text-delta]").click()
    assert page.rows == ["text-delta"] * 3
    assert page.one("[data-type=text-delta]").get_attribute("aria-pressed") == "true"
    page.one("[data-type=tool-call]").click()
    assert page.rows == ["tool-call", *["text-delta"] * 3]
    assert page.text("#found") == "4 of 18"
    page.one("[data-type=text-delta]").click()
    page.one("[data-type=tool-call]").click()
    page.press("/")
    page.browser.switch_to.active_element.send_keys("DEGREES.")
    assert "text-delta" in page.rows
    assert len(page.rows) < 18


def test_a_click_shows_the_raw_chunk(opened: Any) -> None:
    page = opened(recorded("tool-one"))
    page.one("#row-8").click()
    assert page.position == "9 of 18 · tool-result"
    assert '"tempC": 21.5' in page.text("#raw")
    page.press("\ue013", on="#rows")  # up
    assert page.position == "8 of 18 · tool-call"
    page.one(".mrx-outcome[data-at='8'] circle").click()
    assert page.position == "9 of 18 · tool-result"


@pytest.mark.parametrize(
    "name", ["tool-one", "nested-agent", "bg-chained", "workflow-suspend-resume", "tripwire-input"]
)
def test_texts_of_the_picture_do_not_overlap_as_they_are_drawn(opened: Any, name: str) -> None:
    page = opened(recorded(name))
    assert overlapping(page) == []


def test_thirty_calls_do_not_overlap_as_they_are_drawn(opened: Any) -> None:
    calls = [{"toolCallId": f"c{n}", "toolName": f"a_tool_with_a_long_name_{n}"} for n in range(30)]
    chunks = [chunk("tool-call", **call, args={"city": "Tokyo"}) for call in calls]
    chunks += [chunk("tool-result", **call, result={"city": "Tokyo", "n": n}) for n, call in enumerate(reversed(calls))]
    page = opened(chunks, [float(n * 37) for n in range(60)])
    assert overlapping(page) == []
    assert len(page.all(".mrx-outcome[data-at]")) == 30


def overlapping(page: Page) -> list[tuple[str, str]]:
    script = """return [...document.querySelectorAll(".paper svg text")].map((text) => {
      const box = text.getBBox(), title = text.querySelector("title");
      return [box.x, box.y + 2, box.x + box.width, box.y + box.height - 2, text.lastChild.textContent];
    })"""
    boxes = page.browser.execute_script(script)
    return [
        (one[4], other[4])
        for one, other in combinations(boxes, 2)
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]


def test_hostile_text_stays_text(opened: Any) -> None:
    hostile = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">&amp;"
    page = opened(
        [chunk("text-delta", id="t", text=hostile), chunk("tool-call", toolCallId="c", toolName=hostile, args={})]
    )
    assert page.browser.title == "A run"
    assert page.text("#text") == hostile
    assert page.calls[0][0] == hostile


def test_twenty_thousand_chunks_open_within_seconds(opened: Any) -> None:
    deltas = [chunk("text-delta", id="t", text="word ") for _ in range(20_000)]
    page = opened([chunk("start"), *deltas, chunk("finish", stepResult={"reason": "stop"})])
    timing = "const t = performance.getEntriesByType('navigation')[0]; return t.domComplete - t.startTime"
    assert page.browser.execute_script(timing) < 5000
    assert page.position == "20,002 of 20,002 · finish"
    assert len(page.all(".row")) < 60
    page.scrub(10_001)
    assert len(page.browser.execute_script("return document.getElementById('text').textContent")) == 50_000
    steps = """const begun = performance.now();
      for (let n = 0; n < 50; n++) document.getElementById("next").click();
      return performance.now() - begun"""
    assert page.browser.execute_script(steps) < 5000
    assert page.position == "10,051 of 20,002 · text-delta"


def test_no_chunks_is_a_page_too(opened: Any) -> None:
    assert opened([]).position == "no chunks"
