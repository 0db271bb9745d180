"""`until_idle`: turn after turn, until no background task is running."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from reactivex import Observable

from ..operators.background_tasks import ENDED, BackgroundTask, BackgroundTaskReducer
from ..view import View
from .iterables import from_chunks
from .source import Running, Source, aclose_quietly

if TYPE_CHECKING:
    from ..chunks import Chunk
    from .iterables import Chunks

    Continue = Callable[[Sequence[BackgroundTask]], Chunks | Awaitable[Chunks | None] | None]

log = logging.getLogger("mastra_rx")


def until_idle(
    turn: Chunks,
    continue_with: Continue,
    *,
    tasks: Chunks | None = None,
    max_idle: float | None = 300.0,
    continue_on_suspend: bool = False,
) -> Observable[Chunk]:
    """A source that plays a turn, waits for the background tasks it started, and plays the turns that follow.

    When no turn is in progress and no task is running, `continue_with` is called once with the tasks that ended since
    the last time; it gives the next turn's source (or an awaitable of it), or None to stop. The stream ends when
    nothing runs and nothing ended. `tasks` is the task manager's stream: without it only what the turns themselves say
    of tasks is known. `max_idle` is how many seconds to wait between turns without any chunk; then the stream ends, the
    tasks go on. Where `tasks` fails while a task runs, so does the stream. A suspended task is not waited for;
    `continue_on_suspend` says whether it triggers a turn (the reference says no, Mastra 1.71.0 does).

        turn        --start--started(k)--finish-|
        tasks       ------------------------------completed(k)---
        [                    until_idle(turn, next)             ]
        --start--started(k)--finish---------------completed(k)--start--...--finish-|

    A task's second end is dropped. An output over it covers all turns; `output.turns` has each alone.
    """
    if max_idle is not None and not max_idle > 0:
        raise ValueError(f"max_idle={max_idle}: give a number of seconds above 0, or None to wait for ever")
    return Source(
        lambda sink, _: Running(
            lambda: _Idling(turn, continue_with, tasks, max_idle, continue_on_suspend).batches(), sink
        )
    )


class _Idling:
    """The turns and the tasks of one subscription."""

    def __init__(
        self,
        turn: Chunks,
        continue_with: Continue,
        tasks: Chunks | None,
        max_idle: float | None,
        continue_on_suspend: bool,
    ) -> None:
        self._turn: Chunks | None = turn
        self._continue_with = continue_with
        self._tasks = tasks
        self._max_idle = max_idle
        self._continue_on_suspend = continue_on_suspend
        self._known = BackgroundTaskReducer(lambda _: None)
        self._handlers = self._known.handlers()
        self._running: set[str] = set()
        self._finished: dict[str, BackgroundTask] = {}
        self._lost: Exception | None = None
        self._inbox: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def batches(self) -> AsyncIterator[Sequence[Chunk]]:
        readers: list[asyncio.Task[None]] = []
        manager = None if self._tasks is None else self._read("tasks", self._tasks, readers)
        try:
            while self._turn is not None:
                self._read("turn", self._turn, readers)
                self._turn = None
                async for chunk in self._until_quiet(manager):
                    yield [chunk]
                if self._finished and not self._running:
                    finished, self._finished = list(self._finished.values()), {}
                    self._turn = await self._next(finished)
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    async def _until_quiet(self, manager: asyncio.Task[None] | None) -> AsyncIterator[Chunk]:
        """The chunks until the turn is over and no task runs, or nothing can be heard of them any more."""
        in_turn, hears_tasks = True, manager is not None and not manager.done()
        while in_turn or (self._running and hears_tasks):
            try:
                timeout = None if in_turn else self._max_idle
                kind, what = await asyncio.wait_for(self._inbox.get(), timeout)
            except TimeoutError:
                log.info(
                    "no chunk for %s seconds while %d tasks run: the stream ends", self._max_idle, len(self._running)
                )
                return
            if kind == "chunk":
                if self._notice(what):
                    yield what
            elif kind == "turn":
                in_turn = False
                if what is not None:
                    raise what
            else:
                hears_tasks = False
                self._lost = what
                if what is not None:
                    log.warning("the stream of the task manager failed: %s", what)
        if self._running and self._lost is not None:  # how these tasks end will never be known
            raise self._lost

    def _notice(self, chunk: Chunk) -> bool:
        """Follow the tasks. False for the second end of a task, which nobody is to see."""
        handler = self._handlers.get(chunk.type)
        if handler is None:
            return True
        task_id = cast("Any", chunk).payload.task_id
        known = self._known.tasks.get(task_id)
        again = known is not None and known.is_over and chunk.type.removeprefix("background-task-") in ENDED
        handler(chunk)
        if again:
            return False
        task = self._known.tasks[task_id]
        if task.state in ("started", "running"):
            self._running.add(task_id)
            self._finished.pop(task_id, None)  # a suspended task that goes on before its turn
        elif known is None or known.state != task.state:  # what comes late brings no further turn
            self._running.discard(task_id)
            if task.is_over or self._continue_on_suspend:
                self._finished[task_id] = task
        return True

    async def _next(self, finished: list[BackgroundTask]) -> Chunks | None:
        turn = self._continue_with(finished)
        if isinstance(turn, Observable):
            return turn  # a view can be awaited too, but that gives its last chunk
        return await turn if inspect.isawaitable(turn) else turn

    def _read(self, kind: str, source: Chunks, readers: list[asyncio.Task[None]]) -> asyncio.Task[None]:
        async def read() -> None:
            chunks = None
            error: Exception | None = None
            try:
                chunks = View(from_chunks(source), kind).__aiter__()
                async for chunk in chunks:
                    self._inbox.put_nowait(("chunk", chunk))
            except Exception as failure:
                error = failure
            finally:
                await aclose_quietly(chunks)
            self._inbox.put_nowait((kind, error))

        task = asyncio.get_running_loop().create_task(read(), name=f"mastra_rx {kind}")
        readers.append(task)
        return task
