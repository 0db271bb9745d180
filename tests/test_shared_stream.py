"""The shared stream: one subscription to the source, everything to every reader, once and in one order."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
import reactivex as rx
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rxops
from reactivex.scheduler import EventLoopScheduler
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest, TestScheduler

from mastra_rx import BlockingCallError, SharedStream, View

T = TypeVar("T")

on_next, on_completed = ReactiveTest.on_next, ReactiveTest.on_completed


class Seen(list[Any]):
    """What a subscriber got: values, then how it ended."""

    def __init__(self, source: Observable[Any]) -> None:
        super().__init__()
        self.ends: list[Any] = []
        self.subscription = source.subscribe(self.append, self.ends.append, lambda: self.ends.append("done"))


class Counted:
    """A synchronous source: how often it was opened, how much was taken from it, and whether it was closed."""

    def __init__(self, items: Any = range(3)) -> None:
        self._items = items
        self.opened = self.taken = self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        self.opened += 1
        try:
            for item in self._items:
                self.taken += 1
                yield item
        finally:
            self.closed += 1


class Steps:
    """An openable source that gives an item a step."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def open(self, sink: Any, scheduler: Any = None) -> Steps:
        self._iterator = iter(self._items)
        self._sink = sink
        return self

    def step(self) -> bool:
        try:
            self._sink.push((next(self._iterator),))
        except StopIteration:
            self._sink.close()
            return False
        return True

    def dispose(self) -> None:
        getattr(self._iterator, "close", lambda: None)()


def shared(items: Any = range(3), **options: Any) -> SharedStream[Any]:
    return SharedStream(Steps(items), **options)


def live(**options: Any) -> tuple[Subject[Any], SharedStream[Any]]:
    """A stream that the test pushes into. Nothing is kept by the subject: who is late has it from the stream."""
    subject: Subject[Any] = Subject()
    stream = SharedStream(subject, **options)
    stream.subscribe(on_error=lambda _: None)
    return subject, stream


def endless() -> Iterator[int]:
    """A source without an end; who reads far too much of it is told so, and the test does not hang."""
    yield from range(20_000)
    raise AssertionError("nobody stopped reading an endless source")


def within(seconds: float, call: Callable[[], T]) -> T:
    """What the call gives; a failure, instead of a test that hangs, if it gives nothing in time."""
    outcome: list[Callable[[], T]] = []

    def run() -> None:
        try:
            value = call()
        except BaseException as error:
            failure = error

            def fail() -> T:
                raise failure

            outcome.append(fail)
        else:
            outcome.append(lambda: value)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"it hangs: no result after {seconds} s"
    return outcome[0]()


# ---- one subscription ------------------------------------------------------------------------------------------------


def test_nothing_is_opened_before_somebody_subscribes() -> None:
    source = Counted()
    stream = shared(source)
    assert (source.opened, stream.position, stream.so_far, stream.ended) == (0, 0, [], False)


def test_the_source_is_opened_once_for_early_and_late_readers() -> None:
    source = Counted()
    stream = shared(source)
    assert [Seen(stream) for _ in range(3)] == [[0, 1, 2]] * 3
    assert (source.opened, source.taken, source.closed) == (1, 3, 1)


def test_the_source_is_not_opened_again_after_everybody_left() -> None:
    source = Counted(endless())
    stream = shared(source)
    assert Seen(stream.pipe(rxops.take(2))) == [0, 1]
    assert Seen(stream.pipe(rxops.take(4))) == [0, 1, 2, 3]
    assert source.opened == 1


def test_a_rxpy_observable_is_subscribed_once() -> None:
    subscriptions = itertools.count()
    stream = SharedStream(rx.defer(lambda _: rx.of(next(subscriptions), "a")))
    assert [Seen(stream), Seen(stream)] == [[0, "a"]] * 2


def test_readers_of_several_threads_that_come_first_open_the_source_once() -> None:
    for _ in range(50):
        source = Counted(range(20))
        stream = shared(source)
        barrier = threading.Barrier(4)
        seen: list[Seen] = []

        def read(stream: Any = stream, barrier: Any = barrier, seen: Any = seen) -> None:
            barrier.wait()
            seen.append(Seen(stream))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert source.opened == 1
        assert seen == [list(range(20))] * 4


def test_a_source_that_cannot_be_opened_fails_the_stream() -> None:
    class Broken:
        def open(self, sink: Any, scheduler: Any) -> Any:
            raise OSError("no such host")

    stream: SharedStream[Any] = SharedStream(Broken())
    for seen in (Seen(stream), Seen(stream)):
        assert seen == []
        assert [str(end) for end in seen.ends] == ["no such host"]


# ---- everything, once, in order --------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", range(5))
def test_who_subscribes_at_any_position_gets_everything_once(position: int) -> None:
    subject, stream = live()
    for item in range(position):
        subject.on_next(item)
    late = Seen(stream)
    assert late == list(range(position))
    for item in range(position, 4):
        subject.on_next(item)
    subject.on_completed()
    assert (late, late.ends) == ([0, 1, 2, 3], ["done"])


def test_the_end_is_replayed_too() -> None:
    subject, stream = live()
    subject.on_next(1)
    error = ValueError("broken")
    subject.on_error(error)
    assert (Seen(stream), Seen(stream).ends) == ([1], [error])


def test_nothing_comes_after_the_end() -> None:
    stream = shared([1])
    seen = Seen(stream)
    stream.push([2])
    stream.fail(ValueError())
    stream.close()
    assert (seen, seen.ends, Seen(stream)) == ([1], ["done"], [1])


def test_position_counts_the_same_for_everybody() -> None:
    subject, stream = live()
    positions: list[int] = []
    stream.subscribe(lambda _: positions.append(stream.position))
    for item in "abc":
        subject.on_next(item)
    assert (positions, stream.position, stream.so_far) == ([1, 2, 3], 3, ["a", "b", "c"])


def test_a_long_log_is_replayed_whole() -> None:
    """Longer than what is taken from the log at once."""
    stream = SharedStream(rx.from_iterable(range(2000)))
    Seen(stream)
    assert Seen(stream) == list(range(2000))


@given(st.lists(st.sampled_from(["push", "subscribe", "dispose", "late"]), max_size=30))
def test_any_order_of_push_subscribe_and_dispose(actions: list[str]) -> None:
    """Every reader has everything up to where it left."""
    subject, stream = live()
    readers: list[Seen] = []
    left: list[tuple[Seen, int]] = []
    pushed = 0
    for action in actions:
        if action == "push":
            subject.on_next(pushed)
            pushed += 1
        elif action == "dispose" and readers:
            reader = readers.pop(0)
            reader.subscription.dispose()
            left.append((reader, pushed))
        else:
            readers.append(Seen(stream))
    subject.on_completed()
    assert all((reader, reader.ends) == (list(range(pushed)), ["done"]) for reader in readers)
    assert all((reader, reader.ends) == (list(range(until)), []) for reader, until in left)


# ---- threads ---------------------------------------------------------------------------------------------------------

SCRIPTS = st.lists(
    st.lists(st.sampled_from(["push", "push2", "subscribe", "take", "dispose"]), min_size=1, max_size=12),
    min_size=2,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(SCRIPTS)
def test_any_interleaving_of_threads_gives_everybody_everything_once(scripts: list[list[str]]) -> None:
    stream: SharedStream[tuple[int, int]] = SharedStream(rx.never())
    stream.subscribe()
    barrier = threading.Barrier(len(scripts))
    stayed: list[Seen] = []
    left: list[Seen] = []
    taken: list[Seen] = []

    def play(name: int, script: list[str]) -> None:
        numbers = itertools.count()
        mine: list[Seen] = []
        barrier.wait(10)
        for action in script:
            if action == "push":
                stream.push([(name, next(numbers))])
            elif action == "push2":
                stream.push([(name, next(numbers)), (name, next(numbers))])
            elif action == "subscribe":
                mine.append(Seen(stream))
            elif action == "take":
                taken.append(Seen(stream.pipe(rxops.take(2))))
            elif mine:
                reader = mine.pop()
                reader.subscription.dispose()
                left.append(reader)
        stayed.extend(mine)

    threads = [threading.Thread(target=play, args=(name, script)) for name, script in enumerate(scripts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    stream.close()

    everything = stream.so_far
    for name, script in enumerate(scripts):  # what one thread pushed is there once, in its order
        count = sum({"push": 1, "push2": 2}.get(action, 0) for action in script)
        assert [item for item in everything if item[0] == name] == [(name, number) for number in range(count)]
    assert all((reader, reader.ends) == (everything, ["done"]) for reader in [*stayed, Seen(stream)])
    assert all(reader == everything[: len(reader)] for reader in left)
    assert all((reader, reader.ends) == (everything[:2], ["done"]) for reader in taken)


def test_items_of_several_threads_are_delivered_one_at_a_time() -> None:
    stream: SharedStream[Any] = SharedStream(rx.never())
    inside = itertools.count()
    overlaps: list[int] = []
    level = [0]

    def slow(_: Any) -> None:
        level[0] += 1
        if level[0] > 1:
            overlaps.append(next(inside))
        threading.Event().wait(0.0005)
        level[0] -= 1

    stream.subscribe(slow)
    threads = [threading.Thread(target=lambda: [stream.push([1]) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (stream.position, overlaps) == (80, [])


def test_a_push_returns_while_another_thread_delivers() -> None:
    """No lock is held while a callback runs: who pushes meanwhile need not wait for it."""
    stream: SharedStream[Any] = SharedStream(rx.never())
    entered, go_on = threading.Event(), threading.Event()
    seen: list[Any] = []

    def hold(item: Any) -> None:
        seen.append(item)
        if item == 1:
            entered.set()
            assert go_on.wait(10)

    stream.subscribe(hold)
    thread = threading.Thread(target=lambda: stream.push([1]))
    thread.start()
    assert entered.wait(10)
    within(2, lambda: stream.push([2, 3]))
    assert seen == [1]
    go_on.set()
    thread.join(10)
    assert seen == [1, 2, 3]


def test_who_subscribes_while_another_thread_delivers_misses_nothing() -> None:
    stream: SharedStream[Any] = SharedStream(rx.never())
    entered, go_on = threading.Event(), threading.Event()

    def hold(item: Any) -> None:
        if item == 2:
            entered.set()
            assert go_on.wait(10)

    stream.subscribe(hold)
    thread = threading.Thread(target=lambda: stream.push([1, 2, 3]))
    thread.start()
    assert entered.wait(10)
    late = within(2, lambda: Seen(stream))
    assert late == [1, 2]
    go_on.set()
    thread.join(10)
    stream.push([4])
    assert late == [1, 2, 3, 4]


def test_a_callback_may_wait_for_a_thread_that_subscribes_to_the_same_source() -> None:
    """Also where the source is stepped: the step's lock is not held while a callback runs."""
    stream = shared(range(3))
    joined: list[bool] = []
    others: list[Seen] = []

    def callback(item: int) -> None:
        if item == 0:
            thread = threading.Thread(target=lambda: others.append(Seen(stream)), daemon=True)
            thread.start()
            thread.join(1)
            joined.append(not thread.is_alive())

    stream.subscribe(callback)
    assert joined == [True]
    assert others == [[0, 1, 2]]


# ---- re-entrance -----------------------------------------------------------------------------------------------------


def test_what_a_callback_pushes_is_queued() -> None:
    """Every reader sees the answer after the question, and a callback is never called inside itself."""
    subject, stream = live()
    depth = [0]

    def answer(item: str) -> None:
        depth[0] += 1
        assert depth[0] == 1
        if item == "question":
            subject.on_next("answer")
        depth[0] -= 1

    stream.subscribe(answer)
    after = Seen(stream)
    subject.on_next("question")
    assert after == ["question", "answer"]


def test_ten_thousand_pushes_from_inside_do_not_overflow_the_stack() -> None:
    subject, stream = live()
    stream.subscribe(lambda item: subject.on_next(item + 1) if item < 10_000 else None)
    subject.on_next(0)
    assert stream.so_far == list(range(10_001))


def test_who_subscribes_inside_a_callback_gets_everything_once() -> None:
    subject, stream = live()
    inner: list[Seen] = []
    stream.subscribe(lambda item: inner.append(Seen(stream)) if item == 2 else None)
    for item in (1, 2, 3):
        subject.on_next(item)
    assert inner == [[1, 2, 3]]


def test_who_subscribes_inside_a_callback_of_a_stepped_source_gets_everything_once() -> None:
    stream = shared([1, 2, 3])
    inner: list[Seen] = []
    stream.subscribe(lambda item: inner.append(Seen(stream)) if item == 2 else None)
    assert inner == [[1, 2, 3]]


def test_who_subscribes_inside_a_callback_is_live_from_the_next_step_on() -> None:
    """It need not wait for the end of the source: there may be none."""
    source = Counted(endless())
    stream = shared(source)
    twice = stream.pipe(rxops.take(1), rxops.flat_map(lambda _: stream.pipe(rxops.take(3))))
    assert within(5, lambda: Seen(twice)) == [0, 1, 2]
    assert source.taken == 3


def test_disposing_inside_a_callback_ends_the_source() -> None:
    source = Counted(endless())
    stream = shared(source)
    seen: list[int] = []

    def until_three(item: int) -> None:
        seen.append(item)
        if item == 3:
            stream.dispose()

    stream.subscribe(until_three)
    assert (seen, source.closed, stream.ended) == ([0, 1, 2, 3], 1, True)


# ---- faults ----------------------------------------------------------------------------------------------------------


def failing_at(wanted: Any, error: BaseException) -> Callable[[Any], None]:
    def callback(item: Any) -> None:
        if item == wanted:
            raise error

    return callback


@pytest.mark.parametrize("late", [False, True], ids=["live", "replayed"])
def test_a_view_subscriber_that_raises_is_told_and_detached(late: bool, caplog: pytest.LogCaptureFixture) -> None:
    subject, stream = live()
    error = ValueError("mine")
    told: list[Exception] = []
    completed: list[str] = []

    def subscribe() -> None:
        View(stream).subscribe(failing_at(1, error), told.append, lambda: completed.append("done"))

    if not late:
        subscribe()
    others = [Seen(stream)]
    for item in (0, 1, 2):
        subject.on_next(item)
    if late:
        subscribe()
    others.append(Seen(stream))
    subject.on_completed()
    assert (told, completed, caplog.records) == ([error], [], [])
    assert others == [[0, 1, 2]] * 2


@pytest.mark.parametrize("make", [View, lambda stream: stream, lambda stream: stream.pipe(rxops.map(lambda x: x))])
def test_a_subscriber_without_on_error_that_raises_is_logged(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    subject, stream = live()
    calls: list[Any] = []

    def callback(item: Any) -> None:
        calls.append(item)
        raise ValueError("mine")

    make(stream).subscribe(callback)
    other = Seen(stream)
    for item in (0, 1):
        subject.on_next(item)
    assert (calls, other) == ([0], [0, 1])
    assert [(record.name, record.levelno) for record in caplog.records] == [("mastra_rx", logging.ERROR)]
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize("ending", ["on_error", "on_completed"])
def test_a_subscriber_that_raises_at_the_end_harms_nobody(ending: str, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("at the end")

    subject, stream = live()
    stream.subscribe(on_error=fail, on_completed=fail)
    View(stream).subscribe(on_error=fail, on_completed=fail)
    other = Seen(stream)
    subject.on_error(ValueError()) if ending == "on_error" else subject.on_completed()
    assert len(other.ends) == 1
    assert len(caplog.records) == 2


def test_an_on_error_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("again")

    subject, stream = live()
    View(stream).subscribe(fail, fail)
    other = Seen(stream)
    for item in (0, 1):
        subject.on_next(item)
    assert other == [0, 1]
    assert caplog.records


@pytest.mark.parametrize("stage", [None, lambda item: item], ids=["plain", "staged"])
def test_an_interrupt_inside_a_callback_does_not_kill_the_stream(stage: Any) -> None:
    """The one who presses Ctrl-C in a notebook gets KeyboardInterrupt; the stream can be read on."""
    stream = shared(range(4), stage=stage)
    with pytest.raises(KeyboardInterrupt):
        View(stream).subscribe(failing_at(1, KeyboardInterrupt()))
    assert within(2, lambda: Seen(stream)) == [0, 1, 2, 3]


@pytest.mark.parametrize("stage", [None, lambda item: item], ids=["plain", "staged"])
def test_an_interrupt_loses_nothing_of_what_came_with_it(stage: Any) -> None:
    stream: SharedStream[int] = SharedStream(rx.never(), stage=stage)
    stream.subscribe(failing_at(1, KeyboardInterrupt()))
    other = Seen(stream)
    with pytest.raises(KeyboardInterrupt):
        stream.push([0, 1, 2])
    within(2, lambda: stream.push([3]))
    assert within(2, lambda: Seen(stream)) == [0, 1, 2, 3]
    assert other[-1] == 3


def test_a_stage_that_fails_passes_the_item_on(caplog: pytest.LogCaptureFixture) -> None:
    def stage(item: int) -> int:
        if item == 1:
            raise ValueError("stage")
        return item * 10

    assert Seen(shared(range(3), stage=stage)) == [0, 1, 20]
    assert len(caplog.records) == 1


# ---- leaving ---------------------------------------------------------------------------------------------------------


def test_disposing_one_reader_never_stops_the_run() -> None:
    subject, stream = live()
    first, second = Seen(stream), Seen(stream)
    subject.on_next(1)
    first.subscription.dispose()
    subject.on_next(2)
    second.subscription.dispose()
    subject.on_next(3)
    assert (first, second, Seen(stream)) == ([1], [1, 2], [1, 2, 3])


def test_disposing_the_last_reader_keeps_the_subscription_to_the_source() -> None:
    subject: Subject[int] = Subject()
    stream = SharedStream(subject)
    Seen(stream).subscription.dispose()
    subject.on_next(1)
    assert Seen(stream) == [1]


def test_a_reader_that_leaves_while_an_item_is_delivered_does_not_get_it() -> None:
    subject, stream = live()
    second: list[Seen] = []
    stream.subscribe(lambda _: second[0].subscription.dispose())
    second.append(Seen(stream))
    subject.on_next(1)
    assert second == [[]]


def test_take_stops_a_replay() -> None:
    stream = shared(range(1000))
    Seen(stream)
    passed: list[int] = []
    seen = Seen(stream.pipe(rxops.do_action(passed.append), rxops.take(1)))
    assert (seen, seen.ends, passed) == ([0], ["done"], [0])


def test_an_endless_source_is_stepped_only_as_long_as_somebody_reads() -> None:
    source = Counted(endless())
    stream = shared(source)
    assert Seen(stream.pipe(rxops.take(3))) == [0, 1, 2]
    assert source.taken == 3


def test_a_waiter_that_left_during_the_replay_does_not_keep_the_source_going() -> None:
    source = Counted(endless())
    stream = shared(source)
    Seen(stream.pipe(rxops.take(2)))
    settled = Observable(lambda observer, scheduler=None: stream.when_settled(observer.on_completed))
    left: Subject[None] = Subject()
    seen: list[int] = []

    def collect(item: int) -> None:
        seen.append(item)
        left.on_next(None)  # with the first one that is replayed, the waiter leaves

    reader = stream.pipe(rxops.do_action(collect), rxops.take(4))
    within(2, lambda: rx.merge(reader, settled.pipe(rxops.take_until(left))).subscribe())
    assert seen == [0, 1, 2, 3]
    assert source.taken == 4


@pytest.mark.parametrize("opened", [False, True])
def test_dispose_ends_every_reader_once(opened: bool) -> None:
    subject: Subject[int] = Subject()
    stream = SharedStream(subject)
    early = Seen(stream) if opened else None
    stream.dispose()
    stream.dispose()
    subject.on_next(1)
    assert early is None or (early, early.ends) == ([], ["done"])
    assert (Seen(stream), Seen(stream).ends, subject.observers) == ([], ["done"], [])


def test_dispose_drops_what_was_not_delivered() -> None:
    stream: SharedStream[int] = SharedStream(rx.never())
    seen = Seen(stream)
    stream.subscribe(lambda item: stream.dispose() if item == 1 else None)
    stream.push([0, 1, 2, 3])
    assert (seen, seen.ends, stream.so_far) == ([0, 1], ["done"], [0, 1])


def test_dispose_of_a_source_that_fails_to_close_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError("still busy")

    stream: SharedStream[int] = SharedStream(rx.create(lambda *_: rx.disposable.Disposable(fail)))
    seen = Seen(stream)
    stream.dispose()
    assert (seen.ends, len(caplog.records)) == (["done"], 1)


# ---- history ---------------------------------------------------------------------------------------------------------


def gap(missed: int) -> str:
    return f"missed {missed}"


@pytest.mark.parametrize(("came", "late"), [(0, []), (3, [0, 1, 2]), (4, ["missed 1", 1, 2, 3])])
def test_history_bounds_what_late_readers_get(came: int, late: list[Any]) -> None:
    subject, stream = live(history=3, gap=gap)
    early = Seen(stream)
    for item in range(came):
        subject.on_next(item)
    assert Seen(stream) == late
    assert early == list(range(came))
    assert stream.position == came


@given(st.integers(1, 6), st.integers(0, 40), st.lists(st.integers(1, 9), max_size=6))
def test_history_keeps_exactly_the_last_ones(history: int, came: int, batches: list[int]) -> None:
    stream: SharedStream[Any] = SharedStream(rx.never(), history=history, gap=gap)
    early = Seen(stream)
    stream.push(range(came))
    total = came
    for size in batches:
        stream.push(range(total, total + size))
        total += size
    missed = max(0, total - history)
    assert Seen(stream) == [*([gap(missed)] if missed else []), *range(missed, total)]
    assert early == list(range(total))
    assert len(stream.so_far) < 2 * history + 1


def test_a_late_reader_goes_on_live_after_the_gap() -> None:
    subject, stream = live(history=2, gap=gap)
    for item in range(10):
        subject.on_next(item)
    late = Seen(stream)
    for item in range(10, 20):
        subject.on_next(item)
    assert late == ["missed 8", *range(8, 20)]


@pytest.mark.parametrize("history", [0, -1])
def test_history_must_keep_something(history: int) -> None:
    with pytest.raises(ValueError, match="history"):
        shared(history=history)


# ---- settling --------------------------------------------------------------------------------------------------------


def test_waiters_are_told_when_the_stage_settles_and_late_ones_at_once() -> None:
    stream: SharedStream[str] = SharedStream(rx.never(), stage=lambda item: item if item != "x" else settle(item))
    told: list[str] = []

    def settle(item: str) -> str:
        stream.settle()
        return item

    stream.when_settled(lambda: told.append("early"))
    stream.push(["a"])
    assert told == []
    stream.push(["x", "b"])
    stream.when_settled(lambda: told.append("late"))
    stream.close()
    stream.when_settled(lambda: told.append("after the end"))
    assert told == ["early", "late", "after the end"]


def test_without_a_settlement_the_end_tells_waiters() -> None:
    subject, stream = live()
    told: list[str] = []
    stream.when_settled(lambda: told.append("settled"))
    stream.when_settled(lambda: told.append("left")).dispose()
    subject.on_completed()
    assert told == ["settled"]


@pytest.mark.parametrize("position", range(5))
def test_a_waiter_and_a_reader_that_come_together_late_see_what_they_would_have_seen_live(position: int) -> None:
    def stage(item: int) -> int:
        if item == 2:
            stream.settle()
        return item

    stream: SharedStream[int] = SharedStream(rx.never(), stage=stage)
    settled = Observable(
        lambda observer, scheduler=None: stream.when_settled(
            lambda: (observer.on_next("settled"), observer.on_completed())
        )
    )
    stream.subscribe()
    stream.push(range(position))
    seen = Seen(rx.merge(stream, settled))
    stream.push(range(position, 4))
    assert seen == [0, 1, "settled", 2, 3]


def test_a_stage_may_swallow_add_and_finish() -> None:
    def stage(item: int) -> Any:
        if item == 1:
            return None
        if item == 2:
            return [2, "two"]
        if item == 3:
            stream.finish()
        return item

    source = Counted(range(10))
    stream = shared(source, stage=stage)
    seen = Seen(stream)
    assert (seen, seen.ends, source.closed) == ([0, 2, "two", 3], ["done"], 1)


# ---- RxPY on top: a late subscriber gets the interleaving of a live one ----------------------------------------------


def evens_and_odds(stream: Observable[int]) -> tuple[Observable[str], Observable[str]]:
    return (
        stream.pipe(rxops.filter(lambda item: item % 2 == 0), rxops.map(lambda item: f"even {item}")),
        stream.pipe(rxops.filter(lambda item: item % 3 == 0), rxops.map(lambda item: f"three {item}")),
    )


COMPOSED: dict[str, Callable[[Any, Any], Observable[Any]]] = {
    "merge": lambda a, b: rx.merge(a, b),
    "zip": lambda a, b: rx.zip(a, b),
    "with_latest_from": lambda a, b: a.pipe(rxops.with_latest_from(b)),
    "combine_latest": lambda a, b: rx.combine_latest(a, b),
    "sample": lambda a, b: a.pipe(rxops.sample(b)),
    "take_until": lambda a, b: a.pipe(rxops.take_until(b.pipe(rxops.skip(2)))),
    "skip_until": lambda a, b: a.pipe(rxops.skip_until(b.pipe(rxops.skip(1)))),
    "concat": lambda a, b: rx.concat(a, b),
    "amb": lambda a, b: rx.amb(a, b),
    "buffer": lambda a, b: a.pipe(rxops.buffer(b)),
    "take": lambda a, b: rx.merge(a, b).pipe(rxops.take(5)),
    "scan": lambda a, b: rx.merge(a, b).pipe(rxops.scan(lambda so_far, item: [*so_far, item], [])),
    "three": lambda a, b: rx.merge(a, b, rx.zip(a, b)),
    "start_with": lambda a, b: rx.merge(a.pipe(rxops.start_with("begin")), b),
}


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("position", [0, 1, 5, 13])
def test_a_composition_gives_late_what_it_gave_live(name: str, position: int) -> None:
    subject, stream = live()
    a, b = evens_and_odds(stream)
    composed = COMPOSED[name](a, b)
    early = Seen(composed)
    for item in range(position):
        subject.on_next(item)
    late = Seen(composed)
    for item in range(position, 13):
        subject.on_next(item)
    subject.on_completed()
    after = Seen(composed)
    assert early
    assert late == early
    assert after == early
    assert early.ends == late.ends == after.ends


@pytest.mark.parametrize("name", COMPOSED)
def test_a_composition_on_a_stepped_source_gives_what_it_gives_live(name: str) -> None:
    subject, stream = live()
    expected = Seen(COMPOSED[name](*evens_and_odds(stream)))
    for item in range(13):
        subject.on_next(item)
    subject.on_completed()
    stepped = shared(range(13))
    composed = COMPOSED[name](*evens_and_odds(stepped))
    assert [Seen(composed), Seen(composed)] == [expected] * 2


@pytest.mark.parametrize("late", [False, True])
def test_retry_gets_everything_again(late: bool) -> None:
    subject, stream = live()
    tries = itertools.count()

    def twice_unlucky(item: int) -> int:
        if item == 1 and next(tries) < 2:
            raise ValueError("unlucky")
        return item

    unlucky = stream.pipe(rxops.map(twice_unlucky), rxops.retry(3))
    seen = None if late else Seen(unlucky)
    for item in range(3):
        subject.on_next(item)
    subject.on_completed()
    seen = seen if seen is not None else Seen(unlucky)
    assert (seen, seen.ends) == ([0, 0, 0, 1, 2], ["done"])


def test_retry_does_not_open_a_failed_source_again() -> None:
    opened = itertools.count(1)

    def broken() -> Iterator[int]:
        yield next(opened)
        raise ValueError("broken")

    stream = shared(broken())
    seen = Seen(stream.pipe(rxops.retry(3)))
    assert seen == [1, 1, 1]
    assert [str(end) for end in seen.ends] == ["broken"]


@pytest.mark.parametrize("late", [False, True])
def test_observe_on_another_thread(late: bool) -> None:
    subject, stream = live()
    scheduler = EventLoopScheduler(exit_if_empty=True)
    threads: set[str] = set()
    done = threading.Event()
    seen: list[int] = []

    def collect(item: int) -> None:
        threads.add(threading.current_thread().name)
        seen.append(item)

    def subscribe() -> None:
        stream.pipe(rxops.observe_on(scheduler)).subscribe(collect, on_completed=done.set)

    if not late:
        subscribe()
    for item in range(50):
        subject.on_next(item)
    subject.on_completed()
    if late:
        subscribe()
    assert done.wait(10)
    assert seen == list(range(50))
    assert threading.current_thread().name not in threads


def test_virtual_time_early_and_late() -> None:
    scheduler = TestScheduler()
    source = scheduler.create_hot_observable(on_next(210, "a"), on_next(220, "b"), on_next(230, "c"), on_completed(240))
    stream = SharedStream(source)
    early, middle, late = (scheduler.create_observer() for _ in range(3))
    for time, observer in ((200, early), (225, middle), (300, late)):
        scheduler.schedule_absolute(time, lambda *_, observer=observer: stream.subscribe(observer, scheduler=scheduler))
    scheduler.start()
    assert early.messages == [on_next(210, "a"), on_next(220, "b"), on_next(230, "c"), on_completed(240)]
    assert middle.messages == [on_next(225, "a"), on_next(225, "b"), on_next(230, "c"), on_completed(240)]
    assert late.messages == [on_next(300, "a"), on_next(300, "b"), on_next(300, "c"), on_completed(300)]
    assert [(lifetime.subscribe, lifetime.unsubscribe) for lifetime in source.subscriptions] == [(200, 240)]


def test_timed_operators_in_virtual_time() -> None:
    scheduler = TestScheduler()
    source = scheduler.create_hot_observable(on_next(210, 1), on_next(215, 2), on_next(250, 3), on_completed(300))
    stream = SharedStream(source)
    result = scheduler.start(lambda: stream.pipe(rxops.debounce(10.0)))
    assert [(message.time, message.value.value) for message in result.messages[:-1]] == [(225, 2), (260, 3)]


def test_a_scheduler_gives_the_source_its_turns() -> None:
    """Subscribed with a virtual scheduler, nothing happens before that runs."""
    scheduler = TestScheduler()
    stream = shared(range(3))
    seen: list[int] = []
    stream.subscribe(seen.append, scheduler=scheduler)
    assert seen == []
    scheduler.start()
    assert seen == [0, 1, 2]


# ---- blocking inside a callback --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [lambda view: view.run(), list], ids=["run", "for"])
@pytest.mark.parametrize("stepped", [False, True], ids=["pushed", "stepped"])
def test_a_blocking_call_in_a_callback_of_a_running_stream_raises(how: Any, stepped: bool) -> None:
    stream = shared(range(3)) if stepped else SharedStream(rx.never())
    errors: list[BaseException] = []

    def callback(_: int) -> None:
        try:
            how(View(stream))
        except BlockingCallError as error:
            errors.append(error)

    def play() -> None:
        stream.subscribe(callback)
        if not stepped:
            stream.push([0, 1, 2])

    within(2, play)
    assert len(errors) == 3


@pytest.mark.parametrize("stepped", [False, True], ids=["pushed", "stepped"])
def test_a_blocking_call_when_the_stream_has_ended_gives_the_value(stepped: bool) -> None:
    """`on_completed=lambda: print(view.run())`: there is nothing left to wait for."""
    stream = shared(range(3)) if stepped else SharedStream(rx.never())
    values: list[Any] = []

    def play() -> None:
        stream.subscribe(on_completed=lambda: values.append(View(stream).run()))
        if not stepped:
            stream.push([0, 1, 2])
            stream.close()

    within(2, play)
    assert values == [2]


def test_a_blocking_call_in_the_callback_of_a_late_reader_does_not_hang() -> None:
    stream = shared(range(3))
    Seen(stream)
    values: list[Any] = []
    within(2, lambda: stream.subscribe(lambda _: values.append(View(stream).run())))
    assert values == [2, 2, 2]


def test_a_blocking_call_while_the_log_of_a_running_stream_is_replayed_does_not_hang() -> None:
    """It drives the source itself, or is refused; it must not wait for what comes after it."""
    stream = shared(range(3))
    Seen(stream.pipe(rxops.take(1)))
    outcomes: list[Any] = []

    def callback(_: int) -> None:
        if not outcomes:
            try:
                outcomes.append(View(stream).run())
            except BlockingCallError as error:
                outcomes.append(error)

    within(2, lambda: stream.subscribe(callback))
    assert outcomes
    assert outcomes[0] == 2 or isinstance(outcomes[0], BlockingCallError)


def test_a_blocking_call_on_another_stream_is_no_problem() -> None:
    """One run may be read blocking inside a callback of another."""
    one, other = shared("ab"), shared("cd")
    values: list[Any] = []
    within(2, lambda: one.subscribe(lambda item: values.append(item + View(other).run())))
    assert values == ["ad", "bd"]


def test_a_blocking_call_inside_any_rxpy_callback_is_no_problem() -> None:
    stream = shared("ab")
    values: list[Any] = []
    within(2, lambda: rx.of(1, 2).subscribe(lambda item: values.append((item, View(stream).run()))))
    assert values == [(1, "b"), (2, "b")]
