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
        self.away: dict[int, int] = {}  # until when a host waits for a process that registers by itself

    def of(self, task: Task) -> Seat:
        return self.kept.get(task, task.home)

    def struck(self, fault: Any, things: list[Hashable], replaced: dict[Hashable, int]) -> None:
        """In order: the tasks of hosts that fail, and of processes that are replaced after so long."""
        tasks = [task for task in self.world.tasks if task in things]
        for task in tasks:
            if task in replaced:
                there = max(self.now, self.world.repaired.get(task.home[0], 0)) + replaced[task]
                self.away[task.home[0]] = max(there, self.away.get(task.home[0], 0))
        lost = [task for task in tasks if task in replaced or self.layout.breaks(fault, self.of(task)[0])]
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
            if room and self.works_from(host) <= now and host != task.host:
                twin = any(other.logical == task.logical for other in there)
                free.append((twin, len(there), host))
        if free:
            host = min(free)[2]
            crew = [self.of(other)[1] for other in others if self.of(other)[0] == host]
            workers = range(getattr(self.world.scenario.hosts, "workers", 1))
            self.kept[task] = host, min(workers, key=crew.count)

    def works_from(self, host: int) -> int:
        """When it is repaired, and whoever has to register there has."""
        return max(self.world.repaired.get(host, 0), self.away.get(host, 0))

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
ORDER: Priority = (*LISTEN[:-1], 1 << 40)
"""Behind all that is noticed at that instant."""


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

    def is_over(self, now: int) -> None:
        """The newest restart, unless it is that of a planned stop."""
        if self.ready:
            self.ready[-1] = now

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
        self.state = "ready"  # dead; noticed (nothing is there); launching; preparing; stopped (on purpose)
        self.overdue = False
        self.beat: simpy.Event | None = None
        self.timer: simpy.Event | None = None
        self.coming: simpy.Event | None = None  # it is launched, or ready
        self.missed: Callable[[], None] | None = None  # what comes of its death
        self.usable = 0  # nothing can be launched in its place before
        self.there = 0  # from then on there is a slot for it
        self.sign = 0  # when it was last heard, or ordered
        self.deaths = 0
        self.dropped = False  # nobody deploys anything on the slots of the dead any more
        self.counted = False  # they are still counted, and no others are given out
        self.launches: Callable[[], None] | None = None  # when they are not
        self.given_up = False

    @property
    def gone(self) -> bool:
        return self.state in ("dead", "noticed", "stopped")


class JobRestart:
    """After a fault that has stopped a job; ``killed``: whose processes died of it."""

    def __init__(self, outage: Outage, killed: list[Process]) -> None:
        self.outage, self.killed, self.missing = outage, killed, list(killed)
        self.noticed = self.ordered = self.told = False


class Listener(Part):
    """Who hears the heartbeats, misses them, and has processes launched."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.detector: Any = world.scenario.detector
        self.processes: dict[Hashable, Process] = {}
        self.job_restarts = Restarts(self.detector.restarts)
        self.job: JobRestart | None = None  # the newest
        self.latest: JobRestart | None = None  # of those that were noticed
        self.waiting: list[Process] = []  # who is launched by the next deployment that does not fail
        self.job_ready: list[simpy.Event] = []
        self.seats = Seats(world) if self.detector.restart_on == "free_slot" else None
        self.reserve = [0] * getattr(world.scenario.hosts, "reserve", 0)  # when each can replace another
        self.places: dict[tuple[int, int], int] = {}  # by outage and host: when it is there again, or another

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
        process.overdue, process.sign = False, self.now
        Clock.cancel(process.timer)
        over = self.now + self.detector.timeout
        process.timer = self.clock.at(over, LISTEN, partial(self._time_out, process))

    def _time_out(self, process: Process) -> None:
        if process.gone:
            self._drop(process, process.deaths)
        else:
            process.overdue = True  # it is still being launched

    def _drop(self, process: Process, death: int) -> None:
        process.dropped |= process.deaths == death
        self._tell(process, death)

    def _tell(self, process: Process, death: int) -> None:
        if process.missed is not None and process.deaths == death:
            process.missed()

    def _dies(self, process: Process, missed: Callable[[], None], outage: Outage) -> None:
        Clock.cancel(process.beat)
        Clock.cancel(process.coming)
        process.state, process.missed, process.dropped = "dead", missed, False
        process.counted, process.launches = False, None
        process.deaths += 1
        seats, thing = self.seats, process.thing
        host = self._host(thing)
        process.usable = self._replaced(host, outage) if seats is None else seats.usable(thing)
        process.there = self._comes(process, outage)
        self.world.outages.again(thing)
        if process.overdue:
            self.clock.at(self.now, LISTEN, partial(self._drop, process, process.deaths))
        if self.detector.connection is not None and not self.layout.breaks(outage.fault, host):
            self._is_seen_to_die(process, outage)

    def _comes(self, process: Process, outage: Outage) -> int:
        """When there is a place for it: another process may have to register."""
        seats, thing = self.seats, process.thing
        usable = self._replaced(self._host(thing), outage) if seats is None else seats.usable(thing)
        if self.detector.replacement is None or (seats is not None and thing in seats.kept):
            return usable
        return max(self.now, usable) + self._registers(process, outage)

    def _host(self, thing: Hashable) -> int:
        return thing.host if isinstance(thing, Task) else self.world.scenario.strategy.acker_host

    def _replaced(self, host: int, outage: Outage) -> int:
        """When a host that has failed is repaired, or one in reserve, if that is sooner."""
        place, repaired = (outage.number, host), self.now + outage.fault.out_of_order
        if place not in self.places and outage.fault.out_of_order:
            self.reserve.append(repaired)
            self.reserve.sort()
            self.places[place] = max(self.now, self.reserve.pop(0))
        return self.places.get(place, 0)

    def _is_seen_to_die(self, process: Process, outage: Outage) -> None:
        """By its peers, and by those whose requests do not reach it."""
        d, death = self.detector, process.deaths
        closed = self.now + self._drawn(d.connection, process.name, Purpose.CONNECTION, outage)
        self.clock.at(closed, LISTEN, partial(self._tell, process, death))
        phase = self.layout.phase("job master", Purpose.HEARTBEAT, d.interval)
        senders = ((process.sign, True), (phase - d.interval, False))
        for request, frees in senders if d.rpc_failure_threshold else ():
            while request <= self.now:
                request += d.interval
            self.clock.at(request, BEAT, partial(self._is_refused, process, death, 1, frees))
        moves = self.seats is not None and process.thing in self.seats.kept
        if d.rpc_failure_threshold and (moves or d.replacement is not None):
            process.counted = True
            silent = max(self.now, process.sign + d.timeout)
            self.clock.at(silent, LISTEN, partial(self._frees, process, death))

    def _is_refused(self, process: Process, death: int, times: int, frees: bool) -> None:
        """``frees``: by who gives out slots, and counts those of the dead no more."""
        if times == self.detector.rpc_failure_threshold:
            self.clock.at(self.now, LISTEN, partial(self._drop, process, death))
            if frees:
                self.clock.at(self.now, LISTEN, partial(self._frees, process, death))
        else:
            later = self.now + self.detector.interval
            self.clock.at(later, BEAT, partial(self._is_refused, process, death, times + 1, frees))

    def _frees(self, process: Process, death: int) -> None:
        if process.deaths == death:
            process.counted = False
            if process.launches is not None:
                process.launches()
                process.launches = None

    def _registers(self, process: Process, outage: Outage) -> int:
        """After how long another has, in its place."""
        return self._drawn(self.detector.replacement, process.name, Purpose.REPLACEMENT, outage)

    def _launch(self, process: Process, outage: Outage, then: Callable[[], None]) -> None:
        """The order is a sign of life; ``then``: when it runs."""
        process.state, process.missed = "launching", None
        self._heard(process)
        takes = self._drawn(self.detector.launch, process.name, Purpose.LAUNCH, outage)

        def launches() -> None:
            runs = max(self.now, process.there) + takes
            process.coming = self.clock.at(runs, BEAT, partial(self._runs, process, then))

        if process.counted:
            process.launches = launches
        else:
            launches()

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
        lives = outage.fault.process_lives
        if self.seats is not None:
            dying = [self.processes[each] for each in things if not self.processes[each].gone]
            if lives or self.detector.replacement is None:
                dying = []
            replaced = {process.thing: self._registers(process, outage) for process in dying}
            there = [each for each in things if not self.processes[each].given_up]
            had = [each for each in there if each in self.seats.kept]
            self.seats.struck(outage.fault, there, replaced)
            for thing in had:
                if thing not in self.seats.kept:
                    self._waits_for_its_host(self.processes[thing], thing)
        for thing in things if self.seats is None and outage.fault.out_of_order else ():
            process = self.processes[thing]
            if process.state in ("dead", "noticed"):  # what is not there yet cannot come before its host
                process.there = max(process.there, self._comes(process, outage))
        job = [each for each in things if self.layout.needs.one_job and isinstance(each, Bolt)]
        for thing in things:
            if thing not in job:
                self._alone(self.processes[thing], outage, lives)
        if job:
            self._together([self.processes[thing] for thing in job], outage, lives)

    def _waits_for_its_host(self, process: Process, task: Task) -> None:
        """Its slot is lost, and there is no other."""
        there = self.seats.works_from(task.home[0])
        if process.state == "stopped" and not self.layout.needs.one_job:
            Clock.cancel(process.coming)
            process.coming = self._ready_at(task, there, partial(self._resumes, process))
        process.there = max(process.there, there)

    def stopped(self, outage: Outage, things: list[Hashable], down: int) -> None:
        """They have said that they go, and run again so much later, or at once where slots are free; then
        restarts are counted anew.
        """
        one_job, moved = self.layout.needs.one_job, self._find_slots(outage, things)
        for thing in moved if one_job and moved else things:
            process = self.processes[thing]
            Clock.cancel(process.beat, process.timer, process.coming)
            process.state, process.missed, process.overdue = "stopped", None, False
            process.counted, process.launches = False, None
            process.restarts, process.dropped = Restarts(self.detector.restarts), True
            process.there = self.now
            if thing not in moved:
                process.there += down
                process.coming = self.clock.at(process.there, LISTEN, partial(self._resumes, process))
            elif not one_job:
                Clock.cancel(thing.ready_event)
                process.coming = self.clock.at(self.now, ORDER, partial(self._ordered, process, outage))
        if things and one_job:
            self.job_restarts = Restarts(self.detector.restarts)
            self.job = JobRestart(outage, [self.processes[thing] for thing in moved])
            self.job.noticed = True
            Clock.cancel(*self.job_ready)
            if moved:
                Clock.cancel(*(task.ready_event for task in self.world.bolts))
                self.job_ready = [self.clock.at(self.now, ORDER, partial(self._job_ordered, self.job))]

    def _find_slots(self, outage: Outage, things: list[Hashable]) -> list[Task]:
        """For those of a host that is stopped; all of a job, or none."""
        seats, host = self.seats, getattr(outage.fault, "host", None)
        if seats is None:
            return []
        working = [each for each in things if not getattr(each, "idle", False)]
        if host is not None:
            seats.struck(outage.fault, working, {})
        wait = [each for each in working if max(seats.usable(each), self.processes[each].there) > self.now]
        if self.layout.needs.one_job and (host is None or wait):
            for thing in things:
                seats.kept.pop(thing, None)
        return [thing for thing in working if thing in seats.kept]

    def _resumes(self, process: Process) -> None:
        self._go(process)  # its host may have failed meanwhile
        for step in ("ordered", "launched"):
            self.world.outages.comes_to(step, process.thing)
        process.state = "ready"
        self._beat(process)

    def _alone(self, process: Process, outage: Outage, lives: bool) -> None:
        outages, thing = self.world.outages, process.thing
        if process.gone or (lives and process.state != "ready"):
            known = {"dead": 0, "noticed": 1, "stopped": 1, "launching": 2, "preparing": 3}[process.state]
            for step in STEPS[:known]:
                outages.comes_to(step, thing)
        elif lives:
            Clock.cancel(process.coming)
            process.coming = self._ready_at(thing, self.now, lambda: None)  # unless it dies now
        else:
            self._dies(process, partial(self._missed, process, outage), outage)

    def _missed(self, process: Process, outage: Outage) -> None:
        process.state, process.missed = "noticed", None
        self.world.outages.comes_to("noticed", process.thing)
        self._restart(process, outage)

    def _restart(self, process: Process, outage: Outage) -> None:
        wait = process.restarts.wait(self.now)
        if wait is None:
            self._give_up([process])
            return
        order = self._order_at(wait, [process])
        self.clock.at(order, ORDER, partial(self._ordered, process, outage))

    def _order_at(self, wait: int, processes: list[Process]) -> int:
        """When there is room for a process whose order launches it."""
        held = [p.usable for p in processes] if self.detector.replacement is None else []
        return max([self.now + wait, *held])

    def _fails_at(self, name: str, restarts: Restarts) -> int:
        number = len(restarts.noticed) - 1
        takes = self.layout.sample(self.detector.failed_deployment, name, Purpose.DEPLOY, number)
        return self.now + max(1_000_000, takes)

    def _deployment_fails(self, process: Process, outage: Outage) -> None:
        self.world.outages.restart_fails([process.thing])
        self._restart(process, outage)

    def _give_up(self, processes: list[Process]) -> None:
        for process in processes:
            process.given_up = True
            if self.seats is not None:
                self.seats.kept.pop(process.thing, None)

    def _go(self, process: Process) -> None:
        if self.seats is not None:
            self.seats.go(process.thing)

    def _ordered(self, process: Process, outage: Outage) -> None:
        if not process.dropped:
            name = process.thing.name if isinstance(process.thing, Task) else "acker"
            over = self._fails_at(name, process.restarts)
            self.clock.at(over, ORDER, partial(self._deployment_fails, process, outage))
            return
        self.world.outages.comes_to("ordered", process.thing)
        self._go(process)
        self._launch(process, outage, partial(self._prepare, process, outage))

    def _prepare(self, process: Process, outage: Outage) -> None:
        self.world.outages.comes_to("launched", process.thing)
        ready = self.now + self._prepares(process.thing, outage)
        process.coming = self._ready_at(process.thing, ready, partial(self._is_back, process))

    def _is_back(self, process: Process) -> None:
        process.state = "ready"
        process.restarts.is_over(self.now)

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
            self._dies(process, partial(self._missed_of_job, restart, process), outage)
        self._job_missed(restart)

    def _missed_of_job(self, restart: JobRestart, process: Process) -> None:
        process.state, process.missed = "noticed", None
        restart.missing.remove(process)
        self._job_missed(restart)

    def _job_missed(self, restart: JobRestart) -> None:
        """Behind whatever else strikes, or is missed, at this instant, if nothing more is to be missed; or
        the first is, and peers see it.
        """
        some = self.detector.connection is not None and restart.missing != restart.killed
        if not restart.told and (some or not restart.missing):
            restart.told = True
            behind = (*LISTEN[:-1], 1 + restart.outage.number)
            self.clock.at(self.now, behind, partial(self._job_noticed, restart))

    def _job_noticed(self, restart: JobRestart) -> None:
        restart.noticed = True
        if restart is self.job:
            for task in self.world.bolts:
                self.world.outages.comes_to("noticed", task)
        self.latest = restart
        self.waiting += restart.killed
        self._restart_job(restart)

    def _restart_job(self, restart: JobRestart) -> None:
        alone = self.detector.connection is None
        wait, launched = self.job_restarts.wait(self.now), restart.killed if alone else self.waiting
        if wait is None:
            self._give_up(launched)
            self.waiting = []
            return
        order = self._order_at(wait, launched)
        then = partial(self._job_ordered, restart) if alone else partial(self._job_deployed, restart)
        self.clock.at(order, ORDER, then)

    def _job_deployed(self, restart: JobRestart) -> None:
        """Unless another failure was noticed since; it fails if slots of the dead are in use."""
        if self.latest is not restart:
            return
        processes = [self.processes[task] for task in self.world.bolts]
        if any(process.gone and not process.dropped for process in processes):
            over = self._fails_at("job", self.job_restarts)
            self.clock.at(over, ORDER, partial(self._job_fails_again, restart))
            return
        restart.killed, self.waiting = self.waiting, []
        self.job.ordered = True
        for task in self.world.bolts:
            self.world.outages.comes_to("ordered", task)
        self._job_ordered(restart)

    def _job_fails_again(self, restart: JobRestart) -> None:
        if self.latest is restart:
            self.world.outages.restart_fails(self.world.bolts)
            self._restart_job(restart)

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
        self.job_restarts.is_over(self.now)
        for task in self.world.bolts:
            self.processes[task].state = "ready"
