"""How much each task has to do, if nothing fails."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tideover.models.config import Scenario, topology_of
from tideover.models.job.arrivals.periodic import Periodic
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.queues import WhenFull, bounds_of
from tideover.models.job.topology import Topology
from tideover.models.job.traffic import traffic
from tideover.models.remarks.plan import Load
from tideover.models.strategies.base import Strategy, given
from tideover.sim.units import S

UNEVEN = 1.05
"""A task that has so many times the load of the average one is named."""
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
        said = (
            f"{first}.{load.loads.argmax()}: load {load.load:.2f}: this task gets {part:.0f} % of the tuples "
            f"of {first}, {load.rate:.4g}/s (the average task has a load of {mean:.2f}),"
        )
    return [f"{said} and cannot keep up; {what}{also}"]
