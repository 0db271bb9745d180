"""`deliver_on` without a toolkit: event loops, anything like `call_soon`, policies, wake-ups, endings."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as rxops
from reactivex.disposable import Disposable
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import Seen, finish, text

LIMIT = 10.0
POLICIES = ("each", "latest")


class Target:
    """A stand-in for a user interface: keeps what it is asked to call, and calls it when the test says so."""

    def __init__(self) -> None:
        self.asked: deque[Callable[[], None]] = deque()
        self.wake_ups = 0

    def call_soon(self, call: Callable[[], None]) -> None:
        self.wake_ups += 1
        self.asked.append(call)

    def turn(self) -> None:
        """One turn of its loop: what is asked meanwhile waits for the next."""
        for _ in range(len(self.asked)):
            self.asked.popleft()()


class Watched(Subject[Any]):
    """A source that knows how many are subscribed."""

    @property
    def readers(self) -> int:
        return len(self.observers)


def delivered(target: Any, policy: Any = "each") -> tuple[Watched, Seen, Any]:
    feed, seen = Watched(), Seen()
    subscription = seen.subscribe(feed.pipe(ops.deliver_on(target, policy)))
    return feed, seen, subscription


def in_thread(call: Callable[[], Any]) -> None:
    """Run it on another thread, to its end."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive()
    if errors:
        raise errors[0]


# ---- wake-ups and policies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_a_burst_wakes_the_target_once(policy: str) -> None:
    target = Target()
    feed, seen, _ = delivered(target.call_soon, policy)
    in_thread(lambda: [feed.on_next(number) for number in range(1000)])
    assert (target.wake_ups, seen.items) == (1, [])
    target.turn()
    assert seen.items == (list(range(1000)) if policy == "each" else [999])
    target.turn()
    assert target.wake_ups == 1

    in_thread(lambda: [feed.on_next(number) for number in range(3)])
    target.turn()
    assert target.wake_ups == 2
    assert seen.items[-1] == 2


def test_nothing_wakes_a_target_that_nothing_came_for() -> None:
    target = Target()
    delivered(target.call_soon)
    assert target.wake_ups == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_what_comes_during_a_turn_waits_for_the_next(policy: str) -> None:
    """So that a target which is flooded still paints and takes clicks."""
    target = Target()
    feed, seen, _ = delivered(target.call_soon, policy)
    feed.pipe(ops.deliver_on(target.call_soon)).pipe(rxops.take(3)).subscribe(lambda n: feed.on_next(n + 1))
    feed.on_next(0)
    target.turn()
    assert seen.items == [0]
    target.turn()
    assert seen.items == [0, 1]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_last_value_and_the_end_are_always_delivered(policy: str) -> None:
    target = Target()
    feed, seen, _ = delivered(target.call_soon, policy)
    for number in range(5):
        feed.on_next(number)
    feed.on_completed()
    assert (seen.items, seen.completed) == ([], 0)
    target.turn()
    assert seen.items == ([0, 1, 2, 3, 4] if policy == "each" else [4])
    assert (seen.completed, seen.errors, target.wake_ups) == (1, [], 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_error_comes_after_what_came_before_it(policy: str) -> None:
    target = Target()
    feed, seen, _ = delivered(target.call_soon, policy)
    failure = ConnectionError("gone")
    feed.on_next(1)
    feed.on_error(failure)
    assert seen.errors == []
    target.turn()
    assert (seen.items, seen.errors, seen.completed) == ([1], [failure], 0)


def test_an_end_without_a_value_wakes_too() -> None:
    target = Target()
    feed, seen, _ = delivered(target.call_soon)
    feed.on_completed()
    target.turn()
    assert (seen.items, seen.completed) == ([], 1)


def test_values_of_many_threads_all_arrive_each_threads_in_order() -> None:
    target = Target()
    feed, seen, _ = delivered(target.call_soon)
    over = threading.Event()

    def pump(name: int) -> None:
        for number in range(2000):
            feed.on_next((name, number))

    threads = [threading.Thread(target=pump, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + LIMIT
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        target.turn()
    over.set()
    target.turn()
    target.turn()
    for name in range(4):
        assert [number for who, number in seen.items if who == name] == list(range(2000))


def test_a_target_that_calls_at_once_is_no_problem() -> None:
    seen = Seen(rx.of(1, 2, 3).pipe(ops.deliver_on(lambda call: call())))
    deadline = time.monotonic() + LIMIT
    while not seen.completed and time.monotonic() < deadline:
        threading.Event().wait(0.005)
    assert (seen.items, seen.completed) == ([1, 2, 3], 1)


def test_each_subscription_has_its_own_delivery() -> None:
    target, feed = Target(), Watched()
    both = feed.pipe(ops.deliver_on(target.call_soon, "latest"))
    one, two = Seen(both), Seen(both)
    feed.on_next(1)
    one.subscription.dispose()
    feed.on_next(2)
    target.turn()
    assert (one.items, two.items) == ([], [2])


# ---- endings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_delivered_after_dispose(policy: str) -> None:
    target = Target()
    feed, seen, subscription = delivered(target.call_soon, policy)
    feed.on_next(1)
    subscription.dispose()
    feed.on_next(2)
    feed.on_completed()
    target.turn()
    assert (seen.items, seen.completed, seen.errors) == ([], 0, [])
    assert (feed.readers, target.wake_ups) == (0, 1)


def test_dispose_inside_a_callback_stops_the_burst() -> None:
    target, feed = Target(), Watched()
    seen: list[int] = []

    def take(number: int) -> None:
        seen.append(number)
        if number == 1:
            subscription.dispose()

    subscription = feed.pipe(ops.deliver_on(target.call_soon)).subscribe(take)
    for number in range(5):
        feed.on_next(number)
    target.turn()
    assert (seen, feed.readers) == ([0, 1], 0)


def test_dispose_from_another_thread_while_values_come() -> None:
    target = Target()
    feed, seen, subscription = delivered(target.call_soon)
    started, stop = threading.Event(), threading.Event()

    def pump() -> None:
        number = 0
        while not stop.is_set():
            feed.on_next(number)
            number += 1
            if number == 100:
                started.set()

    thread = threading.Thread(target=pump)
    thread.start()
    assert started.wait(LIMIT)
    target.turn()
    subscription.dispose()
    count = len(seen.items)
    stop.set()
    thread.join(LIMIT)
    target.turn()
    assert count >= 100
    assert len(seen.items) == count


def test_a_callback_that_raises_ends_its_subscription() -> None:
    """It raises where it is called, on the target's thread, where the toolkit reports it; nothing comes after."""
    target, feed = Target(), Watched()
    seen: list[int] = []

    def take(number: int) -> None:
        seen.append(number)
        raise RuntimeError("bug in a callback")

    feed.pipe(ops.deliver_on(target.call_soon)).subscribe(take)
    feed.on_next(1)
    feed.on_next(2)
    with pytest.raises(RuntimeError, match="bug in a callback"):
        target.turn()
    feed.on_next(3)
    target.turn()
    assert (seen, feed.readers) == ([1], 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_closed_loop_ends_the_subscription(policy: str) -> None:
    """Nobody is there to be told: nothing raises in the source, which is let go of, and nothing piles up."""
    loop = asyncio.new_event_loop()
    feed, seen, _ = delivered(loop, policy)
    loop.close()

    class Value:
        pass

    feed.on_next(0)  # nobody can know before the loop is woken
    value = Value()
    gone = weakref.ref(value)
    feed.on_next(value)
    del value
    gc.collect()
    assert gone() is None or policy == "latest"
    assert feed.readers == 0
    feed.on_completed()
    assert (seen.items, seen.completed) == ([], 0)


def test_a_loop_that_is_closed_before_it_had_its_turn_ends_the_subscription() -> None:
    loop = asyncio.new_event_loop()
    feed, seen, _ = delivered(loop)
    feed.on_next(0)  # wakes it; it never runs again
    loop.close()
    feed.on_next(1)
    assert (seen.items, feed.readers) == ([], 0)


def test_a_reader_of_a_run_whose_loop_was_closed_is_let_go_of() -> None:
    feed: Subject[Any] = Subject()
    output = mx.MastraModelOutput(feed)
    loop = asyncio.new_event_loop()
    Seen(output.text_stream.pipe(ops.deliver_on(loop)))
    other = Seen(output.text_stream)
    loop.close()
    in_thread(lambda: [feed.on_next(text("a")), feed.on_next(text("b"))])
    assert other.items == ["a", "b"]
    assert len(output._stream._readers) == 1


def test_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    target = Target()
    output = mx.MastraModelOutput([text("a"), text("b"), finish()])
    seen = Seen(output.text_stream.pipe(ops.deliver_on(target.call_soon)))
    deadline = time.monotonic() + LIMIT
    while not seen.completed and time.monotonic() < deadline:
        target.turn()
        threading.Event().wait(0.002)
    assert (seen.items, seen.completed) == (["a", "b"], 1)
    for thread in set(threading.enumerate()) - before:
        thread.join(LIMIT)
    assert set(threading.enumerate()) <= before


# ---- sources that block ----------------------------------------------------------------------------------------------


def test_a_blocking_source_runs_elsewhere_by_subscribe_on() -> None:
    """It runs where it is subscribed; RxPY's `subscribe_on` moves it, so that no window stands still meanwhile."""
    target, release = Target(), threading.Event()
    me, threads = threading.get_ident(), set[int]()

    def blocking() -> Iterator[Any]:
        yield text("a")
        threads.add(threading.get_ident())
        assert release.wait(LIMIT)
        yield text("b")
        yield finish()

    before = set(threading.enumerate())
    output = mx.MastraModelOutput(blocking())
    seen = Seen(output.text_stream.pipe(rxops.subscribe_on(NewThreadScheduler()), ops.deliver_on(target.call_soon)))
    release.set()  # only now: it did not wait
    deadline = time.monotonic() + LIMIT
    while not seen.completed and time.monotonic() < deadline:
        target.turn()
        threading.Event().wait(0.002)
    assert (seen.items, seen.completed) == (["a", "b"], 1)
    assert threads
    assert me not in threads
    for thread in set(threading.enumerate()) - before:
        thread.join(LIMIT)
    assert set(threading.enumerate()) <= before


# ---- event loops -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_a_loop_gets_everything_on_its_own_thread(policy: str) -> None:
    async def main() -> None:
        loop, me = asyncio.get_running_loop(), threading.get_ident()
        feed: Subject[Any] = Subject()
        output = mx.MastraModelOutput(feed)
        seen: list[tuple[str, int]] = []
        done = asyncio.Event()
        output.text_stream.pipe(ops.deliver_on(loop, policy)).subscribe(
            lambda piece: seen.append((piece, threading.get_ident())), on_completed=done.set
        )

        def run() -> None:
            for number in range(500):
                feed.on_next(text(f"{number} "))
            feed.on_next(finish())
            feed.on_completed()

        thread = threading.Thread(target=run)
        thread.start()
        await asyncio.wait_for(done.wait(), LIMIT)
        thread.join(LIMIT)
        pieces = [piece for piece, _ in seen]
        assert pieces[-1] == "499 "
        if policy == "each":
            assert pieces == [f"{number} " for number in range(500)]
        assert {thread for _, thread in seen} == {me}

    asyncio.run(main())


def test_a_loop_is_woken_once_a_burst() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        feed, seen, _ = delivered(loop)
        wake_ups, original = 0, loop.call_soon_threadsafe

        def counted(*args: Any, **options: Any) -> Any:
            nonlocal wake_ups
            wake_ups += 1
            return original(*args, **options)

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign]
        feed.pipe(ops.deliver_on(loop)).subscribe(seen.items.append)
        in_thread(lambda: [feed.on_next(number) for number in range(1000)])  # the loop stands still meanwhile
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert wake_ups == 1

    asyncio.run(main())


def test_a_loop_on_another_thread() -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    threads, done = set[int | None](), threading.Event()
    output = mx.MastraModelOutput([text("a"), text("b"), finish()])
    output.text_stream.pipe(ops.deliver_on(loop)).subscribe(
        lambda _: threads.add(threading.get_ident()), on_completed=done.set
    )
    assert done.wait(LIMIT)
    assert threads == {thread.ident}
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LIMIT)
    loop.close()


def test_callbacks_on_a_loop_see_the_context_of_the_one_who_subscribed() -> None:
    """Textual, Starlette and others keep in context variables which app or request is at work."""
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    async def main() -> list[str]:
        feed: Subject[Any] = Subject()
        who.set("me")
        seen: list[str] = []
        feed.pipe(ops.deliver_on(asyncio.get_running_loop())).subscribe(lambda _: seen.append(who.get()))
        in_thread(lambda: feed.on_next(1))
        await asyncio.sleep(0)
        return seen

    assert asyncio.run(main()) == ["me"]


def test_what_is_delivered_is_an_observable_like_any_other() -> None:
    async def main() -> list[str]:
        output = mx.MastraModelOutput([text("a"), text("b"), finish()])
        loud = output.text_stream.pipe(ops.deliver_on(asyncio.get_running_loop()), rxops.map(str.upper), rxops.take(5))
        return [piece async for piece in mx.as_view(loud)]

    assert asyncio.run(main()) == ["A", "B"]


def test_a_late_reader_gets_it_all() -> None:
    output = mx.MastraModelOutput([text("a"), text("b"), finish()])
    assert output.text.run() == "ab"
    target = Target()
    seen = Seen(output.text_stream.pipe(ops.deliver_on(target.call_soon)))
    deadline = time.monotonic() + LIMIT
    while not seen.completed and time.monotonic() < deadline:
        target.turn()
    assert (seen.items, seen.completed) == (["a", "b"], 1)


def test_a_failed_run_is_told_on_the_target() -> None:
    def source() -> Iterator[Any]:
        yield text("a")
        raise ConnectionError("gone")

    target = Target()
    output = mx.MastraModelOutput(source())
    pieces, value = Seen(), Seen()
    pieces.subscribe(output.text_stream.pipe(ops.deliver_on(target.call_soon)))
    value.subscribe(output.text.pipe(ops.deliver_on(target.call_soon)))
    deadline = time.monotonic() + LIMIT
    while not (pieces.errors and value.errors) and time.monotonic() < deadline:
        target.turn()
        threading.Event().wait(0.002)
    assert pieces.items == ["a"]
    assert isinstance(pieces.errors[0], mx.SourceError)
    assert isinstance(value.errors[0], mx.SourceError)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_a_wrong_policy_or_target_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="latest"):
        ops.deliver_on(print, "newest")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="asyncio loop, a Tk widget, a Qt object"):
        ops.deliver_on(42)

    class Object:
        moveToThread = thread = None  # looks like one of Qt

    with pytest.raises(TypeError, match="PySide6 or PyQt6"):
        rx.of(1).pipe(ops.deliver_on(Object())).subscribe(print, on_error=_raise)


def _raise(error: Exception) -> None:
    raise error


def test_the_source_is_let_go_of_at_its_end() -> None:
    closed: list[str] = []

    def subscribe(observer: Any, _: Any = None) -> Any:
        observer.on_next(1)
        observer.on_completed()
        return Disposable(lambda: closed.append("closed"))

    target = Target()
    seen = Seen(rx.create(subscribe).pipe(ops.deliver_on(target.call_soon)))
    target.turn()
    assert (seen.items, seen.completed, closed) == ([1], 1, ["closed"])
