"""How much of the time each task was busy, and what was left for it to do at the end."""

from __future__ import annotations

from typing import Any

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.units import S


def busy_ns(job: Job, task: SpoutTask | BoltTask) -> int:
    """How long a task has been busy up to now (ns): with tuples, acks, checkpoints, replays; where
    tuples are done in batches, with its part of them.
    """
    runner, now = job.context.runner, job.kernel.now
    since = runner.busy_since(task) if runner is not None and isinstance(task, BoltTask) else None
    return task.busy.until(now) + (0 if since is None else now - since)


def utilisation(job: Job) -> list[dict[str, Any]]:
    """One row for each bolt task and replica of a run that has ended, in the physical order.

    ``busy_s`` / ``up_s`` is its ``utilisation`` (None: it was never up). ``queued`` tuples, ``queued_s`` of
    work, waited for it at the end or were in service there.
    """
    rows = []
    for task in job.bolt_tasks:
        up = job.kernel.now - job.supervisor.down_ns(task)
        busy = busy_ns(job, task)
        queue = task.queue.trains()
        rows.append(
            {
                "task": task.name,
                "utilisation": busy / up if up else None,
                "busy_s": busy / S,
                "up_s": up / S,
                "queued": sum(train.n for train in queue),
                "queued_s": task.queue.demand(*queue) / S,
            }
        )
    return rows
