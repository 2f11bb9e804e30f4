"""Micro-batches: D-Streams, and Spark's Structured Streaming."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tideover.models.job.topology import Topology
from tideover.models.mechanisms.batch_log import BatchSettings
from tideover.models.mechanisms.batches import Batches, StartingOver
from tideover.models.mechanisms.executors import Lineage
from tideover.models.remarks import Plan, mixed, put_out_again, too_long
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import STRATEGIES, BatchProtocol, Promise, Protocol, Strategy
from tideover.sim.units import Duration, S


@STRATEGIES.register("micro_batch")
class MicroBatch(BatchSettings, Strategy):
    """Exactly once: batch after batch from a durable log, its range logged first and its commit last.

    When it triggers, and what each step takes, is in its settings
    (`tideover.models.mechanisms.batch_log`).

    M. Zaharia et al., *Discretized Streams: Fault-Tolerant Streaming Computation at Scale*, SOSP 2013;
    M. Armbrust et al., *Structured Streaming*, SIGMOD 2018, sections 6.1 and 6.2. Scheduling, and the
    defaults of what is a setting there, are those of Apache Spark 4.
    """

    promise: ClassVar[Promise] = "exactly once"
    alone: ClassVar[str | None] = "its tasks do batches of the whole job, and do not run by themselves"
    survives: ClassVar[frozenset[str]] = frozenset(
        {"lose_state", "crash_task", "crash_host", "pause", "crash_worker", "crash_rack"}
    )
    roles: ClassVar[frozenset[str]] = frozenset({"driver"})
    windows: ClassVar[frozenset[str]] = frozenset({"sliding", "event", "session", "join"})
    composed_of: ClassVar[tuple[type[Hooks], ...]] = (Batches,)
    after_failures: ClassVar[frozenset[str]] = frozenset(
        {"reload_time", "reload_cost", "executor_cold", "state_cold", "locality_wait", "resubmit_time"}
        | {"recovery_time", "cold_time"}
    )
    costs: ClassVar[dict[str, tuple[str, ...]]] = {
        "batches": ("plan_time", "task_time", "state_time", "state_cost", "output_time", "commit_time")
    }

    recovery: Annotated[
        Literal["checkpoint", "lineage", "replay"],
        Field(
            description="checkpoint: every batch saves states and offsets; lineage: now and then one does, "
            "and what is lost is computed again from there; replay: none does: after a failure the query "
            "starts anew, without state, from the first window that the sink does not have, or from the "
            "log's beginning"
        ),
    ] = "checkpoint"
    checkpoint_interval: Annotated[
        Duration, Field(gt=0, description="with lineage: least time between two batches that save states")
    ] = 10 * S
    output_mode: Annotated[
        Literal["append", "update"],
        Field(description="what the sink gets: finished windows, or from every batch what it has changed"),
    ] = "append"

    def promises_in(self, topology: Topology) -> Promise:
        again = self.recovery == "replay" and put_out_again(topology)
        return "at least once" if again else super().promises_in(topology)

    def remarks(self, plan: Plan) -> list[str]:
        fixed = self.plan_time + self.output_time + self.commit_time
        bolts = [c for c in plan.topology.components if not c.is_spout]
        fixed += self.task_time * len(bolts)
        fixed += self.state_time * len(plan.stateful) if self.recovery != "lineage" else 0
        again = put_out_again(plan.topology) if self.recovery == "replay" else []
        long = too_long(plan, "trigger_interval", self.trigger_interval, fixed)
        return [*again, *mixed(plan.topology), *long]

    def protocol(self, job: Job) -> Protocol:
        if self.recovery == "replay":
            StartingOver(job, self, self.output_mode)
        else:
            lineage = Lineage(self, self.checkpoint_interval) if self.recovery == "lineage" else None
            Batches(job, self, self.output_mode, lineage)
        return BatchProtocol(job)
