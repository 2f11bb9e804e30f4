"""Micro-batches: batch after batch of a query, with saved state, from anew, or stopping.

The strategies `micro_batch` and `batch_rerun` make one of the three classes below, and their docstrings have
the rules; calibration reads the ``history``. Each class says what it does after a failure; how tasks of a
batch are scheduled is in `executors.py`, what a batch is in `batch_log.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import numpy as np

from tideover.models.job.topology import Component, Topology
from tideover.models.mechanisms.base import AFTER_TASKS, Mechanism
from tideover.models.mechanisms.batch_log import (
    Batch,
    BatchSettings,
    Content,
    DryRun,
    Log,
    Record,
    Records,
    capped,
    effects_of_read,
    end_batch,
    median_distance,
)
from tideover.models.mechanisms.executors import DRIVER, Cluster, Executor
from tideover.models.operators.base import Stateful
from tideover.models.operators.state import Effects
from tideover.models.operators.window import Extent
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.hooks import NOTHING, CopyHolder, Mask, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import go_back, roll_back
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, OutageView, Runner, Saver, Stop
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train, distinct

Left = tuple[BoltTask, int, list[Effects]]
"""A window that may be taken back: who has put it out, its number, and what has left with it."""
OutputMode = Literal["append", "update"]
TURN = AFTER_TASKS + 1
"""Order of what the driver does, at one instant and rank."""


class Batches(Mechanism, CopyHolder, Runner, Saver):
    """Spouts fill the log, a driver empties it batch by batch.

    What is in the tasks changes by a batch's output only, and the dry run knows what it was before. So the
    driver moves nothing but the data of the log, and tasks work off the outputs of many batches at a time.

    lineage    least time between two batches that save states (ns); None: every batch does
    most       tuples that a batch takes at most; None: all that wait
    retention  age from which the log has deleted tuples (ns); None: never
    """

    needs = Needs(log=True, batches=True, readers_go_back=True)
    knows_the_plane = True

    def __init__(
        self,
        job: Job,
        settings: BatchSettings,
        output_mode: OutputMode,
        lineage: int | None = None,
        most: int | None = None,
        retention: int | None = None,
    ) -> None:
        super().__init__(job)
        self._settings, self._output_mode = settings, output_mode
        self._most, self._retention = most, retention
        self._asked = 0
        """When it was asked how much waits (ns)."""
        self._log: Log[BoltTask, Records] = Log(lambda task: task.number, Records.join)
        self._batch: Batch | None = None
        self.history: list[Record] = []
        self._left: list[Left] = []
        self._driver = Plans(job.kernel, TURN)
        """What the driver is about to do, unless it dies before."""
        self._triggered = self._logged = 0
        """When the last batch was triggered, and how many there are in the offset log."""
        self._cold = False
        """Whether the next batch is the first since a restart."""

        self._cluster = Cluster(job, settings, lineage, self)
        self._dry_run = DryRun(job, counts=bool(settings.state_cost or settings.reload_cost))
        self._sources = [t for t in job.bolt_tasks if any(isinstance(c.up, SpoutTask) for c in t.inputs)]
        """The tasks before which the log lies."""
        job.context.machines += [self._cluster.driver, *self._cluster.executors]
        job.context.runner = job.context.saver = self
        job.context.rhythm = lambda: median_distance([record.visible for record in self.history])
        job.settlers.append(self._tell_kept)

    def start(self) -> None:
        self._hold(True)
        self._driver.at(0, Rank.BATCH, self._trigger)

    def _fill_log(self) -> None:
        """What has arrived up to now is in the log; what has come out of batches waits in its queues."""
        for task in self._sources:
            if task.c.held.n:
                self._log.append(task, Records(self._job.plane, task.gate.take_away()))

    def _hold(self, holds: bool) -> None:
        """Whether what comes waits before the tasks that read the log, from now on."""
        for task in self._sources:
            task.gate.closed = holds

    def _then(self, delay: int, action: Callable[[], None]) -> None:
        """What the driver does ``delay`` ns from now. Without any it waits for its turn, behind all tasks of
        this instant: a fault may come between. If it has it now nothing that comes before is left.
        """
        if delay or self._job.kernel.is_later(Rank.BATCH, TURN):
            self._driver.after(delay, Rank.BATCH, action)
        else:
            action()

    def _step(self, what: str, batch: Batch) -> None:
        self._job.step(DRIVER, what, f"batch {batch.number}")

    def _trigger(self) -> None:
        """1. Every trigger interval: the batch is all that has arrived meanwhile, or the first of it."""
        s = self._settings
        now = self._triggered = self._job.kernel.now
        self._fill_log()
        if self._retention is not None:
            self._tell_kept()
        if self._log.waiting:
            content = self._log.take()
            if self._most is not None:
                content, left = capped(content, self._most)
                self._log.put_back(left)
            batch = self._batch = Batch(self._logged, self._not_deleted(content), self._cluster.saves(now))
            self._step("batch triggered", batch)
            self._then(s.plan_time, partial(self._log_offsets, batch))
        else:
            again = s.next_trigger(now) if s.trigger_interval else now + s.poll_interval
            self._driver.at(again, Rank.BATCH, self._trigger)

    def _not_deleted(self, content: Content) -> Content:
        """What the log has not deleted by now: the rest is lost, and the batch has so much less to do."""
        if self._retention is None:
            return content
        plane, kept, oldest = self._job.plane, {}, self._job.kernel.now - self._retention
        for task, records in content.items():
            gone = (records.rows["mark"] == 0) & (records.rows["time"] < oldest)
            self._job.context.destroy(task, [plane.train(records.rows[gone])], outage=-1)
            if not gone.all():
                kept[task] = Records(plane, records.rows[~gone])
        return kept

    def _log_offsets(self, batch: Batch) -> None:
        """2. Its offsets are logged: whatever happens now, this batch will be run."""
        self._logged += 1
        self._step("offsets logged", batch)
        batch.start = self._dry_run.remember(self._cluster.tasks)
        batch.shares = self._dry_run.play(batch.content)
        self._run(batch)

    def _run(self, batch: Batch) -> None:
        """3. It runs as tasks over partitions, on the executors, stage by stage; tasks commit their state."""
        run = partial(self._cluster.start, batch.shares, batch.saves, partial(self._ended, batch))
        self._then(self._settings.cold_time if self._cold else 0, run)

    def _ended(self, batch: Batch) -> None:
        self._step("stages ended", batch)
        self._then(self._settings.output_time, partial(self._output, batch))

    def _output(self, batch: Batch) -> None:
        """4. The sink has the results: all its tuples take effect at this instant; then it is committed."""
        kernel, now = self._job.kernel, self._job.kernel.now
        batch.visible = True
        batch.shown_at = now if batch.shown_at is None else batch.shown_at
        for task, records in batch.content.items():
            task.gate.work_off(records.rows)
        again = [p for p in self._cluster.partitions if p.again >= 0]
        for p in again:
            p.task.does_again(p.again)
        self._hold(False)
        kernel.advance()
        if end_batch(self._job, now):
            kernel.advance()
        self._hold(True)
        for p in again:
            p.task.does_again(None)
        self._is_out(batch)
        if self._output_mode == "update" and batch.tuples:
            self._job.say.put_out((DRIVER, 0, batch.number), now)
        self._step("output written", batch)
        self._then(self._settings.commit_time, partial(self._commit, batch))

    def _is_out(self, batch: Batch) -> None:
        """For those who build on it: the sink has a batch, which is not committed yet."""

    def _commit(self, batch: Batch) -> None:
        now = self._job.kernel.now
        self._fill_log()
        self._tell_kept()
        assert batch.shown_at is not None
        self.history.append(Record(batch.number, self._triggered, batch.shown_at, now, batch.tuples))
        self._step("batch committed", batch)
        self._batch, self._cold = None, False
        self._left = self._not_for_good()
        self._cluster.committed()
        if self._stops:
            self._driver.after(0, Rank.BATCH, self.stop_all)
        due = max(now, self._settings.next_trigger(self._triggered))
        self._driver.at(due, Rank.BATCH, self._trigger)

    def save_to_stop(self, stop: Stop) -> bool:
        """A query, or what runs on a host, is stopped between two batches: there is nothing to save."""
        self._stops += (stop,)
        if self._batch is None:
            self.stop_all()
        return True

    def _not_for_good(self) -> list[Left]:
        """What may yet be taken back, though its batch is committed."""
        return []

    def executor_failed(self, executor: Executor, outage: OutageView) -> None:
        """5. Lost executor, or a task alone: tasks run again elsewhere, as the scheduler sees to."""

    def executor_ready(self, executor: Executor, outage: OutageView) -> None: ...

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        self._cluster.task_failed(task, outage)

    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None:
        self._cluster.task_ready(task, outage)

    def paused(self, task: BoltView, outage: OutageView) -> None:
        self._cluster.stopped(task, outage.ready_at)

    def busy_since(self, task: BoltView) -> int | None:
        partition = self._cluster.of[task]
        return partition.began_at if partition.attempt else None

    def driver_failed(self, outage: OutageView) -> None:
        """6. Lost driver: restart, read the logs, run the last uncommitted batch again."""
        self._driver.void()
        self.stop_none()
        self._cluster.stop(outage)
        self._give_up_batch()

    def driver_ready(self, outage: OutageView) -> None:
        self._cluster.renew()
        self._restart()

    def _give_up_batch(self) -> None:
        """The batch goes back to the log, or, if it is logged, will be run again."""
        if self._batch is not None and not self._batch.logged:
            self._log.put_back(self._batch.content)
            self._batch = None
        elif self._batch is not None and self._batch.visible:
            self._take_back(self._batch)

    def _restart(self) -> None:
        """The query starts again."""
        self._cold = True
        self._driver.after(self._settings.recovery_time, Rank.BATCH, self._resume)

    def _resume(self) -> None:
        if self._batch is None:
            self._trigger()
        else:
            self._triggered = self._job.kernel.now
            self._run(self._batch)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if parts and task.component.anchored:
            bolt = self._bolt(task)
            self._left.append((bolt, bolt.windows.newest, parts))
        return 0

    def _open_again(self, newest: Mapping[BoltTask, int]) -> None:
        """Tasks go back to when these were their newest windows: what left with later ones has not."""
        for task, number, parts in self._left:
            for part in parts if number > newest[task] else ():
                self._job.say.void(task.component, part.uid, 0)
        self._left = [(task, number, parts) for task, number, parts in self._left if number <= newest[task]]
        for task, number in newest.items():
            task.windows.reopen(number)

    def _take_back(self, batch: Batch) -> None:
        """What a batch has put out is undone: states and outputs are those of the one before it."""
        job = self._job
        before, batch.visible = batch.before, False
        self._open_again({task: state.newest for task, state in before.items()})
        for task, state in before.items():
            go_back(job, task, state)
        for name, uid in effects_of_read(job, _tuples(batch.content)).items():
            component = job.topology.by_name[name]
            if not component.window:
                job.say.void(component, uid, 0)
        for task, train in _tuples(batch.content):
            job.say.reopened(task, train)

    def _comes_again(self, task: BoltView, train: Train, outage: int | None = None) -> Mask | None:
        """Which of a task's tuples in this batch are worked off again (because of ``outage``); None: none."""
        again = self._cluster.of[task].again
        return np.ones(train.n, np.bool_) if again >= 0 and outage in (None, again) else None

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if self.knows_the_plane and not self._bolt(task).c.again:
            return  # it is told of late, and was done before
        again = self._comes_again(task, train)
        if again is not None:
            self._job.say.replayed(task, train.pick(again), None)

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return self._comes_again(task, train, outage)

    def settled(self, outage: OutageView) -> bool:
        return all(p.again != outage.number for p in self._cluster.partitions)

    def _tell_kept(self) -> None:
        """Say what the log keeps, which grows unless a batch is committed, or forgotten, or rows deleted."""
        self._job.say.kept(self._rows_kept())

    def _rows_kept(self) -> int:
        """Rows that the log keeps for the query: those of the batch, and what is in none."""
        in_batch = () if self._batch is None else self._batch.content.values()
        return self._waiting() + sum(r.n for r in in_batch)

    def _waiting(self) -> int:
        """Rows in no batch; where the log deletes rows: the most at once since this was asked before."""
        if self._retention is None:
            return self._log.size + sum(int(task.c.held.n) for task in self._sources)
        self._fill_log()
        since, self._asked = self._asked, self._job.kernel.now
        waiting = [read for reads in self._log.waiting.values() for read in reads]
        if not waiting:
            return 0
        oldest = min(int(read.rows["time"][0]) for read in waiting)
        newest = max(int(read.rows["time"][-1]) for read in waiting)
        if newest - oldest <= self._retention:
            return self._log.size if newest >= since else 0
        came = np.sort(np.concatenate([read.rows["time"] for read in waiting]), kind="stable")
        tuples = [read.rows["time"][read.rows["mark"] == 0] for read in waiting]
        first = int(came.searchsorted(since))
        gone = np.sort(np.concatenate(tuples), kind="stable").searchsorted(came[first:] - self._retention)
        there = np.arange(first + 1, len(came) + 1) - gone
        return int(there.max(initial=0))

    def _contents(self) -> list[Content]:
        """The same, by the task that reads them."""
        waiting: list[Content] = [{task: part} for task, parts in self._log.waiting.items() for part in parts]
        return waiting if self._batch is None else [*waiting, self._batch.content]

    def effects(self) -> list[tuple[Component, Ints]]:
        parts: dict[str, list[Ints]] = {}
        for content in self._contents():
            for task, records in content.items():  # what will be filtered out has no effect, but is here
                parts.setdefault(task.component.name, []).append(records.train.uid)
            for name, uid in effects_of_read(self._job, _tuples(content)).items():
                parts.setdefault(name, []).append(uid)
        before = {} if self._batch is None else self._batch.before
        for task, state in before.items():
            if state.state is not None:  # may come back, though its window is out by now
                parts.setdefault(task.component.name, []).append(state.effects())
        by_name = self._job.topology.by_name
        return [(by_name[name], np.concatenate(uids)) for name, uids in parts.items()]


def _tuples(content: Content) -> list[tuple[BoltTask, Train]]:
    """Tuples that tasks read, without end markers."""
    return [(task, records.train) for task, records in content.items()]


class Stopping(Batches):
    """Any fault stops the whole query at once. When all that has failed is ready again (of an executor it is
    enough that its loss is noticed, if another lives), it starts again; a subclass says with what.
    """

    def __init__(self, job: Job, settings: BatchSettings, output_mode: OutputMode) -> None:
        super().__init__(job, settings, output_mode)
        self._failed: dict[object, int] = {}
        """What keeps the query from starting, and the number of its newest outage."""
        self._stopped = False

    def given_up(self, outage: OutageView) -> None:
        """The query has stopped: what becomes of its batch."""
        raise NotImplementedError

    def executor_failed(self, executor: Executor, outage: OutageView) -> None:
        self._interrupt(executor, outage)

        def noticed() -> None:
            if self._failed.get(executor) == outage.number:
                self._recovered(executor)

        self._job.kernel.at(outage.detected_at, Rank.READY, noticed, executor.number)

    def executor_ready(self, executor: Executor, outage: OutageView) -> None:
        self._recovered(executor)

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        self._interrupt(task, outage)

    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None:
        self._recovered(task)

    def driver_failed(self, outage: OutageView) -> None:
        self._cluster.stop(outage)
        self._interrupt(self, outage)

    def driver_ready(self, outage: OutageView) -> None:
        """A new driver begins with new executors: it waits for nothing that failed before it was there."""
        self._cluster.renew()
        for what in self._failed:
            if isinstance(what, BoltTask):
                self._job.supervisor.back(what)
        self._failed = {}
        self._recovered(self)

    def _interrupt(self, what: object, outage: OutageView) -> None:
        self._driver.void()
        self.stop_none()
        self._stopped = True
        self._failed[what] = outage.number
        self.given_up(outage)

    def _recovered(self, what: object) -> None:
        """If nothing else keeps it, and an executor lives, the query starts anew."""
        self._failed.pop(what, None)
        if self._stopped and not self._failed and any(e.up for e in self._cluster.executors):
            self._stopped = False
            self._restart()


class JobAgain(Stopping):
    """A job that fails is run again from its beginning, with the same input."""

    def given_up(self, outage: OutageView) -> None:
        self._cluster.halt(again=outage)
        if self._batch is not None:
            self._step("job failed", self._batch)
        self._give_up_batch()

    def _resume(self) -> None:
        if self._batch is not None:
            super()._resume()
            return
        now = self._job.kernel.now
        self._driver.at(self._settings.next_trigger(now), Rank.BATCH, self._trigger)


class StartingOver(Stopping):
    """Source replay by batches: the log is kept as far back as the oldest window that is not finished.

    After a fault the query starts without state from the first tuple of that window, and its first batch
    takes everything from there, or, where that is not enough to have all windows again as they were, from the
    log's beginning. What was put out since is put out again, and readers have it by its window's number.

    So does Apache Spark where nobody reads the checkpoint of the query before: there are no committed
    offsets, so the source begins at its initial offset, and the first batch is all up to the newest one
    (``MicroBatchExecution``: ``constructNextBatch``, ``runBatch``). Such batches have other borders than
    those before, and a shuffle's order is not the same twice (``RDD``: ``DeterministicLevel.UNORDERED``;
    ``ShuffleBlockFetcherIterator`` fetches in a random order): what a window of so many tuples holds depends
    on both, and nobody can put it out as it was. With a checkpoint the offset log has the borders.
    """

    def __init__(self, job: Job, settings: BatchSettings, output_mode: OutputMode) -> None:
        super().__init__(job, settings, output_mode)
        self.knows_the_plane = False
        self._kept: dict[BoltTask, list[Records]] = {}
        self._rows = 0
        self._read_again: Ints = NOTHING
        """Roots that the query had read before its last start."""
        self._because = -1
        """Number of the outage that made it start; -1: what it reads is new."""
        self._by_time, self._extent = _windows_of(job.topology)

    def _epoch(self) -> int:
        return min(task.windows.epoch for task in self._cluster.tasks) if self._by_time else 0

    def _trim(self, epoch: int) -> None:
        """What belongs to windows that had all left at marker ``epoch`` is not read again."""
        if not self._by_time:
            return
        if self._extent is not None:
            epoch = max(0, epoch // self._extent.slide * self._extent.slide - self._extent.panes)
        for task, parts in self._kept.items():
            self._kept[task] = [part for part in (records.since(epoch) for records in parts) if part.n]
        self._rows = sum(records.n for parts in self._kept.values() for records in parts)

    def _is_out(self, batch: Batch) -> None:
        for task, records in batch.content.items():
            self._kept.setdefault(task, []).append(records)
            self._rows += records.n

    def _commit(self, batch: Batch) -> None:
        super()._commit(batch)
        self._read_again, self._because = NOTHING, -1
        self._trim(self._epoch())

    def _not_for_good(self) -> list[Left]:
        epoch = self._epoch()
        return [left for left in self._left if not self._by_time or left[1] > epoch // left[0].windows.beats]

    def _rows_kept(self) -> int:
        batch = self._batch
        twice = batch.content.values() if batch is not None and batch.visible else ()
        return super()._rows_kept() + self._rows - sum(records.n for records in twice)

    def _comes_again(self, task: BoltView, train: Train, outage: int | None = None) -> Mask | None:
        if self._because < 0 or outage not in (None, self._because):
            return None
        mask: Mask = np.isin(train.uid >> task.component.bits, self._read_again)
        return mask if mask.any() else None

    def settled(self, outage: OutageView) -> bool:
        return self._because != outage.number

    def _contents(self) -> list[Content]:
        kept: list[Content] = [{task: part} for task, parts in self._kept.items() for part in parts]
        return kept + super()._contents()

    def given_up(self, outage: OutageView) -> None:
        """Batch and state are gone, the log goes back."""
        self._because = outage.number
        self._cluster.halt()
        batch, self._batch = self._batch, None
        epoch = self._epoch()
        self._tell_kept()
        self._trim(epoch)
        again = [(task, records) for task, parts in self._kept.items() for records in parts]
        for task, records in again:
            self._job.say.reopened(task, records.train)
        if batch is not None and not batch.visible:
            self._log.put_back(batch.content)
            again += batch.content.items() if batch.logged else []
        roots = [
            records.train.uid >> task.component.bits for task, records in again if task.component.anchored
        ]
        self._read_again = distinct(np.concatenate([self._read_again, *roots]))
        for task, parts in self._kept.items():
            for records in reversed(parts):
                self._log.put_back({task: records})
        self._kept, self._rows = {}, 0
        self._drop_state(outage, epoch)

    def _drop_state(self, outage: OutageView, epoch: int) -> None:
        tasks = self._cluster.tasks
        for task in tasks:
            task.windows.epochs = dict.fromkeys(task.windows.epochs, epoch)
            task.windows.ended = 0
        self._open_again({task: task.windows.newest for task in tasks})
        for task in tasks:
            if task.state is not None:
                gone = task.state.effects()
                roll_back(self._job, task, task.state.fresh())
                if task.component.anchored and len(gone.uid):
                    self._job.say.forgotten(task, outage.number, gone.uid)
        self._dry_run.start_from(tasks)


def _windows_of(topology: Topology) -> tuple[bool, Extent | None]:
    """Whether all windows can be had again from the first tuple of the oldest that is not finished, and their
    panes (None: they have none). They cannot if what is in a window depends on more: on how many tuples came
    before, on how far events had come, on what a count had put out before; on older windows, put out already,
    which a sliding one reads; nor if windows that begin earlier are there too.
    """
    stateful = [c for c in topology.components if c.window is not None]
    extents = {c.window.extent for c in stateful if c.window is not None}
    by_time = all(c.trigger == "marker" for c in stateful)
    forgets = all(isinstance(c.bolt, Stateful) and c.bolt.forgets for c in stateful)
    extent = extents.pop() if len(extents) == 1 else None
    slides_over = extent is not None and not all(c.anchored for c in stateful)
    return len(stateful) > 0 and not extents and by_time and forgets and not slides_over, extent
