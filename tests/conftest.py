"""What all tests share: where the data is, and how a recording becomes an output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RECORDINGS = HERE / "recordings"


@dataclass(frozen=True)
class Recording:
    """A recorded run of the real Mastra 1.71.0, and what the real class made of it."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return RECORDINGS / f"{self.name}.jsonl"

    @cached_property
    def lines(self) -> list[bytes]:
        return [line for line in self.path.read_bytes().split(b"\n") if line]

    @cached_property
    def wire(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @cached_property
    def expected(self) -> dict[str, Any]:
        return json.loads((RECORDINGS / f"{self.name}.expected.json").read_text("utf-8"))

    @property
    def is_agent_run(self) -> bool:
        """Whether the real MastraModelOutput was fed with it; not so for workflows, networks and until-idle runs."""
        return "replay" in self.expected

    def source(self) -> Iterator[bytes]:
        """The lines, and the failure of the source where one was recorded."""
        yield from self.lines
        if (self.expected.get("options") or {}).get("endWith") == "error":
            raise ConnectionError("socket hang up")


def recordings() -> list[Recording]:
    return [Recording(path.stem) for path in sorted(RECORDINGS.glob("*.jsonl"))]


@pytest.fixture(params=recordings(), ids=str)
def recording(request: pytest.FixtureRequest) -> Recording:
    return request.param
