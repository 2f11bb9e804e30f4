"""The own time of a task that shares cores: how much work it could have done by an instant.

A task that is alone on its core does a nanosecond of work in a nanosecond. One that shares is slower. In its
*own* time (ns of work) a first-in first-out server follows Lindley's recursion as ever, and its future is
known there, whatever the others will do; only the instants at which departures come turn up as time goes by.

All that is rounded is reckoned from the last moment at which the speed changed, never from the end of a step
of the data plane: so it does not depend on where steps end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tideover.sim.occupancy import Occupancy
from tideover.sim.sharing import LEAST, Corner
from tideover.sim.train import Ints

Floats = npt.NDArray[np.float64]


class Line:
    """How much work a task that was always busy could have done by an instant: a broken line, the same for
    all tasks of one level of the topology on one host. It is known for the newest step of the data plane.

    begin, end   of the step (ns)
    last         where the line's speed changed last
    """

    def __init__(self) -> None:
        self.begin = self.end = 0
        self.last = Corner(0.0, 0.0, 1.0)
        self._time, self._work, self._speed = (np.array([x]) for x in self.last)

    def step(self, end: int, corners: Sequence[Corner]) -> None:
        """The next step: up to ``end``, with these corners."""
        self._time, self._work, self._speed = np.array([self.last, *corners], np.float64).T
        self.begin, self.end = self.end, end
        if corners:
            self.last = corners[-1]

    def go_on(self, end: int, speed: float) -> None:
        """The next step, all of it at this speed."""
        now = float(self.end)
        same = speed == self.last.speed
        self.step(end, [] if same else [Corner(now, self.last.at(now), speed)])

    def at(self, moments: Floats) -> Floats:
        """Work by these instants, on the line as it was until then."""
        place = np.maximum(self._time.searchsorted(moments, "left") - 1, 0)
        return self._work[place] + (moments - self._time[place]) * self._speed[place]

    def moments(self, work: Floats) -> Ints:
        """The first instant at which so much is done."""
        place = np.maximum(self._work.searchsorted(work, "left") - 1, 0)
        speed = self._speed[place]
        after = (work - self._work[place]) / np.where(speed > 0, speed, 1.0)
        return np.ceil(self._time[place] + after - LEAST).astype(np.int64)


class Pace:
    """How fast a task works in the newest step of the data plane: the line of its level, but for the time in
    which the task was stopped.

    Before the step an instant counts as the step's beginning, after it as its end.

    line    of the level
    ahead   what is done on the line, less own time
    held    own time at which the task is stopped, at the end of the step; None: it is not
    """

    def __init__(self) -> None:
        self.line = Line()
        self.ahead = 0.0
        self.held: float | None = None
        self._goes_on = 0
        """It was stopped before this instant of the step."""
        self._stood = 0.0
        """At this own time."""

    @property
    def end(self) -> int:
        """End of the step (ns)."""
        return self.line.end

    @property
    def reached(self) -> int:
        """Own time at the end of the step, in whole ns."""
        return int(self.at(self.end) + LEAST * self.line.last.speed)

    def step(self, stopped_until: int) -> None:
        """The line has gone on; the task does nothing before this instant."""
        line = self.line
        if self.held is None and stopped_until > line.begin:
            self.held = float(line.at(np.array([line.begin], np.float64))[0]) - self.ahead
        self._goes_on = line.begin
        if self.held is not None:
            self._stood = self.held
            self._goes_on = max(line.begin, stopped_until)
            if self._goes_on < line.end:
                self.ahead = float(line.at(np.array([self._goes_on], np.float64))[0]) - self.held
                self.held = None

    def at(self, moment: int) -> float:
        """Own time at an instant."""
        return float(self._own(np.array([moment]))[0])

    def work(self, moments: Ints) -> Ints:
        """Own time at each instant (rising), in whole ns: nothing that begins then is done too early."""
        return np.ceil(self._own(moments) - LEAST).astype(np.int64)

    def _own(self, moments: Ints) -> Floats:
        instants = np.clip(moments, self.line.begin, self.line.end).astype(np.float64)
        own = self.line.at(instants) - self.ahead
        return (
            own if self._goes_on == self.line.begin else np.where(instants < self._goes_on, self._stood, own)
        )

    def moments(self, work: Ints) -> Ints:
        """The first instant at which each own time (rising, in the step) is reached."""
        found = self.line.moments(work.astype(np.float64) + self.ahead)
        return np.clip(found, min(self._goes_on, self.end), self.end)


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
