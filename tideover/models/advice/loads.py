"""How much each task has to do, if nothing fails."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tideover.models.config import Scenario, topology_of
from tideover.models.job.arrivals.periodic import Periodic
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.deployment import Deployment
from tideover.models.job.queues import WhenFull, bounds_of
from tideover.models.job.topology import Topology, key_labels
from tideover.models.job.traffic import leaving, spread, traffic
from tideover.models.remarks.plan import Load
from tideover.models.runtime.cores import crowded
from tideover.models.strategies.base import Strategy, given
from tideover.sim.units import S

UNEVEN = 1.05
"""A task that has so many times the load of the average one is named."""
HOT = 0.25
"""A key is named if it makes up so great a part of what a task gets."""
WHEN_FULL: dict[WhenFull | None, str] = {
    None: "its queue grows without end",
    "block": "its queue fills, and who sends to it has to wait",
    "credits": "its queue fills, and who sends to it has to wait",
    "drop": "its queue fills, and what finds it full is lost",
}
"""What comes of a load that is too much, by what bounds the queue (None: nothing)."""


def task_loads(topology: Topology, strategy: Strategy, over: int | None = None) -> dict[str, Load]:
    """The load of each bolt. What the strategy adds is part of the work.

    Of rates that change the greatest counts; with ``over`` their mean over the first so many ns.
    """
    rates = traffic(topology, over)
    found = {}
    for c in topology.components:
        if isinstance(c.config, BoltConfig):
            each = np.sum([rates[e.name] for e in c.inputs], axis=0)
            added = strategy.load(c)
            work = c.config.service.mean_ns + added.per_tuple
            found[c.name] = Load(each, each * work / S + added.saving)
    return found


def overloaded(scenario: Scenario) -> bool:
    """Whether a backlog can never be worked off, for sure: a task gets as much from a log as it can do, or
    more, evenly and without end.
    """
    spouts = [c for c in scenario.topology.values() if isinstance(c, SpoutConfig)]
    endless = all(isinstance(c.arrivals, Periodic) and c.spout.limit is None for c in spouts)
    logged = scenario.strategy.needs.log and not scenario.strategy.needs.batches
    if not endless or not logged:
        return False
    found = task_loads(topology_of(scenario), scenario.strategy)
    bolts = {name: c for name, c in scenario.topology.items() if isinstance(c, BoltConfig)}
    return any(found[name].rate * c.service.mean_ns >= S for name, c in bolts.items())


def overloads(scenario: Scenario, topology: Topology, loads: Mapping[str, Load]) -> list[str]:
    """A remark if tasks get more than they can work off, the one with the greatest load first."""
    over = sorted((name for name in loads if loads[name].load >= 1), key=lambda name: -loads[name].load)
    if not over or scenario.strategy.needs.batches:  # what limits batches is how long all their stages take
        return []
    first, load = over[0], loads[over[0]]
    bound = bounds_of(scenario.topology, scenario.queues)[first]
    if task_loads(topology, scenario.strategy, scenario.run.duration)[first].load < 1:
        what = "its queue grows while the input is at its highest"
    elif caps := given(scenario.strategy, scenario.strategy.spouts_wait):
        what = f"the spouts have to wait ({', '.join(caps)})"
    else:
        what = WHEN_FULL[bound.when_full if bound.length is not None else None]
    also = f"; nor can {', '.join(over[1:])}" if over[1:] else ""
    mean = float(load.loads.mean())
    if load.load <= UNEVEN * mean:
        said = f"{first}: load {load.load:.2f}: a task gets {load.rate:.4g} tuples/s"
    else:
        part = 100 * load.rate / float(load.rates.sum())
        task = int(load.loads.argmax())
        said = (
            f"{first}.{task}: load {load.load:.2f}: this task gets {part:.0f} % of the tuples of {first}, "
            f"{load.rate:.4g}/s{_hottest(topology, first, task)} (the average task has a load of {mean:.2f}),"
        )
    return [f"{said} and cannot keep up; {what}{also}"]


def _hottest(topology: Topology, name: str, task: int) -> str:
    """The key that makes a task's load, if one makes a good part of it, in words."""
    out, reads = leaving(topology), topology.by_name[name].inputs
    rates = np.zeros(max(edge.up.keys for edge in reads))
    total = 0.0
    for edge in reads:
        owners = edge.grouping.owners(edge.up.keys, edge.down.tasks)
        mine = out[edge.up.name] * (owners == task) if owners is not None else out[edge.up.name] * 0
        rates[: len(mine)] += mine
        total += float(spread(edge, out[edge.up.name])[task])
    key = int(rates.argmax())
    if rates[key] < HOT * total:
        return ""
    names = key_labels(topology, reads[0].up)
    return f", {100 * rates[key] / total:.0f} % of them with the key {names[key] if names else key}"


def overloaded_hosts(scenario: Scenario, deployment: Deployment) -> list[str]:
    """A remark if tasks that share the cores of a host have more to do than these can, on the worst host."""
    loads = task_loads(deployment.topology, scenario.strategy, scenario.run.duration)
    work: dict[int, float] = {}
    for (name, task, _), host in deployment.hosts.items():
        if host in crowded(deployment) and name in loads:
            work[host] = work.get(host, 0.0) + float(loads[name].loads[task])
    cores = {host: deployment.cluster.hosts[host].cores or math.inf for host in work}
    worst = max(work, key=lambda one: work[one] / cores[one], default=None)
    if worst is None or work[worst] < cores[worst] or scenario.strategy.needs.batches:
        return []
    load = f"host {worst}: load {work[worst] / cores[worst]:.2f}"
    has = "a core" if cores[worst] == 1 else f"{cores[worst]} cores"
    return [f"{load}: its tasks have {work[worst]:.3g} s of work a second for {has}, and cannot keep up"]
