"""A server of a mesh of bounded queues."""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

import numpy as np

from tideover.sim.line import NONE, OVER
from tideover.sim.link import Channel
from tideover.sim.mesh_loop import Credit, Loop, Room
from tideover.sim.mesh_node import MeshNode, Stamps, Way
from tideover.sim.queue import InService
from tideover.sim.server import Server
from tideover.sim.site import Member
from tideover.sim.train import Ints, Train

NEVER = -1
"""When a tuple began that was in service at the beginning."""


class History(NamedTuple):
    """What came, in the order in which it is served: tuples, when they came, and of the first of them when
    they began and when they are done.
    """

    rows: Ints
    came: Ints
    begins: Ints
    dones: Ints


class MeshServer(MeshNode):
    """A server that has its turn in the loop for each tuple."""

    eager = True

    def __init__(self, loop: Loop, member: Member) -> None:
        super().__init__(loop, member)
        assert isinstance(member.node, Server)
        self.node: Server = member.node
        self.room = Room(0)
        """Places that all inputs share, if there is a bound and they do."""
        self.apart: list[Credit | None] = []
        """Places of each input, if each has its own."""
        self._inputs = len(self.node.inputs) + 1
        self._work: list[int] = []
        self._over: list[int] = []
        """Of each tuple, over which input it came, where each has its own places."""
        self._keys: list[int] = []
        """When tuples came and over which input, in one number, in order: the first are begun."""
        self._order: list[int] = []
        """Which tuples these are."""
        self._behind: list[tuple[int, int]] = []
        """The same of those that came behind a control marker."""
        self._head = 0
        self._begins: list[int] = []
        self._dones: list[int] = []
        self._looks_at = NEVER
        self._serves: int | None = None
        self._triggers_at = NEVER
        """When a trigger departs."""

    # -- what is there ---------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """What waits in the queue and is in service."""
        node, now = self.node, self.loop.now
        node.queue.take_back(now)
        waiting, in_service = node.queue.unload()
        self._marked = bool(node.queue.line())
        self._countdown = self.does.until_trigger()
        self._free_at = max(node.busy.free_at, now)
        self._fixed = 0 if in_service is None else 1
        if in_service is not None:
            waiting.insert(0, in_service.train)
            self._free_at = in_service.done
            if in_service.triggers:
                self._stop(in_service.done)
        self.there = waiting[self._fixed :]
        """What waits, and has a place."""
        for train in waiting:
            self._add(train, train.column(OVER) if self._apart else NONE)
        self._first_new = self.rows.n
        came = np.concatenate([NONE, *(train.time for train in waiting)])
        self._wait(came, NONE if in_service is None else np.array([in_service.done]))

    def _wait(self, came: Ints, dones: Ints) -> None:
        """All that is known has come at these times; the first may be in service, until then."""
        self._keys = (came * self._inputs).tolist()
        self._order = list(range(len(came)))
        self._head = len(dones)
        self._begins, self._dones = [NEVER] * len(dones), dones.tolist()

    @property
    def _apart(self) -> bool:
        return self.node.bound is not None and self.node.bound.apart

    def _add(self, train: Train, over: Ints) -> int:
        """Tuples are known, or are there; returns the number of the first."""
        self._over += over.tolist()
        self._work += self.does.demand(train).tolist()
        return self.rows.add(train)

    def add(self, channel: Channel, train: Train) -> int:
        """Tuples that will come over a channel are known; returns the number of the first."""
        train = self.does.receive(channel, train)
        over = NONE
        if self._apart:
            over = np.full(train.n, channel.position + 1, np.int64)
            train = train.adding(**{OVER: over})
        return self._add(train, over)

    def come(self) -> None:
        """What is on the wires, and arrives in time."""
        until = self.loop.until
        for channel in self.node.inputs:
            for train in channel.wire:
                due = train.pick(slice(0, int(train.time.searchsorted(until, "right"))))
                if due.n:
                    self._on_the_wire(channel, due)

    def _on_the_wire(self, channel: Channel, train: Train) -> None:
        first = self.add(channel, train)
        for row, when in enumerate(train.time.tolist(), first):
            self.expect(when, channel.position, row)

    def begin_with(self) -> None:
        if self._fixed:
            self._serves = self._order[0]
            self.loop.at(self._dones[0], 2 * self.number, self._end)
        elif self._head < len(self._keys):
            self._look(self._keys[self._head] // self._inputs)

    # -- what happens ----------------------------------------------------------------------------------------

    def expect(self, when: int, position: int, row: int) -> None:
        """A tuple will come over an input."""
        if when > self.loop.until:
            return
        key = when * self._inputs + position
        if self._marked:
            insort(self._behind, (key, row), key=lambda entry: entry[0])
            return
        keys = self._keys
        if not keys or key >= keys[-1]:
            keys.append(key)
            self._order.append(row)
        else:
            self._squeeze_in(key, row)
        if self._serves is None and self.since is None:
            self._look(when)

    def _squeeze_in(self, key: int, row: int) -> None:
        """It comes ahead of others that are known to come."""
        at, least = len(self._keys), max(self._head, self._first_new)
        while at > least and self._keys[at - 1] > key:
            at -= 1
        self._keys.insert(at, key)
        self._order.insert(at, row)

    def _look(self, when: int) -> None:
        """See whether a service begins then, or as soon as it is free."""
        when = max(when, self._free_at, self.loop.now)
        if self._looks_at == NEVER or when < self._looks_at:
            self._looks_at = when
            self.loop.at(when, 2 * self.number + 1, self._start_at)

    def _start_at(self, now: int) -> None:
        if self._looks_at == now:
            self._looks_at = NEVER
            self._begin(now)

    def _begin(self, now: int) -> None:
        """Serve the next tuple, if it is there and nothing holds that up."""
        head = self._head
        if self._serves is not None or self.since is not None or head == len(self._keys):
            return
        if (may := max(self._keys[head] // self._inputs, self._free_at)) > now:
            self._look(may)
            return
        row = self._order[head]
        self._head = head + 1
        done = now + self._work[row]
        self._serves, self._free_at = row, done
        self._begins.append(now)
        self._dones.append(done)
        self.loop.at(done, 2 * self.number, self._end)
        if self._countdown is not None:
            self._countdown -= 1
            if not self._countdown:
                self._stop(done)
        if not self._over:
            self.room.give(now)
        elif (over := self._over[row]) and (credit := self.apart[over - 1]) is not None:
            credit.give(now)

    def _stop(self, done: int) -> None:
        """A trigger departs."""
        self._triggers_at = done
        self.loop.stop(done)

    def _end(self, now: int) -> None:
        row = self._serves
        assert row is not None
        self._serves = None
        if self.ways:
            self.make(row)
            self.pump(now)
        self._begin(now)

    def go_on(self, now: int) -> None:
        self._begin(now)

    # -- what has happened -----------------------------------------------------------------------------------

    def history(self, reached: int) -> History:
        """What came by a moment, and maybe more."""
        came = np.array(self._keys, np.int64) // self._inputs
        begins, dones = np.array(self._begins, np.int64), np.array(self._dones, np.int64)
        return History(np.array(self._order, np.int64), came, begins, dones)

    def _settle(self, reached: int, stamps: Stamps, unblocked: int = 0) -> Ints:
        node, does = self.node, self.does
        rows, came, begins, dones = self.history(reached)
        begun = int(begins.searchsorted(reached, "right"))
        done = int(dones[:begun].searchsorted(reached, "right"))
        node.outbox.let_out(reached)
        fixed = self._fixed
        if begun > fixed:
            served = self.rows.pick(rows[fixed:begun], came[fixed:begun])
            node.busy.total += int(does.serve(served).sum())
            node.busy.free_at = int(dones[begun - 1])
        node.busy.free_at = max(node.busy.free_at, unblocked)  # for what waits behind a marker
        if done:
            does.process(stamps(self.rows.pick(rows[:done], dones[:done])), came[:done])
        in_service = None
        if begun > done:
            train = stamps(self.rows.pick(rows[done:begun], came[done:begun]))
            at = int(dones[done])
            in_service = InService(train, at, at == self._triggers_at)
        new = self._first_new
        end = new + int(came[new:].searchsorted(reached, "right"))
        waiting = None
        if end > begun:
            waiting = stamps(self.rows.pick(rows[begun:end], came[begun:end]))
        node.queue.load(waiting, in_service)
        self._settle_behind(reached, stamps)
        self._settle_credits(rows[fixed:begun], begins[fixed:begun], reached)
        return dones[:done]

    def _settle_behind(self, reached: int, stamps: Stamps) -> None:
        behind = [(key // self._inputs, row) for key, row in self._behind if key // self._inputs <= reached]
        if behind:
            came, rows = np.array(behind, np.int64).T
            self.does.take_in(stamps(self.rows.pick(rows, came)))

    def _settle_credits(self, rows: Ints, begins: Ints, reached: int) -> None:
        """Note what senders do not know yet."""
        for channel, credit in zip(self.node.inputs, self.apart, strict=False):
            if credit is None:
                continue
            over = np.array(self._over, np.int64)[rows] == channel.position + 1
            freed = [*channel.freed, *(begins[over] + channel.notice).tolist()]
            channel.freed = [when for when in freed if when > reached]

    # -- places ----------------------------------------------------------------------------------------------

    def make_room(self, ways: list[Way], taken: int) -> None:
        """Give the channels that lead here their places; ``taken``: so many of those that they share."""
        bound = self.node.bound
        if bound is None:
            return
        self.room.free = bound.length - taken
        for way in ways:
            way.room = self.room
