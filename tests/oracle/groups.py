"""Kafka's consumer group: each heartbeat is an event, by which members learn that they have to join anew."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .bolts import Bolt
from .clock import Clock, Rank, control
from .heartbeats import BEAT, LISTEN
from .tasks import Task

if TYPE_CHECKING:
    from .outages import Outage
    from .program import World


@dataclass(eq=False)
class Member:
    """A process that has joined."""

    host: int
    worker: int
    tasks: list[Task] = field(default_factory=list)
    lives: bool = True
    has_joined: bool = True  # in the rebalance under way, if there is one
    beat: simpy.Event | None = None
    session: simpy.Event | None = None

    @property
    def name(self) -> str:
        return f"worker {self.host}.{self.worker}"


class Group:
    """The coordinator."""

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        self.d: Any = world.scenario.detector
        self.members: list[Member] = []
        self.orphans: list[Task] = []
        self.rebalances = 0
        self.waits = False  # for members to join
        self.coming: simpy.Event | None = None  # the assignment
        self.repaired: dict[int, int] = {}

    def start(self) -> None:
        layout = self.world.layout
        at: dict[tuple[int, int], list[Task]] = {}
        for task in self.world.tasks:
            at.setdefault((layout.host[task.physical], layout.worker[task.physical]), []).append(task)
        for host in layout.every_host:
            for worker in range(getattr(self.world.scenario.hosts, "workers", 1)):
                there = at.get((host, worker), [])
                bolts = [task for task in there if isinstance(task, Bolt)]
                if bolts or not there:
                    member = Member(host, worker, bolts)
                    self.members.append(member)
                    self._heard(member)
                    bits = layout.draws.bits(member.name, Purpose.HEARTBEAT, np.zeros(1, np.int64))
                    phase = int(bits[0] >> np.uint64(11)) * self.d.heartbeat_interval >> 53
                    member.beat = self.clock.at(phase, BEAT, partial(self._beat, member))

    # -- signs of life -------------------------------------------------------------------------------------

    def _heard(self, member: Member) -> None:
        Clock.cancel(member.session)
        over = self.clock.now + self.d.session_timeout
        member.session = self.clock.at(over, LISTEN, partial(self._remove, member))

    def _beat(self, member: Member) -> None:
        self._heard(member)
        later = self.clock.now + self.d.heartbeat_interval
        member.beat = self.clock.at(later, BEAT, partial(self._beat, member))
        if self.waits and not member.has_joined:
            member.has_joined = True
            self.clock.at(self.clock.now, LISTEN, self._look)

    # -- faults --------------------------------------------------------------------------------------------

    def taken_down(self, found: list[Task], fault: Any) -> list[Task]:
        """With one task all of its process."""
        if fault.process_lives:
            return found
        dying = [m for m in self.members if m.lives and any(task in m.tasks for task in found)]
        return [t for t in self.world.tasks if t in found or any(t in m.tasks for m in dying)]

    def struck(self, outage: Outage, things: list[Hashable]) -> None:
        fault, layout = outage.fault, self.world.layout
        machines = kind_of(fault) in ("crash_host", "crash_rack")
        broken = [host for host in layout.every_host if machines and layout.fails(fault, host, -1)]
        for host in broken:
            over = self.clock.now + fault.out_of_order
            self.repaired[host] = max(self.repaired.get(host, 0), over)
        for thing in things:
            assert isinstance(thing, Task)
            if isinstance(thing, Bolt) and (thing.down or not fault.process_lives):
                self.world.outages.notice(thing, thing in self.orphans)
            else:
                back = control(Rank.READY, thing.rank)
                Clock.cancel(thing.ready_event)
                thing.ready_event = self.clock.at(self.clock.now, back, thing.ready)
        for member in self.members if not fault.process_lives else ():
            if member.lives and (member.host in broken or any(task in things for task in member.tasks)):
                self._dies(member, outage)

    def _dies(self, member: Member, outage: Outage) -> None:
        member.lives = False
        Clock.cancel(member.beat)
        for task in member.tasks:
            self.world.outages.again(task)
            Clock.cancel(task.ready_event)
        if self.d.restart is not None:
            after = self.world.layout.sample(self.d.restart, member.name, Purpose.LAUNCH, outage.number)
            self.clock.at(self.clock.now + after, LISTEN, partial(self._runs, member))

    # -- members come and go -------------------------------------------------------------------------------

    def _remove(self, member: Member) -> None:
        self.members.remove(member)
        for task in member.tasks:
            self.world.outages.notice(task)
        self.orphans = [t for t in self.world.tasks if t in self.orphans or t in member.tasks]
        if self.waits:
            self._look()
        else:
            self._rebalance()

    def _runs(self, old: Member) -> None:
        """A new process, on the host of one that died."""
        if self.repaired.get(old.host, 0) > self.clock.now:
            self.clock.at(self.repaired[old.host], LISTEN, partial(self._runs, old))
            return
        later = self.clock.now + self.d.heartbeat_interval
        if self.d.static and old in self.members:
            member, old.lives, old.has_joined = old, True, True
            self._ready(old.tasks)
            if self.waits:
                self._look()
        else:
            member = Member(old.host, old.worker)
            self.members.append(member)
            if not self.waits:
                self._rebalance(member)
        self._heard(member)
        member.beat = self.clock.at(later, BEAT, partial(self._beat, member))

    # -- rebalances ----------------------------------------------------------------------------------------

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
            after = self.world.layout.sample(self.d.rebalance, "group", Purpose.LAUNCH, number)
            self.coming = self.clock.at(self.clock.now + after, LISTEN, self._assign)

    def _assign(self) -> None:
        if not self.members:
            return
        orphans, self.orphans = self.orphans, []
        ready = []
        for task in orphans:
            fewest = min(len(member.tasks) for member in self.members)
            # the newest of each place
            places = {(m.host, m.worker): m for m in self.members if len(m.tasks) == fewest}
            member = places[min(places)]
            member.tasks.append(task)
            self.world.move(task, member.host, member.worker)
            if member.lives:
                ready.append(task)
        self._ready(ready)

    def _ready(self, tasks: list[Task]) -> None:
        for task in [task for task in self.world.tasks if task in tasks and task.down]:
            task.ready()
