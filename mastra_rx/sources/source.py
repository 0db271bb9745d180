"""How a source runs: step by step where it is subscribed, or by itself on an event loop.

A source is cold: each subscription opens it anew. A `SharedStream` opens it once, asks for batches and drives the
steps; a plain subscriber is driven here.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler

from ..errors import MastraRxError, SourceError, StreamInterrupted
from ..shared_stream import Connection, Sink
from .loop import loop_here

if TYPE_CHECKING:
    from ..chunks import Chunk

T = TypeVar("T")

log = logging.getLogger("mastra_rx")


class Source(Observable["Chunk"]):
    """A cold Observable of chunks that can also be opened for batches."""

    def __init__(self, opener: Callable[[Sink[Chunk], abc.SchedulerBase | None], Connection]) -> None:
        super().__init__()
        self._opener = opener

    def open(self, sink: Sink[Chunk], scheduler: abc.SchedulerBase | None = None) -> Connection:
        return self._opener(sink, scheduler)

    def _subscribe_core(
        self, observer: abc.ObserverBase[Chunk], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        sink = _ObserverSink(observer)
        connection = self.open(sink, scheduler)

        def turn(scheduler: abc.SchedulerBase, _: Any = None) -> None:
            if not sink.stopped and connection.step():
                scheduler.schedule(turn)

        def close() -> None:
            sink.stopped = True
            connection.dispose()

        (scheduler or CurrentThreadScheduler.singleton()).schedule(turn)
        return Disposable(close)


class _ObserverSink(Generic[T]):
    """The sink of a plain subscriber: one `on_next` an item."""

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self._observer = observer
        self.stopped = False

    def push(self, items: Sequence[T]) -> None:
        for item in items:
            if self.stopped:
                return
            self._observer.on_next(item)

    def fail(self, error: Exception) -> None:
        if not self.stopped:
            self.stopped = True
            self._observer.on_error(error)

    def close(self) -> None:
        if not self.stopped:
            self.stopped = True
            self._observer.on_completed()


class Stepped(Generic[T]):
    """A connection that fetches a batch a step from a synchronous iterator."""

    def __init__(self, batches: Iterator[Sequence[T]], sink: Sink[T]) -> None:
        self._batches = batches
        self._sink = sink
        self._over = False

    def step(self) -> bool:
        if self._over:
            return False
        try:
            batch = next(self._batches)
        except StopIteration:
            self._over = True
            self._sink.close()
        except Exception as error:
            self._over = True
            self._sink.fail(source_error(error))
        else:
            if self._over:  # disposed by another thread, which could not close what was running here
                close_quietly(self._batches)
            elif batch:
                self._sink.push(batch)
        return not self._over

    def dispose(self) -> None:
        self._over = True
        close_quietly(self._batches)


class Running(Generic[T]):
    """A connection that reads an asynchronous iterator of batches on an event loop, by itself."""

    def __init__(self, batches: Callable[[], AsyncIterator[Sequence[T]]], sink: Sink[T]) -> None:
        self._batches = batches
        self._sink = sink
        self._loop = loop_here()
        self._disposed = self._closing = False
        self._task: asyncio.Task[None] | None = None
        if is_running_here(self._loop):
            self._start()
        else:
            self._loop.call_soon_threadsafe(self._start)

    def step(self) -> bool:
        return False

    def dispose(self) -> None:
        self._disposed = True
        if self._loop.is_closed():
            return
        if is_running_here(self._loop):
            self._cancel()
        else:
            self._loop.call_soon_threadsafe(self._cancel)

    def _start(self) -> None:
        if not self._disposed:
            self._task = self._loop.create_task(self._read(), name="mastra_rx source")

    def _cancel(self) -> None:
        """Not from inside the task, nor while it closes the source: that would cancel the source's own clean-up."""
        if self._task is not None and not self._closing and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _read(self) -> None:
        batches = None
        try:
            batches = self._batches()
            async for batch in batches:
                if batch and not self._disposed:
                    self._sink.push(batch)
                if self._disposed:
                    return
        except asyncio.CancelledError:
            if not self._disposed:
                self._sink.fail(StreamInterrupted("the event loop that read the source was stopped"))
            raise
        except Exception as error:
            self._sink.fail(source_error(error))
        else:
            self._sink.close()
        finally:
            self._closing = True
            await aclose_quietly(batches)


def source_error(error: Exception) -> Exception:
    """The error as users see it: one of ours as it is, any other as the cause of a `SourceError`."""
    if isinstance(error, MastraRxError):
        return error
    wrapped = SourceError(f"the source failed: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def close_quietly(thing: object) -> None:
    """Close an iterator, if it can be closed; that it fails is logged, and nobody's business."""
    close = getattr(thing, "close", None)
    if close is None:
        return
    if isinstance(thing, Generator) and _is_running(cast("Generator[Any, Any, Any]", thing)):
        return  # it is waiting for its source on another thread, or asked to be closed from within; it ends there
    try:
        close()
    except Exception:
        log.exception("closing the source failed")


def _is_running(generator: Generator[Any, Any, Any]) -> bool:
    return inspect.getgeneratorstate(generator) == inspect.GEN_RUNNING


async def aclose_quietly(thing: object) -> None:
    """The same for an asynchronous iterator."""
    aclose = getattr(thing, "aclose", None)
    if aclose is None:
        return
    try:
        await aclose()
    except Exception:
        log.exception("closing the source failed")


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
