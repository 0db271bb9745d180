"""Steps: each call of the model with what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from .collected import Collector
from .operator import Emit, Operator, operator
from .reasoning import ReasoningPart, ReasoningReducer
from .text import TextReducer
from .tool_calls import ToolCallReducer
from .usage import Usage

if TYPE_CHECKING:
    from ..chunks import Chunk, FileChunk, GoalChunk, SourceChunk, StepFinishChunk, ToolCallChunk, ToolResultChunk


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run, as it was when it closed."""

    step_type: str
    """`initial` for the first, `tool-result` for the others (Mastra's words)."""
    text: str
    """What the model wrote; `""` where a processor rejected the step."""
    tool_calls: list[ToolCallChunk]
    tool_results: list[ToolResultChunk]
    sources: list[SourceChunk]
    files: list[FileChunk]
    reasoning: str
    reasoning_parts: list[ReasoningPart]
    finish_reason: str | None
    usage: Usage
    warnings: list[Any]
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    """`id`, `timestamp` and `modelId` where known, and whatever else the provider told."""
    provider_metadata: Mapping[str, Any] | None = None
    tripwire: Mapping[str, Any] | None = None
    """Why a processor rejected the step."""
    run_id: str | None = field(default=None, repr=False)

    @property
    def reasoning_text(self) -> str:
        """The same as `reasoning`, by Mastra's other name."""
        return self.reasoning

    def __to_wire__(self) -> dict[str, Any]:
        wire = {
            "stepType": self.step_type,
            "text": self.text,
            "toolCalls": self.tool_calls,
            "toolResults": self.tool_results,
            "sources": self.sources,
            "files": self.files,
            "reasoning": self.reasoning,
            "reasoningText": self.reasoning,
            "reasoningParts": self.reasoning_parts,
            "finishReason": self.finish_reason,
            "usage": {**self.usage.__to_wire__(), **self.usage.other},
            "warnings": self.warnings,
            "request": self.request,
            "response": self.response,
            "providerMetadata": self.provider_metadata,
            "tripwire": self.tripwire,
        }
        return {key: value for key, value in wire.items() if value is not None}


class StepReducer:
    """What a run consists of, step by step: the reducers of the parts, and the steps that closed."""

    def __init__(self) -> None:
        self.text = TextReducer()
        self.reasoning = ReasoningReducer()
        self.tool_calls = ToolCallReducer()
        self.tool_results = Collector["ToolResultChunk"]("tool-result")
        self.sources = Collector["SourceChunk"]("source")
        self.files = Collector["FileChunk"]("file")
        self.steps: list[Step] = []
        self._drop_next = False
        self._begun = False

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "text-delta": self.text.delta(),
            **self.reasoning.handlers(),
            **self.tool_calls.handlers(),
            **self.tool_results.handlers(),
            **self.sources.handlers(),
            **self.files.handlers(),
            "step-start": self.step_start,
            "step-finish": self.step_finish,
            "goal": self.goal,
        }

    def step_start(self, _: Chunk) -> None:
        self._begun = True

    def step_finish(self, chunk: StepFinishChunk) -> Step:
        step = self._step(chunk)
        self._begun = False
        for part in self._parts:
            part.close_step()
        if self._drop_next:
            self.drop()
        else:
            self.steps.append(step)
        return step

    def goal(self, chunk: GoalChunk) -> None:
        """A goal that goes on starts the values anew; a step that has begun goes the same way when it closes."""
        if chunk.payload.should_continue is True:
            self.drop()
            self._drop_next = self.in_step

    def drop(self) -> None:
        self._drop_next = False
        self.steps = []
        for part in self._parts:
            part.drop()

    @property
    def current(self) -> Step | None:
        """The step that runs, as far as it came; None between steps."""
        if not self._begun and not self.in_step:
            return None
        return Step(
            step_type="tool-result" if self.steps else "initial",
            text=self.text.of_step,
            tool_calls=self.tool_calls.of_step,
            tool_results=self.tool_results.of_step,
            sources=self.sources.of_step,
            files=self.files.of_step,
            reasoning=self.reasoning.step_text,
            reasoning_parts=self.reasoning.step_parts,
            finish_reason=None,
            usage=Usage(),
            warnings=[],
            request={},
            response={},
        )

    @property
    def _parts(self) -> list[TextReducer | ReasoningReducer | ToolCallReducer | Collector[Any]]:
        return [self.text, self.reasoning, self.tool_calls, self.tool_results, self.sources, self.files]

    @property
    def in_step(self) -> bool:
        """Whether something came since the last step closed."""
        collected = (self.tool_calls.of_step, self.tool_results.of_step, self.sources.of_step, self.files.of_step)
        return self.text.in_step or self.reasoning.in_step or any(collected)

    def _step(self, chunk: StepFinishChunk) -> Step:
        payload = chunk.payload
        result, output, metadata = payload.step_result, payload.output, payload.metadata or {}
        tripwire = last_step_tripwire(None if output is None else output.steps)
        return Step(
            step_type="tool-result" if self.steps else "initial",
            text="" if tripwire else self.text.of_step,
            tool_calls=self.tool_calls.of_step,
            tool_results=self.tool_results.of_step,
            sources=self.sources.of_step,
            files=self.files.of_step,
            reasoning=self.reasoning.step_text,
            reasoning_parts=self.reasoning.step_parts,
            finish_reason=None if result is None else result.reason,
            usage=Usage.of(None if output is None else output.usage),
            warnings=list((None if result is None else result.warnings) or []),
            request=metadata.get("request") or {},
            response=_response(chunk, metadata),
            provider_metadata=metadata.get("providerMetadata", payload.provider_metadata),
            tripwire=tripwire,
            run_id=chunk.run_id,
        )


def _response(chunk: StepFinishChunk, metadata: Mapping[str, Any]) -> dict[str, Any]:
    told = {key: value for key, value in metadata.items() if key not in ("providerMetadata", "request")}
    model = metadata.get("modelId") or metadata.get("model") or ""
    return {"id": chunk.payload.id or "", **told, "modelId": model}


def last_step_tripwire(steps: list[Any] | None) -> Mapping[str, Any] | None:
    """Why a processor rejected the last step, by the server's own records in `payload.output.steps`."""
    last = steps[-1] if steps else None
    tripwire = cast("dict[str, Any]", last).get("tripwire") if isinstance(last, dict) else None
    return cast("dict[str, Any]", tripwire) if isinstance(tripwire, dict) else None


def steps() -> Operator[Step]:
    """Each step when it closes.

        --step-start--text-delta--step-finish--step-start--...--step-finish--finish-|
        [                                 steps()                                  ]
        --------------------------(step)------------------------(step)---------------|

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> run = mx.from_jsonl(mx.recording("tools"))
    >>> [(step.finish_reason, step.text) for step in mx.as_view(run.pipe(ops.steps()))]
    [('tool-calls', ''), ('stop', 'It is 21.5 degrees.')]
    """

    def feeding(emit: Emit[Step]) -> Callable[[Chunk], Any]:
        handlers = StepReducer().handlers()

        def feed(chunk: Chunk) -> None:
            handler = handlers.get(chunk.type)
            if handler is not None:
                made = handler(chunk)
                if chunk.type == "step-finish":
                    emit(made)

        return feed

    return operator(feeding)
