"""How far events have come at a task: watermarks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.sim.train import Ints

NEVER = -1


class EventClock:
    """The newest event of each input of a task, and the watermark that follows. Times are in ns.

    The watermark is the least over the inputs of the newest event, less ``lag``; it never goes back. As long
    as nothing has come over an input there is none. An input that has been silent for ``idle_after`` (None:
    for any time) does not count; if all are, the watermark stays (Apache Storm's ``WaterMarkEventGenerator``,
    which knows no idle inputs; Flink's ``withIdleness`` does).

    watermark   an event at or before it is late; NEVER: there is none yet
    ended       windows that end at or before this were put out
    """

    def __init__(self, inputs: int, lag: int, idle_after: int | None) -> None:
        self._lag, self._idle_after = lag, idle_after
        self._newest: Ints = np.full(inputs, NEVER, np.int64)
        self._heard: Ints = np.full(inputs, NEVER, np.int64)
        """When something came over each input, or, before that, when it was first looked."""
        self.watermark = self.ended = NEVER

    def hear(self, inputs: Ints | None, events: Ints, times: Ints) -> npt.NDArray[np.bool_]:
        """Tuples were processed at ``times``, that came over ``inputs`` (None: there is one); returns which
        of them are late.
        """
        if inputs is None:
            self._newest[0] = max(self._newest[0], events.max())
            self._heard[0] = times[-1]
        else:
            np.maximum.at(self._newest, inputs, events)
            np.maximum.at(self._heard, inputs, times)
        return events <= self.watermark

    def look(self, now: int) -> None:
        """Look how far events have come."""
        self._heard[self._heard == NEVER] = now
        counts = np.ones(len(self._newest), np.bool_)
        if self._idle_after is not None:
            counts = now - self._heard < self._idle_after
        self._advance(self._newest[counts])

    def _advance(self, newest: Ints) -> None:
        if len(newest) and newest.min() != NEVER:
            self.watermark = max(self.watermark, int(newest.min()) - self._lag)

    @staticmethod
    def together(clocks: list[EventClock]) -> None:
        """Look how far events have come at any of the tasks that have these."""
        newest = np.max([clock._newest for clock in clocks], axis=0)
        for clock in clocks:
            clock._newest = newest.copy()
            clock._advance(newest)

    def fresh(self) -> EventClock:
        """One that has heard nothing."""
        return EventClock(len(self._newest), self._lag, self._idle_after)

    def copy(self) -> EventClock:
        """A copy that later events do not reach."""
        new = self.fresh()
        new._newest, new._heard = self._newest.copy(), self._heard.copy()
        new.watermark, new.ended = self.watermark, self.ended
        return new
