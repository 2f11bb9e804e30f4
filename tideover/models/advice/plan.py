"""What a strategy may look at before a run, to remark on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tideover.models.advice.loads import Load
    from tideover.models.config import Fault, Run, Store
    from tideover.models.topology import Component, Topology


@dataclass(frozen=True)
class Plan:
    """A run that is planned.

    topology  components and streams, in topological order
    loads     of each bolt, by name: what its tasks have to do if nothing fails
    hosts     host of each (component, task, replica)
    failures  in the scenario's order
    store     where state is saved
    run       how long, how often
    """

    topology: Topology
    loads: Mapping[str, Load]
    hosts: Mapping[tuple[str, int, int], int]
    failures: tuple[Fault, ...]
    store: Store
    run: Run

    @property
    def stateful(self) -> list[Component]:
        """The components that keep state, in topological order."""
        return [c for c in self.topology.components if c.window]

    def replicas(self, component: str) -> int:
        """Copies of each task of a component, the first included."""
        return sum(name == component and task == 0 for name, task, _ in self.hosts)

    def hit(self, component: str) -> list[Fault]:
        """The failures that name a component (or ``acker``, ``driver``)."""
        return [fault for fault in self.failures if getattr(fault, "component", None) == component]
