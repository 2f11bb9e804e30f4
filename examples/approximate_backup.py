"""A strategy from outside the package: back state up now and then, restore the newest backup, replay nothing.

What a task has counted since its newest backup is the price. ``updates`` bounds it: a backup is due when so
many tuples have come since the last one. A window that was emitted voids the backups before it, or its counts
would be emitted twice.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.mechanisms.checkpoints import Checkpoint, Costs, TaskCheckpoints
from tideover.models.operators.state import Effects
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy
from tideover.sim.kernel import Rank
from tideover.sim.units import Duration


@STRATEGIES.register("approximate_backup")
class ApproximateBackup(Strategy):
    """At most once: bounded loss instead of replay.

    Q. Huang and P. P. C. Lee, *Toward High-Performance Distributed Stream Processing via Approximate Fault
    Tolerance*, VLDB 2016.
    """

    promise: ClassVar[Promise] = "at most once"
    composed_of: ClassVar[tuple[type[Hooks], ...]] = (TaskCheckpoints,)
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})

    interval: Annotated[Duration, Field(gt=0, description="time after which a task looks if a backup is due")]
    updates: Annotated[int, Field(ge=1, description="tuples since the last backup that make one due")] = 1

    def cycle(self) -> tuple[int, int]:
        return self.interval, self.interval

    def protocol(self, job: Job) -> Backups:
        return Backups(job, self)


class Backups(Protocol):
    """The protocol: look, back up, restore."""

    def __init__(self, job: Job, strategy: ApproximateBackup) -> None:
        super().__init__(job)
        self.strategy = strategy
        self.backups = TaskCheckpoints(job, self.view.stateful, Costs(entry_size=64))

    def start(self) -> None:
        for task in self.view.stateful:
            self.do.every(self.strategy.interval, partial(self.look, task), Rank.CHECKPOINT, task)

    def look(self, task: BoltView, i: int) -> None:
        """Is a backup due? ``i``: how often this was asked before."""
        newest = self.backups.newest(task)
        known = newest.state.tuples if newest else 0
        if task.state is not None and task.available and task.state.tuples - known >= self.strategy.updates:
            self.backups.take(task)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        self.backups.discard(task)
        return 0

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if self.view.is_stateful(task) and self.backups.newest(task):
            self.do.close(task)  # from now until the backup is restored what arrives is held
            self.backups.read(task, partial(self.restore, task, outage))
        else:
            self.do.open(task)

    def restore(self, task: BoltView, outage: OutageView, saved: Checkpoint) -> None:
        """The backup has been read."""
        self.do.restore(task, saved.state, outage, rewind=False)
        self.do.open(task)
