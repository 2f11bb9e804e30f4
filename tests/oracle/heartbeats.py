"""Heartbeats: processes say that they live, one event each, and somebody waits for the next.

A task has a process of its own here, which beats in time with its worker.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .bolts import Bolt
from .clock import Clock, Part, Priority, Rank, control
from .record import STEPS
from .tasks import Task

if TYPE_CHECKING:
    from tideover.sim.distributions import Distribution

    from .program import World
    from .record import Outage

Seat = tuple[int, int]  # host, worker


class Seats(Part):
    """Those that are kept for tasks until they are launched there."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.kept: dict[Task, Seat] = {}

    def of(self, task: Task) -> Seat:
        return self.kept.get(task, task.home)

    def struck(self, fault: Any, things: list[Hashable]) -> None:
        """In order: the tasks of hosts that fail."""
        tasks = [task for task in self.world.tasks if task in things]
        lost = [task for task in tasks if self.layout.breaks(fault, self.of(task)[0])]
        for task in lost:
            self.kept.pop(task, None)
        for task in lost:
            usable = [host for host in self.layout.every_host if not self.layout.breaks(fault, host)]
            self._find(task, usable)

    def _find(self, task: Task, usable: list[int]) -> None:
        now = self.now
        others = [other for other in self.world.tasks if other is not task]
        free = []
        for host in usable:
            there = [other for other in others if self.of(other)[0] == host]
            slots = self.layout.machines[host].slots if self.layout.machines else None
            room = slots is None or len(there) < slots
            if room and self.world.repaired.get(host, 0) <= now and host != task.host:
                twin = any(other.logical == task.logical for other in there)
                free.append((twin, len(there), host))
        if free:
            host = min(free)[2]
            crew = [self.of(other)[1] for other in others if self.of(other)[0] == host]
            workers = range(getattr(self.world.scenario.hosts, "workers", 1))
            self.kept[task] = host, min(workers, key=crew.count)

    def usable(self, thing: Any) -> int:
        """From when on it can be launched."""
        if thing in self.kept:
            return 0
        acker = thing not in self.world.tasks
        host = self.world.scenario.strategy.acker_host if acker else self.of(thing)[0]
        return self.world.repaired.get(host, 0)

    def go(self, thing: Any) -> None:
        """It is launched now."""
        if thing in self.kept:
            self.world.move(thing, *self.kept.pop(thing))


BEAT: Priority = (1, 0, 0, 0)
"""Ahead of the faults of the instant."""
LISTEN = control(Rank.READY, -1)
"""Behind them."""


class Restarts:
    """Those of one process, or of a job: how long each waits."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.noticed: list[int] = []
        self.ready: list[int | None] = []  # None: another failure came before

    def wait(self, now: int) -> int | None:
        """After a failure that is noticed now; None: there is no restart."""
        wait = self._wait(now)
        self.noticed.append(now)
        self.ready.append(None)
        return wait

    def _wait(self, now: int) -> int | None:
        policy = self.policy
        if policy is None:
            return 0
        if kind_of(policy) == "fixed_delay":
            some = policy.attempts is None or len(self.noticed) < policy.attempts
            return policy.delay if some else None
        if kind_of(policy) == "failure_rate":
            recent = [time for time in self.noticed if time > now - policy.within]
            return policy.delay if len(recent) < policy.most_failures else None
        delay: float = policy.initial
        for number, ready in enumerate(self.ready):
            following = [*self.noticed, now][number + 1]
            since = following if ready is None else ready  # it has never run, if another failure came before
            calm = following - since >= policy.reset_after
            delay = policy.initial if calm else min(delay * policy.factor, policy.most)
        return round(delay)


class Process:
    """Of a task, or of the acker."""

    def __init__(self, thing: Hashable, name: str, policy: Any) -> None:
        self.thing, self.name = thing, name
        self.restarts = Restarts(policy)
        self.state = "ready"  # dead; noticed (nothing is there); launching; preparing
        self.overdue = False
        self.beat: simpy.Event | None = None
        self.timer: simpy.Event | None = None
        self.coming: simpy.Event | None = None  # it is launched, or ready
        self.missed: Callable[[], None] | None = None  # what comes of its death
        self.usable = 0  # nothing can be launched in its place before
        self.given_up = False

    @property
    def gone(self) -> bool:
        return self.state in ("dead", "noticed")


class JobRestart:
    """After a fault that has stopped a job; ``killed``: whose processes died of it."""

    def __init__(self, outage: Outage, killed: list[Process]) -> None:
        self.outage, self.killed, self.missing = outage, killed, list(killed)
        self.noticed = self.ordered = False


class Listener(Part):
    """Who hears the heartbeats, misses them, and has processes launched."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.detector: Any = world.scenario.detector
        self.processes: dict[Hashable, Process] = {}
        self.job_restarts = Restarts(self.detector.restarts)
        self.job: JobRestart | None = None  # the newest
        self.job_ready: list[simpy.Event] = []
        self.seats = Seats(world) if self.detector.restart_on == "free_slot" else None

    def start(self) -> None:
        layout = self.layout
        names = {task: "worker {}.{}".format(*task.home) for task in self.world.tasks}
        for thing, name in {**names, "acker": "acker.0"}.items():
            process = self.processes[thing] = Process(thing, name, self.detector.restarts)
            self._heard(process)
            phase = layout.phase(name, Purpose.HEARTBEAT, self.detector.interval)
            process.beat = self.clock.at(phase, BEAT, partial(self._beat, process))

    def _beat(self, process: Process) -> None:
        self._heard(process)
        later = self.now + self.detector.interval
        process.beat = self.clock.at(later, BEAT, partial(self._beat, process))

    def _heard(self, process: Process) -> None:
        process.overdue = False
        Clock.cancel(process.timer)
        over = self.now + self.detector.timeout
        process.timer = self.clock.at(over, LISTEN, partial(self._time_out, process))

    def _time_out(self, process: Process) -> None:
        if process.missed is None:
            process.overdue = True  # it is still being launched
        else:
            process.missed()

    def _dies(self, process: Process, missed: Callable[[], None]) -> None:
        Clock.cancel(process.beat)
        Clock.cancel(process.coming)
        process.state, process.missed = "dead", missed
        process.usable = 0 if self.seats is None else self.seats.usable(process.thing)
        self.world.outages.again(process.thing)
        if process.overdue:
            self.clock.at(self.now, LISTEN, missed)

    def _launch(self, process: Process, outage: Outage, then: Callable[[], None]) -> None:
        """The order is a sign of life; ``then``: when it runs."""
        process.state, process.missed = "launching", None
        self._heard(process)
        runs = self.now + self._drawn(self.detector.launch, process.name, Purpose.LAUNCH, outage)
        process.coming = self.clock.at(runs, BEAT, partial(self._runs, process, then))

    def _runs(self, process: Process, then: Callable[[], None]) -> None:
        process.state = "preparing"
        self._beat(process)
        then()

    def _drawn(self, what: Distribution, name: str, purpose: Purpose, outage: Outage) -> int:
        return self.layout.sample(what, name, purpose, outage.number)

    def _prepares(self, thing: Hashable, outage: Outage) -> int:
        """How long."""
        name = thing.name if isinstance(thing, Task) else "acker"
        return self._drawn(self.detector.prepare, name, Purpose.PREPARE, outage)

    def _ready_at(self, thing: Hashable, time: int, then: Callable[[], None]) -> simpy.Event:
        act = thing.ready if isinstance(thing, Task) else self.world.protocol.acker_ready_again
        rank = thing.rank if isinstance(thing, Task) else 0

        def ready() -> None:
            then()
            act()

        return self.clock.at(time, control(Rank.READY, rank), ready)

    def taken_down(self, found: list[Task], fault: Any) -> list[Task]:
        """With these all whose slots it takes."""
        kept = {} if self.seats is None else self.seats.kept
        more = [task for task, (host, _) in kept.items() if self.layout.breaks(fault, host)]
        return [task for task in self.world.tasks if task in found or task in more]

    def struck(self, outage: Outage, things: list[Hashable]) -> None:
        """A fault has hit these; what stops with them, as it is of the same job, is not among them."""
        if self.seats is not None:
            self.seats.struck(outage.fault, [each for each in things if not self.processes[each].given_up])
        lives = outage.fault.process_lives
        job = [each for each in things if self.layout.needs.one_job and isinstance(each, Bolt)]
        for thing in things:
            if thing not in job:
                self._alone(self.processes[thing], outage, lives)
        if job:
            self._together([self.processes[thing] for thing in job], outage, lives)

    def _alone(self, process: Process, outage: Outage, lives: bool) -> None:
        outages, thing = self.world.outages, process.thing
        if process.gone or (lives and process.state != "ready"):
            known = {"dead": 0, "noticed": 1, "launching": 2, "preparing": 3}[process.state]
            for step in STEPS[:known]:
                outages.comes_to(step, thing)
        elif lives:
            Clock.cancel(process.coming)
            process.coming = self._ready_at(thing, self.now, lambda: None)  # unless it dies now
        else:
            self._dies(process, partial(self._missed, process, outage))

    def _missed(self, process: Process, outage: Outage) -> None:
        process.state, process.missed = "noticed", None
        Clock.cancel(process.timer)
        self.world.outages.comes_to("noticed", process.thing)
        wait = process.restarts.wait(self.now)
        if wait is None:
            self._give_up([process])
            return
        order = max(self.now + wait, process.usable)
        self.clock.at(order, LISTEN, partial(self._ordered, process, outage))

    def _give_up(self, processes: list[Process]) -> None:
        for process in processes:
            process.given_up = True
            if self.seats is not None:
                self.seats.kept.pop(process.thing, None)

    def _go(self, process: Process) -> None:
        if self.seats is not None:
            self.seats.go(process.thing)

    def _ordered(self, process: Process, outage: Outage) -> None:
        self.world.outages.comes_to("ordered", process.thing)
        self._go(process)
        self._launch(process, outage, partial(self._prepare, process, outage))

    def _prepare(self, process: Process, outage: Outage) -> None:
        self.world.outages.comes_to("launched", process.thing)
        ready = self.now + self._prepares(process.thing, outage)
        process.coming = self._ready_at(process.thing, ready, partial(self._is_back, process))

    def _is_back(self, process: Process) -> None:
        process.state = "ready"
        process.restarts.ready[-1] = self.now

    def _job_things(self) -> list[Task]:
        return [task for task in self.world.tasks if isinstance(task, Bolt)]

    def _together(self, struck: list[Process], outage: Outage, lives: bool) -> None:
        alive = [process for process in struck if not process.gone]
        outages = self.world.outages
        if not alive:
            for task in self.world.bolts:  # with the fault before
                for step in STEPS[: 0 if self.job is None else self.job.noticed + self.job.ordered]:
                    outages.comes_to(step, task)
            return
        restart = self.job = JobRestart(outage, [] if lives else alive)
        Clock.cancel(*self.job_ready)
        for task in self.world.bolts:
            outages.again(task)
        for process in restart.killed:
            self._dies(process, partial(self._missed_of_job, restart, process))
        self._job_missed(restart)

    def _missed_of_job(self, restart: JobRestart, process: Process) -> None:
        process.state, process.missed = "noticed", None
        Clock.cancel(process.timer)
        restart.missing.remove(process)
        self._job_missed(restart)

    def _job_missed(self, restart: JobRestart) -> None:
        """Behind whatever else strikes, or is missed, at this instant, if nothing more is to be missed."""
        if not restart.missing:
            behind = (*LISTEN[:-1], 1 + restart.outage.number)
            self.clock.at(self.now, behind, partial(self._job_noticed, restart))

    def _job_noticed(self, restart: JobRestart) -> None:
        restart.noticed = True
        if restart is self.job:
            for task in self.world.bolts:
                self.world.outages.comes_to("noticed", task)
        wait = self.job_restarts.wait(self.now)
        if wait is None:
            self._give_up(restart.killed)
            return
        order = max([self.now + wait, *(process.usable for process in restart.killed)])
        self.clock.at(order, LISTEN, partial(self._job_ordered, restart))

    def _job_ordered(self, restart: JobRestart) -> None:
        restart.ordered = True
        if restart is self.job:
            for task in self.world.bolts:
                self.world.outages.comes_to("ordered", task)
        for process in restart.killed:
            self._go(process)
            self._launch(process, restart.outage, self._prepare_job)
        self._prepare_job()

    def _prepare_job(self) -> None:
        """When the last process runs that is to."""
        processes = [self.processes[task] for task in self.world.bolts]
        restart = self.job
        if not restart.ordered or any(p.gone or p.state == "launching" for p in processes):
            return
        takes = max(self._prepares(task, restart.outage) for task in self.world.bolts)
        for task in self.world.bolts:
            self.world.outages.comes_to("launched", task)
        self.job_ready = [
            self._ready_at(task, self.now + takes, self._job_is_back) for task in self.world.bolts
        ]

    def _job_is_back(self) -> None:
        self.job_restarts.ready[-1] = self.now
        for task in self.world.bolts:
            self.processes[task].state = "ready"
