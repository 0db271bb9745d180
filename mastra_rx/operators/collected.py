"""What is only collected: sources, files, tool results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .operator import Operator, Reducer, reduction

if TYPE_CHECKING:
    from ..chunks import FileChunk, SourceChunk, ToolResultChunk

C = TypeVar("C")


class Collector(Reducer, Generic[C]):
    """The chunks of one type, of the run and of the step."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._chunks: list[C] = []
        self._step_chunks: list[C] = []

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {self._kind: self.add}

    def add(self, chunk: C) -> None:
        self._chunks.append(chunk)
        self._step_chunks.append(chunk)

    @property
    def of_run(self) -> list[C]:
        return self._chunks.copy()

    @property
    def of_step(self) -> list[C]:
        return self._step_chunks.copy()

    def close_step(self) -> None:
        self._step_chunks.clear()

    def drop(self) -> None:
        """A goal goes on: those of the run start anew; the step keeps its own."""
        self._chunks.clear()


def sources() -> Operator[list[SourceChunk]]:
    """The sources that the model used, when the run is complete.

    --source(a)--text-delta--source(b)--finish-|
    [                sources()                 ]
    --------------------------------------------([a, b])-|
    """
    return reduction(lambda: Collector["SourceChunk"]("source"), lambda reducer: reducer.of_run)


def files() -> Operator[list[FileChunk]]:
    """The files that the model made, when the run is complete."""
    return reduction(lambda: Collector["FileChunk"]("file"), lambda reducer: reducer.of_run)


def tool_results() -> Operator[list[ToolResultChunk]]:
    """The results of tools in the order in which they came, when the run is complete; a tool's error is no result."""
    return reduction(lambda: Collector["ToolResultChunk"]("tool-result"), lambda reducer: reducer.of_run)
