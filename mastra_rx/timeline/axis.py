"""The axis: where each chunk stands between the beginning of a run (0) and its end (1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .words import Wired, milliseconds, payload_of


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on the axis."""

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Places of chunks, and the ticks that tell what the places mean."""

    places: list[float]
    """Of each chunk, from 0 to 1, never falling."""
    ticks: list[Tick]
    times: list[float] | None
    """Of each chunk, in milliseconds since the first; None where the axis shows the order."""
    note: str


def axis_of(chunks: Sequence[Wired], times: Sequence[float | None] | None) -> Axis:
    """The axis of time where times are known, else that of order.

    An axis of order has the moments as ticks that chunks tell themselves (`startedAt`, `completedAt`, ...).
    """
    known = None if times is None else _filled(times, len(chunks))
    if known is not None and known[-1] > known[0]:
        return _by_time(known)
    count = len(chunks)
    places = [(index + 0.5) / count for index in range(count)]
    told = _told_times(chunks)
    if len(told) > 1:
        first = told[0][1]
        ticks = [Tick(places[index], f"+{milliseconds(at - first)}") for index, at in told]
        return Axis(places, ticks, None, "order of the chunks")
    return Axis(places, _numbers(count), None, "order of the chunks")


def _by_time(times: list[float]) -> Axis:
    first, whole = times[0], times[-1] - times[0]
    step = _round_step(whole)
    ticks = [Tick(n * step / whole, milliseconds(n * step) if n else "0") for n in range(int(whole / step) + 1)]
    return Axis([(at - first) / whole for at in times], ticks, [at - first for at in times], _start(first))


def _start(first: float) -> str:
    try:
        began = datetime.fromtimestamp(first / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return "time from the first chunk"
    if began.year < 2000:  # a clock of its own
        return "time from the first chunk"
    return f"from {began:%Y-%m-%d %H:%M:%S}Z"


def _filled(times: Sequence[float | None], count: int) -> list[float] | None:
    """A time for each chunk: never falling, the missing ones on a line between their neighbours."""
    known = [
        (index, float(at)) for index, at in enumerate(times[:count]) if at is not None and math.isfinite(float(at))
    ]
    if len(known) < 2:
        return None
    filled = [known[0][1]] * known[0][0]
    latest = known[0][1]
    before = known[0][0]
    filled.append(latest)
    for index, at in known[1:]:
        now = max(latest, at)
        gap = index - before
        filled.extend(latest + (now - latest) * n / gap for n in range(1, gap + 1))
        latest, before = now, index
    filled.extend([latest] * (count - len(filled)))
    return filled


_STEPS = (1, 2, 5)


def _round_step(whole: float) -> float:
    """A round number of milliseconds, so that 5 to 12 of them make the whole."""
    nice = [15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 1800e3, 3600e3]
    if whole > 100e3:
        return next((step for step in nice if whole / step <= 10), _decade(whole / 3600e3) * 3600e3)
    return _decade(whole)


def _decade(whole: float) -> float:
    power = 10.0 ** math.floor(math.log10(whole / 10))
    return next((step * power for step in _STEPS if whole / (step * power) <= 10), 10 * power)


def _numbers(count: int) -> list[Tick]:
    step = max(1, round(_decade(max(count, 1))))
    numbers = [1, *range(step, count + 1, step)] if step > 1 else range(1, count + 1)
    return [Tick((number - 0.5) / count, f"{number:,}") for number in numbers]


_TIMES = ("startedAt", "completedAt", "suspendedAt", "resumedAt", "endedAt")


def _told_times(chunks: Sequence[Wired]) -> list[tuple[int, float]]:
    told: list[tuple[int, float]] = []
    for index, chunk in enumerate(chunks):
        if "payload" not in chunk:
            continue
        payload = payload_of(chunk)
        keys = [key for key in _TIMES if key in payload]
        if keys:
            at = _milliseconds(payload[keys[-1]])
            if at is not None and (not told or at > told[-1][1]):
                told.append((index, at))
    return told


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp() * 1000
        except ValueError:
            return None
    return None
