"""Tool chunks (ChunkType reference, "Tool chunks"; approval, suspension and denial from Mastra 1.71.0)."""

from __future__ import annotations

from typing import Any, Literal, cast

from pydantic import model_validator

from .base import BaseChunk, Json, JsonObject, Wire, wire


@wire
class ToolCallInputStreamingStartPayload(Wire):
    tool_call_id: str
    tool_name: str | None = None
    title: str | None = None
    provider_executed: bool | None = None
    dynamic: bool | None = None
    provider_metadata: JsonObject | None = None
    observability: Json = None


@wire
class ToolCallInputStreamingStartChunk(BaseChunk):
    """The arguments of a call begin to stream."""

    type: Literal["tool-call-input-streaming-start"] = "tool-call-input-streaming-start"
    payload: ToolCallInputStreamingStartPayload


@wire
class ToolCallDeltaPayload(Wire):
    tool_call_id: str
    args_text_delta: str
    """A piece of the arguments' JSON text."""
    tool_name: str | None = None
    provider_metadata: JsonObject | None = None


@wire
class ToolCallDeltaChunk(BaseChunk):
    """A piece of a call's arguments."""

    type: Literal["tool-call-delta"] = "tool-call-delta"
    payload: ToolCallDeltaPayload

    @property
    def tool_call_id(self) -> str:
        """The call: `payload.tool_call_id`."""
        return self.payload.tool_call_id

    @property
    def args_text_delta(self) -> str:
        """The piece: `payload.args_text_delta`."""
        return self.payload.args_text_delta

    @property
    def tool_name(self) -> str | None:
        """The tool: `payload.tool_name`."""
        return self.payload.tool_name


@wire
class ToolCallInputStreamingEndPayload(Wire):
    tool_call_id: str
    provider_metadata: JsonObject | None = None


@wire
class ToolCallInputStreamingEndChunk(BaseChunk):
    """The arguments of a call are complete."""

    type: Literal["tool-call-input-streaming-end"] = "tool-call-input-streaming-end"
    payload: ToolCallInputStreamingEndPayload


@wire
class ToolCallPayload(Wire):
    tool_call_id: str
    tool_name: str | None = None
    args: Json = None
    """The arguments, an object as a rule; None where they could not be parsed (`args_error` says why, D6)."""
    args_text: str | None = None
    """The raw text of arguments that could not be parsed."""
    args_error: str | None = None
    title: str | None = None
    provider_executed: bool | None = None
    dynamic: bool | None = None
    output: Json = None
    provider_metadata: JsonObject | None = None
    observability: Json = None

    @model_validator(mode="before")
    @classmethod
    def _text_is_not_an_object(cls, data: Any) -> Any:
        """Some providers hand on arguments they could not parse as a string: keep it as text, call it an error."""
        if not isinstance(data, dict):
            return data
        fields = cast("JsonObject", data)
        text = fields.get("args")
        if not isinstance(text, str):
            return fields
        rest = {key: value for key, value in fields.items() if key != "args"}
        return {**rest, "argsText": text, "argsError": "the arguments came as text, not as a JSON object"}


@wire
class ToolCallChunk(BaseChunk):
    """A tool is being called."""

    type: Literal["tool-call"] = "tool-call"
    payload: ToolCallPayload


@wire
class ToolCallApprovalPayload(Wire):
    tool_call_id: str
    tool_name: str | None = None
    args: Json = None
    resume_schema: str | None = None
    """JSON schema, as JSON text, of what `approve_tool_call` and `decline_tool_call` answer."""


@wire
class ToolCallApprovalChunk(BaseChunk):
    """A call waits for somebody to approve it; the run is suspended."""

    type: Literal["tool-call-approval"] = "tool-call-approval"
    payload: ToolCallApprovalPayload


@wire
class ToolCallSuspendedPayload(Wire):
    tool_call_id: str
    tool_name: str | None = None
    suspend_payload: Json = None
    args: Json = None
    resume_schema: str | None = None
    """JSON schema, as JSON text, of the data that resumes the tool."""


@wire
class ToolCallSuspendedChunk(BaseChunk):
    """A tool suspended itself; the run is suspended."""

    type: Literal["tool-call-suspended"] = "tool-call-suspended"
    payload: ToolCallSuspendedPayload


@wire
class ToolResultPayload(Wire):
    tool_call_id: str
    tool_name: str | None = None
    result: Json = None
    is_error: bool | None = None
    provider_executed: bool | None = None
    args: Json = None
    dynamic: bool | None = None
    provider_metadata: JsonObject | None = None


@wire
class ToolResultChunk(BaseChunk):
    """What a tool gave back."""

    type: Literal["tool-result"] = "tool-result"
    payload: ToolResultPayload


@wire
class ToolErrorPayload(Wire):
    tool_call_id: str
    tool_name: str | None = None
    error: Json = None
    """On the wire the message is not at the top: look in `cause.message`, `details.errorMessage` and `name`."""
    args: Json = None
    id: str | None = None
    provider_executed: bool | None = None
    provider_metadata: JsonObject | None = None


@wire
class ToolErrorChunk(BaseChunk):
    """A tool failed; the model sees the error and the run goes on."""

    type: Literal["tool-error"] = "tool-error"
    payload: ToolErrorPayload


@wire
class ToolOutputDeniedPayload(Wire):
    tool_call_id: str
    tool_name: str | None = None
    args: Json = None
    approval: JsonObject | None = None
    """`{"id", "approved": false, "reason"}`."""


@wire
class ToolOutputDeniedChunk(BaseChunk):
    """Somebody declined the call."""

    type: Literal["tool-output-denied"] = "tool-output-denied"
    payload: ToolOutputDeniedPayload
