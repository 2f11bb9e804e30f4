"""Scatter: by how much predictions are off for reasons that no parameter explains, and intervals with it.

All of it is said by the episodes of the fit. A few kills of one kind do not tell a scatter, so kinds borrow
from each other: what is typical of all counts as much as a few kills of the kind itself (the conjugate prior
of a variance: A. Gelman and others, *Bayesian Data Analysis*, 3rd edition, section 2.6).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from scipy.stats import t as student

Floats = npt.NDArray[np.float64]
K = TypeVar("K", bound=Hashable)

LEVEL = 0.9
"""Of intervals."""
LEAST = 0.1
"""No prediction of what a fault does to a wall clock is better than a tenth."""
STEADY = 0.05
"""What is expected of a mean over many batches."""
TYPICAL = 2.0
"""How many degrees of freedom of its own what is typical counts for: of 1 to 16, this gave kills of a fit the
greatest likelihood when each was left out and said by the others (docs/calibration.md).
"""
STEPS = 201
"""Values that stand for the distribution of the scatter, evenly spread: nothing is left to luck."""


@dataclass(frozen=True)
class Scatter:
    """Standard deviation of log(predicted / measured), and for how many degrees of freedom it is known."""

    scale: float
    freedom: float

    @property
    def normal(self) -> float:
        """The standard deviation of a normal distribution with the same 90 % interval."""
        side = 0.5 + LEVEL / 2
        return self.scale * float(student.ppf(side, self.freedom) / norm.ppf(side))

    def interval(self, values: Floats, floor: float = 0.0) -> tuple[float, float]:
        """Interval of prediction (s), of positive ``values`` that are equally likely, and the scatter on top.

        What is infinite has no bound. What is less than ``floor`` (s) is not told apart, and reaches to 0.
        """
        if not len(values):
            return float("nan"), float("nan")
        luck = student.ppf((np.arange(STEPS) + 0.5) / STEPS, self.freedom) * self.scale
        spread = np.maximum(values, floor)[:, None] * np.exp(luck)
        low, high = np.quantile(spread, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2), method="inverted_cdf").tolist()
        return (low if low > floor else 0.0), high


def scatter(left: Floats, parameters: int, typical: float) -> Scatter:
    """Of residuals ``left`` (log) of a fit with so many parameters; ``typical``: what is expected of it."""
    left = left[np.isfinite(left)]
    freedom = TYPICAL + max(0, len(left) - parameters)
    return Scatter(float(np.sqrt((TYPICAL * typical**2 + (left**2).sum()) / freedom)), freedom)


def by_kind(left: Mapping[K, Floats]) -> dict[K, Scatter]:
    """Of each kind, out of the residuals (log) of all; each kind has one mean of its own."""
    known = {kind: values[np.isfinite(values)] for kind, values in left.items()}
    own = [np.sqrt((values**2).sum() / (len(values) - 1)) for values in known.values() if len(values) > 1]
    typical = max(LEAST, float(np.median(own))) if own else LEAST
    found = {kind: scatter(values, 1, typical) for kind, values in known.items()}
    return {kind: replace(one, scale=max(LEAST, one.scale)) for kind, one in found.items()}
