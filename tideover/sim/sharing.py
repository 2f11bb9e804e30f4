"""Processor sharing among first-in first-out servers: how fast they are, from event to event."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

Point = tuple[float, float]
"""An instant (ns after the beginning of a step), and what has been reached then, or holds from then on."""


class Arrival(NamedTuple):
    """Work (ns) for a server, ``after`` the beginning of a step (ns)."""

    after: float
    server: int
    work: float


class Shares(NamedTuple):
    """How cores were divided in a step.

    line    corners of the work (ns) that a server that was always busy has done by then: all are equally fast
    spent   how many cores' speed the servers that were asked for had, from then on
    """

    line: list[Point]
    spent: list[Point]


def divide(
    left: Sequence[Point],
    fastest: float,
    backlog: Sequence[float],
    arrivals: Sequence[Arrival],
    asked: int,
    span: float,
) -> Shares:
    """Divide cores in a step of ``span`` ns: all busy servers are equally fast, none faster than ``fastest``.

    ``left``: how many cores' speed there is to divide, from each instant on (the first is 0). ``backlog``:
    work of each server at the beginning (ns). ``arrivals``: in order of time. ``asked``: of so many of the
    servers, the first ones, it is told what they spend.
    """
    now = done = 0.0
    capacity, changes = left[0][1], iter([*left[1:], (inf, 0.0)])
    change, later = next(changes)
    those = _Busy(backlog, asked)
    shares = Shares([(0.0, 0.0)], [])
    place, count, speed = 0, len(arrivals), -1.0
    while True:
        fair = min(fastest, capacity / those.many) if those.many else fastest
        if fair != speed and now > 0:
            shares.line.append((now, done))
        speed = fair
        if not shares.spent or shares.spent[-1][1] != those.mine * speed:
            shares.spent.append((now, those.mine * speed))
        idle = now + (those.first - done) / speed if speed > 0 else inf
        until = min(idle, change, span)
        while place < count and arrivals[place].after <= until and those.adds(arrivals[place]):
            place += 1  # a busy server has more to do: nobody's speed changes
        then = min(until, arrivals[place].after) if place < count else until
        done = those.first if then == idle else done + (then - now) * speed
        now = then
        if then == idle:
            those.end()
        elif then == span:
            break
        elif then == change:
            capacity = later
            change, later = next(changes)
        else:
            those.begin(arrivals[place], done)
            place += 1
    shares.line.append((span, done))
    return shares


def even_speed(capacity: float, fastest: float, work: Sequence[float], span: float) -> float:
    """The speed at which servers, with so much ``work`` each (ns) in a step of ``span`` ns, share a
    ``capacity`` (cores' speed): who has little to do leaves the rest to the others.
    """
    left, count = capacity * span, len(work)
    for place, most in enumerate(sorted(work)):
        if most * (count - place) >= left:
            return min(fastest, left / (count - place) / span)
        left -= most
    return fastest


class _Busy:
    """The busy servers, and until when: the work on the line at which each has done all that it has.

    many   how many there are
    mine   how many of the first ones
    """

    def __init__(self, backlog: Sequence[float], asked: int) -> None:
        self._ends = list(backlog)
        self._asked = asked
        self._busy = [work > 0 for work in backlog]
        self._heap = sorted((end, server) for server, end in enumerate(backlog) if end > 0)
        self.many = len(self._heap)
        self.mine = sum(self._busy[:asked])

    @property
    def first(self) -> float:
        """The first end on the line, as far as it was known when its server became busy."""
        return self._heap[0][0] if self._heap else inf

    def adds(self, arrival: Arrival) -> bool:
        """Add work to a server if it is busy; returns whether it is."""
        if self._busy[arrival.server]:
            self._ends[arrival.server] += arrival.work
            return True
        return False

    def begin(self, arrival: Arrival, done: float) -> None:
        """An idle server becomes busy, at this work on the line."""
        server = arrival.server
        self._ends[server] = done + arrival.work
        self._busy[server] = True
        heappush(self._heap, (self._ends[server], server))
        self._count(server, 1)

    def end(self) -> None:
        """The first end is reached: the server is idle, or goes on with what has come meanwhile."""
        end, server = heappop(self._heap)
        if self._ends[server] > end:
            heappush(self._heap, (self._ends[server], server))
        else:
            self._busy[server] = False
            self._count(server, -1)

    def _count(self, server: int, by: int) -> None:
        self.many += by
        self.mine += by * (server < self._asked)
