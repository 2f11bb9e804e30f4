"""A strategy from outside the package: back state up now and then, restore the newest backup, replay nothing.

What a task has counted since its newest backup is the price. ``updates`` bounds it: a backup is due when so
many tuples have come since the last one. A window that was emitted voids the backups before it, or its counts
would be emitted twice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from tideover.models.checkpoints import Checkpoint, Checkpointer
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy, task_inputs_open
from tideover.models.task import BoltTask, SpoutTask
from tideover.sim.kernel import Rank
from tideover.sim.units import Duration

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.windows import Held
    from tideover.models.world import World


@STRATEGIES.register("approximate_backup")
class ApproximateBackup(Strategy):
    """At most once: bounded loss instead of replay.

    Q. Huang and P. P. C. Lee, *Toward High-Performance Distributed Stream Processing via Approximate Fault
    Tolerance*, VLDB 2016.
    """

    promise: ClassVar[Promise] = "at most once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})

    interval: Annotated[Duration, Field(gt=0, description="time after which a task looks if a backup is due")]
    updates: Annotated[int, Field(ge=1, description="tuples since the last backup that make one due")] = 1

    def cycle(self) -> tuple[int, int]:
        return self.interval, self.interval

    def protocol(self, world: World) -> Backups:
        return Backups(world, self)


class Backups(Protocol):
    """The protocol: look, back up, restore."""

    def __init__(self, world: World, strategy: ApproximateBackup) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.backups: dict[BoltTask, Checkpointer] = {}

    def start(self) -> None:
        for task in (t for tasks in self.world.bolts.values() for t in tasks if t.counts is not None):
            self.backups[task] = Checkpointer(self.world, task, stall_ns=0, cost_ns=0, entry_size=64)
            look, every = partial(self.look, task), self.strategy.interval
            self.world.kernel.every(every, every, Rank.CHECKPOINT, look, task.number)

    def look(self, task: BoltTask, i: int) -> None:
        """Is a backup due? ``i``: how often this was asked before."""
        backup = self.backups[task]
        if task.counts is not None and task.available and not backup.writing:
            known = backup.saved.state.counts.tuples if backup.saved else 0
            if task.counts.tuples - known >= self.strategy.updates:
                backup.take({}, lambda saved: None)

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        self.backups[task].void()
        self.backups[task].saved = None
        return 0

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and task in self.backups:
            self.backups[task].void()

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and task in self.backups and self.backups[task].saved:
            task.recovering = True  # from now until the backup is restored what arrives is held
            task.kept += task.clear_queue()
            self.backups[task].read(0, 0, partial(self.restore, task, outage))
        else:
            task_inputs_open(task)

    def restore(self, task: BoltTask, outage: Outage, saved: Checkpoint) -> None:
        """The backup has been read."""
        if task.fault == outage.number:  # else it has failed again meanwhile
            task.restore(saved.state.counts.copy())
            task.epochs = {i: max(n, saved.state.epochs[i]) for i, n in task.epochs.items()}
            self.world.restore_effects(task, outage, saved.state.effects())
            task.recovering = False
            task_inputs_open(task)
