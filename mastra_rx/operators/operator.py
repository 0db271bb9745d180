"""What operators are made of: a closure on the way of the chunks, and a reduction that gives its result at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from reactivex import Observable, abc

if TYPE_CHECKING:
    from ..chunks import Chunk

T = TypeVar("T")
R = TypeVar("R")

Operator = Callable[["Observable[Chunk]"], Observable[T]]

Emit = Callable[[T], None]


def operator(
    feeding: Callable[[Emit[T]], Callable[[Chunk], Any]],
    at_end: Callable[[Any], Callable[[], Any]] | None = None,
    at_failure: Callable[[Any], Callable[[], Any]] | None = None,
) -> Operator[T]:
    """An operator of a function that makes, for each subscription, what is called with every chunk.

    `feeding(emit)` gives the function that takes a chunk and calls `emit` for each value it has to say; `at_end` gives,
    of that function, what is called when the stream is complete.
    """

    def apply(source: Observable[Chunk]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            feed = feeding(observer.on_next)
            finish = None if at_end is None else at_end(feed)

            def complete() -> None:
                if finish is not None:
                    try:
                        finish()
                    except Exception as error:
                        observer.on_error(error)
                        return
                observer.on_completed()

            def on_next(chunk: Chunk) -> None:
                try:
                    feed(chunk)
                except Exception as error:
                    observer.on_error(error)

            def fail(error: Exception) -> None:
                if at_failure is not None:
                    at_failure(feed)()
                observer.on_error(error)

            return source.subscribe(on_next, fail, complete, scheduler=scheduler)

        return Observable(subscribe)

    return apply


class Reducer:
    """Takes chunks one by one; `handlers` names the function for each chunk type it cares for."""

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        raise NotImplementedError


class PassingReducer(Reducer):
    """A reducer that stands in a stream: what it is fed goes on to the readers."""

    def __init__(self) -> None:
        self.run_id: str | None = None
        self._handlers = self.handlers()

    def feed(self, chunk: Chunk) -> Chunk:
        """Take a chunk, and pass it on."""
        if self.run_id is None:
            self.run_id = chunk.run_id
        handler = self._handlers.get(chunk.type)
        if handler is not None:
            handler(chunk)
        return chunk


def reduction(make: Callable[[], R], result: Callable[[R], T]) -> Operator[T]:
    """An operator that feeds a reducer and gives its result when the stream is complete."""

    def apply(source: Observable[Chunk]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            reducer: Any = make()
            handlers: dict[str, Callable[[Chunk], Any]] = reducer.handlers()

            def on_next(chunk: Chunk) -> None:
                handler = handlers.get(chunk.type)
                if handler is not None:
                    try:
                        handler(chunk)
                    except Exception as error:
                        observer.on_error(error)

            def complete() -> None:
                try:
                    value = result(reducer)
                except Exception as error:
                    observer.on_error(error)
                    return
                observer.on_next(value)
                observer.on_completed()

            return source.subscribe(on_next, observer.on_error, complete, scheduler=scheduler)

        return Observable(subscribe)

    return apply
