"""Batch jobs, as Hadoop runs them.

A job is a batch of `micro_batch`, whose rules hold. Of failures (tests/models/test_batch_recovery.py):

- `retry: task`: they are dealt with as there.
- `retry: job`: a fault of an executor, a bolt or the driver stops the job at its instant. `recovery_time`
  after all that failed is ready (for an executor: noticed; with a new driver all are) and an executor
  lives, a job that was logged starts again from its first stage, with the same content and the states
  before it, without `plan_time`. If none was logged, the next trigger is at the next multiple of
  `trigger_interval`.
- Between two jobs there is nothing to run again.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from tideover.models.mechanisms.batch_log import BatchSettings
from tideover.models.mechanisms.batches import Batches, JobAgain
from tideover.models.remarks import Plan, mixed
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import CRASHES, STRATEGIES, BatchProtocol, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Positive, S


@STRATEGIES.register("batch_rerun")
class BatchRerun(BatchSettings, Strategy):
    """Exactly once: a job now and then, on all that has come since the one before; if it fails, it is run
    again.

    Its results are there when all of it is done (``output_time``: the committer moves them to where they are
    read). The driver is the application master (before: the job tracker); executors are slots for tasks.

    J. Dean and S. Ghemawat, *MapReduce: Simplified Data Processing on Large Clusters*, OSDI 2004, section
    3.3; Apache Hadoop 3, ``FileOutputCommitter``.
    """

    promise = "exactly once"
    not_in_hybrid = "a batch is a job of all tasks, which do not run by themselves"
    typical: ClassVar[dict[str, str]] = {"trigger_interval": "60 s"}
    survives = CRASHES | {"pause"}
    roles = frozenset({"driver"})
    windows = frozenset({"sliding", "event", "session", "join"})
    composed_of = (Batches,)
    after_failures = frozenset(
        {"retry", "reload_time", "reload_cost", "executor_cold", "state_cold", "locality_wait"}
        | {"resubmit_time", "recovery_time", "cold_time", "worker_cold"}
    )
    omitted = frozenset({"worker_cold"})
    costs: ClassVar[dict[str, tuple[str, ...]]] = {
        "jobs": ("plan_time", "task_time", "state_time", "state_cost", "output_time", "commit_time")
    }

    trigger_interval: Positive = setting("distance of two jobs; one that is late is begun at once", 3600 * S)
    retry: Literal["job", "task"] = setting(
        "what is run again after a failure: the whole job; or the tasks that it has hit, and "
        "those of which others read what is lost (the whole job if it is the driver)",
        "job",
    )

    def remarks(self, plan: Plan) -> list[str]:
        return mixed(plan.topology)

    def protocol(self, job: Job) -> Protocol:
        (JobAgain if self.retry == "job" else Batches)(job, self, "append")
        return BatchProtocol(job)
