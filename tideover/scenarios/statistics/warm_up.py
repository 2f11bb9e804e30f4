"""Where the warm-up of a run ends, found from what the run says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BATCH = 5
"""Values that are averaged first: MSER-5."""


@dataclass(frozen=True)
class Truncation:
    """How many values at the front of a series are warm-up; ``too_short``: more than half of it, or fewer
    than ten batches, so that the series does not tell.
    """

    values: int
    too_short: bool


def mser5(series: npt.ArrayLike) -> Truncation:
    """The marginal standard error rule on means of five values: drop so many at the front that the interval
    of the mean of the rest is narrowest.

    White, An Effective Truncation Heuristic for Bias Reduction in Simulation Output, Simulation 69, 1997;
    White, Cobb and Spratt, A Comparison of Five Steady-State Truncation Heuristics, WSC 2000, with the rule
    that a point in the second half says that the run is too short. The last five batches are no candidates:
    of few values the error is small by chance.

    Raises ValueError for undefined values.
    """
    values = np.asarray(series, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("the rule needs a value at every place of the series")
    count = len(values) // BATCH
    if count < 2 * BATCH:
        return Truncation(0, too_short=True)
    means = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    means = means - means.mean()  # sums of squares of what is far from 0 would lose digits
    left = np.arange(count, 0, -1)
    sums, squares = (np.cumsum(each[::-1])[::-1] for each in (means, means**2))
    errors = (squares - sums**2 / left) / left**2
    candidates = np.maximum(errors, 0.0)[: count - BATCH + 1]
    # of points that differ by rounding alone, the first: a series that is constant at last has many
    least = int(np.argmax(candidates <= candidates.min() + 1e-14 * squares[0]))
    return Truncation(least * BATCH, too_short=least > count // 2)
