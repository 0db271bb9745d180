"""How a run can end: the table "Endings", a row a test, for streams, values and the full output; early and late."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex.subject import Subject

import mastra_rx as mx
from mastra_rx import (
    AgentError,
    MastraModelOutput,
    OutputValidationError,
    SourceError,
    StreamDisposed,
    StreamInterrupted,
    View,
)
from tests.cases.wire import STREAMS, VALUES
from tests.conftest import Recording, recordings


def delta(text: str) -> dict[str, Any]:
    return {"type": "text-delta", "runId": "r1", "payload": {"id": "1", "text": text}}


FINISH = {"type": "finish", "payload": {"stepResult": {"reason": "stop"}}}
STEP_FINISH = {
    "type": "step-finish",
    "payload": {"stepResult": {"reason": "stop"}, "output": {"usage": {"inputTokens": 3}}},
}
ERROR = {"type": "error", "payload": {"error": {"name": "APICallError", "message": "overloaded", "code": 529}}}


def result(value: Any) -> dict[str, Any]:
    return {"type": "object-result", "object": value}


class Live:
    """An output that the test feeds, and what its views have said so far: `early` subscribed before the start."""

    def __init__(self, **options: Any) -> None:
        self.source: Subject[Any] = Subject()
        self.output: MastraModelOutput[Any] = MastraModelOutput(self.source, **options)
        self.early = self.subscribe()

    def subscribe(self) -> dict[str, list[Any]]:
        said: dict[str, list[Any]] = {}
        for name in [*STREAMS, *VALUES, "get_full_output"]:
            view = getattr(self.output, name)
            view = view() if callable(view) else view
            seen = said[name] = []
            view.subscribe(seen.append, seen.append, lambda seen=seen: seen.append("done"))
        return said

    def feed(self, *chunks: Any) -> Live:
        for chunk in chunks:
            self.source.on_next(chunk)
        return self

    def close(self) -> Live:
        self.source.on_completed()
        return self

    @property
    def both(self) -> list[dict[str, list[Any]]]:
        """What early and late subscribers were told."""
        return [self.early, self.subscribe()]


def types(seen: list[Any]) -> list[str]:
    return [chunk if isinstance(chunk, str) else chunk.type for chunk in seen]


def assert_all_values_raise(said: dict[str, list[Any]], error: type[Exception], *, but: tuple[str, ...] = ()) -> None:
    for name in VALUES:
        if name not in but:
            assert [type(outcome) for outcome in said[name]] == [error], name


def assert_streams_complete(said: dict[str, list[Any]]) -> None:
    assert {name: said[name][-1] for name in STREAMS} == dict.fromkeys(STREAMS, "done")
    assert all("done" not in said[name][:-1] for name in STREAMS)


# ---- finish ----------------------------------------------------------------------------------------------------------


def test_finish() -> None:
    run = Live().feed(delta("Hel"), delta("lo"), STEP_FINISH, FINISH)
    assert run.early["text"] == []
    run.close()
    for said in run.both:
        assert said["text_stream"] == ["Hel", "lo", "done"]
        assert said["text"] == ["Hello", "done"]
        assert said["finish_reason"] == ["stop", "done"]
        assert_streams_complete(said)
        assert all(len(said[name]) == 2 and said[name][-1] == "done" for name in VALUES)
        full, done = said["get_full_output"]
        assert (full.text, full.usage.input_tokens, full.status, full.error, done) == (
            "Hello",
            3,
            "success",
            None,
            "done",
        )
    assert (run.output.status, run.output.error, run.output.run_id) == ("success", None, "r1")


# ---- an error chunk --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", [[], [delta("!")], [delta("!"), FINISH]], ids=["alone", "goes on", "then finish"])
def test_an_error_chunk(rest: list[Any]) -> None:
    run = Live().feed(delta("Hel"), STEP_FINISH, ERROR)
    assert_all_values_raise(run.early, AgentError)  # at once: nobody waits for the source to close
    assert "done" not in run.early["full_stream"]
    assert_all_values_raise(run.subscribe(), AgentError)
    run.feed(*rest).close()
    for said in run.both:
        assert types(said["full_stream"]) == ["text-delta", "step-finish", "error", *types_of(rest), "done"]
        assert_streams_complete(said)
        assert_all_values_raise(said, AgentError)
        error = said["text"][0]
        assert (error.message, error.name, error.code, str(error)) == (
            "overloaded",
            "APICallError",
            "529",
            "overloaded",
        )
        assert error.partial.text == "Hel"
        (full, _) = said["get_full_output"]
        assert full.error is error
        assert full.text == "Hel"
    assert run.output.error is run.early["text"][0]
    assert run.output.status == "failed"


def types_of(chunks: list[Any]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


def test_values_of_an_error_chunk_settle_before_the_readers_get_the_chunk() -> None:
    run = Live()
    order: list[str] = []
    run.output.text.subscribe(None, lambda _: order.append("text"))
    run.output.full_stream.subscribe(lambda chunk: order.append(chunk.type))
    run.feed(ERROR)
    assert order == ["text", "error"]


# ---- the source fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finished", [False, True])
def test_the_source_fails(finished: bool) -> None:
    cause = ConnectionError("socket hang up")
    run = Live().feed(delta("Hel"), STEP_FINISH, *([FINISH] if finished else []))
    run.source.on_error(cause)
    for said in run.both:
        *chunks, error = said["full_stream"]
        assert types(chunks) == ["text-delta", "step-finish", *(["finish"] if finished else [])]
        assert type(error) is SourceError
        assert error.__cause__ is cause
        assert "socket hang up" in str(error)
        assert all(said[name][-1] is error for name in STREAMS)
        assert all(said[name] == [error] for name in VALUES)
        assert error.partial.text == "Hel"
        full, done = said["get_full_output"]
        assert (full.text, full.error, done) == ("Hel", error, "done")
    assert run.output.status == "failed"


def test_a_chunk_that_is_none_fails_the_run_after_all_that_came_before() -> None:
    run = Live().feed(delta("Hel"), "{not json")
    for said in run.both:
        assert said["text_stream"][0] == "Hel"
        assert type(said["text_stream"][1]) is mx.ChunkDecodeError
        assert_all_values_raise(said, mx.ChunkDecodeError)


# ---- the source closes without `finish` ------------------------------------------------------------------------------


def test_the_source_closes_without_finish() -> None:
    run = Live().feed(delta("Hel"), STEP_FINISH, result({"a": 1})).close()
    for said in run.both:
        assert_streams_complete(said)
        assert_all_values_raise(said, StreamInterrupted, but=("object",))
        assert said["object"] == [{"a": 1}, "done"]
        assert said["text"][0].partial.text == "Hel"
        full, _ = said["get_full_output"]
        assert (full.text, type(full.error)) == ("Hel", StreamInterrupted)
    assert type(run.output.error) is StreamInterrupted


def test_an_empty_source() -> None:
    run = Live().close()
    for said in run.both:
        assert all(said[name] == ["done"] for name in STREAMS)
        assert_all_values_raise(said, StreamInterrupted, but=("object",))
        assert said["object"] == [None, "done"]


@pytest.mark.parametrize("start", [b"data: %s\n\n", b"%s\x1e"], ids=["sse", "records"])
def test_bytes_that_break_off(start: bytes) -> None:
    """Neither a terminal chunk nor `[DONE]`: the streams are told too."""
    text = b'{"type":"text-delta","payload":{"id":"1","text":"Hel"}}'
    output = MastraModelOutput(mx.from_bytes([start % text]))
    seen: list[Any] = []
    output.text_stream.subscribe(seen.append, seen.append)
    assert seen[0] == "Hel"
    assert type(seen[1]) is StreamInterrupted
    with pytest.raises(StreamInterrupted):
        output.text.run()
    assert type(output.get_full_output().run().error) is StreamInterrupted


# ---- abort, tripwire, suspension -------------------------------------------------------------------------------------


@pytest.mark.parametrize("finish", [[], [FINISH]], ids=["closes", "then finish"])
def test_abort(finish: list[Any]) -> None:
    run = Live().feed(delta("Hel"), {"type": "abort", "payload": {}}, *finish).close()
    for said in run.both:
        assert_streams_complete(said)
        assert said["text"] == ["Hel", "done"]
        assert said["finish_reason"] == ["aborted", "done"]
        full, _ = said["get_full_output"]
        assert (full.status, full.finish_reason, full.error) == ("canceled", "aborted", None)
    assert (run.output.status, run.output.error) == ("canceled", None)


def test_a_tripwire_ends_the_run_at_once() -> None:
    tripwire = {"type": "tripwire", "payload": {"reason": "blocked", "retry": False, "metadata": {"k": 1}}}
    run = Live().feed(delta("Hel"), tripwire, delta("never"))
    for said in run.both:  # the source has not closed
        assert types(said["full_stream"]) == ["text-delta", "tripwire", "done"]
        assert said["text_stream"] == ["Hel", "done"]
        assert_streams_complete(said)
        assert said["text"] == ["Hel", "done"]
        assert said["finish_reason"] == ["other", "done"]
        full, _ = said["get_full_output"]
        assert (full.tripwire, full.error) == (run.output.tripwire, None)
    assert run.output.tripwire == mx.Tripwire("blocked", False, {"k": 1})
    assert run.source.observers == []


@pytest.mark.parametrize("kind", ["tool-call-approval", "tool-call-suspended"])
def test_a_suspended_run(kind: str) -> None:
    payload = {"toolCallId": "c1", "toolName": "pay", "args": {"sum": 5}, "resumeSchema": "{}"}
    run = Live().feed(delta("May I?"), {"type": kind, "payload": payload}).close()
    for said in run.both:
        assert_streams_complete(said)
        assert said["finish_reason"] == ["suspended", "done"]
        assert said["suspend_payload"][0].tool_call_id == "c1"
        assert said["resume_schema"] == ["{}", "done"]
        full, _ = said["get_full_output"]
        assert (full.status, full.error) == ("suspended", None)
        assert [pair.outcome if hasattr(pair, "outcome") else pair for pair in said["tool_pairs"]][-1] == "done"
    assert run.output.status == "suspended"


# ---- an object that does not fit -------------------------------------------------------------------------------------

MISFIT = [delta("[1]"), result([1, "x", 3]), STEP_FINISH, FINISH]


def test_a_misfit_strict() -> None:
    run = Live(schema=list[int]).feed(*MISFIT).close()
    for said in run.both:
        assert_streams_complete({**said, "element_stream": ["done"]})
        assert said["element_stream"][0] == 1
        misfit = said["element_stream"][1]
        assert isinstance(misfit, OutputValidationError)
        assert (misfit.index, misfit.value) == (1, "x")
        (error,) = said["object"]
        assert isinstance(error, OutputValidationError)
        assert error.value == [1, "x", 3]
        assert error.errors
        assert said["text"] == ["[1]", "done"]
        assert all(said[name][-1] == "done" for name in VALUES if name != "object")
        full, _ = said["get_full_output"]
        assert (full.error, full.object) == (error, None)


def test_a_misfit_warn(caplog: pytest.LogCaptureFixture) -> None:
    run = Live(schema=list[int], error_strategy="warn").feed(*MISFIT).close()
    for said in run.both:
        assert said["object"] == [None, "done"]
        assert said["element_stream"] == [1, 3, "done"]
        assert said["get_full_output"][0].error is None
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_misfit_fallback(caplog: pytest.LogCaptureFixture) -> None:
    run = Live(schema=list[int], error_strategy="fallback", fallback=[0]).feed(*MISFIT).close()
    for said in run.both:
        assert said["object"] == [[0], "done"]
        full, _ = said["get_full_output"]
        assert (full.object, full.used_fallback_value, full.error) == ([0], True, None)
    assert run.output.used_fallback_value


# ---- dispose ---------------------------------------------------------------------------------------------------------


def test_dispose() -> None:
    run = Live().feed(delta("Hel"), STEP_FINISH)
    run.output.dispose()
    run.output.dispose()
    run.feed(delta("never"))
    for said in run.both:
        assert said["text_stream"] == ["Hel", "done"]
        assert_streams_complete(said)
        assert_all_values_raise(said, StreamDisposed)
        assert said["text"][0].partial.text == "Hel"
        full, _ = said["get_full_output"]
        assert (full.text, type(full.error)) == ("Hel", StreamDisposed)
    assert run.source.observers == []


def test_dispose_before_the_start_never_opens_the_source() -> None:
    opened: list[str] = []

    def source() -> Iterator[Any]:
        opened.append("opened")
        yield FINISH

    with MastraModelOutput(source()) as output:
        pass
    assert list(output.text_stream) == []
    with pytest.raises(StreamDisposed):
        output.text.run()
    assert opened == []


@pytest.mark.parametrize(("chunks", "text"), [([delta("Hel"), FINISH], "Hel"), ([delta("Hel"), ERROR], None)])
def test_dispose_after_the_outcome_is_known_does_not_change_it(chunks: list[Any], text: str | None) -> None:
    run = Live().feed(*chunks)
    run.output.dispose()
    for said in run.both:
        if text is None:
            assert_all_values_raise(said, AgentError)
        else:
            assert said["text"] == [text, "done"]


def test_dispose_closes_a_sync_generator() -> None:
    closed: list[str] = []

    def source() -> Iterator[Any]:
        try:
            while True:
                yield delta("x")
        finally:
            closed.append("closed")

    output = MastraModelOutput(source())
    for _ in output.text_stream:
        output.dispose()
    assert closed == ["closed"]


def test_dispose_inside_a_callback_closes_a_sync_generator() -> None:
    closed: list[str] = []

    def source() -> Iterator[Any]:
        try:
            while True:
                yield delta("x")
        finally:
            closed.append("closed")

    output = MastraModelOutput(source())
    output.text_stream.subscribe(lambda _: output.dispose())
    assert closed == ["closed"]


def test_dispose_closes_a_sync_generator_that_another_thread_waits_for() -> None:
    """It cannot be closed while it runs; it is as soon as it gives or returns something."""
    waiting, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def source() -> Iterator[Any]:
        try:
            yield delta("a")
            waiting.set()
            assert go_on.wait(10)
            yield delta("b")
        finally:
            closed.set()

    output = MastraModelOutput(source())
    seen: list[str] = []
    completed = threading.Event()
    thread = threading.Thread(target=lambda: output.text_stream.subscribe(seen.append, on_completed=completed.set))
    thread.start()
    assert waiting.wait(10)
    output.dispose()
    assert completed.wait(10)  # readers are released at once
    go_on.set()
    thread.join(10)
    assert seen == ["a"]
    assert closed.is_set()


class AsyncSource:
    """An asynchronous source that waits for ever after its chunks, and takes a turn of the loop to close."""

    def __init__(self, *, waits: bool = True) -> None:
        self.waits = waits
        self.reached, self.closed = threading.Event(), threading.Event()

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            yield delta("a")
            yield delta("b")
            self.reached.set()
            if self.waits:
                await asyncio.get_running_loop().create_future()
            while True:
                yield delta("x")
        finally:
            await asyncio.sleep(0)
            self.closed.set()


def test_dispose_closes_an_async_generator_on_the_running_loop() -> None:
    source = AsyncSource()

    async def main() -> None:
        async with MastraModelOutput(source) as output:
            waiting = asyncio.ensure_future(output.text)  # type: ignore[arg-type]
            async for piece in output.text_stream:
                if piece == "b":
                    break
        with pytest.raises(StreamDisposed):
            await asyncio.wait_for(waiting, 10)
        for _ in range(10):
            await asyncio.sleep(0)
        assert source.closed.is_set()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_dispose_closes_an_async_generator_on_our_own_loop() -> None:
    source = AsyncSource()
    output = MastraModelOutput(source)
    released = threading.Event()
    output.text.subscribe(None, lambda _: released.set())
    assert source.reached.wait(10)
    output.dispose()
    assert released.wait(10)
    assert source.closed.wait(5)


@pytest.mark.parametrize("bare", [True, False], ids=["generator", "iterable"])
@pytest.mark.parametrize("waits", [True, False], ids=["waiting source", "busy source"])
def test_dispose_inside_a_callback_closes_an_async_generator(waits: bool, bare: bool) -> None:
    """Its own clean-up is not cancelled."""
    source = AsyncSource(waits=waits)

    async def main() -> None:
        output = MastraModelOutput(aiter(source) if bare else source)
        output.text_stream.subscribe(lambda piece: output.dispose() if piece == "b" else None)
        for _ in range(20):
            await asyncio.sleep(0)
        assert source.closed.is_set()

    asyncio.run(main())


def test_dispose_of_another_thread_wakes_a_blocking_loop() -> None:
    output = MastraModelOutput(AsyncSource())
    pieces = iter(output.text_stream)
    assert [next(pieces), next(pieces)] == ["a", "b"]
    timer = threading.Timer(0.01, output.dispose)
    timer.start()
    assert list(pieces) == []
    timer.join()


def test_dispose_unsubscribes_from_an_observable_and_releases_every_waiter() -> None:
    left: list[str] = []
    source: rx.Observable[Any] = rx.create(lambda *_: rx.disposable.Disposable(lambda: left.append("left")))
    output = MastraModelOutput(source)

    async def main() -> list[Any]:
        waiters = [asyncio.ensure_future(getattr(output, name)) for name in VALUES]
        for _ in range(10):
            await asyncio.sleep(0)
        output.dispose()
        return await asyncio.wait_for(asyncio.gather(*waiters, return_exceptions=True), 10)

    assert [type(outcome) for outcome in asyncio.run(main())] == [StreamDisposed] * len(VALUES)
    assert left == ["left"]


def test_dispose_closes_an_iterable_that_has_a_close() -> None:
    """As responses of HTTP clients have."""

    class Response:
        closed = False

        def __iter__(self) -> Iterator[Any]:
            while True:
                yield delta("x")

        def close(self) -> None:
            self.closed = True

    response = Response()
    output = MastraModelOutput(response)
    for _ in output.text_stream:
        break
    assert not response.closed
    output.dispose()
    assert response.closed


def test_an_output_that_nobody_uses_leaves_nothing_behind() -> None:
    before = threading.active_count()
    output = MastraModelOutput(AsyncSource())
    assert output.full_stream is output.full_stream
    assert output.status == "running"
    del output
    gc.collect()
    assert threading.active_count() == before


# ---- consume_stream --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([delta("a"), FINISH], []),
        ([delta("a"), ERROR, FINISH], [AgentError]),
        ([delta("a"), ERROR], [AgentError]),
        (["nonsense"], [mx.ChunkDecodeError]),
        ([delta("a")], [StreamInterrupted]),
    ],
)
def test_consume_stream_drains_tells_and_never_raises(chunks: list[Any], expected: list[Any]) -> None:
    told: list[Exception] = []
    output = MastraModelOutput(chunks)
    assert output.consume_stream(told.append).run() is None
    assert [type(error) for error in told] == expected

    async def main() -> None:
        await MastraModelOutput(chunks).consume_stream(told.append)

    asyncio.run(main())
    assert [type(error) for error in told] == expected * 2


def test_consume_stream_with_an_on_error_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Exception) -> None:
        raise ValueError("mine")

    assert MastraModelOutput([ERROR]).consume_stream(fail).run() is None
    assert len(caplog.records) == 1


def test_consume_stream_starts_the_run() -> None:
    output = MastraModelOutput(iter([delta("a"), FINISH]))
    output.consume_stream()
    assert output.status == "success"


# ---- nobody changes what another gets --------------------------------------------------------------------------------


def boom(*_: Any) -> None:
    raise RuntimeError("a subscriber's own fault")


def told(output: MastraModelOutput[Any]) -> dict[str, Any]:
    """What every view of an output gives in the end, as plain data."""
    said: dict[str, Any] = {}
    for name in [*STREAMS, *VALUES, "get_full_output"]:
        view: Any = getattr(output, name)
        seen: list[Any] = []
        (view() if callable(view) else view).subscribe(seen.append, lambda error, seen=seen: seen.append(repr(error)))
        said[name] = [mx.to_wire(value) if not isinstance(value, Exception) else repr(value) for value in seen]
    return said


def test_no_failing_subscriber_changes_another_view(recording: Recording) -> None:
    expected = told(MastraModelOutput(recording.source()))
    source: Subject[Any] = Subject()
    output: MastraModelOutput[Any] = MastraModelOutput(source)
    for name in [*STREAMS, *VALUES]:
        view: View[Any] = getattr(output, name)
        view.subscribe(boom, boom, boom)
        view.subscribe(boom, lambda _: None)
        view.pipe().subscribe(boom, lambda _: None)
    try:
        for number, line in enumerate(recording.source()):
            source.on_next(line)
            if number % 7 == 0:
                output.full_stream.subscribe(boom, boom, boom)
    except ConnectionError as error:
        source.on_error(error)
    source.on_completed()
    assert told(output) == expected


ENDINGS = ["tool-one", "error-mid-stream", "tripwire-output-step", "object-array", "unit-tripwire-mid"]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ENDINGS), st.data())
def test_a_run_reduced_with_late_subscribers_at_any_position_is_the_run_reduced_as_a_whole(
    name: str, data: st.DataObject
) -> None:
    recording = Recording(name)
    expected = told(MastraModelOutput(recording.lines))
    positions = data.draw(st.sets(st.integers(0, len(recording.lines))))
    run = Live()
    late: list[dict[str, list[Any]]] = []
    for position, line in enumerate(recording.lines):
        if position in positions:
            late.append(run.subscribe())
        run.feed(line)
    run.close()
    late.append(run.subscribe())
    assert told(run.output) == expected
    assert all(plain(said) == plain(run.early) for said in late)


def plain(said: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {
        name: [repr(value) if isinstance(value, Exception) else mx.to_wire(value) for value in seen]
        for name, seen in said.items()
    }


@pytest.mark.parametrize("name", ENDINGS)
def test_late_subscribers_at_every_position(name: str) -> None:
    lines = Recording(name).lines
    run = Live()
    late: list[dict[str, list[Any]]] = []
    for line in lines:
        late.append(run.subscribe())
        run.feed(line)
    run.close()
    assert all(plain(said) == plain(run.early) for said in late)


def test_all_recordings_are_read_by_somebody() -> None:
    assert len(recordings()) > 100


# ---- history ---------------------------------------------------------------------------------------------------------


def test_history_gives_late_readers_a_marker_and_keeps_values_exact() -> None:
    run = Live(history=2).feed(*(delta(letter) for letter in "abcdef"), STEP_FINISH, FINISH).close()
    assert run.early["text_stream"] == [*"abcdef", "done"]
    late = run.subscribe()
    gap, *rest, done = late["full_stream"]
    assert isinstance(gap, mx.HistoryGap)
    assert gap.missed == 6
    assert (types(rest), done) == (["step-finish", "finish"], "done")
    assert late["text"] == ["abcdef", "done"]
    assert late["text_stream"] == ["done"]


def test_attributes_are_live() -> None:
    run = Live()
    seen: list[Any] = []
    run.output.full_stream.subscribe(lambda chunk: seen.append((chunk.type, run.output.status, run.output.run_id)))
    run.feed(delta("a"), {"type": "abort", "payload": {}}, FINISH).close()
    assert seen == [("text-delta", "running", "r1"), ("abort", "canceled", "r1"), ("finish", "canceled", "r1")]
