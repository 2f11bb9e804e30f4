"""State that lies in a store, of which a task has at hand what it has changed since the last commit."""

from __future__ import annotations

from functools import partial

import numpy as np

from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.accesses import Touched
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.core_sharing import PART
from tideover.models.runtime.job import Job
from tideover.models.runtime.network import FLOWS
from tideover.models.runtime.views import OutageView, TaskView
from tideover.sim.look_ups import Asker, LookUps
from tideover.sim.train import Ints, Train


class RemoteState(Mechanism):
    """Every access to an entry that is not at hand keeps its task until the store has answered.

    Storm 1.0, ``RedisKeyValueState``: what was put since the last commit is looked up in two maps, that of
    the transaction in preparation and that of the prepared one; everything else is a round trip (``HGET``),
    one after the other.

    ``round_trip``: of a look-up that waits for nobody (ns); ``work``: the part of it for which it keeps the
    store, and all others waiting (ns); 0: nobody waits; ``access_cost``: of each access (ns).
    """

    def __init__(self, job: Job, store: str | None, round_trip: int, work: int, access_cost: int) -> None:
        super().__init__(job)
        self._round_trip, self._cost = round_trip, access_cost
        self._of: dict[TaskView, Touched] = {}
        askers: list[Asker] = []
        for task in job.bolt_tasks:
            backend = task.component.backend
            if backend is not None:
                self._of[task] = Touched(task.component.name, job.draws, backend)
                asker = None
                if work:
                    asker = Asker(task, job.store_named(store).server(task.host), backend.accesses)
                    askers.append(asker)
                cost = access_cost * backend.accesses
                task.besides = partial(self._look_up, self._of[task], cost, asker)
        if askers:
            LookUps(job.kernel, askers, work, self._step())

    def _step(self) -> int:
        """Length of the steps in which speeds change (ns): a part of the shortest time of a tuple that looks
        everything up, but no more steps than `FLOWS` allows.
        """
        tasks = [task for task in self._job.bolt_tasks if task.component.backend is not None]
        each = [
            task.mean_service + task.component.backend.accesses * (self._cost + self._round_trip)
            for task in tasks
            if task.component.backend is not None
        ]
        least = self._job.deployment.run.duration * len(self._job.tasks) // FLOWS
        return max(1, least, round(PART * min(each)))

    def _look_up(self, touched: Touched, cost: int, asker: Asker | None, train: Train) -> Ints:
        if train.mark is None:
            found = touched.look_up(train.uid)
            takes = found * self._round_trip + cost
        else:
            found, takes = np.zeros(train.n, np.int64), np.zeros(train.n, np.int64)
            rows = np.flatnonzero(train.mark == 0)
            found[rows] = touched.look_up(train.uid[rows])
            takes[rows] = found[rows] * self._round_trip + cost
        if asker is not None:
            asker.asks(found)
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
