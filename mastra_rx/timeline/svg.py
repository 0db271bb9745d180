"""The picture as SVG text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Literal

from .axis import Axis, axis_of
from .lanes import Chunks, Timeline, timeline_of
from .layout import Drawing, Shape, Text, draw

Theme = Literal["auto", "light", "dark"]


def timeline_svg(
    chunks: Chunks, *, times: Sequence[float | None] | None = None, width: int = 1200, theme: Theme = "auto"
) -> str:
    """A picture of a run as SVG: lanes for steps, text, reasoning, each tool call and agent; marks for what went wrong.

    `chunks` are chunks, or what `parse_chunk` takes. `times` are milliseconds, one a chunk; without them the axis shows
    the order of the chunks. `width` is in pixels, 400 or more. `theme="auto"` follows what the reader's system prefers.

    >>> import mastra_rx as mx
    >>> from mastra_rx.timeline import read_timed
    >>> times, chunks = zip(*read_timed(mx.recording("tools")))
    >>> timeline_svg(chunks, times=times)[:4]
    '<svg'
    """
    if theme not in ("auto", "light", "dark"):
        raise ValueError(f'theme={theme!r}: it is "auto", "light" or "dark"')
    if width < 400:
        raise ValueError(f"width={width}: give 400 pixels or more")
    timeline = timeline_of(chunks)
    axis = axis_of(timeline.chunks, times)
    return svg_of(timeline, axis, width, theme)


def svg_of(timeline: Timeline, axis: Axis, width: int, theme: Theme) -> str:
    """The picture of a model that is there already."""
    drawing = draw(timeline, axis, width)
    about = f"Timeline of a run: {timeline.ending}; {timeline.counts}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mrx" data-theme="{theme}" width="{width}" '
        f'height="{drawing.height:.0f}" viewBox="0 0 {width} {drawing.height:.0f}" role="img" '
        f'aria-label="{escaped(about)}">',
        f"<style>{style()}</style>",
        f'<rect class="mrx-ground" width="{width}" height="{drawing.height:.0f}"/>',
        *_grid(drawing),
        *(_shape(shape) for shape in drawing.shapes if shape.kind == "line"),
        *(_shape(shape) for shape in drawing.shapes if shape.kind != "line"),
        *(_text(text) for text in drawing.texts),
        "</svg>",
    ]
    return "\n".join(parts)


@cache
def style() -> str:
    """The picture's style sheet: colours by tone, light and dark."""
    return files("mastra_rx.timeline").joinpath("timeline.css").read_text("utf-8").strip()


_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """The text for XML: escaped, and without what XML does not allow."""
    return escape(_ILLEGAL.sub("\ufffd", text))


def _grid(drawing: Drawing) -> list[str]:
    if not drawing.rows:
        return []
    bottom = drawing.rows[-1]
    ticks = "".join(f"M{_n(x)} {_n(drawing.tick_top)}V{_n(bottom)}" for x in drawing.ticks)
    rows = "".join(f"M20 {_n(y)}H{_n(drawing.width - 20)}" for y in drawing.rows)
    return [f'<path class="mrx-tick" d="{ticks}"/>', f'<path class="mrx-row" d="{rows}"/>']


def _shape(shape: Shape) -> str:
    return f"<g{_chunks(shape)}>{_title(shape.title)}{_outline(shape)}</g>"


def _chunks(shape: Shape) -> str:
    tone = f' class="mrx-{shape.kind} mrx-{shape.tone}{" mrx-open" if shape.is_open else ""}"'
    if shape.first < 0:
        return tone
    last = "" if shape.last == shape.first else f' data-to="{shape.last}"'
    return f'{tone} data-at="{shape.first}"{last}'


def _outline(shape: Shape) -> str:
    x, y = shape.x, shape.y
    if shape.kind in ("bar", "track"):
        radius = min(5 if shape.kind == "track" else 3, shape.width / 2, shape.height / 2)
        return (
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(shape.width)}" height="{_n(shape.height)}" rx="{_n(radius)}"/>'
        )
    if shape.kind == "line":
        return f'<path d="M{_n(x)} {_n(y)}v{_n(shape.height)}"/>'
    circle = f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(shape.width)}"/>'
    sign = _SIGNS.get(shape.tone) if shape.kind == "outcome" else None
    return circle if sign is None else f'{circle}<path class="mrx-sign" d="M{_n(x)} {_n(y)}{sign}"/>'


_SIGNS = {
    "result": "m-2.8 0.2l2 2l3.6 -4",
    "error": "m-2.2 -2.2l4.4 4.4m0 -4.4l-4.4 4.4",
    "denied": "m-2.8 0h5.6",
    "wait": "m-1.5 -2.4v4.8m3 -4.8v4.8",
}


def _text(text: Text) -> str:
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    styles = " ".join(f"mrx-{name}" for name in text.style.split())
    title = text.title if text.title != text.content else ""
    return (
        f'<text x="{_n(text.x)}" y="{_n(text.y)}" class="{styles}" font-size="{_n(text.size)}"{anchor}>'
        f"{_title(title)}{escaped(text.content)}</text>"
    )


def _title(title: str) -> str:
    return f"<title>{escaped(title)}</title>" if title else ""


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
