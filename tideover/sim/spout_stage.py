"""A spout of a series of bounded queues."""

from __future__ import annotations

import numpy as np

from tideover.sim.column import Column
from tideover.sim.fifo import departures
from tideover.sim.line import Line
from tideover.sim.site import Member
from tideover.sim.stage import ENOUGH, FOREVER, PLAN, Stage, Stamps
from tideover.sim.train import Ints, Train


class SpoutStage(Stage):
    """A spout in series: its items are calls.

    When a root is emitted is not known when what becomes of it is worked out: until then it has the number of
    its call (of spout ``number`` of ``spouts``) in place of its creation stamp.
    """

    def __init__(self, member: Member, now: int, until: int, number: int, spouts: int) -> None:
        super().__init__(member, now, until)
        self._does = member.does
        self._calls = self._does.calls()
        self._most = self._does.room()
        self._number, self._spouts = number, spouts
        self._tuples = 0
        self._over = False
        """It has nothing more to emit; calls go on."""
        self._free_at = self._calls.since

    def look_ahead(self) -> bool:
        if self._work.n - self.done.n >= ENOUGH or self.done.values[-1] > self.until or not self.node.up:
            return False
        n = PLAN if self._over else min(PLAN, self._most - self._tuples)
        if n <= 0:
            return False
        train: Train = self._does.peek(self._tuples, 0 if self._over else n)
        self._over = train.n < n
        calls = np.arange(self._tuples, self._tuples + train.n, dtype=np.int64)
        self._tuples += train.n
        train = train.replace(created=-1 - (calls * self._spouts + self._number))
        gaps = self._calls.gaps(n)
        self._on_schedule = gaps is None
        self._plan(train, n, np.zeros(n, np.int64) if gaps is None else gaps)
        return True

    def _ready(self) -> int:
        return 0 if self.done.values[-1] > self.until else self._work.n

    def _serve(self, first: int, last: int, room: Ints) -> None:
        if not self._on_schedule:
            done = departures(room, self._work.values[first:last].copy(), self._free_at)
            self.done.add(done)
            self._free_at = int(done[-1])
            return
        calls, now = [], self._free_at
        for moment in room.tolist():
            when = self._calls.next(max(now, moment))
            now = FOREVER if when is None else when
            calls.append(now)
        self.done.add(np.array(calls, np.int64))
        self._free_at = now

    def emitted(self, created: Ints) -> Ints:
        """Creation stamps of tuples that descend from this spout's calls."""
        calls = -1 - created
        mine = (created < 0) & (calls % self._spouts == self._number)
        if not mine.any():
            return created
        created = created.copy()
        created[mine] = self.done.values[1 + calls[mine] // self._spouts]
        return created

    def _settle(self, reached: int, done: int, stamps: Stamps, unblocked: int = 0) -> None:
        self.node.outbox.let_out(reached)
        self._does.called(self.done.values[1 : 1 + done].copy(), unblocked)


class FedStage(Stage):
    """A spout in series that emits what it is fed, at its times, whatever else happens."""

    def __init__(self, member: Member, now: int, until: int) -> None:
        super().__init__(member, now, until)
        self._does = member.does
        self._feed = iter(self._does.feed)
        self._known = Column()

    def look_ahead(self) -> bool:
        if self._work.n - self.done.n >= ENOUGH or (train := next(self._feed, None)) is None:
            return False
        n = int(train.time.searchsorted(self.until, "right"))
        if not n:
            return False
        self._known.add(train.time[:n])
        self._plan(self._does.as_emitted(train.pick(slice(0, n))), n, np.zeros(n, np.int64))
        return True

    def _begin_items(self, known: int) -> bool:
        first, last = self.done.n - 1, self._work.n - 1
        self.done.add(self._known.values[first:last])
        return last > first

    def _account(self, line: Line, reached: int, done: int) -> int:
        made, left = int(self._first.values[done]), self._left.until(reached)
        waits = self._takers.values
        tuples = int(waits.searchsorted(made) - waits.searchsorted(left))
        if tuples <= line.send:
            line.blocked_since = None
        elif line.blocked_since is None:
            line.blocked_since = reached
        return 0

    def _settle(self, reached: int, done: int, stamps: Stamps, unblocked: int = 0) -> None:
        self.node.outbox.let_out(reached)
        self.node.flow(reached)
