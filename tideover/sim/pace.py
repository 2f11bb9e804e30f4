"""The own time of a task that shares cores: how much work it could have done by an instant.

A task that is alone on its core does a nanosecond of work in a nanosecond. One that shares is slower. In its
*own* time (ns of work) a first-in first-out server follows Lindley's recursion as ever, and its future is
known there, whatever the others will do; only the instants at which departures come turn up as time goes by.

All that is rounded is reckoned from the last moment at which the speed changed, never from the end of a step
of the data plane: so it does not depend on where steps end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tideover.sim.occupancy import Occupancy
from tideover.sim.sharing import LEAST, Corner
from tideover.sim.train import Ints

Floats = npt.NDArray[np.float64]
_TIME = attrgetter("time")


class Line:
    """How much work a task that was always busy could have done by an instant: a broken line, the same for
    all tasks of one level of the topology on one host. It is known for the newest step of the data plane.

    begin, end   of the step (ns)
    last         where the line's speed changed last
    """

    def __init__(self) -> None:
        self.begin = self.end = 0
        self.last = Corner(0.0, 0.0, 1.0)
        self._corners = [self.last]
        self._columns: tuple[Floats, Floats, Floats] | None = None

    @classmethod
    def from_now(cls, now: int, speed: float) -> Line:
        """One that begins now."""
        line = cls()
        line.begin = line.end = now
        if now:
            line.last = Corner(float(now), float(now), speed)
            line._corners = [line.last]
        return line

    def step(self, end: int, corners: Sequence[Corner]) -> None:
        """The next step: up to ``end``, with these corners."""
        self._corners, self._columns = [self.last, *corners], None
        self.begin, self.end = self.end, end
        if corners:
            self.last = corners[-1]

    def go_on(self, end: int, speed: float) -> None:
        """The next step, all of it at this speed."""
        now = float(self.end)
        same = speed == self.last.speed
        self.step(end, [] if same else [Corner(now, self.last.at(now), speed)])

    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        """Time, work and speed of the corners."""
        if self._columns is None:
            time, work, speed = np.array(self._corners, np.float64).T
            self._columns = time, work, speed
        return self._columns

    def at(self, moment: float) -> float:
        """Work by an instant, on the line as it was until then."""
        corners = self._corners
        if len(corners) == 1:
            return corners[0].at(moment)
        return corners[max(0, bisect_left(corners, moment, key=_TIME) - 1)].at(moment)

    def at_each(self, moments: Floats) -> Floats:
        """The same of many."""
        times, work, speed = self._arrays()
        place = np.maximum(times.searchsorted(moments, "left") - 1, 0)
        return work[place] + (moments - times[place]) * speed[place]

    def moments(self, work: Floats) -> Ints:
        """The first instant at which so much is done."""
        times, works, speeds = self._arrays()
        place = np.maximum(works.searchsorted(work, "left") - 1, 0)
        speed = speeds[place]
        after = (work - works[place]) / np.where(speed > 0, speed, 1.0)
        return np.ceil(times[place] + after - LEAST).astype(np.int64)


class Pace:
    """How fast a task works in the newest step of the data plane: the line of its level, but for the time in
    which the task was stopped.

    Before the step an instant counts as the step's beginning, after it as its end.

    line    of the level
    share   of the line's speed that the task has: less than 1 while others keep it waiting for something else
    ahead   what is done on the line (at this share of its speed), less own time
    held    own time at which the task is stopped, at the end of the step; None: it is not
    """

    def __init__(self) -> None:
        self.line = Line()
        self.share = 1.0
        self.ahead = 0.0
        self.held: float | None = None
        self._goes_on = 0
        """It was stopped before this instant of the step."""
        self._stood = 0.0
        """At this own time."""

    def join(self, line: Line, now: int) -> None:
        """The task is on this level from now on, at which both lines have come."""
        if line is self.line:
            return
        own = self.at(now)
        self.line, self.ahead = line, self.share * line.at(float(now)) - own
        self._goes_on = line.begin

    @property
    def end(self) -> int:
        """End of the step (ns)."""
        return self.line.end

    @property
    def reached(self) -> int:
        """Own time at the end of the step, in whole ns."""
        return int(self.at(self.end) + LEAST * self.line.last.speed * self.share)

    def change(self, share: float) -> None:
        """From the end of the step on the task has this share of the line's speed."""
        if share != self.share:
            own = self.at(self.end)
            self.share = share
            self.ahead = share * self.line.at(float(self.end)) - own

    def step(self, stopped_until: int) -> None:
        """The line has gone on; the task does nothing before this instant."""
        line = self.line
        if self.held is None and stopped_until > line.begin:
            self.held = self.share * line.at(float(line.begin)) - self.ahead
        self._goes_on = line.begin
        if self.held is not None:
            self._stood = self.held
            self._goes_on = max(line.begin, stopped_until)
            if self._goes_on < line.end:
                self.ahead = self.share * line.at(float(self._goes_on)) - self.held
                self.held = None

    def at(self, moment: int) -> float:
        """Own time at an instant."""
        line = self.line
        instant = min(max(moment, line.begin), line.end)
        if instant < self._goes_on != line.begin:
            return self._stood
        return self.share * line.at(float(instant)) - self.ahead

    def work(self, moments: Ints) -> Ints:
        """Own time at each instant (rising), in whole ns: nothing that begins then is done too early."""
        return np.ceil(self._own(moments) - LEAST).astype(np.int64)

    def _own(self, moments: Ints) -> Floats:
        instants = _within(moments, self.line.begin, self.line.end).astype(np.float64)
        own = self.share * self.line.at_each(instants) - self.ahead
        return (
            own if self._goes_on == self.line.begin else np.where(instants < self._goes_on, self._stood, own)
        )

    def moments(self, work: Ints) -> Ints:
        """The first instant at which each own time (rising, in the step) is reached."""
        found = self.line.moments((work.astype(np.float64) + self.ahead) / self.share)
        return _within(found, min(self._goes_on, self.end), self.end)


def _within(values: Ints, least: int, most: int) -> Ints:
    """np.clip, which takes ten times as long of a few."""
    return np.minimum(np.maximum(values, least), most)


class SharedOccupancy(Occupancy):
    """The same for a task whose time goes at a pace: ``free_at`` is in its own time."""

    __slots__ = ("pace",)

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self.pace = pace

    def add(self, now: int, duration: int) -> None:
        self.resume(now)
        self.free_at += duration
        self.total += duration

    def until(self, now: int) -> int:
        return self.total - max(0, self.free_at - int(self.pace.at(now)))

    def drop(self, now: int) -> None:
        self.total = self.until(now)
        self.free_at = int(self.pace.at(now))

    def stop(self, now: int, until: int) -> int:
        """Its own time stands still meanwhile."""
        shift = max(0, until - max(now, self.stopped_until))
        self.stopped_until = max(self.stopped_until, until)
        return shift

    def begin_anew(self, now: int) -> None:
        self.drop(now)
        self.stopped_until = 0

    def resume(self, now: int) -> None:
        self.free_at = max(self.free_at, int(self.pace.at(now)))

    def turn(self, now: int) -> int:
        """Not before: the pace may be slower than a core of its own."""
        left = self.free_at - self.pace.at(now)
        return max(now, self.stopped_until) + int(left) + 1 if left > LEAST else now
