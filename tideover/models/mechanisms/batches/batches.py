"""Batch after batch: how a driver runs a query that keeps checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from tideover.models.mechanisms.batches.batch import Batch
from tideover.models.mechanisms.batches.cluster import LATE
from tideover.models.mechanisms.batches.executor import DRIVER
from tideover.models.mechanisms.batches.query import Query
from tideover.models.mechanisms.batches.records import Records
from tideover.models.mechanisms.batches.rehearsal import end_batch
from tideover.models.mechanisms.batches.saving import EveryBatch
from tideover.models.mechanisms.batches.settings import BatchSettings
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.plans import Plans
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.kernel import Rank

OutputMode = Literal["append", "update"]
TURN = LATE + 1
"""Order of what the driver does, at one instant and rank."""


class Batches(Query):
    """Spouts fill the log, a driver empties it batch by batch.

    What is in the tasks changes by a batch's output only, and the rehearsal knows what it was before. So the
    driver moves nothing but the data of the log, and tasks work off the outputs of many batches at a time.

    ``output_mode``: what the sink gets: finished windows, or from every batch what it has changed.
    """

    def __init__(
        self, job: Job, settings: BatchSettings, output_mode: OutputMode, saving: EveryBatch | None = None
    ) -> None:
        """``saving``: None: every batch does."""
        super().__init__(job, settings, saving or EveryBatch(settings))
        self._output_mode = output_mode
        self._driver = Plans(job.kernel, TURN)
        """What the driver is about to do, unless it dies before."""
        self._triggered = self._logged = 0
        """When the last batch was triggered, and how many there are in the offset log."""
        self._cold = False
        """Whether the next batch is the first since a restart."""

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

    # -- 1. every trigger interval: the batch is all that has arrived meanwhile ------------------------------

    def _trigger(self) -> None:
        s = self._settings
        now = self._triggered = self._job.kernel.now
        self._fill_log()
        if self._log.waiting:
            batch = self._batch = Batch(self._logged, self._log.take(), self._saving.saves(now))
            self._job.step(DRIVER, "batch triggered", f"batch {batch.number}")
            self._then(s.plan_time, partial(self._log_offsets, batch))
        else:
            self._driver.at(s.looks_again(now), Rank.BATCH, self._trigger)

    # -- 2. its offsets are logged: whatever happens now, this batch will be run -----------------------------

    def _log_offsets(self, batch: Batch) -> None:
        self._logged += 1
        self._job.step(DRIVER, "offsets logged", f"batch {batch.number}")
        batch.start = self._rehearsal.remember(self._cluster.tasks)
        batch.shares = self._rehearsal.play(batch.content)
        self._run(batch)

    # -- 3. it runs as tasks over partitions, on the executors, stage by stage; tasks commit their state -----

    def _run(self, batch: Batch) -> None:
        run = partial(self._cluster.start, batch.shares, batch.saves, partial(self._ended, batch))
        self._then(self._settings.cold_time if self._cold else 0, run)

    def _ended(self, batch: Batch) -> None:
        self._job.step(DRIVER, "stages ended", f"batch {batch.number}")
        self._then(self._settings.output_time, partial(self._output, batch))

    # -- 4. the sink has the results: all its tuples take effect at this instant; then offsets are committed -

    def _output(self, batch: Batch) -> None:
        now = self._job.kernel.now
        batch.come_out(now)
        self._flow(now)
        self._is_out(batch)
        if self._output_mode == "update" and batch.tuples:
            self._job.say.put_out((DRIVER, 0, batch.number), now)
        self._job.step(DRIVER, "output written", f"batch {batch.number}")
        self._then(self._settings.commit_time, partial(self._commit, batch))

    def _flow(self, now: int) -> None:
        """All of a batch goes through all tasks."""
        again = [p for p in self._cluster.partitions if p.again >= 0]
        for p in again:
            p.task.does_again(p.again)
        self._hold(False)
        self._job.kernel.advance()
        if end_batch(self._job, now):
            self._job.kernel.advance()
        self._hold(True)
        for p in again:
            p.task.does_again(None)

    def _is_out(self, batch: Batch) -> None:
        """For those who build on it: the sink has a batch, which is not committed yet."""

    def _commit(self, batch: Batch) -> None:
        now = self._job.kernel.now
        self._fill_log()
        self._tell_kept()
        self.history.append(batch.committed(self._triggered, now))
        self._job.step(DRIVER, "batch committed", f"batch {batch.number}")
        self._batch, self._cold = None, False
        self._left = self._not_for_good()
        self._cluster.committed()
        due = max(now, self._settings.next_trigger(self._triggered))
        self._driver.at(due, Rank.BATCH, self._trigger)

    def _not_for_good(self) -> list[tuple[BoltTask, int, list[Effects]]]:
        """What has left with windows, and may yet be taken back, though their batch is committed."""
        return []

    # -- 5. lost executor, or a task alone: tasks run again elsewhere, states are loaded from the checkpoint -

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self._cluster.task_failed(task, outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self._cluster.task_ready(task, outage)

    # -- 6. lost driver: restart, read the logs, run the last uncommitted batch again ------------------------

    def driver_failed(self, outage: OutageView) -> None:
        self._driver.void()
        self._cluster.stop(outage)
        if self._batch is not None and not self._batch.logged:
            self._log.put_back(self._batch.content)
            self._batch = None
        elif self._batch is not None and self._batch.visible:
            self._take_back(self._batch)

    def driver_ready(self, outage: OutageView) -> None:
        self._cluster.renew()
        self._restart()

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
