"""The single hot stream that every view of a run derives from.

    source  ->  stage  ->  log  ->  readers
                 |
                 +-> settled  ->  waiters

One subscription to the source, ever. What comes passes the stage (which may change, swallow or add items, and keeps
whatever state it likes), is appended to the log, and goes to every reader. A reader that comes late first gets the log,
so each sees every item from the first on, in one order, without gap or repeat. Waiters don't want the items, only to
know when the outcome is settled; a late one is told at once, whatever the length of the log.

Rules it holds, each with a test:

- One thread delivers at a time; what is pushed meanwhile, by another thread or from inside a callback, is queued.
- No lock is held while foreign code runs.
- Readers that subscribe together (in one trampoline of RxPY, as `merge` and `zip` subscribe) are replayed together,
  position by position, and so get in late what they would have got live.
- A reader that raises is detached and told; the others and the source go on.
- Disposing a reader never stops the source. `dispose()` does.

RxPY's own `share`, `replay` and `ReplaySubject` do none of the last four, and `ReplaySubject` is quadratic at replay.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler, ImmediateScheduler, TrampolineScheduler

from .errors import BlockingCallError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

log = logging.getLogger("mastra_rx")


class Sink(Protocol[T_contra]):
    """Where a source puts what it has. Any thread may call; after `fail` or `close` nothing more is taken."""

    def push(self, items: Sequence[T_contra]) -> None:
        """Items that came at once, in order."""
        ...

    def fail(self, error: Exception) -> None:
        """The source failed."""
        ...

    def close(self) -> None:
        """The source is complete."""
        ...


class Connection(Protocol):
    """A source that was opened."""

    def step(self) -> bool | None:
        """Fetch what comes next and push it. False: there is no next, or the source runs by itself. None: not now."""
        ...

    def dispose(self) -> None:
        """Close the source; its own clean-up runs."""
        ...


@runtime_checkable
class Pullable(Protocol):
    """An Observable that is fed from outside, and knows how to make more come."""

    def pull(self) -> bool | None:
        """As `Connection.step`."""
        ...


class Openable(Protocol[T_co]):
    """A source that hands its items over in batches, and that can be driven step by step."""

    def open(self, sink: Sink[T_co], scheduler: abc.SchedulerBase | None) -> Connection: ...


Stage = Callable[[T], "T | Sequence[T] | None"]
"""What happens to an item before readers get it: the item itself, None to swallow it, or a list of items instead."""

_LOOK_AGAIN = 0.01  # seconds until a scheduler looks again whether it can step the source
_SLICE = 256  # how much of the log a replay takes at once
_ROUNDS = 3  # turns that readers wait for others that are about to subscribe with them (`start_with` takes two)


class SharedStream(Observable[T], Generic[T]):
    """An `Observable` that connects to its source once and replays to all.

    `source` is any Observable; an `Openable` one is asked for batches. `history` bounds how many items are kept for
    late readers; one that comes too late first gets `gap(missed)`, if given. `on_end` is called once, before anybody is
    told.
    """

    isolates_faults = True

    def __init__(
        self,
        source: Observable[T] | Openable[T],
        *,
        stage: Stage[T] | None = None,
        history: int | None = None,
        gap: Callable[[int], T] | None = None,
        on_end: Callable[[Exception | None], None] | None = None,
    ) -> None:
        super().__init__()
        if history is not None and (type(history) is not int or history < 1):
            raise ValueError(f"history={history!r}: give the number of items to keep, at least 1, or None to keep all")
        self._source = source
        self._stage = stage
        self._history = history
        self._gap = gap
        self._on_end = on_end

        self._mutex = threading.Lock()
        self._log: list[T] = []
        self._dropped = 0  # items before the first one of the log
        self._readers: tuple[_Reader[T], ...] = ()  # those that have had the whole log
        self._waiters: list[_Reader[T]] = []
        self._entering: dict[int, list[_Reader[T]]] = {}  # subscribed in a trampoline that still runs, by thread
        self._inbox: deque[Sequence[T] | _End] = deque()
        self._delivering: int | None = None  # the thread that delivers
        self._latecomers: list[_Group[T]] = []  # caught up by their own thread, handed over to the deliverer
        self._attention = False  # latecomers, a settlement or an end wait for the deliverer
        self._settled_at: int | None = None
        self._end: _End | None = None

        self._connecting = False
        self._connection: Connection | None = None
        self._driver = threading.Lock()
        self._driving: int | None = None  # the thread that steps the source

    # ---- what users of the stream call -------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """How many items have come; the same number for every reader."""
        return self._dropped + len(self._log)

    @property
    def ended(self) -> bool:
        return self._end is not None

    @property
    def is_read(self) -> bool:
        """Whether somebody is subscribed, of a stream that has not ended."""
        return self._wanted or (self._end is None and bool(self._entering))

    @property
    def so_far(self) -> list[T]:
        """What the log holds now; asking starts nothing."""
        return self._log.copy()

    def settle(self) -> None:
        """The outcome is known from the item on that the stage is handling; waiters are told before readers get it."""
        if self._settled_at is None:
            self._settled_at = self.position
            self._attention = True

    def finish(self) -> None:
        """End the stream after the item that the stage is handling, whatever the source still has."""
        with self._mutex:
            self._inbox.clear()
            self._inbox.append(_End(None, early=True))
        self._attention = True

    def dispose(self) -> None:
        """Close the source and complete every reader; items that were not delivered yet are dropped."""
        with self._mutex:
            if self._end is not None:
                return
            self._inbox.clear()
        self._put(_End(None, early=True))
        self._close_source()

    def when_settled(
        self, tell: Callable[[], None], *, scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        """Connect, and call `tell` once: when the stage settles the outcome, or else when the stream ends."""
        return self._enter(_Reader(self, tell=tell), scheduler)

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return self._enter(_Reader(self, observer), scheduler)

    # ---- what the source calls ---------------------------------------------------------------------------------------

    def push(self, items: Sequence[T]) -> None:
        self._put(items)

    def fail(self, error: Exception) -> None:
        self._put(_End(error))

    def close(self) -> None:
        self._put(_End(None))

    # ---- entering: replay, connect, drive ----------------------------------------------------------------------------

    def _enter(self, reader: _Reader[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        """Queue the reader; those that subscribe in the same trampoline are let in together when it has room."""
        me = threading.get_ident()
        if self._delivering == me and self._end is None and getattr(scheduler, "blocks", False):
            raise BlockingCallError(
                "a blocking call inside a callback of the same stream would wait for itself; "
                "subscribe there, or make the call after the stream"
            )
        with self._mutex:
            self._entering.setdefault(me, []).append(reader)
        turns: abc.SchedulerBase = CurrentThreadScheduler.singleton()
        if scheduler is not None and not isinstance(scheduler, TrampolineScheduler | ImmediateScheduler):
            turns = scheduler  # it runs what subscribes, so it has to run what comes after that
            self._open_once(scheduler)  # a source that runs by itself is not to be missed until then

        def let_in(_: abc.SchedulerBase, rounds: Any = None) -> None:
            if rounds and me in self._entering:
                turns.schedule(let_in, rounds - 1)
                return
            self._let_in(me)
            self._connect(scheduler)

        turns.schedule(let_in, _ROUNDS)
        return reader

    def _let_in(self, thread: int) -> None:
        """Replay to those that subscribed together on this thread."""
        with self._mutex:
            entering = self._entering.pop(thread, None)
        if entering is not None:
            self._replay(_Group(entering))

    def _replay(self, group: _Group[T]) -> None:
        """Give the group the log, up to where the deliverer stands, and make its readers live."""
        if not group.readers:
            with self._mutex:
                group.position = self.position
        while not group.is_closed:
            with self._mutex:
                missed = self._skip_what_is_gone(group)
                items = self._items_from(group.position)
                settled = self._settled_at is not None
                ended = not items and self._end is not None
                if not items and not ended:
                    self._hand_over(group)
            if missed and self._gap is not None:
                group.next(self._gap(missed))
            if items:
                self._replay_items(group, items)
            else:
                if settled and group.is_live:
                    group.tell()
                if ended:
                    group.end(self._end)
                return

    def _skip_what_is_gone(self, group: _Group[T]) -> int:
        """Move the group to the first item that history still allows; the number of items it misses."""
        first = self._dropped
        if self._history is not None and group.position == 0:
            first = max(first, self.position - self._history)
        missed = first - group.position
        if missed <= 0:
            return 0
        group.position = first
        return missed

    def _items_from(self, position: int) -> list[T]:
        start = position - self._dropped
        return self._log[start : start + _SLICE]

    def _hand_over(self, group: _Group[T]) -> None:
        """The group has had the whole log: make it live, or leave that to the thread that is delivering."""
        if self._delivering in (None, threading.get_ident()):
            group.is_live = True
            self._readers += tuple(reader for reader in group.readers if not reader.closed)
            if self._settled_at is None:
                self._waiters += [waiter for waiter in group.waiters if not waiter.closed]
        else:
            self._latecomers.append(group)
            self._attention = True

    def _replay_items(self, group: _Group[T], items: list[T]) -> None:
        for item in items:
            if group.position == self._settled_at:
                group.tell()
            group.position += 1
            group.next(item)
            if group.is_closed:
                return

    def _connect(self, scheduler: abc.SchedulerBase | None) -> None:
        self._open_once(scheduler)
        self._deliver_if_idle()
        if self._connection is not None and self._end is None:
            self._drive(scheduler)

    def _open_once(self, scheduler: abc.SchedulerBase | None) -> None:
        with self._mutex:
            first = not self._connecting and self._end is None
            self._connecting = True
        if first:
            try:
                self._open(scheduler)
            except Exception as error:
                self.fail(error)

    def _open(self, scheduler: abc.SchedulerBase | None) -> None:
        source = self._source
        if isinstance(source, Observable) and not hasattr(source, "open"):
            subscription = source.subscribe(
                lambda item: self.push((item,)), self._fail_any, self.close, scheduler=scheduler
            )
            self._connection = _Subscription(subscription)
        else:
            self._connection = cast("Openable[T]", source).open(self, scheduler)
        if self._end is not None:  # it ended, or was disposed, while it was being opened
            self._close_source()

    def _fail_any(self, error: object) -> None:
        self.fail(error if isinstance(error, Exception) else RuntimeError(str(error)))

    def _drive(self, scheduler: abc.SchedulerBase | None) -> None:
        """Step the source as long as somebody wants what comes: here and now, or as the scheduler gives turns."""
        if scheduler is None:
            me = threading.get_ident()
            while self._wanted and self._step():
                if me in self._entering:  # callbacks subscribed: they are not to wait for the end of the source
                    self._let_in(me)
            return

        def turn(scheduler: abc.SchedulerBase, _: Any = None) -> None:
            if not self._wanted:
                return
            if (more := self._step(wait=False)) is None:
                scheduler.schedule_relative(_LOOK_AGAIN, turn)
            elif more:
                scheduler.schedule(turn)

        scheduler.schedule(turn)

    @property
    def _wanted(self) -> bool:
        return self._end is None and bool(self._readers or self._waiters or self._latecomers)

    def _step(self, wait: bool = True) -> bool | None:
        """Whether there may be more; None: not now, or another thread is at it and this one is not to wait."""
        me = threading.get_ident()
        if me in (self._driving, self._delivering):  # a callback subscribed; the loop further up the stack drives
            return False
        connection = self._connection
        if not self._driver.acquire(blocking=wait):
            return None
        try:
            if connection is None or self._end is not None:
                return False
            self._driving = me
            try:
                more = connection.step()
            except Exception as error:
                self.fail(error)
                more = False
            finally:
                self._driving = None
        finally:
            self._driver.release()
        self._deliver_if_idle()  # what the step pushed; only now, so that no lock is held while callbacks run
        return more

    def _close_source(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            connection.dispose()
        except Exception:
            log.exception("closing the source failed")

    # ---- delivering --------------------------------------------------------------------------------------------------

    def _put(self, what: Sequence[T] | _End) -> None:
        with self._mutex:
            if self._end is not None:
                return
            self._inbox.append(what)
            if isinstance(what, _End):
                self._attention = True
        if self._driving != threading.get_ident():
            self._deliver_if_idle()

    def _deliver_if_idle(self) -> None:
        with self._mutex:
            if self._delivering is not None or not self._inbox:
                return
            self._delivering = threading.get_ident()
        try:
            self._deliver()
        except BaseException:  # an interrupt in a callback goes to whoever delivers; the stream can be read on
            self._delivering = None
            raise

    def _deliver(self) -> None:
        while True:
            if self._attention:
                self._attend()
            with self._mutex:
                if not self._inbox:
                    if self._latecomers:
                        continue
                    self._delivering = None
                    return
                what = self._inbox.popleft()
            if isinstance(what, _End):
                self._finish(what)
            elif self._stage is None:
                self._give(what)
            else:
                self._give_staged(what, self._stage)

    def _give_staged(self, items: Sequence[T], stage: Stage[T]) -> None:
        append, single = self._log.append, [cast("T", None)]
        history = self._history
        rest = iter(items)
        for item in rest:
            if self._attention and not self._attend():
                return
            try:
                staged = stage(item)
            except Exception:
                log.exception("a stage failed at item %d, which is passed on as it is", self.position)
                staged = item
            if self._attention:
                self._attend()
            if staged is item:
                single[0] = item
                out: Sequence[T] = single
            elif staged is None:
                continue
            else:
                out = cast("Sequence[T]", staged if isinstance(staged, list) else [staged])
            for one in out:
                append(one)
                for reader in self._readers:
                    try:
                        reader.next(one)
                    except Exception as error:
                        reader.fault(error)
                    except BaseException:
                        self._interrupted(reader, one, rest)
                        raise
            if history is not None and len(self._log) >= 2 * history:
                self._trim(history)

    def _give(self, items: Sequence[T]) -> None:
        rest = iter(items)
        for item in rest:
            if self._attention and not self._attend():
                return
            self._log.append(item)
            for reader in self._readers:
                try:
                    reader.next(item)
                except Exception as error:
                    reader.fault(error)
                except BaseException:
                    self._interrupted(reader, item, rest)
                    raise
            if self._history is not None and len(self._log) >= 2 * self._history:
                self._trim(self._history)

    def _interrupted(self, reader: _Reader[T], item: T, rest: Iterator[T]) -> None:
        """A callback was interrupted: its reader leaves, the others get the item, and what came with it is kept."""
        after = self._readers[self._readers.index(reader) + 1 :] if reader in self._readers else ()
        reader.dispose()
        with self._mutex:
            if not (self._inbox and isinstance(first := self._inbox[0], _End) and first.early):
                self._inbox.appendleft(list(rest))
        _Group(list(after)).next(item)

    def _trim(self, history: int) -> None:
        with self._mutex:
            gone = len(self._log) - history
            del self._log[:gone]
            self._dropped += gone

    def _attend(self) -> bool:
        """See to what waits for the deliverer. False: the stream is to end now, whatever was pushed before."""
        with self._mutex:
            groups, self._latecomers = self._latecomers, []
            waiters: list[_Reader[T]] = []
            if self._settled_at is not None:
                waiters, self._waiters = self._waiters, []
            ending = bool(self._inbox) and isinstance(first := self._inbox[0], _End) and first.early
            self._attention = ending
        for waiter in waiters:
            waiter.tell_once()
        for group in groups:
            self._replay(group)
        return not ending

    def _finish(self, end: _End) -> None:
        if self._on_end is not None:
            self._on_end(end.error)
        with self._mutex:
            self._end = end
            self._inbox.clear()
            if self._settled_at is None:
                self._settled_at = self.position
            readers, self._readers = self._readers, ()
            waiters, self._waiters = self._waiters, []
            groups, self._latecomers = self._latecomers, []
        for waiter in waiters:
            waiter.tell_once()
        for reader in readers:
            reader.end(end.error)
        for group in groups:
            self._replay(group)
        if end.early:
            self._close_source()


class _End:
    """How the stream ends: with an error, or complete; `early` where it must not wait for what was pushed before."""

    __slots__ = ("early", "error")

    def __init__(self, error: Exception | None, *, early: bool = False) -> None:
        self.error = error
        self.early = early


class _Reader(Disposable, Generic[T]):
    """One subscription. A reader has `next`; a waiter only wants to be told that the outcome is settled."""

    __slots__ = ("_observer", "_stream", "_tell", "closed", "next")

    def __init__(
        self,
        stream: SharedStream[T],
        observer: abc.ObserverBase[T] | None = None,
        *,
        tell: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._stream = stream
        self._observer = observer
        self._tell = tell
        self.next: Callable[[T], Any] = _ignore if observer is None else observer.on_next
        self.closed = False

    @property
    def is_waiter(self) -> bool:
        return self._tell is not None

    def tell_once(self) -> None:
        tell, self._tell = self._tell, _nothing
        self._leave()
        if tell is not None:
            try:
                tell()
            except Exception:
                log.exception("a subscriber failed when it was told that the run is settled")

    def end(self, error: Exception | None) -> None:
        observer = self._leave()
        if observer is None:
            return
        try:
            if error is None:
                observer.on_completed()
            else:
                observer.on_error(error)
        except Exception:
            log.exception("a subscriber failed at the end of the stream")

    def fault(self, error: Exception) -> None:
        """It raised: detach it and tell it, the others go on."""
        observer = self._leave()
        self._detach()
        if not getattr(observer, "hears_faults", False):  # RxPY's own observers are deaf after they raised
            log.error("a subscriber raised and was detached", exc_info=error)
        if observer is not None:
            try:
                observer.on_error(error)
            except Exception:
                log.debug("a subscriber that raised could not be told", exc_info=True)

    def dispose(self) -> None:
        if not self.closed:
            self._tell = _nothing if self.is_waiter else None
            self._leave()
            self._detach()

    def _leave(self) -> abc.ObserverBase[T] | None:
        observer, self._observer = self._observer, None
        self.next = _ignore
        self.closed = True
        return observer

    def _detach(self) -> None:
        stream = self._stream
        with stream._mutex:
            if self in stream._readers:
                stream._readers = tuple(reader for reader in stream._readers if reader is not self)
            elif self in stream._waiters:
                stream._waiters.remove(self)


class _Group(Generic[T]):
    """Readers and waiters that subscribed together, and how much of the log they have had."""

    __slots__ = ("is_live", "position", "readers", "waiters")

    def __init__(self, entering: list[_Reader[T]]) -> None:
        self.readers = [reader for reader in entering if not reader.is_waiter]
        self.waiters = [reader for reader in entering if reader.is_waiter]
        self.position = 0
        self.is_live = False

    @property
    def is_closed(self) -> bool:
        return all(reader.closed for reader in self.readers) and all(waiter.closed for waiter in self.waiters)

    def next(self, item: T) -> None:
        for reader in self.readers:
            try:
                reader.next(item)
            except Exception as error:
                reader.fault(error)

    def tell(self) -> None:
        for waiter in self.waiters:
            waiter.tell_once()
        self.waiters = []

    def end(self, end: _End | None) -> None:
        self.tell()
        for reader in self.readers:
            reader.end(None if end is None else end.error)


class _Subscription:
    """The connection to a plain Observable, which runs by itself."""

    def __init__(self, subscription: abc.DisposableBase) -> None:
        self._subscription = subscription

    def step(self) -> bool:
        return False

    def dispose(self) -> None:
        self._subscription.dispose()


def _ignore(_: object) -> None:
    pass


def _nothing() -> None:
    pass
