"""Text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc

from .operator import Emit, Operator, operator

if TYPE_CHECKING:
    from ..chunks import Chunk, TextDeltaChunk


class TextReducer:
    """The pieces of text of a run, and where in them the run, the turn and the step began."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._run = self._turn = self._step = 0

    def delta(self) -> Callable[[TextDeltaChunk], TextDeltaChunk]:
        """The handler of text deltas, which passes them on: nine of ten chunks go through here."""
        append = self._pieces.append

        def on_delta(chunk: TextDeltaChunk) -> TextDeltaChunk:
            append(chunk.text)
            return chunk

        return on_delta

    @property
    def of_run(self) -> str:
        return "".join(self._pieces[self._run :])

    @property
    def of_turn(self) -> str:
        return "".join(self._pieces[max(self._run, self._turn) :])

    @property
    def of_step(self) -> str:
        return "".join(self._pieces[self._step :])

    @property
    def in_step(self) -> bool:
        return len(self._pieces) > self._step

    def close_step(self) -> None:
        self._step = len(self._pieces)

    def close_turn(self) -> None:
        self._turn = len(self._pieces)

    def drop(self) -> None:
        """A goal goes on: the text of the run starts anew; the step keeps its own."""
        self._run = len(self._pieces)


def text_deltas() -> Operator[str]:
    """The pieces of text, as they come.

        --text-delta("Hel")--tool-call--text-delta("lo")--finish-|
        [                     text_deltas()                      ]
        --"Hel"-------------------------"lo"----------------------|

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> "".join(mx.as_view(mx.from_jsonl(mx.recording("text")).pipe(ops.text_deltas())))
    'Hello, world!'
    """
    return _deltas("text-delta")


def reasoning_deltas() -> Operator[str]:
    """The pieces of reasoning, as they come.

    --reasoning-delta("Hm")--text-delta("Yes")--finish-|
    [               reasoning_deltas()                 ]
    --"Hm"----------------------------------------------|
    """
    return _deltas("reasoning-delta")


def routing_text() -> Operator[str]:
    """The pieces of what a network's routing agent answers by itself, as they come."""

    def feeding(emit: Emit[str]) -> Callable[[Chunk], Any]:
        def feed(chunk: Chunk) -> None:
            if chunk.type == "routing-agent-text-delta":
                emit(chunk.payload.text)

        return feed

    return operator(feeding)


def _deltas(kind: str) -> Operator[str]:
    def apply(source: Observable[Chunk]) -> Observable[str]:
        def subscribe(
            observer: abc.ObserverBase[str], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            emit = observer.on_next

            def on_next(chunk: Any) -> None:
                if chunk.type == kind:
                    emit(chunk.text)

            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return apply
