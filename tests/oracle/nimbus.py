"""Storm's supervisors and Nimbus: every heartbeat and every round is an event."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .clock import Clock, Rank, control
from .heartbeats import BEAT, LISTEN

if TYPE_CHECKING:
    from .outages import Outage
    from .program import World
    from .tasks import Task

LOOKS = control(Rank.READY, 1 << 19)
"""Nimbus: when all that is ready at that instant has reported."""


@dataclass(frozen=True)
class Reassignment:
    """What Nimbus does to a worker, as a failure."""

    kind: str = "reassigned"
    where: str = ""
    detection: int = 0
    lasts: int = 0


@dataclass(eq=False)
class Worker:
    host: int
    number: int
    home: list[Task]
    tasks: list[Task] = field(default_factory=list)
    state: str = "ready"  # dead, launching, preparing
    beat: simpy.Event | None = None
    report: simpy.Event | None = None
    coming: list[simpy.Event] = field(default_factory=list)
    sign: int = 0  # to its supervisor
    patience: int = 0
    reported: int = 0  # its tasks to Nimbus
    assigned: int | None = None
    guest_until_home: bool = False  # its tasks are crowded in elsewhere, and go home in the next round
    outage: Outage | None = None

    @property
    def name(self) -> str:
        return f"worker {self.host}.{self.number}"


class Nimbus:
    """It, and the supervisors."""

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        self.d: Any = world.scenario.detector
        self.workers: list[Worker] = []
        self.broken: dict[int, int] = {}  # until when each host is repaired

    def _in_order(self, worker: Worker) -> bool:
        return self.broken.get(worker.host, 0) <= self.clock.now

    def breaks(self, fault: Any) -> None:
        """A host, or a rack of them, fails, and is repaired."""
        for host in self.world.layout.every_host if kind_of(fault) in ("crash_host", "crash_rack") else ():
            if self.world.layout.fails(fault, host, -1):
                self.broken[host] = max(self.broken.get(host, 0), self.clock.now + fault.out_of_order)

    def start(self) -> None:
        layout, d = self.world.layout, self.d
        at: dict[tuple[int, int], list[Task]] = {}
        for task in self.world.tasks:
            at.setdefault((layout.host[task.physical], layout.worker[task.physical]), []).append(task)
        processes = range(getattr(self.world.scenario.hosts, "workers", 1))
        every = [(host, number) for host in layout.every_host for number in processes]
        free = [place for place in every if place not in at]
        for host, number in [*sorted(at), *free]:
            tasks = at.get((host, number), [])
            worker = Worker(host, number, tasks, list(tasks), "ready" if tasks else "free")
            worker.patience = d.supervisor_worker_timeout
            self.workers.append(worker)
            if tasks:
                first = self._phase(worker.name, d.worker_heartbeat)
                worker.beat = self.clock.at(first, BEAT, partial(self._beats, worker))
                first = self._phase(worker.name, d.task_heartbeat, 1)
                worker.report = self.clock.at(first, BEAT, partial(self._reports, worker))
        for host in sorted({worker.host for worker in self.workers}):
            phase = self._phase(f"supervisor {host}", d.supervisor_round)
            self.clock.at(phase, LISTEN, partial(self._supervise, host))
        self.clock.at(self._phase("nimbus", d.nimbus_round), LOOKS, self._look)

    def _phase(self, name: str, period: int, number: int = 0) -> int:
        bits = self.world.layout.draws.bits(name, Purpose.HEARTBEAT, np.array([number]))
        return int(bits[0] >> np.uint64(11)) * period >> 53

    # -- signs of life -------------------------------------------------------------------------------------

    def _beats(self, worker: Worker) -> None:
        worker.sign, worker.patience = self.clock.now, self.d.supervisor_worker_timeout
        later = self.clock.now + self.d.worker_heartbeat
        worker.beat = self.clock.at(later, BEAT, partial(self._beats, worker))

    def _reports(self, worker: Worker) -> None:
        worker.reported = self.clock.now
        later = self.clock.now + self.d.task_heartbeat
        worker.report = self.clock.at(later, BEAT, partial(self._reports, worker))

    # -- death and launch ----------------------------------------------------------------------------------

    def taken_down(self, found: list[Task], lives: bool) -> list[Task]:
        """With one task its whole worker."""
        hit = [worker for worker in self.workers if any(task in worker.tasks for task in found)]
        return found if lives else [task for task in self.world.tasks if any(task in w.tasks for w in hit)]

    def struck(self, outage: Outage, things: list[Hashable]) -> None:
        for worker in [w for w in self.workers if any(task in things for task in w.tasks)]:
            tasks = [task for task in worker.tasks if task in things]
            if not outage.fault.process_lives:
                if worker.state != "dead":
                    self._dies(worker, outage)
            elif worker.state != "ready":
                for task in tasks if worker.state != "dead" else ():
                    self.world.outages.notice(task)
            else:
                for task in tasks:
                    back = partial(self._lives, worker, task)
                    Clock.cancel(task.ready_event)  # once from all that strikes at this instant
                    task.ready_event = self.clock.at(self.clock.now, control(Rank.READY, task.rank), back)

    @staticmethod
    def _lives(worker: Worker, task: Task) -> None:
        """It has lost its state, and nothing else has struck it at this instant."""
        if worker.state == "ready":
            task.ready()

    def _dies(self, worker: Worker, outage: Outage) -> None:
        for event in (worker.beat, worker.report, *worker.coming):
            Clock.cancel(event)
        worker.state, worker.outage = "dead", outage

    def _supervise(self, host: int) -> None:
        now = self.clock.now
        for worker in self.workers:
            silent = worker.state == "dead" and worker.sign + worker.patience <= now
            if worker.host == host and silent and self._in_order(worker):
                assert worker.outage is not None
                self._launch(worker, worker.outage)
        self.clock.at(now + self.d.supervisor_round, LISTEN, partial(self._supervise, host))

    def _launch(self, worker: Worker, outage: Outage) -> None:
        for task in worker.tasks:
            self.world.outages.notice(task)
        worker.state, worker.sign, worker.patience = "launching", self.clock.now, self.d.worker_start_timeout
        sample = self.world.layout.sample
        runs = self.clock.now + sample(self.d.launch, worker.name, Purpose.LAUNCH, outage.number)
        takes = max(sample(self.d.prepare, t.name, Purpose.PREPARE, outage.number) for t in worker.tasks)

        def run() -> None:
            worker.state = "preparing"
            self._beats(worker)

        def ready(task: Task) -> None:
            if worker.state != "ready":
                worker.state = "ready"
                self._reports(worker)
            task.ready()

        worker.coming = [self.clock.at(runs, BEAT, run)]
        for task in worker.tasks:
            at = control(Rank.READY, task.rank)
            worker.coming.append(self.clock.at(runs + takes, at, partial(ready, task)))

    # -- Nimbus --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        now, d = self.clock.now, self.d
        for worker in [worker for worker in self.workers if worker.guest_until_home]:
            if self._in_order(worker):
                self._goes_home(worker)
        for worker in self.workers:
            silent = worker.state != "ready" and worker.reported + d.nimbus_task_timeout <= now
            patient = worker.assigned is not None and now < worker.assigned + max(1, d.task_launch)
            if worker.tasks and silent and not patient:
                self._move(worker)
        self.clock.at(now + d.nimbus_round, LOOKS, self._look)

    def _move(self, worker: Worker) -> None:
        reads = {up for task in worker.tasks for up in self.world.layout.inputs(task.component)}

        def burden(other: Worker) -> tuple[int, bool, int, int]:
            near = any(task.component in reads for task in other.tasks)
            return len(other.tasks), not near, other.host, other.number

        others = [other for other in self.workers if other is not worker and self._in_order(other)]
        if not others:
            return
        target = min(others, key=burden)
        for event in (worker.beat, worker.report, *worker.coming):
            Clock.cancel(event)
        worker.state = "free"
        if target.tasks:
            worker.guest_until_home = True
        else:
            target.home, worker.home = worker.tasks, []
            target.guest_until_home = False  # whose home it was stays elsewhere
        target.tasks, worker.tasks = [*target.tasks, *worker.tasks], []
        self._reassign([target])

    def _goes_home(self, worker: Worker) -> None:
        worker.guest_until_home = False
        hosts = [other for other in self.workers if any(task in worker.home for task in other.tasks)]
        for other in hosts:
            other.tasks = [task for task in other.tasks if task not in worker.home]
        worker.tasks = list(worker.home)
        self._reassign([*hosts, worker])

    def _reassign(self, workers: list[Worker]) -> None:
        world = self.world
        fault: Any = Reassignment()
        outage = world.outages.strikes(fault)
        moved = {task for worker in workers for task in worker.tasks}
        outage.tasks = [task for task in world.tasks if task in moved]
        world.outages.struck(outage, list(outage.tasks))
        for task in outage.tasks:
            task.fault = outage.number
            task.fail("crash_task", None, task.while_down)
        for worker in workers:
            for task in worker.tasks:
                world.move(task, worker.host, worker.number)
        for worker in workers:
            self._dies(worker, outage)
            worker.assigned = self.clock.now
            if worker.tasks and not self._in_order(worker):
                worker.sign = worker.patience = 0  # when its host is there again
            elif worker.tasks:
                self._launch(worker, outage)
            else:
                worker.state = "free"
