"""Means with intervals: Student's t, and a bootstrap with a fixed seed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tideover.scenarios.statistics.student import of_mean

LEVEL = 0.95
RESAMPLES = 9_999
BOOTSTRAP_SEED = 20_150
MOST_RESAMPLED = 5_000


@dataclass(frozen=True)
class Estimate:
    """Mean of the defined values, and two 95 % intervals around it.

    ``n``: values; ``undefined``: values that were missing and are in none of the figures. An interval needs
    two values, and is None without them. With zero variance both intervals shrink to the mean.
    """

    n: int
    undefined: int
    mean: float | None
    std: float | None
    t: tuple[float, float] | None
    bootstrap: tuple[float, float] | None

    @property
    def constant(self) -> bool:
        """All values are the same (up to rounding)."""
        return self.std is not None and self.mean is not None and self.std <= 1e-9 * max(1.0, abs(self.mean))

    @property
    def half_width(self) -> float | None:
        """Half the width of the t-interval; 0 if all values are the same."""
        if self.t is None:
            return None
        return 0.0 if self.constant else (self.t[1] - self.t[0]) / 2


def estimate(values: Iterable[float | None], *, resample: bool = True) -> Estimate:
    """Mean and intervals; undefined values (None, NaN) are counted and left out.

    ``resample``: find the bootstrap interval, too, which takes milliseconds.
    """
    every = list(values)
    known = np.array([np.nan if value is None else value for value in every], dtype=np.float64)
    known = known[~np.isnan(known)]
    n, undefined = known.size, len(every) - known.size
    if n == 0:
        return Estimate(0, undefined, None, None, None, None)
    mean = float(known.mean())
    if n == 1:
        return Estimate(1, undefined, mean, None, None, None)
    resampled = _bootstrap(known) if resample else None
    return Estimate(n, undefined, mean, float(known.std(ddof=1)), of_mean(known, LEVEL), resampled)


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    """The percentile interval of the mean: resampled with replacement, always with the same seed.

    Of very many values the mean is normal, and resampling would only take long.
    """
    if values.size > MOST_RESAMPLED:
        half = 1.959963984540054 * float(values.std()) / math.sqrt(values.size)
        return float(values.mean()) - half, float(values.mean()) + half
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    chunk = max(1, 1_000_000 // values.size)
    means: list[np.ndarray] = []
    for start in range(0, RESAMPLES, chunk):
        rows = min(chunk, RESAMPLES - start)
        means.append(values[rng.integers(0, values.size, (rows, values.size))].mean(axis=1))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)
