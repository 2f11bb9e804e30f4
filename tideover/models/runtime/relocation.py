"""Tasks that are restarted on other hosts."""

from __future__ import annotations

from collections.abc import Mapping

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.wire import Wire

Task = SpoutTask | BoltTask


def relocate(job: Job, places: Mapping[Task, tuple[int, int]]) -> None:
    """From now on these tasks, which are down, live elsewhere: {task: (host, worker there)}.

    Their messages take other ways, through other cards, and they share other cores; with bounded queues they
    keep their links (see `Deployment.moves`). All data have been moved to the present.
    """
    for task, (_, worker) in places.items():
        job.supervisor.workers[task] = worker
    moved = {task: host for task, (host, _) in places.items() if host != task.host}
    channels = [c for task in job.tasks for c in _outputs(task) if c.up in moved or c.down in moved]
    before = [(channel.up.host, channel.down.host) for channel in channels]
    for task, host in moved.items():
        task.host = host
    job.used.update(moved.values())
    if not moved or not job.deployment.moves:
        return
    job.lead(channels, before)


def _outputs(task: Task) -> list[Wire]:
    return [channel for outlet in task.outlets for row in outlet.channels for channel in row]
