"""When a spout is called."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tideover.sim.draws import Draws, Purpose
from tideover.sim.registry import Part, Registry

ARRIVALS: Registry[Arrivals] = Registry("arrival process")

FAR = 2.0**60
"""ns, 36 years: an eighth of what int64 holds, as gaps are random."""


class Arrivals(Part):
    """The moments at which a spout's ``nextTuple`` is called.

    Subclasses give ``next_calls`` and ``mean_gap_ns``.
    """

    kind: ClassVar[str]

    @property
    def mean_gap_ns(self) -> float:
        """Mean time between calls at the start, in nanoseconds: the range of the random offset."""
        raise NotImplementedError

    def expected(self, duration: int) -> float:
        """How many calls there are in the first ``duration`` ns, on average."""
        return duration / self.mean_gap_ns

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        """The n calls (ns, rising) that follow ``last``; the first has the call number ``index``.

        ``last`` is the call before, or the moment at which the spout became free to go on. Fewer than n calls
        mean that the spout has no more.
        """
        raise NotImplementedError

    def at_once(self, n: int) -> int:
        """How many of n calls can be worked out at a time, so that none is later than time can tell."""
        return min(n, 1 + int(FAR / self.mean_gap_ns))

    def gaps(self, task: str, draws: Draws, index: int, n: int) -> npt.NDArray[np.int64] | None:
        """The n gaps (ns) before the calls from number ``index`` on, if they do not depend on when the spout
        goes on; None: calls follow a schedule.
        """
        return None

    def offset(self, task: str, draws: Draws) -> int:
        """Where the sequence of calls starts: uniform in [0, mean gap), drawn per replication."""
        bits = draws.bits(task, Purpose.OFFSET, np.zeros(1, np.int64))
        return int(int(bits[0] >> np.uint64(11)) * round(self.mean_gap_ns) >> 53)
