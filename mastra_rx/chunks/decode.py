"""A stream's worth of decoding: many chunks at once, and an emoji whose halves came in two deltas made whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from ..errors import ChunkDecodeError
from .base import BaseChunk, JsonObject
from .hot import HOT, fill_in_tool_name
from .parse import parse_chunk
from .surrogates import REPLACEMENT, has_half, joined

if TYPE_CHECKING:
    from . import Chunk

    Wirelike = Chunk | JsonObject | str | bytes

_TEXT_OF = {"text-delta": ("id", "text"), "reasoning-delta": ("id", "text")}
_TEXT_OF["tool-call-delta"] = ("tool_call_id", "args_text_delta")
_NAMING = frozenset({"tool-call-input-streaming-start", "tool-call-delta"})
_DELTA_OF = {
    "text-end": ("text-delta", "id"),
    "reasoning-end": ("reasoning-delta", "id"),
    "tool-call-input-streaming-end": ("tool-call-delta", "tool_call_id"),
}


class Decoder:
    """Reads the chunks of one stream.

    Half an emoji at the end of a delta is held back and put before the next delta of the same block; where the block
    or the stream ends without its other half, U+FFFD takes its place. A piece of arguments that does not name its tool
    gets the name that the start of the call had (Mastra 1.71.0).
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, object], BaseChunk] = {}
        self._tools: dict[str, str | None] = {}

    def decode(self, items: Iterable[Wirelike], first: int = 0) -> list[Chunk]:
        """The chunks that `items` stand for. See `decode_into`."""
        chunks: list[Chunk] = []
        self.decode_into(chunks, items, first)
        return chunks

    def decode_into(self, chunks: list[Chunk], items: Iterable[Wirelike], first: int = 0, place: str = "line") -> None:
        """Append the chunks that `items` stand for; blank texts stand for none.

        Raises `ChunkDecodeError` at an item that is no chunk, numbered from `first` + 1; those before it are appended.
        """
        append, held = chunks.append, self._held
        number = first
        try:
            for number, item in enumerate(items, first + 1):  # noqa: B007  # the error below says it
                if type(item) is bytes:
                    try:
                        value = from_json(item, allow_inf_nan=False)
                        kind = value["type"]
                        chunk = HOT[kind](value)
                    except (ValueError, KeyError, TypeError):
                        chunk = None
                    else:
                        if kind in _NAMING and chunk is not None:
                            self._name(chunk)
                    if chunk is not None and not held:  # pydantic's parser took it, so there is no half in it
                        append(chunk)
                        continue
                if isinstance(item, bytes | str) and (not item or item.isspace()):
                    continue
                chunks += self._whole(parse_chunk(item))
        except ChunkDecodeError as error:
            raise error.at(number, place) from error.__cause__

    def end(self) -> list[Chunk]:
        """What has to be said when no more comes: U+FFFD for each half still waiting for its other."""
        return [self._given_up(key) for key in list(self._held)]

    def _name(self, chunk: Any) -> None:
        if chunk.type == "tool-call-input-streaming-start":
            self._tools[chunk.payload.tool_call_id] = chunk.payload.tool_name
        elif chunk.tool_name is None:
            name = self._tools.get(chunk.tool_call_id)
            if name is not None:
                fill_in_tool_name(chunk, name)

    def _whole(self, chunk: Chunk) -> list[Chunk]:
        kind = chunk.type
        if kind in _TEXT_OF:
            return [self._joined(chunk, *_TEXT_OF[kind])]
        if self._held and kind in _DELTA_OF:
            delta, name = _DELTA_OF[kind]
            key = (delta, getattr(chunk.payload, name, None))  # type: ignore[reportAttributeAccessIssue]  # they have one
            if key in self._held:
                return [self._given_up(key), chunk]
        return [chunk]

    def _joined(self, chunk: Chunk, id_name: str, text_name: str) -> Chunk:
        payload: Any = getattr(chunk, "payload", None)
        text = getattr(payload, text_name, None)
        if not isinstance(text, str):
            return chunk
        key = (chunk.type, getattr(payload, id_name))
        before = self._held.pop(key, None)
        if before is None and not has_half(text):
            return chunk
        whole, held = joined(("" if before is None else _half_of(before)) + text)
        if held:
            self._held[key] = _with_text(chunk, text_name, held)
        return cast("Chunk", _with_text(chunk, text_name, whole))

    def _given_up(self, key: tuple[str, object]) -> Chunk:
        _, text_name = _TEXT_OF[key[0]]
        return cast("Chunk", _with_text(self._held.pop(key), text_name, REPLACEMENT))


def _half_of(chunk: BaseChunk) -> str:
    return getattr(cast("Any", chunk).payload, _TEXT_OF[chunk.type][1])


def _with_text(chunk: BaseChunk, text_name: str, text: str) -> BaseChunk:
    """A copy of a delta with another text; made without validation, which refuses half an emoji."""
    payload = cast("Any", chunk).payload
    inner = object.__new__(payload.__class__)
    inner.__setstate__({**payload.__getstate__(), text_name: text})
    copy = object.__new__(chunk.__class__)
    copy.__setstate__({**chunk.__getstate__(), "payload": inner})
    return copy
