"""Quantiles over replications, with intervals that assume nothing of the distribution."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tideover.scenarios.statistics.estimates import LEVEL

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Quantile:
    """A quantile of the defined values, and an interval of it.

    ``n``: values; ``undefined``: values that were missing and are in none of the figures. ``low`` and
    ``high`` are each None where so few values have no limit: at the 95 % level, of the 95 % quantile 72
    values are needed for a ``high`` one, of the median 6.
    """

    n: int
    undefined: int
    value: float | None
    low: float | None
    high: float | None


def quantile_interval(values: Iterable[float | None], q: float, level: float = LEVEL) -> Quantile:
    """The quantile ``q`` (0 < q < 1) of independent values, one a replication; None and NaN are undefined.
    Values may be infinite: what was never reached.

    How many of n values are below the quantile is binomial, whatever their distribution, so two of the
    ordered values are an interval (David and Nagaraja, Order Statistics, 2003, section 7.1). Those at or
    beyond the level cover more than it says where n is small; so each limit is interpolated between two
    neighbours, as Hettmansperger and Sheather (1986) do for the median and Nyblom (1992) for any quantile: it
    then covers the level nearly, for all the usual distributions.

    The quantile itself is interpolated linearly, as pandas and DuckDB do. Raises ValueError for another q.
    """
    if not 0 < q < 1:
        raise ValueError(f"the quantile is {q}; more than 0 and less than 1 is allowed")
    every = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    known = np.sort(every[~np.isnan(every)])
    n, undefined = len(known), len(every) - len(known)
    if n == 0:
        return Quantile(0, undefined, None, None, None)
    low, high = _limit(known, q, level), _limit(-known[::-1], 1 - q, level)
    part, below = math.modf(round(q * (n - 1), 9))
    return Quantile(n, undefined, _mixed(known, int(below), part), low, None if high is None else -high)


def _limit(ordered: Floats, q: float, level: float) -> float | None:
    """What the quantile is not below, with a probability of half the level and one half; None: too few."""
    found = _between(len(ordered), q, level)
    return None if found is None else _mixed(ordered, found[0] - 1, found[1])


def _mixed(ordered: Floats, index: int, part: float) -> float:
    """What lies this part of the way from a value to the next one; infinite values are no numbers to mix."""
    low, high = float(ordered[index]), float(ordered[min(index + 1, len(ordered) - 1)])
    return low if part == 0 or low == high or math.isinf(low) else low + part * (high - low)


@lru_cache(maxsize=4096)
def _between(n: int, q: float, level: float) -> tuple[int, float] | None:
    """The rank (from 1) of the value below the limit, and how far the limit is from there to the next one:
    Nyblom's formula, which for the median is that of Hettmansperger and Sheather.
    """
    from scipy.special import bdtrc

    wanted = 0.5 + level / 2
    chances = bdtrc(np.arange(n), n, q)  # that at least 1, 2, … n values are below the quantile
    rank = int((chances >= wanted).sum())
    if rank == 0:
        return None
    if rank == n:
        return rank, 0.0
    here, beyond = float(chances[rank - 1]), float(chances[rank])
    least = rank * (1 - q) * (wanted - beyond)
    return rank, 1.0 / (1.0 + least / ((n - rank) * q * (here - wanted))) if here > wanted else 0.0
