"""How much of the time each task was busy, and what was left for it to do at the end."""

from __future__ import annotations

from typing import Any

from tideover.models.task import BoltTask, SpoutTask
from tideover.models.world import World
from tideover.sim.units import S


def busy_ns(world: World, task: SpoutTask | BoltTask) -> int:
    """How long a task has been busy up to now (ns): with tuples, acks, checkpoints, replays; where
    tuples are done in batches, with its part of them.
    """
    since = world.protocol.running_since(task) if isinstance(task, BoltTask) else None
    return task.busy_so_far + (0 if since is None else world.kernel.now - since)


def utilisation(world: World) -> list[dict[str, Any]]:
    """One row for each bolt task and replica of a run that has ended, in the physical order.

    ``busy_s`` / ``up_s`` is its ``utilisation`` (None: it was never up). ``queued`` tuples, ``queued_s`` of
    work, waited for it at the end or were in service there.
    """
    rows = []
    for task in world.bolt_tasks:
        up = world.kernel.now - world.supervisor.down_ns(task)
        busy = busy_ns(world, task)
        queue = task.queue()
        rows.append(
            {
                "task": task.name,
                "utilisation": busy / up if up else None,
                "busy_s": busy / S,
                "up_s": up / S,
                "queued": sum(train.n for train in queue),
                "queued_s": sum(int(task.demand(train).sum()) for train in queue) / S,
            }
        )
    return rows
