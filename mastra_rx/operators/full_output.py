"""What a whole run came to: `FullOutput`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

from .reasoning import ReasoningPart
from .steps import Step
from .tool_pairs import ToolPair
from .usage import Usage

if TYPE_CHECKING:
    from ..chunks import FileChunk, SourceChunk, ToolCallChunk, ToolResultChunk

T = TypeVar("T", default=Any)

Status = Literal["running", "success", "failed", "canceled", "suspended"]


@dataclass(frozen=True, slots=True)
class Tripwire:
    """Why a processor blocked the run."""

    reason: str
    retry: bool | None = None
    metadata: Any = None
    processor_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FullOutput(Generic[T]):
    """Everything a run came to. Immutable; where the run failed, `error` is set, the rest is what came until then."""

    text: str = ""
    """The texts of all steps; of a run that failed, all that came. (`output.text` is the last step's alone, when tools
    were used.)"""
    object: T | None = None
    reasoning: str = ""
    reasoning_text: str | None = None
    reasoning_parts: list[ReasoningPart] = field(default_factory=list[ReasoningPart])
    tool_calls: list[ToolCallChunk] = field(default_factory=list["ToolCallChunk"])
    tool_results: list[ToolResultChunk] = field(default_factory=list["ToolResultChunk"])
    tool_pairs: list[ToolPair] = field(default_factory=list[ToolPair])
    """Each call with its outcome, in call order."""
    steps: list[Step] = field(default_factory=list[Step])
    usage: Usage = field(default_factory=Usage)
    total_usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    sources: list[SourceChunk] = field(default_factory=list["SourceChunk"])
    files: list[FileChunk] = field(default_factory=list["FileChunk"])
    warnings: list[Any] = field(default_factory=list[Any])
    request: Mapping[str, Any] = field(default_factory=dict[str, Any])
    response: Mapping[str, Any] = field(default_factory=dict[str, Any])
    provider_metadata: Mapping[str, Any] | None = None
    suspend_payload: Any = None
    resume_schema: str | None = None
    status: Status = "running"
    error: Exception | None = None
    tripwire: Tripwire | None = None
    used_fallback_value: bool = False
    run_id: str | None = None
    trace_id: str | None = None
