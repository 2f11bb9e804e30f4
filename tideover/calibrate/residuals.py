"""Residuals: by how much predictions are off for reasons that no parameter explains, and intervals with it.

Their spread is told by the episodes of the fit alone. A few kills of one kind do not tell it, so kinds borrow
from each other: the spread that is typical of all kinds counts as much as a few kills of the kind itself (the
conjugate prior of a variance: A. Gelman and others, *Bayesian Data Analysis*, 3rd edition, section 2.6).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from tideover.calibrate.types import Floats

K = TypeVar("K", bound=Hashable)

LEVEL = 0.9
"""Of intervals."""
LEAST = 0.1
"""No prediction of what a fault does to a wall clock is better than a tenth."""
STEADY = 0.05
"""What is expected of a mean over many batches."""
PRIOR_FREEDOM = 2.0
"""Degrees of freedom that the typical spread counts for: of 1 to 16, this gave kills of a fit the greatest
likelihood when each was left out and predicted from the others (docs/calibration.md).
"""
QUANTILES = 201
"""Values that stand for the distribution of residuals, evenly spread: nothing is left to chance."""


@dataclass(frozen=True)
class Spread:
    """Standard deviation of log(predicted / measured), and for how many degrees of freedom it is known."""

    scale: float
    freedom: float

    @property
    def normal(self) -> float:
        """The standard deviation of a normal distribution with the same 90 % interval."""
        side = 0.5 + LEVEL / 2
        return self.scale * float(student.ppf(side, self.freedom) / norm.ppf(side))

    def interval(self, values: Floats, floor: float = 0.0) -> tuple[float, float]:
        """Interval of prediction (s): of positive ``values`` that are equally likely, each with residuals.

        Infinite values have no bound. What is less than ``floor`` (s) is not told apart, and reaches to 0.
        """
        if not len(values):
            return float("nan"), float("nan")
        residuals = student.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES, self.freedom) * self.scale
        likely = np.maximum(values, floor)[:, None] * np.exp(residuals)
        low, high = np.quantile(likely, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2), method="inverted_cdf").tolist()
        return (low if low > floor else 0.0), high


def spread_of(residuals: Floats, parameters: int, typical: float) -> Spread:
    """Of the residuals (log) of a fit with so many parameters; ``typical``: what is expected of it."""
    known = residuals[np.isfinite(residuals)]
    freedom = PRIOR_FREEDOM + max(0, len(known) - parameters)
    return Spread(float(np.sqrt((PRIOR_FREEDOM * typical**2 + (known**2).sum()) / freedom)), freedom)


def spread_by_kind(residuals: Mapping[K, Floats]) -> dict[K, Spread]:
    """Of each kind, out of the residuals (log) of all; each kind has one mean of its own."""
    known = {kind: values[np.isfinite(values)] for kind, values in residuals.items()}
    own = [np.sqrt((values**2).sum() / (len(values) - 1)) for values in known.values() if len(values) > 1]
    typical = max(LEAST, float(np.median(own))) if own else LEAST
    found = {kind: spread_of(values, 1, typical) for kind, values in known.items()}
    return {kind: replace(one, scale=max(LEAST, one.scale)) for kind, one in found.items()}
