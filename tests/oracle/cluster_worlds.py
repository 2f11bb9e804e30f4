"""Random small worlds on clusters: machines with slots, racks, workers, placements, faults of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.job.placements import PLACEMENTS, Place, PlacementError
from tideover.sim.faults import FAULTS, Fault

from .random_parameters import STRATEGY_NAMES
from .random_worlds import worlds

SCHEDULE = ("at", "within", "in_interval", "detection", "restart", "while_down")


@st.composite
def clusters(draw: st.DrawFn, tasks: int) -> Hosts:
    """Two to six machines of two types, with slots for so many tasks or without limit."""
    few, many = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    reserve = draw(st.integers(0, 1))
    slots = draw(st.sampled_from((None, 0, 1)))
    room = None if slots is None else -(-tasks // (few + many - reserve)) + slots
    machines = {"small": MachineType(count=few, slots=room), "big": MachineType(count=many, slots=room)}
    return Hosts(
        machines=machines,
        racks=draw(st.integers(1, min(3, few + many))),
        workers=draw(st.sampled_from((1, 2, 2, 3))),
        reserve=reserve,
        placement=PLACEMENTS[draw(st.sampled_from(("round_robin", "k_safe")))](),
    )


@st.composite
def moved(draw: st.DrawFn, fault: Fault, cluster: Hosts) -> Fault:
    """The fault, or one of a worker, a host or a rack at its time."""
    if not fault.kills or draw(st.integers(0, 4)) == 0:
        return fault
    kind = draw(st.sampled_from(("crash_worker", "crash_worker", "crash_host", "crash_rack")))
    where: dict[str, Any] = {"rack": draw(st.integers(0, cluster.racks - 1))}
    if kind != "crash_rack":
        where = {"host": draw(st.integers(0, cluster.count - 1))}
    if kind == "crash_worker":
        where["worker"] = draw(st.integers(0, cluster.workers - 1))
    return FAULTS[kind](**{name: getattr(fault, name) for name in SCHEDULE}, **where)


@st.composite
def on_clusters(draw: st.DrawFn, strategies: tuple[str, ...] = STRATEGY_NAMES) -> Scenario:
    """A random world whose tasks live on machines; by hand only where that leaves everyone a slot."""
    base = draw(worlds(strategies))
    tasks = len(deployment_of(base).hosts)
    cluster = draw(clusters(tasks))
    by_hand = cluster.machines["big"].slots is None and draw(st.booleans())
    usable = cluster.count - cluster.reserve
    topology = {
        name: config.model_copy(
            update={"hosts": tuple(h % usable for h in config.hosts) if by_hand and config.hosts else None}
        )
        for name, config in base.topology.items()
    }
    failures = tuple(draw(moved(fault, cluster)) for fault in base.failures)
    found = base.model_copy(update={"hosts": cluster, "topology": topology, "failures": failures})
    try:
        at = deployment_of(found).hosts
    except PlacementError:
        assume(False)
    together = len({(name, task, host) for (name, task, _), host in at.items()}) < len(at)
    if together or draw(st.integers(0, 3)):  # by hand, no two replicas of a task may be on one host
        return found
    alone = {name: config.model_copy(update={"hosts": None}) for name, config in topology.items()}
    return found.model_copy(update={"hosts": named(cluster, at, draw), "topology": alone})


def named(cluster: Hosts, at: Mapping[Place, int], draw: st.DrawFn) -> Hosts:
    """The same machines, each task's host named by hand: all of them a number of hosts further."""
    rows: dict[str, list[list[int]]] = {}
    usable = cluster.count - cluster.reserve
    further = draw(st.integers(0, usable - 1))
    for (name, task, _), host in at.items():
        tasks = rows.setdefault(name, [])
        if len(tasks) == task:
            tasks.append([])
        tasks[task].append((host + further) % usable)
    by_hand = PLACEMENTS["by_hand"](tasks={name: tuple(map(tuple, tasks)) for name, tasks in rows.items()})
    return cluster.model_copy(update={"placement": by_hand})
