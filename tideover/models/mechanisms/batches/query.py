"""A query that reads its log batch by batch: what of it can be seen, by supervision and accounts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.batches.batch import Batch, Record
from tideover.models.mechanisms.batches.cluster import Cluster
from tideover.models.mechanisms.batches.executor import Executor
from tideover.models.mechanisms.batches.log import Content, Log, effects_of_read
from tideover.models.mechanisms.batches.rehearsal import Rehearsal
from tideover.models.mechanisms.batches.saving import EveryBatch
from tideover.models.mechanisms.batches.settings import BatchSettings
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper, Mask
from tideover.models.runtime.runner import Runner
from tideover.models.runtime.saved_state import go_back
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.views import BoltView, OutageView
from tideover.sim.train import Ints, Train


class Query(Mechanism, Keeper, Runner):
    """The log of a query, its batch, and the processes that run it."""

    needs = Needs(log=True, batches=True, readers_go_back=True)
    knows_the_plane = True

    def __init__(self, job: Job, settings: BatchSettings, saving: EveryBatch) -> None:
        super().__init__(job)
        self._settings, self._saving = settings, saving
        self._log = Log()
        self._batch: Batch | None = None
        """The one that is not committed yet."""
        self.history: list[Record] = []
        """Batches that were committed."""
        self._left: list[tuple[BoltTask, int, list[Effects]]] = []
        """What has left with windows that may be taken back: who has put it out, and the window's number."""
        self._cluster = Cluster(job, settings, saving, self)
        counts = bool(settings.state_cost or settings.reload_cost)
        self._rehearsal = Rehearsal(job, counts)
        ups = {task: {isinstance(c.up, SpoutTask) for c in task.inputs} for task in self._cluster.tasks}
        self._sources = [task for task in ups if True in ups[task]]
        """The tasks that fill the log, or before which it lies."""
        self._mixed = any(len(kinds) > 1 for kinds in ups.values())
        """Whether a task reads the log and other tasks too: of each batch the log comes first."""
        job.context.machines += [self._cluster.driver, *self._cluster.executors]
        job.context.keepers.append(self)
        job.context.runner = self
        job.context.rhythm = self._rhythm
        job.settlers.append(self._tell_kept)

    # -- what comes, and what strikes ------------------------------------------------------------------------

    def executor_failed(self, executor: Executor, outage: OutageView) -> None:
        """An executor was killed: the scheduler sees to what ran in it."""

    def executor_ready(self, executor: Executor, outage: OutageView) -> None:
        """A new process stands in its place."""

    def driver_failed(self, outage: OutageView) -> None:
        """The driver is killed."""
        raise NotImplementedError

    def driver_ready(self, outage: OutageView) -> None:
        """A new driver has started."""
        raise NotImplementedError

    def paused(self, task: BoltView, outage: OutageView) -> None:
        self._cluster.stopped(task, outage.ready_at)

    def busy_since(self, task: BoltView) -> int | None:
        partition = self._cluster.of[task]
        return partition.began_at if partition.attempt else None

    # -- what is worked off again ----------------------------------------------------------------------------

    def _comes_again(self, task: BoltView, train: Train, outage: int | None = None) -> Mask | None:
        """Which of a task's tuples in this batch are worked off again (because of ``outage``); None: none."""
        again = self._cluster.of[task].again
        return np.ones(train.n, np.bool_) if again >= 0 and outage in (None, again) else None

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if self.knows_the_plane and not self._bolt(task).c.again:
            return  # it is told of late, and was done before
        again = self._comes_again(task, train)
        if again is not None:
            self._job.say.replayed(task, train.pick(again), None)

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return self._comes_again(task, train, outage)

    def settled(self, outage: OutageView) -> bool:
        return all(p.again != outage.number for p in self._cluster.partitions)

    # -- what comes out, and what is kept --------------------------------------------------------------------

    def _rhythm(self) -> int:
        between = np.diff([record.visible for record in self.history])
        return int(np.median(between)) if len(between) else 0

    def _tell_kept(self) -> None:
        """Say what the log keeps, which grows but where a batch is committed, or forgotten."""
        self._job.say.kept(self._rows_kept)

    @property
    def _rows_kept(self) -> int:
        """Rows that the log keeps for the query."""
        return self._waiting + (0 if self._batch is None else self._batch.size)

    @property
    def _waiting(self) -> int:
        """Those of them that are in no batch."""
        return self._log.size + sum(int(task.c.held.n) for task in self._sources)

    def _contents(self) -> list[Content]:
        """The same, by the task that reads them."""
        contents: list[Content] = [
            {task: part} for task, parts in self._log.waiting.items() for part in parts
        ]
        return contents if self._batch is None else [*contents, self._batch.content]

    def effects(self) -> list[tuple[Component, Ints]]:
        parts: dict[str, list[Ints]] = {}
        for content in self._contents():
            for task, records in content.items():  # what will be filtered out has no effect, but is here
                parts.setdefault(task.component.name, []).append(records.train.uid)
            for name, uid in effects_of_read(self._job, _tuples(content)).items():
                parts.setdefault(name, []).append(uid)
        before = {} if self._batch is None else self._batch.before
        for task, state in before.items():
            if state.state is not None:  # may come back, though its window is out by now
                parts.setdefault(task.component.name, []).append(state.effects())
        by_name = self._job.topology.by_name
        return [(by_name[name], np.concatenate(uids)) for name, uids in parts.items()]

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if parts and task.component.anchored:
            bolt = self._bolt(task)
            self._left.append((bolt, bolt.windows.newest, parts))
        return 0

    def _open_again(self, newest: Mapping[BoltTask, int]) -> None:
        """Tasks go back to the time when these were their newest windows: those above are put out again, and
        until then what left with them has not.
        """
        for task, number, parts in self._left:
            for part in parts if number > newest[task] else ():
                self._job.say.void(task.component, part.uid, 0)
        self._left = [(task, number, parts) for task, number, parts in self._left if number <= newest[task]]
        for task, number in newest.items():
            task.windows.reopen(number)

    def _take_back(self, batch: Batch) -> None:
        """What a batch has put out is undone: states and outputs are those of the one before it."""
        job = self._job
        before, batch.visible = batch.before, False
        self._open_again({task: state.newest for task, state in before.items()})
        for task, state in before.items():
            go_back(job, task, state)
        for name, uid in effects_of_read(job, _tuples(batch.content)).items():
            component = job.topology.by_name[name]
            if not component.window:
                job.say.void(component, uid, 0)
        for task, train in _tuples(batch.content):
            job.say.reopened(task, train)


def _tuples(content: Content) -> list[tuple[BoltTask, Train]]:
    """Tuples that tasks read, without end markers."""
    return [(task, records.train) for task, records in content.items()]
