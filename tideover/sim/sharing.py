"""Processor sharing among first-in first-out servers: how fast they are, from event to event."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import ceil, inf
from typing import NamedTuple

LEAST = 1e-3
"""What rounding of floats may come to (ns)."""
Point = tuple[float, float]
"""An instant (ns), and what holds from then on."""


class Corner(NamedTuple):
    """From this instant (ns), when so much work (ns) is done, a busy server works at this speed."""

    time: float
    work: float
    speed: float

    def at(self, moment: float) -> float:
        """Work by an instant."""
        return self.work + (moment - self.time) * self.speed

    def when(self, work: float) -> float:
        """When so much is done."""
        if self.speed > 0:
            return self.time + (work - self.work) / self.speed
        return inf if work > self.work else -inf


class Arrival(NamedTuple):
    """Work (ns) for a server at an instant; 0: it is stopped until then."""

    time: float
    server: int
    work: int


class Backlog(NamedTuple):
    """What a server has to do at the beginning of a step.

    free_at   its own time at which all is done (ns)
    ahead     what is done on the line, less its own time
    held      own time at which it is stopped; None: it is not
    """

    free_at: int
    ahead: float
    held: float | None


class Shares(NamedTuple):
    """How cores were divided in a step.

    corners   of the line: the work that a server that was always busy has done; all are equally fast
    spent     how many cores' speed the servers that were asked for had, from then on
    """

    corners: list[Corner]
    spent: list[Point]


def divide(
    corner: Corner,
    left: Sequence[Point],
    fastest: float,
    those: Busy,
    arrivals: Sequence[Arrival],
    end: float,
) -> Shares:
    """Divide cores in a step up to ``end``: all busy servers are equally fast, none faster than ``fastest``.

    ``corner``: the last before the step. ``left``: how many cores' speed there is to divide, from each
    instant on; the first is the beginning of the step. ``arrivals``: in order of time. What happens at
    ``end`` is left to the next step.
    """
    now, capacity = left[0]
    changes = iter([*left[1:], (inf, 0.0)])
    change, later = next(changes)
    shares = Shares([], [])
    place, count = 0, len(arrivals)
    while True:
        fair = min(fastest, capacity / those.many) if those.many else fastest
        if fair != corner.speed:
            corner = Corner(now, corner.at(now), fair)
            shares.corners.append(corner)
        if not shares.spent or shares.spent[-1][1] != those.mine * fair:
            shares.spent.append((now, those.mine * fair))
        idle = max(now, corner.when(those.first)) if those.many else inf
        until = min(idle, change, end)
        while place < count and arrivals[place].time <= until and those.adds(arrivals[place]):
            place += 1  # a busy server has more to do: nobody's speed changes
        now = min(until, arrivals[place].time) if place < count else until
        if now >= end:
            return shares
        if now == idle:
            those.end()
        elif now == change:
            capacity = later
            change, later = next(changes)
        else:
            those.begin(arrivals[place], corner.at(now))
            place += 1


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


class Busy:
    """The busy servers, and until when: the work on the line at which each has done all that it has.

    many   how many there are
    mine   how many of the first ``asked`` ones
    """

    def __init__(self, backlogs: Sequence[Backlog], asked: int, begin: int, corner: Corner) -> None:
        """At the beginning of a step; ``corner``: the last before it."""
        self._backlogs = list(backlogs)
        self._asked = asked
        self._ends = [each.free_at + each.ahead for each in backlogs]
        self._busy = [
            each.held is None and corner.when(end) >= begin
            for each, end in zip(backlogs, self._ends, strict=True)
        ]
        self._heap = sorted((end, server) for server, end in enumerate(self._ends) if self._busy[server])
        self.many = len(self._heap)
        self.mine = sum(self._busy[:asked])

    @property
    def first(self) -> float:
        """The first end on the line, as far as it was known when its server became busy."""
        return self._heap[0][0]

    def adds(self, arrival: Arrival) -> bool:
        """Add work to a server if it is busy; returns whether it is."""
        if self._busy[arrival.server]:
            self._ends[arrival.server] += arrival.work
            return True
        return False

    def begin(self, arrival: Arrival, done: float) -> None:
        """An idle server gets work, or goes on after it was stopped, at this work on the line."""
        server = arrival.server
        free_at, ahead, held = self._backlogs[server]
        if held is not None:
            ahead = done - held
            self._backlogs[server] = Backlog(free_at, ahead, None)
        if arrival.work:
            self._start(server, ceil(done - ahead - LEAST) + arrival.work + ahead)
        elif held is not None and free_at > held:
            self._start(server, free_at + ahead)

    def _start(self, server: int, end: float) -> None:
        self._ends[server] = end
        self._busy[server] = True
        heappush(self._heap, (end, server))
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
