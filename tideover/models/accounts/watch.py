"""What the data plane sees of an outage, and of the latencies in its recovery."""

from __future__ import annotations

from typing import Any

import numpy as np

from tideover.models.accounts.counted import histogram_of
from tideover.models.runtime.outage import Outage
from tideover.sim.histogram import Histogram
from tideover.sim.plane.plane import Plane
from tideover.sim.recorder import Span

FEW = 4_096
"""Latencies of one step of the data plane, at first."""


class Watch:
    """What the data plane sees of one outage."""

    def __init__(self, plane: Plane, outage: Outage, resolution: int | None, tasks: int) -> None:
        self._plane = plane
        self.w: Any = plane.ffi.new("watch *")
        self.w.outage, self.w.end, self.w.last_replay = outage.number, -1, -1
        self.w.resolution = resolution or 0
        self._hit = np.zeros(tasks, np.uint8)
        self.w.hit = plane.ffi.from_buffer("uint8_t[]", self._hit)

    def look(self, outage: Outage) -> None:
        """It has hit these tasks."""
        self._hit[[task.number for task in outage.tasks]] = 1

    def inside(self, which: int) -> Histogram:
        """Latencies that are inside for certain: since creation (0), or the root's first emission (1)."""
        return histogram_of(self._plane, self.w.inside[which])


class WatchedSpan(Span):
    """A span of which the data plane knows what is inside."""

    def __init__(self, watch: Watch, which: int) -> None:
        super().__init__(None)
        self._watch, self._which = watch, which

    @property
    def committed(self) -> Histogram:
        return self._watch.inside(self._which)

    @committed.setter
    def committed(self, _: Histogram) -> None:
        pass

    def goes_on(self, now: int) -> bool:
        return bool(self._watch.w.end > now)

    def settle(self) -> None:
        pass
