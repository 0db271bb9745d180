"""Reasoning chunks (ChunkType reference, "Reasoning chunks"; redacted-reasoning from Mastra 1.71.0)."""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, Json, JsonObject, Wire, wire


@wire
class ReasoningStartPayload(Wire):
    id: str | None = None
    signature: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class ReasoningStartChunk(BaseChunk):
    """A block of reasoning begins."""

    type: Literal["reasoning-start"] = "reasoning-start"
    payload: ReasoningStartPayload


@wire
class ReasoningDeltaPayload(Wire):
    id: str | None = None
    text: str
    provider_metadata: JsonObject | None = None


@wire
class ReasoningDeltaChunk(BaseChunk):
    """A piece of reasoning."""

    type: Literal["reasoning-delta"] = "reasoning-delta"
    payload: ReasoningDeltaPayload

    @property
    def text(self) -> str:
        """The piece: `payload.text`."""
        return self.payload.text


@wire
class ReasoningEndPayload(Wire):
    id: str | None = None
    signature: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class ReasoningEndChunk(BaseChunk):
    """A block of reasoning is complete; its signature, if any, is in `provider_metadata`."""

    type: Literal["reasoning-end"] = "reasoning-end"
    payload: ReasoningEndPayload


@wire
class ReasoningSignaturePayload(Wire):
    id: str | None = None
    signature: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class ReasoningSignatureChunk(BaseChunk):
    """The signature of a block of reasoning."""

    type: Literal["reasoning-signature"] = "reasoning-signature"
    payload: ReasoningSignaturePayload


@wire
class RedactedReasoningPayload(Wire):
    id: str | None = None
    data: Json = None
    provider_metadata: JsonObject | None = None


@wire
class RedactedReasoningChunk(BaseChunk):
    """Reasoning that the provider keeps to itself."""

    type: Literal["redacted-reasoning"] = "redacted-reasoning"
    payload: RedactedReasoningPayload
