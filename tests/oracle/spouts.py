"""Spouts: are called, and emit one root per call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import simpy

from .clock import Clock, departure
from .layout import Datum, Physical
from .tasks import Task

if TYPE_CHECKING:
    from .program import World


class SpoutTask(Task):
    """Is called, and emits one root per call."""

    def __init__(self, world: World, physical: Physical, rank: int) -> None:
        super().__init__(world, physical, rank)
        self.arrivals = world.layout.config[self.component].arrivals
        self.calls = 0
        self.last_call = self.arrivals.offset(self.name, world.layout.draws)
        self.unblocked = 0
        self.new_roots = 0
        self.call_event: simpy.Event | None = None

    def plan_call(self) -> None:
        """The next call, if nothing stands in its way."""
        Clock.cancel(self.call_event)
        if self.world.fed is not None or self.down or self.occupied or not self.world.protocol.may_emit(self):
            return
        if self.stopped_until > self.world.clock.now or self.line.full:
            return
        last, draws = max(self.last_call, self.unblocked), self.world.layout.draws
        times = self.arrivals.next_calls(self.name, draws, last, self.calls, 1)
        if len(times):
            self.call_event = self.world.clock.at(int(times[0]), departure(self.rank), self._call)

    def feed(self, times: list[int]) -> None:
        """Emit a new root at each of these moments, and never be called."""
        for time in times:
            self.world.clock.at(time, departure(self.rank), self._emit_new)

    def _emit_new(self) -> None:
        datum = self.world.layout.root(self.component, self.index, self.new_roots)
        assert datum is not None
        self.new_roots += 1
        self._emit(datum)

    def _call(self) -> None:
        self.calls += 1
        self.last_call = self.world.clock.now
        datum = self.world.protocol.retry(self)
        if datum is None:
            datum = self.world.layout.root(self.component, self.index, self.new_roots)
            self.new_roots += datum is not None
        if datum is not None:
            self._emit(datum)
        self.plan_call()

    def _emit(self, datum: Datum) -> None:
        world, now = self.world, self.world.clock.now
        datum = datum._replace(epoch=self.state.handed, born=now)
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

    def occupy(self, until: int) -> None:
        super().occupy(until)
        self.plan_call()

    def fail(self, kind: str, down_for: int | None, while_down: str) -> None:
        super().fail(kind, down_for, while_down)
        self.plan_call()
