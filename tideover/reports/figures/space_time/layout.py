"""Where lanes and moments are in a space-time diagram (px)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tideover.models.accounts.space_time import Stretch
from tideover.models.evaluation.diagram import Diagram, Lane
from tideover.reports.figures.shapes import Point, width_of
from tideover.sim.units import S

WIDTH = 1000.0
TOP = 70.0
"""Above the lanes are the title, and what strikes."""
TICKS = 9
_HEIGHTS = ((4, 84.0), (6, 66.0), (10, 48.0), (16, 38.0))
"""Height of a lane, if there are at most so many."""
_LEAST = 30.0


@dataclass(frozen=True)
class Layout:
    """Lanes from top to bottom, time from left to right.

    each   height of a lane
    y      of each lane
    bands  host, top and bottom of neighbouring lanes of one host
    ticks  moments (ns) and what is written there
    """

    stretch: Stretch
    width: float
    left: float
    right: float
    top: float
    bottom: float
    each: float
    y: dict[str, float]
    bands: tuple[tuple[int | None, float, float], ...]
    ticks: tuple[tuple[int, str], ...]

    def x(self, moment: float) -> float:
        """Of a moment (ns) in the stretch."""
        begin, end = self.stretch
        return self.left + (self.right - self.left) * (moment - begin) / max(1, end - begin)

    def clipped(self, moment: int) -> float:
        """The same of any moment: the edge that is nearer for those outside."""
        return self.x(min(max(moment, self.stretch.begin), self.stretch.end))

    def cut(self, a: tuple[int, float], b: tuple[int, float]) -> tuple[Point, Point]:
        """The part of the way between two points (ns, px) that lies in the stretch."""
        (t, y), (u, z) = a, b
        begin, end = self.stretch

        def at(moment: int) -> Point:
            moment = min(max(moment, begin), end)
            share = 0.0 if u == t else (min(max(moment, t), u) - t) / (u - t)
            return self.x(moment), y + (z - y) * share

        return at(t), ((self.x(u), z) if begin <= u <= end else at(u))


def layout(diagram: Diagram, lanes: Sequence[Lane]) -> Layout:
    """Lanes by host, hosts and what is without one in the order of their first lanes."""
    hosts: dict[object, list[Lane]] = {}
    for lane in lanes:
        hosts.setdefault(lane.host if lane.host is not None else lane.name, []).append(lane)
    each = next((height for most, height in _HEIGHTS if len(lanes) <= most), _LEAST)
    ordered = sorted(hosts.values(), key=lambda group: group[0].host is None)
    y, bands, at = {}, [], TOP
    for group in ordered:
        top = at
        for lane in group:
            y[lane.name] = at + each * 0.6
            at += each
        bands.append((group[0].host, top, at))
    left = 24 + max([56.0, *(width_of(lane.name, 12) for lane in lanes)])
    ticks = tuple(_ticks(*diagram.stretch))
    return Layout(diagram.stretch, WIDTH, left, WIDTH - 22, TOP, at, each, y, tuple(bands), ticks)


def _ticks(begin: int, end: int) -> list[tuple[int, str]]:
    """Round moments.

    >>> _ticks(0, 4_000_000_000)[:3]
    [(0, '0.0 s'), (500000000, '0.5 s'), (1000000000, '1.0 s')]
    """
    step = _round(max(1, end - begin) / TICKS)
    places = max(0, -math.floor(math.log10(step / S)))
    first = -(-begin // step) * step
    return [(at, f"{at / S:.{places}f} s") for at in range(first, end + 1, step)]


def _round(least: float) -> int:
    """The least of 1, 2, 5 × a power of ten that is not less."""
    power = 10 ** math.floor(math.log10(max(1.0, least)))
    return next(round(factor * power) for factor in (1, 2, 5, 10) if factor * power >= least)
