"""A query that keeps no state: after any failure it starts anew from the log."""

from __future__ import annotations

import numpy as np

from tideover.models.job.topology import Topology
from tideover.models.mechanisms.batches.batch import Batch
from tideover.models.mechanisms.batches.batches import OutputMode
from tideover.models.mechanisms.batches.log import Content
from tideover.models.mechanisms.batches.settings import BatchSettings
from tideover.models.mechanisms.batches.stopping import Stopping
from tideover.models.operators.state import Effects
from tideover.models.operators.stateful import Stateful
from tideover.models.operators.window import Extent
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import NOTHING, Mask
from tideover.models.runtime.saved_state import roll_back
from tideover.models.runtime.views import BoltView, OutageView
from tideover.sim.train import Ints, Train, distinct


class StartingOver(Stopping):
    """Source replay by batches: the log is kept as far back as the oldest window that is not finished.

    After a fault the query starts without state from the first tuple of that window, and its first batch
    takes everything from there, or, where that is not enough to have all windows again as they were, from the
    log's beginning. What was put out since is put out again, and readers have it by its window's number.

    So does Apache Spark where nobody reads the checkpoint of the query before: there are no committed
    offsets, so the source begins at its initial offset, and the first batch is all up to the newest one
    (``MicroBatchExecution``: ``constructNextBatch``, ``runBatch``). Such batches have other borders than
    those before, and a shuffle's order is not the same twice (``RDD``: ``DeterministicLevel.UNORDERED``;
    ``ShuffleBlockFetcherIterator`` fetches in a random order): what a window of so many tuples holds depends
    on both, and nobody can put it out as it was. With a checkpoint the offset log has the borders.
    """

    def __init__(self, job: Job, settings: BatchSettings, output_mode: OutputMode) -> None:
        super().__init__(job, settings, output_mode)
        self.knows_the_plane = False
        self._read_again: Ints = NOTHING
        """Roots that the query had read before its last start."""
        self._because = -1
        """Number of the outage that made it start; -1: what it reads is new."""
        self._by_time, self._extent = _windows_of(job.topology)

    def _epoch(self) -> int:
        """Number of the oldest window that is not finished, less one."""
        return min(task.windows.epoch for task in self._cluster.tasks) if self._by_time else 0

    def _eldest(self, epoch: int) -> int:
        """The oldest epoch of which not everything has left, where marker ``epoch`` was the newest."""
        extent = self._extent
        return epoch if extent is None else max(0, epoch // extent.slide * extent.slide - extent.panes)

    # -- what the log keeps ----------------------------------------------------------------------------------

    def _is_out(self, batch: Batch) -> None:
        self._log.keep(batch.content)

    def _commit(self, batch: Batch) -> None:
        super()._commit(batch)
        self._read_again, self._because = NOTHING, -1
        if self._by_time:
            self._log.trim(self._eldest(self._epoch()))

    def _not_for_good(self) -> list[tuple[BoltTask, int, list[Effects]]]:
        epoch = self._epoch()
        return [
            entry for entry in self._left if not self._by_time or entry[1] > epoch // entry[0].windows.beats
        ]

    @property
    def _rows_kept(self) -> int:
        shown = self._batch is not None and self._batch.visible
        return self._waiting if shown else super()._rows_kept

    # -- what is left to see ---------------------------------------------------------------------------------

    def _comes_again(self, task: BoltView, train: Train, outage: int | None = None) -> Mask | None:
        if self._because < 0 or outage not in (None, self._because):
            return None
        mask: Mask = np.isin(train.uid >> task.component.bits, self._read_again)
        return mask if mask.any() else None

    def settled(self, outage: OutageView) -> bool:
        return self._because != outage.number

    def _contents(self) -> list[Content]:
        kept: list[Content] = [{task: part} for task, parts in self._log.kept.items() for part in parts]
        return kept + super()._contents()

    # -- faults ----------------------------------------------------------------------------------------------

    def given_up(self, outage: OutageView) -> None:
        """Batch and state are gone, the log goes back."""
        self._because = outage.number
        self._cluster.halt()
        batch, self._batch = self._batch, None
        epoch = self._epoch()
        self._tell_kept()
        if self._by_time:
            self._log.trim(self._eldest(epoch))
        again = [(task, records) for task, parts in self._log.kept.items() for records in parts]
        for task, records in again:
            self._job.say.reopened(task, records.train)
        if batch is not None and not batch.visible:
            self._log.put_back(batch.content)
            again += batch.content.items() if batch.logged else []
        roots = [
            records.train.uid >> task.component.bits for task, records in again if task.component.anchored
        ]
        self._read_again = distinct(np.concatenate([self._read_again, *roots]))
        self._log.rewind()
        self._drop_state(outage, epoch)

    def _drop_state(self, outage: OutageView, epoch: int) -> None:
        tasks = self._cluster.tasks
        for task in tasks:
            task.windows.epochs = dict.fromkeys(task.windows.epochs, epoch)
            task.windows.ended = 0
        self._open_again({task: task.windows.newest for task in tasks})
        for task in tasks:
            if task.state is not None:
                gone = task.state.effects()
                roll_back(self._job, task, task.state.fresh())
                if task.component.anchored and len(gone.uid):
                    self._job.say.forgotten(task, outage.number, gone.uid)
        self._rehearsal.start_from(tasks)


def _windows_of(topology: Topology) -> tuple[bool, Extent | None]:
    """Whether all windows can be had again from the first tuple of the oldest that is not finished, and their
    panes (None: they have none). They cannot if what is in a window depends on more: on how many tuples came
    before, on how far events had come, on what a count had put out before; on older windows, put out already,
    which a sliding one reads; nor if windows that begin earlier are there too.
    """
    stateful = [c for c in topology.components if c.window is not None]
    extents = {c.window.extent for c in stateful if c.window is not None}
    by_time = all(c.trigger == "marker" for c in stateful)
    forgets = all(isinstance(c.bolt, Stateful) and c.bolt.forgets for c in stateful)
    extent = extents.pop() if len(extents) == 1 else None
    slides_over = extent is not None and not all(c.anchored for c in stateful)
    return len(stateful) > 0 and not extents and by_time and forgets and not slides_over, extent
