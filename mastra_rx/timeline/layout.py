"""Where everything stands: the model, laid out as shapes and texts in pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from .axis import Axis
from .lanes import Lane, Marble, Mark, Span, Timeline, Tone
from .words import cut, describe, describe_many, milliseconds

LEFT = 196
"""Where the lanes begin, right of their names."""
RIGHT = 28
ROW = 26
BAR = 10
BOLD = 1.12
"""How much wider a text in bold is."""
MARBLE = 3.5

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text. `y` is its baseline."""

    x: float
    y: float
    content: str
    style: str
    anchor: Anchor = "start"
    size: float = 11.5
    title: str = ""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom, estimated from above."""
        width = text_width(self.content, self.size) * (BOLD if "head" in self.style else 1)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return left, self.y - self.size * 0.8, left + width, self.y + self.size * 0.25


@dataclass(frozen=True, slots=True)
class Shape:
    """A bar or a marble, with the chunks that it stands for."""

    kind: Literal["bar", "track", "marble", "outcome", "line"]
    x: float
    y: float
    width: float
    height: float
    tone: Tone
    first: int
    last: int
    title: str
    is_open: bool = False


@dataclass(slots=True)
class Drawing:
    """Everything that the picture shows."""

    width: float
    height: float = 0
    rows: list[float] = field(default_factory=list[float])
    """The upper edges of the lanes, and the lower edge of the last."""
    ticks: list[float] = field(default_factory=list[float])
    shapes: list[Shape] = field(default_factory=list[Shape])
    texts: list[Text] = field(default_factory=list[Text])
    lane_top: float = 0
    tick_top: float = 0


def draw(timeline: Timeline, axis: Axis, width: float) -> Drawing:
    """Lay out a run."""
    return _Layout(timeline, axis, width).drawing


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif face, rather too wide than too narrow."""
    return size * sum(_WIDTHS.get(char, 0.65 if char < "\u0300" else 1.1) for char in text)


_WIDTHS = {
    **dict.fromkeys("iljI|.,:;'!", 0.36),
    **dict.fromkeys(' ft()[]/\\-"r·', 0.46),
    **dict.fromkeys("ABCDEGHKNOPQRSUVXYZ&wÄÖÜ+=<>~", 0.82),
    **dict.fromkeys("mMW@%—…→", 1.0),
}


def fitted(text: str, room: float, size: float) -> str:
    """The text, cut to the room; `""` where there is none worth it."""
    text = cut(text, 240)
    if text_width(text, size) <= room:
        return text
    used = text_width("…", size)
    kept = 0
    for char in text:
        used += text_width(char, size)
        if used > room:
            break
        kept += 1
    return text[:kept].rstrip() + "…" if kept >= 3 else ""


_SEVERITY: dict[Tone, int] = {"error": 3, "denied": 2, "wait": 2, "result": 1}
_OUTCOMES = frozenset({"result", "error", "denied", "wait"})
_TRACKS = frozenset({"text", "reasoning", "object", "args"})
"""Spans whose chunks are shown in them."""
_POINTS = frozenset({"usage", "source"})
"""Spans that are no more than a chunk with a label."""


class _Layout:
    def __init__(self, timeline: Timeline, axis: Axis, width: float) -> None:
        self.drawing = Drawing(width)
        self._timeline = timeline
        self._axis = axis
        self._plot = max(120.0, width - LEFT - RIGHT)
        self._fine = 1.5 if len(timeline.chunks) < 4000 else 5.0
        y = self._head(26.0)
        y = self._ticks(y + 26)
        groups = list(_close_together(timeline.marks, self._x, self._fine))
        self._mark_lines = [self._x(group[0].at) for group in groups]
        y = self._marks(y + 6)
        y = self._lanes(y + 2)
        self._shade_marks()
        self.drawing.height = round(self._legend(y + 24))

    def _x(self, at: int) -> float:
        return LEFT + self._axis.places[at] * self._plot

    def _text(
        self,
        x: float,
        y: float,
        content: str,
        style: str,
        anchor: Anchor = "start",
        size: float = 11.5,
        title: str = "",
    ) -> None:
        if content:
            self.drawing.texts.append(Text(x, y, content, style, anchor, size, title))

    # ---- head --------------------------------------------------------------------------------------------------------

    def _head(self, y: float) -> float:
        """How it ended and what it took."""
        timeline, axis = self._timeline, self._axis
        took = "" if axis.times is None else f" · {milliseconds(axis.times[-1])}"
        room = self.drawing.width - 2 * 20
        ending = fitted(timeline.ending, room * 0.55, 14)
        self._text(36, y, ending, f"head {timeline.tone}", size=14)
        self.drawing.shapes.append(Shape("outcome", 25, y - 5, 6, 6, timeline.tone, -1, -1, timeline.ending))
        used = 36 + text_width(ending, 14) * BOLD + 16
        self._text(used, y, fitted(timeline.counts + took, self.drawing.width - 20 - used, 12), "muted", size=12)
        return y

    def _ticks(self, y: float) -> float:
        """The axis: as many labels as have room."""
        drawing = self.drawing
        drawing.tick_top = y + 6
        self._text(20, y, fitted(self._axis.note, LEFT - 34, 10.5), "faint", size=10.5, title=self._axis.note)
        taken = float(LEFT - 8)
        for tick in self._axis.ticks:
            x = LEFT + tick.place * self._plot
            half = text_width(tick.label, 10.5) / 2
            if x - half < taken or x + half > drawing.width - 4:
                continue
            taken = x + half + 14
            drawing.ticks.append(x)
            self._text(x, y, tick.label, "faint", "middle", 10.5)
        return y + 6

    # ---- marks -------------------------------------------------------------------------------------------------------

    def _marks(self, y: float) -> float:
        """Flags above the lanes, in as many lines as they need (up to 4); those that have no room keep their line."""
        ends = [float(LEFT)] * 4
        used = 0
        for group in _close_together(self._timeline.marks, self._x, self._fine):
            mark = max(group, key=lambda mark: _SEVERITY.get(mark.tone, 0))
            more = f" (+{len(group) - 1})" if len(group) > 1 else ""
            x = self._x(mark.at)
            row = next((row for row, end in enumerate(ends) if x - 4 >= end), None)
            label = "" if row is None else fitted(mark.label + more, self.drawing.width - 10 - x, 11)
            if row is not None and label == cut(mark.label + more, 240):
                self._text(x + 5, y + 12 + row * 17, label, f"mark {mark.tone}", size=11, title=mark.label)
                ends[row] = x + 5 + text_width(label, 11) + 6
                used = max(used, row + 1)
                continue
            whole = fitted(mark.label + more, 300, 11)
            wide = text_width(whole, 11)
            row = next((row for row, end in enumerate(ends) if x - 9 - wide >= end), None)
            if row is not None:
                self._text(x - 5, y + 12 + row * 17, whole, f"mark {mark.tone}", "end", 11, mark.label)
                ends[row] = x + 6
                used = max(used, row + 1)
        self._marks_top = y
        return y + used * 17 + (6 if used else 0)

    def _shade_marks(self) -> None:
        """The lines of the marks, from the flags down through all lanes."""
        bottom = self.drawing.rows[-1] if self.drawing.rows else self._marks_top
        for group in _close_together(self._timeline.marks, self._x, self._fine):
            mark = max(group, key=lambda mark: _SEVERITY.get(mark.tone, 0))
            title = "\n".join(one.label for one in group[:6])
            x = self._x(mark.at)
            self.drawing.shapes.append(
                Shape("line", x, self._marks_top, 0, bottom - self._marks_top, mark.tone, mark.at, mark.at, title)
            )

    # ---- lanes -------------------------------------------------------------------------------------------------------

    def _lanes(self, y: float) -> float:
        self.drawing.lane_top = y
        for lane in self._timeline.lanes:
            self.drawing.rows.append(y)
            self._lane(lane, y + ROW / 2)
            y += ROW
        self.drawing.rows.append(y)
        return y

    def _lane(self, lane: Lane, y: float) -> None:
        indent = 20 + 14 * min(lane.depth, 4)
        count = f" ×{lane.shared_by:,}" if lane.shared_by > 1 else ""
        room = LEFT - 16 - indent - 14 - text_width(count, 12)
        self.drawing.shapes.append(Shape("bar", indent, y - 4, 8, 8, lane.tone, -1, -1, ""))
        style = "name" if lane.depth == 0 else "name inner"
        self._text(indent + 15, y + 4, fitted(lane.name, room, 12) + count, style, size=12, title=lane.name)
        spans = self._merged_spans(lane.spans)
        inside = lane.tone == "step"
        for left, right, group in spans:
            if group[0].tone not in _POINTS:
                self._span(left, right, group, y)
        taken = [(left - 5, right + 5) for left, right, _ in spans]
        taken += self._marbles(lane.marbles, y)
        taken += [(x - 2, x + 2) for x in self._mark_lines]
        labels = [(left, right, group[0].label if len(group) == 1 else "") for left, right, group in spans]
        if inside:
            self._labels_inside(spans, y)
            return
        if lane.shared_by == 1:
            self._labels(labels, sorted(taken), y)

    def _span(self, left: float, right: float, group: list[Span], y: float) -> None:
        span = max(group, key=lambda span: _SEVERITY.get(span.tone, 0))
        title = span.title or span.label
        if len(group) > 1:
            title = f"{len(group):,} × {cut(group[0].title, 60)}"
        height = BAR + 7 if span.tone == "step" else BAR
        if span.tone in _TRACKS:
            left, right = left - 5, right + (0 if span.tone == "args" else 5)
        self.drawing.shapes.append(
            Shape(
                "track" if span.tone in _TRACKS else "bar",
                left,
                y - height / 2,
                right - left,
                height,
                span.tone,
                group[0].first,
                max(one.last for one in group),
                title,
                group[-1].is_open,
            )
        )

    def _merged_spans(self, spans: list[Span]) -> list[tuple[float, float, list[Span]]]:
        """Spans as they are drawn: those too close to be told apart are one."""
        merged: list[tuple[float, float, list[Span]]] = []
        for span in spans:
            left, right = self._x(span.first), self._x(span.last)
            if right - left < 2:
                left, right = left - 1, right + 1
            if merged:
                before_left, before_right, group = merged[-1]
                small = right - left <= self._fine + 2 and before_right - before_left <= self._fine + 2
                close = left - before_right < self._fine
                if close and (small or (group[0].tone == span.tone and left - before_left < self._fine)):
                    merged[-1] = (before_left, max(right, before_right), [*group, span] if len(group) < 50 else group)
                    if len(group) >= 50:
                        group.append(span)
                    continue
            merged.append((left, right, [span]))
        return merged

    def _marbles(self, marbles: list[Marble], y: float) -> list[tuple[float, float]]:
        """Marbles, neighbours of one kind merged where they would touch; gives the room they take."""
        taken: list[tuple[float, float]] = []
        group: list[Marble] = []
        start = before = -1e9
        for marble in marbles:
            x = self._x(marble.at)
            joins = group and (
                (marble.tone == group[0].tone and x - before < 2 * MARBLE + 0.5 and marble.tone not in _OUTCOMES)
                or x - start < self._fine
                or (marble.tone in _OUTCOMES and group[-1].tone in _OUTCOMES and x - start < 9)
            )
            if group and not joins:
                taken.append(self._cluster(group, start, before, y))
                group = []
            if not group:
                start = x
            group.append(marble)
            before = x
        if group:
            taken.append(self._cluster(group, start, before, y))
        return taken

    def _cluster(self, group: list[Marble], left: float, right: float, y: float) -> tuple[float, float]:
        tone = max(group, key=lambda marble: _SEVERITY.get(marble.tone, 0)).tone
        first, last = group[0].at, group[-1].at
        chunks = self._timeline.chunks
        if len(group) == 1:
            where, told = f"{first + 1:,}", describe(chunks[first])
        else:
            where, told = f"{first + 1:,}–{last + 1:,}", describe_many([chunks[marble.at] for marble in group])
        times = self._axis.times
        when = "" if times is None else f" · {milliseconds(times[first])}"
        title = f"{where}{when} · {told}"
        if tone in _OUTCOMES:
            radius = 6.0
            self.drawing.shapes.append(Shape("outcome", right, y, radius, radius, tone, first, last, title))
            return left - radius, right + radius
        radius = MARBLE
        kind = "marble" if right - left < 1 else "bar"
        if kind == "marble":
            self.drawing.shapes.append(Shape("marble", left, y, radius, radius, tone, first, last, title))
        else:
            self.drawing.shapes.append(
                Shape("bar", left - radius, y - radius, right - left + 2 * radius, 2 * radius, tone, first, last, title)
            )
        return left - radius, right + radius

    def _labels_inside(self, spans: list[tuple[float, float, list[Span]]], y: float) -> None:
        """Labels in their bars, where there is room: whole, or the first word."""
        for left, right, group in spans:
            label = group[0].label if len(group) == 1 else ""
            room = right - left - 6
            shown = next((text for text in (label, label.partition(" ")[0]) if text_width(text, 11) <= room), "")
            style = "inside open" if group[-1].is_open else "inside"
            self._text((left + right) / 2, y + 4, shown, style, "middle", 11, label)

    def _labels(self, labels: Sequence[tuple[float, float, str]], taken: list[tuple[float, float]], y: float) -> None:
        """Labels beside their spans: after them, else before them, where there is room."""
        gaps = _gaps(taken, LEFT, self.drawing.width - 12)
        alone = sum(1 for _, _, label in labels if label) == 1
        index = 0
        for left, right, label in labels:
            while index < len(gaps) and gaps[index][1] <= right:
                index += 1
            if not label:
                continue
            after = index if index < len(gaps) and gaps[index][0] - right < 16 else -1
            before = min(index, len(gaps)) - 1
            while before >= 0 and gaps[before][1] > left:
                before -= 1
            if not alone and before >= 0 and left - gaps[before][1] >= 16:
                before = -1  # another span stands between, which the label would seem to belong to
            self._label(gaps, after, before, label, y)

    def _label(self, gaps: list[tuple[float, float]], after: int, before: int, label: str, y: float) -> None:
        """Put a label into the gap after or before, if enough of it can be read, and take the room away."""
        rooms = {index: gaps[index][1] - gaps[index][0] - 12 for index in (after, before) if index >= 0}
        needed = text_width(cut(label, 240), 11)
        index = next((one for one, room in rooms.items() if room >= needed), None)
        if index is None and rooms:
            index = max(rooms, key=lambda one: rooms[one])
        shown = "" if index is None else fitted(label, rooms[index], 11)
        if index is None or not shown or (len(shown) < 14 and shown != cut(label, 240)):
            return
        begin, end = gaps[index]
        title, wide = cut(label, 200), text_width(shown, 11)
        if index == after:
            self._text(begin + 6, y + 4, shown, "label", "start", 11, title)
            gaps[index] = (begin + 12 + wide, end)
        else:
            self._text(end - 6, y + 4, shown, "label", "end", 11, title)
            gaps[index] = (begin, end - 12 - wide)

    # ---- legend ------------------------------------------------------------------------------------------------------

    def _legend(self, y: float) -> float:
        """The tones that occur, by name."""
        lanes = self._timeline.lanes
        present = {span.tone for lane in lanes for span in lane.spans}
        present |= {marble.tone for lane in lanes for marble in lane.marbles}
        x = float(LEFT)
        for tone, name in _LEGEND.items():
            if tone not in present:
                continue
            wide = 15 + text_width(name, 11) + 18
            if x + wide > self.drawing.width - 10:
                x, y = float(LEFT), y + 20
            if tone in _OUTCOMES:
                self.drawing.shapes.append(Shape("outcome", x + 4, y - 4, 6, 6, tone, -1, -1, ""))
            else:
                kind = "track" if tone == "args" else "bar"
                self.drawing.shapes.append(Shape(kind, x - 1, y - 8, 10, 8, tone, -1, -1, ""))
            self._text(x + 15, y, name, "muted", size=11)
            x += wide
        return y + 18


_LEGEND: dict[Tone, str] = {
    "step": "step",
    "reasoning": "reasoning",
    "text": "text",
    "object": "object",
    "args": "arguments streaming",
    "run": "running",
    "background": "in the background",
    "wait": "waiting",
    "result": "result",
    "error": "error",
    "denied": "denied, cancelled",
    "agent": "agent",
    "source": "source, file",
    "data": "data",
    "usage": "usage",
    "other": "other",
}


def _close_together(marks: Iterable[Mark], place: Callable[[int], float], near: float) -> list[list[Mark]]:
    groups: list[list[Mark]] = []
    start = 0.0
    for mark in marks:
        x = place(mark.at)
        if groups and x - start < near:
            groups[-1].append(mark)
        else:
            groups.append([mark])
            start = x
    return groups


def _gaps(taken: list[tuple[float, float]], left: float, right: float) -> list[tuple[float, float]]:
    """The free room between what is taken (sorted), from `left` to `right`."""
    ends: list[tuple[float, float]] = [(left, left)]
    for begin, end in taken:
        if begin <= ends[-1][1]:
            ends[-1] = (ends[-1][0], max(ends[-1][1], end))
        else:
            ends.append((begin, end))
    ends.append((right, right))
    return [(one[1], other[0]) for one, other in pairwise(ends) if other[0] > one[1]]
