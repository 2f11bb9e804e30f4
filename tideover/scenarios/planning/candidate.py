"""What is for sale and what it costs; what is known of one candidate.

`spec` reads the parts, `search` judges candidates by their runs (`judged`), `plan` tells of them. What a
month costs is changed in `judged`, what is for sale in `Machine` and `Prices`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.models import config
from tideover.models.config import daily_share
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Cores, Nic, Slots
from tideover.models.schema import HEADLINE
from tideover.scenarios.loader import Scenario
from tideover.scenarios.objectives.objective import Judgement, Objective
from tideover.scenarios.statistics.intervals import of_mean
from tideover.sim.draws import Draws
from tideover.sim.registry import Part
from tideover.sim.units import MS, Duration, S

if TYPE_CHECKING:
    import pandas as pd

HOURS_PER_MONTH = 730.0
SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
GB = 1e9

Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Machine(Part):
    """A sort of machine that can be had, as `hosts.machines` of a scenario has it, and its price."""

    per_hour: Annotated[Price | None, Field(description="price of one for an hour, in any currency")] = None
    per_month: Annotated[Price | None, Field(description="or for a month of 730 hours")] = None
    cores: Cores = None
    nic: Nic = None
    slots: Slots = None

    @model_validator(mode="after")
    def _one_price(self) -> Machine:
        if (self.per_hour is None) == (self.per_month is None):
            raise ValueError("give its price either per_hour or per_month")
        return self

    @property
    def price(self) -> float:
        """Of an hour."""
        return self.per_hour if self.per_hour is not None else (self.per_month or 0.0) / HOURS_PER_MONTH


class Prices(Part):
    """What is paid besides machines, in the same currency."""

    store_per_gb: Annotated[
        Price, Field(description="of 10^9 bytes that are written to stores or read from them")
    ] = 0.0
    network_per_gb: Annotated[Price, Field(description="of 10^9 bytes that are sent between hosts")] = 0.0
    downtime_per_hour: Annotated[
        Price, Field(description="what an hour of recovery from failures costs the business")
    ] = 0.0


class Breaks(Part):
    """How often failures of one kind come, at random."""

    every: Annotated[Duration, Field(ge=MS, description="mean time between two of them")]
    of: Annotated[
        Literal["system", "host"],
        Field(description="which has one so often: the whole system, or each of its hosts"),
    ] = "system"

    def per_s(self, scenario: config.Scenario) -> float:
        """Rate in a scenario, per second; of hosts, if it does not say how many, one for each task."""
        hosts = scenario.hosts
        if self.of == "system":
            many = 1
        elif hosts is None:
            many = sum(component.parallelism for component in scenario.topology.values())
        else:
            many = hosts.count if isinstance(hosts, Hosts) else hosts
        return many * S / self.every


class Effort(Part):
    """How many replications each candidate may take, and how sure a plan is to be."""

    least: Annotated[int, Field(ge=2, le=10_000, description="replications that every candidate gets")] = 5
    most: Annotated[int, Field(ge=2, le=100_000, description="replications after which it is settled")] = 40

    @model_validator(mode="after")
    def _order(self) -> Effort:
        if self.least > self.most:
            raise ValueError(f"least: {self.least} replications are more than most: {self.most}")
        return self


def machines_per_month(scenario: config.Scenario) -> float:
    """What all machines of a scenario cost in a month, those without work among them: they are paid for."""
    if not isinstance(scenario.hosts, Hosts):
        return 0.0
    each = ((machine.price or 0.0) * machine.count for machine in scenario.hosts.machines.values())
    return HOURS_PER_MONTH * sum(each)


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
    """A candidate, by the values of the plan's choices, and the tables of its replications so far; ``costs``:
    per month, one of each replication, by their parts; ``error``: why a run of it failed.
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
        return len(self.runs)

    @property
    def total(self) -> Floats:
        """What it costs per month, by replication."""
        return np.sum([self.costs[part] for part in PARTS], axis=0)

    @property
    def cost(self) -> float:
        return float(self.total.mean())

    @property
    def mean_costs(self) -> dict[str, float]:
        """What each part costs per month."""
        return {part: float(self.costs[part].mean()) for part in PARTS}

    @property
    def cost_interval(self) -> tuple[float, float]:
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
        return any(one.judge(self.runs, self.recoveries).verdict == "broken" for one in doubted)


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
    times = recoveries[HEADLINE].to_numpy(np.float64)
    times = np.where(np.isnan(times), np.inf, times)
    of, kinds = recoveries["replication"].to_numpy(np.int64), recoveries["kind"].to_numpy()
    # for each replication, seconds of recovery for each second between failures; infinite if something was
    # not recovered from by the end of the run
    down = np.zeros(len(runs))
    for kind, breaks in wanted.failures.items():
        for at, number in enumerate(runs["replication"].to_numpy(np.int64)):
            each = times[(kinds == kind) & (of == number)]
            down[at] += breaks.per_s(scenario) * (float(each.mean()) if each.size else 0.0)
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
        # down: per hour between failures; what overlaps counts once (see the same module)
        "downtime": -np.expm1(-down) * HOURS_PER_MONTH * prices.downtime_per_hour,
    }
    judgements = tuple(one.judge(runs, recoveries) for one in wanted.objectives)
    return Candidate(values, scenario, runs, recoveries, costs, judgements, wanted.level, error)


def margin(judgement: Judgement) -> float:
    """How far a value is from its limit, in parts of the limit: positive where it holds. Of parts (an
    availability, a share of runs) what is missing to one is held against what may be missing. Infinite for
    ``=``: that holds or does not.
    """
    objective, value = judgement.objective, judgement.value
    if value is None:
        return -math.inf
    limit, above = judgement.limit, objective.is_least
    if objective.is_of_parts or (objective.metric.column.unit == "ratio" and above):
        value, limit, above = 1 - value, 1 - limit, False
    scale = abs(limit) if abs(limit) > 1e-12 else 1.0
    if objective.sign == "=" and not objective.is_of_parts:
        return math.inf if judgement.holds else -abs(value - limit) / scale
    return ((value - limit) if above else (limit - value)) / scale


def saved(candidate: Candidate, other: Candidate, level: float) -> tuple[float, float]:
    """How much less a candidate costs than another, in replications that both have: the interval."""
    n = min(candidate.n, other.n)
    return of_mean(other.total[:n] - candidate.total[:n], level) or (-math.inf, math.inf)


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    return min((one for one in candidates if one.holds), key=lambda one: one.cost, default=None)
