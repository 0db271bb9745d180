"""Snapshots: the whole state of a run as one immutable value after each change, the one thing a screen needs.

A snapshot shares with the one before it what did not change: a part that is the same object need not be painted again.
Texts are joined when somebody reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..schema import Schema, schema_of
from .full_output import Status, Tripwire
from .objects import ObjectStream
from .operator import Emit, Operator, operator
from .run import RunReducer
from .tool_runs import ToolRun, ToolRunReducer
from .usage import Usage

if TYPE_CHECKING:
    from ..chunks import Chunk, FileChunk, FilePayload, SourceChunk, SourcePayload

    Part = "TextPart | ToolPart | SourcePart | FilePart | DataPart | ObjectPart"


class _Growing:
    """A text that grows: its pieces, and what was joined of them last. Any thread may read."""

    __slots__ = ("joined", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.joined = (0, "")

    def text(self, count: int) -> str:
        read, joined = self.joined
        if count < read:
            return "".join(self.pieces[:count])
        if count > read:
            joined += "".join(self.pieces[read:count])
            self.joined = (count, joined)
        return joined


@dataclass(frozen=True, slots=True, eq=False)
class TextPart:
    """A block of text or of reasoning."""

    kind: str
    """`text` or `reasoning`."""
    id: str | None
    is_complete: bool = False
    _growing: _Growing = field(default_factory=_Growing, repr=False)
    _count: int = field(default=0, repr=False)

    @property
    def text(self) -> str:
        """The text so far."""
        return self._growing.text(self._count)


@dataclass(frozen=True, slots=True, eq=False)
class ToolPart:
    """A tool call as it stands."""

    run: ToolRun
    kind: str = "tool"


@dataclass(frozen=True, slots=True, eq=False)
class SourcePart:
    """A source that the model used."""

    source: SourcePayload
    kind: str = "source"


@dataclass(frozen=True, slots=True, eq=False)
class FilePart:
    """A file that the model made."""

    file: FilePayload
    kind: str = "file"


@dataclass(frozen=True, slots=True, eq=False)
class DataPart:
    """What a tool or a step wrote for the screen. One with an id takes the place of the one before with that id."""

    type: str
    data: Any
    id: str | None = None
    kind: str = "data"


@dataclass(frozen=True, slots=True, eq=False)
class ObjectPart:
    """The structured object so far."""

    value: Any
    kind: str = "object"


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The state of a run at a moment."""

    parts: tuple[Any, ...] = ()
    """`TextPart`, `ToolPart`, `SourcePart`, `FilePart`, `DataPart` and `ObjectPart`, in the order they began."""
    status: Status = "running"
    step: int = 0
    """How many steps have begun."""
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    error: Exception | None = None
    tripwire: Tripwire | None = None
    run_id: str | None = None

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(part.text for part in self.parts if part.kind == "text")

    @property
    def reasoning(self) -> str:
        """All reasoning so far."""
        return "".join(part.text for part in self.parts if part.kind == "reasoning")

    @property
    def tool_runs(self) -> tuple[ToolRun, ...]:
        """The tool calls as they stand."""
        return tuple(part.run for part in self.parts if part.kind == "tool")

    @property
    def object(self) -> Any:
        """The structured object so far."""
        return next((part.value for part in reversed(self.parts) if part.kind == "object"), None)


class SnapshotReducer:
    """Makes a snapshot after each chunk that changed something."""

    def __init__(self, emit: Emit[Snapshot], schema: Schema[Any] | None = None) -> None:
        self._emit = emit
        self._parts: list[Any] = []
        self._places: dict[object, int] = {}
        self._run = RunReducer()
        self._tools = ToolRunReducer(self._tool)
        self._tool_handlers = self._tools.handlers()
        self._objects = ObjectStream(self._object, schema)
        self._reads_text = schema is not None
        self._snapshot = Snapshot()
        self._changed = False
        self._step = 0

    def __call__(self, chunk: Chunk) -> None:
        kind = chunk.type
        if kind == "text-delta" or kind == "reasoning-delta":
            self._grow(chunk.type.removesuffix("-delta"), chunk)
            if self._reads_text:
                self._objects(chunk)
            self._run.feed(chunk)
            self._say(self._snapshot)
            return
        handler = _PARTS.get(kind)
        if handler is not None:
            handler(self, chunk)
        elif kind.startswith("data-"):
            self._data(chunk)
        tool = self._tool_handlers.get(kind)
        if tool is not None:
            tool(chunk)
        if kind in ("object", "object-result") or self._reads_text:
            self._objects(chunk)
        self._run.feed(chunk)
        standing = self._standing()
        if self._changed or standing is not self._snapshot:
            self._say(standing)

    def end(self) -> None:
        """Nothing more comes: calls that are still open become unresolved."""
        self._objects.end()
        self._tools.end()
        if self._changed:
            self._say(self._standing())

    def _say(self, standing: Snapshot) -> None:
        self._changed = False
        self._snapshot = Snapshot(
            tuple(self._parts),
            standing.status,
            standing.step,
            standing.usage,
            standing.finish_reason,
            standing.error,
            standing.tripwire,
            standing.run_id,
        )
        self._emit(self._snapshot)

    def _standing(self) -> Snapshot:
        """The snapshot with what the run says of itself; the same object if nothing of that changed."""
        run, before = self._run, self._snapshot
        now = (run.status, self._step, run.finish_reason, run.failure, run.tripwire, run.run_id)
        if now == (before.status, before.step, before.finish_reason, before.error, before.tripwire, before.run_id):
            usage = run.usage.usage
            return before if usage == before.usage else replace(before, usage=usage)
        status, step, reason, error, tripwire, run_id = now
        return Snapshot(before.parts, status, step, run.usage.usage, reason, error, tripwire, run_id)

    def _put(self, key: object, part: Any) -> None:
        self._changed = True
        place = self._places.get(key)
        if place is None:
            self._places[key] = len(self._parts)
            self._parts.append(part)
        else:
            self._parts[place] = part

    def _grow(self, kind: str, chunk: Any) -> None:
        block = chunk.payload.id
        place = self._places.get((kind, block))
        part: TextPart
        if place is None:
            self._begin(kind, block)
            place = self._places[kind, block]
        part = self._parts[place]
        part._growing.pieces.append(chunk.text)
        self._parts[place] = TextPart(kind, block, False, part._growing, part._count + 1)

    def _begin(self, kind: str, block: str | None) -> None:
        self._places.pop((kind, block), None)  # ids are reused from step to step
        self._put((kind, block), TextPart(kind, block))

    def _text_start(self, chunk: Any) -> None:
        self._begin(chunk.type.removesuffix("-start"), chunk.payload.id)

    def _text_end(self, chunk: Any) -> None:
        key = (chunk.type.removesuffix("-end"), chunk.payload.id)
        place = self._places.pop(key, None)
        if place is not None:
            self._changed = True
            self._parts[place] = replace(self._parts[place], is_complete=True)

    def _step_start(self, _: Any) -> None:
        self._step += 1

    def _source(self, chunk: SourceChunk) -> None:
        self._put(object(), SourcePart(chunk.payload))

    def _file(self, chunk: FileChunk) -> None:
        self._put(object(), FilePart(chunk.payload))

    def _data(self, chunk: Any) -> None:
        key = object() if chunk.id is None else (chunk.type, chunk.id)
        self._put(key, DataPart(chunk.type, chunk.data, chunk.id))

    def _tool(self, run: ToolRun) -> None:
        self._put(("tool", run.tool_call_id), ToolPart(run))

    def _object(self, value: Any) -> None:
        self._put("object", ObjectPart(value))


_PARTS: dict[str, Callable[[SnapshotReducer, Any], None]] = {
    "text-start": SnapshotReducer._text_start,
    "reasoning-start": SnapshotReducer._text_start,
    "text-end": SnapshotReducer._text_end,
    "reasoning-end": SnapshotReducer._text_end,
    "step-start": SnapshotReducer._step_start,
    "source": SnapshotReducer._source,
    "file": SnapshotReducer._file,
}


def snapshots(schema: Any = None) -> Operator[Snapshot]:
    """The whole state of the run after each change.

        --start--text-delta("Hel")--text-delta("lo")--finish-|
        [                    snapshots()                     ]
        --(s0)---(s1: "Hel")--------(s2: "Hello")----(s3)----|

    Cheap: a snapshot shares what did not change, so a part that `is` the one before need not be painted again.

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> last = mx.as_view(mx.from_jsonl(mx.recording("tools")).pipe(ops.snapshots())).run()
    >>> last.text, [run.state for run in last.tool_runs], last.status
    ('It is 21.5 degrees.', ['output-available'], 'success')
    """
    known = None if schema is None else schema_of(schema)
    return operator(lambda emit: SnapshotReducer(emit, known), at_end=lambda feed: feed.end)
