"""Cores of hosts, where the compiled data plane moves the tuples of their tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tideover.models.flow.bolt import FlowBolt
    from tideover.models.job.deployment import Deployment
    from tideover.sim.plane.plane import Plane


class FlowCores:
    """The cores of one host.

    cores   how many; None: one for each task
    """

    def __init__(
        self, plane: Plane, host: int, cores: int | None, tasks: Sequence[FlowBolt], place: int
    ) -> None:
        """``place``: among the data plane's; -1: each of these tasks has a core of its own."""
        self._plane, self._tasks, self._place = plane, tasks, place
        self.host, self.cores = host, cores
        self._slow: dict[int, float] = {}

    def busy_ns(self, now: int) -> int:
        """How long they have been busy up to now (ns), their mean."""
        if self._place < 0:
            busy = sum(task.busy.until(now) for task in self._tasks)
        else:
            c: Any = self._plane.p.cores[self._place]
            busy = c.busy + int((now - c.since) * min(c.jobs, c.number))
        return round(busy / (self.cores or 1))

    def slow_down(self, reason: int, factor: float, now: int) -> None:
        """From now on a core works at this part of its speed, if no other reason makes it slower."""
        self._slow[reason] = factor
        self._change(now)

    def recover(self, reason: int, now: int) -> None:
        """A reason to be slow is over."""
        self._slow.pop(reason, None)
        self._change(now)

    def _change(self, now: int) -> None:
        factor = min(self._slow.values(), default=1.0)
        self._plane.lib.plane_slow(self._plane.p, self._place, now, factor)


def share_cores(
    plane: Plane, deployment: Deployment, tasks: Sequence[FlowBolt], crowded: frozenset[int]
) -> dict[int, FlowCores]:
    """Let tasks share the cores of their hosts if these are ``crowded``; returns cores of which the number or
    the speed matters.
    """
    there: dict[int, list[FlowBolt]] = {}
    for task in tasks:
        there.setdefault(task.host, []).append(task)
    number = {host: deployment.cluster.hosts[host].cores for host in there}
    sharing = sorted(crowded & there.keys())
    plane.share([(number[host] or math.inf, [task.number for task in there[host]]) for host in sharing])
    for task in (task for host in sharing for task in there[host]):
        task.share()
    place = dict.fromkeys(sorted(there), -1) | {host: place for place, host in enumerate(sharing)}
    matter = [host for host in place if host in sharing or number[host] is not None]
    return {host: FlowCores(plane, host, number[host], there[host], place[host]) for host in matter}
