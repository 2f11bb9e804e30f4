"""A server of a mesh that sends nothing, and has many places: when it begins with what follows from what has
come alone. It is worked out in trains, when somebody needs to know.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from tideover.sim.column import Column
from tideover.sim.fifo import departures
from tideover.sim.line import NONE
from tideover.sim.link import Channel
from tideover.sim.mesh_loop import Asker, Loop, Room
from tideover.sim.mesh_node import MeshNode, Way
from tideover.sim.mesh_server import NEVER, History, MeshServer
from tideover.sim.node import Marker
from tideover.sim.server import Server
from tideover.sim.site import Member
from tideover.sim.train import Ints, Train

LEAST_PLACES = 64
"""With fewer places it has its turn for each tuple."""


def is_leaf(member: Member) -> bool:
    """Whether a server can be worked out in this way, as it is now."""
    node = member.node
    assert isinstance(node, Server)
    bound = node.bound
    if member.outputs or member.does.until_trigger() is not None:
        return False
    if any(isinstance(item, Marker) for item in node.queue.line()):
        return False
    if len(node.inputs) > 1 and any(not channel.delay for channel in node.inputs):
        return False  # what comes at an instant may come in several turns
    return bound is None or (not bound.apart and bound.length >= LEAST_PLACES)


class LeafRoom(Room):
    """Free places of such a server: of those that have become free it is seen only when none is left."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(0)
        self._leaf = leaf

    def asks(self, now: int, asker: Asker) -> bool:
        self.free += self._leaf.begun(now)
        return self.free <= 0 and super().asks(now, asker)

    def ask(self, since: int, asker: Asker) -> None:
        super().ask(since, asker)
        self._leaf.look()


class Leaf(MeshServer):
    """See above."""

    eager = False

    def __init__(self, loop: Loop, member: Member) -> None:
        super().__init__(loop, member)
        self.room: Room = LeafRoom(self)
        self._from: list[tuple[MeshNode, int, Way]] = []
        """Who sends here, by which of its ways."""
        self._seen: list[int] = []
        """So many of what each has sent are known here."""
        self._works = Column()
        self._pending = self._pending_rows = NONE
        """Keys of what comes, and is not worked out yet, and which tuples these are."""
        self._history = Column(), Column(), Column(), Column()
        self._due: list[int] = []
        """When those begin that are worked out."""
        self._noticed = 0
        """So many of them have given back their places."""

    # -- what is there ---------------------------------------------------------------------------------------

    def comes_from(self, sender: MeshNode, way: Way) -> None:
        """A node of the mesh sends here."""
        self._from.append((sender, sender.ways.index(way), way))
        self._seen.append(0)

    def _add(self, train: Train, over: Ints) -> int:
        self._works.add(self.does.demand(train))
        return self.rows.add(train)

    def _wait(self, came: Ints, dones: Ints) -> None:
        n = len(dones)
        for column, first in zip(
            self._history, (np.arange(n), came[:n], np.full(n, NEVER), dones), strict=True
        ):
            column.add(first)
        self._pending = came[n:] * self._inputs
        self._pending_rows = np.arange(n, len(came))

    def _on_the_wire(self, channel: Channel, train: Train) -> None:
        first = self.add(channel, train)
        self._expect(train.time * self._inputs + channel.position, np.arange(first, first + train.n))

    def begin_with(self) -> None:
        """Nothing: it is worked out when it is asked for."""

    # -- what happens ----------------------------------------------------------------------------------------

    def _expect(self, keys: Ints, rows: Ints) -> None:
        old = self._pending
        self._pending = np.concatenate([old, keys])
        self._pending_rows = np.concatenate([self._pending_rows, rows])
        if len(old) and len(keys) and keys[0] < old[-1]:
            order = self._pending.argsort(kind="stable")
            self._pending, self._pending_rows = self._pending[order], self._pending_rows[order]

    def see(self) -> None:
        """See what was sent since the last time."""
        keys, rows = [], []
        for place, (sender, number, way) in enumerate(self._from):
            ways, sent, left = sender.sent()
            seen, self._seen[place] = self._seen[place], len(ways)
            chosen = np.flatnonzero(ways[seen:] == number) + seen
            if len(chosen):
                keys.append(way.fly(left[chosen]) * self._inputs + way.channel.position)
                rows.append(sent[chosen])
        if len(keys) > 1:
            key, row = np.concatenate(keys), np.concatenate(rows)
            order = key.argsort(kind="stable")
            self._expect(key[order], row[order])
        elif keys:
            self._expect(keys[0], rows[0])

    def _work_out(self, before: int) -> bool:
        """Serve what comes before a moment up to which all that is sent is known; returns whether there was
        anything.
        """
        self.see()
        n = int(self._pending.searchsorted(before * self._inputs))
        if n:
            self._serve_first(n)
        return n > 0

    def _serve_first(self, n: int) -> None:
        rows, came = self._pending_rows[:n], self._pending[:n] // self._inputs
        self._pending, self._pending_rows = self._pending[n:], self._pending_rows[n:]
        work = self._works.values[rows]
        dones = departures(came, work.copy(), self._free_at)
        self._free_at = int(dones[-1])
        for column, values in zip(self._history, (rows, came, dones - work, dones), strict=True):
            column.add(values)
        self._due += (dones - work).tolist()

    def begun(self, now: int) -> int:
        """How many more have given back their places before what happens now."""
        mine = self.loop.passed > self.number
        while True:
            noticed = self._noticed
            if noticed < len(self._due) and self._due[noticed] > now:
                return 0
            self._noticed = bisect_left(self._due, now + mine, noticed)
            if self._noticed > noticed:
                return self._noticed - noticed
            if noticed < len(self._due) or not self._work_out(now):
                break
        if self.loop.passed >= self.number and self._next() == now:
            self.loop.stop(now)  # whether that is before or after is for others to find out
        return 0

    def _next(self) -> int | None:
        """When the next place is given back, if all are taken; None: not in time."""
        if self._noticed < len(self._due) or self._work_out(self.loop.now):
            return self._due[self._noticed]
        if len(self._pending):
            return max(int(self._pending[0]) // self._inputs, self._free_at)
        return None

    def look(self) -> None:
        """Somebody waits for a place."""
        if self._looks_at == NEVER and (when := self._next()) is not None:
            self._looks_at = when
            self.loop.at(when, 2 * self.number + 1, self._start_at)

    def _start_at(self, now: int) -> None:
        self._looks_at = NEVER
        if self._noticed == len(self._due) and not self._work_out(now):
            self._serve_first(1)
        self._noticed += 1
        self.room.give(now)
        if self.room.asking:
            self.look()

    # -- what has happened -----------------------------------------------------------------------------------

    def history(self, reached: int) -> History:
        self._work_out(reached + 1)
        rows, came, begins, dones = (column.values for column in self._history)
        rows = np.concatenate([rows, self._pending_rows])
        came = np.concatenate([came, self._pending // self._inputs])
        return History(rows, came, begins, dones)
