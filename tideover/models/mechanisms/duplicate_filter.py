"""Duplicate filters: a receiver drops what it has had from another replica."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.plane.plane import NEVER
from tideover.sim.train import Ints


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


class DuplicateFilter(Mechanism):
    """Every task drops at arrival what it has had already. The data plane compares, and notes what is the
    greatest, in the array of each task's `Seen`.

    E. Tanuwidjaja, UC Berkeley EECS-2015-134, section 3: the numbers of tuples.
    """

    needs = Needs(paths=True, comparison=True)
    markers_too: ClassVar[bool] = True
    """Whether end markers are dropped, too: not where what comes again has to end windows again."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._seen: dict[TaskView, Seen] = {task: Seen(task.component.paths) for task in job.bolt_tasks}
        for bolt in job.bolt_tasks:
            bolt.markers_once = self.markers_too
        self._plane = plane = job.plane
        plane.have_paths()
        for task, seen in self._seen.items():
            c = plane.tasks[task.number]
            plane.array(c, "seen", seen.greatest)
            c.bounded |= plane.lib.FILTERS
        for sender in job.tasks:
            first = plane.tasks[sender.number].first_outlet
            for place, outlet in enumerate(sender.outlets):
                plane.outlets[first + place].first_path = job.topology.first_path(outlet.edge, sender.index)

    def admit_again(self, task: BoltView) -> None:
        """A task has seen more than when it let in what is set aside: drop what it knows of that."""
        self._plane.have_rows(self._plane.p.discarded, self._plane.tasks[task.number].aside.n)
        self._plane.lib.plane_sift(self._plane.p, task.number, self._job.kernel.now)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self._plane.tasks[task.number].repeats_until = NEVER  # as long as it is not restored
        # who keeps the queue keeps what filtered it
        if task in self._seen and not task.up and not self._bolt(task).gate.stopped:
            self._know(task, Seen(task.component.paths))

    def _know(self, task: TaskView, seen: Seen) -> None:
        self._seen[task].greatest[:] = seen.greatest

    def seen(self, task: BoltView) -> Seen:
        """What a task has had."""
        return self._seen[task]

    def copy(self, task: BoltView, peer: BoltView) -> None:
        """From now on ``task`` has seen what ``peer`` has."""
        self._know(task, self._seen[peer])


class CheckpointFilter(DuplicateFilter):
    """The same where tasks go back to a checkpoint: they have had what that has, and no more. The data plane
    notes, too, what of it is processed.
    """

    markers_too: ClassVar[bool] = False

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._done: dict[TaskView, Seen] = {task: seen.copy() for task, seen in self._seen.items()}
        """What each task has processed of what it has seen."""
        for task, done in self._done.items():
            self._plane.array(self._plane.tasks[task.number], "done", done.greatest)

    def done(self, task: BoltView) -> Seen:
        """A copy of what a task has processed by now."""
        return self._done[task].copy()

    def go_back(self, task: BoltView, done: Seen) -> None:
        """A task goes on from where it had processed this."""
        self._know(task, done)
        self._done[task].greatest[:] = done.greatest


class ReplayFilter(CheckpointFilter):
    """The same for what comes again because a task of an earlier state goes on in the place of one that has
    failed. What it sends again those who read it have had; what belongs to epochs that are over is turned
    away, too, and all of it is told of.
    """

    needs = Needs(paths=True, readers_go_back=True)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        for task in job.bolt_tasks:
            self._plane.tasks[task.number].bounded |= self._plane.lib.TELLS

    def begin_after(self, task: BoltView, epoch: int) -> None:
        """A task has gone back to where it was over with all epochs before ``epoch``."""
        self._plane.tasks[task.number].over = epoch
