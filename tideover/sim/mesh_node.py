"""A node of a mesh of bounded queues: what it makes of tuples, its line, the channels by which it sends.

What tuples turn into is worked out ahead in trains, and what has happened is told in trains; in between there
are only plain numbers. Whatever happens is noted with its time, so that all of it can be cut at any moment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tideover.sim.column import Column
from tideover.sim.line import Batch, Line
from tideover.sim.link import Channel
from tideover.sim.mesh_loop import PLENTY, Loop, Room
from tideover.sim.site import Member
from tideover.sim.train import Ints, Train, join

FIRST, PLAN = 64, 2048
"""Tuples at one node whose messages are worked out at a time: first few, then more and more."""
Stamps = Callable[[Train], Train]
"""Gives tuples their creation stamps, which are known when their roots are emitted."""


class Rows:
    """Tuples at one place, numbered in the order in which they became known. ``n``: how many they are."""

    def __init__(self) -> None:
        self.n = 0
        self._trains: list[Train] = []
        self._fresh: deque[Train] = deque()

    def add(self, train: Train) -> int:
        """Tuples are known; returns the number of the first."""
        first = self.n
        self.n += train.n
        self._trains.append(train)
        self._fresh.append(train)
        return first

    def next(self, most: int) -> Train | None:
        """The next tuples that were not asked for before, at most so many; None: there are none."""
        found, n = [], 0
        while self._fresh and n < most:
            train = self._fresh.popleft()
            if n + train.n > most:
                train, rest = train.split(most - n)
                self._fresh.appendleft(rest)
            found.append(train)
            n += train.n
        return join(found) if found else None

    def pick(self, rows: Ints, times: Ints) -> Train:
        """These tuples (not none) at these times."""
        if len(self._trains) > 1:
            self._trains = [join(self._trains)]
        return self._trains[0].pick(rows).replace(time=times)


class Way:
    """A channel by which a node sends; ``to``: where to (None: out of the mesh)."""

    def __init__(self, channel: Channel, to: Any) -> None:
        self.channel, self.to = channel, to
        self.position = channel.position
        self.rows: Rows = Rows() if to is None else to.rows
        self.room = Room(PLENTY)
        self.eager = to is not None and to.eager
        """Whether the receiver is told of each message when it leaves."""
        self.arrivals = Column()
        """When messages arrive, as far as that was asked in trains."""
        self._came: list[int] = []
        """The same, asked one by one."""
        self._last, self._sent = channel.free_at, channel.messages
        self._delay = None if channel.delay is None else channel.latencies(0, 1)[0]
        self._latencies: list[int] = []

    def add(self, train: Train) -> int:
        """Messages that it will carry are known; returns the number of the first."""
        first: int = self.rows.add(train) if self.to is None else self.to.add(self.channel, train)
        return first

    def send(self, now: int) -> int:
        """A message leaves; returns when it arrives."""
        delay = self._delay
        if delay is None:
            if not self._latencies:
                self._latencies = self.channel.latencies(self._sent + len(self._came), PLAN)[::-1]
            delay = self._latencies.pop()
        if (when := now + delay) < self._last:
            when = self._last
        self._last = when
        self._came.append(when)
        return when

    def fly(self, left: Ints) -> Ints:
        """When these messages, the next that leave, arrive."""
        if self._delay is None:
            latencies = self.channel.latencies(self._sent + self.arrivals.n, len(left))
            time: Ints = np.maximum.accumulate(left + np.array(latencies, np.int64))
        else:
            time = left + self._delay
        if len(time):
            time = np.maximum(time, self._last)
            self._last = int(time[-1])
        self.arrivals.add(time)
        return time

    def settle(self, rows: Ints, left: Ints, reached: int, stamps: Stamps) -> None:
        """Put on the wire what has left, and not arrived at a node of the mesh."""
        arrived = 0
        if self.to is not None and len(rows):
            comes = np.array(self._came, np.int64) if self.eager else self.arrivals.values
            arrived = int(comes[: len(rows)].searchsorted(reached, "right"))
            if arrived:
                self.channel.passed(arrived, int(comes[arrived - 1]))
        if arrived < len(rows):
            self.channel.put(stamps(self.rows.pick(rows[arrived:], left[arrived:])))


class MeshNode:
    """A node of a mesh."""

    def __init__(self, loop: Loop, member: Member) -> None:
        self.loop = loop
        self._start = loop.now
        self.node, self.does = member.node, member.does
        self.number = member.node.number
        self.ways: list[Way] = []
        self.rows = Rows()
        self._index: dict[Any, int] = {}
        self._first = [0]
        """Of each tuple, where its messages begin in the plan; and where the last one's end."""
        self._plan_way: list[int] = []
        self._plan_row: list[int] = []
        self.line_way: list[int] = []
        self._line_row: list[int] = []
        """Messages in the order in which they were made: by which way, and which of its tuples."""
        self.left: list[int] = []
        """When the first of them left."""
        self._ends: list[int] = []
        """Where the messages of each item end in the line."""
        self._known = Column(), Column(), Column()
        """The line as far as it was asked for in trains: ways, rows, times."""
        self._send = 0 if member.node.line is None else member.node.line.send
        self._asks = False
        self._rooms: list[Room] = []
        self._told: list[Way | None] = []
        """Of each way, where its messages need room; and the way if its end is told when one leaves."""
        self._blocks: list[tuple[int, int]] = []
        """From when to when the line held it up."""
        self.since: int | None = None
        """Since when the line has held it up; None: it does not."""

    def connect(self, channel: Channel, to: Any) -> Way:
        """It sends by a channel."""
        way = Way(channel, to)
        self._index[channel] = len(self.ways)
        self.ways.append(way)
        return way

    # -- what is worked out ahead ----------------------------------------------------------------------------

    def load(self) -> None:
        """What waits in the line."""
        line: Line | None = self.node.line
        self._asked = None
        self._rooms = [way.room for way in self.ways]
        self._told = [way if way.eager else None for way in self.ways]
        if line is not None:
            for batch in line.batches:
                ways, rows = self._messages(batch)
                self.line_way += ways.tolist()
                self._line_row += rows.tolist()
            line.batches.clear()
            self.since, self._asked = line.blocked_since, line.asked
            if self.since is None and len(self.line_way) > self._send:
                self.since = self.loop.now  # a control action, or a window's end, has put it there
        self._ends.append(len(self.line_way))
        if not self.line_way:
            return
        room = self.ways[self.line_way[0]].room
        if self._asked is not None and room.free < PLENTY // 2:
            self._asks = True
            room.ask(self._asked, self)
        else:
            self.loop.at(self.loop.now, 2 * self.number, self.pump)

    def _messages(self, batch: Batch) -> tuple[Ints, Ints]:
        """Messages are known: by which way they leave, and which of its tuples they are, in order."""
        rows = np.empty(len(batch.order), np.int64)
        for entry, (channel, train) in enumerate(batch.entries):
            first = self.ways[self._index[channel]].add(train)
            rows[batch.order == entry] = np.arange(first, first + train.n)
        ways = np.array([self._index[channel] for channel, _ in batch.entries], np.int64)
        return ways[batch.order], rows

    def _plan(self) -> None:
        """Work out the messages of the next tuples."""
        train = self.rows.next(max(FIRST, min(len(self._first), PLAN)))
        assert train is not None
        n = train.n
        counts = np.zeros(n, np.int64)
        line: Line | None = self.node.line
        if line is not None:
            line.ahead = True
            self.does.hand_on(train)
            line.ahead = False
            if (batch := line.take()) is not None:
                ways, rows = self._messages(batch)
                self._plan_way += ways.tolist()
                self._plan_row += rows.tolist()
                counts = np.bincount(batch.parent, minlength=n)
        self._first += (self._first[-1] + counts.cumsum()).tolist()

    def make(self, row: int) -> None:
        """The messages of a tuple are made."""
        first = self._first
        while row + 1 >= len(first):
            self._plan()
        begin, end = first[row], first[row + 1]
        self.line_way += self._plan_way[begin:end]
        self._line_row += self._plan_row[begin:end]
        self._ends.append(len(self.line_way))

    def make_nothing(self) -> None:
        """An item has no messages."""
        self._ends.append(len(self.line_way))

    # -- the line --------------------------------------------------------------------------------------------

    def pump(self, now: int) -> None:
        """Let leave what can."""
        line, at = self.line_way, len(self.left)
        end = len(line)
        if at < end and not self._asks:
            at = self._let_leave(now, line, at, end)
        if end - at > self._send:
            if self.since is None:
                self.since = now
        elif self.since is not None:
            self._blocks.append((self.since, now))
            self.since = None
            self.go_on(now)

    def _let_leave(self, now: int, line: list[int], at: int, end: int) -> int:
        """Let messages leave from place ``at`` on, if there is room; returns the place of the next."""
        first, rooms, told, left = at, self._rooms, self._told, self.left
        while at < end:
            number = line[at]
            room = rooms[number]
            if room.free > 0:
                room.free -= 1
            else:
                left += [now] * (at - first)
                first = at
                if room.asks(now, self):
                    self._asks = True
                    return at
                room.free -= 1
            if (way := told[number]) is not None:
                way.to.expect(way.send(now), way.position, self._line_row[at])
            at += 1
        left += [now] * (at - first)
        return at

    def granted(self, now: int) -> None:
        """There is room for the first message of the line."""
        at = len(self.left)
        self._asks = False
        self.left.append(now)
        if (way := self._told[self.line_way[at]]) is not None:
            way.to.expect(way.send(now), way.position, self._line_row[at])
        self.pump(now)

    def begin_with(self) -> None:
        """What it does first."""
        raise NotImplementedError

    def go_on(self, now: int) -> None:
        """The line holds it up no more."""
        raise NotImplementedError

    def sent(self) -> tuple[Ints, Ints, Ints]:
        """What has left, in order: by which way, which of its tuples, and when."""
        ways, rows, left = self._known
        if (first := left.n) < (n := len(self.left)):
            ways.add(np.array(self.line_way[first:n], np.int64))
            rows.add(np.array(self._line_row[first:n], np.int64))
            left.add(np.array(self.left[first:], np.int64))
        return ways.values, rows.values, left.values

    # -- what has happened -----------------------------------------------------------------------------------

    def settle(self, reached: int, stamps: Stamps) -> int:
        """Tell the node, and put back what is left; returns how much has happened."""
        line: Line | None = self.node.line
        if line is None:
            return len(self._settle(reached, stamps, 0))
        unblocked = self._account(line, reached)
        line.muted = True
        done = self._settle(reached, stamps, unblocked)
        line.muted = False
        ways, rows, left = self.sent()
        n = int(left.searchsorted(reached, "right"))
        for number, way in enumerate(self.ways):
            chosen = np.flatnonzero(ways[:n] == number)
            way.settle(rows[chosen], left[chosen], reached, stamps)
        self._put_back(line, n, done, reached, stamps)
        return len(done) + n

    def _account(self, line: Line, reached: int) -> int:
        """How long it was blocked; returns when it was so last (0: never)."""
        blocks = [*self._blocks, *([] if self.since is None else [(self.since, PLENTY)])]
        over = [(since, until) for since, until in blocks if until <= reached]
        line.blocked += sum(until - since for since, until in over)
        still = [since for since, until in blocks if since <= max(reached, self._start) and until > reached]
        line.blocked_since = still[0] if still else None
        return over[-1][1] if over else 0

    def _put_back(self, line: Line, left: int, done: Ints, reached: int, stamps: Stamps) -> None:
        """``left``: so many messages have; ``done``: when items were."""
        line.asked = None
        made = self._ends[len(done)]
        if made == left:
            return
        ways = np.array(self.line_way[left:made], np.int64)
        rows = np.array(self._line_row[left:made], np.int64)
        entries: list[tuple[Any, Train]] = []
        order = np.zeros(made - left, np.int64)
        for number in dict.fromkeys(ways.tolist()):
            chosen = ways == number
            way = self.ways[number]
            times = np.full(int(chosen.sum()), reached, np.int64)
            order[chosen] = len(entries)
            entries.append((way.channel, stamps(way.rows.pick(rows[chosen], times))))
        line.batches.append(Batch(entries, order, order))
        if left == 0 and self._asked is not None:
            line.asked = self._asked
        elif self.ways[int(ways[0])].room.free < PLENTY // 2:
            item = bisect_right(self._ends, left)
            since = int(done[item - 1]) if item else self._start
            line.asked = max(self.left[left - 1] if left else since, since)

    def _settle(self, reached: int, stamps: Stamps, unblocked: int) -> Ints:
        """Tell the node; returns when items were done."""
        raise NotImplementedError
