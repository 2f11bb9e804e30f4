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
    work of each server at the beginning (ns). ``arrivals``: in order of time; ``asked``: of so many of the servers, the first ones, it is told what they spend.
    """
    now = done = 0.0
    capacity, changes = left[0][1], iter([*left[1:], (inf, 0.0)])
    change, later = next(changes)
    ends = list(backlog)
    """For each server, the work on the line at which it has done all that it has."""
    busy = [work > 0 for work in ends]
    heap = sorted((end, server) for server, end in enumerate(ends) if end > 0)
    many, mine = len(heap), sum(busy[:asked])
    line, spent = [(0.0, 0.0)], list[Point]()
    queue = iter(arrivals)
    coming = next(queue, None)
    speed = -1.0
    while True:
        fair = min(fastest, capacity / many) if many else fastest
        if fair != speed:
            if now > 0:
                line.append((now, done))
            speed = fair
        if not spent or spent[-1][1] != mine * speed:
            spent.append((now, mine * speed))
        # what comes first: a server is done, work arrives, the capacity changes, or the step ends
        idle = now + (heap[0][0] - done) / speed if heap and speed > 0 else inf
        while coming is not None and coming.after <= idle and busy[coming.server]:
            if coming.after > min(change, span):
                break
            ends[coming.server] += coming.work
            coming = next(queue, None)
        arrival = inf if coming is None else coming.after
        then = min(idle, arrival, change, span)
        done = heap[0][0] if then == idle else done + (then - now) * speed
        now = then
        if then == idle:
            end, server = heappop(heap)
            if ends[server] > end:
                heappush(heap, (ends[server], server))
            else:
                busy[server] = False
                many, mine = many - 1, mine - (server < asked)
        elif then == span:
            break
        elif then == change:
            capacity = later
            change, later = next(changes)
        else:
            assert coming is not None
            server = coming.server
            ends[server] = done + coming.work
            heappush(heap, (ends[server], server))
            busy[server] = True
            many, mine = many + 1, mine + (server < asked)
            coming = next(queue, None)
    line.append((span, done))
    return Shares(line, spent)
