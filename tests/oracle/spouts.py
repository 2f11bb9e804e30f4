"""Spouts: are called, and emit one root per call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import simpy

from tideover.sim.registry import kind_of

from .clock import Clock, departure
from .layout import Datum, Physical
from .logs import Log
from .open_items import Kestrel
from .tasks import Task

if TYPE_CHECKING:
    from .program import World


class SpoutTask(Task):
    """Is called, and emits one root per call."""

    def __init__(self, world: World, physical: Physical, rank: int) -> None:
        super().__init__(world, physical, rank)
        self.arrivals = world.layout.config[self.component].arrivals
        self.calls = 0
        source = world.layout.config[self.component].source
        read = source is not None
        queue = Kestrel if read and kind_of(source) == "kestrel" else Log
        self.log = queue(self) if read and world.fed is None else None
        self.last_call = 0 if read else self.arrivals.offset(self.name, world.layout.draws)
        self.unblocked = 0
        self.new_roots = 0
        self.call_event: simpy.Event | None = None

    @property
    def blocked(self) -> bool:
        """A spout of a twin emits when it is told to, and ends windows when it is time."""
        return super().blocked and self.world.fed is None

    def plan_call(self) -> None:
        """The next call, if nothing stands in its way."""
        Clock.cancel(self.call_event)
        if self.world.fed is not None or self.down or self.occupied or not self.world.protocol.may_emit(self):
            return
        if self.stopped_until > self.world.clock.now or self.line.full:
            return
        last, draws = max(self.last_call, self.unblocked), self.world.layout.draws
        cost = self.world.protocol.call_cost(self)
        if self.log is not None:
            time = self.log.next_read(last, self.world.protocol.has_retries(self))
            if time is not None:
                self.call_event = self.world.clock.at(time + cost, departure(self.rank), self._call)
            return
        times = self.arrivals.next_calls(self.name, draws, last, self.calls, 1)
        if len(times):
            self.call_event = self.world.clock.at(int(times[0]) + cost, departure(self.rank), self._call)

    def feed(self, roots: list[tuple[int, int]]) -> None:
        """Emit new roots, each at its moment, by number; and never be called."""
        for time, number in roots:
            self.world.clock.at(time, departure(self.rank), partial(self._emit_new, number))

    def _emit_new(self, number: int) -> None:
        datum = self.world.layout.root(self.component, self.index, number)
        assert datum is not None
        self._emit(datum)

    def _call(self) -> None:
        self.calls += 1
        self.last_call = self.world.clock.now
        datum = self.log.read_again() if self.log is not None else None
        if datum is None:
            datum = self.world.protocol.retry(self)
        if datum is None and self.log is not None:
            datum = self.log.read()
        elif datum is None:
            datum = self.world.layout.root(self.component, self.index, self.new_roots)
            self.new_roots += datum is not None
        if datum is not None:
            self._emit(datum)
        self.plan_call()

    def _emit(self, datum: Datum) -> None:
        world, now = self.world, self.world.clock.now
        born = now
        if self.log is not None:
            born = self.log.times[datum.root >> world.layout.spout_bits]
            self.log.emitted(datum)
        event = world.events.setdefault(datum.root, world.layout.event(self.component, datum.root, born))
        datum = datum._replace(epoch=self.state.handed, born=born, event=event)
        world.trace.emitted.append((self.component, self.index, datum.root, datum.attempt, now))
        world.ledger.emitted(datum)
        world.record.emitted(datum)
        world.protocol.emitted(self, datum, self.send(datum))
        world.record.gone(datum)
        if datum.attempt:
            world.record.gone(datum)  # it no longer waits for its retry

    def freed(self) -> None:
        """What stood in the way of calls has gone."""
        self.unblocked = self.world.clock.now
        self.plan_call()

    def go_back(self) -> None:
        if self.log is not None:
            self.log.go_back()

    def retries_wait(self, more: bool) -> None:
        """Something is to be emitted again from now on; ``more``: behind others, which can be read before."""
        if self.log is not None:
            if not (more or self.log.again):
                self.log.since = self.world.clock.now
            self.plan_call()

    def occupy(self, until: int) -> None:
        super().occupy(until)
        self.plan_call()

    def fail(self, kind: str, down_for: int | None, while_down: str) -> None:
        protocol = self.world.protocol
        known = protocol.unconfirmed(self), protocol.waiting_roots()
        super().fail(kind, down_for, while_down)
        if self.log is not None and self.down:
            self.log.crashed(*known)
        self.plan_call()
