"""When each fault was noticed, and when all that it had hit was back."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

from .clock import Clock, Rank, control

Moments = tuple[int, int | None, int | None]  # number of the fault; noticed, back (None: not before the end)


@dataclass(eq=False)
class Outage:
    """A fault, and what of all that it hit is not yet noticed, and not yet back."""

    number: int
    unseen: set[Hashable]
    gone: set[Hashable]
    noticed: int | None = None
    back: int | None = None


class Outages:
    """All faults but pauses. What is hit again is noticed, and back, when it is so from the newest fault."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.all: list[Outage] = []
        self.newest: dict[Hashable, Outage] = {}

    def struck(self, number: int, things: list[Hashable], detection: int) -> None:
        outage = Outage(number, set(things), set(things))
        self.all.append(outage)
        for thing in things:
            self.newest[thing] = outage
        noticed = partial(self._seen, things, outage)
        self.clock.at(self.clock.now + detection, control(Rank.READY, -1), noticed)

    def _seen(self, things: list[Hashable], by: Outage) -> None:
        for thing in things:
            if self.newest[thing] is by:
                self._notice(thing)

    def _notice(self, thing: Hashable) -> None:
        for outage in self.all:
            if thing in outage.unseen:
                outage.unseen.remove(thing)
                outage.noticed = None if outage.unseen else self.clock.now

    def back(self, thing: Hashable) -> None:
        """It is back, and whoever had not noticed that it was gone will not wait for it any more."""
        self._notice(thing)
        for outage in self.all:
            if thing in outage.gone:
                outage.gone.remove(thing)
                outage.back = None if outage.gone else self.clock.now

    def moments(self) -> list[Moments]:
        """Of the faults that have hit anything."""
        return [(o.number, o.noticed, o.back) for o in self.all if o.unseen or o.noticed is not None]
