"""Places in a bounded queue, and who waits for one."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol


class Asker(Protocol):
    """A sender that waits for a place."""

    def granted(self, now: int) -> None:
        """It has one now."""


class Room:
    """The free places of one queue. Who asks first gets the next one; of those who ask at one instant the
    first in the physical order.
    """

    def __init__(self, free: int) -> None:
        self.free = free
        self._asking: list[tuple[int, int, Asker]] = []

    def take(self) -> bool:
        """Take a place, if there is one."""
        if self.free <= 0:
            return False
        self.free -= 1
        return True

    def ask(self, since: int, number: int, asker: Asker) -> None:
        """Wait for a place. ``number``: the sender's place in the physical order."""
        heappush(self._asking, (since, number, asker))

    def add(self, now: int) -> None:
        """A place is free."""
        self.free += 1
        self.grant(now)

    def grant(self, now: int) -> None:
        """Give free places to those who wait."""
        while self.free > 0 and self._asking:
            self.free -= 1
            heappop(self._asking)[2].granted(now)
