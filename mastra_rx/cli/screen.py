"""`Screen`: what a run is shown on."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, Protocol, Self

from rich.text import Text

from ..operators.tool_runs import ToolRun

Flow = Literal["text", "reasoning", "inner"]
"""What flows: the answer, the reasoning, and the text of inner runs."""

Kind = Literal["step", "source", "note", "tool", "object", "end"]
"""What stands on lines of its own; different kinds are set apart."""


class Screen(Protocol):
    """Takes what happens, in the order in which it happens. Nothing it was given gets lost when it is closed."""

    def flow(self, piece: str, kind: Flow) -> None:
        """A piece of text."""
        ...

    def pause(self) -> None:
        """The text that flows is complete."""
        ...

    def line(self, line: Text, kind: Kind) -> None:
        """Something for a line of its own."""
        ...

    def run(self, run: ToolRun) -> None:
        """The new state of a tool call."""
        ...

    def object(self, value: Any) -> None:
        """The object, as far as it has grown."""
        ...

    def settle_object(self, value: Any) -> None:
        """The object, complete."""
        ...

    def end(self, line: Text) -> None:
        """How it ended."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
