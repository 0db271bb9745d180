"""Network chunks (Mastra 1.71.0, NetworkChunkType): routing decisions and what the chosen primitives do."""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, Json, JsonObject, Wire, wire


@wire
class RoutingAgentStartPayload(Wire):
    agent_id: str | None = None
    network_id: str | None = None
    run_id: str | None = None
    input_data: JsonObject | None = None


@wire
class RoutingAgentStartChunk(BaseChunk):
    """The routing agent begins to choose."""

    type: Literal["routing-agent-start"] = "routing-agent-start"
    payload: RoutingAgentStartPayload


@wire
class RoutingAgentTextStartPayload(Wire):
    run_id: str | None = None


@wire
class RoutingAgentTextStartChunk(BaseChunk):
    """The routing agent begins to answer by itself."""

    type: Literal["routing-agent-text-start"] = "routing-agent-text-start"
    payload: RoutingAgentTextStartPayload | None = None


@wire
class RoutingAgentTextDeltaPayload(Wire):
    text: str


@wire
class RoutingAgentTextDeltaChunk(BaseChunk):
    """A piece of the routing agent's own answer."""

    type: Literal["routing-agent-text-delta"] = "routing-agent-text-delta"
    payload: RoutingAgentTextDeltaPayload


@wire
class RoutingAgentEndPayload(Wire):
    task: str | None = None
    primitive_id: str | None = None
    primitive_type: str | None = None
    """`agent`, `workflow`, `tool` or `none`."""
    prompt: str | None = None
    result: Json = None
    is_complete: bool | None = None
    selection_reason: str | None = None
    iteration: int | None = None
    run_id: str | None = None
    usage: JsonObject | None = None
    conversation_context: Json = None


@wire
class RoutingAgentEndChunk(BaseChunk):
    """The routing agent chose."""

    type: Literal["routing-agent-end"] = "routing-agent-end"
    payload: RoutingAgentEndPayload


@wire
class PrimitiveAbortPayload(Wire):
    primitive_type: str | None = None
    primitive_id: str | None = None


@wire
class RoutingAgentAbortChunk(BaseChunk):
    """The routing agent was aborted."""

    type: Literal["routing-agent-abort"] = "routing-agent-abort"
    payload: PrimitiveAbortPayload | None = None


@wire
class ExecutionStartPayload(Wire):
    agent_id: str | None = None
    workflow_id: str | None = None
    name: str | None = None
    args: Json = None
    run_id: str | None = None


@wire
class ExecutionSuspendedPayload(Wire):
    """Also what waits for an approval; `suspend_payload` is missing there."""

    tool_call_id: str | None = None
    tool_name: str | None = None
    suspend_payload: Json = None
    args: Json = None
    resume_schema: str | None = None
    agent_id: str | None = None
    workflow_id: str | None = None
    name: str | None = None
    usage: JsonObject | None = None
    run_id: str | None = None
    selection_reason: str | None = None


@wire
class ExecutionEndPayload(Wire):
    task: str | None = None
    agent_id: str | None = None
    workflow_id: str | None = None
    name: str | None = None
    primitive_id: str | None = None
    primitive_type: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    result: Json = None
    is_complete: bool | None = None
    iteration: int | None = None
    usage: JsonObject | None = None
    run_id: str | None = None


@wire
class AgentExecutionStartChunk(BaseChunk):
    type: Literal["agent-execution-start"] = "agent-execution-start"
    payload: ExecutionStartPayload


@wire
class AgentExecutionApprovalChunk(BaseChunk):
    type: Literal["agent-execution-approval"] = "agent-execution-approval"
    payload: ExecutionSuspendedPayload


@wire
class AgentExecutionSuspendedChunk(BaseChunk):
    type: Literal["agent-execution-suspended"] = "agent-execution-suspended"
    payload: ExecutionSuspendedPayload


@wire
class AgentExecutionEndChunk(BaseChunk):
    type: Literal["agent-execution-end"] = "agent-execution-end"
    payload: ExecutionEndPayload


@wire
class AgentExecutionAbortChunk(BaseChunk):
    type: Literal["agent-execution-abort"] = "agent-execution-abort"
    payload: PrimitiveAbortPayload | None = None


@wire
class WorkflowExecutionStartChunk(BaseChunk):
    type: Literal["workflow-execution-start"] = "workflow-execution-start"
    payload: ExecutionStartPayload


@wire
class WorkflowExecutionEndChunk(BaseChunk):
    type: Literal["workflow-execution-end"] = "workflow-execution-end"
    payload: ExecutionEndPayload


@wire
class WorkflowExecutionSuspendedChunk(BaseChunk):
    type: Literal["workflow-execution-suspended"] = "workflow-execution-suspended"
    payload: ExecutionSuspendedPayload


@wire
class WorkflowExecutionAbortChunk(BaseChunk):
    type: Literal["workflow-execution-abort"] = "workflow-execution-abort"
    payload: PrimitiveAbortPayload | None = None


@wire
class ToolExecutionStartChunk(BaseChunk):
    type: Literal["tool-execution-start"] = "tool-execution-start"
    payload: ExecutionStartPayload


@wire
class ToolExecutionEndChunk(BaseChunk):
    type: Literal["tool-execution-end"] = "tool-execution-end"
    payload: ExecutionEndPayload


@wire
class ToolExecutionApprovalChunk(BaseChunk):
    type: Literal["tool-execution-approval"] = "tool-execution-approval"
    payload: ExecutionSuspendedPayload


@wire
class ToolExecutionSuspendedChunk(BaseChunk):
    type: Literal["tool-execution-suspended"] = "tool-execution-suspended"
    payload: ExecutionSuspendedPayload


@wire
class ToolExecutionAbortChunk(BaseChunk):
    type: Literal["tool-execution-abort"] = "tool-execution-abort"
    payload: PrimitiveAbortPayload | None = None


@wire
class NetworkStepFinishPayload(Wire):
    task: str | None = None
    result: Json = None
    is_complete: bool | None = None
    iteration: int | None = None
    run_id: str | None = None


@wire
class NetworkStepFinishChunk(BaseChunk):
    """One iteration of the network is done."""

    type: Literal["network-execution-event-step-finish"] = "network-execution-event-step-finish"
    payload: NetworkStepFinishPayload


@wire
class NetworkFinishPayload(Wire):
    task: str | None = None
    primitive_id: str | None = None
    primitive_type: str | None = None
    prompt: str | None = None
    result: Json = None
    object: Json = None
    is_complete: bool | None = None
    completion_reason: str | None = None
    iteration: int | None = None
    thread_id: str | None = None
    thread_resource_id: str | None = None
    is_one_off: bool | None = None
    validation_passed: bool | None = None
    usage: JsonObject | None = None


@wire
class NetworkFinishChunk(BaseChunk):
    """The network is done."""

    type: Literal["network-execution-event-finish"] = "network-execution-event-finish"
    payload: NetworkFinishPayload


@wire
class NetworkValidationPayload(Wire):
    run_id: str | None = None
    iteration: int | None = None
    checks_count: int | None = None
    passed: bool | None = None
    results: list[Json] | None = None
    duration: float | None = None
    """Milliseconds."""
    timed_out: bool | None = None
    reason: str | None = None
    max_iteration_reached: bool | None = None
    suppress_feedback: bool | None = None


@wire
class NetworkValidationStartChunk(BaseChunk):
    type: Literal["network-validation-start"] = "network-validation-start"
    payload: NetworkValidationPayload


@wire
class NetworkValidationEndChunk(BaseChunk):
    type: Literal["network-validation-end"] = "network-validation-end"
    payload: NetworkValidationPayload


@wire
class NetworkObjectPayload(Wire):
    object: Json = None


@wire
class NetworkObjectChunk(BaseChunk):
    """The network's structured answer as far as it has come."""

    type: Literal["network-object"] = "network-object"
    payload: NetworkObjectPayload


@wire
class NetworkObjectResultChunk(BaseChunk):
    """The network's structured answer."""

    type: Literal["network-object-result"] = "network-object-result"
    payload: NetworkObjectPayload
