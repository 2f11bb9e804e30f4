"""A node among those that are coupled, tuple by tuple: what it makes of tuples, its line, its wires.

What tuples turn into, and how long they take, is worked out in trains, ahead; only when things happen is
found one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from tideover.sim.agenda import FOREVER, WORK, Agenda
from tideover.sim.cores import Cores
from tideover.sim.line import Batch, Line
from tideover.sim.link import Channel
from tideover.sim.node import Node
from tideover.sim.pool import Pool
from tideover.sim.room import Room
from tideover.sim.train import Ints, Train

AHEAD = 256
"""Tuples at one node whose children are worked out at a time."""


class Member(NamedTuple):
    """A node that is coupled to others; what it does; the channels by which it sends; the cores that it
    shares (None: it has one of its own).
    """

    node: Node
    does: Any
    outputs: list[Channel]
    cores: Cores | None = None


class Receiver(Protocol):
    """A site where tuples arrive."""

    number: int
    pool: Pool

    def add(self, channel: Channel, train: Train, origin: Ints | None = None) -> int:
        """Tuples that will come over a channel are known; returns the number of the first."""

    def arrive(self, when: int, row: int, wire: Wire) -> None:
        """One of them is there."""


class Wire:
    """A channel between two sites, or out of the coupled part (``to`` None)."""

    def __init__(self, agenda: Agenda, channel: Channel, to: Receiver | None) -> None:
        self.agenda, self.channel, self.to = agenda, channel, to
        self.pool = Pool() if to is None else to.pool
        self.room: Room | None = None
        """Places for what it carries; None: they have no bound."""
        self.arrived = 0
        self.rows: list[int] = []
        self.left: list[int] = []
        """What has left, and when."""
        self._coming: list[tuple[int, int]] = []
        """Arrivals by ``agenda.until``: when, row."""
        self._last = channel.free_at
        self._sent = channel.messages
        self._made: list[int] = []
        """Of what was made for a channel that numbers it, the rows, in order."""
        self._numbers: dict[int, int] = {}
        """By row."""
        self._latencies: list[int] = []

    def add(self, train: Train, origin: Ints | None = None) -> int:
        """Messages that it will carry are known; returns the number of the first."""
        return self.pool.add(train, origin) if self.to is None else self.to.add(self.channel, train, origin)

    def load(self) -> None:
        """What is on the wire, and arrives in time."""
        if self.to is None:
            return
        until, coming = self.agenda.until, self._coming
        for train in self.channel.wire:
            if train.time[0] > until:
                break
            part = train.pick(slice(0, int(train.time.searchsorted(until, "right"))))
            first = self.to.add(self.channel, part)
            coming += zip(part.time.tolist(), range(first, first + part.n), strict=True)
        if coming:
            self._expect()

    def _expect(self) -> None:
        assert self.to is not None
        when, _ = self._coming[self.arrived]
        self.agenda.arrival(when, self.to.number, self.channel.position, self._arrive)

    def _arrive(self, _: None) -> None:
        assert self.to is not None
        when, row = self._coming[self.arrived]
        self.arrived += 1
        if self.arrived < len(self._coming):
            self._expect()
        self.to.arrive(when, row, self)

    def send(self, now: int, row: int) -> None:
        """A message leaves."""
        self.rows.append(row)
        self.left.append(now)
        if self.to is None:
            return
        if not self._latencies:
            self._latencies = self.channel.latencies(self._sent, AHEAD)[::-1]
        self._sent += 1
        self._last = max(self._last, now + self._latencies.pop())
        if self._last <= self.agenda.until:
            self._coming.append((self._last, row))
            if len(self._coming) == self.arrived + 1:
                self._expect()

    def make(self, row: int) -> None:
        """A message is made."""
        if (tap := self.channel.tap) is not None:
            self._made.append(row)
            self._numbers[row] = tap.sent + len(self._made)

    def look_at(self, when: int, row: int) -> Train:
        """A message as it arrives."""
        train = self.pool.one(row, when, self.agenda.emitted)
        if row not in self._numbers:
            return train
        assert self.channel.tap is not None
        return train.adding(**self.channel.tap.columns(np.array([self._numbers[row]])))

    def settle(self) -> None:
        """What was made has its numbers."""
        if self._made:
            assert self.channel.tap is not None
            numbers = np.array([self._numbers[row] for row in self._made], np.int64)
            self.pool.write(self._made, self.channel.tap.columns(numbers))

    def put_back(self, emitted: Ints) -> None:
        """What is on the way, and nothing else, is on the channel."""
        if (train := self.pool.pick(self.rows, self.left, emitted)) is not None:
            self.channel.put(train)
        self.channel.take_first(self.arrived)


Message = tuple[Wire, int]


class Site:
    """A node among those that are coupled: what it does, and its line."""

    def __init__(self, agenda: Agenda, member: Member) -> None:
        node = self.node = member.node
        self.agenda = agenda
        self._hand_on = member.does.hand_on
        self.number = node.number
        self.wires: dict[object, Wire] = {}
        """By which it sends."""
        self.pool = Pool()
        self.messages: list[list[Message]] = []
        """Of each tuple in the pool, as far as they are worked out."""
        self.line: list[Message] = []
        self._first = 0
        """Where the line begins."""
        self.tuples = 0
        """Messages in the line that take a place."""
        self.send = 0 if node.line is None else node.line.send
        self.asked: int | None = None
        self._granted = False
        self.blocked_since: int | None = None
        self.unblocked = 0
        """When its line last held it up no more."""
        self.blocked = 0
        self._stopped = node.busy.stopped_until if node.up else FOREVER
        self._posts = self._posted = 0
        """Messages that it has sent before and puts into its line once more; those that it has put there."""

    # -- what is worked out ahead ----------------------------------------------------------------------------

    def of(self, row: int) -> list[Message]:
        """The messages that a tuple is turned into."""
        if row >= len(self.messages):
            self._plan(row)
        return self.messages[row]

    def _plan(self, row: int) -> None:
        """Work out the messages of all tuples up to this one, and some more."""
        begin = len(self.messages)
        train, origin = self.pool.whole()
        assert train is not None
        part = slice(begin, max(begin + AHEAD, row + 1))
        train = train.pick(part)
        self.messages += [[] for _ in range(train.n)]
        if self.node.line is None or not self.wires:
            return
        rows = np.arange(train.n)
        if train.mark is not None:
            rows = np.flatnonzero(train.mark == 0)
            train = train.pick(rows).replace(mark=None)
        self.node.line.ahead = True
        self._hand_on(train)
        self.node.line.ahead = False
        batch = self.node.line.take()
        if batch is not None:
            batch.parent = rows[batch.parent]
            turns = self._known(batch, origin[part])
            for parent, message in zip(batch.parent.tolist(), turns, strict=True):
                self.messages[begin + parent].append(message)

    def _known(self, batch: Batch, origin: Ints | None = None) -> list[Message]:
        """Messages that were made together, in order."""
        rows = []
        for entry, (channel, train) in enumerate(batch.entries):
            wire = self.wires[channel]
            from_ = None if origin is None else origin[batch.parent[batch.order == entry]]
            first = wire.add(train, from_)
            rows.append(iter(range(first, first + train.n)))
        wires = [self.wires[channel] for channel, _ in batch.entries]
        return [(wires[entry], next(rows[entry])) for entry in batch.order.tolist()]

    # -- the line --------------------------------------------------------------------------------------------

    def load(self) -> None:
        """What waits in the line."""
        line: Line | None = self.node.line
        if line is None:
            return
        for batch in line.batches:
            self.append(self._known(batch))
        line.batches.clear()
        for channel, train in self.node.outbox.messages(self.agenda.until):
            wire = self.wires[channel]
            first = wire.add(train)
            self._posts += train.n
            for row, when in enumerate(train.time.tolist(), first):
                self.agenda.at(max(when, self.agenda.now), self.number, WORK, self._post, (wire, row))
        self.blocked_since = line.blocked_since
        if self.blocked_since is None and not self.may_go_on:
            self.blocked_since = self.agenda.now  # a control action, or a window's end, has put it there
        if not self.line:
            return
        wire = self.line[0][0]
        if line.asked is not None and wire.room is not None:
            self.asked = line.asked
            wire.room.ask(line.asked, self.number, self)
        else:
            self.agenda.at(self.agenda.now, self.number, WORK, self._look)

    def make(self, messages: list[Message]) -> None:
        """Messages are made, and ready to be sent."""
        for wire, row in messages:
            wire.make(row)
        self.append(messages)

    def _post(self, message: Message) -> None:
        self._posted += 1
        self.append([message])
        self.pump()

    def append(self, messages: list[Message]) -> None:
        """Messages are ready to be sent."""
        self.line += messages
        for wire, row in messages:
            self.tuples += wire.pool.takes[row]

    @property
    def may_go_on(self) -> bool:
        """Whether the line lets the node do more."""
        return self.tuples <= self.send

    def pump(self) -> None:
        """Let leave what can."""
        now, line = self.agenda.now, self.line
        while self._first < len(line) and (self.asked is None or self._granted):
            if now < self._stopped:
                self.agenda.at(self._stopped, self.number, WORK, self._look)
                break
            wire, row = line[self._first]
            takes = wire.pool.takes[row]
            if takes and wire.room is not None and not self._granted and not wire.room.take():
                self.asked = now
                wire.room.ask(now, self.number, self)
                break
            self.asked, self._granted = None, False
            self._first += 1
            self.tuples -= takes
            wire.send(now, row)
        if self._first > AHEAD:
            del line[: self._first]
            self._first = 0
        if not self.may_go_on:
            if self.blocked_since is None:
                self.blocked_since = now
        elif self.blocked_since is not None:
            self.blocked += now - self.blocked_since
            self.blocked_since, self.unblocked = None, now
            self.go_on()

    def granted(self, now: int) -> None:
        """There is room for the first message of the line."""
        self._granted = True
        self.agenda.at(now, self.number, WORK, self._look)

    def _look(self, _: None) -> None:
        self.pump()

    def go_on(self) -> None:
        """The line holds it up no more."""
        raise NotImplementedError

    # -- what has happened -----------------------------------------------------------------------------------

    def settle(self, reached: int, emitted: Ints) -> None:
        """Tell the node, and put back what is left."""
        line: Line | None = self.node.line
        if line is None:
            self._settle(reached, emitted)
            return
        line.muted = True
        self._settle(reached, emitted)
        line.muted = False
        left = self.line[self._first :]
        if left:
            line.batches.append(self._batch(left, reached, emitted))
        line.asked = self.asked
        line.blocked += self.blocked
        line.blocked_since = self.blocked_since

    def _batch(self, left: list[Message], now: int, emitted: Ints) -> Batch:
        by_wire: dict[Wire, list[int]] = {}
        for wire, row in left:
            by_wire.setdefault(wire, []).append(row)
        entries = []
        for wire, rows in by_wire.items():
            train = wire.pool.pick(rows, [now] * len(rows), emitted)
            assert train is not None
            entries.append((wire.channel, train))
        place = {wire: i for i, wire in enumerate(by_wire)}
        order = np.array([place[wire] for wire, _ in left], np.int64)
        return Batch(entries, order, order)

    def _settle(self, reached: int, emitted: Ints) -> None:
        raise NotImplementedError
