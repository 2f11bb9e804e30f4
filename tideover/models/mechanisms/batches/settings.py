"""When a query triggers, and what its steps take: settings of Structured Streaming, and measured costs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tideover.models.job.components import BoltConfig
from tideover.sim.registry import Part
from tideover.sim.units import MS, Duration, S


class BatchSettings(Part):
    """In the order of a batch's steps; then what is special after a failure."""

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

    def refusal(self, bolt: BoltConfig) -> str | None:
        window = bolt.bolt.ends
        if window is None or window.idle_after is None:
            return None
        return "in batches its windows by event wait for all that it reads: leave idle_after out"

    def cycle(self) -> tuple[int, int] | None:
        interval = self.trigger_interval
        return (interval, interval) if interval else None

    def next_trigger(self, last: int) -> int:
        """When the next trigger is due after that of ``last``: at the first multiple of the interval (Spark:
        ProcessingTimeExecutor); without one, at once.
        """
        interval = self.trigger_interval
        return (last // interval + 1) * interval if interval else last

    def looks_again(self, now: int) -> int:
        """When a driver that has found its log empty looks again."""
        return self.next_trigger(now) if self.trigger_interval else now + self.poll_interval
