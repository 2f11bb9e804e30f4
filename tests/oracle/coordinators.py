"""Who moves tasks: Storm's supervisors and Nimbus, and Kafka's consumer group. Every heartbeat is an
event.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import simpy

from tideover.sim.draws import Purpose

from .bolts import Bolt
from .clock import Clock, Part, Rank, control
from .heartbeats import BEAT, LISTEN
from .record import STEPS
from .tasks import Task

if TYPE_CHECKING:
    from .program import World
    from .record import Outage

LOOKS = control(Rank.READY, 1 << 19)
"""Nimbus: when all that is ready at that instant has reported."""


@dataclass(frozen=True)
class Reassignment:
    """What befalls tasks that are taken from a process which lives, as a failure."""

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
    state: str = "ready"  # dead, launching, preparing, stopped
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


class Nimbus(Part):
    """It, and the supervisors."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.d: Any = world.scenario.detector
        self.workers: list[Worker] = []
        self.submitted = 0  # the topology, last

    def _in_order(self, worker: Worker) -> bool:
        return self.world.repaired.get(worker.host, 0) <= self.now

    def start(self) -> None:
        layout, d = self.layout, self.d
        at = self.world.at_home()
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
            supervise = partial(self._supervise, host)
            self.clock.each(d.supervisor_round, LISTEN, supervise, first=phase)
        phase = self._phase("nimbus", d.nimbus_round)
        self.clock.each(d.nimbus_round, LOOKS, self._look, first=phase)

    def _phase(self, name: str, period: int, number: int = 0) -> int:
        return self.layout.phase(name, Purpose.HEARTBEAT, period, number)

    def _beats(self, worker: Worker) -> None:
        worker.sign, worker.patience = self.now, self.d.supervisor_worker_timeout
        later = self.now + self.d.worker_heartbeat
        worker.beat = self.clock.at(later, BEAT, partial(self._beats, worker))

    def _reports(self, worker: Worker) -> None:
        worker.reported = self.now
        later = self.now + self.d.task_heartbeat
        worker.report = self.clock.at(later, BEAT, partial(self._reports, worker))

    def taken_down(self, found: list[Task], fault: Any) -> list[Task]:
        """With one task its whole worker."""
        if fault.process_lives:
            return found
        hit = [worker for worker in self.workers if any(task in worker.tasks for task in found)]
        return [task for task in self.world.tasks if any(task in w.tasks for w in hit)]

    def struck(self, outage: Outage, things: list[Hashable]) -> None:
        for worker in [w for w in self.workers if any(task in things for task in w.tasks)]:
            tasks = [task for task in worker.tasks if task in things]
            if worker.state == "stopped":
                self._is_stopped(worker, tasks)
            elif not outage.fault.process_lives:
                if worker.state != "dead":
                    self._dies(worker, outage)
            elif worker.state != "ready":
                known = {"dead": 0, "launching": 2, "preparing": 3}[worker.state]
                for task in tasks:
                    for step in STEPS[:known]:
                        self.world.outages.comes_to(step, task)
            else:
                for task in tasks:
                    back = partial(self._lives, worker, task)
                    Clock.cancel(task.ready_event)  # once from all that strikes at this instant
                    task.ready_event = self.clock.at(self.now, control(Rank.READY, task.rank), back)

    def stopped(self, outage: Outage, things: list[Hashable], down: int) -> None:
        """The topology is killed, and submitted so much later."""
        self.submitted = self.now + down
        for worker in [w for w in self.workers if any(task in things for task in w.tasks)]:
            Clock.cancel(worker.beat, worker.report)
            worker.state, worker.outage, worker.assigned = "stopped", outage, self.submitted
            self.clock.at(self.submitted, LISTEN, partial(self._resumes, worker))

    def _resumes(self, worker: Worker) -> None:
        if worker.state == "stopped":
            for step, task in product(("ordered", "launched"), worker.tasks):
                self.world.outages.comes_to(step, task)
            worker.state = "ready"
            self._beats(worker)
            self._reports(worker)

    def _is_stopped(self, worker: Worker, tasks: list[Task]) -> None:
        """A fault finds no process; its host may be repaired for longer than it is stopped."""
        repaired = self.world.repaired.get(worker.host, 0)
        Clock.cancel(*(task.ready_event for task in tasks))
        if repaired > self.submitted:
            worker.state, worker.sign, worker.patience = "dead", 0, 0
        for task in tasks if repaired <= self.submitted else ():
            self.world.outages.comes_to("noticed", task)
            task.ready_event = self.clock.at(self.submitted, control(Rank.READY, task.rank), task.ready)

    @staticmethod
    def _lives(worker: Worker, task: Task) -> None:
        """It has lost its state, and nothing else has struck it at this instant."""
        if worker.state == "ready":
            task.ready()

    def _dies(self, worker: Worker, outage: Outage) -> None:
        Clock.cancel(worker.beat, worker.report, *worker.coming)
        worker.state, worker.outage = "dead", outage
        for task in worker.tasks:
            self.world.outages.again(task)

    def _supervise(self, host: int) -> None:
        now = self.now
        for worker in self.workers:
            silent = worker.state == "dead" and worker.sign + worker.patience <= now
            if worker.host == host and silent and self._in_order(worker):
                self._launch(worker, worker.outage)

    def _launch(self, worker: Worker, outage: Outage) -> None:
        for step in STEPS[:2]:
            for task in worker.tasks:
                self.world.outages.comes_to(step, task)
        worker.state, worker.sign, worker.patience = "launching", self.now, self.d.worker_start_timeout
        sample = self.layout.sample
        runs = self.now + sample(self.d.launch, worker.name, Purpose.LAUNCH, outage.number)
        takes = max(sample(self.d.prepare, t.name, Purpose.PREPARE, outage.number) for t in worker.tasks)

        def run() -> None:
            worker.state = "preparing"
            for task in worker.tasks:
                self.world.outages.comes_to("launched", task)
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

    def _look(self) -> None:
        now, d = self.now, self.d
        if now < self.submitted:
            return
        for worker in [worker for worker in self.workers if worker.guest_until_home]:
            if self._in_order(worker):
                self._goes_home(worker)
        for worker in self.workers:
            silent = worker.state != "ready" and worker.reported + d.nimbus_task_timeout <= now
            patient = worker.assigned is not None and now < worker.assigned + max(1, d.task_launch)
            if worker.tasks and silent and not patient:
                self._move(worker)

    def _move(self, worker: Worker) -> None:
        reads = {up for task in worker.tasks for up in self.layout.inputs(task.component)}

        def burden(other: Worker) -> tuple[int, bool, int, int]:
            near = any(task.component in reads for task in other.tasks)
            return len(other.tasks), not near, other.host, other.number

        others = [other for other in self.workers if other is not worker and self._in_order(other)]
        if not others:
            return
        target = min(others, key=burden)
        Clock.cancel(worker.beat, worker.report, *worker.coming)
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
        world.outages.struck(outage, list(outage.tasks), self)
        for task in outage.tasks:
            task.fault = outage.number
            task.fail("crash_task", None, task.while_down)
        outage.masked = world.is_masked(outage)
        for worker in workers:
            for task in worker.tasks:
                world.move(task, worker.host, worker.number)
        for worker in workers:
            self._dies(worker, outage)
            worker.assigned = self.now
            if worker.tasks and not self._in_order(worker):
                worker.sign = worker.patience = 0  # when its host is there again
            elif worker.tasks:
                self._launch(worker, outage)
            else:
                worker.state = "free"


@dataclass(eq=False)
class Member:
    """A process that has joined."""

    host: int
    worker: int
    tasks: list[Task] = field(default_factory=list)
    lives: bool = True
    has_joined: bool = True  # in the rebalance under way, if there is one
    rebalances: bool = False  # its tasks do
    until: int = 0  # then it goes on, if it is paused
    beat: simpy.Event | None = None
    session: simpy.Event | None = None

    @property
    def name(self) -> str:
        return f"worker {self.host}.{self.worker}"


@dataclass(eq=False)
class Move:
    """Of tasks that are to be closed as before a planned stop."""

    group: Group
    things: list[Task]

    def go_down(self) -> None:
        self.group.revoke(self.things)

    def again(self) -> None:
        """It is not made now."""


class Group(Part):
    """The coordinator."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.d: Any = world.scenario.detector
        self.members: list[Member] = []
        self.orphans: list[Task] = []
        self.rebalances = 0
        self.waits = False  # for members to join
        self.coming: simpy.Event | None = None  # the assignment
        self.moves: dict[Task, Member] = {}  # who is to have what others have

    def start(self) -> None:
        layout = self.layout
        at = self.world.at_home()
        for host in layout.every_host:
            for worker in range(getattr(self.world.scenario.hosts, "workers", 1)):
                there = at.get((host, worker), [])
                bolts = [task for task in there if isinstance(task, Bolt)]
                if bolts or not there:
                    member = Member(host, worker, bolts)
                    self.members.append(member)
                    self._heard(member)
                    phase = layout.phase(member.name, Purpose.HEARTBEAT, self.d.heartbeat_interval)
                    member.beat = self.clock.at(phase, BEAT, partial(self._beat, member))

    def _heard(self, member: Member) -> None:
        Clock.cancel(member.session)
        over = self.now + self.d.session_timeout
        member.session = self.clock.at(over, LISTEN, partial(self._remove, member))

    def _beat(self, member: Member) -> None:
        self._heard(member)
        later = self.now + self.d.heartbeat_interval
        member.beat = self.clock.at(later, BEAT, partial(self._beat, member))
        if self.waits and not member.has_joined:
            self.clock.at(self.now, LISTEN, partial(self._joins, member))

    def _joins(self, member: Member) -> None:
        """It has heard of the rebalance; what it hands over it closes first."""
        closes = any(self.world.protocol.closes(task) for task in member.tasks)
        if member.lives and member in self.members and not member.has_joined and not closes:
            member.has_joined = member.rebalances = True
            for task in member.tasks:
                self.world.protocol.rebalances(task, True, self.d.protocol == "eager")
        self._look()

    def taken_down(self, found: list[Task], fault: Any) -> list[Task]:
        """With one task all of its process."""
        if fault.process_lives:
            return found
        dying = [m for m in self.members if m.lives and any(task in m.tasks for task in found)]
        return [t for t in self.world.tasks if t in found or any(t in m.tasks for m in dying)]

    def struck(self, outage: Outage, things: list[Hashable]) -> None:
        fault, layout = outage.fault, self.layout
        broken = [host for host in layout.every_host if layout.breaks(fault, host)]
        for thing in things:
            if isinstance(thing, Bolt) and (thing.down or not fault.process_lives):
                if thing in self.orphans:
                    self.world.outages.comes_to("noticed", thing)
            else:
                back = control(Rank.READY, thing.rank)
                Clock.cancel(thing.ready_event)
                thing.ready_event = self.clock.at(self.now, back, thing.ready)
        for member in self.members if not fault.process_lives else ():
            if member.lives and (member.host in broken or any(task in things for task in member.tasks)):
                self._dies(member, outage)

    def stopped(self, outage: Outage, things: list[Hashable], down: int) -> None:
        """These were stopped on purpose, and run again so much later."""
        host = getattr(outage.fault, "host", None)  # None: all
        for member in [m for m in self.members if m.lives and host in (None, m.host)]:
            self._away(member)
            if self.d.leaves:
                Clock.cancel(member.session)
                self.clock.at(self.now, LISTEN, partial(self._remove, member))
            self.clock.at(self.now + down, LISTEN, partial(self._runs, member))

    def _away(self, member: Member) -> None:
        member.lives = member.rebalances = False
        member.until = 0
        Clock.cancel(member.beat)
        for task in member.tasks:
            self.world.outages.again(task)
            Clock.cancel(task.ready_event)

    def _dies(self, member: Member, outage: Outage) -> None:
        self._away(member)
        if self.d.restart is not None:
            after = self.layout.sample(self.d.restart, member.name, Purpose.LAUNCH, outage.number)
            self.clock.at(self.now + after, LISTEN, partial(self._runs, member))

    def fenced(self, task: Task) -> None:
        """Its member has lost all of its tasks, and has joined anew."""
        member = next(member for member in self.members if task in member.tasks)
        self._taken(Reassignment("fenced", member.name), member.tasks)

    def _taken(self, fault: Any, tasks: list[Task]) -> None:
        outages, lost = self.world.outages, [each for each in self.world.tasks if each in tasks]
        outage = outages.strikes(fault)
        outage.tasks = lost
        outages.struck(outage, list(lost), self)
        for each in lost:
            each.fault = outage.number
            each.fail("crash_task", None, each.while_down)
            outages.comes_to("noticed", each)
        for member in self.members:
            member.tasks = [each for each in member.tasks if each not in lost]
        self.orphans = [each for each in self.world.tasks if each in [*self.orphans, *lost]]

    def paused(self, task: Task, until: int) -> None:
        """With all of its process."""
        for member in [m for m in self.members if m.lives and task in m.tasks]:
            for each in member.tasks:
                each.stop(until)
            Clock.cancel(member.beat)
            member.until = max(until, member.until)
            member.beat = self.clock.at(member.until, BEAT, partial(self._goes_on, member))

    def _goes_on(self, member: Member) -> None:
        if member not in self.members:
            self.clock.at(self.now, LISTEN, partial(self._runs, member))
            return
        self._beat(member)
        self.clock.at(self.now, LISTEN, lambda: self._ready(member.tasks if member.lives else []))

    def _remove(self, member: Member) -> None:
        self.members.remove(member)
        if member.lives:  # and is paused
            member.lives = member.rebalances = False
            if member.tasks:
                self._taken(Reassignment("false_detection", member.name), member.tasks)
        for task in member.tasks:
            self.world.outages.comes_to("noticed", task)
        self.orphans = [t for t in self.world.tasks if t in self.orphans or t in member.tasks]
        if self.waits:
            self._look()
        else:
            self._rebalance()

    def _runs(self, old: Member) -> None:
        """A new process, on the host of one that died."""
        if self.world.repaired.get(old.host, 0) > self.now:
            self.clock.at(self.world.repaired[old.host], LISTEN, partial(self._runs, old))
            return
        later = self.now + self.d.heartbeat_interval
        if self.d.static and old in self.members:
            member, old.lives = old, True
            if self.waits and not old.has_joined:
                self._joins(old)
            self._ready(old.tasks)
        else:
            member = Member(old.host, old.worker)
            self.members.append(member)
            if not self.waits:
                self._rebalance(member)
        self._heard(member)
        member.beat = self.clock.at(later, BEAT, partial(self._beat, member))

    def _rebalance(self, joined: Member | None = None) -> None:
        Clock.cancel(self.coming)
        self.rebalances += 1
        self.waits = True
        for member in self.members:
            member.has_joined = member is joined
        self._look()

    def _look(self) -> None:
        if self.waits and all(member.has_joined for member in self.members):
            self.waits = False
            number = self.rebalances - 1
            after = self.layout.sample(self.d.rebalance, "group", Purpose.LAUNCH, number)
            self.coming = self.clock.at(self.now + after, LISTEN, self._assign)

    def _assign(self) -> None:
        if not self.members:
            return
        orphans, self.orphans = self.orphans, []
        held = [task for member in self.members if member.rebalances for task in member.tasks]
        for member in self.members:
            member.rebalances = False
        for task in [task for task in self.world.tasks if task in held]:
            self.world.protocol.rebalances(task, False, False)
        ready = []
        for task in orphans:
            fewest = min(len(member.tasks) for member in self.members)
            # the newest of each place
            places = {(m.host, m.worker): m for m in self.members if len(m.tasks) == fewest}
            member = places[min(places)]
            if task in self.moves and self.moves[task].lives:
                member = self.moves[task]
            member.tasks.append(task)
            self.world.move(task, member.host, member.worker)
            if member.lives and member.until <= self.now:
                ready.append(task)
        self._ready(ready)
        if self.d.warmup_replicas and self.world.protocol.can_move:
            self.clock.at(self.now, LISTEN, partial(self._balance, self.rebalances))

    def _balance(self, number: int) -> None:
        """From who has most tasks to who has fewest."""
        if number != self.rebalances:
            return
        protocol, have = self.world.protocol, {m: list(m.tasks) for m in self.members if m.lives}
        self.moves = {}
        for _ in range(self.d.warmup_replicas if have else 0):
            order = sorted(have, key=lambda m: (len(have[m]), m.host, m.worker))
            if len(have[order[-1]]) - len(have[order[0]]) > 1:
                task = have[order[-1]].pop()
                have[order[0]].append(task)
                self.moves[task] = order[0]
        for task in self.world.bolts:
            protocol.warm_up(task, self.moves[task].host if task in self.moves else None)
        warm = [t for t in self.world.bolts if t in self.moves and t.live and protocol.is_warm(t)]
        if warm:
            protocol.saves_to_stop(Move(self, warm))
        if self.moves:
            probe = partial(self._probe, self.rebalances)
            self.clock.at(self.now + self.d.probing_interval, LISTEN, probe)

    def _probe(self, number: int) -> None:
        if number == self.rebalances:
            self._rebalance()

    def revoke(self, tasks: list[Task]) -> None:
        """They have been closed."""
        owners = [member for member in self.members if any(task in tasks for task in member.tasks)]
        self._taken(Reassignment(where="group"), tasks)
        if not self.waits:
            self._rebalance()
        for member in owners:
            if self.waits and not member.has_joined and member.until <= self.now:
                self._joins(member)

    def _ready(self, tasks: list[Task]) -> None:
        for task in [task for task in self.world.tasks if task in tasks and task.down]:
            task.ready()
