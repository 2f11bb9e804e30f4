"""The own time of a task that shares cores: how much work it could have done by an instant.

A task that is alone on its core does a nanosecond of work in a nanosecond. One that shares is slower. In its
*own* time (ns of work) a first-in first-out server follows Lindley's recursion as ever, and its future is
known there, whatever the others will do; only the instants at which departures come turn up as time goes by.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.sim.occupancy import Occupancy
from tideover.sim.train import Ints

Floats = npt.NDArray[np.float64]

_LEAST = 1e-3
"""What rounding of floats may come to (ns)."""


class Pace:
    """How fast a task works in the newest step of the data plane: a broken line from instants to own time.

    Before the step an instant counts as the step's beginning, after it as its end.
    """

    def __init__(self) -> None:
        self.begin = 0
        """Beginning of the step (ns)."""
        self.own = 0.0
        """Own time then."""
        self.own_at_end = 0.0
        """Own time at its end."""
        self._after: Floats = np.zeros(1)
        self._work: Floats = np.zeros(1)
        """The line's corners: ns after the beginning, and own time since then."""

    @property
    def end(self) -> int:
        """End of the step (ns)."""
        return self.begin + int(self._after[-1])

    @property
    def reached(self) -> int:
        """Own time at the end of the step, in whole ns."""
        return int(self.own_at_end + _LEAST)

    def step(self, begin: int, after: Floats, work: Floats) -> None:
        """The next step: from ``begin``, the end of the last, the line with these corners (the first is at
        0, 0; both rise).
        """
        self.own = self.own_at_end
        self.own_at_end += float(work[-1])
        self.begin, self._after, self._work = begin, after, work

    def at(self, moment: int) -> float:
        """Own time at an instant."""
        return self.own + float(np.interp(moment - self.begin, self._after, self._work))

    def work(self, moments: Ints) -> Ints:
        """Own time at each instant (rising)."""
        found = self.own + np.interp((moments - self.begin).astype(np.float64), self._after, self._work)
        return np.rint(found).astype(np.int64)

    def moments(self, work: Ints) -> Ints:
        """The first instant at which each own time (rising, in the step) is reached."""
        wanted = work - self.own
        corner = np.clip(self._work.searchsorted(wanted - _LEAST, "left"), 1, len(self._work) - 1)
        w, w0 = self._work[corner], self._work[corner - 1]
        a, a0 = self._after[corner], self._after[corner - 1]
        rise = np.where(w > w0, w - w0, 1.0)
        part = np.clip((wanted - w0) / rise, 0.0, 1.0)
        found = np.ceil(a0 + part * (a - a0) - _LEAST).astype(np.int64)
        return self.begin + np.minimum(found, int(self._after[-1]))


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
        return max(now, self.stopped_until) + int(left) + 1 if left > _LEAST else now
