"""A single request as a view: sent at the first subscribe or await, and again at each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from ..sources.source import Running
from ..view import View
from .http import Call, Http

T = TypeVar("T")


def call_view(http: Http, call: Call, name: str, project: Callable[[Any], T] = lambda answer: answer) -> View[T]:
    """A view of the JSON answer to a call."""

    async def answers() -> AsyncIterator[list[Any]]:
        yield [project(await http.json(call))]

    def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        running = Running(answers, _Sink(observer))
        return Disposable(running.dispose)

    return View(Observable(subscribe), name)


class _Sink:
    def __init__(self, observer: abc.ObserverBase[Any]) -> None:
        self._observer = observer

    def push(self, items: Any) -> None:
        for item in items:
            self._observer.on_next(item)

    def fail(self, error: Exception) -> None:
        self._observer.on_error(error)

    def close(self) -> None:
        self._observer.on_completed()
