"""What runs where: a topology and its replicas on hosts, with links, a store, and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tideover.models.job.cluster import Cluster
from tideover.models.job.components import Links, Run, Store
from tideover.models.job.placements.base import Place
from tideover.models.job.queues import Bounds
from tideover.models.job.stores.base import StoreKind
from tideover.models.job.topology import Topology
from tideover.sim.faults.base import Fault


@dataclass(frozen=True)
class Deployment:
    """Everything about a job that no strategy decides while it runs.

    replicas   copies of each task, by component
    bounds     of the queues, by component
    cluster    hosts, workers, and who runs where
    stores     those that have a name
    elsewhere  whether who restarts tasks may do so on other hosts
    cycle      first moment and period (ns) of what the strategy does regularly; None: nothing
    """

    topology: Topology
    replicas: Mapping[str, int]
    cluster: Cluster
    links: Links
    store: Store
    run: Run
    bounds: Mapping[str, Bounds]
    failures: tuple[Fault, ...] = ()
    cycle: tuple[int, int] | None = None
    stores: Mapping[str, StoreKind] = field(default_factory=dict)
    elsewhere: bool = False

    @property
    def hosts(self) -> Mapping[Place, int]:
        """Host of each (component, task, replica)."""
        return self.cluster.at

    @property
    def moves(self) -> bool:
        """Whether tasks may go to other hosts, and their links and work with them: with bounded queues they
        keep the links that they have.
        """
        bounded = any(bounds.length is not None for bounds in self.bounds.values())
        return self.elsewhere and bool(self.failures) and not bounded

    @property
    def quiet(self) -> Deployment:
        """The same without failures."""
        return replace(self, failures=())
