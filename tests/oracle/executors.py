"""Executors, and a scheduler that runs the tasks of one batch on them, stage after stage.

The rules are those of `micro_batch`, held against Apache Spark's ``TaskSetManager`` (as of 3.0). Alike:
tasks with low numbers go first; a wait for locality begins anew with every launch of the stage, and there is
none if no executor that a task of the stage prefers is alive. Not alike, in engine and reference: there,
tasks that may run where their state is are offered cores before all others (here: in order of tasks), a task
that failed goes before those that have not run yet, and one whose executor is busy for longer than the wait
goes elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import simpy

from .clock import Part, Rank, control

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

LATE = 10**6  # after the tasks' own events of the same instant
NEVER = 10**18
Process = tuple["Executor", int]


@dataclass(eq=False)
class Executor:
    """A process; a new one in its place has another number."""

    home: tuple[int, int]  # host, worker
    index: int
    process: int = 0
    up: bool = True
    known: bool = True  # if it is dead: the driver knows
    warm: bool = True
    store: bool = True
    outage: int = -1
    running: int = 0
    stopped: int = 0  # until then

    @property
    def now(self) -> Process:
        """This process of it."""
        return (self, self.process)

    def kill(self, outage: int) -> None:
        self.process += 1
        self.up, self.known, self.outage = False, False, outage
        self.running = self.stopped = 0

    def replace(self) -> None:
        self.up = self.known = True
        self.warm = self.store = False


@dataclass(eq=False)
class Job:
    """What one bolt task has to do in a batch, and where its state is."""

    task: Task
    home: Process | None
    stateful: bool
    work: int = 0  # service of its tuples
    rows: int = 0  # of its state, after the batch
    spoilt: int = 0  # how often its state was lost while its process lived
    loaded: int = 0  # the same when it was loaded last
    stopped: bool = False  # a fault of its own keeps it from running
    stop_life: int = 0
    ran: Process | None = None
    running: int = 0  # number of the attempt
    end: simpy.Event | None = None
    finished: bool = True
    after: int = 0  # not before
    again: int | None = None  # number of the fault because of which it runs again in this batch
    lost_by: int | None = None  # number of the fault that took its state
    loading_until: int | None = None
    saved_rows: int = (
        0  # with lineage: of the newest state that was written, and the work of the batches since
    )
    since_saved: int = 0


def alive(process: Process | None) -> bool:
    return process is not None and process[0].process == process[1]


class Scheduler(Part):
    """All tasks of a stage have to end before the next begins; ``done`` is called after the last one."""

    def __init__(self, world: World, done: Callable[[], None]) -> None:
        super().__init__(world)
        self.done = done
        self.params: Any = world.layout.scenario.strategy
        self.lineage = getattr(self.params, "recovery", None) == "lineage"
        bolts = world.bolts
        order = sorted({task.home for task in bolts})
        self.executors = [Executor(home, index) for index, home in enumerate(order)]
        self.own = {task: self.executors[order.index(task.home)] for task in bolts}
        self.jobs = {task: Job(task, self.own[task].now, task.stateful) for task in bolts}
        self.on = False  # a batch is run
        self.writes = True  # its states
        self.headless = False  # the driver is dead
        self.begun = False  # tasks of the batch that is not committed have run, or run
        self.attempts = 0
        self.stage: list[Job] = []
        self.since = 0
        self.preferred: dict[Job, Process | None] = {}

    def run(self, shares: dict[Task, tuple[int, int]], writes: bool) -> None:
        """Run all stages; ``shares`` are service and rows of each task; ``writes``: states, too."""
        self.writes = writes
        for task, job in self.jobs.items():
            job.work, job.rows = shares[task]
            job.finished, job.running, job.ran, job.after = False, 0, None, 0
        self.on, self.begun, self.stage = True, True, []
        self._go_on()

    def _stages(self) -> list[list[Job]]:
        """Jobs by component, in topological order."""
        names = [name for name in self.layout.order if name not in self.layout.spouts]
        return [[job for job in self.jobs.values() if job.task.component == name] for name in names]

    def _go_on(self) -> None:
        """Whatever can run now does."""
        if not self.on:
            return
        left = [stage for stage in self._stages() if any(not job.finished for job in stage)]
        if not left:
            self.on = False
            self.done()
            return
        now = self.now
        if self.stage != left[0]:
            self.stage, self.since = left[0], now
            self.preferred = {job: job.home for job in self.stage if not job.finished}
        for job in self.stage:
            if job.finished or job.running or job.stopped or job.after > now:
                continue
            executor = self._where(job)
            if executor is not None:
                lost = [up for up in self._read_by(job) if up.finished and not alive(up.ran)]
                if lost:
                    for up in lost:
                        self._again(up, now + self.params.resubmit_time)
                    return
                self._run_job(job, executor)

    def _read_by(self, job: Job) -> list[Job]:
        """The jobs whose results a job reads."""
        ups = self.layout.inputs(job.task.component)
        return [other for other in self.jobs.values() if other.task.component in ups]

    def _where(self, job: Job) -> Executor | None:
        free = [e for e in self.executors if e.up and e.running < self.params.cores]
        if not job.stateful:
            return min(free, key=lambda e: (e.running, e.index)) if free else None
        if job.home is not None:
            home = job.home[0]
            if alive(job.home):
                return home if home in free else None
            if not home.known:
                return None
            end = self.since + self.params.locality_wait
            others = [process for other, process in self.preferred.items() if other is not job]
            waits = not self.lineage and any(alive(process) for process in others)
            if end > self.now and waits:
                self._wake(end)
                return None
        states = [other.home for other in self.jobs.values() if other.stateful]
        return min(free, key=lambda e: (states.count(e.now), e.running, e.index)) if free else None

    def _wake(self, time: int) -> None:
        self.clock.at(time, control(Rank.BATCH, LATE), self._go_on)

    def _again(self, job: Job, time: int) -> None:
        job.finished, job.after = False, time
        if job.ran is not None:
            job.again = job.ran[0].outage
        self._wake(time)

    def _cold(self, job: Job, executor: Executor) -> int:
        """What starts with the job: the executor, a worker for jobs without state, a store for the others."""
        p, ready = self.params, executor.store if job.stateful else executor.warm
        if ready:
            return 0
        if p.worker_cold is None:
            first = 0 if executor.warm else p.executor_cold
            return max(first, p.state_cold) if job.stateful else first
        started = executor.warm or executor.store
        rest = 0 if started else max(0, p.executor_cold - p.worker_cold)
        return rest + (p.state_cold if job.stateful else p.worker_cold)

    def _run_job(self, job: Job, executor: Executor) -> None:
        p, now = self.params, self.now
        cold, reload = self._cold(job, executor), 0
        time = cold + p.task_time + job.work
        load = (
            job.home is not None and job.stateful and (job.home != executor.now or job.loaded != job.spoilt)
        )
        spoilt, lost_by = job.spoilt, job.lost_by
        if job.stateful:
            time += (p.state_time + job.rows * p.state_cost) if self.writes else 0
            job.home = executor.now
            if load:
                rows = job.saved_rows if self.lineage else job.task.state.entries
                reload = p.reload_time + rows * p.reload_cost + job.since_saved
                time += reload
                job.loaded = -1
        self.attempts += 1
        job.running, job.ran = self.attempts, executor.now
        executor.running += 1
        self.since = now
        attempt = self.attempts

        def end() -> None:
            if job.running == attempt:
                job.running, job.finished = 0, True
                if load:
                    job.loaded = spoilt
                    self.world.outages.restored(lost_by, len(job.task.state.held), job.loading_until)
                executor.running -= 1
                executor.warm = executor.warm or not job.stateful
                executor.store = executor.store or job.stateful
                self._go_on()

        start = max(now, executor.stopped)
        job.loading_until = start + cold + reload
        for up in self._read_by(job):
            parted = self.world.cuts.parted_until(up.ran[0].home[0], executor.home[0])
            start = max(start, parted - cold - reload)  # it has what it reads then
        job.end = self.clock.at(start + time, control(Rank.BATCH, job.task.rank), end)

    def hit(self, fault: Any) -> list[Executor]:
        """Those that a fault of a worker, a host or a rack takes down."""
        return [executor for executor in self.executors if self.layout.fails(fault, *executor.home)]

    def _executor_of(self, job: Job) -> Executor:
        """Where a job runs or its state is; else that of its worker."""
        if job.running and job.ran is not None and alive(job.ran):
            return job.ran[0]
        if job.stateful and job.home is not None and alive(job.home):
            return job.home[0]
        return self.own[job.task]

    def pause(self, job: Job, until: int) -> None:
        """The executor of a job does nothing until then."""
        executor = self._executor_of(job)
        shift = until - max(self.now, executor.stopped)
        if executor.up and shift > 0:
            executor.stopped = until
            for job in self.jobs.values():
                if job.running and job.ran == executor.now:
                    job.end = self.clock.postpone(job.end, shift)
                    if job.loading_until is not None and job.loading_until > self.now:
                        job.loading_until += shift

    def kill(
        self,
        executor: Executor,
        outage: int,
        noticed: int,
        ready: int,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """An executor dies; at ``ready`` there is a new one, and ``then`` is called."""
        hit = [job for job in self.jobs.values() if job.running and job.ran == executor.now]
        for job in self.jobs.values():
            if job.stateful and job.home == executor.now:
                job.lost_by = outage
        executor.kill(outage)
        for job in hit:
            job.running, job.again, job.after = 0, outage, NEVER

        def notice() -> None:
            if executor.outage != outage or executor.up:
                return
            executor.known = True
            self._others_take_over()
            if self.on:
                current = next(s for s in self._stages() if any(not job.finished for job in s))
                for job in self.jobs.values():
                    lost = job.ran is not None and job.ran[0] is executor and not alive(job.ran)
                    if (lost and not job.finished and job.after == NEVER) or (
                        lost and job.finished and job in current and self.layout.down[job.task.component]
                    ):
                        self._again(job, self.now)
            self._go_on()

        def back() -> None:
            if executor.outage == outage and not executor.up:
                executor.replace()
                self._others_take_over()
                self._go_on()
                then()

        self.clock.at(noticed, control(Rank.FAULT, LATE + executor.index), notice)
        self.clock.at(ready, control(Rank.READY, executor.index + 1), back)

    def _others_take_over(self) -> None:
        """If an executor lives, and a driver, nobody waits any more for those that are known to be dead."""
        if not self.headless and any(executor.up for executor in self.executors):
            for executor in self.executors:
                if executor.known:
                    self.world.outages.back(executor)

    def fail(self, job: Job, kind: str, ready: int, outage: int) -> None:
        """A task alone fails."""
        if kind == "lose_state":
            job.spoilt += 1
            job.lost_by = outage
            if ready == self.now and not job.stopped:
                self.clock.at(ready, control(Rank.READY, job.task.rank), lambda: self._is_back(job))
                return
        job.stopped = True
        job.stop_life += 1
        life = job.stop_life
        if job.running:
            job.ran[0].running -= 1
            job.running, job.again = 0, outage
            self._wake(self.now)

        def back() -> None:
            if job.stop_life == life:
                job.stopped = False
                self._is_back(job)
                self._go_on()

        self.clock.at(ready, control(Rank.READY, job.task.rank), back)

    def _is_back(self, job: Job) -> None:
        if not job.stopped:
            self.world.outages.back(job)

    def forget(self) -> None:
        """The query has stopped: nothing runs any more, and no state is anywhere."""
        self.on = self.begun = False
        for job in self.jobs.values():
            if job.running and job.ran is not None and alive(job.ran):
                executor = job.ran[0]
                executor.running -= 1
                if not job.stateful and self.params.worker_cold is not None:
                    executor.warm = False
            job.running, job.home, job.loaded = 0, None, job.spoilt

    def die(self, outage: int) -> None:
        """The driver takes all of it with it."""
        for job in self.jobs.values():
            job.lost_by = outage
        self.on, self.headless = False, True
        for executor in self.executors:
            executor.kill(outage)

    def replace_all(self) -> None:
        self.headless = False
        for executor in self.executors:
            executor.replace()
        self._others_take_over()
        self.world.outages.back("driver")
