"""The command line: what a pipe and what a terminal gets, and with which exit code it ends."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner, Result

import mastra_rx as mx
from mastra_rx import cli
from mastra_rx import operators as ops
from mastra_rx.cli import show
from mastra_rx.cli.app import app
from mastra_rx.cli.terminal import wrapped

from .conftest import Recording

COMMAND = str(Path(sys.executable).with_name("mastra-rx"))
RECORDED = {name: mx.recording(name).read_bytes() for name in ("text", "reasoning", "tools", "object")}
TOOLS = """\
call weather {"city": "Tokyo"}
tool weather → {"city": "Tokyo", "tempC": 21.5}
step 2
It is 21.5 degrees.
✓ stop · 2 steps · 1 tool call · 51 tokens (40 in, 11 out) · mock-model-1
"""
ENV = {**os.environ, "COLUMNS": "40", "LINES": "30", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}


def run(*args: str | Path, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([COMMAND, *map(str, args)], input=stdin, capture_output=True, env=ENV | env, timeout=20)


def invoke(*args: str | Path, stdin: bytes = b"") -> Result:
    """The same in this process: for what does not hang on there being a process."""
    return CliRunner().invoke(app, [*map(str, args)], input=stdin)


def chunk(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "runId": "r", "from": "AGENT", "payload": payload}


def text(*pieces: str) -> list[dict[str, Any]]:
    return [chunk("text-start", id="t"), *(chunk("text-delta", id="t", text=piece) for piece in pieces)]


FINISH = chunk("finish", stepResult={"reason": "stop"}, output={}, metadata={})


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(data: bytes | list[dict[str, Any]], name: str = "run.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(
            data
            if isinstance(data, bytes)
            else b"".join(json.dumps(c, separators=(",", ":")).encode() + b"\n" for c in data)
        )
        return path

    return write


def lines_of(data: bytes) -> list[str]:
    return data.decode().splitlines()


# ---- a terminal, emulated --------------------------------------------------------------------------------------------

SEQUENCE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


class Emulated:
    """A terminal that knows what a live display sends, with an endless scrollback; `rows` is what it shows."""

    def __init__(self) -> None:
        self.rows = [""]
        self.shows_cursor = True
        self._row = self._column = 0

    def feed(self, data: str) -> None:
        for argument, command, home, down, characters in SEQUENCE.findall(data):
            if characters:
                row = self.rows[self._row].ljust(self._column)
                self._put(row[: self._column] + characters + row[self._column + len(characters) :])
                self._column += len(characters)
            elif home:
                self._column = 0
            elif down:
                self._row, self._column = self._row + 1, 0
                self.rows += [""] * (self._row + 1 - len(self.rows))
            elif command == "A":
                self._row -= int(argument or 1)
                assert self._row >= 0
            elif command == "K":
                self._put("")
            elif command in "hl" and argument == "?25":
                self.shows_cursor = command == "h"
            else:
                assert command == "m", (argument, command)

    def _put(self, row: str) -> None:
        self.rows[self._row] = row

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows).strip("\n")


def shown(source: Any, *, live: bool, width: int = 40) -> str:
    """What `play` leaves on a terminal, or writes to a pipe."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=live, width=width, height=30, color_system=None, highlight=False)
    show.play(mx.from_chunks(source), console)
    if not live:
        return file.getvalue()
    screen = Emulated()
    screen.feed(file.getvalue())
    assert screen.shows_cursor
    return screen.text


def dense(value: str) -> str:
    return "".join(value.split())


# ---- without the extra -----------------------------------------------------------------------------------------------


def test_the_library_does_not_import_what_only_the_command_line_needs() -> None:
    code = "import sys, mastra_rx; print([m for m in ('typer', 'rich', 'click', 'mastra_rx.cli') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_without_the_extra_one_line_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == "rich" else object())
    with pytest.raises(SystemExit, match=r'^mastra-rx: the command line needs rich: pip install "mastra-rx\[cli\]"$'):
        cli.main()


# ---- play, piped -----------------------------------------------------------------------------------------------------


def test_play_without_argument_plays_a_bundled_recording_as_plain_text() -> None:
    done = run("play", "--speed", "100", FORCE_COLOR="1")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, TOOLS, b"")


def test_play_shows_reasoning_and_text() -> None:
    assert shown(RECORDED["reasoning"].splitlines(), live=False).splitlines() == [
        "(reasoning) First, think.",
        "(reasoning) Then check.",
        "Answer.",
        "✓ stop · 1 step · 40 tokens (10 in, 30 out, 18 reasoning) · mock-model-1",
    ]


def test_play_shows_the_object_instead_of_its_text() -> None:
    *object, end = shown(RECORDED["object"].splitlines(), live=False).splitlines()
    assert json.loads("\n".join(object)) == mx.MastraModelOutput(mx.from_jsonl(mx.recording("object"))).object.run()
    assert end.startswith("✓ stop")


@pytest.mark.parametrize("framing", ["sse", "record-separator", "jsonl"])
def test_play_detects_the_framing_of_files_and_of_standard_input(framing: str, file: Any) -> None:
    lines = RECORDED["tools"].splitlines()
    data = {
        "sse": b"".join(b"data: " + line + b"\n\n" for line in lines) + b"data: [DONE]\n\n",
        "record-separator": b"".join(line + b"\x1e" for line in lines),
        "jsonl": RECORDED["tools"],
    }[framing]
    assert invoke("play", file(data, "run.bin")).stdout == TOOLS
    assert run("play", "-", stdin=data).stdout.decode() == TOOLS


def test_standard_input_is_shown_as_it_comes() -> None:
    with subprocess.Popen([COMMAND, "play", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in RECORDED["text"].splitlines()[:4]:  # up to the first piece of text
            process.stdin.write(line + b"\n")
        process.stdin.flush()
        assert os.read(process.stdout.fileno(), 100) == b"Hello"
        process.stdin.close()
        process.stdout.read()


def test_the_recorded_rhythm_is_kept_and_scaled(file: Any) -> None:
    path = file([{**c, "recordedAt": 1000 + 200 * i} for i, c in enumerate([*text("a", "b"), FINISH])])
    took: list[float] = []
    for speed in ("1", "100"):
        start = time.monotonic()
        assert invoke("play", path, "--speed", speed).stdout == "ab\n✓ stop\n"
        took.append(time.monotonic() - start)
    assert took[0] - took[1] > 0.3


# ---- how it ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["play", "views"])
def test_a_broken_file_is_told_in_one_line_after_what_came(command: str, file: Any) -> None:
    path = file(b"".join(RECORDED["text"].splitlines(keepends=True)[:4]) + b'{"type": oops}\n')
    done = run(command, path)
    assert done.returncode == 2
    assert "Hello" in done.stdout.decode()
    (line,) = lines_of(done.stderr)
    assert line.startswith(f"mastra-rx: {path}: line 5: not JSON")
    assert "oops" in line


def test_a_file_that_is_nothing_we_know_is_told_with_its_first_line(file: Any) -> None:
    done = invoke("play", file(b"garbage\n"))
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "line 1" in done.stderr
    done = invoke("play", "-", stdin=b"garbage\n")
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_what_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    for what, why in (("nothing", "no such file, and the recordings are text, "), (tmp_path, "it is a directory")):
        done = invoke("play", what)
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"mastra-rx: cannot read {what}: {why}")


def test_a_failed_run_shows_its_error(file: Any) -> None:
    path = file([*text("Half"), chunk("error", error={"message": "Over\nloaded"}), FINISH])
    done = run("play", path)
    assert (done.returncode, done.stdout.decode()) == (1, "Half\n✗ failed\n")
    assert done.stderr == b"mastra-rx: Over loaded\n"
    done = invoke("views", path, "--json")
    assert (done.exit_code, json.loads(done.stdout)["error"]["message"]) == (1, "Over\nloaded")


def test_a_run_that_breaks_off_has_failed(file: Any) -> None:
    done = invoke("play", file(text("Half")))
    assert (done.exit_code, done.stdout) == (1, "Half\n✗ interrupted\n")
    assert done.stderr.splitlines() == ["mastra-rx: the source closed before the run was over: no `finish` chunk came"]


def test_a_suspended_run_has_not_failed() -> None:
    done = invoke("play", Recording("tool-approval").path)
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        ['call wire {"amount": 100}', "tool wire → waits for approval", "‖ suspended · 1 tool call"],
    )


def test_ctrl_c_ends_it_quietly() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([COMMAND, "play", "-"], stdin=pipe, stdout=pipe, stderr=pipe, env=ENV) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(RECORDED["text"].splitlines(keepends=True)[:4]))
        process.stdin.flush()
        os.read(process.stdout.fileno(), 100)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, out, err) == (130, b"\n", b"")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([COMMAND, "play", "text"], stdout=pipe, stderr=pipe, env=ENV) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_speed_of_nothing_is_refused() -> None:
    done = invoke("play", "--speed", "0")
    assert done.exit_code == 2
    assert "not above 0" in done.stderr


# ---- views, recordings -----------------------------------------------------------------------------------------------


def test_views_as_json_is_the_full_output_with_the_wires_names() -> None:
    full = mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools"))).get_full_output().run()
    assert json.loads(run("views", "tools", "--json").stdout) == mx.to_wire(full)


def test_views_is_a_summary() -> None:
    assert invoke("views", "tools").stdout.splitlines() == [
        "run         run-tool-one",
        "text        It is 21.5 degrees.",
        'tools       weather {"city": "Tokyo"} → {"city": "Tokyo", "tempC": 21.5}',
        "steps       1  tool-calls · 15 tokens (10 in, 5 out)",
        "            2  stop · 36 tokens (30 in, 6 out)",
        "ended       ✓ stop · 2 steps · 1 tool call · 51 tokens (40 in, 11 out) · mock-model-1",
    ]


def test_recordings_are_listed_with_what_they_show_and_their_size() -> None:
    rows = lines_of(run("recordings").stdout)
    assert [row.split()[0] for row in rows] == ["text", "reasoning", "tools", "object"]
    assert re.fullmatch(r"tools +a tool call, its result, and the answer: two steps +18 chunks", rows[2])


# ---- a terminal ------------------------------------------------------------------------------------------------------


def in_terminal(*args: str, interrupt_at: str | None = None) -> tuple[int, Emulated, list[str]]:
    """Run in a pseudo terminal: the exit code, the screen at the end, and the screen after each read."""
    pty = pytest.importorskip("pty")
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(COMMAND, [COMMAND, *args], ENV)
    screen, seen, came = Emulated(), [""], b""
    while True:
        try:
            data = os.read(fd, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        came += data
        with suppress(UnicodeDecodeError):  # cut inside a character, or below inside a sequence: the rest comes
            decoded = came.decode()
            if re.search(r"\x1b\[?[?\d;]*$", decoded) is None:
                came = b""
                screen.feed(decoded)
                seen.append(screen.text)
        if interrupt_at is not None and interrupt_at in screen.text:
            interrupt_at = None
            os.write(fd, b"\x03")
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), screen, seen


def test_a_terminal_shows_the_run_live_and_keeps_it() -> None:
    code, screen, seen = in_terminal("play", "tools", "--speed", "0.4")
    assert code == 0
    assert screen.shows_cursor
    assert screen.text.splitlines() == [
        '✓ weather {"city": "Tokyo"}',
        '  → {"city": "Tokyo", "tempC": 21.5}',
        "",
        "step 2",
        "",
        "It is 21.5 degrees.",
        "",
        "✓ stop · 2 steps · 1 tool call · 51",
        "tokens (40 in, 11 out) · mock-model-1",
    ]
    assert any('weather {"city"' in text and "Tokyo" not in text for text in seen), "arguments stream"
    assert any("writing" in text for text in seen)
    assert all(text.count("It is 21.5") <= 1 for text in seen)


def test_ctrl_c_gives_the_terminal_back() -> None:
    code, screen, _ = in_terminal("play", "object", interrupt_at='"nested"')
    assert code == 130
    assert screen.shows_cursor
    assert "Traceback" not in screen.text


def test_no_text_of_any_recording_is_lost(recording: Recording) -> None:
    screens = [dense(shown(recording.lines, live=live)) for live in (False, True)]
    assert not any("\x1b" in screen for screen in screens)
    if any(chunk["type"] == "object" for chunk in recording.wire):
        return
    # a piece is a chunk's at most; what stands between them is of other kinds
    for delta in mx.as_view(mx.from_chunks(recording.lines).pipe(ops.of_type("text-delta"))):
        if len(delta.text) < 30 and delta.text.isprintable():
            assert all(dense(delta.text) in screen for screen in screens)


def weather(call: str, *pieces: str) -> Iterator[dict[str, Any]]:
    yield chunk("tool-call-input-streaming-start", toolCallId=call, toolName="weather")
    for piece in pieces:
        yield chunk("tool-call-delta", toolCallId=call, argsTextDelta=piece)
    yield chunk("tool-call-input-streaming-end", toolCallId=call)


def test_what_settles_in_the_middle_of_a_sentence_waits_for_its_line() -> None:
    source = [
        *weather("1", '{"city":"Rome"}'),
        *text("Until it is there, "),
        chunk("tool-result", toolCallId="1", toolName="weather", result=21),
        chunk("source", id="s", sourceType="url", url="https://a.example"),
        chunk("text-delta", id="t", text="a joke.\nHa."),
        FINISH,
    ]
    assert dense(shown(source, live=True)) == dense(
        'Until it is there, a joke. ✓ weather {"city": "Rome"} → 21 source https://a.example Ha. ✓ stop · 1 tool call'
    )


def test_a_call_that_nothing_came_of_is_shown_in_the_end() -> None:
    source = [*weather("1", '{"a":1}'), *weather("2", '{"a":'), FINISH]
    rows = shown(source, live=True).splitlines()
    assert rows[:2] == ['? weather {"a": 1}', "  → no result"]
    assert rows[2].startswith("? weather")


@pytest.mark.parametrize("live", [False, True], ids=["plain", "terminal"])
def test_what_a_model_writes_does_not_steer_the_terminal(live: bool) -> None:
    assert shown([*text("a\x1b[2Jb\r\nc\x07"), FINISH], live=live).splitlines()[:2] == ["a␛[2Jb", "c␇"]


@pytest.mark.parametrize("live", [False, True], ids=["plain", "terminal"])
def test_text_beside_the_object_is_shown_too(live: bool) -> None:
    object = {"type": "object", "runId": "r", "from": "AGENT", "object": {"a": 1}}
    screen = shown([object, *text('{"a": 1} ', "and more"), {**object, "type": "object-result"}, FINISH], live=live)
    assert screen.count("and more") == 1
    assert screen.count('"a": 1') == 2


@given(st.text(st.sampled_from("ab 日😀é"), max_size=60), st.integers(2, 20))
def test_wrapping_loses_nothing_and_fits(line: str, width: int) -> None:
    rows = wrapped(line, width)
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")
    assert all(cell_len(row.rstrip(" ")) <= width for row in rows)


@settings(max_examples=50)
@given(st.lists(st.text(st.sampled_from("ab \n日"), max_size=12), max_size=12))
def test_text_cut_anywhere_looks_the_same(pieces: list[str]) -> None:
    cut = shown([*text(*pieces), FINISH], live=True, width=11)
    whole = shown([*text("".join(pieces)), FINISH], live=True, width=11)
    assert cut == whole


def test_a_timeline_is_not_written_over_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"type":"finish","payload":{}}\n')
    result = invoke("timeline", path, "-o", path)
    assert result.exit_code == 2
    assert path.read_bytes() == b'{"type":"finish","payload":{}}\n'


def test_python_runs_the_package_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "mastra_rx", "recordings"], capture_output=True, check=True)
    assert b"tools" in done.stdout


def test_a_timeline_shows_what_came_before_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"type":"start"}\n{"type":"text-d')
    result = invoke("timeline", path, "-o", tmp_path / "run.svg")
    assert result.exit_code == 2
    assert "line 2" in result.stderr
    assert (tmp_path / "run.svg").read_text().startswith("<svg")
