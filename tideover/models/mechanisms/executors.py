"""The executors of a query in batches, and how the tasks of a batch run on them.

`batches.py` is the only user: it runs batches on a `Cluster`. The scheduler is Spark's (DAGScheduler,
TaskSetManager), and what it does with tasks and their states is changed here alone: stages one after the
other; tasks without state go wherever a core is free, tasks with state to the executor that has it; an
executor's death takes the attempts that run on it and the shuffle files of those that have run.

The rules of placement, stage by stage, in the order of tasks (tests/models/test_micro_batch.py):

- A task without state goes to the living executor with a free core and the fewest running tasks; one with
  state to the executor that has it. If that is dead, and known to be, it waits for `locality_wait` from the
  stage's begin or last launch while others of the stage have theirs; then it goes to the executor with the
  fewest states, then the fewest tasks. Ties: lowest host, then worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tideover.models.mechanisms.base import AFTER_TASKS, Process, workers_of
from tideover.models.mechanisms.batch_log import BatchSettings, Share, Shares
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import OutageView, TaskView
from tideover.sim.kernel import Rank

DRIVER = "driver"


class Partition:
    """A bolt task as Spark runs it: one partition of a stage (a component), over and over.

    own          the executor of its worker, where it runs at first
    home         where its state was loaded last; None: nowhere, there is nothing to load
    stale        that copy is spoilt; ``spoilt`` counts how often it was, by a fault of the state alone
    lost_by      the outage that took the copy
    blocked      the outage because of which it may not run
    since_saved  what it has worked on since its state, of ``saved_rows``, was saved last (ns)
    loaded       since when it has its state, with ``spoilt`` and ``lost_by`` at the start of this attempt
    ran          where the attempt runs, or has ended
    not_before   ns; None: its executor is dead, and the scheduler does not know yet
    again        the outage because of which it runs again; -1: none
    """

    def __init__(self, task: BoltTask, own: Executor) -> None:
        self.task, self.own, self.stateful = task, own, task.state is not None
        self.home: Life | None = (own, 0)
        self.stale, self.spoilt, self.lost_by = False, 0, -1
        self.blocked: int | None = None
        self.saved_rows = self.since_saved = 0
        self.share = Share(0, 0)
        self.done = True
        self.attempt = self.began_at = self.ends_at = 0
        self.loaded: tuple[int, int, int] | None = None
        self.ran: Life | None = None
        self.not_before: int | None = 0
        self.again = -1

    @property
    def gone(self) -> bool:
        """Whether what it has put out for others in this batch died with its executor."""
        return self.done and not lives(self.ran)


class Executor(Process):
    """A worker on a host, with some cores. ``life`` counts its deaths: a new life knows nothing of the old.

    warm, has_store   what tasks need runs in it: without state, or with state, as one has ended there
    noticed           whether the scheduler knows that it is dead
    """

    up = warm = has_store = noticed = True
    life = 0
    stopped_until = 0
    running = 0
    outage = -1

    def die(self, outage: int) -> None:
        self.up = self.noticed = False
        self.life += 1
        self.running = self.stopped_until = 0
        self.outage = outage

    def begin(self) -> None:
        """A new process stands in its place."""
        self.up = self.noticed = True
        self.warm = self.has_store = False


Life = tuple[Executor, int]


def lives(life: Life | None) -> bool:
    return life is not None and life[0].life == life[1]


class Owner(Protocol):
    """Who is told what happens to the processes of a query."""

    def executor_failed(self, executor: Executor, outage: OutageView) -> None: ...
    def executor_ready(self, executor: Executor, outage: OutageView) -> None: ...
    def driver_failed(self, outage: OutageView) -> None: ...
    def driver_ready(self, outage: OutageView) -> None: ...


class Cluster:
    """Executors and partitions of one query; runs the stages of one batch at a time.

    lineage   least time (ns) between two batches that save states; one that is lost is computed again, each
              task its own, so that all executors take part (M. Zaharia et al., *Discretized Streams*, SOSP
              2013, sections 3.3 and 4). None: every batch saves states, and a lost copy is loaded
    """

    def __init__(self, job: Job, settings: BatchSettings, lineage: int | None, owner: Owner) -> None:
        self._job, self._settings, self._lineage = job, settings, lineage
        self._save_from = lineage or 0
        """From which trigger on the next batch saves states (ns)."""
        self._saves = True
        """Whether tasks save their states in the batch that is run."""
        self._owner = owner
        failed, ready = (lambda _, outage: owner.driver_failed(outage)), (lambda _, o: owner.driver_ready(o))
        self.driver = Process(DRIVER, None, 0, 0, lambda _: self.tasks, failed, ready)
        places = workers_of(job)
        self.executors = [
            Executor("executor", *place, number, self._tasks_in, self._executor_failed, self._executor_ready)
            for number, place in enumerate(sorted(set(places.values())), 1)
        ]
        at = {(executor.host, executor.worker): executor for executor in self.executors}
        self.of: dict[TaskView, Partition] = {t: Partition(t, at[place]) for t, place in places.items()}
        self.partitions = list(self.of.values())
        self._stages: dict[str, list[Partition]] = {}
        for partition in self.partitions:
            self._stages.setdefault(partition.task.component.name, []).append(partition)
        self._stage: str | None = None
        self._preferred: dict[Partition, Life | None] = {}
        """Where states were when the current stage began, or began again, of the tasks that it had to run."""
        self._waiting_since = 0
        """When it did so, or when the last of its tasks was launched."""
        self._active = False
        self._open = False
        """Whether there is a batch that is not committed."""
        self._driver_back: int | None = None
        """When a driver that is dead will be back (ns); None: it lives."""
        self._attempts = 0

    @property
    def tasks(self) -> list[BoltTask]:
        return [p.task for p in self.partitions]

    def saves(self, trigger: int) -> bool:
        """Whether a batch that is triggered then saves the states of its tasks."""
        return trigger >= self._save_from

    def start(self, shares: Shares, saves: bool, done: Callable[[], None]) -> None:
        """Run all stages of a batch; ``done`` is called when the last task has ended."""
        self._done, self._saves = done, saves
        for p in self.partitions:
            p.share = shares[p.task.component.name, p.task.index]
            p.done, p.attempt, p.ran, p.not_before = False, 0, None, 0
        self._stage = None
        self._active = self._open = True
        self._schedule()

    def committed(self) -> None:
        """The batch is: what ran again in it does so no more."""
        s, now = self._settings, self._job.kernel.now
        if self._lineage is not None and self._saves:
            self._save_from = (now // self._lineage + 1) * self._lineage
        for p in self.partitions if self._lineage is not None else ():
            if self._saves:
                p.saved_rows, p.since_saved = p.share.entries, 0
            else:
                p.since_saved += s.task_time + p.share.demand
        self._open = False
        for p in self.partitions:
            p.again = -1

    def _schedule(self) -> None:
        """Start every task that can be started; or say that the batch is done."""
        if not self._active:
            return
        name = self._current()
        if name is None:
            self._active, self._stage = False, None
            self._done()
            return
        now = self._job.kernel.now
        if name != self._stage:
            self._stage, self._waiting_since = name, now
            self._preferred = {p: p.home for p in self._stages[name] if not p.done}
        for p in self._stages[name]:
            if p.done or p.attempt or p.blocked is not None or p.not_before is None or p.not_before > now:
                continue
            executor = self._place(p)
            if executor is None:
                continue
            if self._fetch_fails(p):
                return
            self._launch(p, executor)

    def _current(self) -> str | None:
        """The first stage that is not done."""
        return next((p.task.component.name for p in self.partitions if not p.done), None)

    def _place(self, p: Partition) -> Executor | None:
        free = [e for e in self.executors if e.up and e.running < self._settings.cores]
        if not p.stateful:
            return min(free, key=lambda e: (e.running, e.number), default=None)
        if p.home is not None:
            home = p.home[0]
            if lives(p.home):
                return home if home in free else None
            if not home.noticed or self._waits_for_locality(p):
                return None
        states = Counter(q.home for q in self.partitions if q.stateful)
        return min(free, key=lambda e: (states[e, e.life], e.running, e.number), default=None)

    def _waits_for_locality(self, p: Partition) -> bool:
        """Whether a task that has lost its executor still waits, as others of its task set have theirs."""
        others = (home for q, home in self._preferred.items() if q is not p)
        if self._lineage is not None or not any(lives(home) for home in others):
            return False
        until = self._waiting_since + self._settings.locality_wait
        if self._job.kernel.now >= until:
            return False
        self._look(until)
        return True

    def _read_by(self, p: Partition) -> list[Partition]:
        """The tasks whose outputs a task reads."""
        ups = [edge.up.name for edge in p.task.component.inputs if not edge.up.is_spout]
        return [q for up in ups for q in self._stages[up]]

    def _fetch_fails(self, p: Partition) -> bool:
        """Whether an input of a task died with its executor; then what made it is submitted again."""
        if not self._job.supervisor.outages:
            return False
        gone = [q for q in self._read_by(p) if q.gone]
        for q in gone:
            self._submit_again(q, self._job.kernel.now + self._settings.resubmit_time)
        return bool(gone)

    def _submit_again(self, p: Partition, when: int) -> None:
        if p.ran is not None:
            p.again = p.ran[0].outage
        p.done = False
        p.not_before = when
        self._look(when)

    def _look(self, when: int) -> None:
        self._job.kernel.at(when, Rank.BATCH, self._schedule, AFTER_TASKS)

    def _launch(self, p: Partition, executor: Executor) -> None:
        s, now = self._settings, self._job.kernel.now
        here = (executor, executor.life)
        before = self._cold(p, executor)
        work = s.task_time + p.share.demand
        loads = p.home is not None and p.stateful and (p.home != here or p.stale)
        if p.stateful:
            if self._saves:
                work += s.state_time + p.share.entries * s.state_cost
            p.home, p.stale = here, loads
        if loads and self._lineage is not None:
            before += s.reload_time + p.saved_rows * s.reload_cost + p.since_saved
        elif loads:
            self._job.kernel.advance()  # its state as it is now
            assert p.task.state is not None
            before += s.reload_time + p.task.state.entries * s.reload_cost
        start = max(now, executor.stopped_until) + before
        p.began_at, p.ran = now, here
        p.loaded = (start, p.spoilt, p.lost_by) if loads else None
        executor.running += 1
        self._waiting_since = now
        for q in self._read_by(p) if self._job.supervisor.outages else ():
            if q.ran is not None:  # a partition may cut it off from what it reads
                assert executor.host is not None and q.ran[0].host is not None  # noqa: PT018
                parted = self._job.supervisor.links.parted_until(executor.host, q.ran[0].host)
                start = max(start, parted)
        self._end_at(p, start + work)

    def _cold(self, p: Partition, executor: Executor) -> int:
        """What a task takes more where what it needs does not run yet."""
        s, new = self._settings, not (executor.warm or executor.has_store)
        worker = s.executor_cold if s.worker_cold is None else s.worker_cold
        start = max(0, s.executor_cold - worker) if new else 0
        if not p.stateful:
            return 0 if executor.warm else start + worker
        if executor.has_store:
            return 0
        if s.worker_cold is None:  # whatever comes first starts all of it
            return max(0 if executor.warm else s.executor_cold, s.state_cold)
        return start + s.state_cold

    def _end_at(self, p: Partition, when: int) -> None:
        """The attempt ends then, unless it is lost before."""
        self._attempts += 1
        p.attempt, p.ends_at = self._attempts, when
        ended = partial(self._ended, p, p.attempt)
        self._job.kernel.at_rest(when, Rank.BATCH, ended, p.task.number)

    def _ended(self, p: Partition, attempt: int) -> None:
        if p.attempt != attempt:
            return
        assert p.ran is not None
        executor = p.ran[0]
        self._stop_attempt(p)
        p.done = True
        executor.running -= 1
        executor.warm |= not p.stateful
        executor.has_store |= p.stateful
        if p.loaded is not None:
            self._job.kernel.advance()
            since, spoilt, lost_by = p.loaded
            p.stale = p.spoilt != spoilt
            self._job.say.reloaded(p.task, lost_by, since)
        self._schedule()

    def _stop_attempt(self, p: Partition) -> None:
        p.attempt = 0
        p.task.busy.count(self._job.kernel.now - p.began_at)

    def _tasks_in(self, executor: Executor) -> list[BoltTask]:
        """Those whose state is there, or, if they have none, which have run there last."""
        here = (executor, executor.life)
        return [p.task for p in self.partitions if (p.home if p.stateful else p.ran) == here]

    def _executor_failed(self, executor: Executor, outage: OutageView) -> None:
        """An executor is gone; the scheduler learns of it when it is detected."""
        for p in self.partitions:
            here = (executor, executor.life)
            if p.stateful and p.home == here:
                p.lost_by = outage.number
            if p.attempt and p.ran == here:
                self._stop_attempt(p)
                p.again, p.not_before = outage.number, None
        executor.die(outage.number)
        if self._driver_back is not None:
            self._job.supervisor.expect(executor, self._driver_back)
        notice = partial(self._notice, executor, outage)
        self._job.kernel.at(outage.detected_at, Rank.FAULT, notice, AFTER_TASKS + executor.number)
        self._owner.executor_failed(executor, outage)

    def _notice(self, executor: Executor, outage: OutageView) -> None:
        """The scheduler learns of a death: what was lost is submitted again."""
        if executor.outage != outage.number or executor.up:
            return
        executor.noticed = True
        self._take_over()
        now = self._job.kernel.now
        current = self._current()
        for p in self.partitions if self._active else ():
            if p.ran is not None and p.ran[0] is executor:
                # losses in earlier stages are found by those who read them
                lost = p.gone and p.task.component.name == current and p.task.component.outputs
                if p.not_before is None or lost:
                    self._submit_again(p, now)
        self._schedule()

    def _take_over(self) -> None:
        """If an executor lives it can do what those did that are known to be dead: nobody waits for them."""
        if self._driver_back is None and any(e.up for e in self.executors):
            for executor in (e for e in self.executors if e.noticed):
                self._job.supervisor.back(executor)

    def stopped(self, task: TaskView, until: int) -> None:
        """The executor where a task runs, has its state, or began, does nothing until then."""
        mine, now = self.of[task], self._job.kernel.now
        places = (mine.ran if mine.attempt else None, mine.home if mine.stateful else None)
        executor = next((place[0] for place in places if place is not None and lives(place)), mine.own)
        shift = max(0, until - max(now, executor.stopped_until))
        if not executor.up or not shift:
            return
        for p in self.partitions:
            if p.attempt and p.ran == (executor, executor.life):
                if p.loaded is not None and p.loaded[0] > now:
                    p.loaded = (p.loaded[0] + shift, *p.loaded[1:])
                self._end_at(p, p.ends_at + shift)
        executor.stopped_until = until

    def _executor_ready(self, executor: Executor, outage: OutageView) -> None:
        """A new process stands in for one that is dead, unless there is no driver to talk to."""
        if not executor.up and self._driver_back is None:
            executor.begin()
            self._take_over()
            self._schedule()
        self._owner.executor_ready(executor, outage)

    def _runs_again(self, outage: OutageView) -> None:
        for p in self.partitions:
            if self._open and p.ran is not None:
                p.again = outage.number

    def halt(self, again: OutageView | None = None) -> None:
        """The query is stopped, and its state dropped; because of ``again`` the batch will be run again."""
        if again is not None:
            self._runs_again(again)
        for p in self.partitions:
            if p.attempt:
                self._stop_attempt(p)
                if lives(p.ran) and p.ran is not None:
                    p.ran[0].running -= 1
                    # PySpark: `BasePythonRunner` closes the worker of a task that has not read to its end.
                    p.ran[0].warm &= p.stateful or self._settings.worker_cold is None
            p.home, p.stale, p.blocked = None, False, None
        self._active = self._open = False

    def stop(self, outage: OutageView) -> None:
        self._runs_again(outage)
        for p in self.partitions:
            if p.attempt:
                self._stop_attempt(p)
            p.lost_by = outage.number
        self._active = self._open = False
        self._driver_back = outage.ready_at
        for executor in self.executors:
            executor.die(outage.number)
            self._job.supervisor.expect(executor, outage.ready_at)

    def renew(self) -> None:
        """The driver is back, with new executors."""
        self._driver_back = None
        for executor in self.executors:
            executor.begin()
        self._take_over()
        self._job.supervisor.back(self.driver)
        for p in (p for p in self.partitions if p.blocked is not None):
            p.blocked = None
            self._job.supervisor.back(p.task)

    def task_failed(self, task: TaskView, outage: OutageView) -> None:
        """A task alone fails: its attempt is lost, or its state's copy, or (if it has to restart) both."""
        p = self.of[task]
        if outage.kind == "lose_state":
            p.stale, p.spoilt, p.lost_by = True, p.spoilt + 1, outage.number
            if outage.ready_at == outage.failed_at and p.blocked is None:
                return
        p.blocked = outage.number
        if p.attempt:
            assert p.ran is not None
            p.ran[0].running -= 1
            self._stop_attempt(p)
            p.again = outage.number
            self._look(self._job.kernel.now)

    def task_ready(self, task: TaskView, outage: OutageView) -> None:
        p = self.of[task]
        if p.blocked == outage.number:
            p.blocked = None
            self._schedule()
