"""State that lies in a store, of which a task has at hand what it has changed since the last commit."""

from __future__ import annotations

from functools import partial

import numpy as np

from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.accesses import Touched
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import OutageView, TaskView
from tideover.sim.train import Ints, Train


class RemoteState(Mechanism):
    """Every access to an entry that is not at hand keeps its task until the store has answered.

    Storm 1.0, ``RedisKeyValueState``: what was put since the last commit is looked up in two maps, that of
    the transaction in preparation and that of the prepared one; everything else is a round trip. Such a
    look-up takes ``round_trip`` ns, and waits for nobody else's: with a store that is busy for a fraction u
    of the time with others' requests it would be longer by u/(1 - u) operations in the mean.
    """

    def __init__(self, job: Job, round_trip: int, access_cost: int) -> None:
        super().__init__(job)
        self._round_trip, self._cost = round_trip, access_cost
        self._of: dict[TaskView, Touched] = {}
        for task in job.bolt_tasks:
            backend = task.component.backend
            if backend is not None:
                self._of[task] = Touched(task.component.name, job.draws, backend)
                cost = access_cost * backend.accesses
                task.besides = partial(self._look_up, self._of[task], cost)

    def _look_up(self, touched: Touched, cost: int, train: Train) -> Ints:
        if train.mark is None:
            return touched.look_up(train.uid) * self._round_trip + cost
        takes = np.zeros(train.n, np.int64)
        rows = np.flatnonzero(train.mark == 0)
        takes[rows] = touched.look_up(train.uid[rows]) * self._round_trip + cost
        return takes

    def prepare(self, task: BoltTask) -> int:
        """A transaction begins at a task; returns how many entries it has."""
        return self._of[task].prepare() if task in self._of else 0

    def commit(self, task: BoltTask) -> None:
        """It is committed there."""
        if task in self._of:
            self._of[task].commit()

    def roll_back(self, task: BoltTask) -> None:
        """A task goes back to the last commit: it has nothing at hand."""
        if task in self._of:
            self._of[task].forget()

    def failed(self, task: TaskView, outage: OutageView) -> None:
        if task in self._of:
            self._of[task].forget()
