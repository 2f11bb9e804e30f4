"""What a strategy may look at before a run, to remark on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.job.cluster import Cluster
from tideover.models.job.components import Run, Store
from tideover.models.job.topology import Component, Topology
from tideover.sim.faults.base import Fault

Floats = npt.NDArray[np.float64]


class Work(NamedTuple):
    """What a strategy adds to the work of a component's tasks in normal operation.

    per_tuple  what one tuple takes on top of its service (ns)
    saving     the fraction of the time that goes to saving state
    """

    per_tuple: float = 0
    saving: float = 0


@dataclass(frozen=True)
class Load:
    """Of one bolt, by task; replicas of a task have the same.

    rates   tuples/s that reach it
    loads   the part of the time that it works
    """

    rates: Floats
    loads: Floats

    @property
    def rate(self) -> float:
        """Tuples/s that reach the task with the greatest load."""
        return float(self.rates.max())

    @property
    def load(self) -> float:
        """The load of that task."""
        return float(self.loads.max())


@dataclass(frozen=True)
class Plan:
    """A run that is planned.

    topology  components and streams, in topological order
    loads     of each bolt, by name: what its tasks have to do if nothing fails
    cluster   its hosts and workers, and who runs where
    failures  in the scenario's order
    store     where state is saved
    run       how long, how often
    only      the components that are remarked on; None: all
    """

    topology: Topology
    loads: Mapping[str, Load]
    cluster: Cluster
    failures: tuple[Fault, ...]
    store: Store
    run: Run
    only: frozenset[str] | None = None

    @property
    def components(self) -> list[Component]:
        """Those that are remarked on, in topological order."""
        return [c for c in self.topology.components if self.only is None or c.name in self.only]

    @property
    def hosts(self) -> Mapping[tuple[str, int, int], int]:
        """Host of each (component, task, replica)."""
        return self.cluster.at

    @property
    def stateful(self) -> list[Component]:
        """Those of them that keep state."""
        return [c for c in self.components if c.window]

    def replicas(self, component: str) -> int:
        """Copies of each task of a component, the first included."""
        return sum(name == component and task == 0 for name, task, _ in self.hosts)

    def hit(self, component: str) -> list[Fault]:
        """The failures that name a component (or ``acker``, ``driver``)."""
        return [fault for fault in self.failures if getattr(fault, "component", None) == component]


def entries_of(component: Component) -> int:
    """Most entries that the state of one task can have; a fields grouping spreads the keys."""
    spread = all(edge.grouping.kind == "fields" for edge in component.inputs)
    return -(-component.keys // component.tasks) if spread else component.keys
