"""Micro-batches: a log, one batch after the other, a driver that can die; what a batch asks of its tasks
is found by walking it through copies of all states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .bolts import Bolt
from .channels import Message
from .clock import Part, Rank, control
from .executors import Executor, Job, Scheduler
from .layout import MACHINES, Datum, Logical
from .making import TICK, Maker
from .protocol import Protocol, median_gap
from .tasks import State

if TYPE_CHECKING:
    from .planned import PlannedStop
    from .program import World
    from .record import Outage
    from .tasks import Task


def end_batch(tasks: list[Any]) -> None:
    """All of a batch has passed: windows by event that have ended by its watermark are put out; then the
    watermark follows the newest events that any task of a bolt has had.
    """
    for name in dict.fromkeys(task.component for task in tasks):
        mine = [task for task in tasks if task.component == name]
        layout = mine[0].world.layout
        if not (layout.stateful(name) and layout.by_event(name)):
            continue
        for task in mine:
            before, task.state.ended = task.state.ended, task.state.watermark
            task.close_due(layout.panes(name), before)
        newest: dict[str, int] = {}
        for task in mine:
            for up, event in task.state.newest.items():
                newest[up] = max(event, newest.get(up, event))
        for task in mine:
            task.state.newest = dict(newest)
            if all(up in newest for up in layout.inputs(name)):
                moved = min(newest.values()) - task.window.lag
                task.state.watermark = max(moved, task.state.watermark)


class Double(Bolt):
    """A bolt's task as the batch leaves it; what it sends goes to the doubles of others."""

    def __init__(self, task: Any, rehearsal: DryRun) -> None:
        Part.__init__(self, task.world)
        self.component, self.index, self.inputs = task.component, task.index, task.inputs
        self.logical, self.rehearsal, self.work = task.logical, rehearsal, 0
        self.state, self.windows_closed = task.state.copy(), task.windows_closed

    def passes(self, up: Logical, item: Datum | int) -> None:
        """A tuple, or the marker of this number, that has come from there."""
        layout, name = self.layout, self.component
        if not isinstance(item, Datum):
            self.marker(up, item)
            return
        service = layout.config[name].service
        self.work += layout.sample(service, name, Purpose.SERVICE, item.uid, item.attempt)
        if layout.stateful(name):
            if not self.is_late(item, up[0]):
                self.count(item)
                self.fill()
        elif layout.down[name]:
            for child in layout.children(name, item):
                self.rehearsal.send(self, child)

    def close_windows(self, ends: list[tuple[int, int | None]]) -> None:
        for number, newest in ends:
            old, _ = self.take_out(newest)
            for key, value in sorted(old.keys().items()):
                layout = self.layout
                handed = self.state.handed
                aggregate = layout.aggregate(self.component, self.index, number, key, value, handed)
                self.rehearsal.send(self, aggregate)

    def send_marker(self, number: int) -> None:
        layout = self.layout
        self.state.handed = number
        for down in self.readers:
            for other in range(layout.config[down].parallelism):
                self.rehearsal.coming.setdefault((down, other), []).append((self.logical, number))


class DryRun(Part):
    """Walks a batch through copies of all states, without time."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.coming: dict[Logical, list[tuple[Logical, Datum | int]]] = {}
        self.doubles = {task: Double(task, self) for task in world.tasks if isinstance(task, Bolt)}

    def play(self, content: dict[Task, list[Message]]) -> dict[Task, tuple[int, int]]:
        """Service and rows of the state afterwards, for each bolt task."""
        for task, messages in content.items():
            self.coming[task.logical] = [
                (message.channel.up.logical, message.marker if message.datum is None else message.datum)
                for message in messages
            ]
        self._pass()
        end_batch(list(self.doubles.values()))
        self._pass()
        return {
            task: (double.work, double.state.entries if task.stateful else 0)
            for task, double in self.doubles.items()
        }

    def _pass(self) -> None:
        for double in self.doubles.values():
            for up, item in self.coming.pop(double.logical, []):
                double.passes(up, item)

    def send(self, double: Double, datum: Datum) -> None:
        """To the tasks that read it."""
        layout = self.layout
        datum = datum._replace(route=(*datum.route, double.logical))
        for down in double.readers:
            for other, crossed in layout.cross(double.component, down, datum):
                self.coming.setdefault((down, other), []).append((double.logical, crossed))


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


class MicroBatches(Protocol, kind="micro_batch"):
    """micro_batch, with checkpoints."""

    boss = "driver"
    host_counts = (None, 1, 2, 2, 2, 3)
    fault_kinds = ("lose_state", *["crash_task"] * 3, *["crash_host"] * 4, "pause")

    @classmethod
    def of(cls, strategy: Any) -> type[Protocol]:
        return StartingAnew if strategy.recovery == "replay" else MicroBatches

    @staticmethod
    def also_crash(tasks: int) -> list[str]:
        return ["driver"] * 2 * tasks

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        cold = make.ns(0, 0, 4, 20)
        return {
            "recovery": make.some("checkpoint", "checkpoint", "replay"),
            "trigger_interval": make.some(0, 0, 10, 10, 20, 37) * TICK,
            "poll_interval": make.some(1, 10) * TICK,
            "plan_time": make.ns(0, 0, 1, 4),
            "task_time": make.ns(0, 2, 5, 10),
            "cores": make.some(1, 1, 2),
            "state_time": make.ns(0, 0, 1),
            "state_cost": make.ns(0, 0, 0.5),
            "output_time": make.ns(0, 0, 1, 3),
            "commit_time": make.ns(0, 1, 8, 15),
            "reload_time": make.ns(0, 0, 2),
            "reload_cost": make.ns(0, 0, 1),
            "executor_cold": cold,
            "worker_cold": make.some(None, None, 0, cold // 2, cold),
            "state_cold": make.ns(0, 0, 3),
            "locality_wait": make.ns(0, 0, 5, 20),
            "resubmit_time": make.ns(0, 0, 2),
            "recovery_time": make.ns(0, 0, 5),
            "cold_time": make.ns(0, 0, 7),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: dict[Task, list[Message]] = {}
        self.came: dict[Message, int] = {}  # when it came to the log
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
        self.clock.at(time, control(Rank.BATCH, DRIVER), lambda: act() if life == self.life else None)

    def _in(self, delay: int, act: Callable[[], None]) -> None:
        self._at(self.now + delay, act)

    def admit(self, task: Task, message: Message) -> bool:
        if message.channel.up not in self.world.spouts:
            return True
        self.came[message] = self.now
        self.log.setdefault(task, []).append(message)
        return False

    def _trigger(self) -> None:
        now = self.triggered = self.now
        if self.log:
            writes = not self.lineage or now >= self.next_checkpoint
            content, self.log = self._some()
            self.batch = Batch(self._not_deleted(content), writes)
            self._in(self.params.plan_time, self._begin)
        elif self.params.trigger_interval:
            self._at(self._next(), self._trigger)
        else:
            self._at(now + self.params.poll_interval, self._trigger)

    def _some(self) -> tuple[dict[Task, list[Message]], dict[Task, list[Message]]]:
        """What a batch takes of the log, and what it leaves."""
        most = getattr(self.params, "max_offsets_per_trigger", None)
        tuples = {task: sum(m.datum is not None for m in messages) for task, messages in self.log.items()}
        if most is None or most >= sum(tuples.values()):
            return self.log, {}
        content: dict[Task, list[Message]] = {}
        left: dict[Task, list[Message]] = {}
        for task, messages in self.log.items():
            share = Fraction(most * tuples[task], sum(tuples.values()))
            share = ceil(share) if share < 1 else floor(share)
            for message in messages:
                there = task in left or (message.datum is not None and share == 0)
                (left if there else content).setdefault(task, []).append(message)
                share -= message.datum is not None and not there
        return content, left

    def _not_deleted(self, content: dict[Task, list[Message]]) -> dict[Task, list[Message]]:
        """Without what has been in the log for too long."""
        left: dict[Task, list[Message]] = {}
        for task, messages in content.items():
            for message in messages:
                if self._is_deleted(message):
                    self.world.record.gone(message.datum)
                    self.world.trace.destroyed.append((*task.physical, message.datum.uid, self.now))
                else:
                    left.setdefault(task, []).append(message)
        return left

    def _is_deleted(self, message: Message) -> bool:
        most = getattr(self.params, "retention", None)
        return most is not None and message.datum is not None and self.now - self.came[message] > most

    def _next(self) -> int:
        interval = self.params.trigger_interval
        return self.triggered - self.triggered % interval + interval if interval else 0

    def _begin(self) -> None:
        """From here on the batch will be run, come what may."""
        self.batch.logged = True
        self.batch.shares = DryRun(self.world).play(self.batch.content)
        self._run()

    def _run(self) -> None:
        shares, writes = self.batch.shares, self.batch.writes
        self._in(self.params.cold_time if self.cold else 0, lambda: self.scheduler.run(shares, writes))

    def _stages_done(self) -> None:
        self._in(self.params.output_time, self._results)

    def _results(self) -> None:
        """All of the batch takes effect, through all tasks, at this instant."""
        if self.batch.shown_at is None:
            self.batch.shown_at = self.now
        self.batch.before = {task: (task.state.copy(), task.windows_closed) for task in self.jobs}
        self.batch.out = {task: self._windows_out(task) for task in self.jobs}
        for task, messages in self.batch.content.items():
            task.requeue(messages)
        self._in(0, partial(end_batch, list(self.jobs)))
        self._in(self.params.commit_time, self._commit)

    def _commit(self) -> None:
        self.visible.append(self.batch.shown_at)
        if self.lineage:
            self._note_lineage(self.batch.writes)
        self.batch, self.cold, self.scheduler.begun = None, False, False
        for job in self.jobs.values():
            job.again = None
        if self.stops:
            self._in(0, self.all_stop)
        self._at(max(self.now, self._next()), self._trigger)

    def saves_to_stop(self, stop: PlannedStop) -> bool:
        """Between two batches."""
        self.stops.append(stop)
        if self.batch is None:
            self.all_stop()
        return True

    def _note_lineage(self, written: bool) -> None:
        """What it would take to compute each state again, from the newest that was written."""
        for job in self.jobs.values():
            if written:
                job.saved_rows, job.since_saved = job.rows, 0
            else:
                job.since_saved += self.params.task_time + job.work
        if written:
            interval, now = self.params.checkpoint_interval, self.now
            self.next_checkpoint = now - now % interval + interval

    def served(self, task: Any, message: Message) -> None:
        if message.anchored and self.is_read_again(task, message.datum):
            self.world.ledger.read_again([message])

    def is_read_again(self, task: Task, datum: Datum) -> bool:
        return self.jobs[task].again is not None

    def because(self, task: Task, message: Message) -> int | None:
        return self.jobs[task].again

    def _resume(self) -> None:
        if self.batch is None:
            self._trigger()
        else:
            self.triggered = self.now
            self._run()

    def put_back(self, content: dict[Task, list[Message]]) -> None:
        """What a batch had taken from the log."""
        for task, messages in content.items():
            self.log[task] = messages + self.log.get(task, [])

    def spares(self, task: Task) -> bool:
        return task not in self.world.spouts

    def hit(self, fault: Any) -> list[Hashable]:
        if kind_of(fault) in MACHINES:
            return [*self.scheduler.hit(fault)]
        return ["driver"] if fault.component == "driver" else [*self.jobs_hit(fault)]

    def struck(self, fault: Any) -> None:
        self.newest += 1
        now = self.now
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
        self.none_stops()
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

        self.clock.at(ready, control(Rank.READY), back)

    def _undo(self, batch: Batch) -> None:
        """Back to the states before the batch; what it has put out is not taken twice."""
        for task, (state, windows) in batch.before.items():
            task.state, task.windows_closed = state.copy(), windows
        for task in self.jobs:
            self._reopen(task, lambda number, task=task: number not in batch.out[task])
        batch.before = None
        gone = set()
        for task, messages in batch.content.items():
            self.world.record.all_there(messages)
            for message in messages:
                if message.anchored:
                    gone |= self.layout.effects(task.component, message.datum)
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

    def settled(self, outage: Outage) -> bool:
        """No task runs again because of it."""
        return all(job.again != outage.number for job in self.jobs.values())

    def is_busy(self, task: Task) -> bool:
        return bool(self.jobs[task].running) if task in self.jobs else task.busy

    def kept_for_replay(self) -> int:
        """What the log has that was not committed, or deleted."""
        deleted = (self._is_deleted(message) for messages in self.log.values() for message in messages)
        return sum(map(self._size, self.contents())) - sum(deleted)

    @staticmethod
    def _size(content: dict[Task, list[Message]]) -> int:
        return sum(map(len, content.values()))

    def beat(self) -> int:
        """The median distance of two batches' results."""
        return median_gap(self.visible)

    def contents(self) -> list[dict[Task, list[Message]]]:
        """What the log has for the query: that was not read yet, or is in a batch that is not committed."""
        return [self.log] + ([self.batch.content] if self.batch is not None else [])

    def elsewhere(self) -> list[Message]:
        return [m for content in self.contents() for messages in content.values() for m in messages]


class Stopping(MicroBatches):
    """Whatever fails, the query stops, and starts again when all that has failed is back."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.broken: dict[Any, int] = {}  # what keeps the query from starting anew, and since which outage
        self.halted = False

    def dropped(self) -> None:
        """It has stopped."""
        raise NotImplementedError

    def fails(self, fault: Any, noticed: int, ready: int) -> None:
        if kind_of(fault) in MACHINES:
            for executor in self.scheduler.hit(fault):
                self.scheduler.kill(executor, self.newest, noticed, ready, self._start_if_possible)
                self._start_over(executor, executor.index + 1, noticed)
        elif fault.component == "driver":
            self.scheduler.die(self.newest)
            self._start_over("driver", 0, ready)
        else:
            for job in self.jobs_hit(fault):
                self._start_over(job, job.task.rank, ready)

    def _start_over(self, what: Any, rank: int, ready: int) -> None:
        self.life, self.halted = self.life + 1, True
        self.none_stops()
        self.dropped()
        outage = self.broken[what] = self.newest

        def back() -> None:
            if self.broken.get(what) != outage:
                return
            if what == "driver":
                self.scheduler.replace_all()
            for thing in list(self.broken) if what == "driver" else [what]:
                if isinstance(thing, Job):
                    self.world.outages.back(thing)
                del self.broken[thing]
            self._start_if_possible()

        self.clock.at(ready, control(Rank.READY, rank), back)

    def _start_if_possible(self) -> None:
        """Nothing keeps it, and an executor lives."""
        if self.halted and not self.broken and any(executor.up for executor in self.scheduler.executors):
            self.halted, self.cold = False, True
            self._in(self.params.recovery_time, self._resume)


class StartingAnew(Stopping):
    """micro_batch, without checkpoints."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.kept: dict[Task, list[Message]] = {}  # what has been read and may have to be read again
        self.reread: set[int] = set()  # roots that are read again
        self.cause: int | None = None  # number of the fault that made the query start anew

    def _results(self) -> None:
        super()._results()
        for task, messages in self.batch.content.items():
            self.kept[task] = self.kept.get(task, []) + messages

    def _commit(self) -> None:
        super()._commit()
        self.reread, self.cause = set(), None
        self._forget_before(self._unfinished())

    def is_read_again(self, task: Task, datum: Datum) -> bool:
        return datum.root in self.reread

    def because(self, task: Task, message: Message) -> int | None:
        again = message.datum is not None and self.is_read_again(task, message.datum)
        return self.cause if again else None

    def kept_for_replay(self) -> int:
        batch = self.batch
        shown = batch is not None and batch.before is not None
        return super().kept_for_replay() - (self._size(batch.content) if shown else 0)

    def settled(self, outage: Outage) -> bool:
        return self.cause != outage.number

    def contents(self) -> list[dict[Task, list[Message]]]:
        return [*super().contents(), self.kept]

    def _has_windows_again(self) -> bool:
        """Whether all of them are as they were if the oldest that is not finished is read again."""
        layout = self.layout
        names = {task.component for task in self.jobs if task.stateful}
        windows = [layout.config[name].bolt.window for name in names]
        sorts = {layout.panes(name) for name in names}
        slides = sorts != {None}
        return (
            len(sorts) == 1
            and all(window.tuples is None and window.by == "arrival" for window in windows)
            and not any(layout.goes_on(name) for name in names)
            and not (slides and not all(layout.anchored(name) for name in names))
        )

    def _unfinished(self) -> int:
        """The oldest window without an end, less one; 0: from the beginning."""
        if not self._has_windows_again():
            return 0
        newest = [
            task.state.markers.get(channel.up.logical, 0)
            for task in self.jobs
            for channel in task.inputs.values()
        ]
        return min(newest)

    def _forget_before(self, window: int) -> None:
        """What has left with the windows that this marker ends, or with those before."""
        first = window
        for task in self.jobs:
            panes = task.panes if task.stateful else None
            if panes is not None:
                first = min(first, window - window % panes.slide - panes.per_window)
        if first > 0:
            for task, messages in self.kept.items():
                self.kept[task] = [m for m in messages if self._belongs(m, first)]

    @staticmethod
    def _belongs(message: Message, window: int) -> bool:
        if message.datum is not None:
            return message.datum.epoch >= window
        return message.marker > window

    def dropped(self) -> None:
        self.scheduler.forget()
        batch, self.batch = self.batch, None
        window = self._unfinished()
        self._forget_before(window)
        messages = [m for kept in self.kept.values() for m in kept]
        self.cause = self.newest
        self.world.record.all_there(messages)
        if batch is not None and batch.before is None:
            self.put_back(batch.content)
            messages += [m for content in batch.content.values() for m in content if batch.logged]
        self.put_back({task: kept for task, kept in self.kept.items() if kept})
        self.kept = {}
        self.reread |= {m.datum.root for m in messages if m.anchored}
        for task in self.jobs:
            lost = [(task.component, datum.uid) for datum in task.state.effects]
            self.world.outages.all[self.newest].lost += lost
            ups = {channel.up.logical: window for channel in task.inputs.values()} if window else {}
            task.state, task.windows_closed = State(markers=ups, handed=window), 0
            panes = task.panes if task.stateful else None
            newest = window // panes.slide if panes is not None else window
            self._reopen(task, lambda number, newest=newest: not window or number > newest)


class JobAgain(Stopping, kind="batch_rerun"):
    """batch_rerun, the whole job again."""

    @classmethod
    def of(cls, strategy: Any) -> type[Protocol]:
        return cls if strategy.retry == "job" else MicroBatches

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        settings = MicroBatches.drawn(make)
        del settings["recovery"]
        return settings | {
            "trigger_interval": make.some(10, 20, 37, 60) * TICK,
            "retry": make.some("job", "job", "task"),
        }

    def dropped(self) -> None:
        for job in self.jobs.values():
            if self.scheduler.begun and job.ran is not None:
                job.again = self.newest
        self.scheduler.forget()
        batch = self.batch
        if batch is not None and not batch.logged:
            self.batch = None
            self.put_back(batch.content)
        elif batch is not None and batch.before is not None:
            self._undo(batch)

    def _resume(self) -> None:
        now, interval = self.now, self.params.trigger_interval
        if self.batch is None:
            self._at(now - now % interval + interval, self._trigger)
        else:
            super()._resume()
