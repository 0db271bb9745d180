"""Runs in notebooks: the HTML of a snapshot, the live cell in a real kernel, the panel, the missing extra."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx.jupyter import snapshot_html
from mastra_rx.jupyter.live_cell import INTERVAL, Follower
from mastra_rx.jupyter.render import CHARACTERS, LIVE_CHARACTERS, snapshot_text

from .conftest import RECORDINGS

pytest.importorskip("IPython")

Chunk = dict[str, Any]


def delta(text: str, kind: str = "text") -> Chunk:
    return {"type": f"{kind}-delta", "payload": {"id": "t1", "text": text}}


FINISH: Chunk = {"type": "finish", "payload": {"stepResult": {"reason": "stop"}}}
HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(1)> & \'"'


def shown(*chunks: Chunk, live: bool = False, schema: Any = None) -> str:
    """The HTML after these chunks, without its style."""
    output = mx.MastraModelOutput(chunks, schema=schema)
    snapshot = output.snapshots.run()
    return body(snapshot_html(snapshot, error=output.error, live=live))


def body(html: str) -> str:
    return html.partition("</style>")[2]


# ---- the HTML --------------------------------------------------------------------------------------------------------


def test_every_recording_is_shown() -> None:
    seen = 0
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        output = mx.MastraModelOutput(mx.from_jsonl(path))
        snapshots: list[mx.Snapshot] = []
        output.snapshots.subscribe(snapshots.append, lambda _: None)
        for snapshot in snapshots[:: max(1, len(snapshots) // 20)] + snapshots[-1:]:
            for live in True, False:
                html = snapshot_html(snapshot, error=output.error, live=live)
                assert html.count("<div") == html.count("</div>"), path.stem
                assert html.encode()
                seen += 1
            assert snapshot_text(snapshot, error=output.error).encode()
    assert seen > 500


def test_a_run_with_tools() -> None:
    output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools")))
    html = body(snapshot_html(output.snapshots.run()))
    assert "✓ finished" in html
    assert "2 steps" in html
    assert "51 tokens" in html
    assert "<b>weather</b>" in html
    assert "{&quot;city&quot;: &quot;Tokyo&quot;}" in html
    assert "✓ done" in html
    assert "It is 21.5 degrees." in html


def test_reasoning_is_dimmed_and_kept_apart() -> None:
    output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("reasoning")))
    html = body(snapshot_html(output.snapshots.run()))
    assert '<div class="mxc-reasoning">First, think.</div>' in html
    assert '<div class="mxc-text">Answer.</div>' in html


def test_what_a_model_writes_is_escaped_everywhere() -> None:
    call = {"toolCallId": HOSTILE, "toolName": HOSTILE}
    html = shown(
        {"type": "start", "runId": HOSTILE, "payload": {}},
        delta(HOSTILE),
        delta(HOSTILE, "reasoning"),
        {"type": "tool-call", "payload": {**call, "args": {HOSTILE: HOSTILE}}},
        {"type": "tool-result", "payload": {**call, "args": {}, "result": HOSTILE * 20}},
        {"type": "tool-call", "payload": {**call, "toolCallId": "2", "args": {}}},
        {"type": "tool-error", "payload": {**call, "toolCallId": "2", "error": {"message": HOSTILE}}},
        {
            "type": "source",
            "payload": {"id": "s", "sourceType": "url", "url": f"https://a/{HOSTILE}", "title": HOSTILE},
        },
        {"type": "source", "payload": {"id": "s", "sourceType": "url", "url": "javascript:alert(1)", "title": "a"}},
        {"type": "file", "payload": {"data": "aGk=", "mimeType": f"image/svg+xml{HOSTILE}", "filename": HOSTILE}},
        {"type": f"data-{HOSTILE}", "data": {HOSTILE: HOSTILE}, "id": HOSTILE},
        {"type": "object", "object": {HOSTILE: HOSTILE}},
        {"type": "error", "payload": {"error": {"message": HOSTILE, "name": HOSTILE}}},
    )
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert html.count("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;") > 8


def test_dollars_are_not_mathematics() -> None:
    assert 'class="mxc tex2jax_ignore mathjax_ignore"' in snapshot_html(mx.Snapshot())


def test_half_an_emoji_can_be_sent() -> None:
    part = {"type": "data-x", "data": "\ud83d"}
    assert shown(part, FINISH).encode()


def test_a_long_value_folds_and_has_a_key() -> None:
    call = {"toolCallId": "c1", "toolName": "search"}
    html = shown(
        {"type": "tool-call", "payload": {**call, "args": {}}},
        {"type": "tool-result", "payload": {**call, "args": {}, "result": {"rows": list(range(200))}}},
        FINISH,
    )
    assert '<details data-key="c1 result">' in html


def test_json_text_folds_where_the_object_is_shown() -> None:
    html = shown(delta('{"a": '), delta('"b"}'), FINISH, schema=dict[str, str])
    assert "the text it was read from (10 characters)" in html
    assert "&quot;a&quot;: &quot;b&quot;" in html


def test_live_is_bounded_and_the_end_is_whole() -> None:
    text = "0123456789" * 5_000
    live = shown(delta(text), live=True)
    assert len(live) < LIVE_CHARACTERS + 2_000
    assert "42,000 characters before" in live
    assert text in shown(delta(text), FINISH)
    assert len(shown(delta("x" * 2 * CHARACTERS), FINISH)) < CHARACTERS + 2_000
    many = [{"type": "data-x", "data": n} for n in range(1_000)]
    assert "940 parts before" in shown(*many, live=True)


def test_a_running_tool_shows_what_it_lets_out() -> None:
    path = RECORDINGS / "nested-agent.jsonl"
    snapshots = list(mx.MastraModelOutput(mx.from_jsonl(path)).snapshots)
    running = [
        s for s in snapshots if s.tool_runs and s.tool_runs[0].output and s.tool_runs[0].state == "input-available"
    ]
    html = body(snapshot_html(running[-1], live=True))
    assert "running agent-researcher" in html
    assert "Sub answer" in html


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("error-mid-stream", ["✗ failed", "<b>AgentError</b> Overloaded", "Half"]),
        ("tripwire-input", ["■ blocked", "Prompt injection detected"]),
        ("tool-approval", ["‖ suspended", "waits for approval"]),
        ("abort-mid-stream", ["■ canceled"]),
        ("unit-no-finish-text", ["✗ failed", "StreamInterrupted"]),
    ],
)
def test_endings(name: str, words: list[str]) -> None:
    output = mx.MastraModelOutput(mx.from_jsonl(RECORDINGS / f"{name}.jsonl"))
    html = body(snapshot_html(output.snapshots.run(), error=output.error))
    for word in words:
        assert word in html


# ---- following -------------------------------------------------------------------------------------------------------


async def slowly(*chunks: Chunk, seconds: float = 0.001) -> AsyncIterator[Chunk]:
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(seconds)


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Painter:
    """What would be painted, and when."""

    def __init__(self, output: mx.MastraModelOutput[Any]) -> None:
        self.times: list[float] = []
        self.texts: list[str] = []
        self.follower = Follower(output, self.paint)

    def paint(self) -> None:
        self.times.append(time.monotonic())
        self.texts.append(self.follower.snapshot.text)


@in_loop
async def test_follower_paints_in_measure_and_the_end_before_values_are_there() -> None:
    output = mx.MastraModelOutput(slowly(*[delta("x") for _ in range(300)], FINISH))
    painter = Painter(output)
    painter.follower.start(before=lambda: None)
    assert len(await output.text) == 300
    assert painter.texts[-1] == "x" * 300
    gaps = [b - a for a, b in zip(painter.times[:-3], painter.times[1:-2], strict=True)]
    assert len(gaps) > 2
    assert min(gaps) > INTERVAL * 0.9
    count = len(painter.times)
    await asyncio.sleep(3 * INTERVAL)
    assert len(painter.times) <= count + 1


@in_loop
async def test_an_error_chunk_is_painted_before_values_raise() -> None:
    error: Chunk = {"type": "error", "payload": {"error": {"message": "no"}}}
    output = mx.MastraModelOutput(slowly(delta("a"), error, FINISH, seconds=0.02))
    painter = Painter(output)
    painter.follower.start(before=lambda: None)
    with pytest.raises(mx.AgentError):
        await output.text
    assert painter.follower.snapshot.status == "failed"
    assert painter.texts[-1] == "a"


@in_loop
async def test_stop_leaves_the_run_alone() -> None:
    output = mx.MastraModelOutput(slowly(*[delta("x") for _ in range(50)], FINISH))
    painter = Painter(output)
    painter.follower.start(before=lambda: None)
    await asyncio.sleep(0.02)
    painter.follower.stop()
    count = len(painter.times)
    assert await output.text == "x" * 50
    assert len(painter.times) == count
    assert painter.follower.note == "no longer watched"


@in_loop
async def test_dispose_ends_it() -> None:
    output = mx.MastraModelOutput(slowly(*[delta("x") for _ in range(1_000)]))
    painter = Painter(output)
    painter.follower.start(before=lambda: None)
    await asyncio.sleep(0.02)
    output.dispose()
    assert painter.follower.is_over
    assert isinstance(painter.follower.error, mx.StreamDisposed)


@in_loop
async def test_a_source_that_fails_is_shown() -> None:
    async def failing() -> AsyncIterator[Chunk]:
        yield delta("a")
        raise ConnectionError("hung up")

    output = mx.MastraModelOutput(failing())
    painter = Painter(output)
    painter.follower.start(before=lambda: None)
    await output.get_full_output()
    assert isinstance(painter.follower.error, mx.SourceError)


def test_without_a_loop_the_run_goes_on_a_thread_of_our_own() -> None:
    output = mx.MastraModelOutput(slowly(delta("a"), FINISH))
    painter = Painter(output)
    painter.follower.start(before=lambda: None)
    assert output.text.run() == "a"
    assert painter.texts[-1] == "a"


# ---- a real kernel ---------------------------------------------------------------------------------------------------

SETUP = """
import asyncio, threading, time
import mastra_rx as mx
from IPython import get_ipython

def delta(text):
    return {"type": "text-delta", "payload": {"id": "t1", "text": text}}

FINISH = {"type": "finish", "payload": {"stepResult": {"reason": "stop"}}}

async def slowly(count, seconds=0.002):
    for _ in range(count):
        await asyncio.sleep(seconds)
        yield delta("x")
    yield FINISH

published = []
publish = get_ipython().display_pub.publish
def counted(*args, **kwargs):
    published.append(time.monotonic())
    return publish(*args, **kwargs)
get_ipython().display_pub.publish = counted
"""


def run_notebook(*cells: str) -> list[Any]:
    """The outputs of each cell, as a notebook saved now would have them."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    sources = [textwrap.dedent(cell).strip() for cell in (SETUP, *cells)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    return [cell.outputs for cell in notebook.cells[1:]]


def html_of(outputs: Any) -> str:
    displays = [output for output in outputs if "text/html" in output.get("data", {})]
    assert len(displays) == 1, outputs
    return body(displays[0]["data"]["text/html"])


def printed(outputs: Any) -> str:
    return "".join(output.get("text", "") for output in outputs if output["output_type"] == "stream")


def test_a_cell_is_live_while_the_next_cells_run() -> None:
    watched, meanwhile, end, rate = run_notebook(
        """
        output = mx.MastraModelOutput(slowly(400))
        mx.jupyter.watch(output)
        """,
        """
        early = output.status
        for _ in range(3):
            await asyncio.sleep(0.05)
        print(early, output.status)
        """,
        "print(len(await output.text))",
        "print(len(published), max(sum(1 for t in published if s <= t < s + 1) for s in published))",
    )
    assert "✓ finished" in html_of(watched)
    assert "x" * 400 in html_of(watched)
    assert "x" * 400 in watched[0]["data"]["text/plain"]
    assert printed(meanwhile).split() == ["running", "running"]
    assert printed(end).strip() == "400"
    count, in_a_second = map(int, printed(rate).split())
    assert 5 < count < 60
    assert in_a_second <= 24  # 20 a second, the first picture and the end


def test_dispose_stop_failure_and_showing_again() -> None:
    disposed, stopped, failed, again, at_once, stepping = run_notebook(
        """
        output = mx.MastraModelOutput(slowly(10_000))
        mx.jupyter.watch(output)
        await asyncio.sleep(0.2)
        output.dispose()
        count = len(published)
        await asyncio.sleep(0.2)
        assert len(published) == count
        """,
        """
        output = mx.MastraModelOutput(slowly(100))
        cell = mx.jupyter.watch(output)
        await asyncio.sleep(0.1)
        cell.stop()
        count = len(published)
        assert len(await output.text) == 100
        assert len(published) == count
        """,
        """
        async def failing():
            yield delta("half")
            raise ConnectionError("hung up")
        output = mx.MastraModelOutput(failing())
        watching = mx.jupyter.watch(output)
        await output.get_full_output()
        watching
        """,
        "watching",
        "mx.jupyter.watch(mx.MastraModelOutput([delta('there already'), FINISH]))",
        """
        def blocking():
            for _ in range(10):
                time.sleep(0.03)
                yield delta("y")
            yield FINISH
        output = mx.MastraModelOutput(blocking())
        mx.jupyter.watch(output)
        print(output.status)
        await output.text
        """,
    )
    assert "■ disposed" in html_of(disposed)
    assert "no longer watched" in html_of(stopped)
    assert "half" in html_of(failed)
    assert "hung up" in html_of(failed)
    assert html_of(again) == html_of(failed)
    assert "there already" in html_of(at_once)
    assert "✓ finished" in html_of(at_once)
    assert printed(stepping).strip() == "running"
    assert "y" * 10 in html_of(stepping)


def test_a_cell_that_blocks_the_kernel_does_not_stop_the_picture() -> None:
    _, watched, told = run_notebook(
        """
        from reactivex.subject import Subject
        wire = Subject()
        def work():
            for _ in range(50):
                time.sleep(0.01)
                wire.on_next(delta("z"))
            wire.on_next(FINISH)
            wire.on_completed()
        """,
        """
        output = mx.MastraModelOutput(wire)
        mx.jupyter.watch(output)
        threading.Thread(target=work).start()
        count = len(published)
        time.sleep(0.3)
        print(len(published) - count)
        """,
        "time.sleep(0.5)\nprint(output.status)",
    )
    assert int(printed(watched)) >= 3
    assert "z" * 50 in html_of(watched)
    assert printed(told).strip() == "success"


def test_panel_pauses_and_scrubs() -> None:
    pytest.importorskip("anywidget")
    shown, scrubbed = run_notebook(
        """
        output = mx.MastraModelOutput(slowly(100))
        panel = mx.jupyter.panel(output)
        panel
        """,
        """
        await asyncio.sleep(0.1)
        panel.following = False
        held, at = panel.html, panel.position
        await output.text
        await asyncio.sleep(0.1)
        assert panel.html == held and panel.position == at and panel.count > at + 10 and panel.over
        panel.position = 2
        print(panel.html.count(">xxx</div>"), panel.label.split(",")[0])
        panel.following = True
        assert panel.position == panel.count - 1 and "finished" in panel.html and "x" * 100 in panel.html
        """,
    )
    assert "application/vnd.jupyter.widget-view+json" in shown[0]["data"]
    assert "mxc-head" in shown[0]["data"]["text/html"]
    assert printed(scrubbed).strip() == "1 change 3 of 101"


# ---- the extra -------------------------------------------------------------------------------------------------------


def in_fresh_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "missing"), [("watch", "IPython"), ("panel", "anywidget")])
def test_without_the_extra_the_error_names_it(name: str, missing: str) -> None:
    told = in_fresh_python(
        f"""
        import sys

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "{missing}":
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

        sys.meta_path.insert(0, Missing())
        import mastra_rx as mx
        output = mx.MastraModelOutput([])
        try:
            mx.jupyter.{name}(output)
        except ModuleNotFoundError as error:
            print(error)
        """
    )
    assert told.strip() == f'mx.jupyter.{name} needs {missing}: pip install "mastra-rx[jupyter]"'


def test_naming_the_module_imports_nothing_of_the_extra() -> None:
    told = in_fresh_python(
        """
        import sys
        import mastra_rx as mx
        mx.jupyter.watch, mx.jupyter.panel
        print([name for name in ("IPython", "anywidget", "ipywidgets", "traitlets") if name in sys.modules])
        """
    )
    assert told.strip() == "[]"


def test_the_panel_s_files_are_in_the_package() -> None:
    folder = Path(mx.jupyter.__file__).parent
    assert {"panel.js", "panel.css", "style.css"} <= {path.name for path in folder.iterdir()}


def test_in_a_terminal_the_run_is_shown_once_when_it_has_ended() -> None:
    told = in_fresh_python(
        """
        import mastra_rx as mx, time
        output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools")))
        cell = mx.jupyter.watch(output)
        output.text.run()
        time.sleep(0.2)
        """
    )
    assert told.splitlines() == [
        "finished · 2 steps · 51 tokens",
        '[weather: done] {"city": "Tokyo"} -> {"city": "Tokyo", "tempC": 21.5}',
        "It is 21.5 degrees.",
    ]
