"""A sequence that grows, as it was at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


class Outputs(Sequence[Any]):
    """What came until a moment, of a list that grows."""

    __slots__ = ("_count", "_items")

    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self._count = len(items)

    def with_one(self, item: Any) -> Outputs:
        """One more; only the newest is ever added to, so that all share one list."""
        items = self._items if len(self._items) == self._count else self._items[: self._count]
        items.append(item)
        return Outputs(items)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int):
            if not -self._count <= index < self._count:
                raise IndexError(index)
            return self._items[index if index >= 0 else self._count + index]
        return self._items[: self._count][index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(cast("Sequence[Any]", other))

    __hash__ = None  # type: ignore[assignment]  # compared by what it holds

    def __repr__(self) -> str:
        return repr(self._items[: self._count])
