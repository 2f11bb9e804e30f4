"""Intervals of what is found over replications, each of which is one independent observation."""

from __future__ import annotations

import math

from tideover.scenarios.statistics.student import Interval


def of_fraction(hits: int, n: int, level: float) -> Interval:
    """The interval of a probability of which ``hits`` of ``n`` tries were seen: Clopper and Pearson (1934),
    "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26:404-413.
    It covers with at least ``level``.

    >>> [round(end, 4) for end in of_fraction(0, 20, 0.95)]
    [0.0, 0.1684]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def bound_of_fraction(hits: int, n: int, level: float) -> float:
    """The one-sided upper bound of the same, at a level above a half. For no hit it is
    1 - (1 - level)^(1/n), about 3/n at 95 %: the rule of three (Hanley and Lippman-Hand (1983), "If nothing
    goes wrong, is everything all right?", JAMA 249:1743-1745).

    >>> round(bound_of_fraction(0, 100, 0.95), 4)
    0.0295
    """
    return of_fraction(hits, n, 2 * level - 1)[1]


def least_tries(share: float, level: float) -> int:
    """So many tries at least, all of them hits, put the whole interval of ``of_fraction`` at or above
    ``share``, which is less than 1.

    >>> least_tries(0.95, 0.95), least_tries(0.99, 0.95)
    (72, 368)
    """
    return max(1, math.ceil(math.log((1 - level) / 2) / math.log(share) - 1e-9)) if share > 0 else 1
