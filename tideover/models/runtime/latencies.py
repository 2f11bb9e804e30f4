"""Latencies that Python draws for the data plane, a block of messages at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tideover.sim.distributions.base import Distribution
from tideover.sim.draws import Draws, Purpose

if TYPE_CHECKING:
    from tideover.models.runtime.wire import Wire
    from tideover.sim.plane.plane import Plane

MOST = 4_096
"""Messages of a block at most: besides what must be known."""


class Latencies:
    """Of all channels whose distributions only Python knows."""

    def __init__(self, plane: Plane, draws: Draws) -> None:
        self._plane, self._draws = plane, draws
        self._laws: dict[Wire, Distribution] = {}

    def follow(self, wire: Wire, distribution: Distribution) -> None:
        """From its next message on a channel has this distribution."""
        self._laws.pop(wire, None)
        wire.c.n_drawn = 0
        if wire.c.latency.kind == self._plane.lib.DRAW_ELSEWHERE:
            self._laws[wire] = distribution

    def have(self, more: int) -> None:
        """Let so many messages more than one step can send have theirs on each channel."""
        wanted = more + 2 * self._plane.p.most_made
        for wire, distribution in self._laws.items():
            c = wire.c
            if c.first_drawn + c.n_drawn - c.sent < wanted:
                self._draw(wire, distribution, wanted + min(c.sent, MOST))
        self._plane.p.unknown = 0

    def _draw(self, wire: Wire, distribution: Distribution, n: int) -> None:
        first = wire.flown
        number = np.arange(first, wire.messages + n, dtype=np.int64)
        name = f"{wire.up.name}->{wire.down.name}"
        drawn = distribution.sample(self._draws.bits(name, Purpose.LATENCY, number))
        self._plane.array(wire.c, "drawn", np.ascontiguousarray(drawn, np.int64))
        wire.c.first_drawn, wire.c.n_drawn = first, len(number)
