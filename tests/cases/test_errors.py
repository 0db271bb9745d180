"""Faults of error handling: errors that vanish, that replace each other, that hang those who wait; tripwires."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as rxops
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import Subject

import mastra_rx as mx
from tests.cases.wire import (
    ABORT,
    START,
    STEP_START,
    STREAMS,
    VALUES,
    Seen,
    error,
    finish,
    lines,
    of_a_server,
    one_by_one,
    output_of,
    sse,
    step_finish,
    text,
    then_raise,
    tool_call,
)

# ---- error chunks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VALUES)
def test_an_error_chunk_settles_every_value_at_once(name: str) -> None:
    """B098: the error chunk never closes the stream, and who waited before it waits for ever.

    The case ends the streams with the error. Here they give all that comes, the error chunk too, and complete when the
    source does; what fails at once are the values.
    """
    feed: Subject[Any] = Subject()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feed)
    early = Seen(getattr(output, name))
    full = Seen(output.full_stream)
    for chunk in (START, text("Hi"), error({"message": "429"})):
        feed.on_next(chunk)
    late = Seen(getattr(output, name))
    assert full.types == ["start", "text-delta", "error"]
    for seen in (early, late):
        assert [str(one) for one in seen.errors] == ["429"]
        assert all(isinstance(one, mx.AgentError) for one in seen.errors)
        assert seen.items == []
    assert early.errors == late.errors == [output.error]
    assert output.status == "failed"
    feed.on_next(finish("error"))
    feed.on_completed()
    assert (full.types[-1], full.errors, full.completed) == ("finish", [], 1)
    with pytest.raises(mx.AgentError, match="429"):
        getattr(output, name).run()


def test_an_error_chunk_wakes_who_awaits() -> None:
    """B098: the same with `await`, while the source stays open."""

    async def main() -> list[str]:
        never = asyncio.Event()

        async def source() -> Any:
            yield text("Hi")
            yield error({"message": "429"})
            await never.wait()

        output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(source())
        views = [getattr(output, name) for name in VALUES]
        results = await asyncio.wait_for(asyncio.gather(*views, return_exceptions=True), 5)
        output.dispose()
        return [str(result) for result in results]

    assert asyncio.run(main()) == ["429"] * len(VALUES)


WIRE_ERRORS = {
    "message": ({"message": "tool x not found"}, "tool x not found"),
    "text": ("tool x not found", "tool x not found"),
    "no message": ({"code": 1}, '{"code":1}'),
    "nothing": (None, "Unknown error chunk in stream"),
    "empty": ({}, "[object Object]"),
    "a number": (5, "Unknown error chunk in stream"),
}


@pytest.mark.parametrize(("wire", "message"), WIRE_ERRORS.values(), ids=WIRE_ERRORS)
@pytest.mark.parametrize(
    "then",
    [[], [finish("error")], [step_finish(None, "error"), finish("error")], [text("more")], [error("second")], [ABORT]],
    ids=["closes", "finishes", "steps and finishes", "goes on", "fails again", "aborts"],
)
def test_every_value_raises_the_real_error(wire: Any, message: str, then: list[Any]) -> None:
    """B100: a generic "promise not resolved" replaces the real error."""
    output = output_of(error(wire), *then)
    for name in VALUES:
        with pytest.raises(mx.AgentError) as raised:
            getattr(output, name).run()
        assert str(raised.value) == message, name
    full = output.get_full_output().run()
    assert isinstance(full.error, mx.AgentError)
    assert str(full.error) == message


@pytest.mark.parametrize("payload", [{}, {"payload": {}}, {"payload": None}], ids=["missing", "empty", "null"])
def test_an_error_chunk_that_says_nothing_is_an_error(payload: Any) -> None:
    """B100: whatever is missing in it."""
    output = output_of(START, {"type": "error", **payload})
    with pytest.raises(mx.AgentError, match="Unknown error"):
        output.text.run()
    assert output.status == "failed"


def test_the_error_keeps_what_the_wire_said() -> None:
    """B100: name, code, status, cause, and what had come until then."""
    wire = {"message": "no", "name": "APICallError", "code": "x", "statusCode": 429, "isRetryable": True}
    output = output_of(text("par"), step_finish(), error({**wire, "cause": {"message": "why"}}))
    with pytest.raises(mx.AgentError) as raised:
        output.text.run()
    it = raised.value
    assert (it.name, it.code, it.status_code, it.is_retryable) == ("APICallError", "x", 429, True)
    assert str(it.__cause__) == "why"
    assert it.partial.text == "par"
    assert len(it.partial.steps) == 1


def test_what_came_in_the_step_that_failed_is_in_partial() -> None:
    """B100: also the text of a step that did not close."""
    output = output_of(text("par"), error("x"))
    with pytest.raises(mx.AgentError) as raised:
        output.text.run()
    assert raised.value.partial.text == "par"


@pytest.mark.parametrize("raw", ["MALFORMED_FUNCTION_CALL", None])
def test_a_finish_whose_reason_is_error(raw: str | None) -> None:
    """B101: `finish` with the reason `error` and no payload.

    The case makes an error of it. Where no `error` chunk came, the run finished, as in Mastra 1.71.0; the reason
    says it, and the provider's own word is kept.
    """
    chunk = {"type": "finish", "payload": {"stepResult": {"reason": "error", "rawReason": raw}, "output": {}}}
    output = output_of(text("a"), chunk)
    assert output.finish_reason.run() == "error"
    assert output.text.run() == "a"
    last = list(output.full_stream)[-1]
    assert last.payload.step_result.raw_reason == raw


@pytest.mark.parametrize(
    "chunks",
    [[], [START], [START, STEP_START], [START, STEP_START, {"type": "response-metadata", "payload": {}}]],
    ids=len,
)
@pytest.mark.parametrize("source", ["list", "bytes", "async"])
def test_a_run_of_metadata_only_is_interrupted(chunks: list[Any], source: str) -> None:
    """B103: the provider's stream ends after metadata only: not the reason `other` with an empty text."""
    feeds = {"list": chunks, "async": one_by_one(chunks), "bytes": mx.from_bytes([lines(*chunks)], "jsonl")}
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feeds[source])
    for name in VALUES:
        if name == "object":
            continue  # resolves, as in Mastra
        with pytest.raises(mx.StreamInterrupted):
            getattr(output, name).run()


@pytest.mark.parametrize("chunks", [[], [START, STEP_START], [text("a")], [text("a"), step_finish()]], ids=len)
@pytest.mark.parametrize("kind", ["sync", "async", "observable"])
def test_a_source_that_fails_fails_every_view(chunks: list[Any], kind: str) -> None:
    """B103: or it errors there."""
    reason = ConnectionError("socket hang up")
    observable = rx.concat(rx.from_iterable(chunks), rx.throw(reason))
    feeds = {
        "sync": then_raise(chunks, reason),
        "async": one_by_one(then_raise(chunks, reason)),
        "observable": observable,
    }
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feeds[kind])
    for name in VALUES:
        with pytest.raises(mx.SourceError, match="socket hang up") as raised:
            getattr(output, name).run()
        assert raised.value.__cause__ is reason
    for name in STREAMS:
        seen = Seen(getattr(output, name))
        assert ([type(one) for one in seen.errors], seen.completed) == ([mx.SourceError], 0)
    assert output.status == "failed"


# ---- errors of those who listen --------------------------------------------------------------------------------------


@pytest.mark.parametrize("handler", [True, False], ids=["told", "logged"])
def test_a_callback_that_raises_hides_nothing(handler: bool, caplog: pytest.LogCaptureFixture) -> None:
    """B104: an exception in a user's callback ends the stream, or hides the provider's error."""
    output = output_of(text("a"), text("b"), error({"message": "429"}))
    bug = RuntimeError("bug in the callback")
    told: list[Exception] = []

    def raise_it(_: Any) -> None:
        raise bug

    with caplog.at_level(logging.ERROR):
        output.full_stream.subscribe(raise_it, told.append if handler else None)
    other = Seen(output.full_stream)
    assert told == ([bug] if handler else [])
    assert any(record.exc_info and record.exc_info[1] is bug for record in caplog.records) is not handler
    assert (other.types, other.errors, other.completed) == (["text-delta", "text-delta", "error"], [], 1)
    with pytest.raises(mx.AgentError, match="429"):
        output.text.run()


@pytest.mark.parametrize("at", ["on_next", "on_error", "on_completed"])
@pytest.mark.parametrize("name", ["full_stream", "text"])
def test_a_callback_that_raises_at_the_end_hides_nothing(at: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """B104: nor at the end, nor of a value."""
    output = output_of(text("a"), error("429") if at == "on_error" else finish())

    def raise_it(*_: Any) -> None:
        raise RuntimeError("bug in the callback")

    callbacks = {"on_next": lambda _: None, "on_error": lambda _: None, "on_completed": lambda: None, at: raise_it}
    with caplog.at_level(logging.ERROR):
        getattr(output, name).subscribe(**callbacks)
    expected = at != "on_error" or name == "text"  # the streams of a run that failed complete
    if at != "on_next":  # there on_error was given, and is told
        assert any("bug in the callback" in str(record.exc_info) for record in caplog.records) == expected
    assert Seen(output.full_stream).completed == 1


@pytest.mark.parametrize("source", ["chunks", "bytes", "jsonl"])
def test_an_exception_without_on_error_surfaces(source: str) -> None:
    """B106: `from_iterable` silently drops an exception where there is no on_error."""
    chunks = [text("a"), finish()]
    cold = {
        "chunks": mx.from_chunks(chunks),
        "bytes": mx.from_bytes([sse(*chunks)]),
        "jsonl": mx.from_jsonl([lines(chunk) for chunk in chunks]),
    }[source]
    with pytest.raises(ZeroDivisionError):
        cold.pipe(rxops.map(lambda _: 1 / 0)).subscribe(lambda _: None)


@pytest.mark.parametrize("source", ["chunks", "jsonl", "bytes"])
def test_a_decoding_error_without_on_error_surfaces(source: str, caplog: pytest.LogCaptureFixture) -> None:
    """B106: a replay would lose its parse errors."""
    bad = b'{"type":"text-delta"'
    cold = {
        "chunks": mx.from_chunks([bad]),
        "jsonl": mx.from_jsonl([bad]),
        "bytes": mx.from_bytes([b"data: " + bad + b"\n\n"]),
    }[source]
    with pytest.raises(mx.SourceError):
        cold.subscribe(lambda _: None)
    with caplog.at_level(logging.ERROR):
        mx.as_view(cold).subscribe(lambda _: None)
    assert any(record.exc_info and isinstance(record.exc_info[1], mx.SourceError) for record in caplog.records)


def test_an_exception_in_a_composed_view_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """B106: views never drop one either."""
    output = output_of(text("a"), finish())
    with caplog.at_level(logging.ERROR):
        mx.as_view(output.text_stream.pipe(rxops.map(lambda _: 1 / 0))).subscribe(lambda _: None)
    assert any(isinstance((record.exc_info or (None, None))[1], ZeroDivisionError) for record in caplog.records)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another thread"])
def test_an_exception_at_completion_reaches_on_error(elsewhere: bool) -> None:
    """B107: an exception in a completion handler is lost, and the pipeline stalls."""
    output = output_of(text("a"), finish())
    told: list[Exception] = []
    done = threading.Event()

    def tell(failure: Exception) -> None:
        told.append(failure)
        done.set()

    hop = [rxops.observe_on(NewThreadScheduler())] if elsewhere else []
    output.text_stream.pipe(*hop, rxops.to_list(), rxops.map(lambda _: 1 / 0)).subscribe(print, tell)
    assert done.wait(5)
    assert [type(failure) for failure in told] == [ZeroDivisionError]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'event: error\ndata: {"message":"x"}\n\n', "x"),
        (b'event: error\ndata: "x"\n\n', "x"),
        (b'data: {"message":"x"}\nevent: error\n\n', "x"),
        (b"event: error\ndata:\n\n", "Unknown error chunk in stream"),
        (b"event: error\n\n", "Unknown error chunk in stream"),
        (b'event: error\ndata: {"type":"error","payload":{"error":{"message":"x"}}}\n\n', "x"),
        (b'event: error\ndata: {"message":"x","type":"invalid_request"}\n\n', "x"),
        (b'event: error\ndata: {"error":{"message":"x","type":"overloaded"}}\n\n', "x"),
        (b"event: error\ndata: Internal Server Error\n\n", "Internal Server Error"),
    ],
)
def test_an_error_event_is_an_error(data: bytes, message: str) -> None:
    """B109: the check for an error event is unreachable."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(mx.from_bytes([sse(text("a"), done=False), data], "sse"))
    with pytest.raises(mx.AgentError) as raised:
        output.text.run()
    assert message in str(raised.value)


@pytest.mark.parametrize("how", ["await", "async for"])
def test_a_cancellation_is_never_swallowed(how: str) -> None:
    """B109: a broad `except` swallows CancelledError."""

    async def main() -> str:
        never = asyncio.Event()

        async def source() -> Any:
            yield text("a")
            await never.wait()

        output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(source())

        async def read() -> None:
            if how == "await":
                await output.text
            async for _ in output.text_stream:
                pass

        task = asyncio.ensure_future(read())
        while output._stream.position < 1:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert output.status == "running", "the run goes on"
        output.dispose()
        return output.status

    assert asyncio.run(main()) == "canceled"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("how", ["run", "for", "subscribe"])
def test_an_interruption_of_the_source_is_never_swallowed(interruption: type[BaseException], how: str) -> None:
    """B109: nor KeyboardInterrupt; and nobody waits for ever afterwards."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(then_raise([text("a")], interruption()))
    read: dict[str, Any] = {
        "run": output.text.run,
        "for": lambda: list(output.text_stream),
        "subscribe": lambda: output.text_stream.subscribe(lambda _: None),
    }
    with pytest.raises(interruption):
        read[how]()
    waiting = Seen(output.text)
    assert [type(one) for one in waiting.errors] == [mx.StreamInterrupted]


@pytest.mark.parametrize("kind", ["list", "hot"])
def test_an_interrupted_callback_does_not_stop_the_stream_for_ever(kind: str) -> None:
    """B109: who interrupts a cell of a notebook in the middle of a callback must be able to go on."""
    feed: Subject[Any] = Subject()
    chunks = [text("a"), text("b"), finish()]
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feed if kind == "hot" else chunks)

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    def play() -> None:
        subscription = output.text_stream.subscribe(interrupt)
        try:
            if kind == "hot":
                feed.on_next(chunks[0])
        finally:
            subscription.dispose()

    with pytest.raises(KeyboardInterrupt):
        play()
    text_seen, pieces = Seen(output.text), Seen(output.text_stream)
    if kind == "hot":
        for chunk in chunks[1:]:
            feed.on_next(chunk)
        feed.on_completed()
    assert text_seen.errors == []
    assert text_seen.items == ["ab"]
    assert (pieces.items, pieces.completed) == (["a", "b"], 1)


# ---- tripwires -------------------------------------------------------------------------------------------------------

TRIPWIRES = {
    "all": ({"reason": "pii", "retry": False, "processorId": "p"}, "pii"),
    "retry": ({"reason": "pii", "retry": True}, "pii"),
    "no reason": ({}, "Content blocked"),
    "an empty reason": ({"reason": ""}, "Content blocked"),
    "nothing": (None, "Content blocked"),
    "metadata": ({"reason": "pii", "metadata": {"score": 1}}, "pii"),
}


@pytest.mark.parametrize(("payload", "reason"), TRIPWIRES.values(), ids=TRIPWIRES)
@pytest.mark.parametrize("source", ["list", "bytes", "of a server"])
def test_a_tripwire_is_an_end(payload: Any, reason: str, source: str) -> None:
    """B110: a tripwire chunk is unknown to the consumer: an exception, or silence.

    The status stays `running`, and with `retry` the stream ends as well, both as in Mastra 1.71.0.
    """
    chunks = [text("par"), {"type": "tripwire", "payload": payload}]
    if source == "of a server":
        chunks = [of_a_server(chunk) for chunk in chunks]
    output: Any = mx.MastraModelOutput(mx.from_bytes([sse(*chunks, done=False)]) if source == "bytes" else chunks)
    assert output.tripwire is None
    for name in STREAMS:
        seen = Seen(getattr(output, name))
        assert (seen.errors, seen.completed) == ([], 1), name
    assert output.tripwire.reason == reason
    assert output.tripwire.retry == (payload or {}).get("retry")
    assert (output.text.run(), output.finish_reason.run(), output.error) == ("par", "other", None)
    for name in VALUES:
        getattr(output, name).run()


def test_a_tripwire_keeps_what_came() -> None:
    """B112: the text is blank while the steps have the prose."""
    tripwire = {"type": "tripwire", "payload": {"reason": "x"}}
    output = output_of(text("Secret"), {"type": "step-finish", "payload": {}}, tripwire, finish())
    full = output.get_full_output().run()
    assert output.text.run() == output.steps.run()[0].text == full.text == "Secret"
    assert full.tripwire == output.tripwire
    assert list(output.text_stream) == ["Secret"]


def test_a_tripwire_keeps_calls_too() -> None:
    """B112: the same for what else had come (D8)."""
    chunks = [
        {"type": "reasoning-start", "payload": {"id": "r"}},
        {"type": "reasoning-delta", "payload": {"id": "r", "text": "hm"}},
        tool_call("c1", {"a": 1}),
        {"type": "source", "payload": {"id": "s", "sourceType": "url", "title": "t"}},
    ]
    output = output_of(*chunks, {"type": "tripwire", "payload": {"reason": "x"}})
    assert [call.payload.args for call in output.tool_calls.run()] == [{"a": 1}]
    assert output.reasoning.run() == "hm"
    assert len(output.sources.run()) == 1


def test_nothing_after_a_tripwire_is_seen() -> None:
    """B112: what a server still sends is of no run."""
    output = output_of(text("a"), {"type": "tripwire", "payload": {"reason": "x"}}, text("b"), finish())
    assert [chunk.type for chunk in output.full_stream] == ["text-delta", "tripwire"]
    assert output.text.run() == "a"
