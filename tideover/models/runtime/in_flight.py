"""Roots of a spout task that are in flight: how many there are, and how many there may be."""

from __future__ import annotations

from collections.abc import Callable


class InFlight:
    """Counts roots that were emitted and are not settled yet, neither done nor given up.

    most     the cap (``max_spout_pending``); None: there is none
    count    how many there are
    capped   the cap is reached: the spout makes no calls until one of them is settled; ``go_on`` is then
             called with the moment
    """

    def __init__(self, go_on: Callable[[int], None]) -> None:
        self._go_on = go_on
        self.most: int | None = None
        self.count = 0
        self.capped = False

    def room(self, wanted: int) -> int:
        """How many of so many roots may be emitted now."""
        return wanted if self.most is None else min(wanted, self.most - self.count)

    def look(self) -> None:
        """Roots were emitted: is the cap reached?"""
        self.capped = self.most is not None and self.count >= self.most

    def settle(self, roots: int, moment: int) -> None:
        """So many roots were settled at ``moment`` (ns)."""
        self.count -= roots
        if self.capped and self.most is not None and self.count < self.most:
            self.capped = False
            self._go_on(moment)

    def clear(self) -> None:
        """The spout has crashed: it knows of none."""
        self.count = 0
        self.capped = False
