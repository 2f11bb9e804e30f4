"""How many replications: a number, or round by round as many as make an interval narrow enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tideover.scenarios.sweeps.replications import Fixed, Until

if TYPE_CHECKING:
    import pyarrow as pa

Wanted = list[tuple[int, int]]
"""For each point from which replication up to which."""


def rounds(
    replications: Fixed | Until, points: int, estimates: Callable[[str], pa.Table]
) -> Iterator[Wanted]:
    """What is to be done, round by round; ``estimates`` of a metric (``point``, ``n``, ``mean``, ``std``) are
    asked for when a round is over.

    What a round asks for depends on what the rounds before found, and on nothing else.
    """
    counts = [replications.least] * points
    yield [(0, count) for count in counts]
    if isinstance(replications, Fixed):
        return
    while True:
        found = {row["point"]: row for row in estimates(replications.metric).to_pylist()}
        known = (_known(found.get(point)) for point in range(points))
        further = [replications.further(done, *one) for done, one in zip(counts, known, strict=True)]
        if further == counts:
            return
        yield list(zip(counts, further, strict=True))
        counts = further


def too_wide(until: Until, points: int, estimates: Callable[[str], pa.Table]) -> list[str]:
    """What is to be said when all rounds are over of points whose interval is wider than was asked."""
    found = {row["point"]: row for row in estimates(until.metric).to_pylist()}
    many = sum(not until.narrow(*_known(found.get(point))) for point in range(points))
    if not many:
        return []
    whose = "the only point" if points == 1 else f"{many:,} of {points:,} points"
    said = f"replications: the interval of {until.metric} is wider than was asked for {whose}, with all"
    return [f"{said} {until.most} replications"]


def _known(row: dict[str, float | None] | None) -> tuple[int, float, float]:
    """Number, mean and standard deviation of a metric, as far as anything is known of it."""
    if row is None:
        return 0, math.nan, math.nan
    mean, std = (math.nan if row[name] is None else float(row[name] or 0.0) for name in ("mean", "std"))
    return int(row["n"] or 0), mean, std
