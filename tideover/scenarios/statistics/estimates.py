"""Means with intervals: Student's t, and a bootstrap with a fixed seed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

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
    std = float(known.std(ddof=1))
    half = float(_t_quantile(n - 1)) * std / math.sqrt(n)
    resampled = _bootstrap(known) if resample else None
    return Estimate(n, undefined, mean, std, (mean - half, mean + half), resampled)


def estimates(group: np.ndarray, values: np.ndarray, groups: int) -> list[Estimate]:
    """The estimate of each group: ``values[i]`` belongs to ``group[i]``, from 0 to ``groups`` - 1.

    NaN is undefined. Without bootstrap intervals: of thousands of groups they would take minutes.
    """
    known = ~np.isnan(values)
    every = np.bincount(group, minlength=groups)
    n = np.bincount(group[known], minlength=groups)
    sums = np.bincount(group[known], values[known], groups)
    means = sums / np.maximum(n, 1)
    squares = np.bincount(group[known], (values[known] - means[group[known]]) ** 2, groups)
    stds = np.sqrt(squares / np.maximum(n - 1, 1))
    halves = _t_quantile(np.maximum(n - 1, 1)) * stds / np.sqrt(np.maximum(n, 1))
    found = []
    for count, total, mean, std, half in zip(n, every, means, stds, halves, strict=True):
        m, undefined = float(mean), int(total - count)
        if count < 2:
            found.append(Estimate(int(count), undefined, m if count else None, None, None, None))
        else:
            interval = (m - float(half), m + float(half))
            found.append(Estimate(int(count), undefined, m, float(std), interval, None))
    return found


def _t_quantile(freedom: np.ndarray | int) -> np.ndarray:
    from scipy.special import stdtrit  # a fraction of the time that scipy.stats takes to import

    return np.asarray(stdtrit(freedom, 0.5 + LEVEL / 2))


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
