"""What runs where: a topology and its replicas on hosts, with links, a store, and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tideover.models.job.components import Links, Run, Store
from tideover.models.job.queues import Bounds
from tideover.models.job.topology import Topology
from tideover.sim.faults.base import Fault

Place = tuple[str, int, int]
"""Component, task, replica."""


@dataclass(frozen=True)
class Deployment:
    """Everything about a job that no strategy decides while it runs.

    replicas   copies of each task, by component
    hosts      host of each (component, task, replica)
    bounds     of the queues, by component
    cycle      first moment and period (ns) of what the strategy does regularly; None: nothing
    """

    topology: Topology
    replicas: Mapping[str, int]
    hosts: Mapping[Place, int]
    links: Links
    store: Store
    run: Run
    bounds: Mapping[str, Bounds]
    failures: tuple[Fault, ...] = ()
    cycle: tuple[int, int] | None = None

    @property
    def quiet(self) -> Deployment:
        """The same without failures."""
        return replace(self, failures=())


def placement(topology: Topology, replicas: Mapping[str, int], hosts: int | None) -> dict[Place, int]:
    """Host of each (component, task, replica), of so many ``hosts`` (None: one for each task).

    A component's ``hosts`` decide; else tasks go round the hosts, or have one each. Replica r sits r hosts
    further, or, if each task has its own host, on a fresh one.
    """
    logical = sum(c.tasks for c in topology.components)
    found = {}
    number = 0
    for c in topology.components:
        for task in range(c.tasks):
            for replica in range(replicas[c.name]):
                if hosts is None and c.config.hosts is None:
                    host = number + replica * logical
                else:
                    first = c.config.hosts[task] if c.config.hosts is not None else number
                    host = first + replica
                    if hosts is not None:
                        host %= hosts
                found[c.name, task, replica] = host
            number += 1
    return found
