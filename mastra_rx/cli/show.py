"""`play`: what of a run is shown, as it happens.

full_stream, tool_runs, object_stream, steps  ->  Screen
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import reactivex as rx
from reactivex import Observable
from reactivex import operators as rx_ops
from rich.console import Console

from .. import operators as ops
from ..errors import MastraRxError
from ..operators.full_output import FullOutput
from ..operators.steps import Step
from ..output import MastraModelOutput
from ..view import View, as_view
from . import words
from .plain import Plain
from .screen import Screen
from .terminal import Terminal

if TYPE_CHECKING:
    from ..chunks import Chunk

    Told = tuple[Callable[[Any], None], Any]


def play(observable: Observable[Chunk], console: Console) -> FullOutput[Any]:
    """Show a run while it comes; give everything it came to. A run that fails is shown until there, its error is in
    what is given.

    A terminal shows it live; anything else gets plain text. Leaving early (Ctrl-C) closes the source.
    """
    is_live = console.is_terminal and not console.is_dumb_terminal
    with MastraModelOutput(observable) as output, Terminal(console) if is_live else Plain(console.file) as screen:
        show = Show(screen)
        try:
            for tell, value in _told(output, show):
                tell(value)
        except MastraRxError:
            pass  # it is in the full output
        full = output.get_full_output().run()
        show.end(full)
    return full


def _told(output: MastraModelOutput[Any], show: Show) -> View[Told]:
    """Everything there is to say, in the order in which it came: what to call, and with what."""
    return as_view(
        rx.merge(
            output.object_stream.pipe(rx_ops.map(lambda value: (show.object, value))),
            output.tool_runs.pipe(rx_ops.map(lambda run: (show.screen.run, run))),
            output.full_stream.pipe(rx_ops.map(lambda chunk: (show.chunk, chunk))),
            output.full_stream.pipe(ops.steps(), rx_ops.map(lambda step: (show.step, step))),
        )
    )


class Show:
    """Says to a screen what happens."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._steps = 0
        self._came = False
        self._growing = False
        self._object: Any = None
        self._written = False  # text of this step is on the screen
        self._held: list[str] = []  # text that is the object, it seems: the object is shown, not its JSON
        self._handlers: dict[str, Callable[[Any], None]] = {
            "text-delta": lambda chunk: self._text(chunk.text),
            "text-end": lambda _: self._pause(),
            "reasoning-delta": lambda chunk: screen.flow(chunk.text, "reasoning"),
            "reasoning-end": lambda _: screen.pause(),
            "step-start": self._step_start,
            "object-result": self._object_result,
            "source": lambda chunk: screen.line(words.source(chunk), "source"),
            "file": lambda chunk: screen.line(words.file(chunk), "source"),
            "routing-agent-text-delta": self._inner,
            "workflow-step-output": lambda chunk: self._inner_chunk(chunk.payload.output),
        }

    def chunk(self, chunk: Chunk) -> None:
        """A chunk came."""
        self._came = True
        kind = chunk.type
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(chunk)
        elif "-execution-event-" in kind:
            self._inner_chunk(getattr(chunk, "payload", None))
        elif kind not in _QUIET:
            self.screen.line(words.note(chunk), "note")

    def object(self, value: Any) -> None:
        """The object has grown."""
        self._object, self._growing = value, True
        self.screen.object(value)

    def step(self, step: Step) -> None:
        """A step is complete."""
        self._release()
        self._written = False
        rejected = words.rejected(step)
        if rejected is not None:
            self.screen.line(rejected, "note")

    def end(self, full: FullOutput[Any]) -> None:
        """The run is over."""
        if self._growing:
            self._settle(self._object)
        self._release()
        self.screen.pause()
        if self._came:
            self.screen.end(words.ending(full))

    def _step_start(self, _: Chunk) -> None:
        self._steps += 1
        if self._steps > 1:
            self.screen.line(words.step(self._steps), "step")

    # ---- text and object ---------------------------------------------------------------------------------------------

    def _text(self, text: str) -> None:
        if self._growing and not self._written:
            self._held.append(text)
        else:
            self._written = self._written or bool(text.strip())
            self.screen.flow(text, "text")

    def _pause(self) -> None:
        if not self._held:
            self.screen.pause()

    def _object_result(self, chunk: Any) -> None:
        self._object = chunk.object
        self._settle(chunk.object)

    def _settle(self, value: Any) -> None:
        self._growing = False
        self.screen.settle_object(value)

    def _release(self) -> None:
        """Text that turned out to be more than the JSON of the object is shown after all."""
        text, self._held = "".join(self._held), []
        if text and not _is_json_of(text, self._object):
            self.screen.flow(text, "text")

    # ---- inner runs --------------------------------------------------------------------------------------------------

    def _inner(self, chunk: Any) -> None:
        self.screen.flow(str(getattr(chunk.payload, "text", "") or ""), "inner")

    def _inner_chunk(self, chunk: Any) -> None:
        text = words.inner_text(cast("dict[str, Any]", chunk)) if isinstance(chunk, dict) else ""
        if text:
            self.screen.flow(text, "inner")


def _is_json_of(text: str, value: Any) -> bool:
    try:
        return json.loads(text) == value
    except ValueError:
        return False


_QUIET = frozenset(
    {
        *("start", "finish", "step-finish", "text-start", "reasoning-start", "reasoning-signature", "object"),
        *("tool-call-input-streaming-start", "tool-call-delta", "tool-call-input-streaming-end", "tool-call"),
        *("tool-call-approval", "tool-call-suspended", "tool-result", "tool-error", "tool-output"),
        *("tool-output-denied", "error", "tripwire", "abort", "raw", "watch", "response-metadata", "step-output"),
        *("background-task-started", "background-task-running", "background-task-output"),
        *("background-task-completed", "background-task-failed", "background-task-cancelled"),
        *("routing-agent-text-start", "network-object", "workflow-step-progress"),
    }
)
"""Chunks that are shown as part of something else, or that say nothing to somebody who watches."""
