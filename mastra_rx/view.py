"""`View`: an Observable that can also be awaited, async-iterated and iterated.

    view.subscribe(print)               callbacks, as any Observable
    value = await view                  asyncio: the last value
    async for value in view: ...        asyncio: each value
    value = view.run()                  blocking: the last value
    for value in view: ...              blocking: each value
    view.latest(), view.batches(0.1)    other ways to pull, in both kinds of `for`

RxPY's Observable leaves gaps here, which this closes: `await` of an Observable that another thread feeds waits for the
loop's next timer, `for x in observable` never ends, and an `async for` that is left early never unsubscribes.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.scheduler.scheduler import Scheduler
from reactivex.typing import AbsoluteTime, RelativeTime

from .errors import BlockingCallError, NoValueError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

log = logging.getLogger("mastra_rx")

_BURST = 64  # values an `async for` hands over before it lets the loop run others


class View(Observable[T_co], Generic[T_co]):
    """An Observable with every way to consume it.

    Reading, printing or passing a view around has no effect; it subscribes at the first `subscribe`, `await` or
    iteration. Each use is a subscription of its own.
    """

    def __init__(self, source: Observable[T_co], name: str = "view") -> None:
        super().__init__()
        self._source_view = source
        self._name = name

    def __repr__(self) -> str:
        return f"<View {self._name}>"

    # ---- callbacks ---------------------------------------------------------------------------------------------------

    def subscribe(  # type: ignore[override]  # RxPY types the callbacks of a subclass invariantly
        self,
        on_next: abc.ObserverBase[Any] | Callable[[Any], Any] | None = None,
        on_error: Callable[[Exception], Any] | None = None,
        on_completed: Callable[[], Any] | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Call `on_next` with each value, then `on_error` or `on_completed` once.

        An observer may be given instead of callbacks. A callback that raises is detached and its exception goes to its
        own `on_error`, or to the log where it has none; nobody else notices. Dispose what is returned to unsubscribe.
        """
        observer = on_next
        if observer is not None and hasattr(observer, "on_next"):
            observer = cast("abc.ObserverBase[Any]", observer)
            on_next, on_error, on_completed = observer.on_next, observer.on_error, observer.on_completed
        guard = _Guard(cast("Callable[[Any], Any] | None", on_next), on_error, on_completed, self._name)
        if getattr(self._source_view, "isolates_faults", False):
            guard.on_next = guard.unguarded  # the source catches what it raises, and takes nothing after the end
        guard.subscribe(self._source_view, scheduler)
        return guard

    def _subscribe_core(
        self, observer: abc.ObserverBase[T_co], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return self.subscribe(observer, scheduler=scheduler)

    # ---- asyncio -----------------------------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, T_co]:
        """The last value, when the view is complete; `NoValueError` where there was none."""
        return self._last().__await__()

    async def _last(self) -> T_co:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T_co] = loop.create_future()
        last = _Last[T_co](self._name)

        def settle() -> None:
            if done.done():
                return
            error = last.error
            if error is not None:
                done.set_exception(_fresh(error))
            else:
                done.set_result(last.value)

        def finish() -> None:
            _call_on(loop, settle)

        subscription = self.subscribe(last.put, last.fail(finish), last.complete(finish), scheduler=_on(loop))
        try:
            return await done
        finally:
            subscription.dispose()

    def __aiter__(self) -> AsyncIterator[T_co]:
        """Each value. Leaving the loop early unsubscribes; the run goes on."""
        return _AsyncPull(self, _Each[T_co]())

    # ---- blocking ----------------------------------------------------------------------------------------------------

    def run(self) -> T_co:  # type: ignore[override]  # RxPY's takes a scheduler
        """The last value, waited for here; `NoValueError` where there was none.

        Raises `BlockingCallError` inside a running event loop: `await` the view there.
        """
        _refuse_in_loop(f"{self._name}.run()", f"await ...{self._name}")
        last = _Last[T_co](self._name)
        for value in _Pull(self, _Each[T_co]()):
            last.put(value)
        if last.empty:
            raise last.nothing()
        return last.value

    def __iter__(self) -> Iterator[T_co]:
        """Each value, waited for here. Leaving the loop early unsubscribes; the run goes on when somebody asks again.

        Raises `BlockingCallError` inside a running event loop: use `async for` there.
        """
        _refuse_in_loop(f"for ... in {self._name}", f"async for ... in {self._name}")
        return _Pull(self, _Each[T_co]())

    # ---- other ways to pull ------------------------------------------------------------------------------------------

    def latest(self) -> Pulled[T_co]:
        """Only the newest value, whenever asked: for painting a screen.

        For `for` and `async for`. Each turn waits until there is a value that was not given yet, and gives the newest;
        those in between are dropped. The last value before the end is always given.
        """
        return Pulled(self, _Newest[T_co], f"{self._name}.latest()")

    def batches(self, seconds: float) -> Pulled[list[T_co]]:
        """Lists of what came, one every `seconds` at most, none empty: for writing to a slow place.

        For `for` and `async for`. The last list before the end comes at once.
        """
        if seconds < 0:
            raise ValueError(f"batches({seconds}): give a number of seconds, 0 or more")
        return Pulled(self, lambda: _Batch[T_co](seconds), f"{self._name}.batches()")


def as_view(observable: Observable[T], name: str = "view") -> View[T]:
    """Make a `View` of any Observable, for example of a pipeline composed from views.

    >>> import reactivex as rx
    >>> from mastra_rx import as_view
    >>> list(as_view(rx.of(1, 2, 3)))
    [1, 2, 3]
    """
    return observable if isinstance(observable, View) else View(observable, name)


class Pulled(Generic[T_co]):
    """What `latest()` and `batches()` give: something for `for` and `async for`."""

    def __init__(self, view: View[Any], make_box: Callable[[], _Box[Any, T_co]], name: str) -> None:
        self._view = view
        self._make_box = make_box
        self._name = name

    def __iter__(self) -> Iterator[T_co]:
        _refuse_in_loop(f"for ... in {self._name}", f"async for ... in {self._name}")
        return _Pull(self._view, self._make_box())

    def __aiter__(self) -> AsyncIterator[T_co]:
        return _AsyncPull(self._view, self._make_box())

    def __repr__(self) -> str:
        return f"<{self._name}>"


class _Guard(Disposable):
    """One subscription: keeps to the Rx grammar, and a callback that raises to itself."""

    hears_faults = True

    def __init__(
        self,
        on_next: Callable[[Any], Any] | None,
        on_error: Callable[[Exception], Any] | None,
        on_completed: Callable[[], Any] | None,
        name: str,
    ) -> None:
        super().__init__()
        self.unguarded: Callable[[Any], Any] = on_next or _ignore
        self._error = on_error
        self._completed = on_completed
        self._name = name
        self._stopped = False
        self._subscription = SingleAssignmentDisposable()

    def subscribe(self, source: Observable[Any], scheduler: abc.SchedulerBase | None) -> None:
        """Subscribe in RxPY's trampoline, as its own `subscribe` does, so that a stream can let in several at once."""

        def set_subscription(_: abc.SchedulerBase | None = None, __: Any = None) -> None:
            try:
                self._subscription.disposable = source._subscribe_core(cast("Any", self), scheduler)
            except BlockingCallError:
                raise
            except Exception as error:
                self.on_error(error)

        trampoline = CurrentThreadScheduler.singleton()
        if trampoline.schedule_required():
            trampoline.schedule(set_subscription)
        else:
            set_subscription()

    def on_next(self, value: Any, /) -> None:
        if not self._stopped:
            try:
                self.unguarded(value)
            except Exception as error:
                self._fault(error)

    def on_error(self, error: Exception) -> None:
        if self._stopped:
            return
        self.dispose()
        if self._error is None:
            log.error("%s failed and its subscriber has no on_error: %s", self._name, error, exc_info=error)
        else:
            self._tell(self._error, error)

    def on_completed(self) -> None:
        if self._stopped:
            return
        self.dispose()
        if self._completed is not None:
            self._tell(self._completed)

    def dispose(self) -> None:
        self._stopped = True
        self._subscription.dispose()

    def _fault(self, error: Exception) -> None:
        self.dispose()
        if self._error is None:
            log.error("a subscriber of %s raised and was detached", self._name, exc_info=error)
        else:
            self._tell(self._error, error)

    def _tell(self, callback: Callable[..., Any], *args: Any) -> None:
        try:
            callback(*args)
        except Exception:
            log.exception("a subscriber of %s raised at its end", self._name)


class _Last(Generic[T]):
    """The last value that came."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values: list[T] = []
        self._error: Exception | None = None

    def put(self, value: T) -> None:
        self._values[:] = (value,)

    def fail(self, then: Callable[[], None]) -> Callable[[Exception], None]:
        def on_error(error: Exception) -> None:
            self._error = error
            then()

        return on_error

    def complete(self, then: Callable[[], None]) -> Callable[[], None]:
        return then

    @property
    def empty(self) -> bool:
        return not self._values

    @property
    def value(self) -> T:
        return self._values[0]

    @property
    def error(self) -> Exception | None:
        if self._error is None and not self._values:
            return self.nothing()
        return self._error

    def nothing(self) -> NoValueError:
        return NoValueError(f"{self._name} ended without a value; iterate it instead of asking for its last value")


# ---- boxes: what waits between the stream and the one who pulls ------------------------------------------------------


class _Box(Generic[T, T_co]):
    """Holds what came and was not taken yet. `wake` is called when there is something new to see."""

    def __init__(self) -> None:
        self._values: deque[T] = deque()
        self._lock = threading.Lock()
        self.ended = False
        self.error: Exception | None = None
        self.wake: Callable[[], None] = _nothing

    def put(self, value: T) -> None:
        self._values.append(value)
        self.wake()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.complete()

    def complete(self) -> None:
        self.ended = True
        self.wake()

    @property
    def ready_in(self) -> float | None:
        """Seconds until something can be taken: 0 is now, None is not yet known."""
        return 0.0 if self._values else None

    def take(self) -> T_co:
        raise NotImplementedError


class _Each(_Box[T, T]):
    def take(self) -> T:
        return self._values.popleft()


class _Newest(_Box[T, T]):
    def __init__(self) -> None:
        super().__init__()
        self._values = deque(maxlen=1)

    def take(self) -> T:
        return self._values.pop()


class _Batch(_Box[T, list[T]]):
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._given = float("-inf")

    @property
    def ready_in(self) -> float | None:
        if not self._values:
            return None
        return 0.0 if self.ended else max(0.0, self._given + self._seconds - time.monotonic())

    def take(self) -> list[T]:
        self._given = time.monotonic()
        values = self._values
        return [values.popleft() for _ in range(len(values))]


class _AsyncPull(AsyncIterator[T_co]):
    """The iterator of `async for`. Dropping it (a `break` does) unsubscribes."""

    def __init__(self, view: View[Any], box: _Box[Any, T_co]) -> None:
        self._view = view
        self._box = box
        self._subscription: abc.DisposableBase | None = None
        self._waker: _Waker | None = None
        self._burst = 0

    async def __anext__(self) -> T_co:
        box = self._box
        waker = self._waker or self._subscribe()
        if self._burst >= _BURST:
            self._burst = 0
            await asyncio.sleep(0)
        while box.ready_in != 0:
            self._burst = 0
            if box.ended:
                self._dispose()
                if box.error is not None:
                    raise _fresh(box.error)
                raise StopAsyncIteration
            await waker.wait(box)
        self._burst += 1
        return box.take()

    async def aclose(self) -> None:
        self._dispose()

    def _subscribe(self) -> _Waker:
        loop = asyncio.get_running_loop()
        box = self._box
        waker = self._waker = _Waker(loop)
        box.wake = waker.wake
        self._subscription = self._view.subscribe(box.put, box.fail, box.complete, scheduler=_on(loop))
        return waker

    def _dispose(self) -> None:
        if self._subscription is not None:
            self._subscription.dispose()

    def __del__(self) -> None:
        self._dispose()


class _Waker:
    """Wakes a coroutine from any thread, once a burst."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: asyncio.Future[None] | None = None

    def wake(self) -> None:
        waiting = self._waiting
        if waiting is not None:
            self._waiting = None
            _call_on(self._loop, lambda: None if waiting.done() else waiting.set_result(None))

    async def wait(self, box: _Box[Any, Any]) -> None:
        self._waiting = waiting = self._loop.create_future()
        delay = box.ready_in
        if delay == 0 or box.ended:  # it came between the last look and now
            self._waiting = None
        elif delay is None:
            await waiting
        else:
            await asyncio.wait({waiting}, timeout=delay)


class _Pull(Iterator[T_co]):
    """The iterator of `for`. It drives a source that runs where it is subscribed, one step at a time."""

    def __init__(self, view: View[Any], box: _Box[Any, T_co]) -> None:
        self._view = view
        self._box = box
        self._subscription: abc.DisposableBase | None = None
        self._turns = PullScheduler()

    def __next__(self) -> T_co:
        box, turns = self._box, self._turns
        if self._subscription is None:
            box.wake = turns.wake
            self._subscription = Disposable()
            self._subscription = self._view.subscribe(box.put, box.fail, box.complete, scheduler=turns)
        while (delay := box.ready_in) != 0:
            if box.ended:
                self.close()
                if box.error is not None:
                    raise _fresh(box.error)
                raise StopIteration
            turns.run_one(delay, lambda: box.ended or box.ready_in != delay)
        return box.take()

    def close(self) -> None:
        """Unsubscribe."""
        if self._subscription is not None:
            self._subscription.dispose()

    def __del__(self) -> None:
        self.close()


class PullScheduler(Scheduler):
    """Runs what is scheduled only when the one who pulls asks for it, on that thread."""

    blocks = True  # a stream refuses it inside its own callbacks, where waiting would never end

    def __init__(self) -> None:
        super().__init__()
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._changed = threading.Condition()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def run_one(self, timeout: float | None, awake: Callable[[], bool]) -> None:
        """Run the next action that is due; else wait until one is, somebody wakes, or the timeout is over."""
        if self.run_due():
            return
        with self._changed:
            if not awake():
                due = self._actions[0][0] - time.monotonic() if self._actions else None
                waits = [max(0.0, wait) for wait in (due, timeout) if wait is not None]
                self._changed.wait(min(waits, default=None))

    def run_due(self) -> bool:
        """Run the next action that is due, if one is."""
        with self._changed:
            if not self._actions or self._actions[0][0] > time.monotonic():
                return False
            action = heapq.heappop(self._actions)[2]
        action()
        return True

    def schedule(self, action: abc.ScheduledAction[Any], state: Any = None) -> abc.DisposableBase:
        return self._at(0.0, action, state)

    def schedule_relative(
        self, duetime: RelativeTime, action: abc.ScheduledAction[Any], state: Any = None
    ) -> abc.DisposableBase:
        return self._at(max(0.0, self.to_seconds(duetime)), action, state)

    def schedule_absolute(
        self, duetime: AbsoluteTime, action: abc.ScheduledAction[Any], state: Any = None
    ) -> abc.DisposableBase:
        return self.schedule_relative(self.to_datetime(duetime) - self.now, action, state)

    def _at(self, delay: float, action: abc.ScheduledAction[Any], state: Any) -> abc.DisposableBase:
        disposable = SingleAssignmentDisposable()

        def run() -> None:
            if not disposable.is_disposed:
                disposable.disposable = self.invoke_action(action, state=state)

        with self._changed:
            heapq.heappush(self._actions, (time.monotonic() + delay, next(self._count), run))
            self._changed.notify_all()
        return disposable


def here() -> abc.SchedulerBase | None:
    """The scheduler of the running event loop, where one runs."""
    try:
        return _on(asyncio.get_running_loop())
    except RuntimeError:
        return None


def _on(loop: asyncio.AbstractEventLoop) -> abc.SchedulerBase:
    return AsyncIOScheduler(loop)


def _call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call on the loop's thread: now, if this is it, else as soon as the loop can be woken."""
    try:
        if asyncio.get_running_loop() is loop:
            call()
            return
    except RuntimeError:
        pass
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop is closed: nobody waits any more
        log.debug("a stream ended after the loop that waited for it was closed")


def _refuse_in_loop(call: str, instead: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise BlockingCallError(f"`{call}` would block the running event loop; write `{instead}`")


def _fresh(error: Exception) -> Exception:
    """An error that many may get is raised without the traceback of those who got it before."""
    return error.with_traceback(None)


def _ignore(_: object) -> None:
    pass


def _nothing() -> None:
    pass
