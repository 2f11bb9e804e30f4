"""What is to happen among coupled nodes, one thing after the other."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

ARRIVAL, WORK, START = range(3)
"""What happens first at one node, at one instant."""
CARD = 1 << 30
"""In place of a node's number: what comes to cards, after all that nodes do."""
FOREVER = 1 << 62


class Agenda:
    """What is to happen, in order of time, then of nodes, then of what it is.

    until     nothing later is done
    now       the present (ns)
    stopped   something has happened after which all has to be looked at anew
    emitted   creation stamps of roots that were planned
    """

    def __init__(self, now: int, until: int) -> None:
        self.now = now
        self.until = until
        self.stopped = False
        self.emitted: list[int] = []
        self.done = 0
        """How much was done."""
        self._events: list[tuple[int, int, int, int, Callable[[Any], None], Any]] = []
        self._next = 0

    def at(self, when: int, number: int, rank: int, action: Callable[[Any], None], what: Any = None) -> None:
        """Call ``action(what)`` at ``when``, in the turn of node ``number``."""
        if when <= self.until:
            self._next += 1
            heappush(self._events, (when, number, rank, self._next, action, what))

    def arrival(self, when: int, number: int, position: int, action: Callable[[Any], None]) -> None:
        """The same for an arrival over the input at ``position``."""
        if when <= self.until:
            heappush(self._events, (when, number, ARRIVAL, position, action, None))

    def run(self) -> int:
        """Until all is done, or until it is stopped; returns the moment."""
        events = self._events
        while events and not self.stopped:
            self.now, _, _, _, action, what = heappop(events)
            action(what)
            self.done += 1
        return self.now if self.stopped else self.until
