"""The calls of a spout, one at a time: when the next one comes depends on when the spout could go on."""

from __future__ import annotations

from tideover.models.job.arrivals.base import Arrivals
from tideover.models.runtime.reading import Reading
from tideover.sim.draws import Draws
from tideover.sim.train import Ints

AHEAD = 256
"""Calls, or gaps between them, that are worked out at a time."""


class Calls:
    """The calls of one spout task, from call number ``index`` on; ``since``: the last one, or when it could
    go on.
    """

    def __init__(self, arrivals: Arrivals, task: str, draws: Draws, index: int, since: int) -> None:
        self._arrivals, self._task, self._draws = arrivals, task, draws
        self._index = index
        self.since = since
        self._gaps: list[int] = []
        self._scheduled: list[int] = []

    def gaps(self, n: int) -> Ints | None:
        """The n gaps before the next calls; None: calls follow a schedule (``next``)."""
        gaps = self._arrivals.gaps(self._task, self._draws, self._index, n)
        if gaps is not None:
            self._index += n
        return gaps

    def next(self, since: int) -> int | None:
        """When the next call comes (ns) if the spout can go on since ``since``; None: never."""
        if not self._gaps and not self._scheduled:
            gaps = self.gaps(AHEAD)
            if gaps is not None:
                self._gaps = gaps[::-1].tolist()
        if self._gaps:
            return since + self._gaps.pop()
        while self._scheduled and self._scheduled[-1] <= since:
            self._scheduled.pop()
        if not self._scheduled:
            calls = self._arrivals.next_calls(self._task, self._draws, since, self._index, AHEAD)
            self._scheduled = calls[::-1].tolist()
        return self._scheduled.pop() if self._scheduled else None


class Reads:
    """The same of a spout task that reads from a queue which deletes nothing: first as many records as it is
    to read ``again``, then new ones from number ``first`` on. ``planned``: when it has read the next one, if
    nothing holds it up (ns); None: that follows.
    """

    def __init__(self, reading: Reading, first: int, again: int, since: int, planned: int | None) -> None:
        self._reading, self._first, self._again = reading, first, again
        self._planned = planned
        self.since = since
        self._appended: list[int] = []

    def next(self, since: int) -> int | None:
        """When the next record is read (ns) if the spout can go on since ``since``; None: never."""
        planned, self._planned = self._planned, None
        begins = since
        if self._again:
            self._again -= 1
        else:
            if not self._appended:
                self._appended = self._reading.appended(self._first, AHEAD)[::-1].tolist()
                self._first += len(self._appended)
            if not self._appended:
                return None
            begins = max(since, self._appended.pop())
        if planned is not None and since == self.since:
            return planned
        return begins + self._reading.source.poll_cost
