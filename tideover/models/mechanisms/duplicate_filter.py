"""Duplicate filters: a receiver drops what it has had from another replica."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.stream import PATH
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.train import Ints, Train


class Seen:
    """The greatest uid seen on each logical path from the spout, which is the (source, primary) of the
    paper: uids rise on a path, so what is not greater has been here before.

    ``greatest``: shape (paths,), -1 where nothing has been seen.
    """

    def __init__(self, paths: int) -> None:
        self.greatest: Ints = np.full(paths, -1, np.int64)

    def copy(self) -> Seen:
        """The same, to go its own way."""
        new = Seen(0)
        new.greatest = self.greatest.copy()
        return new

    def has(self, train: Train) -> npt.NDArray[np.bool_]:
        """Mask of the tuples that are not new (of end markers it says nothing)."""
        known: npt.NDArray[np.bool_] = train.uid <= self.greatest[train.column(PATH)]
        return known

    def fresh(self, train: Train) -> npt.NDArray[np.bool_]:
        """Mask of what is new, which is known from now on; end markers always are (windows align them)."""
        data = None if train.mark is None else train.mark == 0
        if not train.has(PATH):
            if data is None:
                return self._greater(train.uid, 0)
            new = ~data
            new[data] = self._greater(train.uid[data], 0)
            return new
        new = np.ones(train.n, np.bool_)
        paths = train.column(PATH)
        for path in np.unique(paths if data is None else paths[data]).tolist():
            here = paths == path
            rows = np.flatnonzero(here if data is None else here & data)
            new[rows] = self._greater(train.uid[rows], path)
        return new

    def _greater(self, uid: Ints, path: int) -> npt.NDArray[np.bool_]:
        """Which uids are greater than all before them on the path."""
        if not len(uid):
            return np.ones(0, np.bool_)
        before = np.maximum.accumulate(np.concatenate(([self.greatest[path]], uid)))
        self.greatest[path] = before[-1]
        new: npt.NDArray[np.bool_] = uid > before[:-1]
        return new


class DuplicateFilter(Mechanism):
    """Every task drops at arrival what it has had already.

    E. Tanuwidjaja, UC Berkeley EECS-2015-134, section 3: the numbers of tuples.
    """

    needs = Needs(paths=True, comparison=True)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._seen: dict[TaskView, Seen] = {task: Seen(task.component.paths) for task in job.bolt_tasks}

    def admit(self, task: BoltView, train: Train) -> Train:
        fresh = self._seen[task].fresh(train)
        if fresh.all():
            return train
        self._drop(task, train.pick(~fresh))
        return train.pick(fresh)

    def admit_again(self, task: BoltView) -> None:
        """A task has seen more than when it let in what is set aside: drop what it knows of that."""
        gate, now = self._bolt(task).gate, self._job.kernel.now
        gate.aside = [self.admit(task, train.at(now)) for train in gate.aside if train.n]

    def _drop(self, task: BoltView, train: Train) -> None:
        self._job.say.repeated(task, train)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        # who keeps the queue keeps what filtered it
        if task in self._seen and not task.up and not self._bolt(task).gate.stopped:
            self._know(task, Seen(task.component.paths))

    def _know(self, task: TaskView, seen: Seen) -> None:
        self._seen[task] = seen

    def had(self, task: BoltView, train: Train) -> npt.NDArray[np.bool_]:
        """Which of these tuples a task has had."""
        return self._seen[task].has(train)

    def seen(self, task: BoltView) -> Seen:
        """What a task has had."""
        return self._seen[task]

    def copy(self, task: BoltView, peer: BoltView) -> None:
        """From now on ``task`` has seen what ``peer`` has."""
        self._know(task, self._seen[peer].copy())


class CheckpointFilter(DuplicateFilter):
    """The same where tasks go back to a checkpoint: they have had what that has, and no more."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._done: dict[TaskView, Seen] = {task: seen.copy() for task, seen in self._seen.items()}
        """What each task has processed of what it has seen."""

    def passed(self, task: BoltView, train: Train) -> None:
        self._done[task].fresh(train)

    def done(self, task: BoltView) -> Seen:
        """A copy of what a task has processed by now."""
        return self._done[task].copy()

    def go_back(self, task: BoltView, done: Seen) -> None:
        """A task goes on from where it had processed this."""
        self._seen[task], self._done[task] = done.copy(), done.copy()


class ReplayFilter(CheckpointFilter):
    """The same for what comes again because a task of an earlier state goes on in the place of one that has
    failed. What it sends again those who read it have had.
    """

    needs = Needs(paths=True, readers_go_back=True)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._epochs: dict[TaskView, int] = {}
        """Of the tasks that have gone back: older epochs than this are over."""

    def admit(self, task: BoltView, train: Train) -> Train:
        if self._epochs.get(task) and train.epoch is not None:
            over = (train.epoch < self._epochs[task]) & (train.column("mark") == 0)
            if over.any():
                self._job.say.discarded(task, train.pick(over))
                train = train.pick(~over)
        return super().admit(task, train)

    def _drop(self, task: BoltView, train: Train) -> None:
        self._job.say.discarded(task, train)

    def begin_after(self, task: BoltView, epoch: int) -> None:
        """A task has gone back to where it was over with all epochs before ``epoch``."""
        self._epochs[task] = epoch
