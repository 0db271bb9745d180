"""Object and output chunks (ChunkType reference, "Object and output chunks"; object-result from Mastra 1.71.0)."""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, Json, Wire, wire


@wire
class ObjectChunk(BaseChunk):
    """The structured object as far as it has come. The value stands beside `type`: there is no payload."""

    type: Literal["object"] = "object"
    object: Json


@wire
class ObjectResultChunk(BaseChunk):
    """The structured object, complete and validated by the server; `metadata["fallback"]` marks a fallback value."""

    type: Literal["object-result"] = "object-result"
    object: Json


@wire
class ToolOutputPayload(Wire):
    output: Json = None
    """A chunk of an agent or workflow that runs inside the tool, or what the tool's writer wrote."""
    tool_call_id: str | None = None
    tool_name: str | None = None


@wire
class ToolOutputChunk(BaseChunk):
    """What a running tool lets out."""

    type: Literal["tool-output"] = "tool-output"
    payload: ToolOutputPayload


@wire
class StepOutputPayload(Wire):
    output: Json = None
    step_name: str | None = None
    run_id: str | None = None


@wire
class StepOutputChunk(BaseChunk):
    """What a running workflow step lets out."""

    type: Literal["step-output"] = "step-output"
    payload: StepOutputPayload
