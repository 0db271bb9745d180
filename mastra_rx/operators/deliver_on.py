"""Delivery on the thread of a user interface.

RxPY's schedulers for Tk and Qt start timers from whatever thread an item comes on, which those toolkits do not allow.
Here each toolkit's own safe way is used: a loop's `call_soon_threadsafe`, a posted Qt event, a queue that Tk polls on
its own thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, Literal, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

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

    A source that blocks and is subscribed on the target's own thread blocks that: put
    `rxops.subscribe_on(NewThreadScheduler())` before this operator.

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
            delivery.subscription.disposable = source.subscribe(
                delivery.put, delivery.fail, delivery.complete, scheduler=scheduler
            )
            return Disposable(delivery.stop)

        return Observable(subscribe)

    return apply


class _Waker(Protocol):
    """Has `deliver` called on the target's thread."""

    def wake(self) -> None: ...

    def is_gone(self) -> bool:
        """Whether the target will never have a turn again, as far as that can be seen from any thread."""
        ...

    def stop(self) -> None: ...


class _Delivery:
    """What came and was not delivered yet."""

    def __init__(
        self, observer: abc.ObserverBase[Any], policy: Policy, make_waker: Callable[[_Delivery], _Waker]
    ) -> None:
        self._observer = observer
        self._values: deque[Any] = deque(maxlen=1 if policy == "latest" else None)
        self._end: Callable[[], None] | None = None
        self._mutex = threading.Lock()
        self._woken = False
        self._stopped = False
        self.subscription = SingleAssignmentDisposable()
        self._waker = make_waker(self)

    def put(self, value: Any) -> None:
        if self._stopped:
            return
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
        self.subscription.dispose()

    def _wake(self) -> None:
        with self._mutex:
            if self._stopped:
                return
            woken, self._woken = self._woken, True
        if woken:
            if self._waker.is_gone():  # it ended before it had its turn
                self.stop()
            return
        try:
            self._waker.wake()
        except Exception:  # the loop is closed, the window is gone: nobody is there to be told
            self.stop()

    def deliver(self) -> None:
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
            try:
                self._observer.on_next(value)
            except BaseException:  # the toolkit reports it; who raised gets nothing more
                self.stop()
                raise
        if self._end is not None and not self._values and not self._stopped:
            end, self._end = self._end, None
            self._waker.stop()
            self._stopped = True
            end()


class _CallSoon:
    """By a function like `call_soon`."""

    def __init__(self, call_soon: Wake, delivery: _Delivery, is_gone: Callable[[], bool] = lambda: False) -> None:
        self._call_soon = call_soon
        self.is_gone = is_gone
        self._delivery = delivery

    def wake(self) -> None:
        self._call_soon(self._delivery.deliver)

    def stop(self) -> None:
        pass


class _Tk:
    """By a poll on Tk's own thread: Tk may not be called from another thread, not even to say that something came."""

    def __init__(self, widget: Any, delivery: _Delivery) -> None:
        self._widget = widget
        self._delivery = delivery
        self._news = threading.Event()
        self._after: str | None = None
        self._stopped = False
        self._ends = _ends_of(widget)
        self._ends.add(self._gone)
        self._poll()

    def wake(self) -> None:
        self._news.set()

    def is_gone(self) -> bool:
        return False  # it says so itself

    def stop(self) -> None:
        """May be called from any thread: the poll sees it and ends."""
        self._stopped = True
        self._ends.discard(self._gone)

    def _poll(self) -> None:
        self._after = None
        if self._news.is_set():
            self._news.clear()
            self._delivery.deliver()
        if not self._stopped:
            self._after = self._widget.after(TK_POLL_MS, self._poll)

    def _gone(self) -> None:
        """The widget is being destroyed, on Tk's thread."""
        if self._after is not None:
            self._widget.after_cancel(self._after)  # it would call a command that is no more
        self._delivery.stop()


_ENDS: WeakKeyDictionary[Any, set[Callable[[], None]]] = WeakKeyDictionary()


def _ends_of(widget: Any) -> set[Callable[[], None]]:
    """What is called when the widget is destroyed. One binding a widget: Tk can't take back a single one."""
    ends = _ENDS.get(widget)
    if ends is None:
        ends = set[Callable[[], None]]()

        def destroyed(event: Any) -> None:
            if str(event.widget) == path:  # a window hears of its parts too
                for end in tuple(ends):
                    end()

        path = str(widget)
        try:
            widget.bind("<Destroy>", destroyed, add="+")
        except RuntimeError as error:  # "main thread is not in main loop"
            raise RuntimeError("deliver_on(Tk): subscribe on Tk's thread, or while its main loop runs") from error
        _ENDS[widget] = ends
    return ends


def _waker_for(target: Any) -> Callable[[_Delivery], _Waker]:
    if isinstance(target, asyncio.AbstractEventLoop):
        return lambda delivery: _CallSoon(
            partial(target.call_soon_threadsafe, context=contextvars.copy_context()), delivery, target.is_closed
        )
    if hasattr(target, "winfo_exists") and hasattr(target, "after"):
        return lambda delivery: _Tk(target, delivery)
    if hasattr(target, "moveToThread") and hasattr(target, "thread"):
        return lambda delivery: _Qt(target, delivery)
    if callable(target):
        return lambda delivery: _CallSoon(cast("Wake", target), delivery)
    raise TypeError(
        f"deliver_on({type(target).__name__}): give an asyncio loop, a Tk widget, a Qt object, "
        "or a function that takes a function and calls it on the right thread"
    )


class _Qt:
    """By an event posted to an object that lives on the target's thread."""

    def __init__(self, target: Any, delivery: _Delivery) -> None:
        self._core = _qt_core(target)
        self._kind, receiver = _qt_receiver(self._core)
        self._target = target
        self._delivery = delivery
        self._receiver = receiver(self._receive)
        self._receiver.moveToThread(target.thread())

    def wake(self) -> None:
        if self.is_gone():
            raise RuntimeError("the application is gone")
        self._core.QCoreApplication.postEvent(self._receiver, self._core.QEvent(self._kind))

    def stop(self) -> None:
        with suppress(RuntimeError):  # it is deleted already
            self._receiver.deleteLater()

    def is_gone(self) -> bool:
        return self._core.QCoreApplication.instance() is None

    def _receive(self) -> None:
        try:
            self._target.thread()
        except RuntimeError:  # what both bindings raise when the C++ object is deleted
            self._delivery.stop()
        else:
            self._delivery.deliver()


@cache
def _qt_receiver(core: Any) -> tuple[Any, Any]:
    """The type of event, of which there are not many, and the class of what receives it."""
    kind = core.QEvent.Type(core.QEvent.registerEventType())

    class Receiver(core.QObject):
        def __init__(self, receive: Callable[[], None]) -> None:
            core.QObject.__init__(self)
            self._receive = receive

        def event(self, event: Any) -> bool:
            if event.type() != kind:
                return core.QObject.event(self, event)
            self._receive()
            return True

    return kind, Receiver


def _qt_core(target: Any) -> Any:
    """The QtCore of the binding that `target` comes from."""
    for cls in type(target).__mro__:
        package = cls.__module__.partition(".")[0]
        if package.startswith(("PySide", "PyQt")):
            return importlib.import_module(f"{package}.QtCore")
    raise TypeError(f"deliver_on({type(target).__name__}): a Qt object of PySide6 or PyQt6 was expected")
