"""Micro-batches: D-Streams, and Spark's Structured Streaming."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from tideover.models.batches.query import Query
from tideover.models.batches.rehearsal import Rehearsing
from tideover.models.batches.starting_over import StartingOver
from tideover.models.machine import Machine
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy, task_inputs_open
from tideover.models.task import BoltTask, SpoutTask
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS, Duration, S

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.stream import Sent
    from tideover.models.topology import Component
    from tideover.models.world import World
    from tideover.sim.link import Channel


@STRATEGIES.register("micro_batch")
class MicroBatch(Strategy):
    """Exactly once: batch after batch from a durable log, its range logged first and its commit last.

    M. Zaharia et al., *Discretized Streams: Fault-Tolerant Streaming Computation at Scale*, SOSP 2013;
    M. Armbrust et al., *Structured Streaming*, SIGMOD 2018, sections 6.1 and 6.2. Scheduling, and the
    defaults of what is a setting there, are those of Apache Spark 4.
    """

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host", "pause"})
    event_time: ClassVar[bool] = True
    log_source: ClassVar[bool] = True
    batched: ClassVar[bool] = True
    sends_again: ClassVar[bool] = True

    trigger_interval: Annotated[
        Duration,
        Field(description="distance of two triggers; 0 s: a batch follows at once on the one before"),
    ] = 0
    poll_interval: Annotated[
        Duration, Field(ge=MS, description="with a trigger_interval of 0 s: how long an idle driver waits")
    ] = 10 * MS
    plan_time: Annotated[
        Duration, Field(description="from the trigger until the batch's range is in the offset log")
    ] = 0
    task_time: Annotated[Duration, Field(description="time of a task besides its tuples' service")] = 0
    cores: Annotated[
        int, Field(ge=1, le=1024, description="tasks that an executor (a host) runs at once")
    ] = 1
    state_time: Annotated[Duration, Field(description="time of a stateful task to commit its state")] = 0
    state_cost: Annotated[Duration, Field(description="the same, for each row of the state")] = 0
    output_time: Annotated[
        Duration, Field(description="from the last task's end until the sink has the results")
    ] = 0
    commit_time: Annotated[Duration, Field(description="from then until the batch is in the commit log")] = 0
    reload_time: Annotated[
        Duration, Field(description="time to load a partition's state where it is not, or no more")
    ] = 0
    reload_cost: Annotated[Duration, Field(description="the same, for each row of the state")] = 0
    executor_cold: Annotated[
        Duration, Field(description="extra time of a new executor's tasks without state, until one has ended")
    ] = 0
    state_cold: Annotated[
        Duration,
        Field(description="the same for tasks with state; if they come first, at least executor_cold"),
    ] = 0
    locality_wait: Annotated[
        Duration,
        Field(
            description="how long a stateful task whose executor is dead waits, from its stage's begin or "
            "last launch, if others of the stage have theirs (spark.locality.wait)"
        ),
    ] = 3 * S
    resubmit_time: Annotated[
        Duration,
        Field(description="from a failed fetch until the tasks that have to run again are submitted"),
    ] = 200 * MS
    recovery_time: Annotated[
        Duration, Field(description="time of a restarted driver to read its logs and start the query")
    ] = 0
    cold_time: Annotated[
        Duration, Field(description="extra time of the first batch after a driver's restart")
    ] = 0
    recovery: Annotated[
        Literal["checkpoint", "replay"],
        Field(
            description="checkpoint: states and offsets are kept; replay: they are not: after a failure the "
            "query starts anew, without state, from the first window that the sink does not have"
        ),
    ] = "checkpoint"
    output_mode: Annotated[
        Literal["append", "update"],
        Field(description="what the sink gets: finished windows, or from every batch what it has changed"),
    ] = "append"

    def protocol(self, world: World) -> Protocol:
        return Rehearsing(world) if world.fed else Batches(world, self)

    def cycle(self) -> tuple[int, int] | None:
        interval = self.trigger_interval
        return (interval, interval) if interval else None


class Batches(Protocol):
    """The protocol: spouts fill the log, a driver empties it batch by batch."""

    def __init__(self, world: World, strategy: MicroBatch) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.queries: list[Query] = []

    def start(self) -> None:
        kind = Query if self.strategy.recovery == "checkpoint" else StartingOver
        self.queries = [kind(self.world, self.strategy, 0)]
        for query in self.queries:
            query.start()

    def machines(self) -> list[Machine]:
        return [machine for query in self.queries for machine in (query, *query.cluster.executors)]

    # -- the log ---------------------------------------------------------------------------------------------

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        if not isinstance(channel.up, SpoutTask):
            return train
        self.queries[task.replica].log.append(task, train)
        return train.pick(slice(0, 0))

    # -- faults ----------------------------------------------------------------------------------------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            self.queries[task.replica].task_failed(task, outage)

    def paused(self, task: BoltTask, outage: Outage) -> None:
        self.queries[task.replica].cluster.stopped(task, outage.ready_at)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            self.queries[task.replica].task_ready(task, outage)
        else:
            task_inputs_open(task)

    # -- what is left to see ---------------------------------------------------------------------------------

    def processed(self, task: BoltTask, train: Train, sent: list[Sent]) -> None:
        again = self.queries[task.replica].read_again(task, train)
        if again is not None:
            self.world.replayed(task, train.pick(again))

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        return self.queries[task.replica].read_again(task, train, outage)

    def settled(self, outage: Outage) -> bool:
        return all(query.settled(outage.number) for query in self.queries)

    def pulse(self, until: int) -> int:
        shown = [record.visible for record in self.queries[0].history if record.visible <= until]
        return max((b - a for a, b in itertools.pairwise(shown)), default=0)

    def moved(self, now: int) -> None:
        kept = sum(query.size for query in self.queries)
        self.world.peak_buffered = max(self.world.peak_buffered, kept)

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        by_name = self.world.topology.by_name
        return [(by_name[name], uid) for query in self.queries for name, uid in query.kept_effects().items()]
