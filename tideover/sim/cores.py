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

from tideover.sim.link import Channel
from tideover.sim.pace import Line, SharedOccupancy
from tideover.sim.server import BY_POSITION, Server, collect
from tideover.sim.shared_queue import SharedQueue
from tideover.sim.sharing import Arrival, Backlog, Busy, Corner, Point, divide, even_speed
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

    def next_event(self) -> float | None:
        """Nothing happens there before (ns), as far as is known; None: nothing does. It may come to nothing
        then: others may slow it.
        """
        pace, queue = self.busy.pace, self.queue
        if pace.held is not None or self.busy.stopped_until > pace.end or not queue.decided:
            return 0
        departure = queue.next_departure
        if departure is None and self.busy.free_at > pace.at(pace.end):  # busy with something else
            departure = queue.not_before(self.busy.free_at)
        times = (self.server.outbox.next, departure, *map(_first, self.server.arriving))
        return min((time for time in times if time is not None), default=None)

    def has_to_do(self, now: int) -> bool:
        """Whether anything happens there up to ``now``."""
        if (
            self.busy.free_at > self.busy.pace.at(self.busy.pace.end)
            or not self.queue.empty
            or self.server.outbox
        ):
            return True
        return any(channel.wire and channel.wire[0].time[0] <= now for channel in self.server.arriving)

    def backlog(self, line: Line) -> Backlog:
        """What it has to do at the beginning of a step, on this line."""
        pace = self.busy.pace
        own = pace.at(pace.end)
        held = own if pace.held is not None or self.busy.stopped_until > line.end else None
        if pace.share != 1:  # what is left takes so much longer on the line
            left = max(0.0, self.busy.free_at - own) / pace.share
            return Backlog(round(own + left), line.last.at(line.end) - own, held)
        ahead = pace.ahead if pace.line is line else line.last.at(line.end) - own
        return Backlog(self.busy.free_at, ahead, held)

    def arrivals(self, begin: int, now: int, place: int, on_wire: bool) -> list[Arrival]:
        """What is known to come in a step; ``on_wire``: also what it has not taken in."""
        coming = self.queue.coming()
        if on_wire and self.server.available:
            coming += self._due(now)
        first = max(begin, self.busy.stopped_until)
        held = self.busy.pace.held is not None or first > begin
        found = [Arrival(float(first), place, 0)] if held else []
        for times, demand in coming:
            for time, work in zip(times.tolist(), demand.tolist(), strict=True):
                if work and (time < now or time <= begin):
                    found.append(Arrival(float(max(time, first)), place, work))
        return found

    def whole_work(self) -> float:
        """What it has to do, of all that it has taken in (ns)."""
        left = max(0.0, self.busy.free_at - self.busy.pace.at(self.busy.pace.end))
        return left + sum(float(demand.sum()) for _, demand in self.queue.coming())

    def _due(self, now: int) -> list[tuple[Ints, Ints]]:
        """Arrivals on the wires up to ``now``, and their demand (ns)."""
        found = []
        for channel in sorted(self.server.arriving, key=BY_POSITION):
            for train in channel.wire:
                if train.time[0] > now:
                    break
                due = train.pick(slice(0, int(train.time.searchsorted(now, "right"))))
                found.append((due.time, self.queue.demands(due)))
        return found


def _first(channel: Channel) -> float:
    """When the first message on the wire arrives (ns)."""
    return float(channel.wire[0].time[0]) if channel.wire else math.inf


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
        self._lines: list[Line] = []
        self._members: list[Sharer] = []
        self._next: float | None = None
        """Nothing happens before (ns), as far as was seen since the last move; None: it was not looked."""
        self._seen: list[int] = []
        """How many listed inputs of each member were looked at."""
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

    def share(self, levels: Sequence[Sequence[Server]], now: int) -> None:
        """From now on these share the cores, the upper levels first, and nobody else that was told of before.
        All data have been moved up to ``now``. Who comes from other cores has left those.
        """
        there = [[each.server for each in members] for members in self._levels]
        if there == [list(level) for level in levels]:
            return
        self._change(now)
        old = {
            each.server: line for line, those in zip(self._lines, self._levels, strict=True) for each in those
        }
        self._servers = [server for server in self._servers if server not in old]
        self._levels, self._lines = [], []
        for level in levels:
            stayed = (old[server] for server in level if server in old)
            line = next(stayed, None) or Line.from_now(now, self.factor)
            members = [Sharer.of(server) for server in level]
            for each in members:
                each.busy.pace.join(line, now)
            self.add(level)
            self._levels.append(members)
            self._lines.append(line)
        self._members = [each for members in self._levels for each in members]
        self._next, self._begin, self._end = None, now, now
        self._worked = self._work_done(now)

    def speed(self, busy: int) -> float:
        """How fast each of so many busy servers is."""
        return self.factor * (1.0 if self.cores is None else min(1.0, self.cores / max(1, busy)))

    @property
    def line(self) -> Line:
        """Of all that share, if they are on one level."""
        (line,) = self._lines
        return line

    def passed(self, now: int, corners: Sequence[Corner]) -> None:
        """All that share have been moved up to now; these were the corners of their line."""
        if now > self.line.end:
            self.line.step(now, corners)
            self._step(0)

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
        if self._end != now and not all_:
            if not self._happens(now):
                return
            for above in range(number):  # nothing happens there, but its line is not drawn yet
                self._move(above, now, all_)
        self._move(number, now, all_)

    def _happens(self, now: int) -> bool:
        """Whether anything happens up to ``now``. If not, nobody's speed changes, and the next step may begin
        where the last one ended.
        """
        if self._next is None:
            times = (each.next_event() for each in self._members)
            self._next = min((time for time in times if time is not None), default=math.inf)
            self._seen = [len(each.server.arriving) for each in self._members]
        for place, each in enumerate(self._members):
            arriving, seen = each.server.arriving, self._seen[place]
            if len(arriving) > seen:
                self._next = min(self._next, *map(_first, arriving[seen:]))
                self._seen[place] = len(arriving)
        return self._next <= now

    def _move(self, number: int, now: int, all_: bool) -> None:
        self._next = None
        if now != self._end:
            self._begin, self._end = max(line.end for line in self._lines), now
            cores = math.inf if self.cores is None else self.cores * self.factor
            self._left = [(float(self._begin), cores)]
        members = self._levels[number]
        if not any(each.has_to_do(now) for each in members):
            if all_:
                self._go_on(number, now)
            return
        for each in members:
            collect(each.server, now)
        self._go_on(number, self._begin)
        if self.contended and now > self._lines[number].end:
            self._divide(number)
        else:
            self._go_on(number, now)
        for each in members:
            each.server.flow(now)

    def _go_on(self, number: int, now: int) -> None:
        """Nobody slows others up to ``now``."""
        line = self._lines[number]
        if now > line.end:
            line.go_on(now, self.factor)
            self._step(number)

    def _step(self, number: int) -> None:
        for each in self._levels[number]:
            each.busy.pace.step(each.busy.stopped_until)

    def _divide(self, number: int) -> None:
        """Draw the line of a level in this step, and leave to the next what it leaves."""
        members, line, begin, now = self._levels[number], self._lines[number], self._begin, self._end
        below = [each for level in self._levels[number + 1 :] for each in level]
        if self._evenly:
            line.go_on(now, self._even_speed(members, below, float(now - begin)))
            self._step(number)
            return
        backlogs, arrivals = [], list[Arrival]()
        for place, each in enumerate([*members, *below]):
            backlogs.append(each.backlog(line))
            arrivals += each.arrivals(begin, now, place, on_wire=place >= len(members))
        arrivals.sort(key=lambda arrival: arrival.time)
        those = Busy(backlogs, len(members), begin, line.last)
        found = divide(line.last, self._left, self.factor, those, arrivals, float(now))
        if below:
            self._left = _minus(self._left, found.spent)
        line.step(now, found.corners)
        self._step(number)

    def _even_speed(self, members: Sequence[Sharer], below: Sequence[Sharer], span: float) -> float:
        """The same at one speed all through the step, which is returned."""
        begin, capacity = self._left[0]
        mine, others = ([each.whole_work() for each in level] for level in (members, below))
        speed = even_speed(capacity, self.factor, mine + others, span)
        self._left = [(begin, max(0.0, capacity - sum(min(work, span * speed) for work in mine) / span))]
        return speed


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
