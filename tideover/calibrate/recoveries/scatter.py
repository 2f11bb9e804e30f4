"""How much a recovery differs from the next one under the same conditions.

A few points cannot tell: six values are fitted to eight of them, so what is left over looks smaller than it
is. Repetitions can, and need no law. So a law's draws are given the scatter of repetitions on top: of the
file's own if it has enough, else of those that were published.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tideover.calibrate.recoveries.measurements import Points
from tideover.calibrate.types import Mask

PUBLISHED = 0.115
"""Standard deviation of the logarithm: twelve recoveries of a Flink job (CARS) in four groups of three, at
rates that differ by 1 % at most, have 0.102. With 8 degrees of freedom that is known roughly: an interval at
90 % is 1.13 times as wide as if it were known (Student's t), and so is this. M. Geldenhuys et al., *Demeter*,
2024, arXiv 2403.02129, repository dos-group/demeter."""
FEWEST = 6
"""Degrees of freedom below which the file's own repetitions are not taken: with so many, 90 % of
the estimates are within 0.52 and 1.45 times the truth."""
_SAME = 0.02
"""Rates that differ by less are the same."""


def run_to_run(workloads: Iterable[Points]) -> float:
    """Standard deviation of the logarithm of recoveries under the same conditions, all workloads together."""
    squares, freedom = 0.0, 0
    for points in workloads:
        for setting in alike(points):
            logs = np.log(points.recovery[setting])
            squares += float(((logs - logs.mean()) ** 2).sum())
            freedom += len(logs) - 1
    return float(np.sqrt(squares / freedom)) if freedom >= FEWEST else PUBLISHED


def alike(points: Points) -> list[Mask]:
    """Settings: points alike in interval, heartbeats and parallelism, at rates that are nearly the same."""
    tasks = np.ones(len(points)) if points.tasks is None else points.tasks
    others = np.stack((points.interval, *points.detection, tasks), axis=1)
    found: list[Mask] = []
    for other in np.unique(others, axis=0):
        here = np.flatnonzero((others == other).all(1))
        first = 0.0
        for i in here[np.argsort(points.rate[here], kind="stable")]:
            if points.rate[i] > (1 + _SAME) * first:
                first = float(points.rate[i])
                found.append(np.zeros(len(points), bool))
            found[-1][i] = True
    return found
