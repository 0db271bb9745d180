"""Control chunks (ChunkType reference, "Control chunks"): how a run begins, steps, ends or fails."""

from __future__ import annotations

from typing import Literal

from pydantic import InstanceOf

from .base import BaseChunk, Date, Json, JsonObject, Wire, wire


@wire
class CustomPayload(Wire):
    kind: str | None = None
    """`{provider}.{provider-type}`."""
    provider_metadata: JsonObject | None = None


@wire
class CustomChunk(BaseChunk):
    """A provider's own kind of content (AI SDK 7 providers)."""

    type: Literal["custom"] = "custom"
    payload: CustomPayload


@wire
class StartPayload(Wire):
    id: str | None = None
    message_id: str | None = None


@wire
class StartChunk(BaseChunk):
    """A run begins."""

    type: Literal["start"] = "start"
    payload: StartPayload | None = None


@wire
class StepStartPayload(Wire):
    message_id: str | None = None
    started_at: Date | None = None
    model_id: str | None = None
    """The model this step calls (ChunkType reference; not in 1.71.0)."""
    provider: str | None = None
    request: JsonObject | None = None
    """The request to the provider; servers strip it."""
    input_messages: Json = None
    warnings: list[Json] | None = None


@wire
class StepStartChunk(BaseChunk):
    """A step, one call of the model, begins."""

    type: Literal["step-start"] = "step-start"
    payload: StepStartPayload | None = None


@wire
class StepResult(Wire):
    reason: str | None = None
    """Why the model stopped: `stop`, `length`, `content-filter`, `tool-calls`, `error`, `other`, `unknown`, `tripwire`,
    `retry`, or whatever a newer server says."""
    raw_reason: str | None = None
    """The provider's own word for it."""
    warnings: list[Json] | None = None
    is_continued: bool | None = None
    logprobs: Json = None


@wire
class StepOutput(Wire):
    text: str | None = None
    tool_calls: list[Json] | None = None
    usage: InstanceOf[JsonObject] | None = None
    """Token counts as the provider gave them, the very object; `output.usage` gives them reduced to numbers."""
    steps: list[Json] | None = None
    object: Json = None


@wire
class StepFinishPayload(Wire):
    id: str | None = None
    message_id: str | None = None
    step_result: StepResult | None = None
    output: StepOutput | None = None
    metadata: JsonObject | None = None
    total_usage: JsonObject | None = None
    response: JsonObject | None = None
    provider_metadata: JsonObject | None = None
    messages: JsonObject | None = None


@wire
class StepFinishChunk(BaseChunk):
    """A step is complete."""

    type: Literal["step-finish"] = "step-finish"
    payload: StepFinishPayload


@wire
class FinishPayload(Wire):
    message_id: str | None = None
    step_result: StepResult | None = None
    output: StepOutput | None = None
    metadata: JsonObject | None = None
    provider_metadata: JsonObject | None = None
    messages: JsonObject | None = None
    response: JsonObject | None = None


@wire
class FinishChunk(BaseChunk):
    """A run is complete; also sent after an error (reason `error`) and after an abort (reason `tripwire`)."""

    type: Literal["finish"] = "finish"
    payload: FinishPayload


@wire
class RawChunk(BaseChunk):
    """A provider's raw chunk; only kept with `include_raw=True`."""

    type: Literal["raw"] = "raw"
    payload: Json = None


@wire
class ErrorPayload(Wire):
    error: Json = None
    """Message, name, stack and own keys of the error, or a string, or anything else that was thrown."""


@wire
class ErrorChunk(BaseChunk):
    """The run failed."""

    type: Literal["error"] = "error"
    payload: ErrorPayload | None = None


@wire
class AbortChunk(BaseChunk):
    """The run was aborted."""

    type: Literal["abort"] = "abort"
    payload: JsonObject | None = None
