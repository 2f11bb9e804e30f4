"""The cores of a host, shared by its tasks.

More busy tasks than cores share them (processor sharing): each works at min(1, cores / busy tasks) of a
core's speed. So all busy tasks of a host are equally fast, and one broken line (`tideover.sim.pace`) says
for all of them how far work has come.

Exact, up to the rounding of instants, where the tasks of a host lie on one level of the topology: all that
arrives at them in a step is known when the line is drawn. Where they lie on several levels, what the upper
ones hand on in a step may reach lower ones in the same step, and is not known yet when the line of the
upper ones is drawn. So the line of each level is drawn with all work that is known, its own and that of
lower levels, and what it spends is not there for the next level. The cores never do more than they can, and
never idle while a task is known to have work: what is left to do on the host is right at any time, and so
is throughput. Approximated is who is slowed when a tuple makes a lower task busy: the upper ones, only from
the next step on. Steps are short for this reason (a part of the mean service, see
`tideover.models.runtime.core_sharing`), for these hosts and for what lies on the way from one level to the
next, and for nothing else. Mean and 99th percentile of latency come out at most 2 % off at loads up to 0.9
(tests/models/test_cores.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tideover.sim.pace import Floats, SharedOccupancy
from tideover.sim.server import Server, collect
from tideover.sim.shared_queue import SharedQueue
from tideover.sim.sharing import Arrival, Point, divide, even_speed
from tideover.sim.train import Ints


class Sharer(NamedTuple):
    """A server that shares, and what of it goes by its own time."""

    server: Server
    busy: SharedOccupancy
    queue: SharedQueue

    @staticmethod
    def of(server: Server) -> Sharer:
        """Raises TypeError for a server that has a core of its own."""
        if not isinstance(server.busy, SharedOccupancy) or not isinstance(server.queue, SharedQueue):
            raise TypeError(f"{server.name} was not made to share cores")
        return Sharer(server, server.busy, server.queue)

    def has_to_do(self, now: int) -> bool:
        """Whether anything happens there up to ``now``."""
        if self.busy.free_at > self.busy.pace.own_at_end or not self.queue.empty or self.server.outbox:
            return True
        return any(channel.wire and channel.wire[0].time[0] <= now for channel in self.server.inputs)

    def work(self, begin: int, now: int, place: int, on_wire: bool) -> tuple[float, list[Arrival]]:
        """What it has to do at the beginning of a step (ns), and what is known to come in it; ``on_wire``:
        also what it has not taken in.
        """
        left = max(0.0, self.busy.free_at - self.busy.pace.own_at_end)
        coming = self.queue.coming()
        if on_wire and self.server.available:
            coming += self._due(now)
        found = []
        stopped = max(0, self.busy.stopped_until - begin)
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

    def whole_work(self) -> float:
        """What it has to do, of all that it has taken in (ns)."""
        left = max(0.0, self.busy.free_at - self.busy.pace.own_at_end)
        return left + sum(float(demand.sum()) for _, demand in self.queue.coming())

    def _due(self, now: int) -> list[tuple[Ints, Ints]]:
        """Arrivals on the wires up to ``now``, and their demand (ns)."""
        found = []
        for channel in self.server.inputs:
            for train in channel.wire:
                if train.time[0] > now:
                    break
                due = train.pick(slice(0, int(train.time.searchsorted(now, "right"))))
                found.append((due.time, self.queue.demands(due)))
        return found


class Cores:
    """The cores of one host (None: as many as tasks).

    factor   how fast a core is: 1, or less while the host is slow
    """

    def __init__(self, host: int, cores: int | None, evenly: bool = False) -> None:
        """``evenly``: all through a step the tasks of a level are as fast as their work in it lets them be on
        average. Throughput is right, latencies are not.
        """
        self._evenly = evenly
        self.host = host
        self.cores = cores
        self.factor = 1.0
        self._servers: list[Server] = []
        self._slow: dict[int, float] = {}
        self._levels: list[list[Sharer]] = []
        self._moved: list[int] = []
        """Up to where the line of each level is drawn (ns)."""
        self._begin = self._end = 0
        """Of the step."""
        self._left: list[Point] = []
        """What the levels above leave of the cores in this step."""
        self._busy, self._worked = 0.0, 0
        """How long the cores were busy, all together, up to the last change of their speed, and what work was
        done (ns).
        """

    def add(self, level: Sequence[Server]) -> None:
        """These run on the cores too; there are enough for all."""
        self._servers += level

    def share(self, level: Sequence[Server]) -> int:
        """These share the cores, on a level below all that were told before; returns its number."""
        self.add(level)
        self._levels.append([Sharer.of(server) for server in level])
        self._moved.append(0)
        return len(self._moved) - 1

    @property
    def contended(self) -> bool:
        """Whether there may be more busy tasks than cores."""
        return self.cores is not None and len(self._servers) > self.cores

    @property
    def layered(self) -> bool:
        """Whether they are shared by several levels of the topology."""
        return self.contended and len(self._levels) > 1

    def busy_ns(self, now: int) -> int:
        """How long they have been busy up to now (ns), their mean."""
        return round((self._busy + (self._work_done(now) - self._worked) / self.factor) / (self.cores or 1))

    def slow_down(self, reason: int, factor: float, now: int) -> None:
        """From now on a core works at this part of its speed, if no other reason makes it slower."""
        self._slow[reason] = factor
        self._change(now)

    def recover(self, reason: int, now: int) -> None:
        """A reason to be slow is over."""
        self._slow.pop(reason, None)
        self._change(now)

    def _change(self, now: int) -> None:
        worked = self._work_done(now)
        self._busy += (worked - self._worked) / self.factor
        self._worked, self.factor = worked, min(self._slow.values(), default=1.0)

    def _work_done(self, now: int) -> int:
        return sum(server.busy.until(now) for server in self._servers)

    def flow(self, number: int, now: int, all_: bool) -> None:
        """Move a level up to ``now``; all that is above the level has been moved there. ``all_``: also the
        line of a level that has nothing to do.
        """
        if now != self._end:
            self._begin, self._end = max(self._moved), now
            self._left = [(0.0, math.inf if self.cores is None else self.cores * self.factor)]
        members = self._levels[number]
        if not any(each.has_to_do(now) for each in members):
            if all_:
                self._draw(number, now, [(0.0, 0.0), (now - self._moved[number], 0.0)])
            return
        for each in members:
            collect(each.server, now)
        if self._moved[number] < self._begin:
            self._draw(number, self._begin, [(0.0, 0.0), (self._begin - self._moved[number], 0.0)])
        span = now - self._begin
        if span > 0:
            line = self._divide(number) if self.contended else [(0.0, 0.0), (span, span * self.factor)]
            self._draw(number, now, line)
        for each in members:
            each.server.flow(now)

    def _draw(self, number: int, now: int, line: Sequence[Point]) -> None:
        """The line of a level goes on like this, up to ``now``."""
        begin = self._moved[number]
        if now <= begin:
            return
        self._moved[number] = now
        after, done = np.array(line, np.float64).T
        for each in self._levels[number]:
            each.busy.pace.step(begin, *_stopped(after, done, each.busy.stopped_until - begin))

    def _divide(self, number: int) -> list[Point]:
        """The line of a level in this step, and what it leaves to the next."""
        members, begin, now = self._levels[number], self._begin, self._end
        below = [each for level in self._levels[number + 1 :] for each in level]
        if self._evenly:
            return self._divide_evenly(members, below, float(now - begin))
        backlog, arrivals = [], list[Arrival]()
        for place, each in enumerate([*members, *below]):
            left, coming = each.work(begin, now, place, on_wire=place >= len(members))
            backlog.append(left)
            arrivals += coming
        arrivals.sort(key=lambda arrival: arrival.after)
        found = divide(self._left, self.factor, backlog, arrivals, len(members), float(now - begin))
        if below:
            self._left = _minus(self._left, found.spent)
        return found.line

    def _divide_evenly(self, members: Sequence[Sharer], below: Sequence[Sharer], span: float) -> list[Point]:
        """The same at one speed all through the step."""
        capacity = self._left[0][1]
        mine, others = ([each.whole_work() for each in level] for level in (members, below))
        done = span * even_speed(capacity, self.factor, mine + others, span)
        self._left = [(0.0, max(0.0, capacity - sum(min(work, done) for work in mine) / span))]
        return [(0.0, 0.0), (span, done)]


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
