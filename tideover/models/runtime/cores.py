"""Tasks that share the cores of their host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.runtime.resource import Kind
from tideover.sim.faults.slow_host import SlowHost

if TYPE_CHECKING:
    from tideover.models.job.deployment import Deployment
    from tideover.models.runtime.node import Node
    from tideover.sim.plane.plane import Plane


class Cores:
    """The cores of one host.

    cores   how many; None: one for each task
    """

    kind: Kind = "cores"
    name = "cores"

    def __init__(self, plane: Plane, host: int, cores: int | None, tasks: Sequence[Node], place: int) -> None:
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


def crowded(deployment: Deployment) -> frozenset[int]:
    """Hosts with more tasks of bolts than cores, or that are slow for a while: there tasks go at a pace."""
    slow = [fault.host for fault in deployment.failures if isinstance(fault, SlowHost)]
    if deployment.moves and (slow or _may_fill(deployment)):
        return frozenset(host.number for host in deployment.cluster.hosts)
    return frozenset([*_full(deployment), *slow])


def _may_fill(deployment: Deployment) -> bool:
    """Whether some host has not enough cores for all tasks of bolts, wherever they go."""
    spouts = {c.name for c in deployment.topology.components if c.is_spout}
    bolts = sum(component not in spouts for component, _, _ in deployment.hosts)
    return any(host.cores is not None and host.cores < bolts for host in deployment.cluster.hosts)


def _full(deployment: Deployment) -> dict[int, list[str]]:
    """Hosts with more tasks of bolts than cores, and the components of these tasks."""
    found: dict[int, list[str]] = {}
    for (component, _, _), host in deployment.hosts.items():
        if not deployment.topology.by_name[component].is_spout:
            found.setdefault(host, []).append(component)
    cores = {host: deployment.cluster.hosts[host].cores for host in found}
    return {host: names for host, names in found.items() if len(names) > (cores[host] or len(names))}


def sharing(deployment: Deployment) -> frozenset[int]:
    """Hosts whose tasks share cores; where tasks may go to other hosts all, if some have a number of them."""
    hosts, found = deployment.cluster.hosts, crowded(deployment)
    if deployment.moves and (found or any(host.cores is not None for host in hosts)):
        return frozenset(host.number for host in hosts)
    return found


def share_cores(
    plane: Plane, deployment: Deployment, tasks: Sequence[Node], shared: frozenset[int]
) -> dict[int, Cores]:
    """Let tasks share the cores of these hosts; returns cores of which the number or the speed matters."""
    hosts = deployment.cluster.hosts
    there: dict[int, list[Node]] = {host: [] for host in shared if deployment.moves}
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
    cores = {host: Cores(plane, host, hosts[host].cores, there[host], place[host]) for host in matter}
    seat(cores, tasks)
    return cores


def seat(cores: Mapping[int, Cores], tasks: Sequence[Node]) -> None:
    """Let each task use the cores of the host where it is now: those that have moved do nothing."""
    for task in tasks:
        if task.host in cores:
            task.c.cores = cores[task.host].place
