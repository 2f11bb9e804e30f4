"""Look-ups that many servers make in one store, one after the other, and which wait for one another there.

While a server has a tuple in service that looks things up, it goes round: something of its own, on the way to
the store, an operation there, on the way back. Each operation keeps the store for ``work``, and who finds it
busy waits. The operations themselves are not simulated. In place of them each server has a share of its speed
(`tideover.sim.pace`), which is right in the mean: the one at which n servers that go round in c (without
waiting), with an operation of s each, wait w for one another, c / (c + w), with

    w = max(n s - c, (1 - 0.7 p) v)    v (c + v) = (n - 1) s (v + s / 2)

The first is what the store can do, and exact when it is never idle. The second is below that; v is what
arrivals at random moments would wait for (who comes finds each of the others waiting with probability
v / (c + v), and in service with s / (c + v), half of it over). Who goes round regularly waits for less, for
those that have met once do not meet again so soon; the fewer entries are at hand, the more regular it is: p
is the part of a tuple's accesses that go to the store. The 0.7 is measured, operation by operation, with
tuples of eight accesses, and holds where s is at most a twentieth of c.

What keeps the store for longer (a write of many entries) stops all that look something up until it is done:
up to c too early, for a task that is not on its way to the store goes on until it comes there; and that such
a write waits for the operations of look-ups itself, n s at most, is left out.

Speeds hold for a step of the data plane, and are those of its beginning; steps are short for this reason.
Mean and 99th percentile of latency and throughput are within 2 % at loads of the store up to 0.9
(tests/models/test_look_ups.py), if writes are rare: 80 a second that took a quarter of the store's time (load
0.8 in all) made latencies 6 % too long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import sqrt

from tideover.sim.kernel import Kernel
from tideover.sim.pace import SharedOccupancy
from tideover.sim.server import Server
from tideover.sim.shared_queue import SharedQueue
from tideover.sim.store import StoreServer
from tideover.sim.train import Ints

LEAST = 1e-6
"""Share of its speed that a server has which is stopped: so little that nothing comes of it."""


class Asker:
    """A server that looks things up; it goes at a pace.

    rate      operations for each ns of the tuple in service, in the server's own time; 0: none is in service
    missing   the part of its accesses that are operations
    """

    def __init__(self, server: Server, store: StoreServer, accesses: int) -> None:
        """``accesses``: of a tuple. Raises TypeError for a server that does not go at a pace."""
        if not isinstance(server.busy, SharedOccupancy) or not isinstance(server.queue, SharedQueue):
            raise TypeError(f"{server.name} was not made to go at a pace")
        self.store = store
        self.pace, self._queue = server.busy.pace, server.queue
        self._queue.given = self._given
        self.rate = self.missing = 0.0
        self._accesses = accesses
        self._own = 0.0
        """Own time when the rate was looked at."""
        self._asked: Ints | None = None
        self._plan: deque[tuple[Ints, Ints, Ints]] = deque()
        """Of tuples with a departure: when that is, service (own time), operations."""

    def asks(self, operations: Ints) -> None:
        """The tuples that are about to get their departures do so many."""
        self._asked = operations

    def _given(self, done: Ints, service: Ints) -> None:
        assert self._asked is not None
        self._plan.append((done, service, self._asked))
        self._asked = None

    def look(self) -> float:
        """See what is in service now; returns how many operations there were since the last look."""
        own = self.pace.at(self.pace.end)
        since, self._own = self.rate * (own - self._own), own
        self.rate = 0.0
        if not self._queue.serves:
            self._plan.clear()
        while self._plan and self._plan[0][0][-1] <= own:
            self._plan.popleft()
        if self._plan:
            done, service, operations = self._plan[0]
            row = int(done.searchsorted(own, "right"))
            if done[row] - service[row] <= own and service[row]:
                self.rate = float(operations[row] / service[row])
                self.missing = float(operations[row] / self._accesses)
        return since


class LookUps:
    """All who look things up, and the steps in which they wait for one another.

    ``work``: time for which an operation keeps a store (ns); ``step``: length of a step (ns).
    """

    def __init__(self, kernel: Kernel, askers: Sequence[Asker], work: int, step: int) -> None:
        self._kernel, self._work, self._length = kernel, work, step
        self._by_store: dict[StoreServer, list[Asker]] = {}
        for asker in askers:
            self._by_store.setdefault(asker.store, []).append(asker)
            asker.store.looked_up = True
        kernel.sources.append(self)

    def horizon(self, now: int) -> int:
        """The end of the next step, in which all keep the speeds that they have got now."""
        begin = max(0, self._kernel.moved_to)
        end = min(now, begin + self._length)
        for store, askers in self._by_store.items():
            done = sum(asker.look() for asker in askers)
            store.spend(round(store.takes(done * self._work)))
            busy = [asker for asker in askers if asker.rate]
            stopped = store.free_at > begin
            if stopped:
                end = min(end, store.free_at)
            takes = store.takes(self._work)
            rate, missing = sum(asker.rate for asker in busy), sum(asker.missing for asker in busy)
            waits = 0.0 if stopped else wait(len(busy), rate, takes, missing / max(1, len(busy)))
            waits += takes - self._work  # a slow store takes longer for each, too
            for asker in askers:
                share = 1 / (1 + asker.rate * waits)
                asker.pace.change(LEAST if stopped and asker.rate else share)
        return end


def wait(servers: int, rate: float, takes: float, missing: float) -> float:
    """How long an operation that takes so long waits for others' in the mean (ns), if that many servers would
    do ``rate`` of them in a ns together; ``missing``: the part of accesses that are operations.
    """
    if servers < 2:
        return 0.0
    around = servers / rate
    ahead = (servers - 1) * takes
    free = around - ahead
    at_random = (sqrt(free * free + 2 * ahead * takes) - free) / 2
    return max(servers * takes - around, (1 - 0.7 * missing) * at_random)
