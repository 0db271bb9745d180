"""`MastraModelOutput`: every view of an agent's run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, cast

from reactivex import Observable
from reactivex import operators as rxops
from typing_extensions import TypeVar

from . import operators as ops
from .errors import AgentError, MastraRxError, StreamInterrupted
from .operators.full_output import FullOutput, Status, Tripwire
from .operators.object_result import ErrorStrategy, ObjectOutcome, ObjectPolicy, ObjectReducer
from .operators.objects import ArrayText
from .operators.operator import operator
from .operators.run import RunReducer
from .run_output import Outcome, RunOutput, Settled
from .schema import schema_of
from .view import View

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from .chunks import FileChunk, SourceChunk, ToolCallChunk, ToolResultChunk
    from .operators.background_tasks import BackgroundTask
    from .operators.evaluations import Evaluation
    from .operators.groups import ChunkGroup
    from .operators.reasoning import ReasoningPart
    from .operators.snapshots import Snapshot
    from .operators.steps import Step
    from .operators.tool_pairs import ToolPair
    from .operators.tool_runs import ToolRun
    from .operators.usage import Usage
    from .sources.iterables import Chunks

T = TypeVar("T", default=Any)
E = TypeVar("E")


class MastraModelOutput(RunOutput[FullOutput[T]], Generic[T]):
    """Every view of a run, from one subscription to its source.

    `source` is an Observable, iterable or async iterable of chunks, dicts or JSON texts (see `from_chunks`).
    `schema` says what the object must look like: a type that pydantic knows, a `TypeAdapter`, or a JSON schema.
    `error_strategy` is what happens when it does not: `strict` (only `object` raises), `warn` (it is None, logged) or
    `fallback` (it is `fallback`). `include_raw` keeps `raw` chunks. `history` bounds how many chunks are kept for late
    readers; values stay exact.

    Reading a view has no effect: the source starts at the first subscribe, await or iteration. All views may be used
    any number of times, early or late. Streams end when the source does; values are settled then, or at an `error`
    chunk. A run that failed makes its values raise, with what came as `.partial`; only `usage_tree`
    counts as far as it came.

    >>> import mastra_rx as mx
    >>> output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools")))
    >>> output.text.run()
    'It is 21.5 degrees.'
    >>> [pair.result for pair in output.tool_pairs]
    [{'city': 'Tokyo', 'tempC': 21.5}]
    """

    def __init__(
        self,
        source: Chunks,
        *,
        schema: type[T] | TypeAdapter[T] | Mapping[str, Any] | None = None,
        error_strategy: ErrorStrategy = "strict",
        fallback: Any = None,
        include_raw: bool = False,
        history: int | None = None,
    ) -> None:
        self._schema = None if schema is None else schema_of(schema)
        self._strategy: ErrorStrategy = error_strategy
        self._run = RunReducer(
            include_raw=include_raw,
            objects=ObjectReducer(ObjectPolicy(self._schema, error_strategy, fallback)),
            on_error=self._settle_failed,
            on_tripwire=self._finish,
        )
        super().__init__(source, self._run, history=history)

    # ---- streams -----------------------------------------------------------------------------------------------------

    @cached_property
    def text_stream(self) -> View[str]:
        """The pieces of text, of all steps. With the schema of an array: JSON text, a complete element a piece (D3)."""
        schema = self._schema
        if schema is not None and schema.kind == "array":
            return self._streamed(
                "text_stream", operator(lambda emit: ArrayText(emit, schema), at_end=lambda feed: feed.end)
            )
        return self._streamed("text_stream", ops.text_deltas())

    @cached_property
    def reasoning_stream(self) -> View[str]:
        """The pieces of reasoning."""
        return self._streamed("reasoning_stream", ops.reasoning_deltas())

    @cached_property
    def object_stream(self) -> View[Any]:
        """The object as it grows: plain data, never validated."""
        return self._streamed("object_stream", ops.objects(self._schema))

    @property
    def element_stream(self: MastraModelOutput[list[E]]) -> View[E]:
        """The elements of an array, each once, complete and validated (D1).

        Strict: ends with `OutputValidationError`, which has the element's `index`, at the first that does not fit.
        """
        return cast("View[E]", self._element_stream)

    @cached_property
    def _element_stream(self) -> View[Any]:
        return self._streamed("element_stream", ops.elements(self._schema, error_strategy=self._strategy))

    @cached_property
    def tool_pairs(self) -> View[ToolPair]:
        """Each call with its outcome, once it is settled; what never settles comes last, as `unresolved`."""
        return self._streamed("tool_pairs", ops.tool_pairs())

    @cached_property
    def tool_runs(self) -> View[ToolRun]:
        """Each call live, from the first piece of its arguments on: its new state whenever it changed."""
        return self._streamed("tool_runs", ops.tool_runs())

    @cached_property
    def snapshots(self) -> View[Snapshot]:
        """The whole state of the run as one immutable value, after each change: the one thing a screen needs."""
        return self._streamed("snapshots", ops.snapshots(self._schema))

    @cached_property
    def background_tasks(self) -> View[BackgroundTask]:
        """Each background task live: its new state whenever something about it changed."""
        return self._streamed("background_tasks", ops.background_tasks())

    @cached_property
    def evaluations(self) -> View[Evaluation]:
        """Evaluations of a goal and completion checks, as they come."""
        return self._streamed("evaluations", ops.evaluations())

    @cached_property
    def turns(self) -> View[MastraModelOutput[Any]]:
        """Each turn of an until-idle run, as an output of its own."""
        return outputs_of(self._stream.pipe(ops.turns()), "turns")

    @cached_property
    def nested(self) -> View[NestedOutput]:
        """Each run inside the run, as an output of its own; `key` says where it runs."""
        return outputs_of(self._stream.pipe(ops.nested()), "nested")

    # ---- values ------------------------------------------------------------------------------------------------------

    @cached_property
    def text(self) -> View[str]:
        """The answer: the last step's text when tools were used, else all text; of all turns (D12)."""
        return self._value("text", lambda: self._run.text)

    @cached_property
    def object(self) -> View[T]:
        """The object, validated; None where the run gave none, or broke off before it was complete."""
        return View(Settled(self, _object), "object")

    @cached_property
    def reasoning(self) -> View[str]:
        """All reasoning; `""` when there was none (D9)."""
        return self._value("reasoning", lambda: self._full.reasoning)

    @cached_property
    def reasoning_text(self) -> View[str | None]:
        """All reasoning; None when there was none."""
        return self._value("reasoning_text", lambda: self._full.reasoning_text)

    @cached_property
    def reasoning_parts(self) -> View[list[ReasoningPart]]:
        """The blocks of reasoning with their signatures, in the order in which they started (D13)."""
        return self._value("reasoning_parts", lambda: self._full.reasoning_parts)

    @cached_property
    def tool_calls(self) -> View[list[ToolCallChunk]]:
        """Every call, once."""
        return self._value("tool_calls", lambda: self._full.tool_calls)

    @cached_property
    def tool_results(self) -> View[list[ToolResultChunk]]:
        """Every result of a tool, as it came."""
        return self._value("tool_results", lambda: self._full.tool_results)

    @cached_property
    def usage(self) -> View[Usage]:
        """Token counts, summed over all steps; None is unknown (D7)."""
        return self._value("usage", lambda: self._full.usage)

    @cached_property
    def total_usage(self) -> View[Usage]:
        """The same, with `total_tokens` counted from the parts where nobody reported it."""
        return self._value("total_usage", lambda: self._full.total_usage)

    @cached_property
    def finish_reason(self) -> View[str | None]:
        """Why it ended: `stop`, `length`, `tool-calls`, ..., `suspended`, `aborted`, `other` after a tripwire."""
        return self._value("finish_reason", lambda: self._full.finish_reason)

    @cached_property
    def steps(self) -> View[list[Step]]:
        """The steps."""
        return self._value("steps", lambda: self._full.steps)

    @cached_property
    def sources(self) -> View[list[SourceChunk]]:
        """The sources that the model used."""
        return self._value("sources", lambda: self._full.sources)

    @cached_property
    def files(self) -> View[list[FileChunk]]:
        """The files that the model made."""
        return self._value("files", lambda: self._full.files)

    @cached_property
    def warnings(self) -> View[list[Any]]:
        """The provider's warnings about the last step."""
        return self._value("warnings", lambda: self._full.warnings)

    @cached_property
    def request(self) -> View[Mapping[str, Any]]:
        """The last request to the provider; `{}` where the server strips it."""
        return self._value("request", lambda: self._full.request)

    @cached_property
    def response(self) -> View[Mapping[str, Any]]:
        """What the provider told about its last response: `id`, `timestamp`, `modelId`, `headers`, ..."""
        return self._value("response", lambda: self._full.response)

    @cached_property
    def provider_metadata(self) -> View[Mapping[str, Any] | None]:
        """The provider's own data about the run."""
        return self._value("provider_metadata", lambda: self._full.provider_metadata)

    @cached_property
    def suspend_payload(self) -> View[Any]:
        """The payload of the approval or suspension that the run waits for."""
        return self._value("suspend_payload", lambda: self._full.suspend_payload)

    @cached_property
    def resume_schema(self) -> View[str | None]:
        """JSON schema, as JSON text, of what resumes the run."""
        return self._value("resume_schema", lambda: self._full.resume_schema)

    # ---- attributes, live --------------------------------------------------------------------------------------------

    @property
    def trace_id(self) -> str | None:
        """The run's trace, when tracing is on."""
        return self._run.trace_id

    @property
    def status(self) -> Status:
        """`running`, `success`, `failed`, `canceled` or `suspended`, as of the chunk that readers get now."""
        return self._run.status

    @property
    def error(self) -> Exception | None:
        """Why the run failed, as soon as that is known."""
        outcome = self._outcome
        if self._run.failure is not None or not isinstance(outcome, _ModelOutcome):
            return self._run.failure
        return outcome.error or outcome.object.error

    @property
    def current_step(self) -> Step | None:
        """The step that runs, as far as it came; None between steps."""
        return self._run.parts.current

    @property
    def tripwire(self) -> Tripwire | None:
        """Why a processor blocked the run."""
        return self._run.tripwire

    @property
    def used_fallback_value(self) -> bool:
        """Whether the object is the fallback, the server's or ours."""
        return self._run.objects.used_fallback_value

    def __repr__(self) -> str:
        name = f" {self.run_id}" if self.run_id else ""
        return f"<MastraModelOutput{name}: {self.status}, {self._stream.position} chunks>"

    def _make_outcome(self, error: Exception | None) -> _ModelOutcome:
        return _ModelOutcome(self._run, error)


class NestedOutput(MastraModelOutput[Any]):
    """A part of a run as an output of its own: a turn, or a run inside the run."""

    def __init__(self, group: ChunkGroup) -> None:
        super().__init__(group)
        self.key = group.key
        """Which part: the number of the turn, or the `NestedKey` of a run inside."""


def outputs_of(groups: Observable[ChunkGroup], name: str) -> View[Any]:
    """Each group as an output of its own."""
    return View(groups.pipe(rxops.map(NestedOutput)), name)


class _ModelOutcome(Outcome[FullOutput[Any]]):
    """How an agent's run ended, and what became of its object."""

    def __init__(self, run: RunReducer, error: Exception | None) -> None:
        super().__init__(run, error)
        self._run = run

    @cached_property
    def object(self) -> ObjectOutcome:
        """The object; not looked for where the run failed."""
        return ObjectOutcome() if isinstance(self.error, AgentError) else self._run.object_outcome()

    @cached_property
    def full(self) -> FullOutput[Any]:
        full = self._run.result(self.error or self.object.error, object=self.object.value)
        for error in (self.error, self.object.error):
            if isinstance(error, MastraRxError):
                error.partial = full
        return full


def _object(outcome: _ModelOutcome) -> Any:
    """Resolves also where the stream broke off, as in Mastra, with what the server had sent as the result."""
    if outcome.error is not None and type(outcome.error) is not StreamInterrupted:
        raise outcome.error
    if outcome.object.error is not None:
        _ = outcome.full
        raise outcome.object.error
    return outcome.object.value
