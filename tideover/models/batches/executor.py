"""The processes of a query: its driver, and its executors, in which tasks run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tideover.models.machine import Machine
from tideover.models.supervision import DRIVER

if TYPE_CHECKING:
    from tideover.models.batches.cluster import Cluster
    from tideover.models.batches.settings import BatchSettings
    from tideover.models.outage import Outage
    from tideover.models.task import BoltTask


class Owner(Protocol):
    """Who is told what happens to the processes."""

    def executor_failed(self, executor: Executor, outage: Outage) -> None:
        """An executor was killed."""

    def executor_ready(self, executor: Executor, outage: Outage) -> None:
        """A new process stands in its place."""

    def driver_failed(self, outage: Outage) -> None:
        """The driver is killed."""

    def driver_ready(self, outage: Outage) -> None:
        """A new one has started."""


class Driver(Machine):
    """The process that plans batches and has them run; its executors die with it."""

    def __init__(self, cluster: Cluster, owner: Owner) -> None:
        super().__init__(DRIVER, None, 0, 0)
        self._cluster, self._owner = cluster, owner

    def tasks(self) -> list[BoltTask]:
        return self._cluster.tasks

    def failed(self, outage: Outage) -> None:
        self._owner.driver_failed(outage)

    def ready(self, outage: Outage) -> None:
        self._owner.driver_ready(outage)


class Executor(Machine):
    """A process with some cores on a host. ``life`` counts its deaths: a new life knows nothing of the old.

    warm        a task without state has ended in it: what reads is loaded and compiled
    has_store   a stateful task has: its state store is open
    noticed     whether the scheduler knows that it is dead
    """

    def __init__(self, cluster: Cluster, owner: Owner, host: int, number: int) -> None:
        super().__init__("executor", host, 0, number)
        self._cluster, self._owner = cluster, owner
        self.up = self.warm = self.has_store = self.noticed = True
        self.life = 0
        self.stopped_until = 0
        self.running = 0
        self.outage = -1

    def cold_ns(self, stateful: bool, settings: BatchSettings) -> int:
        """How much longer a task takes, as the first of its sort here; whatever comes first starts the
        process.
        """
        if not stateful:
            return 0 if self.warm else settings.executor_cold
        if self.has_store:
            return 0
        return settings.state_cold if self.warm else max(settings.executor_cold, settings.state_cold)

    def die(self, outage: int) -> None:
        """All that is in it is gone."""
        self.up = self.noticed = False
        self.life += 1
        self.running = self.stopped_until = 0
        self.outage = outage

    def begin(self) -> None:
        """A new process stands in its place."""
        self.up = self.noticed = True
        self.warm = self.has_store = False

    def tasks(self) -> list[BoltTask]:
        return [p.task for p in self._cluster.partitions if p.is_at(self)]

    def failed(self, outage: Outage) -> None:
        self._cluster.executor_failed(self, outage)
        self._owner.executor_failed(self, outage)

    def ready(self, outage: Outage) -> None:
        self._cluster.executor_ready(self)
        self._owner.executor_ready(self, outage)


Life = tuple[Executor, int]
"""An executor in one of its lives."""


def lives(life: Life | None) -> bool:
    """Whether that life is still going on."""
    return life is not None and life[0].life == life[1]
