"""Planned stops: when one is asked for, what is saved first, and what goes down then.

A protocol that saves something says when it is saved by `Protocol.saves_to_stop`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

from tideover.sim.faults import FAULTS

from .bolts import Bolt
from .clock import Clock, Part, Rank, control
from .coordinators import Nimbus
from .faults import befall, take_down

if TYPE_CHECKING:
    from .program import World

SECOND = 10**9


class PlannedStop(Part):
    """The stops of one planned restart, one after the other."""

    def __init__(self, world: World, fault: Any) -> None:
        super().__init__(world)
        self.fault, self.left = fault, list(fault.stops)
        self.things: list[Hashable] = []
        self.going: list[Bolt] = []

    def ask(self) -> None:
        """The next one, or again in a second."""
        if self._is_down() or not self.fault.drain:
            self._save()
            return
        self._silence(self.fault.drain)
        self._later(self.fault.drain, self._save)

    def _is_down(self) -> bool:
        """Whether something that is to be stopped is, or has not got back what it had."""
        spares, bolts = self.world.protocol.spares, self._bolts()
        self.going = bolts
        self.things = [*(t for t in bolts if not spares(t)), *self.world.protocol.hit(self._as())]
        awaited = {thing for outage in self.world.outages.all for thing in outage.left["back"]}
        return bool(awaited & set(self.things)) or not all(t.live for t in bolts if t in self.things)

    def _bolts(self) -> list[Bolt]:
        """Those that go down with it."""
        host, world = self.left[0].host, self.world
        there = [task for task in world.bolts if host is None or (host == task.host and not task.idle)]
        return list(world.bolts) if there and self.layout.needs.one_job else there

    def _as(self) -> Any:
        """The crash that takes the same."""
        host, down = self.left[0]
        more = {"at": 0, "restart": down, "while_down": self.fault.while_down}
        if host is not None:
            return FAULTS["crash_host"](host=host, **more)
        first = self.world.bolts[0].component
        return FAULTS["crash_task"](component=self.world.protocol.boss or first, **more)

    def _save(self) -> None:
        if self._is_down():
            self.again()
        elif not self.things:
            self.go_down()
        elif not self.world.protocol.saves_to_stop(self):
            self.again()

    def again(self) -> None:
        self._later(SECOND, self.ask)

    def go_down(self) -> None:
        world, fault, (host, down) = self.world, self._as(), self.left[0]
        outage = world.outages.strikes(fault, ("planned_restart", "job" if host is None else f"host {host}"))
        if host is not None:
            world.repaired[host] = max(world.repaired.get(host, 0), self.now + down)
        if host is not None and isinstance(world.listener, Nimbus):  # who takes it for dead
            befall(world, fault, outage, take_down)
        else:
            listener, newest = world.listener, {**world.outages.newest}
            slots = [] if listener is None or host is None else listener.taken_down([], fault)
            waiting = [task for task in slots if task not in self.going]
            befall(world, fault, outage, partial(take_down, found=[*self.going, *waiting]))
            if listener is not None:
                listener.stopped(outage, self.things, down)
            if waiting:  # for a slot there, and nobody has to be told that they are down
                for task in outage.tasks:
                    if task not in self.things:
                        Clock.cancel(task.ready_event)
                        world.outages.newest[task] = newest[task]
                listener.struck(outage, waiting)
        for component, working in self.fault.parallelism.items():
            world.protocol.rescale(component, working)
        self._silence(down + 1)
        self.left.pop(0)
        if self.left:
            self._later(down + self.fault.pause, self.ask)

    def _later(self, delay: int, act: Callable[[], None]) -> None:
        self.clock.at(self.now + delay, control(Rank.FAULT), act)

    def _silence(self, duration: int) -> None:
        host = self.left[0].host
        if duration and not self.layout.needs.log:
            for spout in self.world.spouts:
                if host in (None, spout.host):
                    spout.stop(self.now + duration)
