"""Batches with transaction ids: coordinator, attempts, and the tasks at work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

import numpy as np

from tideover.models.mechanisms.batch_log import median_distance
from tideover.models.mechanisms.executors import LATE, Process, workers_of
from tideover.models.mechanisms.trident_log import Attempt, Reading, TridentSettings, work_off
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, OutageView, Runner, SpoutView
from tideover.sim.kernel import Rank
from tideover.sim.train import Train


class Work(NamedTuple):
    """What a task has to do for an attempt; ``done`` is called when it has taken ``duration`` (ns)."""

    attempt: Attempt
    duration: int
    done: Callable[[], None]


class Executor:
    """Does the works of a task, in the order in which they come.

    own        number of the outage of the task alone by which it is down; None: none
    worker_up  whether the process lives that it is in
    fault      number of the newest outage that has struck it
    began_at   when the present work began (ns); None: it has none
    """

    def __init__(self, job: Job, task: BoltTask) -> None:
        self._kernel, self._links = job.kernel, job.supervisor.links
        self.task = task
        self._readers = {c.down.host for outlet in task.outlets for to in outlet.channels for c in to}
        self.own: int | None = None
        self.worker_up, self.fault = True, -1
        self.began_at: int | None = None
        self._works: deque[Work] = deque()
        """The first of them is the present one."""
        self._ends_at = self._number = self._stopped_until = 0

    @property
    def down(self) -> bool:
        return self.own is not None or not self.worker_up

    def add(self, work: Work) -> None:
        self._works.append(work)
        self._go_on()

    def _go_on(self) -> None:
        if self.began_at is None and self._works:
            self.began_at = self._kernel.now
            self._end_at(max(self._kernel.now, self._stopped_until) + self._works[0].duration)

    def _end_at(self, when: int) -> None:
        self._number += 1
        self._ends_at, number = when, self._number

        def ended() -> None:
            if number != self._number:
                return
            parted = [self._links.parted_until(self.task.host, host) for host in self._readers]
            if max(parted, default=0) > self._kernel.now:  # a partition cuts it off from one that reads it
                self._end_at(max(parted))
                return
            work = self._works.popleft()
            self._stop()
            work.done()
            self._go_on()

        self._kernel.at(when, Rank.BATCH, ended, self.task.number)

    def _stop(self) -> None:
        """What is being done is over, or given up."""
        assert self.began_at is not None
        self.task.busy.count(self._kernel.now - self.began_at)
        self.began_at = None
        self._number += 1

    def give_up(self, attempts: Collection[Attempt]) -> None:
        """Nobody wants the works of these attempts any more."""
        if self.began_at is not None and self._works[0].attempt in attempts:
            self._stop()
        self._works = deque(work for work in self._works if work.attempt not in attempts)
        self._go_on()

    def crash(self) -> None:
        """All works are gone, and what has stopped it is over."""
        if self.began_at is not None:
            self._stop()
        self._works.clear()
        self._stopped_until = 0

    def stop_until(self, until: int) -> None:
        """It does nothing until then."""
        shift = until - max(self._kernel.now, self._stopped_until)
        if self.down or shift <= 0:
            return
        self._stopped_until = until
        if self.began_at is not None:
            self._end_at(self._ends_at + shift)


COORDINATOR = "coordinator"


class Tasks(Reading, Runner):
    """Bolt tasks work off the parts of attempts; workers and a coordinator can fail with them."""

    def __init__(self, job: Job, settings: TridentSettings) -> None:
        super().__init__(job, settings)
        self._executors = {task: Executor(job, task) for task in job.bolt_tasks}
        self._reads = {
            task: list(dict.fromkeys(c.up for c in task.inputs if isinstance(c.up, BoltTask)))
            for task in job.bolt_tasks
        }
        """The bolt tasks that each one reads."""
        self._read_by = {
            task: [down for down in job.bolt_tasks if task in self._reads[down]] for task in job.bolt_tasks
        }
        """Those that read it."""
        self._early: set[BoltTask] = set()
        """Tasks that work before the commit: no state is upstream of them."""
        for task in job.bolt_tasks:
            if all(up in self._early and up.state is None for up in self._reads[task]):
                self._early.add(task)
        self._epochs: dict[BoltTask, list[tuple[Attempt, dict[int, int]]]] = {t: [] for t in job.bolt_tasks}
        """Which end markers had come at a task without state before attempts that are under way passed it."""
        places = workers_of(job)
        inside = {place: [t for t in places if places[t] == place] for place in sorted(set(places.values()))}
        job.context.machines += [
            Process("worker", *place, number, lambda p: inside[p.host, p.worker], self._dies, self._is_back)
            for number, place in enumerate(inside, 1)
        ]
        job.context.runner = self

    def processed_all(self, attempt: Attempt) -> None:
        """All tasks have done their work that do so before the commit."""

    def stored_all(self, attempt: Attempt) -> None:
        """All stores have their parts."""

    # -- work ------------------------------------------------------------------------------------------------

    def _begin(self, attempt: Attempt) -> None:
        """The tasks that read spouts have their parts."""
        attempt.reads = True
        for task in self._readers:
            self._comes_to(attempt, task)

    def _comes_to(self, attempt: Attempt, task: BoltTask) -> None:
        """Something of a task's part has come; perhaps all of it."""
        executor = self._executors[task]
        if executor.down:
            attempt.breaks(task, executor.fault)
        if task in attempt.lost or not all(up in attempt.passed for up in self._reads[task]):
            return
        part = attempt.part(task)
        service = 0 if part is None else task.queue.demand(part)
        done = partial(self._worked, attempt, task)
        executor.add(Work(attempt, self._settings.task_time + service, done))

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
        if attempt.logged and len(attempt.passed) == len(self._executors):
            self.stored_all(attempt)

    # -- the commit ------------------------------------------------------------------------------------------

    def _update(self, attempt: Attempt, task: BoltTask) -> None:
        s, part = self._settings, attempt.part(task)
        rows = 0
        if part is not None:  # what the store has to write: keys, or all that a task without state puts out
            data = without_markers(part)
            rows = data.n if task.state is None else len(np.unique(data.key))
        took = s.state_time + rows * s.state_cost
        self._executors[task].add(Work(attempt, took, partial(self._updated, attempt, task)))

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
        for executor in self._executors.values():
            executor.give_up(attempts)
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
        executor = self._executors[task]
        executor.fault = outage.number
        executor.crash()
        for attempt in self._under_way.values():
            reads = attempt.reads and task in self._readers
            if task not in attempt.passed and (reads or not attempt.passed.isdisjoint(self._reads[task])):
                attempt.breaks(task, outage.number)

    def _dies(self, worker: Process, outage: OutageView) -> None:
        for task in worker.tasks():
            executor = self._executors[self._bolt(task)]
            executor.worker_up = False
            self._crash(executor.task, outage)

    def _is_back(self, worker: Process, outage: OutageView) -> None:
        for task in worker.tasks():
            self._executors[self._bolt(task)].worker_up = True
        self._job.supervisor.back(worker)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            return
        executor = self._executors[self._bolt(task)]
        at_once = outage.kind == "lose_state" and outage.ready_at == outage.failed_at
        if not at_once or executor.own is not None:
            executor.own = outage.number
            self._crash(executor.task, outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            executor = self._executors[self._bolt(task)]
            if executor.own == outage.number:
                executor.own = None

    def paused(self, task: BoltView, outage: OutageView) -> None:
        self._executors[self._bolt(task)].stop_until(outage.ready_at)

    def busy_since(self, task: BoltView) -> int | None:
        return self._executors[self._bolt(task)].began_at


class Coordinator(Tasks):
    """Numbers batches, and lets them commit in this order (Storm's ``MasterBatchCoordinator``).

    What it has marked as committed outlives it; which attempts are under way does not.
    """

    def __init__(self, job: Job, settings: TridentSettings) -> None:
        super().__init__(job, settings)
        self._plans = Plans(job.kernel, LATE + 1)
        """What it is about to do, unless it dies before."""
        self._lives = True
        self._current = 1
        """The first transaction that is not committed."""
        self._updates: list[int] = []
        """When all stores had what transactions had brought, in their order."""
        self._machine = Process(
            COORDINATOR, None, 0, 0, lambda _: job.bolt_tasks, self._killed, self._has_restarted
        )
        job.context.machines.insert(0, self._machine)
        job.context.rhythm = lambda: median_distance(self._updates)

    def start(self) -> None:
        s, kernel = self._settings, self._job.kernel
        kernel.every(s.message_timeout, s.message_timeout, Rank.ROTATION, self._look_for_late, LATE + 1)
        kernel.every(s.batch_interval, s.batch_interval, Rank.BATCH, self._tick, LATE + 1)

    def _say(self, what: str, attempt: Attempt) -> None:
        self._job.step(COORDINATOR, what, f"transaction {attempt.txid}")

    # -- 1. each interval: an attempt of the next transaction ------------------------------------------------

    def _tick(self, _: int) -> None:
        if not self._lives or len(self._under_way) >= self._settings.max_spout_pending:
            return
        txid = max(self._under_way, default=self._current - 1) + 1
        self._gather(self._readers)
        content = self._source.read(txid)
        if not content:
            return
        attempt = self._under_way[txid] = Attempt(txid, content, self._job.kernel.now)
        self._say("batch begun", attempt)
        if self._source.writes_first(txid):
            self._later(self._settings.metadata_time, attempt, self._write_content)
        else:
            self._begin(attempt)

    def _later(self, delay: int, attempt: Attempt, act: Callable[[Attempt], None]) -> None:
        """For an attempt, unless it is given up before."""

        def do() -> None:
            if self._under_way.get(attempt.txid) is attempt:
                act(attempt)

        self._plans.after(delay, Rank.BATCH, do)

    def _write_content(self, attempt: Attempt) -> None:
        self._source.written(attempt)
        self._say("metadata written", attempt)
        self._begin(attempt)

    # -- 2. tasks work; 3. when all have, and it is its turn, the stores are updated -------------------------

    def processed_all(self, attempt: Attempt) -> None:
        self._later(0, attempt, lambda _: self._commit_current())

    def _commit_current(self) -> None:
        attempt = self._under_way.get(self._current)
        if attempt is None or not attempt.processed or attempt.commits_at is not None:
            return
        attempt.commits_at = self._job.kernel.now
        self._say("commit begun", attempt)
        for task in self._stores:
            if task in attempt.worked and task not in attempt.lost:
                self._update(attempt, task)
        if self._source.writes_last:
            self._later(self._settings.metadata_time, attempt, self._write_position)
        else:
            attempt.logged = True

    def _write_position(self, attempt: Attempt) -> None:
        attempt.logged = True
        self._say("metadata written", attempt)
        self._look_whether_stored(attempt)

    # -- 4. all is stored: spouts are told; 5. the mark ------------------------------------------------------

    def stored_all(self, attempt: Attempt) -> None:
        self._later(0, attempt, self._succeed)

    def _succeed(self, attempt: Attempt) -> None:
        attempt.updated = True
        self._updates.append(self._job.kernel.now)
        self._say("spouts told", attempt)
        self._later(self._settings.commit_time, attempt, self._mark)

    def _mark(self, attempt: Attempt) -> None:
        self._say("batch committed", attempt)
        del self._under_way[attempt.txid]
        self._current += 1
        self._done_with(attempt)
        self._commit_current()

    # -- failures --------------------------------------------------------------------------------------------

    def _look_for_late(self, _: int) -> None:
        """Fail the first attempt that takes too long, and with it those that follow."""
        if not self._lives:
            return
        limit = self._job.kernel.now - self._settings.message_timeout
        for txid in sorted(self._under_way):
            since = self._under_way[txid].timed_since
            if since is not None and since <= limit:
                failed = [self._under_way[other] for other in sorted(self._under_way) if other >= txid]
                self._say("batch failed", failed[0])
                first = failed[0].broken_by
                broken = (first if attempt.broken_by is None else attempt.broken_by for attempt in failed)
                causes = [-1 if outage is None else outage for outage in broken]
                self._tell_of_timeouts(zip(failed, causes, strict=True))
                self._give_up(failed, causes)
                return

    def _killed(self, _: Process, outage: OutageView) -> None:
        self._lives = False
        self._plans.void()
        attempts = [self._under_way[txid] for txid in sorted(self._under_way)]
        self._give_up(attempts, [outage.number] * len(attempts))

    def _has_restarted(self, _: Process, outage: OutageView) -> None:
        self._lives = True
        self._job.supervisor.back(self._machine)

    def _give_up(self, attempts: list[Attempt], causes: list[int]) -> None:
        """None of these attempts (the last ones that are under way) goes on, because of these outages."""
        self._drop(attempts)
        for attempt, cause in reversed(list(zip(attempts, causes, strict=True))):
            del self._under_way[attempt.txid]
            self._put_back(attempt, cause)
