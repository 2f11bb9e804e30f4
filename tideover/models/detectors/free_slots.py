"""Where tasks of hosts that have failed are restarted: in free slots of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tideover.models.detectors.repairs import Repairs
from tideover.models.runtime.job import Job
from tideover.models.runtime.relocation import Task, relocate
from tideover.sim.faults.base import Between, Fault


class FreeSlots:
    """Finds a slot for each task whose host fails, and keeps it until the task is launched there.

    ``listener``: host of who has them launched; hosts that it does not hear are out of the question.
    """

    def __init__(self, job: Job, listener: int | None) -> None:
        self._job, self._listener = job, listener
        self._hosts = job.deployment.cluster.hosts
        self._repairs = Repairs(self._hosts)
        self._kept: dict[Task, tuple[int, int]] = {}
        """Host and worker of those that are to be launched elsewhere."""
        self._cuts: dict[Between, int] = {}
        """Until when (ns) the network is cut between these."""

    def cut(self, between: Between, until: int) -> None:
        """The network is cut until then (ns)."""
        self._cuts[between] = max(until, self._cuts.get(between, 0))

    def hears(self, host: int) -> bool:
        """Whether the listener hears a host now."""
        now, listener = self._job.kernel.now, self._listener
        if listener is None:
            return True
        return not any(until > now and cut.part(host, listener) for cut, until in self._cuts.items())

    def waiting_on(self, fault: Fault) -> list[Task]:
        """Those whose slots a fault takes, before they were launched there."""
        racks = {host.number: host.rack for host in self._hosts}
        return [task for task, (host, _) in self._kept.items() if fault.breaks(host, racks[host])]

    def struck(self, fault: Fault, victims: Iterable[Any]) -> None:
        """A fault strikes these now: tasks of hosts that fail get slots elsewhere, one after the other."""
        self._repairs.struck(fault, self._job.kernel.now)
        broken = {host.number for host in self._hosts if fault.breaks(host.number, host.rack)}
        if broken:
            lost = [victim for victim in victims if self._seat(victim)[0] in broken]
            self.find([task for task in self._job.tasks if task in lost], broken)

    def find(self, tasks: Sequence[Task], broken: Iterable[int] = ()) -> None:
        """Find slots for these, on none of the ``broken`` hosts; who finds none is launched where it was."""
        self.forget(tasks)
        for task in tasks:
            place = self._place(task, {task.host, *broken})
            if place is not None:
                self._kept[task] = place

    def there_at(self, victim: Any) -> int:
        """From when on it can be launched: at once elsewhere, or when its host is repaired (ns)."""
        elsewhere = victim in self._kept or victim.host is None
        return 0 if elsewhere else self._repairs.over(victim.host)

    def forget(self, tasks: Iterable[Task]) -> None:
        """These need no slots any more."""
        for task in tasks:
            self._kept.pop(task, None)

    def launch(self, tasks: Iterable[Task]) -> None:
        """These are launched now: those that are to go elsewhere do."""
        going = {task: self._kept.pop(task) for task in tasks if task in self._kept}
        if going:
            relocate(self._job, going)

    def _seat(self, task: Any) -> tuple[int | None, int]:
        """Host and worker of a task, or of the slot that is kept for it."""
        if task in self._kept:
            return self._kept[task]
        return task.host, self._job.supervisor.worker(task)

    def _place(self, task: Task, broken: set[int]) -> tuple[int, int] | None:
        """A host with a slot left, none with a replica of the task if that can be avoided, and the fewest
        tasks; there the worker with the fewest.
        """
        now = self._job.kernel.now
        seats = {other: self._seat(other) for other in self._job.tasks if other is not task}
        taken = [host for host, _ in seats.values()]
        fleet = {
            seats[other][0]
            for other in seats
            if (other.component, other.index) == (task.component, task.index)
        }
        free = [
            host.number
            for host in self._hosts
            if host.number not in broken
            and self._repairs.over(host.number) <= now
            and self.hears(host.number)
            and (host.slots is None or taken.count(host.number) < host.slots)
        ]
        if not free:
            return None
        found = min(free, key=lambda host: (host in fleet, taken.count(host), host))
        workers = range(self._job.deployment.cluster.workers_per_host)
        there = [worker for host, worker in seats.values() if host == found]
        return found, min(workers, key=lambda worker: (there.count(worker), worker))
