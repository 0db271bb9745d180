"""Sub-streams: the chunks of a step, of a run, of a turn, each as a live stream of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from ..errors import MastraRxError, StreamDisposed
from ..shared_stream import Connection, SharedStream, Sink
from ..view import PullScheduler, View
from .operator import Emit, Operator

if TYPE_CHECKING:
    from ..chunks import Chunk


class ChunkGroup(View["Chunk"]):
    """The chunks that belong together: live, and from the first on whenever it is read."""

    def __init__(self, key: Any, name: str, pull: Pull) -> None:
        self._pull = pull
        self._stream: SharedStream[Chunk] = SharedStream(_FedFromOutside(pull))
        super().__init__(self._stream, name)
        self.key = key
        """What the chunks have in common."""

    @property
    def is_read(self) -> bool:
        """Whether somebody is reading it now."""
        return self._stream.is_read

    def pull(self) -> bool | None:
        """Fetch more of the run that it is part of, where a `for` loop of this thread stands still."""
        return self._pull()

    def push(self, chunk: Chunk) -> None:
        self._stream.push((chunk,))

    def end(self, error: Exception | None = None) -> None:
        if error is None:
            self._stream.close()
        else:
            self._stream.fail(error)


Pull = Callable[[], "bool | None"]
"""Fetches more of the run that the groups are made of; see `Connection.step`."""


def _pull_by(scheduler: abc.SchedulerBase | None) -> Pull:
    """Where a `for` loop pulls the run, its body can wait for a group: then the group does what the loop would do."""
    if not isinstance(scheduler, PullScheduler):
        return lambda: False
    thread = threading.get_ident()
    return lambda: threading.get_ident() == thread and (scheduler.run_due() or None)


class _FedFromOutside(Connection):
    """The source of a group, which has nothing of its own: what it is made of pushes."""

    def __init__(self, pull: Pull) -> None:
        self._pull = pull

    def open(self, sink: Sink[Any], scheduler: abc.SchedulerBase | None) -> Connection:
        return self

    def step(self) -> bool | None:
        return self._pull()

    def dispose(self) -> None:
        pass


class Grouping:
    """Puts chunks into groups. `emit` is called with each new group, before its first chunk."""

    def __init__(self, emit: Emit[ChunkGroup], name: str, pull: Pull) -> None:
        self._emit = emit
        self._name = name
        self._pull = pull
        self._open: dict[Any, ChunkGroup] = {}
        self._left = False

    @property
    def is_done(self) -> bool:
        """Whether nobody listens any more: neither for groups nor to one."""
        return self._left and not any(group.is_read for group in self._open.values())

    def leave(self) -> None:
        """Nobody listens for groups any more; those that are being read go on to their end."""
        self._left = True
        for key in [key for key, group in self._open.items() if not group.is_read]:
            self._open.pop(key).end(StreamDisposed("what gave this part of the run was disposed before its end"))

    def put(self, key: Any, chunk: Chunk) -> None:
        """Add to the group of that key; a new one is begun if none is open."""
        group = self._open.get(key)
        if group is None:
            if self._left:
                return
            group = self._open[key] = ChunkGroup(key, self._name, self._pull)
            self._emit(group)
        group.push(chunk)

    def close(self, key: Any) -> None:
        """The group is complete; the key may come again, as a new group."""
        group = self._open.pop(key, None)
        if group is not None:
            group.end()

    def close_all(self, error: Exception | None = None) -> None:
        for key in list(self._open):
            self._open.pop(key).end(error)


def grouping(name: str, feeding: Callable[[Grouping], Callable[[Chunk], Any]]) -> Operator[ChunkGroup]:
    """An operator of a function that makes, for each subscription, what puts chunks into groups."""

    def apply(source: Observable[Chunk]) -> Observable[ChunkGroup]:
        def subscribe(
            observer: abc.ObserverBase[ChunkGroup], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            groups = Grouping(observer.on_next, name, _pull_by(scheduler))
            feed = feeding(groups)
            subscription = SingleAssignmentDisposable()

            def leave() -> None:
                groups.leave()
                stop_if_done()

            def stop_if_done() -> None:
                if groups.is_done:
                    groups.leave()
                    subscription.dispose()

            def on_next(chunk: Chunk) -> None:
                try:
                    feed(chunk)
                except Exception as error:
                    fail(error)
                stop_if_done()

            def fail(error: Exception) -> None:
                groups.close_all(error if isinstance(error, MastraRxError) else None)
                observer.on_error(error)

            def complete() -> None:
                groups.close_all()
                observer.on_completed()

            subscription.disposable = source.subscribe(on_next, fail, complete, scheduler=scheduler)
            return Disposable(leave)

        return Observable(subscribe)

    return apply


def by_run() -> Operator[ChunkGroup]:
    """The chunks of each run as a live stream of its own; `key` is the run's id.

        --a1--a2--b1--a3--b2-|
        [      by_run()      ]
        --(a)-----(b)---------|
           --a1--a2----a3-----|
                   --b1----b2-|

    Chunks that name no run go to the run that came last.
    """

    def feeding(groups: Grouping) -> Callable[[Chunk], Any]:
        last: str | None = None

        def feed(chunk: Chunk) -> None:
            nonlocal last
            if chunk.run_id is not None:
                last = chunk.run_id
            groups.put(last, chunk)

        return feed

    return grouping("run", feeding)


def by_step() -> Operator[ChunkGroup]:
    """The chunks of each step as a live stream of its own; `key` counts the steps from 0.

        --start--step-start--text--step-finish--step-start--text--step-finish--finish-|
        [                                by_step()                                    ]
        ---------(0)----------------------------(1)-----------------------------------|

    A step lasts from `step-start` to `step-finish`; chunks outside of steps are in none.
    """

    def feeding(groups: Grouping) -> Callable[[Chunk], Any]:
        step, inside = -1, False

        def feed(chunk: Chunk) -> None:
            nonlocal step, inside
            if chunk.type == "step-start":
                groups.close(step)
                step, inside = step + 1, True
            if inside:
                groups.put(step, chunk)
            if chunk.type == "step-finish":
                inside = False
                groups.close(step)

        return feed

    return grouping("step", feeding)


def turns() -> Operator[ChunkGroup]:
    """The chunks of each turn of an until-idle run as a live stream of its own; `key` counts the turns from 0.

        --start--text--finish--background-task-completed--start--text--finish-|
        [                               turns()                               ]
        --(0)---------------------------------------------(1)-----------------|

    A turn begins with `start` and lasts until the next one: what tasks say in between belongs to the turn before.
    """

    def feeding(groups: Grouping) -> Callable[[Chunk], Any]:
        turn, begun = 0, False

        def feed(chunk: Chunk) -> None:
            nonlocal turn, begun
            if chunk.type == "start" and begun:
                groups.close(turn)
                turn += 1
            if chunk.type in ("start", "finish"):
                begun = True  # also where the turn before was suspended or broke off, without `finish`
            groups.put(turn, chunk)

        return feed

    return grouping("turn", feeding)
