"""Durations that logs show a few times, and how long the next one may take.

Logarithms of a duration are taken as normal. With few observations their spread is known badly, with one not
at all: a prior stands for so many observations (``PRIOR``) of durations that differ by ``USUAL``, as restarts
of one job do from run to run. What comes next then has Student's distribution (A. Gelman et al., *Bayesian
Data Analysis*, 3rd edition, section 3.3, with a scaled inverse chi-square prior of the variance).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs.findings import Quantity, unknown

USUAL = 0.3
"""Standard deviation of the logarithm of durations of one kind, before any is seen: it was 0.25 to 0.45
for the parts of 28 recoveries of a Flink whose TaskManagers were killed, in six sessions.
"""
PRIOR = 4.0
"""So many observations is that worth."""
_LEAST_S = 1e-3
"""Logs have milliseconds; a shorter duration counts as one."""
ENDS = (0.05, 0.95)
FEWEST = 5


def next_one(values: Sequence[float], quantiles: Floats | Sequence[float]) -> Floats:
    """Quantiles of the next duration, s, after those that were seen; at least one."""
    logs = np.log(np.maximum(np.asarray(values, float), _LEAST_S))
    n = len(logs)
    squares = PRIOR * USUAL**2 + float(((logs - logs.mean()) ** 2).sum())
    freedom = PRIOR + n - 1
    scale = np.sqrt(squares / freedom * (1 + 1 / n))
    found: Any = np.exp(logs.mean() + scale * student.ppf(quantiles, freedom))
    return np.asarray(found, float)


def observed(name: str, values: Sequence[float], meaning: str) -> Quantity:
    """A duration that was seen: its median, and the interval at 90 % of the next one."""
    if not len(values):
        return unknown(name, "s", meaning)
    low, high = next_one(values, ENDS).tolist()
    return Quantity(name, "s", float(np.median(values)), low, high, len(values), True, meaning)


def spread(name: str, unit: str, values: Sequence[float], meaning: str) -> Quantity:
    """What was seen often: its median, and the interval that 90 % of what was seen lie in, if that is enough
    to tell.
    """
    if not len(values):
        return unknown(name, unit, meaning)
    low, middle, high = np.quantile(np.asarray(values, float), (ENDS[0], 0.5, ENDS[1])).tolist()
    if len(values) < FEWEST:
        low = high = float("nan")
    return Quantity(name, unit, middle, low, high, len(values), True, meaning)
