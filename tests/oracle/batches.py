"""Micro-batches: a log, one batch after the other, a driver that can die."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tideover.sim.registry import kind_of

from .channels import Message
from .clock import Rank, control
from .executors import Executor, Job, Scheduler
from .layout import MACHINES, Datum
from .protocol import Protocol
from .rehearsal import Rehearsal, end_batch
from .states import State

if TYPE_CHECKING:
    from .outages import Outage
    from .program import World
    from .tasks import Task

DRIVER = 10**7  # after the executors' events of the same instant


@dataclass
class Batch:
    """Its messages by the task that reads them, and what each task has to do."""

    content: dict[Task, list[Message]]
    writes: bool  # its states
    logged: bool = False
    shares: dict[Task, tuple[int, int]] = field(default_factory=dict)
    before: dict[Task, tuple[State, int]] | None = None  # states before its results came out
    out: dict[Task, set[int]] = field(default_factory=dict)  # numbers of the windows that were out then
    shown_at: int | None = None  # for the first time


class MicroBatches(Protocol):
    """micro_batch, with checkpoints."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: dict[Task, list[Message]] = {}
        self.batch: Batch | None = None
        self.life, self.cold = 0, False
        self.triggered = 0
        self.newest = -1  # number of the newest fault
        self.lineage = getattr(self.params, "recovery", None) == "lineage"
        self.next_checkpoint = self.params.checkpoint_interval if self.lineage else 0
        self.visible: list[int] = []  # when the results of each committed batch came out first

    def start(self) -> None:
        self.scheduler = Scheduler(self.world, self._stages_done)
        self._at(0, self._trigger)

    @property
    def jobs(self) -> dict[Task, Job]:
        return self.scheduler.jobs

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
            writes = not self.lineage or now >= self.next_checkpoint
            self.batch, self.log = Batch(self.log, writes), {}
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
        assert self.batch is not None
        shares, writes = self.batch.shares, self.batch.writes
        self._in(self.params.cold_time if self.cold else 0, lambda: self.scheduler.run(shares, writes))

    def _stages_done(self) -> None:
        self._in(self.params.output_time, self._results)

    def _results(self) -> None:
        """All of the batch takes effect, through all tasks, at this instant."""
        assert self.batch is not None
        if self.batch.shown_at is None:
            self.batch.shown_at = self.world.clock.now
        self.batch.before = {task: (task.state.copy(), task.windows_closed) for task in self.jobs}
        self.batch.out = {task: self._windows_out(task) for task in self.jobs}
        for task, messages in self.batch.content.items():
            task.requeue(messages)
        self._in(0, partial(end_batch, list(self.jobs)))
        self._in(self.params.commit_time, self._commit)

    def _commit(self) -> None:
        assert self.batch is not None
        assert self.batch.shown_at is not None
        self.visible.append(self.batch.shown_at)
        if self.lineage:
            self._note_lineage(self.batch.writes)
        self.batch, self.cold, self.scheduler.begun = None, False, False
        for job in self.jobs.values():
            job.again = None
        self._at(max(self.world.clock.now, self._next()), self._trigger)

    def _note_lineage(self, written: bool) -> None:
        """What it would take to compute each state again, from the newest that was written."""
        for job in self.jobs.values():
            if written:
                job.saved_rows, job.since_saved = job.rows, 0
            else:
                job.since_saved += self.params.task_time + job.work
        if written:
            interval, now = self.params.checkpoint_interval, self.world.clock.now
            self.next_checkpoint = now - now % interval + interval

    def served(self, task: Any, message: Message) -> None:
        if message.datum is not None and message.datum.anchored and self.is_read_again(task, message.datum):
            self.world.ledger.replayed.add(message.datum.root)

    def is_read_again(self, task: Task, datum: Datum) -> bool:
        return self.jobs[task].again is not None

    def because(self, task: Task, message: Message) -> int | None:
        return self.jobs[task].again

    def _resume(self) -> None:
        if self.batch is None:
            self._trigger()
        else:
            self.triggered = self.world.clock.now
            self._run()

    def put_back(self, content: dict[Task, list[Message]]) -> None:
        """What a batch had taken from the log."""
        for task, messages in content.items():
            self.log[task] = messages + self.log.get(task, [])

    # -- faults --------------------------------------------------------------------------------------------

    def spares(self, task: Task) -> bool:
        return task not in self.world.spouts

    def hit(self, fault: Any) -> list[Hashable]:
        if kind_of(fault) in MACHINES:
            return [*self.scheduler.hit(fault)]
        return ["driver"] if fault.component == "driver" else [*self.jobs_hit(fault)]

    def struck(self, fault: Any) -> None:
        self.newest += 1
        now = self.world.clock.now
        if kind_of(fault) == "pause":
            for job in self.jobs_hit(fault):
                self.scheduler.pause(job, now + fault.duration)
        elif fault.kills:
            ready = now + max(fault.detection + fault.restart, fault.out_of_order)
            self.fails(fault, now + fault.detection, ready)

    def jobs_hit(self, fault: Any) -> list[Job]:
        hit = fault.component, fault.task, fault.replica
        return [job for task, job in self.jobs.items() if task.physical == hit]

    def fails(self, fault: Any, noticed: int, ready: int) -> None:
        """Something is killed, or a state lost."""
        if kind_of(fault) in MACHINES:
            for executor in self.scheduler.hit(fault):
                self.scheduler.kill(executor, self.newest, noticed, ready)
        elif fault.component == "driver":
            self._driver_dies(ready)
        else:
            for job in self.jobs_hit(fault):
                self.scheduler.fail(job, kind_of(fault), ready, self.newest)

    def _driver_dies(self, ready: int) -> None:
        self.life += 1
        self.scheduler.die(self.newest)
        batch = self.batch
        if batch is not None:
            for job in self.jobs.values():
                if self.scheduler.begun and job.ran is not None:
                    job.again = self.newest
                job.running = 0
            if not batch.logged:
                self.batch = None
                self.put_back(batch.content)
            elif batch.before is not None:
                self._undo(batch)
        self.scheduler.begun, life = False, self.life

        def back() -> None:
            if self.life == life:
                self.cold = True
                self.scheduler.replace_all()
                for job in (job for job in self.jobs.values() if job.stopped):
                    job.stopped = False
                    self.world.outages.back(job)
                self._in(self.params.recovery_time, self._resume)

        self.world.clock.at(ready, control(Rank.READY), back)

    def _undo(self, batch: Batch) -> None:
        """Back to the states before the batch; what it has put out is not taken twice."""
        assert batch.before is not None
        for task, (state, windows) in batch.before.items():
            task.state, task.windows_closed = state.copy(), windows
        for task in self.jobs:
            self._reopen(task, lambda number, task=task: number not in batch.out[task])
        batch.before = None
        gone = set()
        for task, messages in batch.content.items():
            for message in messages:
                self.world.record.there(message.datum)
                if message.datum is not None and message.datum.anchored:
                    gone |= self.world.layout.effects(task.component, message.datum)
        for task in self.jobs:
            out = self.world.ledger.out.get(task.physical, {})
            if None in out:
                out[None] = [effect for effect in out[None] if effect not in gone]

    def _windows_out(self, task: Task) -> set[int]:
        """Numbers of the windows that it has put out."""
        return {number for number in self.world.ledger.out.get(task.physical, {}) if number is not None}

    def _reopen(self, task: Task, which: Callable[[int], bool]) -> None:
        """These of its windows are put out again, and until then they are not out."""
        for number in filter(which, self._windows_out(task)):
            self.world.ledger.reopened(task, number)

    def tasks_of(self, thing: Hashable) -> list[Task]:
        if isinstance(thing, Job):
            return [thing.task]
        if isinstance(thing, Executor):
            return [
                job.task for job in self.jobs.values() if thing.now == (job.home if job.stateful else job.ran)
            ]
        return [*self.jobs]

    # -- figures -------------------------------------------------------------------------------------------

    def settled(self, outage: Outage) -> bool:
        """No task runs again because of it."""
        return all(job.again != outage.number for job in self.jobs.values())

    def is_busy(self, task: Task) -> bool:
        return bool(self.jobs[task].running) if task in self.jobs else task.busy

    def kept_for_replay(self) -> int:
        """What the log has that was not committed."""
        return sum(map(self._size, self.contents()))

    @staticmethod
    def _size(content: dict[Task, list[Message]]) -> int:
        return sum(map(len, content.values()))

    def beat(self) -> int:
        """The median distance of two batches' results."""
        gaps = sorted(after - before for before, after in pairwise(self.visible))
        if not gaps:
            return 0
        middle = len(gaps) // 2
        return gaps[middle] if len(gaps) % 2 else (gaps[middle - 1] + gaps[middle]) // 2

    # -- the end -------------------------------------------------------------------------------------------

    def contents(self) -> list[dict[Task, list[Message]]]:
        """What the log has for the query: that was not read yet, or is in a batch that is not committed."""
        return [self.log] + ([self.batch.content] if self.batch is not None else [])

    def elsewhere(self) -> list[tuple[str, Datum]]:
        return [
            (task.component, message.datum)
            for content in self.contents()
            for task, messages in content.items()
            for message in messages
            if message.datum is not None and message.datum.anchored
        ]
