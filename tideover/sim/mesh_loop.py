"""What is to happen in a mesh of bounded queues, in order; and the free places of its queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

Act = Callable[[int], None]
"""What happens, at this moment (ns)."""
PLENTY = 1 << 62


class Loop:
    """Events in order of time, then of nodes; of one node work comes before the begin of a service.

    until   nothing later is done
    now     the present (ns)
    passed  the last node, in the physical order, that has had its turn at this instant
    """

    def __init__(self, now: int, until: int) -> None:
        self.now, self.until = now, until
        self.passed = -1
        self._events: list[tuple[int, int, int, Act]] = []
        self._pushed = 0

    def at(self, when: int, turn: int, act: Act) -> None:
        """``turn``: twice the number of the node, and 1 more for the begin of a service."""
        if when <= self.until:
            self._pushed += 1
            heappush(self._events, (when, turn, self._pushed, act))

    def stop(self, moment: int) -> None:
        """Nothing at or after this moment counts."""
        if moment <= self.until:
            self.until = moment - 1

    def run(self) -> None:
        """Until there is nothing left to do in time."""
        events, now = self._events, self.now
        while events and events[0][0] <= self.until:
            when, turn, _, act = heappop(events)
            number = turn >> 1
            if when != now:
                self.now = now = when
                self.passed = number
            elif number > self.passed:
                self.passed = number
            act(when)


class Asker(Protocol):
    """A sender that waits for a place."""

    number: int

    def granted(self, now: int) -> None:
        """It has one now."""


class Room:
    """The free places of one queue. Who asks first gets the next one; of those who ask at one instant the
    first in the physical order.
    """

    def __init__(self, free: int) -> None:
        self.free = free
        self.asking: list[tuple[int, int, Asker]] = []

    def asks(self, now: int, asker: Asker) -> bool:
        """There seems to be no free place: whether this is so, and somebody waits for one."""
        self.ask(now, asker)
        return True

    def ask(self, since: int, asker: Asker) -> None:
        """Wait for a place."""
        heappush(self.asking, (since, asker.number, asker))

    def give(self, now: int) -> None:
        """A place is free: who waits for it goes on at once, as nobody else has his turn before."""
        if self.asking:
            heappop(self.asking)[2].granted(now)
        else:
            self.free += 1

    def open(self, loop: Loop) -> None:
        """At the beginning: those who wait although there is room go on in their turn."""
        while self.free > 0 and self.asking:
            self.free -= 1
            _, number, asker = heappop(self.asking)
            loop.at(loop.now, 2 * number, asker.granted)


class Credit(Room):
    """The free places of one channel, of which its sender learns ``notice`` later.

    known  when it does, of those that it does not know yet
    """

    def __init__(self, free: int, known: list[int], notice: int, loop: Loop, turn: int) -> None:
        super().__init__(free)
        self.known = deque(known)
        self._notice, self._loop, self._turn = notice, loop, turn

    def asks(self, now: int, asker: Asker) -> bool:
        known = self.known
        while known and known[0] <= now:
            known.popleft()
            self.free += 1
        return self.free <= 0 and super().asks(now, asker)

    def ask(self, since: int, asker: Asker) -> None:
        super().ask(since, asker)
        if self.known:
            self._loop.at(max(self.known[0], self._loop.now), self._turn, self._told)

    def give(self, now: int) -> None:
        self.known.append(now + self._notice)
        if self.asking and len(self.known) == 1:
            self._loop.at(now + self._notice, self._turn, self._told)

    def _told(self, now: int) -> None:
        self.known.popleft()
        heappop(self.asking)[2].granted(now)
