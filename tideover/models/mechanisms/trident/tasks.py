"""The tasks of a Trident topology, and how a batch passes them."""

from __future__ import annotations

from functools import partial

import numpy as np

from tideover.models.mechanisms.batches.executor import Process
from tideover.models.mechanisms.trident.attempt import Attempt
from tideover.models.mechanisms.trident.passing import work_off
from tideover.models.mechanisms.trident.reading import Reading
from tideover.models.mechanisms.trident.settings import TridentSettings
from tideover.models.mechanisms.trident.station import Station, Work
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.runner import Runner
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.train import Train

COORDINATOR = "coordinator"


class Tasks(Reading, Runner):
    """Bolt tasks work off the parts of attempts; workers and a coordinator can fail with them."""

    def __init__(self, job: Job, settings: TridentSettings) -> None:
        super().__init__(job, settings)
        self._stations = {task: Station(job, task) for task in job.bolt_tasks}
        self._reads = {
            task: list(dict.fromkeys(c.up for c in task.inputs if isinstance(c.up, BoltTask)))
            for task in job.bolt_tasks
        }
        """The bolt tasks that each one reads."""
        self._read_by = {
            task: [down for down in job.bolt_tasks if task in self._reads[down]] for task in job.bolt_tasks
        }
        """Those that read it."""
        self._early = self._before_states(job)
        self._epochs: dict[BoltTask, list[tuple[Attempt, dict[int, int]]]] = {t: [] for t in job.bolt_tasks}
        """Which end markers had come at a task without state before attempts that are under way passed it."""
        self._machine = Process(
            COORDINATOR,
            None,
            0,
            0,
            lambda _: job.bolt_tasks,
            lambda _, outage: self.coordinator_failed(outage),
            lambda _, outage: self.coordinator_ready(),
        )
        job.context.machines += [self._machine, *self._workers(job)]
        job.context.runner = self

    def _workers(self, job: Job) -> list[Process]:
        """The processes in which tasks live."""
        of = job.deployment.cluster.worker_of
        homes = {t: of[t.component.name, t.index, t.replica] for t in job.bolt_tasks}
        places = {task: (home.host, home.number) for task, home in homes.items()}
        inside = {place: [t for t in places if places[t] == place] for place in sorted(set(places.values()))}
        return [
            Process("worker", *place, number, lambda p: inside[p.host, p.worker], self._dies, self._is_back)
            for number, place in enumerate(inside, 1)
        ]

    def _before_states(self, job: Job) -> set[BoltTask]:
        """Tasks that work before the commit: no state is upstream of them."""
        early: set[BoltTask] = set()
        for task in job.bolt_tasks:
            if all(up in early and up.state is None for up in self._reads[task]):
                early.add(task)
        return early

    def coordinator_failed(self, outage: OutageView) -> None:
        """It is killed."""
        raise NotImplementedError

    def coordinator_ready(self) -> None:
        """A new one has started."""
        raise NotImplementedError

    def processed_all(self, attempt: Attempt) -> None:
        """All tasks have done their work that do so before the commit."""
        raise NotImplementedError

    def stored_all(self, attempt: Attempt) -> None:
        """All stores have their parts."""
        raise NotImplementedError

    # -- work ------------------------------------------------------------------------------------------------

    def _begin(self, attempt: Attempt) -> None:
        """The tasks that read spouts have their parts."""
        attempt.reads = True
        for task in self._readers:
            self._comes_to(attempt, task)

    def _comes_to(self, attempt: Attempt, task: BoltTask) -> None:
        """Something of a task's part has come; perhaps all of it."""
        station = self._stations[task]
        if station.down:
            attempt.breaks(task, station.fault)
        if task in attempt.lost or not all(up in attempt.passed for up in self._reads[task]):
            return
        part = attempt.part(task)
        service = 0 if part is None else task.queue.demand(part)
        done = partial(self._worked, attempt, task)
        station.add(Work(attempt, self._settings.task_time + service, done))

    def _worked(self, attempt: Attempt, task: BoltTask) -> None:
        attempt.worked.add(task)
        self._job.step(task.name, "part worked off", f"transaction {attempt.txid}")
        if task not in self._stores:
            self._pass(attempt, task, attempt.part(task))
        elif attempt.commits_at is not None:
            self._update(attempt, task)
        if not attempt.processed and attempt.worked >= self._early:
            attempt.processed = True
            self.processed_all(attempt)

    def _pass(self, attempt: Attempt, task: BoltTask, part: Train | None) -> None:
        """The part passes the task, which hands on what it makes of it."""
        if part is not None:
            if task not in self._stores:
                self._epochs[task].append((attempt, dict(task.windows.epochs)))
            self._passing = attempt, task
            work_off(self._job, task, part)
            self._gather(self._read_by[task])
            self._passing = None
            self._tell_again(task, part)
        self._has_passed(attempt, task)

    def _has_passed(self, attempt: Attempt, task: BoltTask) -> None:
        attempt.passed.add(task)
        for down in self._read_by[task]:
            self._comes_to(attempt, down)
        self._look_whether_stored(attempt)

    def _look_whether_stored(self, attempt: Attempt) -> None:
        if attempt.logged and len(attempt.passed) == len(self._stations):
            self.stored_all(attempt)

    # -- the commit ------------------------------------------------------------------------------------------

    def _update_all(self, attempt: Attempt) -> None:
        """The commit begins."""
        for task in self._stores:
            if task in attempt.worked and task not in attempt.lost:
                self._update(attempt, task)

    def _update(self, attempt: Attempt, task: BoltTask) -> None:
        s, part = self._settings, attempt.part(task)
        took = s.state_time + (0 if part is None else _rows(task, part) * s.state_cost)
        self._stations[task].add(Work(attempt, took, partial(self._updated, attempt, task)))

    def _updated(self, attempt: Attempt, task: BoltTask) -> None:
        """The store has the part, or had it."""
        part, store = attempt.part(task), self._stores[task]
        if store.takes(attempt.txid, part):
            self._job.step(task.name, "state updated", f"transaction {attempt.txid}")
            self._pass(attempt, task, part)
            return
        self._job.step(task.name, "update skipped", f"transaction {attempt.txid}")
        if part is not None:
            self._job.say.unsent(task, without_markers(part))
            self._job.say.copies_lost(task, without_markers(part).uid)
        for down, train in store.handed_on:
            attempt.handed_to.setdefault(down, []).append(train)
        self._has_passed(attempt, task)

    # -- failures --------------------------------------------------------------------------------------------

    def _drop(self, attempts: list[Attempt]) -> None:
        """Nothing more is done for these attempts."""
        for station in self._stations.values():
            station.give_up(attempts)
        for task, passed in self._epochs.items():
            first = next((i for i, (attempt, _) in enumerate(passed) if attempt in attempts), None)
            if first is not None:
                task.windows.epochs = dict(passed[first][1])
                self._epochs[task] = [entry for entry in passed if entry[0] not in attempts]

    def _done_with(self, attempt: Attempt) -> None:
        super()._done_with(attempt)
        for task, passed in self._epochs.items():
            self._epochs[task] = [entry for entry in passed if entry[0] is not attempt]

    def _crash(self, task: BoltTask, outage: OutageView) -> None:
        """What the task has of attempts is gone."""
        station = self._stations[task]
        station.fault = outage.number
        station.crash()
        for attempt in self._under_way.values():
            reads = attempt.reads and task in self._readers
            if task not in attempt.passed and (reads or not attempt.passed.isdisjoint(self._reads[task])):
                attempt.breaks(task, outage.number)

    def _dies(self, worker: Process, outage: OutageView) -> None:
        for task in worker.tasks():
            station = self._stations[self._bolt(task)]
            station.worker_up = False
            self._crash(station.task, outage)

    def _is_back(self, worker: Process, outage: OutageView) -> None:
        for task in worker.tasks():
            self._stations[self._bolt(task)].worker_up = True
        self._job.supervisor.back(worker)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            return
        station = self._stations[self._bolt(task)]
        at_once = outage.kind == "lose_state" and outage.ready_at == outage.failed_at
        if at_once and station.own is None:
            return
        station.own = outage.number
        self._crash(station.task, outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            station = self._stations[self._bolt(task)]
            if station.own == outage.number:
                station.own = None

    def paused(self, task: BoltView, outage: OutageView) -> None:
        self._stations[self._bolt(task)].stop_until(outage.ready_at)

    def busy_since(self, task: BoltView) -> int | None:
        return self._stations[self._bolt(task)].began_at


def _rows(task: BoltTask, part: Train) -> int:
    """What a store has to write of a part: its keys, or all that a task without state puts out."""
    data = without_markers(part)
    return data.n if task.state is None else len(np.unique(data.key))
