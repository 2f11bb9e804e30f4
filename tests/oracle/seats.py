"""Free slots: where the tasks of a host that has failed are launched."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from tideover.models.job.cluster import Hosts
from tideover.sim.registry import kind_of

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

Seat = tuple[int, int]  # host, worker


class Seats:
    """Those that are kept for tasks until they are launched there."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.kept: dict[Task, Seat] = {}
        self.repaired: dict[int, int] = {}  # until when each host is

    def breaks(self, fault: Any, host: int) -> bool:
        machines = kind_of(fault) in ("crash_host", "crash_rack")
        return machines and self.world.layout.fails(fault, host, -1)

    def of(self, task: Task) -> Seat:
        layout = self.world.layout
        return self.kept.get(task, (layout.host[task.physical], layout.worker[task.physical]))

    def waiting_on(self, fault: Any) -> list[Task]:
        return [task for task, (host, _) in self.kept.items() if self.breaks(fault, host)]

    def struck(self, fault: Any, things: list[Hashable]) -> None:
        """In order: the tasks of hosts that fail."""
        for host in self.world.layout.every_host:
            if self.breaks(fault, host):
                over = self.world.clock.now + fault.out_of_order
                self.repaired[host] = max(self.repaired.get(host, 0), over)
        tasks = [task for task in self.world.tasks if task in things]
        lost = [task for task in tasks if self.breaks(fault, self.of(task)[0])]
        for task in lost:
            self.kept.pop(task, None)
        for task in lost:
            usable = [host for host in self.world.layout.every_host if not self.breaks(fault, host)]
            self._find(task, usable)

    def _find(self, task: Task, usable: list[int]) -> None:
        layout, now = self.world.layout, self.world.clock.now
        others = [other for other in self.world.tasks if other is not task]
        free = []
        for host in usable:
            there = [other for other in others if self.of(other)[0] == host]
            room = self._slots(host) is None or len(there) < self._slots(host)
            if room and self.repaired.get(host, 0) <= now and host != layout.host[task.physical]:
                twin = any(other.logical == task.logical for other in there)
                free.append((twin, len(there), host))
        if free:
            host = min(free)[2]
            crew = [self.of(other)[1] for other in others if self.of(other)[0] == host]
            workers = range(getattr(self.world.scenario.hosts, "workers", 1))
            self.kept[task] = host, min(workers, key=crew.count)

    def _slots(self, host: int) -> Any:
        cluster = self.world.scenario.hosts
        if not isinstance(cluster, Hosts):
            return None
        return [m.slots for m in cluster.machines.values() for _ in range(m.count)][host]

    def usable(self, thing: Any) -> int:
        """From when on it can be launched."""
        if thing in self.kept:
            return 0
        acker = thing not in self.world.tasks
        host = self.world.scenario.strategy.acker_host if acker else self.of(thing)[0]
        return self.repaired.get(host, 0)

    def go(self, thing: Any) -> None:
        """It is launched now."""
        if thing in self.kept:
            self.world.move(thing, *self.kept.pop(thing))
