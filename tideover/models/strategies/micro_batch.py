"""Micro-batches: D-Streams, and Spark's Structured Streaming."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tideover.models.batches.batch import Batch
from tideover.models.batches.cluster import LATE, Cluster
from tideover.models.batches.query import Query
from tideover.models.batches.rehearsal import Rehearsal, Rehearsing
from tideover.models.batches.settings import BatchSettings
from tideover.models.plans import Plans
from tideover.models.strategies.base import STRATEGIES, Protocol
from tideover.models.supervision import DRIVER
from tideover.models.task import BoltTask, SpoutTask
from tideover.sim.kernel import Rank

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.world import World


@STRATEGIES.register("micro_batch")
class MicroBatch(BatchSettings):
    """Exactly once: batch after batch from a durable log, its range logged first and its commit last.

    When it triggers, and what each step takes, is in its settings (`tideover.models.batches.settings`).

    M. Zaharia et al., *Discretized Streams: Fault-Tolerant Streaming Computation at Scale*, SOSP 2013;
    M. Armbrust et al., *Structured Streaming*, SIGMOD 2018, sections 6.1 and 6.2. Scheduling, and the
    defaults of what is a setting there, are those of Apache Spark 4.
    """

    event_time: ClassVar[bool] = True
    log_source: ClassVar[bool] = True
    batched: ClassVar[bool] = True
    sends_again: ClassVar[bool] = True

    def protocol(self, world: World) -> Protocol:
        from tideover.models.batches.starting_over import StartingOver  # it builds on Batches

        if world.fed:
            return Rehearsing(world)
        return Batches(world, self) if self.recovery == "checkpoint" else StartingOver(world, self)


class Batches(Query):
    """The protocol: spouts fill the log, a driver empties it batch by batch."""

    def __init__(self, world: World, strategy: MicroBatch) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.driver = Plans(world.kernel, LATE + 1)
        """What the driver is about to do, unless it dies before."""
        self.triggered = self.logged = 0
        """When the last batch was triggered, and how many there are in the offset log."""
        self.cold = False
        """Whether the next batch is the first since a restart."""

    def start(self) -> None:
        self.cluster = Cluster(self.world, self.strategy, self)
        self.rehearsal = Rehearsal(self.world)
        self.driver.at(0, Rank.BATCH, self._trigger)

    # -- 1. every trigger interval: the batch is all that has arrived meanwhile ------------------------------

    def _trigger(self) -> None:
        s = self.strategy
        now = self.triggered = self.world.kernel.now
        if self.log.waiting:
            batch = self.batch = Batch(self.logged, self.log.take())
            self.driver.after(s.plan_time, Rank.BATCH, partial(self._log_offsets, batch))
        else:
            self.driver.at(s.looks_again(now), Rank.BATCH, self._trigger)

    # -- 2. its offsets are logged: whatever happens now, this batch will be run -----------------------------

    def _log_offsets(self, batch: Batch) -> None:
        self.logged += 1
        batch.shares = self.rehearsal.play(batch.content)
        self._run(batch)

    # -- 3. it runs as tasks over partitions, on the executors, stage by stage; tasks commit their state -----

    def _run(self, batch: Batch) -> None:
        run = partial(self.cluster.start, batch.shares, partial(self._ended, batch))
        self.driver.after(self.strategy.cold_time if self.cold else 0, Rank.BATCH, run)

    def _ended(self, batch: Batch) -> None:
        self.driver.after(self.strategy.output_time, Rank.BATCH, partial(self._output, batch))

    # -- 4. the sink has the results: all its tuples take effect at this instant; then offsets are committed -

    def _output(self, batch: Batch) -> None:
        now = self.world.kernel.now
        batch.come_out(now, self.cluster.tasks)
        if self.strategy.output_mode == "update" and batch.tuples:
            self.world.recorder.note_output((DRIVER, 0, batch.number), now)
        self.world.note(f"{DRIVER}: batch {batch.number} is in the sink")
        self.driver.after(self.strategy.commit_time, Rank.BATCH, partial(self._commit, batch))

    def _commit(self, batch: Batch) -> None:
        now = self.world.kernel.now
        self.history.append(batch.committed(self.triggered, now))
        self.batch, self.cold = None, False
        self.cluster.forget()
        self.driver.at(max(now, self.strategy.next_trigger(self.triggered)), Rank.BATCH, self._trigger)

    # -- 5. lost executor, or a task alone: tasks run again elsewhere, states are loaded from the checkpoint -

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            self.cluster.task_failed(task, outage)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            self.cluster.task_ready(task, outage)

    # -- 6. lost driver: restart, read the logs, run the last uncommitted batch again ------------------------

    def running_since(self, task: BoltTask) -> int | None:
        partition = self.cluster.of[task]
        return partition.began_at if partition.attempt else None

    def driver_failed(self, outage: Outage) -> None:
        self.driver.void()
        self.cluster.stop(outage)
        if self.batch is not None and not self.batch.logged:
            self.log.put_back(self.batch.content)
            self.batch = None
        elif self.batch is not None and self.batch.visible:
            self.take_back(self.batch)

    def driver_ready(self, outage: Outage) -> None:
        self.cluster.renew()
        self.restart()

    def restart(self) -> None:
        """The query starts again."""
        self.cold = True
        self.driver.after(self.strategy.recovery_time, Rank.BATCH, self._resume)

    def _resume(self) -> None:
        if self.batch is None:
            self._trigger()
        else:
            self.triggered = self.world.kernel.now
            self._run(self.batch)
