"""What every view says at each chunk, as changes: small, and folded again by the page.

Text, reasoning, streaming arguments and partial objects are not here: the page takes them from the chunks themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..chunks import to_wire
from ..operators.run import RunReducer
from ..operators.tool_runs import ToolRun, ToolRunReducer

if TYPE_CHECKING:
    from ..chunks import Chunk

Change = tuple[int, dict[str, Any]]
"""The chunk's index, and what is new since it came."""

_UNCHANGED = frozenset({"text-delta", "reasoning-delta", "tool-call-delta", "tool-output", "raw", "object"})
"""Types of chunks that change none of the values here."""


class States:
    """Follows a run: `run` for its values, `tools` for each call."""

    def __init__(self) -> None:
        self.run: list[Change] = []
        self.tools: list[tuple[int, str, dict[str, Any]]] = []
        self._at = 0
        self._last: dict[str, Any] = {}
        self._last_runs: dict[str, ToolRun] = {}
        self._reducer = RunReducer(include_raw=True)
        self._handlers = ToolRunReducer(self._changed).handlers()
        self._text_from = 0

    def feed(self, at: int, chunk: Chunk) -> None:
        """Take the chunk at index `at`."""
        self._at = at
        self._reducer.feed(chunk)
        if chunk.type in _UNCHANGED and chunk.type != "tool-call-delta" and at:
            return
        handler = self._handlers.get(chunk.type)
        if handler is not None:
            handler(chunk)
        if chunk.type in _UNCHANGED and at:
            return
        if chunk.type == "goal" and chunk.payload.should_continue is True:
            self._text_from = at
        now = self._values()
        new = {key: value for key, value in now.items() if key not in self._last or self._last[key] != value}
        if new:
            self.run.append((at, new))
        self._last = now

    def _values(self) -> dict[str, Any]:
        run = self._reducer
        tripwire = run.tripwire
        return {
            "status": run.status,
            "finishReason": run.finish_reason,
            "usage": to_wire(run.usage.usage),
            "steps": len(run.parts.steps),
            "error": None if run.failure is None else str(run.failure),
            "tripwire": None if tripwire is None else tripwire.reason,
            "textFrom": self._text_from,
        }

    def _changed(self, run: ToolRun) -> None:
        known = self._last_runs.get(run.tool_call_id)
        self._last_runs[run.tool_call_id] = run
        streams = run.state == "input-streaming"
        if known is not None and streams and known.state == run.state and known.tool_name == run.tool_name:
            return
        new: dict[str, Any] = {"state": run.state, "name": run.tool_name}
        if not streams and (known is None or known.input is not run.input):
            new["args"] = to_wire(run.args)
        if run.result is not None and (known is None or known.result is not run.result):
            new["result"] = to_wire(run.result)
        if run.error is not None:
            new["error"] = str(run.error)
        if run.task_id is not None:
            new["task"] = run.task_id
        self.tools.append((self._at, run.tool_call_id, new))


def states_of(chunks: Iterable[Chunk]) -> States:
    """The changes of a whole run."""
    states = States()
    for at, chunk in enumerate(chunks):
        states.feed(at, chunk)
    return states
