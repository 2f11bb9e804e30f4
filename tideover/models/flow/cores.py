"""Cores of hosts, where the compiled data plane moves the tuples of their tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.runtime.core_sharing import crowded

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
        self._plane, self._tasks, self.place = plane, tasks, place
        self.host, self.cores = host, cores
        self._slow: dict[int, float] = {}

    def busy_ns(self, now: int) -> int:
        """How long they have been busy up to now (ns), their mean."""
        if self.place < 0:
            busy = sum(task.busy.until(now) for task in self._tasks)
        else:
            c: Any = self._plane.p.cores[self.place]
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
        self._plane.lib.plane_slow(self._plane.p, self.place, now, factor)


def sharing(deployment: Deployment) -> frozenset[int]:
    """Hosts whose tasks share cores; where tasks may go to other hosts all, if some have a number of them."""
    hosts, found = deployment.cluster.hosts, crowded(deployment)
    if deployment.moves and (found or any(host.cores is not None for host in hosts)):
        return frozenset(host.number for host in hosts)
    return found


def share_cores(
    plane: Plane, deployment: Deployment, tasks: Sequence[FlowBolt], shared: frozenset[int]
) -> dict[int, FlowCores]:
    """Let tasks share the cores of these hosts; returns cores of which the number or the speed matters."""
    hosts = deployment.cluster.hosts
    there: dict[int, list[FlowBolt]] = {host: [] for host in shared if deployment.moves}
    for task in tasks:
        there.setdefault(task.host, []).append(task)
    places = sorted(shared & there.keys())
    room = len(tasks) if deployment.moves else max(map(len, there.values()), default=0)
    plane.share([hosts[host].cores or math.inf for host in places], room)
    place = dict.fromkeys(sorted(there), -1) | {host: place for place, host in enumerate(places)}
    for task in tasks:
        if place[task.host] >= 0:
            task.share()
    matter = [host for host in place if host in places or hosts[host].cores is not None]
    cores = {host: FlowCores(plane, host, hosts[host].cores, there[host], place[host]) for host in matter}
    seat(cores, tasks)
    return cores


def seat(cores: Mapping[int, FlowCores], tasks: Sequence[FlowBolt]) -> None:
    """Let each task use the cores of the host where it is now: those that have moved do nothing."""
    for task in tasks:
        if task.host in cores:
            task.c.cores = cores[task.host].place
