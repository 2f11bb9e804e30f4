"""Spouts: are called, and emit one root per call; and the logs and queues that they read."""

from __future__ import annotations

import heapq
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import simpy

from tideover.sim.registry import kind_of

from .clock import Clock, Part, Rank, control, departure
from .layout import Datum, Physical
from .tasks import Task

if TYPE_CHECKING:
    from .program import World


class Log(Part):
    """Of one spout task: its partitions' records, one after the other as they were appended."""

    def __init__(self, spout: SpoutTask) -> None:
        super().__init__(spout.world)
        self.spout = spout
        config = spout.world.layout.config[spout.component]
        self.source, self.arrivals = config.source, config.arrivals
        count = self.source.partitions or config.parallelism
        self.heap: list[tuple[int, int, int]] = []  # time of the next record, partition, its number there
        for partition in range(spout.index, count, config.parallelism):
            start = self.arrivals.offset(self._name(partition), spout.world.layout.draws)
            self._produce(partition, start, 0)
        self.times: list[int] = []  # when each record was appended
        self.position = 0  # the next new one
        self.found: int | None = None  # the one that is read next, if some before it were deleted
        self.committed = 0
        self.again: deque[Datum] = deque()  # read before, and to be read once more
        self.since = 0  # when what is to be emitted again was put there
        self.attempts: dict[int, int] = {}  # by root, the last one

    def _name(self, partition: int) -> str:
        return f"{self.spout.component}.partition.{partition}"

    def _produce(self, partition: int, last: int, number: int) -> None:
        draws = self.layout.draws
        times = self.arrivals.next_calls(self._name(partition), draws, last, number, 1)
        if len(times):
            heapq.heappush(self.heap, (int(times[0]), partition, number))

    def appended(self, number: int) -> int | None:
        """When the record of that number is appended; None: never."""
        if self.root(number) is None:
            return None
        while len(self.times) <= number and self.heap:
            time, partition, count = heapq.heappop(self.heap)
            self.times.append(time)
            self._produce(partition, time, count + 1)
        return self.times[number] if number < len(self.times) else None

    def root(self, number: int) -> Datum | None:
        """What the record of that number holds."""
        return self.layout.root(self.spout.component, self.spout.index, number)

    def deleted(self, number: int, now: int) -> bool:
        """Whether a record is too old."""
        time, most = self.appended(number), self.source.retention
        return time is not None and most is not None and now - time > most

    def next_read(self, since: int, retries: bool) -> int | None:
        """When the spout, which is free since then, has read something more; None: there is nothing more."""
        begins = [max(since, self.since)] if retries or self.again else []
        number = self.position
        while self.deleted(number, since):
            number += 1
        self.found = number
        appended = self.appended(number)
        if appended is not None:
            begins.append(max(since, appended))
        return min(begins) + self.source.poll_cost if begins else None

    def read(self) -> Datum | None:
        """The next new record; those that were deleted before it are lost."""
        for number in range(self.position, self.found):
            gone = self.root(number)
            self.world.ledger.emitted(gone)
        self.position = self.found + 1
        return self.root(self.found)

    def read_again(self) -> Datum | None:
        """The next record that was read before."""
        if not self.again:
            return None
        datum = self.again.popleft()
        self.world.ledger.replayed.add(datum.root)
        return datum

    def start(self) -> None:
        """Commit from time to time."""
        self.clock.each(self.source.commit_interval, control(Rank.TRIM, self.spout.rank), self._commit)

    def _commit(self) -> None:
        if not self.spout.down:
            needed = self.world.protocol.unconfirmed(self.spout) | {datum.root for datum in self.again}
            bits = self.layout.spout_bits
            self.committed = min((root >> bits for root in needed), default=self.position)

    def kept(self) -> set[int]:
        """Roots that can be read again at the end of the run, or are about to be."""
        numbers, end = range(self.committed, self.position), self.world.scenario.run.duration
        roots = [self.root(number) for number in numbers if not self.deleted(number, end)]
        return {datum.root for datum in (*roots, *self.again) if datum is not None}

    def emitted(self, datum: Datum) -> None:
        """The spout has emitted a root of it."""
        self.attempts[datum.root] = datum.attempt

    def crashed(self, unconfirmed: set[int], waiting: set[int]) -> None:
        """The spout has, with what it had not confirmed, some of which was waiting to be emitted again: what
        was to be read once more is forgotten.
        """
        for datum in self.again:
            self.world.record.gone(datum)
        self.again.clear()

    def go_back(self) -> None:
        """Read on from the committed offset."""
        now = self.since = self.now
        for number in range(self.committed, self.position):
            if not self.deleted(number, now):
                datum = self._next_attempt(number)
                self.again.append(datum)
                self.world.record.there(datum)

    def _next_attempt(self, number: int) -> Datum:
        """A record that is to be emitted once more."""
        datum = self.root(number)
        return datum._replace(attempt=self.attempts.get(datum.root, 0) + 1)


LONG_AGO = -(1 << 62)  # before any timeout, however long


class Kestrel(Log):
    """Items are taken as records of a log are; there is no offset, but each has its own end."""

    def __init__(self, spout: SpoutTask) -> None:
        super().__init__(spout)
        self.given_out: dict[int, int] = {}  # by root: when it was emitted last
        self.orphans: dict[int, int] = {}  # the same, of those that the spout has forgotten

    def start(self) -> None:
        self.clock.each(self.source.sweep_interval, control(Rank.TRIM, self.spout.rank), self._sweep)

    def emitted(self, datum: Datum) -> None:
        super().emitted(datum)
        self.given_out[datum.root] = self.now

    def _sweep(self) -> None:
        if self.spout.down:
            return
        before = self.now - self.source.timeout
        protocol = self.world.protocol
        pending = protocol.unconfirmed(self.spout) - protocol.waiting_roots()
        late = {root for root in pending if self.given_out[root] <= before}
        protocol.give_up(self.spout, late)
        again = sorted((time, root) for root, time in self.orphans.items() if time <= before)
        for _, root in again:
            del self.orphans[root]
        numbers = [root >> self.layout.spout_bits for _, root in again]
        protocol.emit_again(self.spout, [self._next_attempt(number) for number in numbers])

    def kept(self) -> set[int]:
        return set(self.orphans)

    def crashed(self, unconfirmed: set[int], waiting: set[int]) -> None:
        for root in unconfirmed:
            self.orphans[root] = LONG_AGO if root in waiting else self.given_out[root]

    def go_back(self) -> None:
        self.since = self.now


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
        if self.stopped_until > self.now or self.line.full:
            return
        last, draws = max(self.last_call, self.unblocked), self.layout.draws
        cost = self.world.protocol.call_cost(self)
        if self.log is not None:
            time = self.log.next_read(last, self.world.protocol.has_retries(self))
            if time is not None:
                self.call_event = self.clock.at(time + cost, departure(self.rank), self._call)
            return
        times = self.arrivals.next_calls(self.name, draws, last, self.calls, 1)
        if len(times):
            self.call_event = self.clock.at(int(times[0]) + cost, departure(self.rank), self._call)

    def feed(self, roots: list[tuple[int, int]]) -> None:
        """Emit new roots, each at its moment, by number; and never be called."""
        for time, number in roots:
            self.clock.at(time, departure(self.rank), partial(self._emit_new, number))

    def _emit_new(self, number: int) -> None:
        datum = self.layout.root(self.component, self.index, number)
        self._emit(datum)

    def _call(self) -> None:
        self.calls += 1
        self.last_call = self.now
        datum = self.log.read_again() if self.log is not None else None
        if datum is None:
            datum = self.world.protocol.retry(self)
        if datum is None and self.log is not None:
            datum = self.log.read()
        elif datum is None:
            datum = self.layout.root(self.component, self.index, self.new_roots)
            self.new_roots += datum is not None
        if datum is not None:
            self._emit(datum)
        self.plan_call()

    def _emit(self, datum: Datum) -> None:
        world, now = self.world, self.now
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
        self.unblocked = self.now
        self.plan_call()

    def go_back(self) -> None:
        if self.log is not None:
            self.log.go_back()

    def retries_wait(self, more: bool) -> None:
        """Something is to be emitted again from now on; ``more``: behind others, which can be read before."""
        if self.log is not None:
            if not (more or self.log.again):
                self.log.since = self.now
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
