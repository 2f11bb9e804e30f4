"""Means with intervals: Student's t, and a bootstrap with a fixed seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tideover.scenarios.statistics.student import of_mean

LEVEL = 0.95
RESAMPLES = 9_999
BOOTSTRAP_SEED = 20_150
MOST_RESAMPLED = 5_000
FEW = 20
"""Of so many values the places that are drawn are kept: a comparison resamples as many again and again."""


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

    def record(self) -> dict[str, float | None]:
        """As ``--json`` and frames have it: ``low`` and ``high`` are the ends of the t-interval."""
        low, high = self.t or (None, None)
        return {"n": self.n, "undefined": self.undefined, "mean": self.mean, "low": low, "high": high}


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
    means = [values[places].mean(axis=1) for places in _resampled(values.size)]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)


def _resampled(n: int) -> Iterable[npt.NDArray[np.int64]]:
    """Which of ``n`` values are drawn, a row a resample: always the same."""
    return _few_resampled(n) if n <= FEW else _drawn(n)


@lru_cache(maxsize=4)
def _few_resampled(n: int) -> list[npt.NDArray[np.int64]]:
    return list(_drawn(n))


def _drawn(n: int) -> Iterator[npt.NDArray[np.int64]]:
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    chunk = max(1, 1_000_000 // n)
    for start in range(0, RESAMPLES, chunk):
        yield rng.integers(0, n, (min(chunk, RESAMPLES - start), n))
