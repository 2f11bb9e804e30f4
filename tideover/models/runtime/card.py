"""Network cards: the bandwidth that all channels of a host share."""

from __future__ import annotations

from typing import Any, Literal

from tideover.sim.plane.plane import Plane
from tideover.sim.units import S

Way = Literal["card out", "card in"]
OUT: Way = "card out"
IN: Way = "card in"


class Card:
    """One direction of a host's network card, which carries ``bandwidth`` bytes/s.

    A message is served in its size / bandwidth (ns, rounded up), a control message in no time. Messages are
    served in the order in which they come; at one instant by sender, then receiver (in physical order), then
    as they were sent.

    number   its place among the cards of the data plane
    """

    def __init__(self, plane: Plane, number: int, way: Way, host: int, bandwidth: int) -> None:
        self._c: Any = plane.cards[number]
        self.number, self.way, self.host, self.bandwidth = number, way, host, bandwidth
        self._c.into = way == IN

    @property
    def kind(self) -> Way:
        """What sort of resource it is."""
        return self.way

    @property
    def name(self) -> str:
        """What it is called: there is one on each host."""
        return self.way

    def busy_ns(self, now: int) -> int:
        """For how long it has been sending, or receiving, up to ``now`` (ns)."""
        return int(self._c.busy - max(0, self._c.free_at - now))

    def takes(self, message_bytes: int, factor: float) -> int:
        """How long a message takes, if it takes so many times as long as it should (ns)."""
        return round(-(-message_bytes * S // self.bandwidth) * factor)
