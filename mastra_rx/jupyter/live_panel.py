"""`panel`: a live cell with buttons, as an anywidget: pause, scrub through what came, open a tool call."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..operators.snapshots import Snapshot
from .extra import needed
from .live_cell import Follower
from .render import snapshot_html, snapshot_text

if TYPE_CHECKING:
    from ..output import MastraModelOutput

_HERE = Path(__file__).parent


def panel(output: MastraModelOutput[Any]) -> Any:
    """A widget that shows the run live and lets you go back in it; starts the run.

    As `watch`, and: *pause* holds the picture while the run goes on, the slider shows the run as it was after any of
    its changes, *live* goes on with the newest, and what was opened of a tool call stays open. `.stop()` stops
    following.

    Needs the `jupyter` extra. Keeps every snapshot of the run; they share what did not change.
    """
    anywidget: Any = needed("anywidget", "mx.jupyter.panel")
    traitlets: Any = needed("traitlets", "mx.jupyter.panel")

    class RunPanel(anywidget.AnyWidget):
        _esm = (_HERE / "panel.js").read_text("utf-8")
        _css = (_HERE / "panel.css").read_text("utf-8")
        html = traitlets.Unicode().tag(sync=True)
        label = traitlets.Unicode().tag(sync=True)
        count = traitlets.Int(0).tag(sync=True)
        position = traitlets.Int(0).tag(sync=True)
        following = traitlets.Bool(True).tag(sync=True)
        over = traitlets.Bool(False).tag(sync=True)

        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]  # the base is known at run time only
            self._history = _History()
            self._follower = Follower(output, self._paint, self._history.add)
            self.observe(self._asked, ["position", "following"])
            self._follower.start(before=self._paint)

        def stop(self) -> None:
            """Stop following; the run goes on."""
            self._follower.stop()

        def _asked(self, _: object) -> None:
            self._paint()

        def _paint(self) -> None:
            follower, history = self._follower, self._history
            with follower.lock:
                count = len(history)
                newest = self.following or self.position >= count - 1
                at = count - 1 if self.following else max(0, min(self.position, count - 1))
                snapshot = history[at] if count else follower.snapshot
                html = snapshot_html(
                    snapshot,
                    error=follower.error if newest else None,
                    live=not (newest and follower.is_over),
                    note=follower.note if newest else None,
                )
                with self.hold_sync():
                    self.count, self.over, self.html = count, follower.is_over, html
                    self.label = history.label(at)
                    if self.following:
                        self.position = max(0, at)

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            """The widget; where no widgets are shown, the run as it is now."""
            made: Any = anywidget.AnyWidget._repr_mimebundle_(self, **kwargs)
            bundle, metadata = cast("tuple[Any, Any]", made if isinstance(made, tuple) else (made, {}))
            follower = self._follower
            plain = snapshot_text(follower.snapshot, error=follower.error, note=follower.note)
            return {**(bundle or {}), "text/html": self.html, "text/plain": plain}, metadata

    return RunPanel()


class _History:
    """Every snapshot, and when it came."""

    def __init__(self) -> None:
        self._snapshots: list[Snapshot] = []
        self._times: list[float] = []
        self._began = time.monotonic()

    def add(self, snapshot: Snapshot) -> None:
        self._times.append(time.monotonic() - self._began)
        self._snapshots.append(snapshot)

    def __len__(self) -> int:
        return len(self._snapshots)

    def __getitem__(self, index: int) -> Snapshot:
        return self._snapshots[index]

    def label(self, index: int) -> str:
        """Where in the run that is."""
        if index < 0:
            return ""
        return f"change {index + 1:,} of {len(self):,}, after {self._times[index]:.2f} s"
