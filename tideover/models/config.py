"""What a simulation is told: one frozen object, the whole scenario."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Annotated, Any, ClassVar

from pydantic import Field

from tideover.models.detectors.base import Detector
from tideover.models.job.cluster import Hosts, cluster_of
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig, Store
from tideover.models.job.deployment import Deployment
from tideover.models.job.queues import QueueSettings, bounds_of
from tideover.models.job.stores.base import StoreKind
from tideover.models.job.topology import Topology
from tideover.models.strategies.base import Strategy
from tideover.sim.faults.base import Fault
from tideover.sim.registry import Part


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


class Slo(Part):
    """A service level objective: what a run is held against once it is done. Not simulated."""

    objective: Annotated[
        str, Field(description="metric, statistic, limit and maybe a part, as in recovery_p95 <= 20 s")
    ]
    level: Annotated[float, Field(gt=0.5, lt=1, description="confidence level of the interval")] = 0.95


class Scenario(Part):
    """Everything that one simulation depends on, and what its results are held against."""

    unsaid: ClassVar[frozenset[str]] = frozenset({"detector", "queues", "stores", "slo"})

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
    profile: AppliedProfile | None = None

    def with_strategy(self, strategy: Strategy) -> Scenario:
        """The same scenario under another strategy."""
        return self.model_copy(update={"strategy": strategy})


def topology_of(scenario: Scenario) -> Topology:
    """The scenario's topology, compiled. Raises TopologyError if it cannot be simulated."""
    return Topology(scenario.topology, scenario.strategy.needs.log)


def deployment_of(
    scenario: Scenario, strategy: Strategy | None = None, topology: Topology | None = None
) -> Deployment:
    """What runs where under the scenario's strategy, or with the replicas of another; ``topology``: that of
    the scenario, if it is compiled already. Raises PlacementError if a task finds no host.
    """
    topology = topology_of(scenario) if topology is None else topology
    strategy = scenario.strategy if strategy is None else strategy
    replicas = _replicas(topology, strategy)
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


def undisturbed(scenario: Scenario, deployment: Deployment) -> Deployment:
    """The scenario's ``deployment`` as its strategy wants it where nothing fails: without faults, and maybe
    with fewer replicas.
    """
    strategy = scenario.strategy.undisturbed()
    if _replicas(deployment.topology, strategy) == deployment.replicas:
        return deployment.quiet
    return deployment_of(scenario, strategy, deployment.topology).quiet


def _replicas(topology: Topology, strategy: Strategy) -> dict[str, int]:
    return {
        c.name: 1 if c.is_spout else strategy.replicas(c.name, c.keeps_state) for c in topology.components
    }


def dump(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain data, kinds of parts included, for a result that stores its whole
    configuration.
    """
    return _fields(scenario)


def identity(quiet: Scenario, replication: int) -> str:
    """Everything that a run without failures depends on, as a text."""
    parts = [f"{name}: {_text(getattr(quiet, name))}" for name in _SHARED]
    run = {name: value for name, value in _fields(quiet.run).items() if name not in _NOT_SIMULATED}
    return "\n".join([*parts, json.dumps([_plain(quiet.strategy), run, replication])])


_NOT_SIMULATED = frozenset({"warmup", "replications", "log_resolution", "lag_window", "calm"})
"""What is said of a run only."""
_SHARED = sorted(Scenario.model_fields.keys() - {"name", "description", "strategy", "run", "profile", "slo"})
"""Fields that scenarios which are made of one another mostly have in common, part by part."""
_texts: OrderedDict[int, tuple[Part, str]] = OrderedDict()
"""The newest of these parts, by identity, and what they are as texts."""


def forget() -> None:
    """Keep nothing for the next runs."""
    _texts.clear()


def _text(value: Any) -> str:
    """A value of a scenario as a text; parts, which are frozen, are asked once."""
    if isinstance(value, dict):
        return json.dumps({name: _text(inner) for name, inner in value.items()})
    if not isinstance(value, Part):
        return json.dumps(_plain(value))
    if id(value) not in _texts:
        _texts[id(value)] = value, json.dumps(_plain(value))
        if len(_texts) > 1_000:
            _texts.popitem(last=False)
    return _texts[id(value)][1]


def _fields(part: Part) -> dict[str, Any]:
    fields = type(part).model_fields
    silent = {
        name
        for name in part.unsaid
        if getattr(part, name) == fields[name].get_default(call_default_factory=True)
    }
    return {name: _plain(getattr(part, name)) for name in fields if name not in silent}


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return kind | _fields(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
