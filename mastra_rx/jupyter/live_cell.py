"""`watch`: a live cell.

The run is reduced where its chunks come; a thread of our own paints what is newest, at most 20 times a second, so that
a cell that blocks the kernel does not stop the picture. How the run ended is painted at once, before whoever waits for
a value goes on: a notebook that is saved then has it.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any

from reactivex import abc
from reactivex.disposable import SerialDisposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler

from ..operators.snapshots import Snapshot
from ..sources.loop import background_loop
from .extra import needed
from .render import snapshot_html, snapshot_text

if TYPE_CHECKING:
    from ..output import MastraModelOutput

INTERVAL = 0.05
"""Seconds between two paintings, at least."""

_AT_ONCE = 0.1  # seconds for which a source that need not be waited for is read on the spot


def watch(output: MastraModelOutput[Any]) -> Watch:
    """Show the run in this cell, live, while the next cells run; starts it.

    The cell shows text, reasoning, each tool call with its state and result, the object, sources, files and data, the
    step, the tokens, and how the run ended or why it failed; it stays in the saved notebook as it was last. It is
    painted at most 20 times a second and stops with the run, with `output.dispose()`, or with `.stop()` of what is
    returned, which leaves the run alone. Displayed again in another cell, that shows the same picture there too.

    An asynchronous source runs on the notebook's loop, a synchronous one takes turns there. In a terminal, where
    nothing can be painted over, the run is shown once, as text, when it has ended.
    """
    needed("IPython", "mx.jupyter.watch")
    watched = Watch(output)
    watched.start()
    return watched


class Watch:
    """A live cell. `.stop()` ends it; displayed again, in another cell, it shows the same picture there too."""

    def __init__(self, output: MastraModelOutput[Any]) -> None:
        self._follower = Follower(output, self._paint)
        self._shell: Any = needed("IPython", "mx.jupyter.watch").get_ipython()
        self._display_id = f"mastra-rx-{uuid.uuid4().hex}"
        self._is_live = hasattr(self._shell, "kernel")
        self._shown_in: int | None = None
        self._painted: str | None = None

    def start(self) -> None:
        """Subscribe, and show what is there already."""
        self._follower.start(before=self._show)

    def stop(self) -> None:
        """Stop painting; the run goes on."""
        self._follower.stop()

    def _show(self) -> None:
        self._shown_in = None if self._shell is None else self._shell.execution_count
        if self._is_live:
            self._publish(self._repr_html_(), update=False)

    def _paint(self) -> None:
        if not self._is_live and not self._follower.is_over:
            return
        html = self._repr_html_()
        if html != self._painted:
            self._publish(html, update=self._is_live)

    def _publish(self, html: str, *, update: bool) -> None:
        self._painted = html
        if self._shell is None:
            print(self._text())
        else:
            data = {"text/plain": self._text(), "text/html": html}
            self._shell.display_pub.publish(data, {}, transient={"display_id": self._display_id}, update=update)

    def _text(self) -> str:
        follower = self._follower
        return snapshot_text(follower.snapshot, error=follower.error, note=follower.note)

    def _repr_html_(self) -> str:
        follower = self._follower
        return snapshot_html(follower.snapshot, error=follower.error, live=not follower.is_over, note=follower.note)

    def _ipython_display_(self) -> None:
        """In the cell that made it, it is there already; in another cell the picture is shown again."""
        if self._shell is None or self._shell.execution_count == self._shown_in:
            return
        with self._follower.lock:
            if self._is_live:
                self._show()
            else:
                print(self._text())

    def __repr__(self) -> str:
        return f"<Watch {self._follower.snapshot.status}>"


class Follower:
    """Keeps the newest snapshot of a run, and has it painted in measure."""

    def __init__(
        self,
        output: MastraModelOutput[Any],
        paint: Callable[[], None],
        seen: Callable[[Snapshot], None] | None = None,
    ) -> None:
        if not hasattr(output, "snapshots"):
            raise TypeError(
                f"watch and panel follow a MastraModelOutput, not a {type(output).__name__}; "
                "end the cell with that one itself: it shows itself as a timeline"
            )
        self.snapshot = Snapshot()
        self.error: Exception | None = None
        self.note: str | None = None
        self.is_over = False
        self.lock = threading.RLock()
        self._output = output
        self._paint = paint
        self._seen = seen
        self._subscription = SerialDisposable()
        self._loop = background_loop()
        self._asked = False
        self._not_before = 0.0

    def start(self, before: Callable[[], None]) -> None:
        """Subscribe. `before` is called when there is something to be painted over, before anything is."""
        before()
        loop = _running_loop()
        if loop is None:
            self._loop.call_soon_threadsafe(lambda: self._subscribe(_Turns(self._loop)))
        else:
            self._subscribe(_Turns(loop))

    def stop(self) -> None:
        """Follow no more, and say so."""
        with self.lock:
            if self.is_over:
                return
            self._subscription.dispose()
            self.note = "no longer watched"
            self._end()

    def _subscribe(self, scheduler: abc.SchedulerBase) -> None:
        self._subscription.disposable = self._output.snapshots.subscribe(
            self._next, self._fail, self._complete, scheduler=scheduler
        )

    def _next(self, snapshot: Snapshot) -> None:
        turned = snapshot.status != self.snapshot.status
        self.snapshot = snapshot
        if self._seen is not None:
            self._seen(snapshot)
        if turned:  # values may be settled with this very chunk
            Context().run(self._paint_now)
        elif not self._asked:
            self._asked = True
            self._loop.call_soon_threadsafe(self._paint_soon, context=Context())

    def _fail(self, error: Exception) -> None:
        with self.lock:
            self.error = error
            self._end()

    def _complete(self) -> None:
        with self.lock:
            self.error = self._output.error
            self._end()

    def _end(self) -> None:
        """The end is painted here and now, before those who wait for a value go on."""
        if not self.is_over:
            self.is_over = True
            Context().run(self._paint)

    # ---- on the thread that paints. An empty context: the picture belongs to no cell, so it is sent with the one that
    # runs now, the only one whose messages those who run notebooks (nbclient) look at

    def _paint_soon(self) -> None:
        delay = self._not_before - time.monotonic()
        self._loop.call_later(max(0.0, delay), self._paint_now, context=Context())

    def _paint_now(self) -> None:
        with self.lock:
            self._asked = False
            if self.is_over:
                return
            began = time.monotonic()
            self._paint()
            took = time.monotonic() - began
            self._not_before = began + max(INTERVAL, 5 * took)


class _Turns(AsyncIOScheduler):
    """Gives a synchronous source its turns: on the spot for a moment, so that one that is there already is shown whole
    when the cell ends; then on the loop, between all else that runs there."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._until = time.monotonic() + _AT_ONCE

    def schedule(self, action: abc.ScheduledAction[Any], state: Any = None) -> abc.DisposableBase:
        if time.monotonic() >= self._until:
            return super().schedule(action, state)

        def act(_: abc.SchedulerBase, state: Any = None) -> abc.DisposableBase | None:
            return action(self, state)

        return CurrentThreadScheduler.singleton().schedule(act, state)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
