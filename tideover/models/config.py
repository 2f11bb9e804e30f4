"""What a simulation is told: the whole scenario as one frozen object, its compiled topology, and the time of
day at which it begins. The loader makes it, all others ask it; a new key of a scenario is a field here.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from tideover.models.detectors.base import Detector
from tideover.models.job.arrivals import Day
from tideover.models.job.cluster import Deployment, Hosts, cluster_of
from tideover.models.job.components import (
    DRAWN,
    PEAK,
    BoltConfig,
    Links,
    QueueSettings,
    Run,
    SpoutConfig,
    Store,
    bounds_of,
)
from tideover.models.job.stores import StoreKind
from tideover.models.job.topology import Topology
from tideover.models.strategies.base import Strategy
from tideover.sim.draws import Draws, Purpose
from tideover.sim.faults import Fault
from tideover.sim.registry import Part
from tideover.sim.units import DAY, HOUR, format_time_of_day, parse_time_of_day


class AppliedProfile(Part):
    """The profile (measured values) that a scenario was completed from; the engine does not look at it.

    ``taken``: keys of the scenario that it gave, and under which of its own names.
    """

    name: Annotated[str, Field(description="the profile's name")]
    sha256: Annotated[str, Field(description="of its file, in hexadecimal")]
    file: Annotated[str, Field(description="where it was read from, or its built-in name")]
    taken: Annotated[
        dict[str, str], Field(description="keys of the scenario that it gave, and what it calls them")
    ]


def _plain_value(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"must be a text or a number, not {value!r}")
    return value


Condition = Annotated[str | int | float, BeforeValidator(_plain_value)]
"""What something is measured, or runs, under."""


class Slo(Part):
    """A service level objective: what a run is held against once it is done. Not simulated."""

    objective: Annotated[
        str, Field(description="metric, statistic, limit and maybe a part, as in recovery_p95 <= 20 s")
    ]
    level: Annotated[float, Field(gt=0.5, lt=1, description="confidence level of the interval")] = 0.95


class Scenario(Part):
    """Everything that one simulation depends on, and what its results are held against."""

    omitted: ClassVar[frozenset[str]] = frozenset({"detector", "queues", "stores", "slo", "conditions"})

    name: str
    description: str = ""
    topology: dict[str, SpoutConfig | BoltConfig]
    strategy: Strategy
    failures: tuple[Fault, ...] = ()
    detector: Detector | None = None
    hosts: Annotated[int, Field(ge=1, le=100_000)] | Hosts | None = None
    links: Links
    queues: QueueSettings | None = None
    store: Store = Store()
    stores: dict[str, StoreKind] = Field(default_factory=dict, description="more stores, by name")
    run: Run
    slo: tuple[Slo, ...] = ()
    conditions: dict[str, Condition] = Field(
        default_factory=dict, description="what the real job runs under, by name; not simulated"
    )
    profile: AppliedProfile | None = None

    def with_strategy(self, strategy: Strategy) -> Scenario:
        return self.model_copy(update={"strategy": strategy})


_compiled: OrderedDict[tuple[int, bool], tuple[object, Topology]] = OrderedDict()
_KEPT = 16
"""So many topologies are kept, by the identity of what they were compiled from: a run asks a dozen times."""


def topology_of(scenario: Scenario) -> Topology:
    """The scenario's topology, compiled. Raises TopologyError if it cannot be simulated."""
    source, log = scenario.topology, scenario.strategy.needs.log
    found = _compiled.get((id(source), log))
    if found is None:
        found = _compiled[id(source), log] = source, Topology(source, log)
        if len(_compiled) > _KEPT:
            _compiled.popitem(last=False)
    return found[1]


def deployment_of(scenario: Scenario, strategy: Strategy | None = None) -> Deployment:
    """What runs where under the scenario's strategy, or with the replicas of another. Raises PlacementError
    if a task finds no host.
    """
    topology, strategy = topology_of(scenario), strategy or scenario.strategy
    replicas = {
        c.name: 1 if c.is_spout else strategy.replicas(c.name, c.keeps_state) for c in topology.components
    }
    return Deployment(
        topology=topology,
        replicas=replicas,
        cluster=cluster_of(topology, replicas, scenario.hosts),
        links=scenario.links,
        bounds=bounds_of(scenario.topology, scenario.queues),
        store=scenario.store,
        stores=scenario.stores,
        run=scenario.run,
        failures=scenario.failures,
        elsewhere=scenario.detector is not None and scenario.detector.moves_tasks,
        cycle=scenario.strategy.cycle(),
    )


def dump(part: Part) -> dict[str, Any]:
    """A scenario, or a part of it, as plain data, kinds of parts included, for a result that stores its whole
    configuration.
    """
    fields = type(part).model_fields
    given = {name: getattr(part, name) for name in fields}
    defaults = {name: fields[name].get_default(call_default_factory=True) for name in part.omitted}
    return {
        name: _plain(value)
        for name, value in given.items()
        if name not in defaults or value != defaults[name]
    }


def identity(quiet: Scenario, replication: int) -> str:
    """Everything that a run without failures depends on, as a text."""
    found = {name: _plain(getattr(quiet, name)) for name in Scenario.model_fields if name not in _ONLY_SAID}
    run = {name: value for name, value in found["run"].items() if name not in _OF_FIGURES}
    return json.dumps([found | {"run": run}, replication])


_ONLY_SAID = frozenset({"name", "description", "profile", "conditions", "slo"})
_OF_FIGURES = frozenset({"warmup", "replications", "log_resolution", "lag_window", "calm"})
"""Keys of a scenario, and of its ``run``, that change nothing of what is simulated."""


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return kind | dump(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


# The time of day at which a run begins, where load follows it (`tideover.models.job.arrivals`).


def timed(scenario: Scenario, draws: Draws) -> Scenario:
    """The scenario of one replication: ``run.starts_at`` says when it begins, and its arrivals know it. One
    in which no load follows the time of day, or that was timed already, is as it was.
    """
    begin = begins_at(scenario, draws)
    if begin is None:
        return scenario
    topology = {
        name: config.model_copy(update={"arrivals": config.arrivals.starting(begin)})
        if isinstance(config, SpoutConfig) and isinstance(config.arrivals, Day)
        else config
        for name, config in scenario.topology.items()
    }
    run = scenario.run.model_copy(update={"starts_at": format_time_of_day(begin), "fails_at": None})
    return scenario.model_copy(update={"topology": topology, "run": run})


def if_nothing_fails(scenario: Scenario, draws: Draws) -> Scenario:
    """The same without its failures, at the time of day at which it begins with them."""
    return timed(scenario, draws).model_copy(update={"failures": ()})


def daily_share(scenario: Scenario, draws: Draws) -> float:
    """The mean rate of roots over a day, as a part of that in a replication; 1 where no load follows the time
    of day. What another arrival process gives is taken for the same all day.
    """
    duration, day, now = scenario.run.duration, 0.0, 0.0
    for config in timed(scenario, draws).topology.values():
        if isinstance(config, SpoutConfig):
            rate = config.processes * config.arrivals.expected(duration) / duration
            is_curve = isinstance(config.arrivals, Day)
            now += rate
            day += config.processes * config.arrivals.expected(DAY) / DAY if is_curve else rate
    return day / now if now else 1.0


def heaviest(scenario: Scenario) -> Scenario:
    """As in the replication with the most to do: at the peak, if runs begin at a drawn time of day."""
    if scenario.run.fails_at == DRAWN:
        scenario = scenario.model_copy(update={"run": scenario.run.model_copy(update={"fails_at": PEAK})})
    return timed(scenario, Draws(scenario.run.seed))


def begins_at(scenario: Scenario, draws: Draws) -> int | None:
    """The time of day (ns) at simulated time 0; None: no load follows it."""
    run = scenario.run
    if not _curves(scenario):
        return None
    if run.fails_at is None:
        return parse_time_of_day(run.starts_at or "00:00")
    if run.fails_at == PEAK:
        fails_at = busiest(scenario)
    elif run.fails_at == DRAWN:
        fails_at = draws.moment("run", Purpose.DAY, DAY)
    else:
        fails_at = parse_time_of_day(run.fails_at)
    return (fails_at - first_failure(scenario)) % DAY


def first_failure(scenario: Scenario) -> int:
    """The earliest ``at`` of its failures (ns); 0 if none has one."""
    return min((fault.at for fault in scenario.failures if fault.at is not None), default=0)


def busiest(scenario: Scenario) -> int:
    """The first time of day (ns) with the greatest rate of all its spouts together; 0 if none follows it."""
    knots = [float(time) for _, day in _curves(scenario) for time in day.knots()]
    # Where one curve falls by a step, what others come to before it may be the most.
    moments = sorted({moment % DAY for time in knots for moment in (time - 1, time)})
    return int(max(moments, key=lambda time: rate_at(scenario, time), default=0.0))


def rate_at(scenario: Scenario, time: float) -> float:
    """Roots/s that spouts whose load follows the time of day are to emit at a time (ns), all together."""
    return sum(count * day.rate_at(time) for count, day in _curves(scenario))


def hour_of_day(scenario: Scenario, moment: int) -> dict[str, float]:
    """What a row says of a moment (ns) of a timed scenario: the time of day (h), if load follows it."""
    begin = begins_at(scenario, Draws(scenario.run.seed))
    return {} if begin is None else {"hour_of_day": (begin + moment) % DAY / HOUR}


def _curves(scenario: Scenario) -> list[tuple[int, Day]]:
    """The loads that follow the time of day, and how many arrival processes have each."""
    spouts = [config for config in scenario.topology.values() if isinstance(config, SpoutConfig)]
    return [(each.processes, each.arrivals) for each in spouts if isinstance(each.arrivals, Day)]
