"""Tasks that are restarted on other hosts."""

from __future__ import annotations

from collections.abc import Mapping

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.core_sharing import fit_in
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.link import Channel

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
    senders = [task for task in job.bolt_tasks if any(channel.up is task for channel in channels)]
    for task in senders:
        if task.state is None and any(outlet.packing is not None for outlet in task.outlets):
            task.queue.take_back()  # what waits is served by the new ways
    for channel, hosts in zip(channels, before, strict=True):
        up, down = job.tasks[channel.up.number], job.tasks[channel.down.number]
        assert isinstance(down, BoltTask)
        job.network.lead(channel, job.latency(up, down), hosts)
    for task in senders:
        for outlet in task.outlets:
            outlet.packing = job.network.packing(outlet.channels)
    job.supervisor.links.moved(channels)
    job.lay()
    fit_in(job.kernel, job.topology, job.bolt_tasks, job.context.cores, job.context.step)
    for task in senders:
        task.queue.serve_markers()


def _outputs(task: Task) -> list[Channel]:
    return [channel for outlet in task.outlets for row in outlet.channels for channel in row]
