"""Coupled nodes, tuple by tuple: where queues are full, who sends depends on who is served when.

The rules are those of docs/semantics.md, "Bounded queues".
"""

from __future__ import annotations

from bisect import insort
from collections import Counter

import numpy as np

from tideover.sim.agenda import START, WORK, Agenda
from tideover.sim.line import OVER, inputs_of, places
from tideover.sim.link import Channel
from tideover.sim.queue import InService
from tideover.sim.room import Room
from tideover.sim.server import Server, coming
from tideover.sim.site import AHEAD, Member, Site, Wire
from tideover.sim.train import Ints, Train

Stamped = list[tuple[int, int]]
"""Rows, and when."""


class ServerSite(Site):
    """A server among those that are coupled."""

    def __init__(self, agenda: Agenda, member: Member) -> None:
        super().__init__(agenda, member)
        assert isinstance(member.node, Server)
        self.node: Server = member.node
        self._does = member.does
        self.inputs: list[Wire] = []
        self.room: Room | None = None
        """Free places; None: it has no bound, or one that holds nobody back, or its inputs have their own."""
        self.fires = False
        self._service: list[int] = []
        self._marks: set[int] = set()
        self._control: set[int] = set()
        self._came: dict[int, tuple[int, Wire | None]] = {}
        self._waiting: list[tuple[int, int, int, int]] = []
        """When it came, over which input, in which order, and the row."""
        self._head = 0
        self._order = 0
        self._current: tuple[int, int] | None = None
        """In service: row, and when it is done."""
        self._free_at = 0
        self._had_turn = -1
        """The last instant at which what it had been busy with was over."""
        self._countdown: int | None = None
        self._triggers = False
        self._looks_at = -1
        self._begun: list[int] = []
        self._done: Stamped = []
        self._behind: list[tuple[int, int, int, int, int]] = []
        """Behind control markers: how many came in meanwhile, when, over which input, in which order, row."""
        self._held: Stamped = []
        self._gone: Stamped = []
        self._lost: Stamped = []
        self._set_aside = self.node.gate.set_aside
        self._admitted: Stamped | None = [] if self._does.admits() else None
        """What has come, if somebody looks at that."""
        sieve = self.node.sieve
        self._sieve = sieve if sieve is not None and sieve.active else None
        bound = self.node.bound
        self._apart = bound is not None and bound.apart
        self._most = bound.length if bound is not None and not bound.holds_back else None

    # -- what is there ---------------------------------------------------------------------------------------

    def add(self, channel: Channel | None, train: Train, origin: Ints | None = None) -> int:
        """Tuples that will come (over a channel), or are there, are known; returns the number of the
        first.
        """
        if channel is not None:
            train = self._does.receive(channel, train)
            if self._apart:
                train = train.adding(**{OVER: np.full(train.n, channel.position + 1, np.int64)})
        first = self.pool.add(train, origin)
        self._service += self._does.demand(train).tolist()
        if train.mark is not None:
            self._marks.update((np.flatnonzero(train.mark != 0) + first).tolist())
            self._control.update((np.flatnonzero(self._does.is_control(train)) + first).tolist())
        return first

    def take_over(self) -> None:
        """What waits in the queue and is in service."""
        node, agenda = self.node, self.agenda
        node.queue.take_back(agenda.now)
        waiting, in_service = node.queue.unload()
        self._markers_ahead = int(bool(node.queue.line()))
        self._open, self._holds = node.available, node.gate.holds(node.up)
        self._countdown = self._does.until_trigger()
        self._free_at = self._free_from()
        if node.had_turn:
            self._had_turn = agenda.now
        if self._most is not None and (self._free_at > agenda.now or not node.had_turn):
            agenda.at(max(agenda.now, self._free_at), self.number, WORK, self._has_turn)
        for train in waiting:
            first = self.add(None, train)
            for row, came in enumerate(train.time.tolist(), first):
                self._came[row] = came, None
                self._waiting.append((-1, 0, self._order, row))
                self._order += 1
        for place, position in enumerate(node.tied, len(self._waiting) - len(node.tied)):
            self._waiting[place] = (agenda.now, position, *self._waiting[place][2:])
        node.tied = []
        self._take_over_behind()
        if in_service is not None:
            row = self.add(None, in_service.train)
            self._came[row] = int(in_service.train.time[0]), None
            self._triggers = in_service.triggers
            self._serve(row, in_service.done)
        self.go_on()

    def _take_over_behind(self) -> None:
        """What has come behind control markers at this instant, where more may come."""
        node, positions = self.node, iter(self.node.tied_behind)
        for train in node.queue.take_last(len(node.tied_behind)):
            first = self.add(None, train)
            for row, position in zip(range(first, first + train.n), positions, strict=False):
                self._came[row] = self.agenda.now, None
                self._behind.append((self._markers_ahead, self.agenda.now, position, self._order, row))
                self._order += 1
        node.tied_behind = []

    def make_room(self) -> None:
        """The free places, for all inputs or for each."""
        node, bound = self.node, self.node.bound
        if bound is None or not bound.holds_back:
            return
        there = [*node.queue.trains(), *node.gate.held, *node.gate.aside]
        rows = [row for *_, row in (*self._waiting, *self._behind) if self.pool.takes[row]]
        if self._apart:
            taken = Counter(map(self._over, rows))
            for train in there:
                taken.update(inputs_of(train))
            for wire in self.inputs:
                if not wire.channel.logged:
                    self._make_own(wire, bound.length - taken[wire.channel.position + 1])
            return
        self.room = Room(bound.length - len(rows) - sum(map(places, [*there, *coming(node)])))
        for wire in self.inputs:
            wire.room = None if wire.channel.logged else self.room

    def _make_own(self, wire: Wire, free: int) -> None:
        """Places of one input, so many of them if nothing is on the way."""
        channel = wire.channel
        channel.freed = [when for when in channel.freed if when > self.agenda.now]
        wire.room = Room(free - sum(map(places, channel.on_the_way)) - len(channel.freed))
        for when in channel.freed:
            self.agenda.at(when, channel.up.number, WORK, self._told, wire)

    def _told(self, wire: Wire) -> None:
        """A sender learns of a free place."""
        assert wire.room is not None
        wire.room.add(self.agenda.now)

    def _over(self, row: int) -> int:
        """Over which input a tuple came, counted from 1; 0: over none."""
        wire = self._came[row][1]
        if wire is not None:
            return wire.channel.position + 1
        train = self.pool.whole()[0]
        assert train is not None
        return int(train.column(OVER)[row])

    # -- what happens ----------------------------------------------------------------------------------------

    def arrive(self, when: int, row: int, wire: Wire) -> None:
        self._came[row] = when, wire
        if self._sieve is not None and not self._sieve.let_in(wire.channel, wire.look_at(when, row)).n:
            if self.pool.takes[row]:
                self._free(row)
        elif not self._open:
            if self._holds:
                self._held.append((row, when))
            else:
                self._gone.append((row, when))
                if self.pool.takes[row]:
                    self._free(row)
        elif self._most is not None and self.pool.takes[row] and self._queued() >= self._most:
            self._lost.append((row, when))
        elif self._is_let_in(row, when, wire):
            self._order += 1
            insort(self._waiting, (when, wire.channel.position, self._order, row), self._head)
            self.go_on()

    def _is_let_in(self, row: int, when: int, wire: Wire) -> bool:
        """Whether an arrival comes to the end of what waits, ahead of control markers."""
        if self._admitted is not None:
            self._admitted.append((row, when))
        if wire.channel.position in self._set_aside:
            return False
        self._markers_ahead += row in self._control
        if self._markers_ahead:
            self._order += 1
            insort(self._behind, (self._markers_ahead, when, wire.channel.position, self._order, row))
            self._markers_ahead += row in self._control
        return not self._markers_ahead

    def _queued(self) -> int:
        """How many wait, without the one in service or about to be."""
        rows = [row for *_, row in self._waiting[self._head :]] + [row for *_, row in self._behind]
        behind = sum(places(train) for train in self.node.queue.trains())
        waiting = sum(self.pool.takes[row] for row in rows) + behind
        now = self.agenda.now
        if self._may_begin() and (self._free_at < now or self._had_turn == now):  # else this comes before
            waiting -= self.pool.takes[self._waiting[self._head][3]]
        return waiting

    def _may_begin(self) -> bool:
        return (
            self._current is None
            and self.may_go_on
            and self._head < len(self._waiting)
            and self.agenda.now >= self._free_at
        )

    def _has_turn(self, _: None = None) -> None:
        """What it has been busy with is over."""
        self._had_turn = self.agenda.now

    def go_on(self) -> None:
        now = max(self.agenda.now, self._free_at)
        if self._current is None and self._head < len(self._waiting) and self._looks_at != now:
            self._looks_at = now
            self.agenda.at(now, self.number, START, self._begin)

    def _begin(self, _: None) -> None:
        self._looks_at = -1
        if not self._may_begin():
            return
        row = self._waiting[self._head][3]
        self._head += 1
        if self._head > AHEAD:
            del self._waiting[: self._head]
            self._head = 0
        self._begun.append(row)
        takes = self.pool.takes[row]
        self._triggers = row in self._marks
        if self._countdown is not None and not self._triggers:
            self._countdown -= 1
            self._triggers |= self._countdown == 0
        self._start(row)
        if takes:
            self._free(row)

    def _free_from(self) -> int:
        """When nothing keeps it busy that is not a tuple."""
        return self.node.busy.free_at

    def _busy_until(self) -> int:
        """The same, of all that it has begun, as its node has it: what waits behind a marker does not begin
        before the line has let it.
        """
        return max(self._free_at, self.unblocked)

    def _fires_at(self, reached: int) -> int:
        """When a trigger has departed now, as its node has it."""
        return reached

    def _start(self, row: int) -> None:
        """A service begins."""
        self._serve(row, self.agenda.now + self._service[row])

    def _serve(self, row: int, done: int) -> None:
        self._current = row, done
        self._free_at = done
        self.agenda.at(done, self.number, WORK, self._end)

    def _free(self, row: int) -> None:
        """A place is free."""
        now = self.agenda.now
        if self.room is not None:
            self.room.add(now)
        elif self._apart and (over := self._over(row)):
            wire = self.inputs[over - 1]
            wire.channel.give_back(1, now)
            self.agenda.at(now + wire.channel.notice, wire.channel.up.number, WORK, self._told, wire)

    def _end(self, _: None) -> None:
        assert self._current is not None
        self._has_turn()
        self._done.append(self._current)
        row, self._current = self._current[0], None
        self.make(self.of(row))
        self.pump()
        if self._triggers:
            self.fires = self.agenda.stopped = True
        elif self.may_go_on:
            self.go_on()

    # -- what has happened -----------------------------------------------------------------------------------

    def _pick(self, stamped: Stamped, emitted: Ints) -> Train | None:
        return self.pool.pick([row for row, _ in stamped], [when for _, when in stamped], emitted)

    def _settle(self, reached: int, emitted: Ints) -> None:
        node = self.node
        node.outbox.let_out(reached, self._posted)
        if (gone := self._pick(self._gone, emitted)) is not None:
            self._does.drop(gone)
        if (lost := self._pick(self._lost, emitted)) is not None:
            self._does.overflow(lost)
        came = self._came
        if (begun := self.pool.pick(self._begun, [0] * len(self._begun), emitted)) is not None:
            node.busy.total += int(self._does.serve(begun).sum())
        if (done := self._pick(self._done, emitted)) is not None:
            arrival = np.array([came[row][0] for row, _ in self._done], np.int64)
            self._does.process(done, arrival)
        if self._admitted and (admitted := self._pick(self._admitted, emitted)) is not None:
            self._does.admit(admitted)
        if (held := self._pick(self._held, emitted)) is not None:
            node.gate.held.append(held)
        waiting = self._pick([(row, came[row][0]) for *_, row in self._waiting[self._head :]], emitted)
        if (behind := self._pick([(row, when) for _, when, _, _, row in self._behind], emitted)) is not None:
            self._does.take_in(behind)
        current = self._current
        in_service = None
        if current is not None:
            train = self._pick([(current[0], came[current[0]][0])], emitted)
            assert train is not None
            in_service = InService(train, current[1], self._triggers)
        node.queue.load(waiting, in_service)
        node.busy.free_at = self._busy_until()
        if self.agenda.stopped:
            node.tied = [over for when, over, *_ in self._waiting[self._head :] if when == reached]
            last = (each[1:3] for each in self._behind if each[0] == self._markers_ahead)
            node.tied_behind = [over for when, over in last if when == reached]
        kept = self.agenda.stopped and current is None and self._free_at == reached
        node.had_turn = not kept or self._had_turn == reached
        if self.fires:
            node.queue.fire_at(self._fires_at(reached))
