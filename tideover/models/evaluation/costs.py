"""What a run has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tideover.models.accounts.usage import busy_ns
from tideover.sim.units import S

if TYPE_CHECKING:
    from tideover.models.world import World


def cpu_s(world: World) -> float:
    """Processor time of all tasks together, s."""
    job = world.job
    return sum(busy_ns(job.context, task, job.kernel.now) for task in job.tasks) / S


def network_bytes(world: World) -> int:
    """Bytes between hosts: the streams', and what the protocol sends besides."""
    remote = sum(
        channel.remote_bytes
        for sender in world.job.tasks
        for outlet in sender.outlets
        for replicas in outlet.channels
        for channel in replicas
    )
    return remote + world.recoveries.control_bytes
