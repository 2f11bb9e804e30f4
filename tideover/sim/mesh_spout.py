"""A spout of a mesh of bounded queues: it is called as long as its line is short enough."""

from __future__ import annotations

import numpy as np

from tideover.sim.line import NONE
from tideover.sim.mesh_loop import Loop
from tideover.sim.mesh_node import FIRST, PLAN, MeshNode, Stamps
from tideover.sim.site import Member
from tideover.sim.train import Ints


class MeshSpout(MeshNode):
    """A spout of a mesh.

    When a root is emitted is not known when what becomes of it is worked out: until then it has its number
    (of spout ``number`` of ``spouts``) in place of its creation stamp.
    """

    def __init__(self, loop: Loop, member: Member, number: int, spouts: int) -> None:
        super().__init__(loop, member)
        self._calls = member.does.calls()
        self._most = member.does.room()
        self._place, self._spouts = number, spouts
        self._times: list[int] = []
        self._emitted = 0
        self._over = False
        """It has nothing more to emit; calls go on."""

    def begin_with(self) -> None:
        """Its next call."""
        if self.since is None:
            self._expect(self._calls.since)

    def _expect(self, since: int) -> None:
        if self._emitted < self._most and (when := self._calls.next(since)) is not None:
            self.loop.at(when, 2 * self.number, self._call)

    def _call(self, now: int) -> None:
        self._times.append(now)
        if self._emitted == self.rows.n and not self._over:
            self._peek()
        if self._emitted < self.rows.n:
            self._emitted += 1
            self.make(self._emitted - 1)
            self.pump(now)
        else:
            self.make_nothing()
        if self.since is None:
            self._expect(now)

    def _peek(self) -> None:
        """Find what the next calls emit."""
        n = min(max(FIRST, min(self._emitted, PLAN)), self._most - self._emitted)
        train = self.does.peek(self._emitted, n)
        self._over = train.n < n
        if train.n:
            calls = np.arange(self._emitted, self._emitted + train.n, dtype=np.int64)
            self.rows.add(train.replace(created=-1 - (calls * self._spouts + self._place)))

    def go_on(self, now: int) -> None:
        self._expect(now)

    def emitted(self, created: Ints) -> Ints:
        """Creation stamps of tuples that descend from this spout's calls."""
        calls = -1 - created
        mine = (created < 0) & (calls % self._spouts == self._place)
        if not mine.any():
            return created
        created = created.copy()
        created[mine] = np.array(self._times, np.int64)[calls[mine] // self._spouts]
        return created

    def _settle(self, reached: int, stamps: Stamps, unblocked: int) -> Ints:
        self.node.outbox.let_out(reached)
        times = np.array(self._times, np.int64)
        times = times[: int(times.searchsorted(reached, "right"))]
        self.does.called(times.copy(), unblocked)
        return times


class MeshFeed(MeshNode):
    """A spout of a mesh that emits what it is fed, at its times, whatever else happens."""

    def begin_with(self) -> None:
        """All that it will emit in time."""
        times = []
        for train in self.does.feed:
            n = int(train.time.searchsorted(self.loop.until, "right"))
            if n:
                self.rows.add(self.does.as_emitted(train.pick(slice(0, n))))
                times.append(train.time[:n])
            if n < train.n:
                break
        self._times = np.concatenate([NONE, *times])
        self._due = self._times.tolist()
        self._emitted = 0
        self._look()

    def _look(self) -> None:
        if self._emitted < len(self._due):
            self.loop.at(self._due[self._emitted], 2 * self.number, self._emit)

    def _emit(self, now: int) -> None:
        self.make(self._emitted)
        self._emitted += 1
        self._look()
        self.pump(now)

    def go_on(self, now: int) -> None:
        """Nothing holds it up."""

    def _settle(self, reached: int, stamps: Stamps, unblocked: int) -> Ints:
        self.node.outbox.let_out(reached)
        self.node.flow(reached)
        return self._times[: int(self._times.searchsorted(reached, "right"))]
