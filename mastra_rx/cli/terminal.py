"""`Terminal`: a run, live.

what is complete        is printed, and stays
----------------------  below it, redrawn in place until it is complete:
the line that flows
calls that go on
the object that grows
what is going on
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ..operators.tool_runs import ToolRun
from . import words
from .screen import Flow, Kind

_STYLES: dict[str, str] = {"text": "", "reasoning": "dim italic", "inner": "dim"}
_FRAME = 0.05
_DOING = {"text": "writing", "reasoning": "thinking", "inner": "an inner run is writing"}


class Terminal:
    """A screen that redraws only what still changes, so that what flows never flickers and stays in the scrollback."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner = Spinner("dots")
        self._started = time.monotonic()
        self._below = _Below()
        self._live = Live(
            self._below,
            console=console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            vertical_overflow="crop",
        )
        # Drawing and printing exclude each other: a print that a drawing interrupts erases the wrong rows.
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._drawer = threading.Thread(target=self._draw, name="mastra_rx terminal", daemon=True)
        self._kind: str | None = None  # of what was shown last; None after a pause
        self._any = False
        self._blank = True  # the last row is blank
        self._tail = ""
        self._later: list[tuple[Kind, list[RenderableType]]] = []
        self._runs: dict[str, ToolRun] = {}
        self._object: Any = None
        self._growing = False
        self._doing = "waiting"

    def __enter__(self) -> Self:
        self._redraw()
        self._live.start()
        self._drawer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._drawer.join()
        self._close()
        self._live.stop()

    # ---- what flows --------------------------------------------------------------------------------------------------

    def flow(self, piece: str, kind: Flow) -> None:
        if not piece:
            return
        self._begin(kind)
        self._doing = _DOING[kind]
        *lines, rest = (self._tail + words.clean(piece)).split("\n")
        width = self._console.width
        if lines:
            self._tail = ""
            self._print_rows([row for line in lines for row in wrapped(line, width)])
            self._say_later()
            self._begin(kind)
        *rows, self._tail = wrapped(rest, width)
        self._print_rows(rows)
        self._redraw()

    def pause(self) -> None:
        if self._tail:
            rows, self._tail = [self._tail], ""
            self._print_rows(rows)
        self._kind = None
        self._say_later()
        self._redraw()

    # ---- what stands on lines ----------------------------------------------------------------------------------------

    def line(self, line: Text, kind: Kind) -> None:
        self._say(kind, [line])

    def run(self, run: ToolRun) -> None:
        if run.state in words.SETTLED:
            self._runs.pop(run.tool_call_id, None)
            self._doing = "waiting for tools" if self._runs else "waiting"
            self._say("tool", _settled(run))
        else:
            if run.tool_call_id not in self._runs:
                self._begin("tool")
            self._runs[run.tool_call_id] = run
            self._doing = "calling" if run.state == "input-streaming" else "waiting for tools"
        self._redraw()

    def object(self, value: Any) -> None:
        self._object, self._growing, self._doing = value, True, "writing the object"
        self._redraw()

    def settle_object(self, value: Any) -> None:
        self._object, self._growing = None, False
        self._say("object", [words.indented(value)])

    def end(self, line: Text) -> None:
        self._close()
        self._say("end", [line])

    def _close(self) -> None:
        """What is still below becomes part of what stays."""
        self.pause()
        runs, self._runs = list(self._runs.values()), {}
        for run in runs:
            self._say("tool", _settled(run))

    # ---- printing ----------------------------------------------------------------------------------------------------

    def _say(self, kind: Kind, rows: list[RenderableType]) -> None:
        """Print, but not in the middle of a sentence: then after its line."""
        if self._tail and kind != "end":
            self._later.append((kind, rows))
            return
        self._begin(kind)
        self._print(*rows)

    def _say_later(self) -> None:
        if self._later and not self._tail:
            later, self._later = self._later, []
            for kind, rows in later:
                self._say(kind, rows)

    def _begin(self, kind: str) -> None:
        if kind == self._kind:
            return
        if self._tail:
            rows, self._tail = [self._tail], ""
            self._print_rows(rows)
        if self._any and not self._blank:
            self._print(Text(""))
            self._blank = True
        self._kind = kind

    def _print_rows(self, rows: list[str]) -> None:
        kept: list[str] = []
        blank = self._blank
        for row in rows:
            if row.strip() or not blank:  # one blank row is enough
                kept.append(row)
            blank = not row.strip()
        if kept:
            self._print(Text("\n".join(kept), _STYLES.get(self._kind or "", "")))
            self._blank = blank

    def _print(self, *rows: RenderableType) -> None:
        self._redraw()  # first take it out of what is redrawn, so that it is never there twice
        with self._lock:
            for row in rows:
                self._console.print(row)
        self._any, self._blank = True, False

    def _draw(self) -> None:
        while not self._over.wait(_FRAME):
            with self._lock:
                self._live.refresh()

    def _redraw(self) -> None:
        self._below.region = _Region(
            Text(self._tail, _STYLES.get(self._kind or "", ""), no_wrap=True, overflow="crop"),
            tuple(self._runs.values()),
            self._object if self._growing else None,
            self._growing,
            self._doing,
            self._started,
            self._spinner,
        )


def wrapped(line: str, width: int) -> list[str]:
    """The rows that a line takes, broken at spaces where there are some; joined it is the line, less those spaces."""
    rows: list[str] = []
    while cell_len(line.rstrip(" ")) > width:
        fits = _fitting(line, width)
        space = line.rfind(" ", 0, fits + 1)
        if line[:space].strip() and space > 0:
            rows.append(line[:space].rstrip(" "))
            line = line[space + 1 :]
        else:
            rows.append(line[:fits])
            line = line[fits:]
    return [*rows, line]


def _fitting(line: str, width: int) -> int:
    """How many characters fit, at least one."""
    count = min(len(line), width)
    while count > 1 and cell_len(line[:count]) > width:
        count -= 1
    while count < len(line) and cell_len(line[: count + 1]) <= width:
        count += 1  # characters that take no room of their own
    return count


def _settled(run: ToolRun) -> list[RenderableType]:
    rows = Table.grid(padding=(0, 1))
    rows.add_row(Text(*words.call_mark(run)), words.call(run))
    outcome = words.outcome(run)
    if outcome is not None:
        rows.add_row("", outcome)
    return [rows]


class _Below:
    """What is drawn below: the region as of now, also in the midst of a print."""

    region: _Region | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if self.region is not None:
            yield self.region


@dataclass(frozen=True, slots=True)
class _Region:
    """What still changes. Drawn by another thread: it is never changed itself."""

    tail: Text
    runs: tuple[ToolRun, ...]
    object: Any
    is_growing: bool
    doing: str
    started: float
    spinner: Spinner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        room = max(1, options.size.height - 6)
        if self.tail.plain:
            yield self.tail
        for run in self.runs[-room:]:
            yield self._run(run, options.max_width)
        if self.is_growing:
            yield from words.indented(self.object).split("\n")[-room:]
        yield Text("")
        seconds = time.monotonic() - self.started
        yield Text.assemble(self._turning(), (f" {self.doing} · {seconds:.1f} s", "dim"), no_wrap=True)

    def _run(self, run: ToolRun, width: int) -> Text:
        is_moving = run.state in ("input-streaming", "input-available")
        mark = self._turning() if is_moving else Text(*words.call_mark(run))
        line = Text.assemble(mark, " ", words.call(run))
        told = words.progress(run) if run.state == "input-available" else ""
        outcome = Text(f"→ {told}", "dim") if told else words.outcome(run)
        if outcome is not None:
            line = Text.assemble(line, " ", outcome)
        if run.state == "input-streaming" and cell_len(line.plain) >= width:  # its end is what moves
            kept = max(10, width - len(run.tool_name or "") - 6)
            line = Text.assemble(mark, " ", (run.tool_name or "", "bold cyan"), " …", line.plain[-kept:])
        line.no_wrap, line.overflow = True, "ellipsis"
        return line

    def _turning(self) -> Text:
        frame = self.spinner.render(time.monotonic())
        return Text(frame.plain if isinstance(frame, Text) else "*", "cyan")
