"""`Plain`: a run as plain text, for pipes and files."""

from __future__ import annotations

from types import TracebackType
from typing import IO, Any, Self

from rich.text import Text

from ..operators.tool_runs import ToolRun
from . import words
from .screen import Flow, Kind


class Plain:
    """Text as it flows, everything else on lines. Written at once, never changed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._kind: str | None = None
        self._mid_line = False
        self._states: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not issubclass(kind, BrokenPipeError):
            self._end_line()

    def flow(self, piece: str, kind: Flow) -> None:
        if not piece:
            return
        if self._kind != kind:
            self._begin(kind)
            if kind == "reasoning":
                self._write("(reasoning) ")
        self._write(words.clean(piece))

    def pause(self) -> None:
        self._end_line()
        self._kind = None

    def line(self, line: Text, kind: Kind) -> None:
        self._begin(kind)
        self._write(f"{line.plain.rstrip()}\n")

    def run(self, run: ToolRun) -> None:
        before = self._states.get(run.tool_call_id)
        if run.state in (before, "input-streaming"):
            return
        self._states[run.tool_call_id] = run.state
        if before is None:
            self.line(Text.assemble("call ", words.call(run)), "tool")
        outcome = words.outcome(run)
        if outcome is not None:
            self.line(Text.assemble("tool ", run.tool_name or run.tool_call_id, " ", outcome), "tool")

    def object(self, value: Any) -> None:
        pass  # it is written once, when it is complete

    def settle_object(self, value: Any) -> None:
        self.line(words.indented(value), "object")

    def end(self, line: Text) -> None:
        self.line(line, "end")

    def _begin(self, kind: Flow | Kind) -> None:
        self._end_line()
        self._kind = kind

    def _end_line(self) -> None:
        if self._mid_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        self._mid_line = not text.endswith("\n")  # first: Ctrl-C may come at any time
        self._file.write(text)
        self._file.flush()
