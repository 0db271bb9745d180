"""Text chunks (ChunkType reference, "Text chunks")."""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, JsonObject, Wire, wire


@wire
class TextStartPayload(Wire):
    id: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class TextStartChunk(BaseChunk):
    """A block of text begins."""

    type: Literal["text-start"] = "text-start"
    payload: TextStartPayload


@wire
class TextDeltaPayload(Wire):
    id: str | None = None
    """Which block the piece belongs to; ids are reused from step to step."""
    text: str
    provider_metadata: JsonObject | None = None


@wire
class TextDeltaChunk(BaseChunk):
    """A piece of text."""

    type: Literal["text-delta"] = "text-delta"
    payload: TextDeltaPayload

    @property
    def text(self) -> str:
        """The piece: `payload.text`."""
        return self.payload.text


@wire
class TextEndPayload(Wire):
    id: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class TextEndChunk(BaseChunk):
    """A block of text is complete."""

    type: Literal["text-end"] = "text-end"
    payload: TextEndPayload
