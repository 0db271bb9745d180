"""Chunks whose type is open: `data-*`, the renamed chunks of nested runs, types nobody knows; and the gap marker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .base import BaseChunk, Json, wire

if TYPE_CHECKING:
    # Type checkers narrow a union by `chunk.type == "text-delta"` only if every member's type is a literal.
    DataType = Literal["data-*"]
    NestedType = Literal["*-execution-event-*"]
    UnknownType = Literal["?"]
else:
    DataType = NestedType = UnknownType = str


@wire
class DataChunk(BaseChunk):
    """What a tool or a workflow step wrote for the user interface; `type` is `data-` and a name of its own."""

    type: DataType
    data: Json = None
    id: str | None = None
    transient: bool | None = None
    """True: streamed, not kept in the memory."""


@wire
class NestedEventChunk(BaseChunk):
    """A chunk of a network's inner run: `agent-execution-event-*` or `workflow-execution-event-*`."""

    type: NestedType
    payload: Json = None
    """The inner chunk as it came; some servers put its `runId` and `from` here, some at the top."""


@wire
class UnknownChunk(BaseChunk):
    """A chunk of a type nobody knows, or of a known type that does not fit. All it had is in `raw`.

    `type` is the wire's, except for a chunk that does not fit its type: that one has the type `unknown`, so that
    `chunk.type == "text-delta"` always means a `TextDeltaChunk`. `wire_type` is the wire's in both cases.
    """

    type: UnknownType
    payload: Json = None
    raw: Json = None
    error: Exception | None = None
    """Why a chunk of a known type did not fit; None for an unknown type."""

    @property
    def wire_type(self) -> str:
        """The type as it stood on the wire."""
        return self.raw["type"]


@wire
class HistoryGap(BaseChunk):
    """The first thing a late reader gets where `history=n` dropped chunks; never on the wire."""

    type: Literal["history-gap"] = "history-gap"
    missed: int = 0
    """How many chunks came before the first one that is still kept."""
