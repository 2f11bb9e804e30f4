"""The processes of a query: its driver, and its executors, in which tasks run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tideover.models.mechanisms.batches.settings import BatchSettings
from tideover.models.runtime.machine import Machine
from tideover.models.runtime.views import BoltView, OutageView

DRIVER = "driver"


class Process(Machine):
    """A process of a query, which tells others what happens to it; all three get the process itself.

    tasks_in    the tasks that fail with it
    on_failed   it was killed
    on_ready    detection and restart are over
    """

    def __init__(
        self,
        name: str,
        host: int | None,
        worker: int,
        number: int,
        tasks_in: Callable[[Any], Sequence[BoltView]],
        on_failed: Callable[[Any, OutageView], None],
        on_ready: Callable[[Any, OutageView], None],
    ) -> None:
        super().__init__(name, host, 0, number, worker)
        self._tasks_in, self._on_failed, self._on_ready = tasks_in, on_failed, on_ready

    def tasks(self) -> Sequence[BoltView]:
        return self._tasks_in(self)

    def failed(self, outage: OutageView) -> None:
        self._on_failed(self, outage)

    def ready(self, outage: OutageView) -> None:
        self._on_ready(self, outage)


class Executor(Process):
    """A worker on a host, with some cores. ``life`` counts its deaths: a new life knows nothing of the old.

    warm        a task without state has ended in it: what reads is loaded and compiled
    has_store   a stateful task has: its state store is open
    noticed     whether the scheduler knows that it is dead
    """

    up = warm = has_store = noticed = True
    life = 0
    stopped_until = 0
    running = 0
    outage = -1

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


Life = tuple[Executor, int]
"""An executor in one of its lives."""


def lives(life: Life | None) -> bool:
    """Whether that life is still going on."""
    return life is not None and life[0].life == life[1]
