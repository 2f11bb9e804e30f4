"""A query that keeps no state: after any failure it starts anew from the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tideover.models.batches.batch import Batch
from tideover.models.batches.executor import Executor
from tideover.models.batches.log import Content, data
from tideover.models.intake import Mask
from tideover.models.ledger import EMPTY
from tideover.models.strategies.micro_batch import Batches, MicroBatch
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.windows import Counts
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train, distinct

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.world import World


class StartingOver(Batches):
    """Source replay by batches: the log is kept as far back as the oldest window that is not finished.

    Any fault stops the whole query at once. When all that has failed is ready again (of an executor it is
    enough that its loss is noticed, if another lives), the query starts without state from the first tuple of
    that window, and its first batch takes everything from there; without windows by time (or with windows by
    tuple, whose borders depend on all tuples before) from the log's beginning. What was put out before is put
    out again, and void by its window's number.
    """

    def __init__(self, world: World, strategy: MicroBatch) -> None:
        super().__init__(world, strategy)
        self._failed: dict[Executor | BoltTask | StartingOver, int] = {}
        """What keeps the query from starting, and the number of its newest outage."""
        self._stopped = False
        self._read_again: Ints = EMPTY
        """Roots that the query had read before its last start."""
        self._because = -1
        """Number of the outage that made it start; -1: what it reads is new."""
        windows = [c.trigger for c in world.topology.components if c.window is not None]
        self._by_time = bool(windows) and "tuples" not in windows

    def _epoch(self) -> int:
        """Number of the oldest window that is not finished, less one."""
        return min(min(task.epochs.values()) for task in self.cluster.tasks) if self._by_time else 0

    # -- what the log keeps ----------------------------------------------------------------------------------

    def _output(self, batch: Batch) -> None:
        super()._output(batch)
        self.log.keep(batch.content)

    def _commit(self, batch: Batch) -> None:
        super()._commit(batch)
        self._read_again, self._because = EMPTY, -1
        if self._by_time:
            self.log.trim(self._epoch())

    @property
    def rows_kept(self) -> int:
        shown = self.batch is not None and self.batch.visible
        return self.log.size if shown else super().rows_kept

    # -- what is left to see ---------------------------------------------------------------------------------

    def read_again(self, task: BoltTask, train: Train, outage: int | None = None) -> Mask | None:
        if self._because < 0 or outage not in (None, self._because):
            return None
        mask: Mask = np.isin(train.uid >> task.component.bits, self._read_again)
        return mask if mask.any() else None

    def settled(self, outage: Outage) -> bool:
        return self._because != outage.number

    def contents(self) -> list[Content]:
        kept: list[Content] = [{task: train} for task, trains in self.log.kept.items() for train in trains]
        return kept + super().contents()

    # -- faults ----------------------------------------------------------------------------------------------

    def executor_failed(self, executor: Executor, outage: Outage) -> None:
        self._interrupt(executor, outage)

        def noticed() -> None:
            if self._failed.get(executor) == outage.number:
                self._recovered(executor)

        self.world.kernel.at(outage.detected_at, Rank.READY, noticed, executor.number)

    def executor_ready(self, executor: Executor, outage: Outage) -> None:
        self._recovered(executor)

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            self._interrupt(task, outage)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            self._recovered(task)

    def driver_failed(self, outage: Outage) -> None:
        self.cluster.stop(outage)
        self._interrupt(self, outage)

    def driver_ready(self, outage: Outage) -> None:
        self.cluster.renew()
        self._recovered(self)

    def _interrupt(self, what: Executor | BoltTask | StartingOver, outage: Outage) -> None:
        """The query stops: batch and state are gone, the log goes back."""
        self.driver.void()
        self._stopped = True
        self._failed[what] = outage.number
        self._because = outage.number
        self.cluster.halt()
        batch, self.batch = self.batch, None
        epoch = self._epoch()
        if self._by_time:
            self.log.trim(epoch)
        again = [(task, train) for task, trains in self.log.kept.items() for train in trains]
        for task, train in again:
            self.world.reopen(task, train)
        if batch is not None and not batch.visible:
            self.log.put_back(batch.content)
            again += batch.content.items() if batch.logged else []
        roots = [data(train).uid >> task.component.bits for task, train in again if task.component.anchored]
        self._read_again = distinct(np.concatenate([self._read_again, *roots]))
        self.log.rewind()
        self._drop_state(outage, epoch)

    def _drop_state(self, outage: Outage, epoch: int) -> None:
        for task in self.cluster.tasks:
            if task.counts is not None:
                gone = task.counts.effects().uid
                self.world.roll_back(task, Counts(task.counts.keys))
                if task.component.anchored and len(gone):
                    outage.lost_effects.append((task, gone))
            task.epochs, task.windows = dict.fromkeys(task.epochs, epoch), 0
        self.rehearsal.start_from(self.cluster.tasks)

    def _recovered(self, what: Executor | BoltTask | StartingOver) -> None:
        """If nothing else keeps it, and an executor lives, the query starts anew."""
        self._failed.pop(what, None)
        if self._stopped and not self._failed and any(e.up for e in self.cluster.executors):
            self._stopped = False
            self.restart()
