"""The vocabulary: every chunk type of Mastra, typed.

    chunk = parse_chunk('{"type": "text-delta", "payload": {"text": "Hi"}}')
    match chunk:
        case TextDeltaChunk(payload=payload):
            print(payload.text)

One module a section of the ChunkType reference. `Chunk` is the union of all, discriminated by `type`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .vocabulary import MODULE_OF, TYPES

if TYPE_CHECKING:
    from .background_task import (
        BackgroundTaskCancelledChunk,
        BackgroundTaskCancelledPayload,
        BackgroundTaskCompletedChunk,
        BackgroundTaskCompletedPayload,
        BackgroundTaskFailedChunk,
        BackgroundTaskFailedPayload,
        BackgroundTaskOutputChunk,
        BackgroundTaskOutputPayload,
        BackgroundTaskPayload,
        BackgroundTaskProgressChunk,
        BackgroundTaskProgressPayload,
        BackgroundTaskResumedChunk,
        BackgroundTaskResumedPayload,
        BackgroundTaskRunningChunk,
        BackgroundTaskRunningPayload,
        BackgroundTaskStartedChunk,
        BackgroundTaskStartedPayload,
        BackgroundTaskSuspendedChunk,
        BackgroundTaskSuspendedPayload,
    )
    from .base import BaseChunk, Wire, wire_name
    from .control import (
        AbortChunk,
        CustomChunk,
        CustomPayload,
        ErrorChunk,
        ErrorPayload,
        FinishChunk,
        FinishPayload,
        RawChunk,
        StartChunk,
        StartPayload,
        StepFinishChunk,
        StepFinishPayload,
        StepOutput,
        StepResult,
        StepStartChunk,
        StepStartPayload,
    )
    from .decode import Decoder
    from .hot import make_tool_call
    from .metadata import (
        GoalChunk,
        GoalPayload,
        IsTaskCompleteChunk,
        IsTaskCompletePayload,
        ResponseMetadataChunk,
        ResponseMetadataPayload,
        TripwireChunk,
        TripwirePayload,
        WatchChunk,
        WatchPayload,
    )
    from .network import (
        AgentExecutionAbortChunk,
        AgentExecutionApprovalChunk,
        AgentExecutionEndChunk,
        AgentExecutionStartChunk,
        AgentExecutionSuspendedChunk,
        ExecutionEndPayload,
        ExecutionStartPayload,
        ExecutionSuspendedPayload,
        NetworkFinishChunk,
        NetworkFinishPayload,
        NetworkObjectChunk,
        NetworkObjectPayload,
        NetworkObjectResultChunk,
        NetworkStepFinishChunk,
        NetworkStepFinishPayload,
        NetworkValidationEndChunk,
        NetworkValidationPayload,
        NetworkValidationStartChunk,
        PrimitiveAbortPayload,
        RoutingAgentAbortChunk,
        RoutingAgentEndChunk,
        RoutingAgentEndPayload,
        RoutingAgentStartChunk,
        RoutingAgentStartPayload,
        RoutingAgentTextDeltaChunk,
        RoutingAgentTextDeltaPayload,
        RoutingAgentTextStartChunk,
        RoutingAgentTextStartPayload,
        ToolExecutionAbortChunk,
        ToolExecutionApprovalChunk,
        ToolExecutionEndChunk,
        ToolExecutionStartChunk,
        ToolExecutionSuspendedChunk,
        WorkflowExecutionAbortChunk,
        WorkflowExecutionEndChunk,
        WorkflowExecutionStartChunk,
        WorkflowExecutionSuspendedChunk,
    )
    from .object_output import (
        ObjectChunk,
        ObjectResultChunk,
        StepOutputChunk,
        StepOutputPayload,
        ToolOutputChunk,
        ToolOutputPayload,
    )
    from .open import (
        DataChunk,
        HistoryGap,
        NestedEventChunk,
        UnknownChunk,
    )
    from .parse import chunk_of, class_of, parse_chunk, read_json
    from .reasoning import (
        ReasoningDeltaChunk,
        ReasoningDeltaPayload,
        ReasoningEndChunk,
        ReasoningEndPayload,
        ReasoningSignatureChunk,
        ReasoningSignaturePayload,
        ReasoningStartChunk,
        ReasoningStartPayload,
        RedactedReasoningChunk,
        RedactedReasoningPayload,
    )
    from .source_file import (
        FileChunk,
        FilePayload,
        ReasoningFileChunk,
        ReasoningFilePayload,
        SourceChunk,
        SourcePayload,
    )
    from .text import (
        TextDeltaChunk,
        TextDeltaPayload,
        TextEndChunk,
        TextEndPayload,
        TextStartChunk,
        TextStartPayload,
    )
    from .tool import (
        ToolCallApprovalChunk,
        ToolCallApprovalPayload,
        ToolCallChunk,
        ToolCallDeltaChunk,
        ToolCallDeltaPayload,
        ToolCallInputStreamingEndChunk,
        ToolCallInputStreamingEndPayload,
        ToolCallInputStreamingStartChunk,
        ToolCallInputStreamingStartPayload,
        ToolCallPayload,
        ToolCallSuspendedChunk,
        ToolCallSuspendedPayload,
        ToolErrorChunk,
        ToolErrorPayload,
        ToolOutputDeniedChunk,
        ToolOutputDeniedPayload,
        ToolResultChunk,
        ToolResultPayload,
    )
    from .wire import json_of, to_wire
    from .workflow import (
        WorkflowCanceledChunk,
        WorkflowFinishChunk,
        WorkflowFinishOutput,
        WorkflowFinishPayload,
        WorkflowPausedChunk,
        WorkflowStartChunk,
        WorkflowStartPayload,
        WorkflowStepFinishChunk,
        WorkflowStepOutputChunk,
        WorkflowStepOutputPayload,
        WorkflowStepPayload,
        WorkflowStepProgressChunk,
        WorkflowStepProgressPayload,
        WorkflowStepResultChunk,
        WorkflowStepStartChunk,
        WorkflowStepSuspendedChunk,
        WorkflowStepWaitingChunk,
    )

    Chunk = (
        TextStartChunk
        | TextDeltaChunk
        | TextEndChunk
        | ReasoningStartChunk
        | ReasoningDeltaChunk
        | ReasoningEndChunk
        | ReasoningSignatureChunk
        | RedactedReasoningChunk
        | ToolCallInputStreamingStartChunk
        | ToolCallDeltaChunk
        | ToolCallInputStreamingEndChunk
        | ToolCallChunk
        | ToolCallApprovalChunk
        | ToolCallSuspendedChunk
        | ToolResultChunk
        | ToolErrorChunk
        | ToolOutputDeniedChunk
        | SourceChunk
        | FileChunk
        | ReasoningFileChunk
        | CustomChunk
        | StartChunk
        | StepStartChunk
        | StepFinishChunk
        | FinishChunk
        | RawChunk
        | ErrorChunk
        | AbortChunk
        | ObjectChunk
        | ObjectResultChunk
        | ToolOutputChunk
        | StepOutputChunk
        | BackgroundTaskStartedChunk
        | BackgroundTaskRunningChunk
        | BackgroundTaskProgressChunk
        | BackgroundTaskOutputChunk
        | BackgroundTaskCompletedChunk
        | BackgroundTaskFailedChunk
        | BackgroundTaskSuspendedChunk
        | BackgroundTaskResumedChunk
        | BackgroundTaskCancelledChunk
        | ResponseMetadataChunk
        | WatchChunk
        | GoalChunk
        | IsTaskCompleteChunk
        | TripwireChunk
        | WorkflowStartChunk
        | WorkflowFinishChunk
        | WorkflowCanceledChunk
        | WorkflowPausedChunk
        | WorkflowStepStartChunk
        | WorkflowStepFinishChunk
        | WorkflowStepSuspendedChunk
        | WorkflowStepWaitingChunk
        | WorkflowStepOutputChunk
        | WorkflowStepProgressChunk
        | WorkflowStepResultChunk
        | RoutingAgentStartChunk
        | RoutingAgentTextStartChunk
        | RoutingAgentTextDeltaChunk
        | RoutingAgentEndChunk
        | RoutingAgentAbortChunk
        | AgentExecutionStartChunk
        | AgentExecutionApprovalChunk
        | AgentExecutionSuspendedChunk
        | AgentExecutionEndChunk
        | AgentExecutionAbortChunk
        | WorkflowExecutionStartChunk
        | WorkflowExecutionEndChunk
        | WorkflowExecutionSuspendedChunk
        | WorkflowExecutionAbortChunk
        | ToolExecutionStartChunk
        | ToolExecutionEndChunk
        | ToolExecutionApprovalChunk
        | ToolExecutionSuspendedChunk
        | ToolExecutionAbortChunk
        | NetworkStepFinishChunk
        | NetworkFinishChunk
        | NetworkValidationStartChunk
        | NetworkValidationEndChunk
        | NetworkObjectChunk
        | NetworkObjectResultChunk
        | DataChunk
        | NestedEventChunk
        | UnknownChunk
        | HistoryGap
    )

_FUNCTIONS = {
    "BaseChunk": "base",
    "Decoder": "decode",
    "Wire": "base",
    "chunk_of": "parse",
    "class_of": "parse",
    "json_of": "wire",
    "make_tool_call": "hot",
    "parse_chunk": "parse",
    "read_json": "parse",
    "to_wire": "wire",
    "wire_name": "base",
}


def __getattr__(name: str) -> Any:
    """What is named is imported then: typing the wire takes longer to import than all the rest.

    `Chunk`, the union, imports every class.
    """
    module = MODULE_OF.get(name) or _FUNCTIONS.get(name)
    if module is not None:
        value = getattr(importlib.import_module(f".{module}", __name__), name)
    elif name == "Chunk":
        value = _union()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _union() -> Any:
    from typing import Annotated, Union

    from pydantic import PlainSerializer, PlainValidator

    from .parse import class_of, parse_chunk
    from .wire import to_wire

    members = tuple(class_of(name) for name in MODULE_OF if name.endswith("Chunk") or name == "HistoryGap")
    union = Union[members]  # noqa: UP007  # made of a list
    return Annotated[union, PlainValidator(parse_chunk), PlainSerializer(to_wire)]


__all__ = [
    "TYPES",
    "AbortChunk",
    "AgentExecutionAbortChunk",
    "AgentExecutionApprovalChunk",
    "AgentExecutionEndChunk",
    "AgentExecutionStartChunk",
    "AgentExecutionSuspendedChunk",
    "BackgroundTaskCancelledChunk",
    "BackgroundTaskCancelledPayload",
    "BackgroundTaskCompletedChunk",
    "BackgroundTaskCompletedPayload",
    "BackgroundTaskFailedChunk",
    "BackgroundTaskFailedPayload",
    "BackgroundTaskOutputChunk",
    "BackgroundTaskOutputPayload",
    "BackgroundTaskPayload",
    "BackgroundTaskProgressChunk",
    "BackgroundTaskProgressPayload",
    "BackgroundTaskResumedChunk",
    "BackgroundTaskResumedPayload",
    "BackgroundTaskRunningChunk",
    "BackgroundTaskRunningPayload",
    "BackgroundTaskStartedChunk",
    "BackgroundTaskStartedPayload",
    "BackgroundTaskSuspendedChunk",
    "BackgroundTaskSuspendedPayload",
    "BaseChunk",
    "Chunk",
    "CustomChunk",
    "CustomPayload",
    "DataChunk",
    "Decoder",
    "ErrorChunk",
    "ErrorPayload",
    "ExecutionEndPayload",
    "ExecutionStartPayload",
    "ExecutionSuspendedPayload",
    "FileChunk",
    "FilePayload",
    "FinishChunk",
    "FinishPayload",
    "GoalChunk",
    "GoalPayload",
    "HistoryGap",
    "IsTaskCompleteChunk",
    "IsTaskCompletePayload",
    "NestedEventChunk",
    "NetworkFinishChunk",
    "NetworkFinishPayload",
    "NetworkObjectChunk",
    "NetworkObjectPayload",
    "NetworkObjectResultChunk",
    "NetworkStepFinishChunk",
    "NetworkStepFinishPayload",
    "NetworkValidationEndChunk",
    "NetworkValidationPayload",
    "NetworkValidationStartChunk",
    "ObjectChunk",
    "ObjectResultChunk",
    "PrimitiveAbortPayload",
    "RawChunk",
    "ReasoningDeltaChunk",
    "ReasoningDeltaPayload",
    "ReasoningEndChunk",
    "ReasoningEndPayload",
    "ReasoningFileChunk",
    "ReasoningFilePayload",
    "ReasoningSignatureChunk",
    "ReasoningSignaturePayload",
    "ReasoningStartChunk",
    "ReasoningStartPayload",
    "RedactedReasoningChunk",
    "RedactedReasoningPayload",
    "ResponseMetadataChunk",
    "ResponseMetadataPayload",
    "RoutingAgentAbortChunk",
    "RoutingAgentEndChunk",
    "RoutingAgentEndPayload",
    "RoutingAgentStartChunk",
    "RoutingAgentStartPayload",
    "RoutingAgentTextDeltaChunk",
    "RoutingAgentTextDeltaPayload",
    "RoutingAgentTextStartChunk",
    "RoutingAgentTextStartPayload",
    "SourceChunk",
    "SourcePayload",
    "StartChunk",
    "StartPayload",
    "StepFinishChunk",
    "StepFinishPayload",
    "StepOutput",
    "StepOutputChunk",
    "StepOutputPayload",
    "StepResult",
    "StepStartChunk",
    "StepStartPayload",
    "TextDeltaChunk",
    "TextDeltaPayload",
    "TextEndChunk",
    "TextEndPayload",
    "TextStartChunk",
    "TextStartPayload",
    "ToolCallApprovalChunk",
    "ToolCallApprovalPayload",
    "ToolCallChunk",
    "ToolCallDeltaChunk",
    "ToolCallDeltaPayload",
    "ToolCallInputStreamingEndChunk",
    "ToolCallInputStreamingEndPayload",
    "ToolCallInputStreamingStartChunk",
    "ToolCallInputStreamingStartPayload",
    "ToolCallPayload",
    "ToolCallSuspendedChunk",
    "ToolCallSuspendedPayload",
    "ToolErrorChunk",
    "ToolErrorPayload",
    "ToolExecutionAbortChunk",
    "ToolExecutionApprovalChunk",
    "ToolExecutionEndChunk",
    "ToolExecutionStartChunk",
    "ToolExecutionSuspendedChunk",
    "ToolOutputChunk",
    "ToolOutputDeniedChunk",
    "ToolOutputDeniedPayload",
    "ToolOutputPayload",
    "ToolResultChunk",
    "ToolResultPayload",
    "TripwireChunk",
    "TripwirePayload",
    "UnknownChunk",
    "WatchChunk",
    "WatchPayload",
    "Wire",
    "WorkflowCanceledChunk",
    "WorkflowExecutionAbortChunk",
    "WorkflowExecutionEndChunk",
    "WorkflowExecutionStartChunk",
    "WorkflowExecutionSuspendedChunk",
    "WorkflowFinishChunk",
    "WorkflowFinishOutput",
    "WorkflowFinishPayload",
    "WorkflowPausedChunk",
    "WorkflowStartChunk",
    "WorkflowStartPayload",
    "WorkflowStepFinishChunk",
    "WorkflowStepOutputChunk",
    "WorkflowStepOutputPayload",
    "WorkflowStepPayload",
    "WorkflowStepProgressChunk",
    "WorkflowStepProgressPayload",
    "WorkflowStepResultChunk",
    "WorkflowStepStartChunk",
    "WorkflowStepSuspendedChunk",
    "WorkflowStepWaitingChunk",
    "chunk_of",
    "class_of",
    "json_of",
    "make_tool_call",
    "parse_chunk",
    "read_json",
    "to_wire",
    "wire_name",
]
