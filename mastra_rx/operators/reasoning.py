"""Reasoning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from .operator import Operator, Reducer, reduction

if TYPE_CHECKING:
    from ..chunks import ReasoningDeltaChunk, ReasoningEndChunk, ReasoningSignatureChunk, ReasoningStartChunk


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """One block of reasoning."""

    id: str | None
    text: str
    provider_metadata: Mapping[str, Any] | None = None
    signature: str | None = None
    """The provider's signature, from the block's chunks or from its metadata."""
    run_id: str | None = field(default=None, repr=False)
    from_: str | None = field(default=None, repr=False)

    def __to_wire__(self) -> dict[str, Any]:
        payload = {"id": self.id, "providerMetadata": self.provider_metadata, "text": self.text}
        chunk = {"type": "reasoning", "runId": self.run_id, "from": self.from_}
        return {**_present(chunk), "payload": _present(payload)}


def _present(wire: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if value is not None}


class _Block:
    """A part that grows."""

    def __init__(self, start: ReasoningStartChunk) -> None:
        self._pieces: list[str] = []
        self._part = ReasoningPart(start.payload.id, "", run_id=start.run_id, from_=start.from_)
        self.see(start.payload.provider_metadata, start.payload.signature)

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def see(self, metadata: Mapping[str, Any] | None, signature: str | None = None) -> None:
        if metadata is not None:
            self._part = replace(self._part, provider_metadata=metadata)
        signature = signature or _signature_in(metadata)
        if signature is not None:
            self._part = replace(self._part, signature=signature)

    @property
    def part(self) -> ReasoningPart:
        return replace(self._part, text="".join(self._pieces))


def _signature_in(metadata: Mapping[str, Any] | None) -> str | None:
    for provider in (metadata or {}).values():
        if isinstance(provider, dict):
            signature = cast("dict[str, Any]", provider).get("signature")
            if isinstance(signature, str):
                return signature
    return None


class ReasoningReducer(Reducer):
    """The reasoning of a run and of its step. An id that starts again starts its part anew (Mastra 1.71.0)."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._run = self._step = 0
        self._run_blocks: dict[str | None, _Block] = {}
        self._step_blocks: dict[str | None, _Block] = {}

    def handlers(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "reasoning-start": self.start,
            "reasoning-delta": self.delta,
            "reasoning-end": self.end,
            "reasoning-signature": self.signature,
        }

    def start(self, chunk: ReasoningStartChunk) -> None:
        self._run_blocks[chunk.payload.id] = _Block(chunk)
        self._step_blocks[chunk.payload.id] = _Block(chunk)

    def delta(self, chunk: ReasoningDeltaChunk) -> None:
        payload = chunk.payload
        self._pieces.append(payload.text)
        for block in self._blocks(payload.id):
            block.add(payload.text)
            block.see(payload.provider_metadata)

    def end(self, chunk: ReasoningEndChunk) -> None:
        for block in self._blocks(chunk.payload.id):
            block.see(chunk.payload.provider_metadata, chunk.payload.signature)

    def signature(self, chunk: ReasoningSignatureChunk) -> None:
        for block in self._blocks(chunk.payload.id):
            block.see(None, chunk.payload.signature)

    def _blocks(self, id: str | None) -> list[_Block]:
        return [blocks[id] for blocks in (self._run_blocks, self._step_blocks) if id in blocks]

    @property
    def text(self) -> str | None:
        """All of it; None where there was none at all."""
        pieces = self._pieces[self._run :]
        return "".join(pieces) if pieces else None

    @property
    def parts(self) -> list[ReasoningPart]:
        """The blocks, in the order in which they started (D13)."""
        return [block.part for block in self._run_blocks.values()]

    @property
    def in_step(self) -> bool:
        return len(self._pieces) > self._step or bool(self._step_blocks)

    @property
    def step_text(self) -> str:
        return "".join(self._pieces[self._step :])

    @property
    def step_parts(self) -> list[ReasoningPart]:
        return [block.part for block in self._step_blocks.values()]

    def close_step(self) -> None:
        self._step = len(self._pieces)
        self._step_blocks = {}

    def drop(self) -> None:
        """A goal goes on: the reasoning of the run starts anew; the step keeps its own."""
        self._run = len(self._pieces)
        self._run_blocks = {}


def reasoning() -> Operator[str]:
    """All reasoning as one text, when the run is complete; `""` when there was none (D9).

    --reasoning-delta("Hm, ")--reasoning-delta("so")--finish-|
    [                      reasoning()                       ]
    ----------------------------------------------------------("Hm, so")-|
    """
    return reduction(ReasoningReducer, lambda reducer: reducer.text or "")


def reasoning_text() -> Operator[str | None]:
    """The same as `reasoning`, but None when there was none."""
    return reduction(ReasoningReducer, lambda reducer: reducer.text)


def reasoning_parts() -> Operator[list[ReasoningPart]]:
    """The blocks of reasoning with their signatures, when the run is complete."""
    return reduction(ReasoningReducer, lambda reducer: reducer.parts)
