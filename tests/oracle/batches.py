"""Micro-batches: a log, one batch after the other, executors that run its tasks, a driver that can die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .clock import Rank, control
from .layout import Datum
from .protocol import Protocol
from .tasks import Message, State

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

LATE = 10**6  # after the tasks' own events of the same instant
DRIVER = 10**7  # after the executors'
NEVER = 10**18
Place = tuple[str, int]  # component, task


@dataclass(eq=False)
class Executor:
    """A process; a new one in its place has another number."""

    host: int
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
    def now(self) -> tuple[Executor, int]:
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
    home: tuple[Executor, int] | None
    stateful: bool
    work: int = 0  # service of its tuples
    rows: int = 0  # of its state, after the batch
    spoilt: int = 0  # how often its state was lost while its process lived
    loaded: int = 0  # the same when it was loaded last
    stopped: bool = False  # a fault of its own keeps it from running
    stop_life: int = 0
    ran: tuple[Executor, int] | None = None
    running: int = 0  # number of the attempt
    end: simpy.Event | None = None
    finished: bool = True
    after: int = 0  # not before
    again: bool = False


def alive(process: tuple[Executor, int] | None) -> bool:
    return process is not None and process[0].process == process[1]


@dataclass
class Batch:
    """Its messages by the task that reads them, and what each task has to do."""

    content: dict[Task, list[Message]]
    logged: bool = False
    shares: dict[Task, tuple[int, int]] = field(default_factory=dict)
    before: dict[Task, tuple[State, int]] | None = None  # states before its results came out


class MicroBatches(Protocol):
    """micro_batch."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: dict[Task, list[Message]] = {}
        self.batch: Batch | None = None
        self.up, self.life, self.cold = True, 0, False
        self.triggered = 0
        self.attempts = 0
        self.outages = 0
        self.stages_on = False
        self.begun = False  # tasks of the batch have run, or run
        self.stage: list[Job] = []
        self.since = 0
        self.preferred: dict[Job, tuple[Executor, int] | None] = {}
        self.keeps = self.params.recovery == "checkpoint"
        self.kept: dict[Task, list[Message]] = {}  # without checkpoints: what may have to be read again
        self.broken: dict[Any, int] = {}  # what keeps the query from starting anew, and since which outage
        self.halted = False
        self.reread: set[int] | None = None  # roots that are read again; None: the query does not start anew

    def start(self) -> None:
        bolts = [task for task in self.world.tasks if task not in self.world.spouts]
        host = self.world.layout.host
        hosts = sorted({host[task.physical] for task in bolts})
        self.executors = [Executor(host, index) for index, host in enumerate(hosts)]
        self.jobs = {
            task: Job(
                task,
                self.executors[hosts.index(host[task.physical])].now,
                self.world.layout.stateful(task.component),
            )
            for task in bolts
        }
        self._at(0, self._trigger)

    def _at(self, time: int, act: Callable[[], None]) -> None:
        """The driver does it then, unless it dies before."""
        life = self.life
        self.world.clock.at(time, control(Rank.BATCH, DRIVER), lambda: act() if life == self.life else None)

    def _in(self, delay: int, act: Callable[[], None]) -> None:
        self._at(self.world.clock.now + delay, act)

    # -- the log -------------------------------------------------------------------------------------------

    def admit(self, task: Task, message: Message) -> bool:
        if message.channel.up not in self.world.spouts:
            return True
        self.log.setdefault(task, []).append(message)
        return False

    # -- a batch -------------------------------------------------------------------------------------------

    def _trigger(self) -> None:
        now = self.triggered = self.world.clock.now
        if self.log:
            self.batch, self.log = Batch(self.log), {}
            self._in(self.params.plan_time, self._begin)
        elif self.params.trigger_interval:
            self._at(self._next(), self._trigger)
        else:
            self._at(now + self.params.poll_interval, self._trigger)

    def _next(self) -> int:
        interval = self.params.trigger_interval
        return self.triggered - self.triggered % interval + interval if interval else 0

    def _begin(self) -> None:
        """From here on the batch will be run, come what may."""
        assert self.batch is not None
        self.batch.logged = True
        self.batch.shares = Rehearsal(self.world).play(self.batch.content)
        self._run()

    def _run(self) -> None:
        self._in(self.params.cold_time if self.cold else 0, self._run_stages)

    def _run_stages(self) -> None:
        assert self.batch is not None
        for task, job in self.jobs.items():
            job.work, job.rows = self.batch.shares[task]
            job.finished, job.running, job.ran, job.after = False, 0, None, 0
        self.stages_on, self.begun, self.stage = True, True, []
        self._go_on()

    def _stages(self) -> list[list[Job]]:
        """Jobs by component, in topological order."""
        names = [name for name in self.world.layout.order if name not in self.world.layout.spouts]
        return [[job for job in self.jobs.values() if job.task.component == name] for name in names]

    def _go_on(self) -> None:
        """Whatever can run now does."""
        if not self.stages_on:
            return
        left = [stage for stage in self._stages() if any(not job.finished for job in stage)]
        if not left:
            self.stages_on = False
            self._in(self.params.output_time, self._results)
            return
        now = self.world.clock.now
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
        ups = self.world.layout.inputs(job.task.component)
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
            if end > self.world.clock.now and any(alive(process) for process in others):
                self._wake(end)
                return None
        states = [other.home for other in self.jobs.values() if other.stateful]
        return min(free, key=lambda e: (states.count(e.now), e.running, e.index)) if free else None

    def _wake(self, time: int) -> None:
        self.world.clock.at(time, control(Rank.BATCH, LATE), self._go_on)

    def _again(self, job: Job, time: int) -> None:
        job.finished, job.after, job.again = False, time, True
        self._wake(time)

    def _run_job(self, job: Job, executor: Executor) -> None:
        p, now = self.params, self.world.clock.now
        time = p.task_time + job.work
        if not job.stateful:
            time += 0 if executor.warm else p.executor_cold
        elif not executor.store:
            time += p.state_cold if executor.warm else max(p.executor_cold, p.state_cold)
        load = (
            job.home is not None and job.stateful and (job.home != executor.now or job.loaded != job.spoilt)
        )
        spoilt = job.spoilt
        if job.stateful:
            time += p.state_time + job.rows * p.state_cost
            job.home = executor.now
            if load:
                time += p.reload_time + job.task.state.entries * p.reload_cost
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
                executor.running -= 1
                executor.warm = executor.warm or not job.stateful
                executor.store = executor.store or job.stateful
                self._go_on()

        start = max(now, executor.stopped)
        job.end = self.world.clock.at(start + time, control(Rank.BATCH, job.task.rank), end)

    def _results(self) -> None:
        """All of the batch takes effect, through all tasks, at this instant."""
        assert self.batch is not None
        self.batch.before = {task: (task.state.copy(), task.windows_closed) for task in self.jobs}
        for task, messages in self.batch.content.items():
            task.requeue(messages)
            if not self.keeps:
                self.kept[task] = self.kept.get(task, []) + messages
        self._in(self.params.commit_time, self._commit)

    def _commit(self) -> None:
        self.batch, self.cold, self.begun, self.reread = None, False, False, None
        if not self.keeps:
            self._forget_before(self._unfinished())
        for job in self.jobs.values():
            job.again = False
        self._at(max(self.world.clock.now, self._next()), self._trigger)

    def served(self, task: Any, message: Message) -> None:
        if message.datum is None or not message.datum.anchored:
            return
        if self.jobs[task].again if self.keeps else message.datum.root in (self.reread or ()):
            self.world.ledger.replayed.add(message.datum.root)

    # -- faults --------------------------------------------------------------------------------------------

    def spares(self, task: Task) -> bool:
        return task not in self.world.spouts

    def struck(self, fault: Any) -> None:
        self.outages += 1
        now, kind = self.world.clock.now, kind_of(fault)
        ready = now + fault.detection + fault.restart
        if kind == "pause":
            for task, job in self.jobs.items():
                if task.physical == (fault.component, fault.task, fault.replica):
                    self._stop(self._executor_of(job), now + fault.duration)
        elif not self.keeps:
            self._stop_query(fault, now + fault.detection, ready)
        elif kind == "crash_host":
            for executor in self.executors:
                if executor.host == fault.host:
                    self._kill(executor, now + fault.detection, ready)
        elif fault.component == "driver":
            self._driver_dies(ready)
        else:
            for task, job in self.jobs.items():
                if task.physical == (fault.component, fault.task, fault.replica):
                    self._job_fails(job, kind, ready)

    def _executor_of(self, job: Job) -> Executor:
        """Where a job runs or its state is; else that of its host."""
        if job.running and job.ran is not None and alive(job.ran):
            return job.ran[0]
        if job.stateful and job.home is not None and alive(job.home):
            return job.home[0]
        host = self.world.layout.host[job.task.physical]
        return next(executor for executor in self.executors if executor.host == host)

    def _stop(self, executor: Executor, until: int) -> None:
        shift = until - max(self.world.clock.now, executor.stopped)
        if executor.up and shift > 0:
            executor.stopped = until
            for job in self.jobs.values():
                if job.running and job.ran == executor.now:
                    job.end = self.world.clock.postpone(job.end, shift)

    def _kill(self, executor: Executor, noticed: int, ready: int) -> None:
        hit = [job for job in self.jobs.values() if job.running and job.ran == executor.now]
        executor.kill(self.outages)
        outage = self.outages
        for job in hit:
            job.running, job.again, job.after = 0, True, NEVER

        def notice() -> None:
            if executor.outage != outage or executor.up:
                return
            executor.known = True
            if self.stages_on:
                current = next(s for s in self._stages() if any(not job.finished for job in s))
                for job in self.jobs.values():
                    lost = job.ran is not None and job.ran[0] is executor and not alive(job.ran)
                    if (lost and not job.finished and job.after == NEVER) or (
                        lost
                        and job.finished
                        and job in current
                        and self.world.layout.down[job.task.component]
                    ):
                        self._again(job, self.world.clock.now)
            self._go_on()

        def back() -> None:
            if executor.outage == outage and not executor.up:
                executor.replace()
                self._go_on()
                self._start_if_possible()

        self.world.clock.at(noticed, control(Rank.FAULT, LATE + executor.index), notice)
        self.world.clock.at(ready, control(Rank.READY, executor.index + 1), back)

    def _driver_dies(self, ready: int) -> None:
        self.up, self.life, self.stages_on = False, self.life + 1, False
        for executor in self.executors:
            executor.kill(self.outages)
        batch = self.batch
        if batch is not None:
            for job in self.jobs.values():
                job.again = job.again or (self.begun and job.ran is not None)
                job.running = 0
            if not batch.logged:
                self.batch = None
                for task, messages in batch.content.items():
                    self.log[task] = messages + self.log.get(task, [])
            elif batch.before is not None:
                self._undo(batch)
        self.begun, life = False, self.life

        def back() -> None:
            if self.life == life:
                self.up = self.cold = True
                for executor in self.executors:
                    executor.replace()
                for job in self.jobs.values():
                    job.stopped = False
                self._in(self.params.recovery_time, self._resume)

        self.world.clock.at(ready, control(Rank.READY), back)

    def _resume(self) -> None:
        if self.batch is None:
            self._trigger()
        else:
            self.triggered = self.world.clock.now
            self._run()

    # -- without checkpoints -------------------------------------------------------------------------------

    def _unfinished(self) -> int:
        """The oldest window without an end, less one; 0: from the beginning."""
        layout = self.world.layout
        windows = [task.window for task in self.jobs if layout.stateful(task.component)]
        if not windows or any(window.tuples is not None for window in windows):
            return 0
        newest = [
            task.state.markers.get(channel.up.logical, 0)
            for task in self.jobs
            for channel in task.inputs.values()
        ]
        return min(newest)

    def _forget_before(self, window: int) -> None:
        if window:
            for task, messages in self.kept.items():
                self.kept[task] = [m for m in messages if self._belongs(m, window)]

    @staticmethod
    def _belongs(message: Message, window: int) -> bool:
        if message.datum is not None:
            return message.datum.epoch >= window
        assert message.marker is not None
        return message.marker > window

    def _stop_query(self, fault: Any, noticed: int, ready: int) -> None:
        """Whatever fails, the query stops, and starts without state when all that has failed is back."""
        if kind_of(fault) == "crash_host":
            for executor in self.executors:
                if executor.host == fault.host:
                    self._kill(executor, noticed, ready)
                    self._start_over(executor, executor.index + 1, noticed)
        elif fault.component == "driver":
            for executor in self.executors:
                executor.kill(self.outages)
            self._start_over("driver", 0, ready)
        else:
            for task, job in self.jobs.items():
                if task.physical == (fault.component, fault.task, fault.replica):
                    self._start_over(job, task.rank, ready)

    def _start_over(self, what: Any, rank: int, ready: int) -> None:
        self.life, self.stages_on, self.begun, self.halted = self.life + 1, False, False, True
        for job in self.jobs.values():
            if job.running and alive(job.ran):
                job.ran[0].running -= 1
            job.running, job.home, job.loaded = 0, None, job.spoilt
        batch, self.batch = self.batch, None
        window = self._unfinished()
        self._forget_before(window)
        messages = [m for kept in self.kept.values() for m in kept]
        if batch is not None and batch.before is None:
            for task, content in batch.content.items():
                self.log[task] = content + self.log.get(task, [])
                messages += content if batch.logged else []
        for task, kept in self.kept.items():
            if kept:
                self.log[task] = kept + self.log.get(task, [])
        self.kept = {}
        roots = {m.datum.root for m in messages if m.datum is not None and m.datum.anchored}
        self.reread = (self.reread or set()) | roots
        for task in self.jobs:
            ups = {channel.up.logical: window for channel in task.inputs.values()} if window else {}
            task.state, task.windows_closed = State(markers=ups, handed=window), 0
        outage = self.broken[what] = self.outages

        def back() -> None:
            if self.broken.get(what) != outage:
                return
            if what == "driver":
                for executor in self.executors:
                    executor.replace()
            del self.broken[what]
            self._start_if_possible()

        self.world.clock.at(ready, control(Rank.READY, rank), back)

    def _start_if_possible(self) -> None:
        """Nothing keeps it, and an executor lives."""
        if self.halted and not self.broken and any(executor.up for executor in self.executors):
            self.halted, self.cold = False, True
            self._in(self.params.recovery_time, self._resume)

    # -- what both do --------------------------------------------------------------------------------------

    def _undo(self, batch: Batch) -> None:
        """Back to the states before the batch; what it has put out is not taken twice."""
        assert batch.before is not None
        for task, (state, windows) in batch.before.items():
            task.state, task.windows_closed = state.copy(), windows
        batch.before = None
        gone = set()
        for task, messages in batch.content.items():
            for message in messages:
                if message.datum is not None and message.datum.anchored:
                    gone |= self.world.layout.effects(task.component, message.datum)
        for task in self.jobs:
            out = self.world.ledger.out.get(task.physical, {})
            if None in out:
                out[None] = [effect for effect in out[None] if effect not in gone]

    def _job_fails(self, job: Job, kind: str, ready: int) -> None:
        if kind == "lose_state":
            job.spoilt += 1
            if ready == self.world.clock.now and not job.stopped:
                return
        job.stopped = True
        job.stop_life += 1
        life = job.stop_life
        if job.running:
            assert job.ran is not None
            job.ran[0].running -= 1
            job.running, job.again = 0, True
            self._wake(self.world.clock.now)

        def back() -> None:
            if job.stop_life == life:
                job.stopped = False
                self._go_on()

        self.world.clock.at(ready, control(Rank.READY, job.task.rank), back)

    # -- the end -------------------------------------------------------------------------------------------

    def elsewhere(self) -> list[tuple[str, Datum]]:
        contents = [self.log, self.kept] + ([self.batch.content] if self.batch is not None else [])
        return [
            (task.component, message.datum)
            for content in contents
            for task, messages in content.items()
            for message in messages
            if message.datum is not None and message.datum.anchored
        ]


class Rehearsal:
    """Walks a batch through copies of all states, without time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.coming: dict[Place, list[tuple[Any, Datum | int]]] = {}

    def play(self, content: dict[Task, list[Message]]) -> dict[Task, tuple[int, int]]:
        """Service and rows of the state afterwards, for each bolt task."""
        shares = {}
        for task in self.world.tasks:
            if task in self.world.spouts:
                continue
            items = [
                (message.channel.up.logical, message.marker if message.datum is None else message.datum)
                for message in content.get(task, [])
            ]
            shares[task] = self._pass(task, items + self.coming.get(task.logical, []))
        return shares

    def _pass(self, task: Any, items: list[tuple[Any, Any]]) -> tuple[int, int]:
        layout, name = self.world.layout, task.component
        state, closed, work = task.state.copy(), task.windows_closed, 0
        for up, item in items:
            if isinstance(item, Datum):
                service = layout.config[name].service
                work += layout.sample(service, name, Purpose.SERVICE, item.uid, item.attempt)
                if not layout.stateful(name):
                    for child in layout.children(name, item) if layout.down[name] else []:
                        self._send(task, child)
                    continue
                cell = item.epoch, item.key
                state.counts[cell] = state.counts.get(cell, 0) + item.value
                state.tuples += 1
                if task.window.tuples == state.tuples:
                    closed += 1
                    self._close(task, state, closed, None)
                continue
            state.markers[up] = max(item, state.markers.get(up, 0))
            least = min(state.markers.get(channel.up.logical, 0) for channel in task.inputs.values())
            if least > state.handed:
                if layout.stateful(name) and task.window.tuples is None:
                    self._close(task, state, least, least)
                state.handed = least
                for down in layout.down[name]:
                    for other in range(layout.config[down].parallelism):
                        self.coming.setdefault((down, other), []).append((task.logical, least))
        return work, state.entries if layout.stateful(name) else 0

    def _close(self, task: Any, state: State, number: int, before: int | None) -> None:
        ended = {c: n for c, n in state.counts.items() if before is None or c[0] < before}
        state.counts = {c: n for c, n in state.counts.items() if c not in ended}
        state.tuples = 0
        for key, value in sorted(State(ended).keys().items()):
            layout = self.world.layout
            self._send(task, layout.aggregate(task.component, task.index, number, key, value, state.handed))

    def _send(self, task: Task, datum: Datum) -> None:
        layout = self.world.layout
        for down in layout.down[task.component]:
            for other, crossed in layout.cross(task.component, down, datum):
                self.coming.setdefault((down, other), []).append((task.logical, crossed))
