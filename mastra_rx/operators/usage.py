"""Usage: token counts, summed over steps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from .operator import Emit, Operator, Reducer, operator, reduction

if TYPE_CHECKING:
    from ..chunks import Chunk, FinishChunk, StepFinishChunk, ToolCallChunk

Number = int | float


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. None is unknown: no step reported it (D7)."""

    input_tokens: Number | None = None
    output_tokens: Number | None = None
    total_tokens: Number | None = None
    reasoning_tokens: Number | None = None
    cached_input_tokens: Number | None = None
    cache_creation_input_tokens: Number | None = None
    cache_creation_input_tokens_5m: Number | None = None
    cache_creation_input_tokens_1h: Number | None = None
    raw: Any = None
    """What the provider said, of the last step that had it."""
    other: Mapping[str, Number] = field(default_factory=dict[str, Number], repr=False)
    """Counters that Mastra does not know and leaves out, by the wire's names."""

    @classmethod
    def of(cls, wire: Any) -> Usage:
        """The counts of one step, as a provider reports them: numbers, numeric strings or `{"total": ...}`."""
        if isinstance(wire, _Totals):
            return wire.known
        wire = cast("dict[str, Any]", wire) if isinstance(wire, dict) else {}
        known = {name: _number(wire.get(alias)) for name, alias in _ALIASES.items()}
        for name, (alias, key) in _NESTED.items():
            if known[name] is None:
                known[name] = _number(nested_value(wire.get(alias), key))
        aliases = {*_ALIASES.values(), "raw"}
        other = {
            key: number for key, value in wire.items() if key not in aliases and (number := _number(value)) is not None
        }
        return cls(**known, raw=wire.get("raw"), other=other)

    def __add__(self, more: Usage) -> Usage:
        """The sum, field by field; an unknown summand does not count."""
        sums = {name: _sum(getattr(self, name), getattr(more, name)) for name in _ALIASES}
        other = {
            key: cast("Number", _sum(self.other.get(key), more.other.get(key))) for key in {**self.other, **more.other}
        }
        return Usage(**sums, raw=self.raw if more.raw is None else more.raw, other=other)

    def or_else(self, fallback: Usage) -> Usage:
        """Unknown counts filled from `fallback`."""
        names = [*_ALIASES, "raw"]
        return dataclasses.replace(
            self, **{name: getattr(fallback, name) for name in names if getattr(self, name) is None}
        )

    def but_for(self, known: Usage) -> Usage:
        """What `known` does not say; a 0 says nothing either, since a `finish` has it for unknown."""
        names = [name for name in (*_ALIASES, "raw") if getattr(known, name) is None]
        said: dict[str, Any] = {name: getattr(self, name) or None for name in names}
        return Usage(**said)

    @property
    def with_total(self) -> Usage:
        """With `total_tokens` counted from the parts where nobody reported it (Mastra's `totalUsage`)."""
        if self.total_tokens is not None:
            return self
        parts = (self.input_tokens, self.output_tokens, self.reasoning_tokens)
        return dataclasses.replace(self, total_tokens=sum(part for part in parts if part is not None))

    def __to_wire__(self) -> dict[str, Any]:
        counts = {alias: value for name, alias in _ALIASES.items() if (value := getattr(self, name)) is not None}
        return counts if self.raw is None else {**counts, "raw": self.raw}

    def as_totals(self) -> dict[str, Any]:
        """What Mastra writes into a `finish` chunk: the totals, the three main ones 0 where unknown."""
        wire = self.__to_wire__()
        shown = ["reasoningTokens", "cachedInputTokens", "cacheCreationInputTokens", "raw"]
        main = {alias: wire.get(alias, 0) for alias in ("inputTokens", "outputTokens", "totalTokens")}
        return _Totals({**main, **{alias: wire[alias] for alias in shown if alias in wire}}, self)


class _Totals(dict[str, Any]):
    """What `as_totals` writes, still knowing which zeros are unknown: who reads the chunk later is told the same."""

    def __init__(self, wire: dict[str, Any], known: Usage) -> None:
        super().__init__(wire)
        self.known = known


_ALIASES = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "reasoning_tokens": "reasoningTokens",
    "cached_input_tokens": "cachedInputTokens",
    "cache_creation_input_tokens": "cacheCreationInputTokens",
    "cache_creation_input_tokens_5m": "cacheCreationInputTokens5m",
    "cache_creation_input_tokens_1h": "cacheCreationInputTokens1h",
}

_NESTED = {  # newer providers nest: {"inputTokens": {"total": 100, "cacheRead": 80}, "outputTokens": {"total": 20}}
    "reasoning_tokens": ("outputTokens", "reasoning"),
    "cached_input_tokens": ("inputTokens", "cacheRead"),
    "cache_creation_input_tokens": ("inputTokens", "cacheWrite"),
}


_TOO_MANY = 2**63  # no count of tokens


def _number(value: Any) -> Number | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < _TOO_MANY else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        try:
            return _number(int(value) if value.strip().lstrip("+-").isdigit() else float(value))
        except ValueError:
            return None
    return _number(nested_value(value, "total")) if isinstance(value, dict) else None


def nested_value(value: Any, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _sum(one: Number | None, other: Number | None) -> Number | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other


class UsageReducer(Reducer):
    """Sums what steps report; a `finish` fills in only what no step of its turn reported (Mastra 1.71.0)."""

    def __init__(self) -> None:
        self._before = Usage()
        self._turn = Usage()
        self._turn_is_over = False

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "start": self.start,
            "step-finish": self.step_finish,
            "finish": self.finish,
            "tool-call": self.tool_call,
        }

    def start(self, _: Chunk | None = None) -> None:
        """A turn begins, if one was over."""
        if self._turn_is_over:
            self._before, self._turn = self.usage, Usage()
            self._turn_is_over = False

    def step_finish(self, chunk: StepFinishChunk) -> None:
        self.start()
        if chunk.payload.output is not None:
            self._turn += Usage.of(chunk.payload.output.usage)

    def tool_call(self, chunk: ToolCallChunk) -> None:
        """A call that carries the `finish` of an agent that ran inside counts for it."""
        output = chunk.payload.output
        if nested_value(output, "type") == "finish" and nested_value(output, "from") == "AGENT":
            payload = nested_value(output, "payload")
            if isinstance(usage := nested_value(payload, "usage"), dict):
                self._turn += Usage.of(cast("dict[str, Any]", usage))

    def finish(self, chunk: FinishChunk) -> Usage:
        """The end of a turn; its totals. A second `finish` of the same turn adds nothing."""
        if not self._turn_is_over:
            output = chunk.payload.output
            self._turn = self._turn.or_else(Usage.of(None if output is None else output.usage))
            self._turn_is_over = True
        return self._turn

    @property
    def usage(self) -> Usage:
        """The sum so far."""
        return self._before + self._turn


def usage() -> Operator[Usage]:
    """The usage of the whole run, when it is complete: the sum over all steps of all turns.

        --step-finish(15)--step-finish(36)--finish-|
        [                 usage()                  ]
        -------------------------------------------(51)-|

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> run = mx.from_jsonl(mx.recording("tools"))
    >>> mx.as_view(run.pipe(ops.usage())).run().total_tokens
    51
    """
    return reduction(UsageReducer, lambda reducer: reducer.usage)


def running_usage() -> Operator[Usage]:
    """The usage so far, each time a step or a turn reports.

    --step-finish(15)--step-finish(36)--finish-|
    [             running_usage()              ]
    -----(15)------------(51)-------------------|
    """

    def feeding(emit: Emit[Usage]) -> Callable[[Chunk], Any]:
        reducer = UsageReducer()
        handlers = reducer.handlers()
        before = Usage()

        def feed(chunk: Chunk) -> None:
            nonlocal before
            handler = handlers.get(chunk.type)
            if handler is None:
                return
            handler(chunk)
            now = reducer.usage
            if now != before:
                before = now
                emit(now)

        return feed

    return operator(feeding)
