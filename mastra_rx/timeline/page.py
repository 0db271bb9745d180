"""One self-contained HTML page: the picture, and everything to walk through the run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, cast

from .axis import axis_of
from .lanes import Chunks, both, timeline_of
from .layout import LEFT, RIGHT
from .states import states_of
from .svg import escaped, svg_of

WIDTH = 1200


def timeline_page(chunks: Chunks, *, times: Sequence[float | None] | None = None, title: str = "Run") -> str:
    """A page for a browser: the timeline, scrubbing through the run, filter by type, search, the raw chunks.

    `chunks` and `times` as for `timeline_svg`. The page needs nothing from outside and runs no code but its own.

    >>> import mastra_rx as mx
    >>> from mastra_rx.timeline import read_timed
    >>> times, chunks = zip(*read_timed(mx.recording("tools")))
    >>> timeline_page(chunks, times=times)[:15]
    '<!doctype html>'
    """
    typed = [both(item)[0] for item in chunks]
    timeline = timeline_of(typed)
    axis = axis_of(timeline.chunks, times)
    states = states_of(typed)
    data = {
        "chunks": timeline.chunks,
        "times": None if axis.times is None else [round(at, 3) for at in axis.times],
        "places": [round(place, 5) for place in axis.places] if axis.times is not None else None,
        "left": LEFT,
        "right": RIGHT,
        "width": WIDTH,
        "run": states.run,
        "tools": states.tools,
    }
    parts = {
        "title": escaped(title),
        "style": _file("page.css"),
        "picture": svg_of(timeline, axis, WIDTH, "auto"),
        "data": _embedded(data),
        "script": _file("page.js"),
    }
    page = _file("page.html").split("{{")
    return page[0] + "".join(parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in page[1:]))


def _file(name: str) -> str:
    return files("mastra_rx.timeline").joinpath(name).read_text("utf-8").strip()


def _embedded(data: Any) -> str:
    """JSON that may stand in a script element, whatever it says."""
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(data), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    """The value with texts for the numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast("list[Any]", value)]
    return value
