"""Recordings of real Mastra runs that come with the library: to try it with, and for its examples."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent

RECORDINGS = {
    "text": "a plain answer",
    "reasoning": "a model that thinks before it answers",
    "tools": "a tool call, its result, and the answer: two steps",
    "object": "a structured object, growing",
}
"""Name -> what it shows."""


def recording(name: str) -> Path:
    """The path of the bundled recording of that name, for `from_jsonl`.

    >>> from mastra_rx import recording
    >>> recording("tools").name
    'tools.jsonl'
    """
    if name not in RECORDINGS:
        raise ValueError(f"no recording is called {name!r}; there are {', '.join(RECORDINGS)}")
    return _HERE / f"{name}.jsonl"
