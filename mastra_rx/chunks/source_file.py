"""Source and file chunks (ChunkType reference, "Source and file chunks")."""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, Data, JsonObject, Wire, wire


@wire
class SourcePayload(Wire):
    id: str | None = None
    source_type: str | None = None
    """`url` or `document`."""
    title: str | None = None
    mime_type: str | None = None
    filename: str | None = None
    url: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class SourceChunk(BaseChunk):
    """A source that the model used."""

    type: Literal["source"] = "source"
    payload: SourcePayload


@wire
class FilePayload(Wire):
    data: Data
    base64: str | None = None
    mime_type: str | None = None
    filename: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class FileChunk(BaseChunk):
    """A file that the model made."""

    type: Literal["file"] = "file"
    payload: FilePayload


@wire
class ReasoningFilePayload(Wire):
    data: Data
    base64: str | None = None
    mime_type: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class ReasoningFileChunk(BaseChunk):
    """A file that the model made while reasoning (AI SDK 7 providers)."""

    type: Literal["reasoning-file"] = "reasoning-file"
    payload: ReasoningFilePayload
