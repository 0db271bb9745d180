"""Sub-streams: the chunks of a step, of a run, of a turn, each as a live stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from ..errors import MastraRxError
from ..shared_stream import SharedStream
from ..view import View
from .operator import Emit, Operator

if TYPE_CHECKING:
    from ..chunks import Chunk


class ChunkGroup(View["Chunk"]):
    """The chunks that belong together: live, and from the first on whenever it is read."""

    def __init__(self, key: Any, name: str) -> None:
        self._stream: SharedStream[Chunk] = SharedStream(_Silent())
        super().__init__(self._stream, name)
        self.key = key
        """What the chunks have in common."""

    def push(self, chunk: Chunk) -> None:
        self._stream.push((chunk,))

    def end(self, error: Exception | None = None) -> None:
        if error is None:
            self._stream.close()
        else:
            self._stream.fail(error)


class _Silent(Observable[Any]):
    """A source that only opens the stream: the group is fed from outside."""

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return Disposable()


class Grouping:
    """Puts chunks into groups. `emit` is called with each new group, before its first chunk."""

    def __init__(self, emit: Emit[ChunkGroup], name: str) -> None:
        self._emit = emit
        self._name = name
        self._open: dict[Any, ChunkGroup] = {}

    def put(self, key: Any, chunk: Chunk) -> None:
        """Add to the group of that key; a new one is begun if none is open."""
        group = self._open.get(key)
        if group is None:
            group = self._open[key] = ChunkGroup(key, self._name)
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
            groups = Grouping(observer.on_next, name)
            feed = feeding(groups)

            def on_next(chunk: Chunk) -> None:
                try:
                    feed(chunk)
                except Exception as error:
                    fail(error)

            def fail(error: Exception) -> None:
                groups.close_all(error if isinstance(error, MastraRxError) else None)
                observer.on_error(error)

            def complete() -> None:
                groups.close_all()
                observer.on_completed()

            return source.subscribe(on_next, fail, complete, scheduler=scheduler)

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
        turn, finished = 0, False

        def feed(chunk: Chunk) -> None:
            nonlocal turn, finished
            if chunk.type == "start" and finished:
                groups.close(turn)
                turn, finished = turn + 1, False
            groups.put(turn, chunk)
            if chunk.type == "finish":
                finished = True

        return feed

    return grouping("turn", feeding)
