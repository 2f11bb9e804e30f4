"""Micro-batches: D-Streams, and Spark's Structured Streaming.

Spouts fill the log. Bolt tasks are partitions, which run on *executors*, one for each worker with a bolt
task, with `cores` each. Between bolts nothing moves but within a batch. The driver acts at rank BATCH,
behind the ends of tasks.

A batch (tests/models/test_micro_batch.py, test_plane_worlds.py):

- Triggers are at 0, then at the first multiple of `trigger_interval` after the last one, or at once when
  the batch took longer. An empty log is looked at again after the interval (without one: `poll_interval`).
- A batch is all that the log has at its trigger, or the first `max_offsets_per_trigger` of it, of which each
  task that reads has its share; what is older than `retention` by then is lost, and counts there.
  `plan_time` later its range is logged. Then its stages run, one component after the other. `output_time`
  after the last all its tuples pass all tasks at one instant, `commit_time` later it is committed.
- A task takes `task_time` + the service of its tuples, with state also `state_time` + rows * `state_cost`;
  if its executor does not have the state, first `reload_time` + rows * `reload_cost`. On a new executor
  `executor_cold` and `state_cold` come on top until one task of the sort has ended there; `worker_cold`, a
  part of the former, comes again after a task without state that was stopped with the query.
- Which executor runs a task is settled by the rules of `Cluster`.
- By event a bolt has one watermark, which moves between batches: a window is put out by the batch after
  that which brought its end (test_event_windows.py).

Failures (test_micro_batch.py, test_batch_recovery.py):

- With an executor its attempts die; at detection they run again, and tasks of the current stage that were
  done there, if somebody reads them. A task that finds an input dead starts its maker again `resubmit_time`
  later. Whoever is cut off by a partition waits for its end (test_batch_recovery.py).
- With the driver all executors die. A batch that is not logged goes back to the log; one that is not
  committed is run again with the same content, `recovery_time` after the restart; what it had put out is
  taken back. The first batch takes `cold_time` more.
- A planned stop waits until the batch under way is committed; then the driver, or the executors of a host,
  go down before the next one is triggered (test_planned_restart.py).
- Batches are others after a failure, and so are the events that are late: each tuple is there exactly once
  unless it is late, which with enough `lag` none is. What windows by event or by tuple put out can be ahead
  of another marker, and in another window of time: that is promised at least once (test_batch_recovery.py).
- `recovery: lineage` saves states in the first batch triggered at or after each due time; a lost one is
  what was saved, and the work of all batches since (test_batch_recovery.py).
- `recovery: replay` keeps nothing: any fault stops the query, and the log goes back to the oldest window
  without an end, or to its beginning where that would not bring all windows again as they were
  (test_batch_recovery.py).
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from tideover.models.job.topology import Topology
from tideover.models.mechanisms.batch_log import BatchSettings
from tideover.models.mechanisms.batches import Batches, StartingOver
from tideover.models.remarks import Plan, mixed, put_out_again, too_long
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import CRASHES, STRATEGIES, BatchProtocol, Promise, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Positive, S


@STRATEGIES.register("micro_batch")
class MicroBatch(BatchSettings, Strategy):
    """Exactly once: batch after batch from a durable log, its range logged first and its commit last.

    When it triggers, and what each step takes, is in its settings
    (`tideover.models.mechanisms.batch_log`).

    M. Zaharia et al., *Discretized Streams: Fault-Tolerant Streaming Computation at Scale*, SOSP 2013;
    M. Armbrust et al., *Structured Streaming*, SIGMOD 2018, sections 6.1 and 6.2. Scheduling, and the
    defaults of what is a setting there, are those of Apache Spark 4.
    """

    promise = "exactly once"
    not_in_hybrid = "its tasks do batches of the whole job, and do not run by themselves"
    survives = CRASHES | {"pause"}
    roles = frozenset({"driver"})
    windows = frozenset({"sliding", "event", "session", "join"})
    composed_of = (Batches,)
    after_failures = frozenset(
        {"reload_time", "reload_cost", "executor_cold", "state_cold", "locality_wait", "resubmit_time"}
        | {"recovery_time", "cold_time", "worker_cold"}
    )
    omitted = frozenset({"max_offsets_per_trigger", "retention", "worker_cold"})
    counts_tuples = ("max_offsets_per_trigger",)
    caps = frozenset({"max_offsets_per_trigger"})
    costs: ClassVar[dict[str, tuple[str, ...]]] = {
        "batches": ("plan_time", "task_time", "state_time", "state_cost", "output_time", "commit_time")
    }

    recovery: Literal["checkpoint", "lineage", "replay"] = setting(
        "checkpoint: every batch saves states and offsets; lineage: now and then one does, "
        "and what is lost is computed again from there; replay: none does: after a failure the query "
        "starts anew, without state, from the first window that the sink does not have, or from the "
        "log's beginning",
        "checkpoint",
    )
    checkpoint_interval: Positive = setting(
        "with lineage: least time between two batches that save states", 10 * S
    )
    max_offsets_per_trigger: int | None = setting(
        "most tuples of a batch; each task that reads takes its share of them, by what waits before it, and "
        "at least one; the rest waits for the next trigger; default: a batch takes all that waits",
        ge=1,
    )
    retention: Positive | None = setting(
        "age of tuples from which the log has deleted them when a batch is triggered; those that it takes "
        "count in its cap, and are lost; default: the log keeps all"
    )
    output_mode: Literal["append", "update"] = setting(
        "what the sink gets: finished windows, or from every batch what it has changed", "append"
    )

    @model_validator(mode="after")
    def _some_at_a_time(self) -> MicroBatch:
        for name in ("max_offsets_per_trigger", "retention"):
            if getattr(self, name) is not None and self.recovery == "replay":
                raise ValueError(f"{name} does not go with recovery: replay, which reads all at once, again")
        return self

    @property
    def needs(self) -> Needs:
        return super().needs._replace(comparison=self.retention is not None)

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
        return [*again, *mixed(plan.topology), *long, *self._too_few(plan)]

    def _too_few(self, plan: Plan) -> list[str]:
        """On a cap below what comes in an interval."""
        most, interval = self.max_offsets_per_trigger, self.trigger_interval
        if most is None or not interval:
            return []
        readers = [c for c in plan.topology.components if c.inputs and all(e.up.is_spout for e in c.inputs)]
        comes = sum(float(plan.loads[c.name].rates.sum()) for c in readers) * interval / S
        if comes <= most:
            return []
        return [
            f"max_offsets_per_trigger {most:,}: about {comes:,.0f} tuples come in a trigger_interval of "
            f"{interval / S:g} s, so that ever more wait"
        ]

    def protocol(self, job: Job) -> Protocol:
        if self.recovery == "replay":
            StartingOver(job, self, self.output_mode)
        else:
            lineage = self.checkpoint_interval if self.recovery == "lineage" else None
            Batches(job, self, self.output_mode, lineage, self.max_offsets_per_trigger, self.retention)
        return BatchProtocol(job)
