"""Chunks of some types only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .operator import Emit, Operator, operator

if TYPE_CHECKING:
    from ..chunks import Chunk


def of_type(*types: str) -> Operator[Any]:
    """Only the chunks of these types; a type that ends in `*` stands for all that begin so.

        --start--text-delta--data-weather--tool-call--finish-|
        [           of_type("tool-call", "data-*")           ]
        ---------------------data-weather--tool-call----------|

    >>> import mastra_rx as mx
    >>> from mastra_rx import operators as ops
    >>> run = mx.from_jsonl(mx.recording("tools"))
    >>> [chunk.payload.tool_name for chunk in mx.as_view(run.pipe(ops.of_type("tool-call")))]
    ['weather']
    """
    if not types:
        raise TypeError("of_type needs at least one chunk type")
    exact = frozenset(types)
    prefixes = tuple(kind[:-1] for kind in types if kind.endswith("*"))

    def feeding(emit: Emit[Chunk]) -> Callable[[Chunk], Any]:
        def feed(chunk: Chunk) -> None:
            if chunk.type in exact or (prefixes and chunk.type.startswith(prefixes)):
                emit(chunk)

        return feed

    return operator(feeding)
