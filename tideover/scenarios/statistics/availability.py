"""Availability with rare failures, without waiting for them: recoveries that were simulated one at a time,
each after a failure at a random moment, and the rates at which failures come.

Failures of each kind come as a Poisson process: those of many machines together do, whatever the life of one
is (Palm and Khintchine; Cox, Renewal Theory, 1962, chapter 6). Each makes the output other than it would
have been for its recovery time R, and another failure meanwhile does not shorten that. So what is down is
the busy server of an M/G/infinity queue, and for the part exp(-sum of rate * E[R]) of the time nothing is
down, whatever the distributions of R (Takacs, Introduction to the Theory of Queues, 1962, chapter 3). If a
failure made the recovery under way begin anew instead, it would be the product of E[exp(-rate * R)], which
is no less (Jensen), and equal if R is constant; the two differ by half the variance of rate * R.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.scenarios.statistics.compound import Compound, compound_poisson
from tideover.scenarios.statistics.estimates import LEVEL, Estimate, estimate
from tideover.scenarios.statistics.student import t_quantile

Floats = npt.NDArray[np.float64]
Recoveries = Sequence[float | None] | Sequence[Sequence[float | None]] | Floats
"""Recovery times (s) of replications: one each, or several each. None or NaN: not recovered."""

YEAR_S = 365.25 * 86_400.0
CROWDED = 0.05
"""With a failure in so great a part of recoveries, what failures do to one another begins to count."""


@dataclass(frozen=True)
class Availability:
    """The part of the time in which output, state and backlog are as without failures.

    recovery_s             of each kind of failure, over replications
    rate_per_s             failures of each kind, per second
    over_s                 the period that budgets and times down are of
    objective, budget_s    the availability that is demanded, and how long it may be down; None: none is
    value, low, high       with a 95 % interval; None if unknown: a replication had not recovered at its end,
                           or (low, high) there are fewer than two replications of a kind
    down_s                 mean time in the period that is down, and its interval; median, and what 95 % do
                           not exceed
    burnt                  part of the budget that is burnt on average; over 1: more than there is
    exceeded               probability that more than the budget is burnt
    """

    recovery_s: Mapping[str, Estimate]
    rate_per_s: Mapping[str, float]
    over_s: float
    objective: float | None
    budget_s: float | None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    down_s: float | None = None
    down_low_s: float | None = None
    down_high_s: float | None = None
    down_median_s: float | None = None
    down_p95_s: float | None = None
    burnt: float | None = None
    exceeded: float | None = None

    @property
    def minutes_per_year(self) -> float | None:
        """Mean minutes in a year that are down."""
        return None if self.value is None else (1 - self.value) * YEAR_S / 60

    @property
    def undefined(self) -> int:
        """Replications that had not recovered at their end."""
        return sum(one.undefined for one in self.recovery_s.values())

    @property
    def overlap(self) -> float | None:
        """Probability that a failure strikes while another one is recovered from."""
        return None if self.value is None else 1 - self.value

    def to_dict(self) -> dict[str, Any]:
        """As plain data; undefined is None."""
        names = [name for name in self.__dataclass_fields__ if name not in ("recovery_s", "rate_per_s")]
        kinds = {
            kind: {
                "failures_per_year": self.rate_per_s[kind] * YEAR_S,
                "recovery_s": {"mean": one.mean, "low": (one.t or (None, None))[0]}
                | {"high": (one.t or (None, None))[1], "n": one.n, "undefined": one.undefined},
            }
            for kind, one in self.recovery_s.items()
        }
        found = {name: getattr(self, name) for name in names}
        return found | {"minutes_per_year": self.minutes_per_year, "failures": kinds}


def conditioned(
    recoveries_by_kind: Mapping[str, Recoveries],
    rate_per_s: Mapping[str, float],
    *,
    objective: float | None = None,
    over_s: float = YEAR_S,
) -> Availability:
    """Availability from recoveries that were simulated each after one failure, and how often failures come.

    ``recoveries_by_kind``: recovery times (s) of the replications of each kind of failure, (n,), or (n, m)
    with m failures each, which count as one replication (None or NaN: not recovered by the end of the run).
    ``rate_per_s``: failures of each of these kinds per second, of all that can fail together.
    ``objective``: the availability that is demanded, as 0.9995. ``over_s``: the period of the budget.

    The interval is Student's, of the mean recovery times, with Welch's degrees of freedom, through exp (the
    delta method). The time that is down in the period is compound Poisson, its mean corrected for overlaps.

    Raises ValueError for kinds without a rate, rates or recoveries below 0, no replications, an objective
    not within (0, 1).

    >>> found = conditioned({"host": [60.0, 90.0]}, {"host": 1e-6}, objective=0.9999)
    >>> round(found.value, 6), round(found.minutes_per_year, 1), round(found.burnt, 2)
    (0.999925, 39.4, 0.75)
    """
    times = {kind: _replications(kind, values) for kind, values in recoveries_by_kind.items()}
    _check(times, rate_per_s, objective, over_s)
    means = {kind: estimate(rows.mean(axis=1), resample=False) for kind, rows in times.items()}
    budget = None if objective is None else (1 - objective) * over_s
    rates = {kind: float(rate_per_s[kind]) for kind in times}
    if any(one.undefined and rates[kind] for kind, one in means.items()):
        return Availability(means, rates, over_s, objective, budget)
    load = sum(rates[kind] * (one.mean or 0.0) for kind, one in means.items())
    half = _half_width(means, rates)
    low, high = (None, None) if half is None else (math.exp(-load - half), math.exp(-max(0.0, load - half)))
    down, mean = _down(times, rates, load, over_s), -math.expm1(-load) * over_s
    return Availability(
        means,
        rates,
        over_s,
        objective,
        budget,
        value=math.exp(-load),
        low=low,
        high=high,
        down_s=mean,
        down_low_s=None if high is None else (1 - high) * over_s,
        down_high_s=None if low is None else (1 - low) * over_s,
        down_median_s=down.quantile(0.5),
        down_p95_s=down.quantile(0.95),
        burnt=None if budget is None else mean / budget,
        exceeded=None if budget is None else down.above(budget),
    )


def _replications(kind: str, values: Recoveries) -> Floats:
    """A row for each replication."""
    rows = np.array(values, dtype=np.float64)
    if rows.size == 0:
        raise ValueError(f"{kind}: recoveries of at least one replication are needed")
    if (rows < 0).any():
        raise ValueError(f"{kind}: a recovery time is below 0")
    return rows.reshape(len(rows), -1)


def _check(
    times: Mapping[str, Floats], rates: Mapping[str, float], objective: float | None, over_s: float
) -> None:
    missing = [kind for kind in times if kind not in rates]
    if missing or not times:
        raise ValueError(f"no rate is given for {', '.join(missing)}" if missing else "no kind of failure")
    for kind in times:
        if not 0 <= rates[kind] < math.inf:
            raise ValueError(f"{kind}: the rate is {rates[kind]}; 0 or more per second is allowed")
    if objective is not None and not 0 < objective < 1:
        raise ValueError(f"the objective is {objective}; more than 0 and less than 1 is allowed")
    if not 0 < over_s < math.inf:
        raise ValueError(f"the period is {over_s} s; more than 0 is allowed")


def _half_width(means: Mapping[str, Estimate], rates: Mapping[str, float]) -> float | None:
    """Half the width of the interval of the sum of rate * E[R]; None: one of them has no interval."""
    parts = []
    for kind, one in means.items():
        if rates[kind] and one.std is None:
            return None
        if rates[kind] and one.std:
            parts.append((rates[kind] ** 2 * one.std**2 / one.n, one.n - 1))
    if not parts:
        return 0.0
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / n for part, n in parts)
    return float(t_quantile(freedom, LEVEL)) * math.sqrt(variance)


def _down(times: Mapping[str, Floats], rates: Mapping[str, float], load: float, over_s: float) -> Compound:
    """How long the system is down in a period. Sums count twice what overlaps: rates are lowered so that the
    mean is right.
    """
    once = -math.expm1(-load) / load if load else 1.0
    return compound_poisson(
        [
            (once * rates[kind] * over_s, rows.ravel())
            for kind, rows in times.items()
            if rates[kind] and not np.isnan(rows).any()
        ]
    )
