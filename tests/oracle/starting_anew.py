"""Micro-batches without checkpoints: whatever fails, the query starts without state, and reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.sim.registry import kind_of

from .batches import MicroBatches
from .channels import Message
from .clock import Rank, control
from .executors import Job
from .layout import MACHINES, Datum
from .states import State

if TYPE_CHECKING:
    from .outages import Outage
    from .program import World
    from .tasks import Task


def micro_batches(world: World) -> MicroBatches:
    """micro_batch, of either kind."""
    params: Any = world.layout.scenario.strategy
    return StartingAnew(world) if params.recovery == "replay" else MicroBatches(world)


def batch_jobs(world: World) -> MicroBatches:
    """batch_rerun, by what is run again."""
    params: Any = world.layout.scenario.strategy
    return JobAgain(world) if params.retry == "job" else MicroBatches(world)


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

        self.world.clock.at(ready, control(Rank.READY, rank), back)

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

    # -- what the log keeps --------------------------------------------------------------------------------

    def _results(self) -> None:
        super()._results()
        assert self.batch is not None
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
        layout = self.world.layout
        names = {task.component for task in self.jobs if layout.stateful(task.component)}
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
        layout, first = self.world.layout, window
        for task in self.jobs:
            panes = layout.panes(task.component) if layout.stateful(task.component) else None
            if panes is not None:
                first = min(first, window - window % panes.slide - panes.per_window)
        if first > 0:
            for task, messages in self.kept.items():
                self.kept[task] = [m for m in messages if self._belongs(m, first)]

    @staticmethod
    def _belongs(message: Message, window: int) -> bool:
        if message.datum is not None:
            return message.datum.epoch >= window
        assert message.marker is not None
        return message.marker > window

    def dropped(self) -> None:
        self.scheduler.forget()
        batch, self.batch = self.batch, None
        window = self._unfinished()
        self._forget_before(window)
        layout, messages = self.world.layout, [m for kept in self.kept.values() for m in kept]
        self.cause = self.newest
        for message in messages:
            self.world.record.there(message.datum)
        if batch is not None and batch.before is None:
            self.put_back(batch.content)
            messages += [m for content in batch.content.values() for m in content if batch.logged]
        self.put_back({task: kept for task, kept in self.kept.items() if kept})
        self.kept = {}
        roots = {m.datum.root for m in messages if m.datum is not None and m.datum.anchored}
        self.reread |= roots
        for task in self.jobs:
            lost = [(task.component, datum.uid) for datum in task.state.effects]
            self.world.outages.all[self.newest].lost += lost
            ups = {channel.up.logical: window for channel in task.inputs.values()} if window else {}
            task.state, task.windows_closed = State(markers=ups, handed=window), 0
            panes = layout.panes(task.component) if layout.stateful(task.component) else None
            newest = window // panes.slide if panes is not None else window
            self._reopen(task, lambda number, newest=newest: not window or number > newest)


class JobAgain(Stopping):
    """batch_rerun, the whole job again."""

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
        now, interval = self.world.clock.now, self.params.trigger_interval
        if self.batch is None:
            self._at(now - now % interval + interval, self._trigger)
        else:
            super()._resume()
