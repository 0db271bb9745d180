"""Snapshots: the state of a run after each change, immutable, sharing what did not change."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.cases.wire import (
    ABORT,
    START,
    STEP_START,
    call_delta,
    call_end,
    call_start,
    error,
    finish,
    output_of,
    reasoning,
    text,
    tool_call,
    tool_result,
)
from tests.conftest import Recording

TEXT_END = {"type": "text-end", "payload": {"id": "t1"}}


def snapshots_of(*chunks: Any, **options: Any) -> list[mx.Snapshot]:
    found: list[mx.Snapshot] = []
    output_of(*chunks, **options).snapshots.subscribe(found.append, lambda _: None)
    return found


# ---- at the end it says what the values say --------------------------------------------------------------------------


def test_the_last_one_equals_the_values(recording: Recording) -> None:
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(recording.source())
    found: list[mx.Snapshot] = []
    texts, reasonings, runs = list[str](), list[str](), dict[str, Any]()
    output.snapshots.subscribe(found.append, lambda _: None)
    output.text_stream.subscribe(texts.append, lambda _: None)
    output.reasoning_stream.subscribe(reasonings.append, lambda _: None)
    output.tool_runs.subscribe(lambda run: runs.__setitem__(run.tool_call_id, run), lambda _: None)
    full = output.get_full_output().run()
    last = found[-1] if found else mx.Snapshot()
    assert last.text == "".join(texts)
    assert last.reasoning == "".join(reasonings)
    shown = {run.tool_call_id: (run.state, run.args, run.result) for run in last.tool_runs}
    assert shown == {call: (run.state, run.args, run.result) for call, run in runs.items()}
    assert len([part for part in last.parts if part.kind == "source"]) == len(full.sources)
    assert len([part for part in last.parts if part.kind == "file"]) == len(full.files)
    assert last.run_id == output.run_id
    assert last.tripwire == full.tripwire
    if not isinstance(full.error, mx.SourceError):  # that one comes as the stream's own end
        assert last.status == output.status
    if full.error is None:  # an error settles the values at once; snapshots go on with what comes after
        assert last.finish_reason == full.finish_reason
        assert last.error is None
        assert (last.usage.total_tokens or 0) == (full.usage.total_tokens or 0)
    elif isinstance(full.error, mx.AgentError):
        assert str(last.error) == str(output.error)


def test_usage_that_nobody_reported_stays_unknown() -> None:
    output = output_of(text("a"), {"type": "finish", "payload": {"stepResult": {"reason": "stop"}, "output": {}}})
    last = output.snapshots.run()
    assert output.usage.run().total_tokens is None
    assert last.usage == output.usage.run()


def test_each_one_is_as_it_was(recording: Recording) -> None:
    """Read when it came and read at the end, a snapshot says the same."""
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(recording.source())
    found: list[tuple[mx.Snapshot, Any]] = []
    output.snapshots.subscribe(lambda snapshot: found.append((snapshot, state(snapshot))), lambda _: None)
    for snapshot, was in found:
        assert state(snapshot) == was


def state(snapshot: mx.Snapshot) -> Any:
    parts = [
        (part.kind, part.text if part.kind in ("text", "reasoning") else repr(part)[:500]) for part in snapshot.parts
    ]
    return (parts, snapshot.status, snapshot.step, snapshot.usage, snapshot.finish_reason, str(snapshot.error))


def test_the_operator_alone_gives_the_same(recording: Recording) -> None:
    alone, viewed = list[mx.Snapshot](), list[mx.Snapshot]()
    mx.from_chunks(recording.lines).pipe(ops.snapshots()).subscribe(alone.append, lambda _: None)
    mx.MastraModelOutput(recording.lines).snapshots.subscribe(viewed.append, lambda _: None)
    if recording.is_agent_run and alone and viewed:
        kinds = [part.kind for part in viewed[-1].parts]
        assert alone[-1].text.startswith(viewed[-1].text)  # an output ends at a tripwire
        assert [part.kind for part in alone[-1].parts][: len(kinds)] == kinds


# ---- a part that did not change is the same object -------------------------------------------------------------------


def test_parts_keep_their_identity() -> None:
    found = snapshots_of(
        reasoning("hm"),
        call_start(),
        call_delta('{"a":'),
        call_delta("1}"),
        call_end(),
        tool_call(args={"a": 1}),
        tool_result(result=2),
        text("x"),
        text("y"),
        finish(),
    )
    for before, after in itertools.pairwise(found):
        changed = [place for place, part in enumerate(before.parts) if after.parts[place] is not part]
        assert len(changed) + len(after.parts) - len(before.parts) <= 1, "one chunk changes one part"
    thought = {id(snapshot.parts[0]) for snapshot in found if len(snapshot.parts) > 1}
    assert len(thought) == 1
    settled = {id(snapshot.parts[1]) for snapshot in found if len(snapshot.parts) == 3}
    assert len(settled) == 1


def test_parts_come_in_the_order_in_which_they_began() -> None:
    last = snapshots_of(
        text("a", "1"), reasoning("b", "2"), text("c", "1"), tool_call(args={}), text("d", "3"), finish()
    )[-1]
    assert [(part.kind, getattr(part, "text", None)) for part in last.parts] == [
        ("text", "ac"),
        ("reasoning", "b"),
        ("tool", None),
        ("text", "d"),
    ]
    assert (last.text, last.reasoning) == ("acd", "b")


def test_an_id_that_is_used_again_is_a_new_part() -> None:
    found = snapshots_of(text("a"), TEXT_END, text("b"), finish())
    assert [(part.text, part.is_complete) for part in found[-1].parts] == [("a", True), ("b", False)]


def test_it_is_immutable() -> None:
    last = snapshots_of(text("a"), finish())[-1]
    assert isinstance(last.parts, tuple)
    for thing, name in ((last, "status"), (last.parts[0], "kind")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, "x")


def test_texts_are_read_right_in_any_order() -> None:
    found = snapshots_of(*[text(str(number % 10)) for number in range(50)], finish())
    wanted = "".join(str(number % 10) for number in range(50))
    for index in [*range(49, -1, -1), *range(50), 7, 40, 3]:
        assert found[index].text == wanted[: index + 1]


def test_texts_can_be_read_by_many_threads_at_once() -> None:
    """A screen reads on its thread, the one who logs on another: neither may spoil the text of the other."""
    first, second = snapshots_of(text("a"), text("b"), text("c"), text("d"))[1:4:2]
    growing = first.parts[0]._growing
    inside, go_on = threading.Event(), threading.Event()

    class Slow(list[str]):
        """Pieces that can be caught in the middle of a read."""

        def __getitem__(self, at: Any) -> Any:
            pieces = super().__getitem__(at)
            if threading.current_thread().name == "slow":
                inside.set()
                assert go_on.wait(10)
            return pieces

    growing.pieces = Slow(growing.pieces)
    read: list[str] = []
    slow = threading.Thread(target=lambda: read.append(first.text), name="slow")
    slow.start()
    assert inside.wait(10)
    assert second.text == "abcd"
    go_on.set()
    slow.join(10)
    assert read == ["ab"]
    assert (first.text, second.text) == ("ab", "abcd")


def test_ten_thousand_deltas_share_what_they_can() -> None:
    """Each snapshot is kept; the text is joined only where it is read."""
    found = snapshots_of(*[text("x") for _ in range(10_000)], finish())
    assert len(found) == 10_001
    assert len({id(snapshot.parts[0]._growing) for snapshot in found}) == 1
    assert len(found[9_999].text) == 10_000


# ---- when one comes, and what it says --------------------------------------------------------------------------------


def test_one_comes_for_each_change_and_none_for_no_change() -> None:
    found = snapshots_of(
        START, {"type": "is-task-complete", "payload": {}}, text("a"), {"type": "raw", "payload": {}}, finish()
    )
    assert [snapshot.text for snapshot in found][-2:] == ["a", "a"]
    assert len(found) <= 3
    assert found[-1].status == "success"


def test_steps_and_usage_are_counted() -> None:
    last = snapshots_of(START, STEP_START, text("a"), STEP_START, text("b"), finish())[-1]
    assert (last.step, last.usage.total_tokens, last.finish_reason) == (2, 2, "stop")


@pytest.mark.parametrize(
    ("end", "status"), [(error({"message": "boom"}), "failed"), (ABORT, "canceled"), (finish(), "success")]
)
def test_it_says_how_the_run_ended(end: Any, status: str) -> None:
    last = snapshots_of(text("a"), end)[-1]
    assert last.status == status
    assert (str(last.error) == "boom") == (status == "failed")


def test_a_call_that_never_settles_is_unresolved_at_the_end() -> None:
    assert snapshots_of(tool_call(args={}), finish())[-1].tool_runs[0].state == "unresolved"


def test_data_with_an_id_takes_the_place_of_the_one_before() -> None:
    def data(value: Any, key: str | None) -> dict[str, Any]:
        return {"type": "data-progress", "data": value, **({} if key is None else {"id": key})}

    last = snapshots_of(data(1, "a"), data(2, None), data(3, "a"), data(4, None), finish())[-1]
    assert [(part.type, part.data, part.id) for part in last.parts] == [
        ("data-progress", 3, "a"),
        ("data-progress", 2, None),
        ("data-progress", 4, None),
    ]


class Recipe(BaseModel):
    name: str
    steps: list[str]


def test_an_object_grows_and_each_state_stays() -> None:
    pieces = ['{"name": "Soup"', ', "st', 'eps": ["boil', '", "serve"]', "}"]
    found = snapshots_of(*[text(piece) for piece in pieces], finish(), schema=Recipe)
    grown = [snapshot.object for snapshot in found if snapshot.object is not None]
    assert grown[0] == {"name": "Soup"}
    assert {"name": "Soup", "steps": ["boil"]} in grown
    assert grown[-1] == {"name": "Soup", "steps": ["boil", "serve"]}
    assert len([part for part in found[-1].parts if part.kind == "object"]) == 1


@pytest.mark.parametrize("kind", ["text-delta", "source", "file", "tool-call", "text-start", "finish"])
def test_a_chunk_that_does_not_fit_stops_nothing(kind: str) -> None:
    found = snapshots_of(text("a"), {"type": kind, "payload": 5}, {"type": kind}, {"type": "data-x"}, text("b"))
    assert found[-1].text.replace("undefined", "") == "ab"


def test_a_source_that_fails_ends_it_with_the_failure() -> None:
    def source() -> Iterator[Any]:
        yield text("a")
        raise ConnectionError("gone")

    found, errors = list[mx.Snapshot](), list[Exception]()
    mx.MastraModelOutput(source()).snapshots.subscribe(found.append, errors.append)
    assert found[-1].text == "a"
    assert isinstance(errors[0], mx.SourceError)


def test_a_late_reader_gets_the_same() -> None:
    output = output_of(text("a"), tool_call(args={}), tool_result(result=1), finish())
    early = list(output.snapshots)
    assert [state(snapshot) for snapshot in output.snapshots] == [state(snapshot) for snapshot in early]
