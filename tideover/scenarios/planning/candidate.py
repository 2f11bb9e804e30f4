"""What is known of one candidate: what it costs, and how it does on each objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models.schema.fields import HEADLINE
from tideover.models.time_of_day import daily_share
from tideover.scenarios.objectives.judging import Judgement, judge
from tideover.scenarios.objectives.objective import Objective
from tideover.scenarios.planning.offers import (
    GB,
    HOURS_PER_MONTH,
    SECONDS_PER_MONTH,
    Breaks,
    Prices,
    machines_per_month,
)
from tideover.scenarios.scenario import Scenario
from tideover.scenarios.statistics.student import of_mean
from tideover.sim.draws import Draws
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
PARTS = ("machines", "store", "network", "downtime")
"""What a month's cost consists of."""


@dataclass(frozen=True)
class Wanted:
    """What every candidate is held against. ``level``: of the intervals that are shown."""

    objectives: tuple[Objective, ...]
    prices: Prices
    failures: Mapping[str, Breaks]
    level: float = 0.95


@dataclass(frozen=True)
class Candidate:
    """A candidate, and its replications so far.

    values          of the plan's choices
    runs, recoveries    its tables
    costs           per month, one of each replication, by their parts
    judgements      one of each objective
    error           why a run of it failed
    """

    values: Mapping[str, Any]
    scenario: Scenario
    runs: pd.DataFrame
    recoveries: pd.DataFrame
    costs: Mapping[str, Floats]
    judgements: tuple[Judgement, ...]
    level: float
    error: str | None = None

    @property
    def n(self) -> int:
        """Replications."""
        return len(self.runs)

    @property
    def total(self) -> Floats:
        """What it costs per month, by replication."""
        return np.sum([self.costs[part] for part in PARTS], axis=0)

    @property
    def cost(self) -> float:
        """The mean of that."""
        return float(self.total.mean())

    @property
    def cost_interval(self) -> tuple[float, float]:
        """Its interval."""
        return of_mean(self.total, self.level) or (-math.inf, math.inf)

    @property
    def holds(self) -> bool:
        """Whether all objectives hold, as far as these replications show."""
        return self.error is None and all(one.holds for one in self.judgements)

    @property
    def violation(self) -> float:
        """By how much the objective that is missed most is missed, in parts of its limit; 0: none is."""
        if self.error is not None:
            return math.inf
        return max((max(0.0, -margin(one)) for one in self.judgements), default=0.0)

    @property
    def missed(self) -> list[str]:
        """The objectives that do not hold, the one that is missed most first."""
        if self.error is not None:
            return [self.error]
        missed = sorted((one for one in self.judgements if not one.holds), key=margin)
        return [one.objective.text for one in missed]

    def broken(self, level: float) -> bool:
        """Whether an objective is broken beyond doubt, at this level."""
        if self.error is not None:
            return True
        doubted = (replace(one.objective, level=level) for one in self.judgements if not one.holds)
        frames = {"runs": self.runs, "recoveries": self.recoveries, "timeline": None, "tasks": None}
        return any(judge(one, frames, 0.0).verdict == "broken" for one in doubted)


def judged(
    wanted: Wanted,
    values: Mapping[str, Any],
    scenario: Scenario,
    runs: pd.DataFrame,
    recoveries: pd.DataFrame,
) -> Candidate:
    """A candidate from the tables of its replications. Where the plan says how often what fails, each
    replication's availability is the one that its recoveries mean for such failures
    (`tideover.scenarios.statistics.availability`), not that of a run with the failures of its scenario.

    What a month costs: machines all the time; what is sent as the load of the day is, where it follows the
    hour; what is written and read, and recoveries, as in the runs.
    """
    failed = runs["error"].dropna()
    error = str(failed.iloc[0]) if len(failed) else None
    down = _down(wanted, scenario, runs, recoveries)
    if wanted.failures:
        runs = runs.assign(availability=np.exp(-down))
    seconds = scenario.run.duration / S
    month = SECONDS_PER_MONTH / seconds
    draws = (Draws(scenario.run.seed, number) for number in runs["replication"].tolist())
    share = np.array([daily_share(scenario, each) for each in draws])
    prices = wanted.prices
    costs = {
        "machines": np.full(len(runs), machines_per_month(scenario)),
        "store": runs["store_bytes"].to_numpy(np.float64) / GB * prices.store_per_gb * month,
        "network": runs["network_bytes"].to_numpy(np.float64) / GB * prices.network_per_gb * month * share,
        "downtime": _of_downtime(down, prices.downtime_per_hour),
    }
    judgements = tuple(one.judge(runs, recoveries) for one in wanted.objectives)
    return Candidate(values, scenario, runs, recoveries, costs, judgements, wanted.level, error)


def _of_downtime(down: Floats, price: float) -> Floats:
    """Per month; ``down``: hours of recovery for each hour between failures, infinite where there is no end.
    What overlaps counts once (`tideover.scenarios.statistics.availability`).
    """
    return -np.expm1(-down) * HOURS_PER_MONTH * price


def _down(wanted: Wanted, scenario: Scenario, runs: pd.DataFrame, recoveries: pd.DataFrame) -> Floats:
    """For each replication, seconds of recovery for each second between failures; infinite if something was
    not recovered from by the end of the run.
    """
    found = np.zeros(len(runs))
    numbers = runs["replication"].to_numpy(np.int64)
    times = recoveries[HEADLINE].to_numpy(np.float64)
    times = np.where(np.isnan(times), np.inf, times)
    of, kinds = recoveries["replication"].to_numpy(np.int64), recoveries["kind"].to_numpy()
    for kind, breaks in wanted.failures.items():
        mine = kinds == kind
        for at, number in enumerate(numbers):
            each = times[mine & (of == number)]
            found[at] += breaks.per_s(scenario) * (float(each.mean()) if each.size else 0.0)
    return found


def margin(judgement: Judgement) -> float:
    """How far a value is from its limit, in parts of the limit: positive where it holds. Of parts (an
    availability, a share of runs) what is missing to one is held against what may be missing. Infinite for
    ``=``: that holds or does not.
    """
    objective, value = judgement.objective, judgement.value
    if value is None:
        return -math.inf
    limit, above = judgement.limit, objective.sign in (">=", ">")
    if objective.rule in ("runs", "time") or (objective.metric.column.unit == "ratio" and above):
        value, limit, above = 1 - value, 1 - limit, False
    scale = abs(limit) if abs(limit) > 1e-12 else 1.0
    if objective.sign == "=" and objective.rule not in ("runs", "time"):
        return math.inf if judgement.holds else -abs(value - limit) / scale
    return ((value - limit) if above else (limit - value)) / scale


def saved(candidate: Candidate, other: Candidate, level: float) -> tuple[float, float]:
    """The interval of how much less a candidate costs than another, from the differences of replications that
    both have: they had the same luck.
    """
    n = min(candidate.n, other.n)
    return of_mean(other.total[:n] - candidate.total[:n], level) or (-math.inf, math.inf)


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    """The cheapest on which all objectives hold."""
    return min((one for one in candidates if one.holds), key=lambda one: one.cost, default=None)
