"""How much there is to do in a simulation, roughly: said before a run that would take long."""

from __future__ import annotations

from dataclasses import dataclass

from tideover.models.advice.loads import task_loads
from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario, deployment_of, topology_of
from tideover.models.job.components import SpoutConfig
from tideover.models.job.deployment import Deployment
from tideover.models.runtime.core_sharing import crowded, layered
from tideover.models.runtime.network import levels_of
from tideover.models.time_of_day import heaviest
from tideover.sim.units import S

MOST_ROOTS = 10**10
"""Most roots that one run emits: an hour or more. A root's number has room for a hundred times as many."""

_TUPLES_PER_S = 3e6
_DECISIONS_PER_S = 1e4
_TURNS_PER_S = 4e3
_SINGLES_PER_S = 3e4
"""What one core of a common machine gets done, by word counts and snapshots that were timed."""


@dataclass(frozen=True)
class Effort:
    """Of one replication.

    tuples     that tasks emit or work on, each replica for itself
    decisions  snapshots, ends of windows, rotations, triggers and faults, task by task
    turns      tuples that are worked on where tasks of several levels of the topology share cores: there time
               goes in short steps
    singles    tuples that are moved one by one, as bounded queues meet cards or cores that are shared
    """

    tuples: float
    decisions: float
    turns: float
    singles: float

    @property
    def seconds(self) -> float:
        """How long that takes on one core, very roughly."""
        simple = self.tuples / _TUPLES_PER_S + self.decisions / _DECISIONS_PER_S
        return simple + self.turns / _TURNS_PER_S + self.singles / _SINGLES_PER_S


def roots(config: SpoutConfig, scenario: Scenario) -> float:
    """How many roots a component emits in a run, lumps taken as one each."""
    limit = config.spout.limit
    each = config.arrivals.expected(scenario.run.duration) / coarseness(scenario)
    each *= config.processes
    return each if limit is None else min(each, config.parallelism * float(limit))


def effort(scenario: Scenario) -> Effort:
    """What one replication has to do."""
    scenario = heaviest(scenario)
    strategy, seconds = scenario.strategy, scenario.run.duration / S
    topology = topology_of(coarsened(scenario, coarseness(scenario)))
    loads = task_loads(topology, strategy)
    tuples, decisions, tasks = 0.0, 0.0, 0
    for c in topology.components:
        copies = 1 if c.is_spout else strategy.replicas(c.name, c.keeps_state)
        tasks += c.tasks * copies
        config = scenario.topology[c.name]
        if isinstance(config, SpoutConfig):
            tuples += roots(config, scenario)
        else:
            tuples += float(loads[c.name].rates.sum()) * copies * seconds
        if c.window and c.window.beat:
            decisions += c.tasks * copies * scenario.run.duration / c.window.beat
    if (cycle := strategy.cycle()) is not None:
        decisions += tasks * scenario.run.duration / cycle[1]
    pauses = (fault.every.mean_ns for fault in scenario.failures if fault.every is not None)
    decisions += sum(scenario.run.duration / pause for pause in pauses)
    deployment = deployment_of(scenario, topology=topology)
    if _one_by_one(deployment):
        return Effort(tuples, decisions, 0.0, tuples)
    slow = layered(deployment)
    turns = sum(
        float(loads[component].rates[task]) * seconds
        for (component, task, _), host in deployment.hosts.items()
        if host in slow and component in loads
    )
    return Effort(tuples, decisions, turns, 0.0)


def _one_by_one(deployment: Deployment) -> bool:
    """Whether tuples may have to be moved one by one: queues that hold senders back, and cores that are
    shared, or a card for messages of several levels of the topology, so that what it has served may bring
    about what comes to it.
    """
    if not any(bound.holds_back for bound in deployment.bounds.values()):
        return False
    if crowded(deployment):
        return True
    topology, depth = deployment.topology, levels_of(deployment.topology)
    sending = {edge.up.name for c in topology.components for edge in c.inputs}
    levels: dict[tuple[int, bool], set[int]] = {}
    for (name, _, _), host in deployment.hosts.items():
        if deployment.cluster.hosts[host].nic is None:
            continue
        if name in sending:
            levels.setdefault((host, True), set()).add(depth[name])
        if not topology.by_name[name].is_spout:
            levels.setdefault((host, False), set()).add(depth[name])
    return any(len(found) > 1 for found in levels.values())
