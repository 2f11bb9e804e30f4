"""The cores of a host, shared by its tasks.

More busy tasks than cores share them (processor sharing): each works at min(1, cores / busy tasks) of a core's
speed. So all busy tasks of a host are equally fast, and one broken line (`tideover.sim.pace`) says for all of
them how far work has come.

Exact where the tasks of a host lie on one level of the topology: all that arrives at them in a step is known
when the line is drawn. Where they lie on several levels, what the upper ones hand on in a step may reach lower
ones in the same step, and is not known yet when the line of the upper ones is drawn. So the line of each level
is drawn with all work that is known, its own and that of lower levels, and what it spends is not there for the
next level. The cores never do more than they can, and never idle while a task is known to have work: what is
left to do on the host is right at any time, and so is throughput. Approximated is who of the tasks is slowed
when a tuple makes a lower one busy: the upper ones, only from the next step on. Steps are short for this reason
(`PART` of the mean service on the host), for these hosts and for what lies on the way from one level to the
next, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tideover.sim.pace import Floats, Pace, SharedOccupancy
from tideover.sim.server import Server, collect
from tideover.sim.shared_queue import SharedQueue
from tideover.sim.sharing import Arrival, Point, divide


class Cores:
    """The cores of one host (None: as many as tasks).

    factor   how fast a core is: 1, or less while the host is slow
    """

    def __init__(self, host: int, cores: int | None) -> None:
        self.host = host
        self.cores = cores
        self.factor = 1.0
        self._levels: list[list[Server]] = []
        self._moved: list[int] = []
        """Up to where the line of each level is drawn (ns)."""
        self._left: list[Point] = []
        """What the levels above leave of the cores in this step."""
        self._slow: list[tuple[int, float]] = []
        self._before = 0.0

    def add(self, level: Sequence[Server]) -> None:
        """These share the cores too; they are on a level below all that were added before."""
        self._levels.append(list(level))
        self._moved.append(0)

    @property
    def contended(self) -> bool:
        """Whether there may be more busy tasks than cores."""
        return self.cores is not None and sum(map(len, self._levels)) > self.cores

    @property
    def layered(self) -> bool:
        """Whether they are shared by several levels of the topology."""
        return self.contended and len(self._levels) > 1

    def share(self, number: int, now: int) -> None:
        """Draw the line of a level up to ``now``. All that is above the level has been moved there."""
        members, begin = self._levels[number], self._moved[number]
        for server in members:
            if any(channel.wire for channel in server.inputs):
                collect(server, now)
        if now <= begin:
            return
        self._moved[number] = now
        span = float(now - begin)
        line = [(0.0, 0.0), (span, span * self.factor)]
        if self.cores is not None and self.contended:
            if number == 0:
                self._left = [(0.0, self.cores * self.factor)]
            line = self._divide(number, begin, now)
        after, done = (np.array(column) for column in zip(*line, strict=True))
        for server in members:
            _pace(server).step(begin, *_stopped(after, done, server.busy.stopped_until - begin))

    def _divide(self, number: int, begin: int, now: int) -> list[Point]:
        """The line of a level, and what it leaves to the next."""
        members = self._levels[number]
        below = [server for level in self._levels[number + 1 :] for server in level]
        backlog, arrivals = [], list[Arrival]()
        for place, server in enumerate([*members, *below]):
            left, coming = _work(server, begin, now, place, on_wire=place >= len(members))
            backlog.append(left)
            arrivals += coming
        arrivals.sort(key=lambda arrival: arrival.after)
        found = divide(self._left, self.factor, backlog, arrivals, len(members), float(now - begin))
        if below:
            self._left = _minus(self._left, found.spent)
        return found.line


def _pace(server: Server) -> Pace:
    assert isinstance(server.busy, SharedOccupancy)
    return server.busy.pace


def _work(server: Server, begin: int, now: int, place: int, on_wire: bool) -> tuple[float, list[Arrival]]:
    """What a server has to do at the beginning of a step (ns), and what is known to come in it; ``on_wire``:
    also what has not been taken in.
    """
    busy, queue = server.busy, server.queue
    assert isinstance(busy, SharedOccupancy) and isinstance(queue, SharedQueue)
    left = max(0.0, busy.free_at - busy.pace.own_at_end)
    coming = queue.coming()
    if on_wire and server.available:
        for channel in server.inputs:
            for train in channel.wire:
                if train.time[0] > now:
                    break
                due = train.pick(slice(0, int(train.time.searchsorted(now, "right"))))
                coming.append((due.time, queue.demands(due)))
    found = []
    stopped = max(0, busy.stopped_until - begin)
    for times, demand in coming:
        for time, work in zip(times.tolist(), demand.tolist(), strict=True):
            if time <= begin and not stopped:
                left += work
            elif work and time < now:
                found.append(Arrival(float(max(time - begin, stopped)), place, float(work)))
    if stopped and left:
        found.append(Arrival(float(stopped), place, left))
        left = 0.0
    return left, found


def _stopped(after: Floats, done: Floats, until: int) -> tuple[Floats, Floats]:
    """The line of a server that does nothing before ``until`` (ns after the beginning)."""
    if until <= 0:
        return after, done
    if until >= after[-1]:
        return after[[0, -1]], np.zeros(2)
    first = int(after.searchsorted(until, "right"))
    from_ = float(np.interp(until, after, done))
    return (
        np.concatenate(([0.0, float(until)], after[first:])),
        np.concatenate(([0.0, 0.0], done[first:] - from_)),
    )


def _minus(left: Sequence[Point], spent: Sequence[Point]) -> list[Point]:
    """What is left of a quantity over time, when so much is spent of it."""
    found = []
    moments = sorted({after for after, _ in [*left, *spent]})
    i = j = 0
    for moment in moments:
        while i + 1 < len(left) and left[i + 1][0] <= moment:
            i += 1
        while j + 1 < len(spent) and spent[j + 1][0] <= moment:
            j += 1
        found.append((moment, max(0.0, left[i][1] - spent[j][1])))
    return found
