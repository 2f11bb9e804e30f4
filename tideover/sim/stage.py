"""A node of a series of bounded queues: all that it does follows from when tuples come to it, and
from when there is room for what it sends. It is worked out in trains, as far as that is known.

Item k of a node (a tuple of a server, a call of a spout) begins at b[k] = max(a[k], d[k-1], r[k]), and is
done at d[k] = b[k] + s[k]; a is its arrival, s its service or gap, and r the moment since when there has
been room for all messages of earlier items but the last ``send``. Message m leaves at max(d of its item,
the latest room of the messages up to m). Room for message number n to a queue is there when the tuple
number n less its free places begins its service.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tideover.sim.column import Column, Places
from tideover.sim.fifo import SPAN
from tideover.sim.line import Batch, Line, take_places
from tideover.sim.link import Channel
from tideover.sim.site import Member
from tideover.sim.train import Ints, Train, join

PLAN, ENOUGH = 2048, 512
"""Most items of a node whose messages are worked out at a time, and when there are enough of them."""
FOREVER = 1 << 62
NEVER = -1
"""Of an item that waits for no message to leave."""
Stamps = Callable[[Train], Train]
"""Gives tuples their creation stamps, which are known when their roots are emitted."""


class Receiver(Protocol):
    """A stage where tuples arrive.

    arrivals   of all that waits there or comes: when it came, or comes, as far as that is known
    freed      when those began their service that take a place
    """

    arrivals: Column
    freed: Column

    def comes(self, channel: Channel, train: Train) -> None:
        """These will come over a channel, behind all that was told before."""


class Way:
    """A channel by which a stage sends; ``to``: the stage at its other end (None: it is not in series)."""

    def __init__(self, channel: Channel, to: Receiver | None) -> None:
        self.channel, self.to = channel, to
        self.trains: list[Train] = []
        """What is sent, in order."""
        self.places = Places()
        """Where these messages stand in the line of their sender."""
        self.takers = Places()
        """The same of those that take a place."""
        self.free: int | None = None
        """Places that are free at the beginning; None: there is no bound."""
        self.roomy = 0
        """So many that take a place know when they have it."""
        self._sent = 0
        self._last = channel.free_at
        self._delay = None if channel.delay is None else channel.latencies(0, 1)[0]

    def rooms(self, room: Ints) -> int:
        """Note in ``room``, by place in the line, since when there is room; returns the first place of which
        this is not known.
        """
        if self.free is None or self.to is None:
            return FOREVER
        known = max(0, min(self.takers.n, self.free + self.to.freed.n))
        first = max(self.roomy, self.free)
        if known > first:
            freed = self.to.freed.values[first - self.free : known - self.free]
            room[self.takers.of(first, known)] = freed
        self.roomy = max(self.roomy, known)
        return FOREVER if known == self.takers.n else self.takers.at(known)

    def send(self, left: Ints) -> None:
        """Messages have left, up to the end of ``left`` (when they did, by place in the line)."""
        if self.to is None:
            return
        first, self._sent = self._sent, self.places.before(len(left))
        if self._sent == first:
            return
        time = left[self.places.of(first, self._sent)]
        delay = self._delay
        if delay is None:
            latencies = self.channel.latencies(self.channel.messages + first, len(time))
            time = np.maximum.accumulate(time + np.array(latencies, np.int64))
        else:
            time = time + delay if delay else time
        if time[0] < self._last:
            time = np.maximum(time, self._last)
        self._last = int(time[-1])
        self.to.arrivals.add(time)

    def save(self) -> Callable[[], None]:
        """Remember what has happened; returns what undoes what happens from now on."""
        kept = self.roomy, self._sent, self._last
        to = self.to
        arrived = 0 if to is None else to.arrivals.n

        def restore() -> None:
            self.roomy, self._sent, self._last = kept
            if to is not None:
                to.arrivals.n = arrived

        return restore

    def settle(self, left: Ints, reached: int, stamps: Stamps) -> int:
        """Put on the wire what has left and not arrived; returns how much has left."""
        n, arrived = self.places.before(len(left)), 0
        if self.to is not None and self._sent and self.channel.tap is None:
            comes = self.to.arrivals.values[-self._sent :]
            arrived = int(comes.searchsorted(reached, "right"))
            if arrived:
                self.channel.passed(arrived, int(comes[arrived - 1]))
        if n > arrived:
            train = stamps(cut(self.trains, arrived, n))
            self.channel.send(train.replace(time=left[self.places.of(arrived, n)].copy()))
        return n

    def rest(self, n: int, now: int, stamps: Stamps, up_to: int) -> Train | None:
        """What was made, up to this place of the line, and has not left: all but the first n."""
        end = self.places.before(up_to)
        return stamps(cut(self.trains, n, end).at(now)) if end > n else None


def cut(trains: list[Train], first: int, last: int) -> Train:
    """Rows from number ``first`` on, up to ``last``, of trains one after the other."""
    parts, begin = [], 0
    for train in trains:
        end = begin + train.n
        if begin < last and end > first:
            whole = first <= begin and end <= last
            parts.append(train if whole else train.pick(slice(max(0, first - begin), last - begin)))
        begin = end
    return join(parts)


class Stage:
    """A node among those that are in series. Item 0 stands for all that was before."""

    def __init__(self, member: Member, now: int, until: int) -> None:
        node = self.node = member.node
        self._now, self.until = now, until
        self._hand_on = member.does.hand_on
        self._send = 0 if node.line is None else node.line.send
        self.ways: dict[Any, Way] = {}
        self._work = Column(0)
        self._first = Column(0)
        """Of each item, where its messages end in the line."""
        self._after = Column()
        """Of each item, the message that has to have left before the next one begins."""
        self._begin = Column(NEVER)
        self.done = Column(now)
        self._free_at = now
        self._item = Column()
        """Of each message."""
        self._takers = Places()
        self._room = Column()
        """Of each message, since when there has been room for all up to it, as far as that is known."""
        self._roomy = 0
        self._left = Column()
        self.last: int | None = None
        """The last item that is served: a trigger."""

    # -- what is worked out ahead ----------------------------------------------------------------------------

    def load(self) -> None:
        """What waits in the line."""
        line: Line | None = self.node.line
        self._asked, self._blocked_since = None, None
        if line is not None:
            self._asked, self._blocked_since = line.asked, line.blocked_since
            for batch in line.batches:
                self._made(batch, np.zeros(len(batch.order), np.int64))
            line.batches.clear()
        self._first.values[0] = self._item.n
        self._after.add(self._takers.last_before(self._first.values, self._send))

    def _made(self, batch: Batch, item: Ints) -> None:
        """Messages are known."""
        first = self._item.n
        self._item.add(item)
        self._room.fill(self._now, len(item))
        untaken = []
        for entry, (channel, train) in enumerate(batch.entries):
            way = self.ways[channel]
            way.trains.append(train)
            taking = take_places(train)
            if len(batch.entries) == 1 and taking is None:
                way.places.follow(first, train.n)
                way.takers.follow(first, train.n)
            else:
                at = first + np.flatnonzero(batch.order == entry)
                way.places.add(at)
                way.takers.add(at if taking is None else at[taking])
                untaken.append(at[:0] if taking is None else at[~taking])
            if way.to is not None:
                way.to.comes(way.channel, train)
        if not sum(map(len, untaken)):
            self._takers.follow(first, len(item))
        else:
            self._takers.add(np.setdiff1d(np.arange(first, first + len(item)), np.concatenate(untaken)))

    def _plan(self, train: Train, n: int, work: Ints) -> None:
        """The next n items are known; ``train``: the first of them, those that are tuples."""
        item = self._work.n
        self._work.add(work)
        if not self.ways:
            return
        counts = np.zeros(n, np.int64)
        if train.n and self.node.line is not None:
            rows: Ints | None = None
            if train.mark is not None:
                rows = np.flatnonzero(train.mark == 0)
                train = train.pick(rows).replace(mark=None)
            self._hand_on(train)
            batch = self.node.line.take()
            if batch is not None:
                parent = batch.parent if rows is None else rows[batch.parent]
                self._made(batch, item + parent)
                counts = np.bincount(parent, minlength=n)
        counts[0] += self._first.values[-1]
        ends = counts.cumsum()
        self._first.add(ends)
        self._after.add(self._takers.last_before(ends, self._send))

    # -- what happens ----------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Work out what is known now; returns whether there was anything."""
        planned = self.look_ahead()
        if not self.ways:
            return self._begin_items(FOREVER) or planned
        known = min([self._item.n, *(way.rooms(self._room.values) for way in self.ways.values())])
        if known > self._roomy:
            room = self._room.values[max(0, self._roomy - 1) : known].view(SPAN)
            np.maximum.accumulate(room, out=room)
            self._roomy = known
        begun = self._begin_items(known)
        left = self._leave(known)
        return planned or begun or left

    def may_send(self, way: Way) -> int:
        """So many messages that take a place leave by a way if there is room for all."""
        self.look_ahead()
        return way.takers.before(int(self._first.values[max(self._ready(), self.done.n) - 1]))

    def _begin_items(self, known: int) -> bool:
        first, last = self.done.n, self._ready()
        if self.last is not None:
            last = min(last, self.last + 1)
        if last <= first:
            return False
        if not self.ways:
            self._serve(first, last, np.full(last - first, NEVER))
            return True
        after = self._after.values[first - 1 : last - 1]
        n = int(after.searchsorted(known))
        if not n:
            return False
        after = after[:n]
        room = self._room.values[after] if self._roomy else np.full(n, NEVER)
        if after[0] < 0:
            room[after < 0] = NEVER
        self._serve(first, first + n, room)
        return True

    def _leave(self, known: int) -> bool:
        """Messages leave."""
        first, last = self._left.n, min(known, int(self._first.values[self.done.n - 1]))
        if last <= first:
            return False
        made = self.done.values[self._item.values[first:last]]
        self._left.add(np.maximum(made, self._room.values[first:last]))
        left = self._left.values
        for way in self.ways.values():
            way.send(left)
        return True

    def save(self) -> Callable[[], None]:
        """Remember what has happened; returns what undoes what happens from now on. What is planned stays."""
        columns = [self.done, self._begin, self._left]
        lengths = [column.n for column in columns]
        free_at, roomy = self._free_at, self._roomy
        ways = [way.save() for way in self.ways.values()]

        def restore() -> None:
            for column, n in zip(columns, lengths, strict=True):
                column.n = n
            self._room.values[roomy:] = self._now
            self._free_at, self._roomy = free_at, roomy
            for way in ways:
                way()
            for each in self.ways.values():  # rooms behind this place are noted anew
                each.roomy = min(each.roomy, each.takers.before(roomy))

        return restore

    def look_ahead(self) -> bool:
        """Plan more items, if there are too few; returns whether there are more now."""
        raise NotImplementedError

    def _ready(self) -> int:
        """So many items can begin, if there is room."""
        raise NotImplementedError

    def _serve(self, first: int, last: int, room: Ints) -> None:
        """Items are worked out, which wait until these moments for room."""
        raise NotImplementedError

    # -- what has happened -----------------------------------------------------------------------------------

    def settle(self, reached: int, stamps: Stamps) -> int:
        """Tell the node, and put back what is left; returns how much has happened."""
        line: Line | None = self.node.line
        done = max(1, self.done.until(reached)) - 1
        if line is None:
            self._settle(reached, done, stamps)
            return done
        unblocked = self._account(line, reached, done)
        line.muted = True
        self._settle(reached, done, stamps, unblocked)
        line.muted = False
        left = self._left.values[: self._left.until(reached)]
        counts = [way.settle(left, reached, stamps) for way in self.ways.values()]
        self._put_back(line, counts, len(left), int(self._first.values[done]), reached, stamps)
        return done + len(left)

    def _account(self, line: Line, reached: int, done: int) -> int:
        """How long it was blocked; returns when it was so last (0: never)."""
        since = self.done.values[: done + 1].copy()
        since[0] = self._now if self._blocked_since is None else self._blocked_since
        after = self._after.values[: done + 1]
        until = np.full(done + 1, NEVER, np.int64)
        waits = after >= 0
        known = waits & (after < self._roomy)
        until[known] = self._room.values[after[known]]
        until[waits & ~known] = FOREVER
        over = (until > since) & (until <= reached)
        line.blocked += int((until[over] - since[over]).sum())
        line.blocked_since = int(since[-1]) if until[-1] > max(reached, int(since[-1])) else None
        over[0] |= waits[0] and until[0] <= reached
        return int(until[over].max(initial=0))

    def _put_back(
        self, line: Line, counts: list[int], left: int, made: int, reached: int, stamps: Stamps
    ) -> None:
        line.asked = None
        if made == left:
            return
        ways = list(self.ways.values())
        entries: list[tuple[Channel, Train]] = []
        order = np.zeros(made - left, np.int64)
        for way, n in zip(ways, counts, strict=True):
            train = way.rest(n, reached, stamps, made)
            if train is not None:
                order[np.arange(made)[way.places.of(n, n + train.n)] - left] = len(entries)
                entries.append((way.channel, train))
        line.batches.append(Batch(entries, order, order))
        if left == 0 and self._asked is not None:
            line.asked = self._asked
        elif self._takers.before(left + 1) > self._takers.before(left):
            before = int(self._left.values[left - 1]) if left else self._now
            line.asked = max(before, int(self.done.values[self._item.values[left]]))

    def _settle(self, reached: int, done: int, stamps: Stamps, unblocked: int = 0) -> None:
        raise NotImplementedError
