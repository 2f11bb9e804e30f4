"""The mean of one long run: its values are not independent, the means of long batches of them nearly are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tideover.scenarios.statistics.estimates import LEVEL
from tideover.scenarios.statistics.student import half_width

Floats = npt.NDArray[np.float64]

TRIED = ((120, 30), (60, 30), (40, 20))
"""Batches that are tested, and how many longer ones are then used."""
_CORRELATED = 1.6448536269514722
"""Von Neumann's ratio, standardised, is beyond this in 5 % of independent series."""


@dataclass(frozen=True)
class BatchMeans:
    """The mean of a run, and its 95 % interval.

    ``batches`` of ``size`` values each; ``correlated``: even the longest batches depend on one another, so
    that there is no interval: the run is too short for one. A run of fewer than 40 values has none either.
    """

    n: int
    mean: float | None
    low: float | None
    high: float | None
    batches: int
    size: int
    correlated: bool


def batch_means(series: npt.ArrayLike) -> BatchMeans:
    """The mean of a stationary series, warm-up cut off already, from means of batches that do not overlap.

    Between 10 and 30 batches are enough: more of them hardly make the interval better (Schmeiser, Batch Size
    Effects in the Analysis of Simulation Output, Operations Research 30, 1982). So 30 are used, or 20 of a
    short run. Whether they are long enough is tested on two to four times as many, for which the test has
    more power, by von Neumann's ratio: of independent values it is about 2 (Alexopoulos and Seila, Output
    Data Analysis, in: Banks, Handbook of Simulation, 1998, section 7.3; Law, Simulation Modeling and
    Analysis, section 9.5). Values left over are those at the front.

    Raises ValueError for undefined values.
    """
    values = np.asarray(series, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("batch means need a value at every place of the series")
    n = len(values)
    mean = float(values.mean()) if n else None
    used = next((used for tested, used in TRIED if n >= tested and _independent(batches(values, tested))), 0)
    if not used:
        return BatchMeans(n, mean, None, None, 0, 0, correlated=n >= TRIED[-1][0])
    means = batches(values, used)
    half = half_width(used, float(means.std(ddof=1)), LEVEL)
    middle = float(means.mean())
    return BatchMeans(n, middle, middle - half, middle + half, used, n // used, correlated=False)


def batches(values: Floats, count: int) -> Floats:
    """Means of so many batches of equal length; values left over are dropped at the front."""
    size = len(values) // count
    return np.asarray(values[len(values) - count * size :].reshape(count, size).mean(axis=1))


def _independent(means: Floats) -> bool:
    """Whether von Neumann's ratio shows no positive correlation of neighbours, at the level of 5 %."""
    squares = float(((means - means.mean()) ** 2).sum())
    if squares == 0:
        return True
    ratio = float((np.diff(means) ** 2).sum()) / squares
    n = len(means)
    return (1 - ratio / 2) * math.sqrt((n * n - 1) / (n - 2)) <= _CORRELATED
