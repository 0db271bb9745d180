"""A view: callbacks, `await`, `async for`, `for`, `run()`, `latest()`, `batches()`, on whatever thread it is fed."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import pytest
import reactivex as rx
from reactivex import operators as rxops
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import BlockingCallError, MastraModelOutput, NoValueError, SharedStream, View, as_view
from mastra_rx.sources.loop import background_loop

T = TypeVar("T")

FINISH = {"type": "finish", "payload": {"stepResult": {"reason": "stop"}}}


def delta(text: str) -> dict[str, Any]:
    return {"type": "text-delta", "payload": {"id": "1", "text": text}}


HELLO = [delta("Hel"), delta("lo"), FINISH]


def pushed() -> tuple[SharedStream[Any], View[Any]]:
    """A view, and the stream that the test pushes into."""
    stream: SharedStream[Any] = SharedStream(rx.never())
    stream.subscribe(on_error=lambda _: None)
    return stream, View(stream)


def within(seconds: float, call: Callable[[], T]) -> T:
    """What the call gives; a failure, instead of a test that hangs, if it gives nothing in time."""
    values: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            values.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    assert values, f"it hangs: no result after {seconds} s"
    return values[0]


async def collected(view: Any) -> list[Any]:
    return [value async for value in view]


async def turns(count: int = 5) -> None:
    """Let everything else on the loop run."""
    for _ in range(count):
        await asyncio.sleep(0)


# ---- subscribing has no surprises ------------------------------------------------------------------------------------


def test_reading_and_printing_a_view_starts_nothing() -> None:
    started: list[str] = []

    def source() -> Iterator[dict[str, Any]]:
        started.append("started")
        yield from HELLO

    output = MastraModelOutput(source())
    views = [value for name in dir(output) if isinstance(value := getattr(output, name), View)]
    assert len(views) > 20
    assert all(repr(view).startswith("<View ") for view in views)
    assert repr(output.text_stream.latest()) == "<text_stream.latest()>"
    iter(output.text_stream)
    assert started == []
    assert output.text.run() == "Hello"
    assert started == ["started"]


def test_every_way_gives_the_same() -> None:
    output = MastraModelOutput(HELLO)
    seen: list[str] = []
    output.text_stream.subscribe(seen.append)
    assert seen == list(output.text_stream) == ["Hel", "lo"]
    assert asyncio.run(collected(output.text_stream)) == seen
    assert output.text_stream.run() == "lo"
    assert output.text.run() == "Hello"

    async def twice() -> list[str]:
        return [await output.text, await output.text]

    assert asyncio.run(twice()) == ["Hello", "Hello"]


def test_an_observer_may_be_given_instead_of_callbacks() -> None:
    subject: Subject[str] = Subject()
    seen: list[str] = []
    subject.subscribe(seen.append, on_completed=lambda: seen.append("done"))
    MastraModelOutput(HELLO).text_stream.subscribe(subject)
    assert seen == ["Hel", "lo", "done"]


def test_as_view_makes_a_view_of_any_observable() -> None:
    view = as_view(MastraModelOutput(HELLO).text_stream.pipe(rxops.map(str.upper)), "loud")
    assert list(view) == ["HEL", "LO"]
    assert as_view(view) is view
    assert repr(view) == "<View loud>"


def test_a_view_of_an_observable_keeps_to_the_grammar() -> None:
    """One ending, nothing after it, whatever the source does."""

    def unruly(observer: Any, scheduler: Any = None) -> None:
        observer.on_next(1)
        observer.on_completed()
        observer.on_next(2)
        observer.on_error(ValueError())
        observer.on_completed()

    seen: list[Any] = []
    view = as_view(rx.create(unruly))  # type: ignore[arg-type]
    view.subscribe(seen.append, seen.append, lambda: seen.append("done"))
    assert seen == [1, "done"]


# ---- blocking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observable", [rx.of(1, 2, 3), rx.from_iterable([1, 2, 3]), rx.range(1, 4)])
def test_for_ends(observable: Any) -> None:
    """Over an Observable of RxPY it would not."""
    assert within(5, lambda: list(as_view(observable))) == [1, 2, 3]


def test_for_waits_for_another_thread() -> None:
    stream, view = pushed()
    got_first = threading.Event()

    def feed() -> None:
        stream.push([1])
        assert got_first.wait(10)
        stream.push([2, 3])
        stream.close()

    thread = threading.Thread(target=feed)
    thread.start()

    def read() -> list[int]:
        seen: list[int] = []
        for value in view:
            seen.append(value)
            got_first.set()
        return seen

    assert within(5, read) == [1, 2, 3]
    thread.join(10)


def test_for_takes_from_a_sync_source_only_what_it_needs() -> None:
    """The loop drives the source, a step at a time; leaving it stops that, and the run goes on when somebody asks."""
    taken: list[str] = []

    def source() -> Iterator[dict[str, Any]]:
        for text in "abcd":
            taken.append(text)
            yield delta(text)
        yield FINISH

    output = MastraModelOutput(source())
    for piece in output.text_stream:
        if piece == "b":
            break
    assert taken == ["a", "b"]
    assert list(output.text_stream) == ["a", "b", "c", "d"]


def test_two_loops_over_one_source_may_alternate() -> None:
    output = MastraModelOutput(iter(HELLO))
    first, second = iter(output.text_stream), iter(output.text_stream)
    assert [next(first), next(second), next(second), next(first)] == ["Hel", "Hel", "lo", "lo"]
    assert list(first) == list(second) == []


def test_an_exhausted_iterator_stays_exhausted() -> None:
    iterator = iter(MastraModelOutput(HELLO).text_stream)
    assert list(iterator) == ["Hel", "lo"]
    assert list(iterator) == []


def test_leaving_for_early_unsubscribes() -> None:
    released: list[str] = []
    view = as_view(rx.of(1, 2, 3).pipe(rxops.concat(rx.never()), rxops.finally_action(lambda: released.append("yes"))))
    for value in view:
        if value == 2:
            break
    assert released == ["yes"]


def test_an_error_is_raised_where_the_loop_is() -> None:
    stream, view = pushed()
    stream.push([1])
    stream.fail(ValueError("broken"))
    seen: list[int] = []
    for _ in range(2):  # and again, for everybody who asks
        with pytest.raises(ValueError, match="broken"):
            seen.extend(view)
        with pytest.raises(ValueError, match="broken"):
            view.run()


def test_the_last_value_of_nothing_is_an_error_that_says_so() -> None:
    with pytest.raises(NoValueError, match="letters"):
        as_view(rx.empty(), "letters").run()

    async def wait() -> None:
        await as_view(rx.empty(), "letters")

    with pytest.raises(NoValueError, match="letters"):
        asyncio.run(wait())


def test_timed_operators_work_in_a_blocking_loop() -> None:
    view = as_view(rx.of(1, 2).pipe(rxops.concat(rx.timer(0.01).pipe(rxops.map(lambda _: 3)))))
    assert within(5, lambda: list(view)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda view: view.run(), "await"),
        (lambda view: list(view), "async for"),
        (lambda view: list(view.latest()), "async for"),
        (lambda view: list(view.batches(0)), "async for"),
    ],
    ids=["run", "for", "latest", "batches"],
)
def test_a_blocking_call_inside_a_loop_names_the_fix(call: Any, fix: str) -> None:
    async def main() -> None:
        with pytest.raises(BlockingCallError, match=fix):
            call(MastraModelOutput(HELLO).text_stream)

    asyncio.run(main())


def test_a_blocking_call_in_a_callback_of_an_output_raises() -> None:
    """Also through an operator, and for a value."""
    output = MastraModelOutput(iter(HELLO))
    calls: list[Callable[[], Any]] = [
        output.text.run,
        output.full_stream.run,
        lambda: list(output.text_stream),
        lambda: list(output.text_stream.batches(0)),
        output.get_full_output().run,
    ]
    raised: list[int] = []

    def callback(piece: str) -> None:
        for number, call in enumerate(calls):
            if piece == "Hel":
                with pytest.raises(BlockingCallError):
                    call()
                raised.append(number)

    errors: list[Exception] = []
    within(5, lambda: output.text_stream.subscribe(callback, errors.append))
    assert (raised, errors) == ([0, 1, 2, 3, 4], [])


def test_values_can_be_asked_for_when_a_stream_completes() -> None:
    output = MastraModelOutput(iter(HELLO))
    texts: list[str] = []
    errors: list[Exception] = []
    within(2, lambda: output.text_stream.subscribe(None, errors.append, lambda: texts.append(output.text.run())))
    assert (texts, errors) == (["Hello"], [])


# ---- asyncio ---------------------------------------------------------------------------------------------------------


def test_await_wakes_at_once_when_another_thread_feeds() -> None:
    """Not at the loop's next timer: there is none for an hour."""
    stream, view = pushed()

    async def main() -> int:
        loop = asyncio.get_running_loop()
        loop.call_later(3600, lambda: None)
        waiting = asyncio.ensure_future(view)
        await turns()
        thread = threading.Thread(target=lambda: (stream.push([1, 2]), stream.close()))
        thread.start()
        value = await asyncio.wait_for(waiting, 10)
        thread.join()
        return value

    assert within(5, lambda: asyncio.run(main())) == 2


def test_async_for_wakes_at_once_when_another_thread_feeds() -> None:
    stream, view = pushed()

    async def main() -> list[int]:
        asyncio.get_running_loop().call_later(3600, lambda: None)
        go_on = threading.Event()

        def feed() -> None:
            for item in range(3):
                assert go_on.wait(10)
                go_on.clear()
                stream.push([item])
            stream.close()

        thread = threading.Thread(target=feed)
        thread.start()
        seen: list[int] = []
        go_on.set()
        async for value in view:
            seen.append(value)
            go_on.set()
        thread.join()
        return seen

    assert within(5, lambda: asyncio.run(main())) == [0, 1, 2]


def test_a_burst_of_another_thread_wakes_the_loop_once() -> None:
    stream, view = pushed()

    async def main() -> tuple[list[int], int]:
        loop = asyncio.get_running_loop()
        reader = asyncio.ensure_future(collected(view))
        await turns()
        wake_ups = 0
        call = loop.call_soon_threadsafe

        def counting(*args: Any, **options: Any) -> Any:
            nonlocal wake_ups
            wake_ups += 1
            return call(*args, **options)

        loop.call_soon_threadsafe = counting  # type: ignore[method-assign]
        thread = threading.Thread(target=lambda: [stream.push([item]) for item in range(1000)])
        thread.start()
        thread.join()  # the loop stands still while the burst comes
        woken = wake_ups
        stream.close()
        return await reader, woken

    seen, woken = asyncio.run(main())
    assert (seen, woken) == (list(range(1000)), 1)


def test_awaiting_wakes_the_loop_once_a_run() -> None:
    stream, view = pushed()

    async def main() -> int:
        loop = asyncio.get_running_loop()
        waiting = asyncio.ensure_future(view)
        await turns()
        calls: list[Any] = []
        call = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *args, **options: (calls.append(args), call(*args, **options))[1]  # type: ignore
        thread = threading.Thread(target=lambda: (stream.push(range(1000)), stream.close()))
        thread.start()
        thread.join()
        await waiting
        return len(calls)

    assert asyncio.run(main()) == 1


def test_a_long_log_does_not_keep_the_loop_from_others() -> None:
    stream, view = pushed()
    stream.push(range(1000))
    stream.close()

    async def main() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(tick())
        assert await collected(view) == list(range(1000))
        other.cancel()
        return ticks

    assert asyncio.run(main()) > 5


def test_leaving_async_for_early_unsubscribes_and_the_run_goes_on() -> None:
    released: list[str] = []
    stream, _ = pushed()
    view = as_view(stream.pipe(rxops.finally_action(lambda: released.append("yes"))))

    async def main() -> None:
        stream.push([1, 2, 3])
        async for value in view:
            if value == 2:
                break
        assert released == ["yes"]
        stream.push([4])
        stream.close()
        assert await collected(stream and View(stream)) == [1, 2, 3, 4]

    asyncio.run(main())


def test_leaving_async_for_early_stops_driving_a_sync_source() -> None:
    taken: list[str] = []

    def source() -> Iterator[dict[str, Any]]:
        for text in "abcdefgh":
            taken.append(text)
            yield delta(text)
        yield FINISH

    async def main() -> list[str]:
        output = MastraModelOutput(source())
        async for piece in output.text_stream:
            if piece == "b":
                break
        await turns(20)
        return list(taken)

    assert asyncio.run(main()) in (["a", "b"], ["a", "b", "c"])


def test_a_cancelled_await_unsubscribes() -> None:
    released: list[str] = []
    view = as_view(rx.never().pipe(rxops.finally_action(lambda: released.append("yes"))))

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(view, 0.01)

    asyncio.run(main())
    assert released == ["yes"]


def test_many_awaits_and_loops_at_once() -> None:
    async def source() -> AsyncIterator[dict[str, Any]]:
        for chunk in HELLO:
            await asyncio.sleep(0)
            yield chunk

    async def main() -> list[Any]:
        output = MastraModelOutput(source())
        return await asyncio.gather(
            *(output.text for _ in range(3)), *(collected(output.text_stream) for _ in range(3)), output.finish_reason
        )

    assert asyncio.run(main()) == ["Hello"] * 3 + [["Hel", "lo"]] * 3 + ["stop"]


def test_each_waiter_gets_the_error_without_the_traceback_of_the_others() -> None:
    stream, view = pushed()
    stream.fail(ValueError("broken"))

    async def depth() -> int:
        try:
            await view
        except ValueError as error:
            trace, count = error.__traceback__, 0
            while trace is not None:
                trace, count = trace.tb_next, count + 1
            return count
        return 0

    async def main() -> set[int]:
        return {await depth() for _ in range(5)}

    assert len(asyncio.run(main())) == 1


def test_a_stream_that_ends_after_the_loop_is_closed_disturbs_nobody() -> None:
    stream, view = pushed()
    iterators: list[Any] = []

    async def main() -> None:
        iterator = view.__aiter__()
        iterators.append(iterator)
        waiting = asyncio.ensure_future(iterator.__anext__())
        await turns()
        waiting.cancel()

    asyncio.run(main())
    seen: list[int] = []
    view.subscribe(seen.append)
    stream.push([1])
    stream.close()
    assert seen == [1]


def test_one_output_may_be_read_in_several_loops_one_after_the_other() -> None:
    output = MastraModelOutput(iter(HELLO))

    async def first() -> str | None:
        async for piece in output.text_stream:
            return piece
        return None

    assert asyncio.run(first()) == "Hel"
    assert asyncio.run(collected(output.text_stream)) == ["Hel", "lo"]


# ---- where sources run -----------------------------------------------------------------------------------------------


class Threads:
    """An asynchronous source that says on which thread it runs, and whether it was closed."""

    def __init__(self, chunks: Any = HELLO) -> None:
        self._chunks = chunks
        self.names: set[str] = set()
        self.closed = threading.Event()

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for chunk in self._chunks:
                self.names.add(threading.current_thread().name)
                await asyncio.sleep(0)
                yield chunk
        finally:
            self.closed.set()


def background_tasks() -> list[Any]:
    """What still runs on our own loop, once everything that was about to end has."""

    async def look() -> list[Any]:
        await turns(20)
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    return asyncio.run_coroutine_threadsafe(look(), background_loop()).result(10)


def test_an_async_source_runs_on_the_running_loop() -> None:
    source = Threads()

    async def main() -> str:
        output = MastraModelOutput(source)
        text = await output.text
        await turns()
        assert [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
        return text

    assert asyncio.run(main()) == "Hello"
    assert source.names == {threading.current_thread().name}
    assert source.closed.is_set()


@pytest.mark.parametrize("read", [lambda output: output.text.run(), lambda output: "".join(output.text_stream)])
def test_without_a_loop_an_async_source_runs_on_our_one_daemon_thread(read: Any) -> None:
    source = Threads()
    assert within(5, lambda: read(MastraModelOutput(source))) == "Hello"
    assert source.names == {"mastra_rx"}
    assert source.closed.wait(10)
    assert background_tasks() == []
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "mastra_rx"]
    assert thread.daemon


def test_a_sync_source_runs_where_it_is_subscribed_and_leaves_no_thread() -> None:
    names: set[str] = set()
    before = threading.active_count()

    def source() -> Iterator[Any]:
        for chunk in HELLO:
            names.add(threading.current_thread().name)
            yield chunk

    output = MastraModelOutput(source())
    assert output.text.run() == "Hello"
    assert list(output.text_stream) == ["Hel", "lo"]
    assert asyncio.run(collected(output.text_stream)) == ["Hel", "lo"]
    assert names == {threading.current_thread().name}
    assert threading.active_count() == before


def test_a_callback_on_an_async_source_without_a_loop() -> None:
    source = Threads()
    seen: list[str] = []
    done = threading.Event()
    MastraModelOutput(source).text_stream.subscribe(seen.append, on_completed=done.set)
    assert done.wait(10)
    assert seen == ["Hel", "lo"]


def test_a_run_that_nobody_reads_to_its_end_leaves_no_task_behind() -> None:
    source = Threads([delta("x")] * 100_000)

    async def main() -> None:
        async for _ in MastraModelOutput(source).text_stream:
            break

    asyncio.run(main())
    assert source.closed.is_set()


# ---- latest and batches ----------------------------------------------------------------------------------------------


def test_latest_skips_what_came_meanwhile() -> None:
    stream, view = pushed()

    async def main() -> list[int]:
        seen: list[int] = []
        stream.push([1, 2])
        async for value in view.latest():
            seen.append(value)
            if value == 2:
                stream.push([3, 4, 5])
            elif value == 5:
                stream.push([6, 7])
                stream.close()
        return seen

    assert asyncio.run(main()) == [2, 5, 7]


def test_latest_in_a_blocking_loop() -> None:
    stream, view = pushed()
    stream.push([1, 2, 3])
    stream.close()
    assert within(5, lambda: list(view.latest())) == [3]


def test_latest_raises_after_the_last_value() -> None:
    stream, view = pushed()
    stream.push([1, 2])
    stream.fail(ValueError("broken"))
    seen: list[int] = []
    iterator = iter(view.latest())
    seen.append(next(iterator))
    with pytest.raises(ValueError, match="broken"):
        next(iterator)
    assert seen == [2]


@pytest.mark.parametrize("seconds", [0, 3600])
def test_batches_give_everything_in_order(seconds: float) -> None:
    """The first comes at once; what comes within the time is one list; the end does not wait."""
    stream, view = pushed()

    async def main() -> list[list[int]]:
        seen: list[list[int]] = []
        stream.push([1, 2, 3])
        async for batch in view.batches(seconds):
            seen.append(batch)
            if len(seen) == 1:
                stream.push([4])
                stream.push([5])
                stream.close()
        return seen

    assert within(5, lambda: asyncio.run(main())) == [[1, 2, 3], [4, 5]]


def test_batches_keep_the_time_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that the test sets: nothing before the time is over."""
    stream, view = pushed()
    now = [100.0]
    monkeypatch.setattr("mastra_rx.view.time.monotonic", lambda: now[0])
    iterator = iter(view.batches(10))
    stream.push([1])
    assert next(iterator) == [1]
    stream.push([2, 3])
    box = iterator._box  # type: ignore[attr-defined]
    assert box.ready_in == 10
    now[0] = 106.0
    assert box.ready_in == 4
    now[0] = 110.0
    assert next(iterator) == [2, 3]


def test_batches_wait_for_their_time_and_no_longer() -> None:
    stream, view = pushed()
    times: list[float] = []

    def read() -> list[list[int]]:
        batches: list[list[int]] = []
        for batch in view.batches(0.05):
            times.append(time.monotonic())
            batches.append(batch)
            if len(batches) < 3:
                stream.push([len(batches)])
            else:
                stream.close()
        return batches

    stream.push([0])
    assert within(5, read) == [[0], [1], [2]]
    assert all(later - earlier >= 0.045 for earlier, later in itertools.pairwise(times))


def test_batches_refuse_a_negative_time() -> None:
    with pytest.raises(ValueError, match="batches"):
        as_view(rx.of(1)).batches(-1)


def test_batches_and_latest_lose_nothing_under_a_racing_thread() -> None:
    for _ in range(10):
        stream, view = pushed()

        def feed(stream: SharedStream[Any] = stream) -> None:
            for item in range(200):
                stream.push([item])
            stream.close()

        async def main(view: View[Any] = view, feed: Any = feed) -> tuple[list[int], list[int], list[int]]:
            thread = threading.Thread(target=feed)
            thread.start()
            batches, latest, each = await asyncio.gather(
                collected(view.batches(0)), collected(view.latest()), collected(view)
            )
            thread.join()
            return [item for batch in batches for item in batch], latest, each

        flat, latest, each = within(10, lambda main=main: asyncio.run(main()))  # type: ignore[misc]
        assert flat == each == list(range(200))
        assert latest[-1] == 199
        assert latest == sorted(set(latest))


def test_a_composed_view_of_two_views_gives_late_what_it_gave_live() -> None:
    """Text and values of one output, merged."""
    subject: Subject[Any] = Subject()
    output = MastraModelOutput(subject)

    def composed() -> Any:
        return rx.merge(
            output.text_stream.pipe(rxops.map(lambda piece: ("text", piece))),
            output.full_stream.pipe(rxops.map(lambda chunk: ("chunk", chunk.type))),
            output.tool_pairs.pipe(rxops.map(lambda pair: ("pair", pair.id))),
        )

    live: list[Any] = []
    composed().subscribe(live.append)
    for chunk in HELLO:
        subject.on_next(chunk)
    subject.on_completed()
    assert live == [
        ("text", "Hel"),
        ("chunk", "text-delta"),
        ("text", "lo"),
        ("chunk", "text-delta"),
        ("chunk", "finish"),
    ]
    assert list(mx.as_view(composed())) == live
    assert asyncio.run(collected(mx.as_view(composed()))) == live
