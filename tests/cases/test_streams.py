"""Faults of hot streams: readers that disturb each other, what is cancelled and what is not, what is kept in memory."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
import time
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as rxops
from reactivex.disposable import Disposable
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import (
    ABORT,
    START,
    VALUES,
    Seen,
    finish,
    of_a_server,
    one_by_one,
    output_of,
    sse,
    text,
    tool_call,
    tool_error,
    tool_result,
)


def hot() -> tuple[Subject[Any], mx.MastraModelOutput[Any]]:
    feed: Subject[Any] = Subject()
    return feed, mx.MastraModelOutput(feed)


# ---- readers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", ["dispose", "take", "raise", "first", "inside its own callback"])
def test_a_reader_that_leaves_leaves_alone(leaves: str) -> None:
    """B088: cancelling one consumer detaches all others."""
    feed, output = hot()
    before, gone = Seen(output.full_stream), Seen()
    stream: Any = output.full_stream

    def take_two(chunk: Any) -> None:
        gone.items.append(chunk)
        if len(gone.items) == 2:
            if leaves == "raise":
                raise RuntimeError("no more")
            if leaves == "inside its own callback":
                subscription.dispose()

    if leaves in ("take", "first"):
        stream = stream.pipe(rxops.take(2))
    subscription = stream.subscribe(take_two, gone.errors.append)
    after = Seen(output.full_stream)
    feed.on_next(text("1"))
    feed.on_next(text("2"))
    if leaves == "dispose":
        subscription.dispose()
    for chunk in (text("3"), text("4"), text("5"), finish()):
        feed.on_next(chunk)
    feed.on_completed()
    assert len(gone.items) == 2
    for other in (before, after):
        assert [chunk.text for chunk in other.items[:-1]] == list("12345")
        assert (other.errors, other.completed) == ([], 1)
    assert output.text.run() == "12345"


def test_the_source_is_connected_once() -> None:
    """B090: `replay().ref_count()` reconnects when the count drops to 0, and after completion."""
    connections = 0
    feed: Subject[Any] = Subject()

    def connect(observer: Any, scheduler: Any = None) -> Any:
        nonlocal connections
        connections += 1
        return feed.subscribe(observer)

    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(rx.create(connect))
    assert connections == 0
    first = output.text_stream.pipe(rxops.take(1)).subscribe(lambda _: None)
    feed.on_next(text("1"))
    first.dispose()
    feed.on_next(text("2"))
    second = Seen(output.text_stream)
    feed.on_next(text("3"))
    feed.on_next(finish())
    feed.on_completed()
    third = Seen(output.text_stream)
    assert second.items == third.items == ["1", "2", "3"]
    assert output.text.run() == "123"
    assert connections == 1


@pytest.mark.parametrize("name", ["full_stream", "text_stream", "tool_pairs", "tool_runs", "object_stream"])
def test_a_late_reader_gets_everything(name: str) -> None:
    """B091: a late or second subscriber gets nothing."""
    chunks = [START, text("a"), tool_call("c1", {}), tool_result("c1", 1), {"type": "object", "object": {"a": 1}}]
    output = output_of(*chunks, finish())
    early = Seen(getattr(output, name))
    assert early.items
    for _ in range(2):
        late = Seen(getattr(output, name))
        assert (late.items, late.errors, late.completed) == (early.items, [], 1)


@pytest.mark.parametrize("late", range(4))
def test_a_reader_may_come_at_any_chunk(late: int) -> None:
    """B091: whatever had come when it subscribed, without gap or repeat."""
    feed, output = hot()
    Seen(output.full_stream)
    seen = Seen()
    for at, chunk in enumerate([text("a"), text("b"), text("c"), finish()]):
        if at == late:
            seen.subscribe(output.text_stream)
        feed.on_next(chunk)
    assert seen.items == ["a", "b", "c"]


def test_a_chunk_pushed_from_a_callback_comes_after_its_cause() -> None:
    """B093: re-entrant emission reorders items for later subscribers."""
    feed, output = hot()
    readers = [Seen()]

    def reply(chunk: Any) -> None:
        readers[0].items.append(chunk)
        if chunk.type == "tool-call":
            feed.on_next(tool_result("c1", "reply"))
            feed.on_next(text("then"))

    output.full_stream.subscribe(reply)
    readers += [Seen(output.full_stream), Seen(output.full_stream)]
    feed.on_next(tool_call("c1", {}))
    feed.on_next(finish())
    assert [seen.types for seen in readers] == [["tool-call", "tool-result", "text-delta", "finish"]] * 3


def test_a_reader_that_subscribes_in_a_callback_is_in_order_too() -> None:
    """B093: nor does a subscription made inside a callback see anything twice, or late."""
    feed, output = hot()
    inner = Seen()

    def subscribe_once(piece: str) -> None:
        if piece == "b":
            inner.subscribe(output.text_stream)

    output.text_stream.subscribe(subscribe_once)
    for piece in "abc":
        feed.on_next(text(piece))
    assert inner.items == ["a", "b", "c"]


@pytest.mark.parametrize("readers", [1, 3])
def test_a_long_replay_is_in_order_and_not_deep(readers: int) -> None:
    """B094: replay through the current-thread scheduler recurses, or races."""
    output = output_of(*[text(str(at)) for at in range(20_000)], finish())
    output.text.run()
    for _ in range(readers):
        seen = Seen(output.text_stream)
        assert seen.items == [str(at) for at in range(20_000)]
        assert seen.completed == 1


# ---- awaiting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["text", "usage", "steps", "finish_reason"])
def test_awaiting_before_the_first_chunk_does_not_block_the_loop(name: str) -> None:
    """B096: awaiting a view that has no value yet, where the loop's thread is the producer."""

    async def main() -> Any:
        chunks: asyncio.Queue[Any] = asyncio.Queue()

        async def source() -> Any:
            while (chunk := await chunks.get()) is not None:
                yield chunk

        output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(source())
        waiting = asyncio.ensure_future(getattr(output, name))
        for chunk in (text("Hi"), finish(), None):
            await asyncio.sleep(0)
            assert not waiting.done()
            chunks.put_nowait(chunk)
        return await asyncio.wait_for(waiting, 5)

    expected = {"text": "Hi", "finish_reason": "stop", "steps": []}
    value = asyncio.run(main())
    assert value == expected.get(name, value)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_value_needs_no_reader(name: str, kind: str) -> None:
    """B097: result promises only settle if someone reads the stream."""
    chunks = [START, text("Hi"), finish()]
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(chunks if kind == "sync" else one_by_one(chunks))

    async def main() -> Any:
        return await asyncio.wait_for(getattr(output, name)._last(), 5)

    asyncio.run(main())
    assert output.status == "success"


# ---- cancelling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VALUES)
def test_dispose_releases_who_waits(name: str) -> None:
    """B113: awaitables hang after an abort in the middle of a stream."""
    feed, output = hot()
    waiting, stream = Seen(getattr(output, name)), Seen(output.full_stream)
    feed.on_next(START)
    feed.on_next(text("par"))
    output.dispose()
    output.dispose()
    assert [type(error) for error in waiting.errors] == [mx.StreamDisposed]
    assert (waiting.items, waiting.completed) == ([], 0)
    assert (stream.types, stream.errors, stream.completed) == (["start", "text-delta"], [], 1)
    assert not feed.observers, "the source is left"
    feed.on_next(text("late"))
    assert len(stream.items) == 2
    with pytest.raises(mx.StreamDisposed):
        getattr(output, name).run()


def test_what_came_before_dispose_is_in_partial() -> None:
    """B113: the partial text is reachable."""
    feed, output = hot()
    waiting = Seen(output.text)
    feed.on_next(text("par"))
    output.dispose()
    (error,) = waiting.errors
    assert isinstance(error, mx.StreamDisposed)
    assert error.partial.text == "par"
    assert output.get_full_output().run().text == "par"


def test_dispose_ends_an_open_await_and_closes_the_source() -> None:
    """B113: the server keeps the socket open; the one who waits is released all the same."""

    async def main() -> list[str]:
        told: list[str] = []
        never = asyncio.Event()

        async def source() -> Any:
            try:
                yield text("par")
                await never.wait()
            finally:
                told.append("closed")

        output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(source())
        pieces = aiter(output.text_stream)
        assert await anext(pieces) == "par"
        waiting = [asyncio.ensure_future(view) for view in (output.text, output.steps, output.usage)]
        await asyncio.sleep(0)
        output.dispose()
        results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
        told += [type(result).__name__ for result in results]
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(pieces), 5)
        return told

    assert sorted(asyncio.run(main())) == ["StreamDisposed"] * 3 + ["closed"]


@pytest.mark.parametrize("kind", ["sync", "async", "observable"])
def test_a_source_that_cannot_be_closed_is_logged_once(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """B115: the cancellation itself fails and nobody observes it, or it is raised into something unrelated."""

    class Iterate:
        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            return text("a")

        def close(self) -> None:
            raise OSError("cannot close")

    class IterateLater:
        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            await asyncio.sleep(0)
            return text("a")

        async def aclose(self) -> None:
            raise OSError("cannot close")

    def fail() -> None:
        raise OSError("cannot close")

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        observer.on_next(text("a"))
        return Disposable(fail)

    source = {"sync": Iterate(), "async": IterateLater(), "observable": rx.create(subscribe)}[kind]

    async def main() -> None:
        output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(source)
        pieces = aiter(output.text_stream)
        assert await anext(pieces) == "a"
        output.dispose()
        with pytest.raises(mx.StreamDisposed):
            await output.text
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == ["closing the source failed"]


@pytest.mark.parametrize("ending", [[ABORT], [ABORT, finish("tripwire")], [{"type": "abort"}]])
@pytest.mark.parametrize("source", ["list", "bytes"])
def test_an_abort_chunk_is_an_end(ending: list[Any], source: str) -> None:
    """B116: the abort chunk is unhandled. (That dispose() closes an HTTP response is tested with that source.)"""
    chunks = [text("a"), *ending]
    output: Any = mx.MastraModelOutput(chunks if source == "list" else mx.from_bytes([sse(*chunks, done=False)]))
    seen = Seen(output.text_stream)
    assert (seen.items, seen.errors, seen.completed) == (["a"], [], 1)
    assert (output.status, output.finish_reason.run(), output.error) == ("canceled", "aborted", None)
    assert output.tripwire is None, "an aborted run finishes with the reason `tripwire`"


@pytest.mark.parametrize("leaves", ["aclose", "del", "break", "cancel"])
def test_an_abandoned_iteration_unsubscribes(leaves: str) -> None:
    """B118: observable -> asynchronous generator never disposes when it is abandoned."""
    disposed: list[str] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        observer.on_next(1)
        return Disposable(lambda: disposed.append(leaves))

    async def main() -> None:
        view: mx.View[Any] = mx.as_view(rx.create(subscribe))
        if leaves == "break":
            async for _ in view:
                break
        elif leaves == "cancel":

            async def read() -> None:
                async for _ in view:
                    pass

            task = asyncio.ensure_future(read())
            while not task._fut_waiter:  # type: ignore[attr-defined]  # until it waits for a second value
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            del task
        else:
            pieces = aiter(view)
            assert await anext(pieces) == 1
            if leaves == "aclose":
                await pieces.aclose()  # type: ignore[attr-defined]
            del pieces
        gc.collect()
        assert disposed == [leaves]

    asyncio.run(main())


def test_an_abandoned_await_unsubscribes() -> None:
    """B118: the same for `await`."""
    disposed: list[int] = []
    never: Any = rx.create(lambda observer, scheduler=None: Disposable(lambda: disposed.append(1)))

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(mx.as_view(never)._last(), 0)
        waiting = asyncio.ensure_future(mx.as_view(never))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert disposed[-1:] == [1]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_source_is_finalised_when_it_is_stopped(kind: str) -> None:
    """B119: a source's generator is not finalised on an early stop."""
    closed = threading.Event()

    def generator() -> Iterator[Any]:
        try:
            while True:
                yield text("a")
        finally:
            closed.set()

    async def endless() -> Any:
        try:
            while True:
                await asyncio.sleep(0)
                yield text("a")
        finally:
            closed.set()

    async def main() -> None:
        chunks = mx.from_chunks(generator() if kind == "sync" else endless())
        taken = [chunk.text async for chunk in mx.as_view(chunks.pipe(rxops.take(2)))]
        assert taken == ["a", "a"]
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert closed.is_set()

        closed.clear()
        output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(generator() if kind == "sync" else endless())
        await output.text_stream.pipe(rxops.take(2))
        # Of a run, one reader that stops does not stop the source, whether others read or not; dispose() does.
        assert not closed.is_set()
        output.dispose()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert closed.is_set()

    asyncio.run(main())


def test_no_unsubscription_is_lost_between_threads() -> None:
    """B121: dispose actions are lost under two threads."""
    feed, output = hot()
    Seen(output.full_stream)
    disposed = [0, 0]
    failures: list[BaseException] = []
    start = threading.Barrier(3)

    def churn(me: int) -> None:
        def leave() -> None:
            disposed[me] += 1

        try:
            start.wait()
            for _ in range(2_500):
                output.full_stream.pipe(rxops.finally_action(leave)).subscribe(lambda _: None).dispose()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=churn, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    start.wait()
    for _ in range(200):
        feed.on_next(text("a"))
    for thread in threads:
        thread.join()
    assert not failures
    assert disposed == [2_500, 2_500]
    feed.on_next(finish())
    assert len(output._stream._readers) == 1, "only the one that stayed"


@pytest.mark.parametrize("of", [dict, of_a_server])
def test_an_abort_in_a_tool_is_no_success(of: Any) -> None:
    """B122: an abort during a tool step returns a partial success."""
    chunks = [tool_call("c1", {}), ABORT, tool_error("c1", {"message": "aborted"}), finish("tripwire")]
    output = output_of(*[of(chunk) for chunk in chunks])
    assert output.finish_reason.run() == "aborted"
    assert output.status == "canceled"
    assert [pair.state for pair in output.tool_pairs] == ["error"]


def test_dispose_in_a_tool_is_no_success() -> None:
    """B122: the same where we stop the run; what the tool says afterwards is not heard."""
    feed, output = hot()
    pairs, waiting = Seen(output.tool_pairs), Seen(output.text)
    feed.on_next(tool_call("c1", {}))
    output.dispose()
    feed.on_next(tool_error("c1", {"message": "aborted"}))
    assert [pair.state for pair in pairs.items] == ["unresolved"]
    assert [type(error) for error in waiting.errors] == [mx.StreamDisposed]
    assert output.status == "canceled"


# ---- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["finish", "dispose", "dropped while it runs", "error"])
def test_a_run_that_is_dropped_is_gone(ends: str) -> None:
    """B124: every chunk is kept after the stream ended and its session was dropped."""
    ending = [{"type": "error", "payload": {"error": "x"}}] if ends == "error" else [finish()]
    output = output_of(*[text("x" * 100) for _ in range(100)], *ending)
    for name in ("full_stream", "text_stream", "tool_runs", "text", "steps"):
        Seen(getattr(output, name))
    if ends == "dropped while it runs":
        feed, output = hot()
        Seen(output.text_stream)
        Seen(output.text)
        feed.on_next(text("a"))
        del feed
    if ends == "dispose":
        output.dispose()
    gone = [weakref.ref(output), weakref.ref(output._stream), weakref.ref(output._run)]
    del output
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None]


def weight_of_views(*names: str) -> int:
    lines = [json.dumps(of_a_server(text(f"{at:06} some words"))).encode() for at in range(10_000)]
    gc.collect()
    tracemalloc.start()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(lines)
    for name in names:
        getattr(output, name).subscribe(lambda _: None)
    weight = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert output._stream.position == 10_000
    return weight


def test_there_is_one_buffer_for_all_views() -> None:
    """B124: not one a view."""
    one = weight_of_views("full_stream")
    all_of_them = weight_of_views("full_stream", "text_stream", "reasoning_stream", "tool_pairs", "tool_runs", "steps")
    assert all_of_them < 1.2 * one


def test_operators_keep_nothing() -> None:
    """B126: an unread branch retains everything.

    A run keeps what it must be able to replay. Who wants only what passes by composes operators on the source.
    """
    block = "x" * 100_000
    source = (text(block + str(at)) for at in range(200))
    tracemalloc.start()
    total = 0

    def count(piece: str) -> None:
        nonlocal total
        total += len(piece)

    mx.from_chunks(source).pipe(ops.text_deltas()).subscribe(count)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 20_000_000
    assert peak < 2_000_000


def test_history_bounds_what_is_kept_for_late_readers() -> None:
    """B126: with `history=n` the log stays short, values stay exact, and a late reader is told what it missed."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput([*[text("ab")] * 20_000, finish()], history=100)
    live = Seen(output.text_stream)
    assert len(live.items) == 20_000
    assert len(output._stream.so_far) < 200
    late = Seen(output.full_stream)
    assert late.items[0].type == "history-gap"
    assert late.items[0].missed + len(late.items) - 1 == 20_001
    assert output.text.run() == "ab" * 20_000


def test_a_piece_of_text_is_a_piece() -> None:
    """B127: a full copy of the accumulated text is made for every chunk."""
    pieces = [f"{at:08}" for at in range(13_000)]
    output = output_of(*[text(piece) for piece in pieces], finish())
    assert list(output.text_stream) == pieces
    assert output.text.run() == "".join(pieces)
    assert output.text.run() is not None


def test_large_results_among_small_deltas_cost_their_own_size() -> None:
    """B129: re-serialising the full context for every chunk is quadratic."""
    result = "r" * (512 * 1024)
    chunks = [
        chunk
        for at in range(49)
        for chunk in [*[text("a")] * 102, tool_call(f"c{at}", {}), tool_result(f"c{at}", result)]
    ]
    data = sse(*[of_a_server(chunk) for chunk in chunks], of_a_server(finish()))
    reads = [data[at : at + 16_384] for at in range(0, len(data), 16_384)]
    start = time.perf_counter()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(mx.from_bytes(reads))
    seen, pairs = Seen(output.full_stream), Seen(output.tool_pairs)
    assert len(output.text.run()) == 49 * 102
    assert time.perf_counter() - start < 5, "copying 25 MB for each of 5,000 chunks takes minutes"
    assert len(seen.items) == len(chunks) + 1
    assert [len(pair.result) for pair in pairs.items] == [len(result)] * 49


# ---- back-pressure ---------------------------------------------------------------------------------------------------


async def pull(view: mx.View[Any], feed: Subject[Any], how: str) -> list[Any]:
    pulled = aiter(view.latest() if how == "latest" else view.batches(0))
    got = []
    waiting = asyncio.ensure_future(anext(pulled))
    await asyncio.sleep(0)
    feed.on_next(text("0"))
    got.append(await waiting)
    for at in range(1, 5_000):
        feed.on_next(text(str(at)))
    got.append(await anext(pulled))
    feed.on_next(finish())
    feed.on_completed()
    return got + [value async for value in pulled]


def test_a_slow_reader_may_want_the_newest_only() -> None:
    """B130: no back-pressure in RxPY; the policy is the reader's, and explicit.

    How many were dropped is not counted for `latest()`: every value replaces the one before. Where chunks are gone that
    a reader wanted, a `HistoryGap` says how many.
    """
    feed, output = hot()
    assert asyncio.run(pull(output.text_stream, feed, "latest")) == ["0", "4999"]


def test_a_slow_reader_may_want_all_at_once() -> None:
    """B130: nothing is dropped, and what came together is handled together."""
    feed, output = hot()
    batches = asyncio.run(pull(output.text_stream, feed, "batches"))
    assert [len(batch) for batch in batches] == [1, 4_999]
    assert [piece for batch in batches for piece in batch] == [str(at) for at in range(5_000)]


def test_who_pulls_from_a_source_that_can_wait_lets_it_wait() -> None:
    """B130: a `for` loop fetches no more than it needs."""
    fetched = 0

    def source() -> Iterator[Any]:
        nonlocal fetched
        for at in range(50_000):
            fetched += 1
            yield text(str(at))

    for piece in mx.MastraModelOutput(source()).text_stream:
        if piece == "10":
            break
    assert fetched <= 12
