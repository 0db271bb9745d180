"""Delivery on the thread of a user interface.

RxPY's schedulers for Tk and Qt start timers from whatever thread an item comes on, which those toolkits do not allow.
Here each toolkit's own safe way is used: a loop's `call_soon_threadsafe`, a posted Qt event, a queue that Tk polls on
its own thread.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable

T = TypeVar("T")

Policy = Literal["each", "latest"]
Wake = Callable[[Callable[[], None]], Any]
"""Something like `call_soon`: takes a function and calls it on the target's thread, soon."""

TK_POLL_MS = 16
"""How often Tk looks whether something came: once a frame."""


def deliver_on(target: Any, policy: Policy = "each") -> Callable[[Observable[T]], Observable[T]]:
    """Deliver on the thread of `target`: an asyncio loop, a Tk widget, a Qt object, or anything like `call_soon`.

        --a-b-c--------d-|                 (from any thread)
        [ deliver_on(root) ]
        ----a-b-c------d-|                 (on the target's thread)

    A burst wakes the target once. `each` delivers every value; `latest` only the newest there is when the target has
    time, and always the last. Nothing is delivered after the subscription is disposed, or after the window is gone.

    `target` may be

    - an asyncio event loop,
    - a Tk widget (subscribe on Tk's thread: it looks for news by `after`, which is all that Tk allows),
    - a Qt object, PySide6 or PyQt6 (its thread must run an event loop),
    - a callable that takes a function and calls it on the right thread: `app.call_soon`, `GLib.idle_add`, ...

    >>> import asyncio, threading, reactivex as rx
    >>> from mastra_rx import operators as ops
    >>> async def main():
    ...     seen = []
    ...     done = asyncio.Event()
    ...     loop = asyncio.get_running_loop()
    ...     source = rx.of(1, 2, 3).pipe(ops.deliver_on(loop))
    ...     threading.Thread(target=lambda: source.subscribe(seen.append, on_completed=done.set)).start()
    ...     await done.wait()
    ...     return seen
    >>> asyncio.run(main())
    [1, 2, 3]
    """
    if policy not in ("each", "latest"):
        raise ValueError(f'policy={policy!r}: it is "each" or "latest"')
    make_waker = _waker_for(target)

    def apply(source: Observable[T]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            delivery = _Delivery(observer, policy, make_waker)
            subscription = source.subscribe(delivery.put, delivery.fail, delivery.complete, scheduler=scheduler)

            def dispose() -> None:
                delivery.stop()
                subscription.dispose()

            return Disposable(dispose)

        return Observable(subscribe)

    return apply


class _Waker(Protocol):
    """Has `deliver` called on the target's thread."""

    def wake(self) -> None: ...

    def stop(self) -> None: ...


class _Delivery:
    """What came and was not delivered yet."""

    def __init__(
        self, observer: abc.ObserverBase[Any], policy: Policy, make_waker: Callable[[Callable[[], None]], _Waker]
    ) -> None:
        self._observer = observer
        self._values: deque[Any] = deque(maxlen=1 if policy == "latest" else None)
        self._end: Callable[[], None] | None = None
        self._mutex = threading.Lock()
        self._woken = False
        self._stopped = False
        self._waker = make_waker(self._deliver)

    def put(self, value: Any) -> None:
        self._values.append(value)
        self._wake()

    def fail(self, error: Exception) -> None:
        self._end = lambda: self._observer.on_error(error)
        self._wake()

    def complete(self) -> None:
        self._end = self._observer.on_completed
        self._wake()

    def stop(self) -> None:
        self._stopped = True
        self._values.clear()
        self._waker.stop()

    def _wake(self) -> None:
        with self._mutex:
            if self._woken or self._stopped:
                return
            self._woken = True
        try:
            self._waker.wake()
        except Exception:  # the loop is closed, the window is gone: nobody is there to be told
            self.stop()

    def _deliver(self) -> None:
        """On the target's thread: what is there now; what comes meanwhile wakes again."""
        with self._mutex:
            self._woken = False
        for _ in range(len(self._values)):
            if self._stopped:
                return
            try:
                value = self._values.popleft()
            except IndexError:  # a newer one took its place, under `latest`
                break
            self._observer.on_next(value)
        if self._end is not None and not self._values and not self._stopped:
            end, self._end = self._end, None
            self._waker.stop()
            self._stopped = True
            end()


class _CallSoon:
    """By a function like `call_soon`."""

    def __init__(self, call_soon: Wake, deliver: Callable[[], None]) -> None:
        self._call_soon = call_soon
        self._deliver = deliver

    def wake(self) -> None:
        self._call_soon(self._deliver)

    def stop(self) -> None:
        pass


class _Tk:
    """By a poll on Tk's own thread: Tk may not be called from another thread, not even to say that something came."""

    def __init__(self, widget: Any, deliver: Callable[[], None]) -> None:
        self._widget = widget
        self._deliver = deliver
        self._news = threading.Event()
        self._after: str | None = None
        self._stopped = False
        self._poll()

    def wake(self) -> None:
        self._news.set()

    def stop(self) -> None:
        """May be called from any thread: the poll sees it and ends."""
        self._stopped = True

    def _poll(self) -> None:
        if self._stopped or not self._exists():
            return
        if self._news.is_set():
            self._news.clear()
            self._deliver()
        if not self._stopped and self._exists():
            self._after = self._widget.after(TK_POLL_MS, self._poll)

    def _exists(self) -> bool:
        try:
            return bool(self._widget.winfo_exists())
        except Exception:  # Tk raises when the application is gone
            return False


def _waker_for(target: Any) -> Callable[[Callable[[], None]], _Waker]:
    if isinstance(target, asyncio.AbstractEventLoop):
        return lambda deliver: _CallSoon(target.call_soon_threadsafe, deliver)
    if hasattr(target, "winfo_exists") and hasattr(target, "after"):
        return lambda deliver: _Tk(target, deliver)
    if hasattr(target, "moveToThread") and hasattr(target, "thread"):
        return lambda deliver: _qt(target, deliver)
    if callable(target):
        return lambda deliver: _CallSoon(cast("Wake", target), deliver)
    raise TypeError(
        f"deliver_on({type(target).__name__}): give an asyncio loop, a Tk widget, a Qt object, "
        "or a function that takes a function and calls it on the right thread"
    )


def _qt(target: Any, deliver: Callable[[], None]) -> _Waker:
    """By an event posted to an object that lives on the target's thread."""
    core = _qt_core(target)
    kind = core.QEvent.Type(core.QEvent.registerEventType())

    class Receiver(core.QObject):
        def event(self, event: Any) -> bool:
            if event.type() != kind:
                return core.QObject.event(self, event)
            deliver()
            return True

    receiver = Receiver()
    receiver.moveToThread(target.thread())

    class Poster:
        def wake(self) -> None:
            core.QCoreApplication.postEvent(receiver, core.QEvent(kind))

        def stop(self) -> None:
            pass

    return Poster()


def _qt_core(target: Any) -> Any:
    """The QtCore of the binding that `target` comes from."""
    for cls in type(target).__mro__:
        package = cls.__module__.partition(".")[0]
        if package.startswith(("PySide", "PyQt")):
            return importlib.import_module(f"{package}.QtCore")
    raise TypeError(f"deliver_on({type(target).__name__}): a Qt object of PySide6 or PyQt6 was expected")
