"""What is for sale, what it costs, and how often what breaks: the parts of a plan's file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tideover.models import config
from tideover.models.job.cluster import Hosts
from tideover.sim.registry import Part, kind_of
from tideover.sim.units import MS, Bandwidth, Duration, S

HOURS_PER_MONTH = 730.0
"""365 days of 24 hours in 12 months."""
SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
GB = 1e9

Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Machine(Part):
    """A sort of machine that can be had, as `hosts.machines` of a scenario has it, and its price."""

    per_hour: Annotated[Price | None, Field(description="price of one for an hour, in any currency")] = None
    per_month: Annotated[Price | None, Field(description="or for a month of 730 hours")] = None
    cores: Annotated[
        int | None, Field(ge=1, le=1024, description="cores that its tasks share; default: one for each task")
    ] = None
    nic: Annotated[
        Bandwidth | None,
        Field(description="bandwidth of its network card, in and out each; default: no limit"),
    ] = None
    slots: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="most tasks that it takes; default: no limit")
    ] = None

    @model_validator(mode="after")
    def _one_price(self) -> Machine:
        if (self.per_hour is None) == (self.per_month is None):
            raise ValueError("give its price either per_hour or per_month")
        return self

    @property
    def price(self) -> float:
        """Of an hour."""
        if self.per_hour is not None:
            return self.per_hour
        assert self.per_month is not None
        return self.per_month / HOURS_PER_MONTH


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
        """Rate in a scenario, per second."""
        return (host_count(scenario) if self.of == "host" else 1) * S / self.every

    def per_month(self, scenario: config.Scenario) -> float:
        """The same per month of 730 hours."""
        return self.per_s(scenario) * SECONDS_PER_MONTH


class Effort(Part):
    """How many replications each candidate may take, and how sure a plan is to be."""

    least: Annotated[int, Field(ge=2, le=10_000, description="replications that every candidate gets")] = 5
    most: Annotated[int, Field(ge=2, le=100_000, description="replications after which it is settled")] = 40

    @model_validator(mode="after")
    def _order(self) -> Effort:
        if self.least > self.most:
            raise ValueError(f"least: {self.least} replications are more than most: {self.most}")
        return self


def host_count(scenario: config.Scenario) -> int:
    """How many hosts a scenario has; where it does not say, one for each task."""
    if isinstance(scenario.hosts, Hosts):
        return scenario.hosts.count
    if scenario.hosts is not None:
        return scenario.hosts
    return sum(component.parallelism for component in scenario.topology.values())


def machines_per_month(scenario: config.Scenario) -> float:
    """What all machines of a scenario cost in a month, those without work among them: they are paid for."""
    if not isinstance(scenario.hosts, Hosts):
        return 0.0
    each = ((machine.price or 0.0) * machine.count for machine in scenario.hosts.machines.values())
    return HOURS_PER_MONTH * sum(each)


def kinds_of(scenario: config.Scenario) -> list[str]:
    """The kinds of failures that a scenario has."""
    return list(dict.fromkeys(kind_of(failure) for failure in scenario.failures))


def mean_time_between(scenario: config.Scenario, failures: Iterable[Breaks]) -> float | None:
    """Seconds between two failures of any kind; None: there are none."""
    rate = sum(breaks.per_s(scenario) for breaks in failures)
    return 1 / rate if rate else None
