"""`until_idle`: turn after turn, until no background task is running."""

from __future__ import annotations

import asyncio
import json
import logging
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from typing import Any

import pytest
from reactivex.subject import Subject

import mastra_rx as mx
from tests.cases.wire import (
    START,
    Seen,
    Wire,
    finish,
    one_by_one,
    step_finish,
    text,
    then_raise,
    tool_call,
    tool_result,
)
from tests.conftest import Recording, recordings

RECORDED = [recording for recording in recordings() if "textOfAllTurns" in recording.expected]

CONTINUES_ON_SUSPEND = {"bg-suspended"}
"""Recordings of 1.71.0 in which a suspended task triggered a turn, which the reference says it does not."""


# ---- The recordings, as they came ------------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_the_text_is_that_of_all_turns(recording: Recording) -> None:
    """D12: Mastra's values are those of the first turn."""
    output = mx.MastraModelOutput(recording.wire)
    assert output.text.run() == recording.expected["textOfAllTurns"]
    assert "".join(output.text_stream) == recording.expected["textOfAllTurns"]
    assert output.status == recording.expected["status"]


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_the_first_turn_alone_has_the_values_that_mastra_gives(recording: Recording) -> None:
    expected = {name: promise["value"] for name, promise in recording.expected["promises"].items()}
    first, *_ = mx.MastraModelOutput(recording.wire).turns
    assert first.text.run() == expected["text"]
    assert first.finish_reason.run() == expected["finishReason"]
    assert mx.to_wire(first.tool_calls.run()) == expected["toolCalls"]
    assert mx.to_wire(first.tool_results.run()) == expected["toolResults"]
    usage = first.usage.run()
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == tuple(
        expected["usage"][name] for name in ("inputTokens", "outputTokens", "totalTokens")
    )
    assert len(first.steps.run()) == expected["steps"]


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_each_turn_is_an_output_of_its_own(recording: Recording) -> None:
    output = mx.MastraModelOutput(recording.wire)
    turns = list(output.turns)
    assert [turn.key for turn in turns] == list(range(recording.expected["chunkTypes"].count("start")))
    assert "".join(turn.text.run() for turn in turns) == recording.expected["textOfAllTurns"]
    assert sum(turn.usage.run().total_tokens or 0 for turn in turns) == output.usage.run().total_tokens
    assert sum(len(turn.steps.run()) for turn in turns) == len(output.steps.run()) == recording.expected["modelCalls"]
    assert [c for turn in turns for c in mx.to_wire(list(turn.full_stream))] == mx.to_wire(list(output.full_stream))


def test_turns_are_live() -> None:
    feed: Subject[Any] = Subject()
    output = mx.MastraModelOutput(feed)
    seen: list[tuple[int, str]] = []
    output.turns.subscribe(lambda turn: turn.text_stream.subscribe(lambda piece: seen.append((turn.key, piece))))
    for chunk in (START, text("a")):
        feed.on_next(chunk)
    assert seen == [(0, "a")]
    for chunk in (finish(), done("k"), START, text("b"), text("c"), finish()):
        feed.on_next(chunk)
    assert seen == [(0, "a"), (1, "b"), (1, "c")]


def test_what_tasks_say_between_turns_belongs_to_the_turn_before() -> None:
    output = mx.MastraModelOutput([*turn("a", "k"), done("k"), *turn("b")])
    first, second = output.turns
    assert [task.state for task in first.background_tasks][-1] == "completed"
    assert list(second.background_tasks) == []


def test_a_turn_that_breaks_off_without_finish_ends_with_the_next_start() -> None:
    """A turn that is suspended has no `finish`."""
    suspended = {"type": "tool-call-suspended", "payload": {"toolCallId": "c", "toolName": "f", "suspendPayload": 1}}
    first, second = mx.MastraModelOutput([START, text("a"), suspended, done("k"), *turn("b")]).turns
    assert [chunk.type for chunk in first.full_stream] == [
        "start",
        "text-delta",
        "tool-call-suspended",
        "background-task-completed",
    ]
    assert second.text.run() == "b"


# ---- Sources of turns ------------------------------------------------------------------------------------------------


def task(kind: str, task_id: str = "k", **payload: Any) -> Wire:
    payload = {"taskId": task_id, "toolName": "f", "toolCallId": f"call-{task_id}", **payload}
    return {"type": f"background-task-{kind}", "payload": payload}


def started(task_id: str) -> Wire:
    return task("started", task_id)


def done(task_id: str, **payload: Any) -> Wire:
    return task("completed", task_id, **{"result": task_id, **payload})


def turn(words: str, *tasks: str) -> list[Wire]:
    """A turn that starts tasks and says something."""
    calls = [
        chunk
        for task_id in tasks
        for chunk in (
            tool_call(f"call-{task_id}"),
            started(task_id),
            tool_result(f"call-{task_id}", f"Background task started. Task ID: {task_id}."),
        )
    ]
    return [START, *calls, text(words), step_finish({"inputTokens": 3, "outputTokens": 1, "totalTokens": 4}), finish()]


class Turns:
    """A `continue_with` that gives the turns it was made with, and remembers what it was asked."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.asked: list[list[tuple[str, str]]] = []

    def __call__(self, finished: Sequence[mx.BackgroundTask]) -> Any:
        self.asked.append([(task.task_id, task.state) for task in finished])
        return self.turns.pop(0) if self.turns else None


class Manager:
    """A task manager's stream, which says what it is told to and never ends by itself."""

    def __init__(self) -> None:
        self._said: asyncio.Queue[Wire | BaseException] = asyncio.Queue()
        self.closed = False

    def say(self, *chunks: Wire | BaseException) -> None:
        for chunk in chunks:
            self._said.put_nowait(chunk)

    async def __aiter__(self) -> AsyncIterator[Wire]:
        try:
            while True:
                said = await self._said.get()
                if isinstance(said, BaseException):
                    raise said
                yield said
        finally:
            self.closed = True


def in_a_moment(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 5))


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until it is so; the scene's own limit ends what never is."""
    while not condition():
        await asyncio.sleep(0)


async def settle() -> None:
    """Let the loop run empty: all that can happen without anybody saying more has happened."""
    for _ in range(50):
        await asyncio.sleep(0)


# ---- Recorded sources, split into turns ------------------------------------------------------------------------------


def split(recording: Recording) -> tuple[list[list[Wire]], list[Wire]]:
    """The turns, and what the manager said from the first task on."""
    turns: list[list[Wire]] = []
    manager: list[Wire] = []
    for chunk in recording.wire:
        if chunk["type"] == "start":
            turns.append([])
        kind = chunk["type"]
        of_manager = kind.startswith("background-task-") and kind != "background-task-started"
        (manager if of_manager else turns[-1]).append(chunk)
    return turns, manager


@pytest.mark.parametrize("recording", [r for r in RECORDED if r.name != "bg-idle-timeout"], ids=str)
def test_recorded_turns_and_a_recorded_manager(recording: Recording) -> None:
    """The turns play as recorded, the manager speaks when the recorded one did: each turn is asked for once."""
    turns, said = split(recording)
    suspends = recording.name in CONTINUES_ON_SUSPEND

    async def scene() -> None:
        manager = Manager()
        after = Turns(*turns[1:])

        def next_turn(finished: Sequence[mx.BackgroundTask]) -> Any:
            speak()
            return after(finished)

        def speak() -> None:
            while said:
                manager.say(chunk := said.pop(0))
                if chunk["type"].removeprefix("background-task-") in ("completed", "failed", "cancelled", "suspended"):
                    return

        speak()
        output = mx.MastraModelOutput(mx.until_idle(turns[0], next_turn, tasks=manager, continue_on_suspend=suspends))
        assert await output.text == recording.expected["textOfAllTurns"]
        assert len(after.asked) == len(turns) - 1
        assert not after.turns
        chunks = [chunk.type async for chunk in output.full_stream]
        assert sorted(chunks) == sorted(recording.expected["chunkTypes"])
        assert manager.closed

    in_a_moment(scene)


@pytest.mark.parametrize("recording", [r for r in RECORDED if r.name != "bg-suspended"], ids=str)
def test_a_recorded_run_as_its_own_first_turn(recording: Recording) -> None:
    """What a server plays until idle needs no second source; what it had finished is not asked for again."""
    turns = Turns()
    output = mx.MastraModelOutput(mx.until_idle(recording.wire, turns))
    assert output.text.run() == recording.expected["textOfAllTurns"]
    assert len(turns.asked) <= 1


# ---- When a turn is asked for ----------------------------------------------------------------------------------------


def test_without_tasks_it_is_the_turn() -> None:
    turns = Turns([START])
    chunks = mx.as_view(mx.until_idle(turn("Hi"), turns))
    assert [chunk.type for chunk in chunks] == ["start", "text-delta", "step-finish", "finish"]
    assert turns.asked == []


def test_one_turn_for_a_batch() -> None:
    """Two tasks run; the turn is asked for when the second one has ended, once, with both."""

    async def scene() -> None:
        manager, turns = Manager(), Turns(turn("Both."))
        output = mx.MastraModelOutput(mx.until_idle(turn("Two.", "a", "b"), turns, tasks=manager))
        seen = Seen(output.full_stream)
        await until(lambda: "finish" in seen.types)
        manager.say(done("b"))
        await settle()
        assert turns.asked == []
        manager.say(task("failed", "a", error={"message": "no"}))
        assert await output.text == "Two.Both."
        assert turns.asked == [[("b", "completed"), ("a", "failed")]]

    in_a_moment(scene)


def test_tasks_that_end_while_their_turn_plays_wait_for_its_end() -> None:
    async def scene() -> None:
        feed: Subject[Any] = Subject()
        manager, turns = Manager(), Turns(turn("Next."))
        output = mx.MastraModelOutput(mx.until_idle(feed, turns, tasks=manager))
        seen = Seen(output.full_stream)
        await settle()
        first = turn("First.", "a")
        for chunk in first[:-1]:
            feed.on_next(chunk)
        manager.say(done("a"))
        await until(lambda: "background-task-completed" in seen.types)
        await settle()
        assert turns.asked == []
        feed.on_next(first[-1])
        feed.on_completed()
        assert await output.text == "First.Next."
        assert turns.asked == [[("a", "completed")]]

    in_a_moment(scene)


def test_a_task_that_ends_before_its_start_is_told() -> None:
    """The manager is quicker than the agent's stream; the task is not waited for."""

    async def scene() -> None:
        manager, turns = Manager(), Turns(turn("Next."))
        manager.say(task("running", "a"), done("a"))

        async def slow() -> AsyncIterator[Wire]:
            await settle()
            for chunk in turn("First.", "a"):
                yield chunk

        output = mx.MastraModelOutput(mx.until_idle(slow(), turns, tasks=manager))
        assert await output.text == "First.Next."
        assert turns.asked == [[("a", "completed")]]

    in_a_moment(scene)


def test_turns_may_start_tasks() -> None:
    async def scene() -> None:
        manager = Manager()
        plays = [turn("Second.", "b", "c"), turn("Third.")]
        asked: list[set[str]] = []

        def next_turn(finished: Sequence[mx.BackgroundTask]) -> Any:
            asked.append({task.task_id for task in finished})
            if len(asked) == 1:
                manager.say(task("running", "b"), task("running", "c"), done("c"), done("b"))
            return plays.pop(0)

        manager.say(task("running", "a"), done("a"))
        output = mx.MastraModelOutput(mx.until_idle(turn("First.", "a"), next_turn, tasks=manager))
        assert await output.text == "First.Second.Third."
        assert asked == [{"a"}, {"b", "c"}]
        assert [await turn.text async for turn in output.turns] == ["First.", "Second.", "Third."]
        assert (await output.usage).total_tokens == 12
        pairs = {pair.tool_call_id: pair.result async for pair in output.tool_pairs}
        assert pairs == {"call-a": "a", "call-b": "b", "call-c": "c"}

    in_a_moment(scene)


@pytest.mark.parametrize("late", ["completed", "cancelled", "running", "resumed", "output", "suspended", "started"])
def test_what_comes_late_asks_for_no_further_turn(late: str) -> None:
    """A task that had its turn does not get another, whatever the manager says again."""

    async def scene() -> None:
        manager = Manager()
        turns = Turns(turn("Next."), turn("Too many."))

        def next_turn(finished: Sequence[mx.BackgroundTask]) -> Any:
            manager.say(task(late, "a", payload={}), task("running", "b"), done("b"))
            return one_by_one(turns(finished))

        manager.say(done("a"))
        output = mx.MastraModelOutput(mx.until_idle([*turn("First.", "a")], next_turn, tasks=manager))
        await output.text
        assert [task_id for batch in turns.asked for task_id, _ in batch].count("a") == 1

    in_a_moment(scene)


def test_the_second_end_of_a_task_is_dropped() -> None:
    chunks = [*turn("Hi", "a"), done("a"), done("a"), task("failed", "a", error="late")]
    got = mx.as_view(mx.until_idle(chunks, Turns()))
    assert [chunk.type for chunk in got].count("background-task-completed") == 1
    assert "background-task-failed" not in [chunk.type for chunk in got]


def test_continue_with_may_be_a_coroutine_function() -> None:
    async def next_turn(finished: Sequence[mx.BackgroundTask]) -> Any:
        await asyncio.sleep(0)
        return turn(f"Got {finished[0].result}.")

    output = mx.MastraModelOutput(mx.until_idle([*turn("First.", "a"), done("a")], next_turn))
    assert output.text.run() == "First.Got a."


def test_none_stops() -> None:
    turns = Turns()
    assert mx.MastraModelOutput(mx.until_idle([*turn("First.", "a"), done("a")], turns)).text.run() == "First."
    assert turns.asked == [[("a", "completed")]]


def test_each_kind_of_source_can_be_a_turn() -> None:
    def as_json(chunks: Iterable[Wire]) -> list[str]:
        return [json.dumps(chunk) for chunk in chunks]

    turns = Turns(
        as_json([*turn("b", "k2"), done("k2")]),
        one_by_one([*turn("c", "k3"), done("k3")]),
        mx.from_chunks([*turn("d", "k4"), done("k4")]),
        mx.MastraModelOutput([*turn("e", "k5"), done("k5")]).full_stream,
        iter(turn("f")),
    )

    async def scene() -> None:
        output = mx.MastraModelOutput(mx.until_idle([*turn("a", "k1"), done("k1")], turns))
        assert await output.text == "abcdef"

    in_a_moment(scene)


def test_each_subscription_plays_anew() -> None:
    turns = Turns(turn("Next."), turn("Next."))
    source = mx.until_idle([*turn("First.", "a"), done("a")], turns)
    for _ in range(2):
        assert mx.MastraModelOutput(source).text.run() == "First.Next."


# ---- Suspended tasks -------------------------------------------------------------------------------------------------


def test_a_suspended_task_is_neither_waited_for_nor_a_reason_to_go_on() -> None:
    turns = Turns(turn("Next."))
    chunks = [*turn("First.", "a"), task("suspended", "a")]
    assert mx.MastraModelOutput(mx.until_idle(chunks, turns)).text.run() == "First."
    assert turns.asked == []


def test_unless_continue_on_suspend_says_so_as_mastra_1_71_0_does() -> None:
    turns = Turns(turn("Next."))
    chunks = [*turn("First.", "a"), task("suspended", "a", suspendPayload=1)]
    output = mx.MastraModelOutput(mx.until_idle(chunks, turns, continue_on_suspend=True))
    assert output.text.run() == "First.Next."
    assert turns.asked == [[("a", "suspended")]]


def test_a_suspended_task_brings_one_turn_whatever_it_says_while_it_waits() -> None:
    turns = Turns([*turn("Next."), task("output", "a", payload={}), task("suspended", "a")], turn("Too many."))
    chunks = [*turn("First.", "a"), task("suspended", "a")]
    output = mx.MastraModelOutput(mx.until_idle(chunks, turns, continue_on_suspend=True))
    assert output.text.run() == "First.Next."


@pytest.mark.parametrize("continue_on_suspend", [False, True])
def test_a_task_that_is_resumed_while_others_run_is_in_their_batch(continue_on_suspend: bool) -> None:
    async def scene() -> None:
        manager, turns = Manager(), Turns(turn("Next."))
        output = mx.MastraModelOutput(
            mx.until_idle(turn("Two.", "a", "b"), turns, tasks=manager, continue_on_suspend=continue_on_suspend)
        )
        manager.say(task("suspended", "a"), task("resumed", "a"), done("b"))
        seen = Seen(output.full_stream)
        await until(lambda: "background-task-completed" in seen.types)
        await settle()
        assert turns.asked == []
        manager.say(done("a"))
        assert await output.text == "Two.Next."
        assert [sorted(batch) for batch in turns.asked] == [[("a", "completed"), ("b", "completed")]]

    in_a_moment(scene)


# ---- max_idle --------------------------------------------------------------------------------------------------------


class _NoWaiting(selectors.DefaultSelector):
    """A selector that does not wait: the clock of the loop goes on by the time it should have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits for something that nobody will do")
        if not ready and timeout is not None:
            self.waited += timeout
        return ready


class VirtualTime(asyncio.SelectorEventLoop):
    """A loop in which minutes pass at once, and in the right order."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        return self._no_waiting.waited


def in_virtual_time(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(scene())


def now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


def test_max_idle_ends_the_stream_between_turns(caplog: pytest.LogCaptureFixture) -> None:
    """The task goes on, nobody hears of it: the stream ends as after a turn (bg-idle-timeout)."""
    caplog.set_level(logging.INFO, "mastra_rx")

    async def scene() -> None:
        manager, turns = Manager(), Turns(turn("Next."))
        recording = Recording("bg-idle-timeout")
        output = mx.MastraModelOutput(mx.until_idle(recording.wire, turns, tasks=manager))
        assert await output.text == recording.expected["textOfAllTurns"]
        assert now() == 300
        assert output.status == "success"
        assert turns.asked == []
        assert manager.closed

    in_virtual_time(scene)
    assert "no chunk for 300.0 seconds while 1 tasks run" in caplog.text


def test_every_chunk_restarts_max_idle() -> None:
    async def scene() -> None:
        async def manager() -> AsyncIterator[Wire]:
            for _ in range(4):
                await asyncio.sleep(9)
                yield task("output", "a", payload={})
            await asyncio.sleep(11)
            yield done("a")

        turns = Turns(turn("Next."))
        output = mx.MastraModelOutput(mx.until_idle(turn("First.", "a"), turns, tasks=manager(), max_idle=10))
        assert await output.text == "First."
        assert now() == 4 * 9 + 10
        assert turns.asked == []

    in_virtual_time(scene)


def test_max_idle_does_not_run_while_a_turn_plays() -> None:
    async def scene() -> None:
        async def slow() -> AsyncIterator[Wire]:
            first = turn("First.", "a")
            for chunk in first[:-1]:
                yield chunk
            await asyncio.sleep(1000)
            yield done("a")
            yield first[-1]

        assert (
            await mx.MastraModelOutput(mx.until_idle(slow(), Turns(turn("Next.")), max_idle=10)).text == "First.Next."
        )
        assert now() == 1000

    in_virtual_time(scene)


def test_max_idle_does_not_run_while_the_next_turn_is_made() -> None:
    async def scene() -> None:
        async def slow(_: Sequence[mx.BackgroundTask]) -> Any:
            await asyncio.sleep(1000)
            return turn("Next.")

        output = mx.MastraModelOutput(mx.until_idle([*turn("First.", "a"), done("a")], slow, max_idle=10))
        assert await output.text == "First.Next."

    in_virtual_time(scene)


@pytest.mark.parametrize("max_idle", [0, -1, float("nan")])
def test_max_idle_is_a_positive_number(max_idle: float) -> None:
    with pytest.raises(ValueError, match="give a number of seconds above 0"):
        mx.until_idle([], Turns(), max_idle=max_idle)


def test_without_max_idle_it_waits_for_ever() -> None:
    async def scene() -> None:
        async def manager() -> AsyncIterator[Wire]:
            await asyncio.sleep(1e6)
            yield done("a")

        turns = Turns(turn("Next."))
        output = mx.MastraModelOutput(mx.until_idle(turn("First.", "a"), turns, tasks=manager(), max_idle=None))
        assert await output.text == "First.Next."
        assert now() == 1e6

    in_virtual_time(scene)


def test_without_a_manager_nothing_can_be_heard_of_tasks_after_the_turn() -> None:
    """It ends rather than to wait for what cannot come."""
    turns = Turns(turn("Next."))
    output = mx.MastraModelOutput(mx.until_idle(turn("First.", "a"), turns, max_idle=None))
    assert output.text.run() == "First."
    assert turns.asked == []


def test_a_manager_that_ends_while_tasks_run() -> None:
    turns = Turns(turn("Next."))
    source = mx.until_idle(turn("First.", "a"), turns, tasks=[task("running", "a")], max_idle=None)
    assert mx.MastraModelOutput(source).text.run() == "First."
    assert turns.asked == []


# ---- Failures --------------------------------------------------------------------------------------------------------


def failing(output: mx.MastraModelOutput[Any]) -> tuple[str, BaseException | None]:
    """The error of a run whose source failed: the same for streams and values."""
    seen = Seen()
    with pytest.raises(mx.SourceError) as of_value:
        output.text.run()
    seen.subscribe(output.full_stream)
    assert [str(error) for error in seen.errors] == [str(of_value.value)]
    return of_value.value.partial.text, of_value.value.__cause__


def test_a_first_turn_that_fails() -> None:
    broken = then_raise(turn("First.")[:-1], ConnectionError("socket hang up"))
    text_so_far, cause = failing(mx.MastraModelOutput(mx.until_idle(broken, Turns())))
    assert text_so_far == "First."
    assert isinstance(cause, ConnectionError)


def test_a_later_turn_that_fails() -> None:
    turns = Turns(then_raise(turn("Next.")[:-1], ConnectionError("socket hang up")))
    output = mx.MastraModelOutput(mx.until_idle([*turn("First.", "a"), done("a")], turns))
    text_so_far, cause = failing(output)
    assert text_so_far == "First.Next."
    assert isinstance(cause, ConnectionError)


@pytest.mark.parametrize("is_async", [False, True])
def test_continue_with_that_fails(is_async: bool) -> None:
    def fail(_: Any) -> Any:
        raise KeyError("no agent")

    async def fail_later(_: Any) -> Any:
        fail(_)

    source = mx.until_idle([*turn("First.", "a"), done("a")], fail_later if is_async else fail)
    text_so_far, cause = failing(mx.MastraModelOutput(source))
    assert text_so_far == "First."
    assert isinstance(cause, KeyError)


@pytest.mark.parametrize("what", ["a text", {"type": "start"}, 42, b"bytes"])
def test_continue_with_that_gives_no_source(what: Any) -> None:
    """It fails, with what a source is; it does not wait for chunks that cannot come."""

    async def scene() -> None:
        output = mx.MastraModelOutput(mx.until_idle([*turn("First.", "a"), done("a")], lambda _: what))
        with pytest.raises(mx.SourceError, match="a source is an Observable, an iterable or an async iterable"):
            await output.text

    in_a_moment(scene)


def test_a_first_turn_that_is_no_source() -> None:
    async def scene() -> None:
        with pytest.raises((mx.SourceError, TypeError), match="a source is an Observable"):
            await mx.MastraModelOutput(mx.until_idle("a text", Turns())).text

    in_a_moment(scene)


def test_a_manager_that_fails_does_not_take_the_turns_with_it(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        manager, turns = Manager(), Turns(turn("Next."))
        manager.say(ConnectionError("gone"))
        output = mx.MastraModelOutput(mx.until_idle([*turn("First.", "a"), done("a")], turns, tasks=manager))
        assert await output.text == "First.Next."

    in_a_moment(scene)
    assert "the stream of the task manager failed" in caplog.text
    assert "gone" in caplog.text


def test_a_manager_that_fails_while_a_task_runs_ends_the_wait(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        manager, turns = Manager(), Turns(turn("Next."))
        output = mx.MastraModelOutput(mx.until_idle(turn("First.", "a"), turns, tasks=manager, max_idle=None))
        seen = Seen(output.full_stream)
        await until(lambda: "finish" in seen.types)
        manager.say(ConnectionError("gone"))
        with pytest.raises(mx.SourceError, match="gone") as failed:
            await output.text
        assert failed.value.partial.text == "First."
        assert seen.types[-1] == "finish"
        assert turns.asked == []

    in_a_moment(scene)
    assert "the stream of the task manager failed" in caplog.text


def test_an_error_chunk_fails_the_run_and_not_its_source() -> None:
    broken = [START, text("Fir"), {"type": "error", "payload": {"error": {"message": "overloaded"}}}, finish("error")]
    output = mx.MastraModelOutput(mx.until_idle([started("a"), *broken, done("a")], Turns(turn("Next."))))
    with pytest.raises(mx.AgentError, match="overloaded"):
        output.text.run()
    assert [chunk.type for chunk in output.full_stream].count("start") == 2


# ---- The end ---------------------------------------------------------------------------------------------------------


def test_dispose_closes_the_turn_and_the_manager() -> None:
    async def scene() -> None:
        manager, closed = Manager(), asyncio.Event()

        async def endless() -> AsyncIterator[Wire]:
            try:
                yield START
                await asyncio.Event().wait()
            finally:
                closed.set()

        output = mx.MastraModelOutput(mx.until_idle(endless(), Turns(), tasks=manager))
        seen = Seen(output.full_stream)
        await until(lambda: seen.types == ["start"])
        output.dispose()
        await closed.wait()
        await until(lambda: manager.closed)
        assert seen.completed == 1
        with pytest.raises(mx.StreamDisposed):
            await output.text

    in_a_moment(scene)


def test_dispose_between_turns_closes_the_manager() -> None:
    async def scene() -> None:
        manager, turns = Manager(), Turns()
        output = mx.MastraModelOutput(mx.until_idle(turn("First.", "a"), turns, tasks=manager, max_idle=None))
        seen = Seen(output.full_stream)
        await until(lambda: "finish" in seen.types)
        output.dispose()
        await until(lambda: manager.closed)
        manager.say(done("a"))
        await settle()
        assert turns.asked == []

    in_a_moment(scene)


def test_dispose_while_the_next_turn_is_made() -> None:
    async def scene() -> None:
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def never(_: Any) -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        output = mx.MastraModelOutput(mx.until_idle([*turn("First.", "a"), done("a")], never))
        Seen(output.full_stream)
        await asked.wait()
        output.dispose()
        await cancelled.wait()

    in_a_moment(scene)


def test_the_manager_is_closed_when_nothing_runs() -> None:
    async def scene() -> None:
        manager = Manager()
        await mx.MastraModelOutput(mx.until_idle(turn("First."), Turns(), tasks=manager)).text
        await until(lambda: manager.closed)

    in_a_moment(scene)


def test_a_failed_turn_closes_the_manager() -> None:
    async def scene() -> None:
        manager = Manager()
        broken = then_raise([START], ConnectionError("gone"))
        await mx.MastraModelOutput(mx.until_idle(broken, Turns(), tasks=manager)).consume_stream()
        await until(lambda: manager.closed)

    in_a_moment(scene)


def test_it_works_without_a_loop_of_ones_own() -> None:
    turns = Turns(turn("Next."))
    source = mx.until_idle(turn("First.", "a"), turns, tasks=[task("running", "a"), done("a")])
    assert list(mx.MastraModelOutput(source).text_stream) == ["First.", "Next."]
