"""How much of the time each task was busy, and what was left for it to do at the end."""

from __future__ import annotations

from typing import Any

from tideover.models.accounts.usage import busy_ns
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.sim.units import S


def utilisation(job: Job) -> list[dict[str, Any]]:
    """One row for each bolt task and replica of a run that has ended, in the physical order.

    ``busy_s`` / ``up_s`` is its ``utilisation`` (None: it was never up). Where full queues can make it wait,
    ``blocked_s`` is how long they did. ``queued`` tuples, ``queued_s`` of work, waited for it at the end or
    were in service there.
    """
    rows = []
    bounded = any(bounds.length is not None for bounds in job.deployment.bounds.values())
    for task in job.bolt_tasks:
        up = job.kernel.now - job.supervisor.down_ns(task)
        busy = busy_ns(job.context, task, job.kernel.now)
        queue = task.queue.trains()
        rows.append(
            {
                "task": task.name,
                "utilisation": busy / up if up else None,
                "busy_s": busy / S,
                "up_s": up / S,
                **({"blocked_s": _blocked_ns(task, job.kernel.now) / S} if bounded else {}),
                "queued": sum(train.n for train in queue),
                "queued_s": task.queue.demand(*queue) / S,
            }
        )
    return rows


def _blocked_ns(task: BoltTask, now: int) -> int:
    return 0 if task.line is None else task.line.blocked_until(now)
