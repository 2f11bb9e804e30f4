"""Calls on a schedule: the inverse of a cumulative rate that is linear in pieces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.job.arrivals.base import Arrivals
from tideover.sim.draws import Draws, Purpose
from tideover.sim.units import S

Floats = npt.NDArray[np.float64]


class Pieces(NamedTuple):
    """Rate over time: in piece i, from ``start[i]`` (ns), it goes from ``rate[i]`` by ``slope[i]`` per ns
    (tuples per ns).

    ``length``: ns after which it all begins again; None: the last piece goes on for ever.
    """

    start: Floats
    rate: Floats
    slope: Floats
    length: float | None = None


class Scheduled(Arrivals):
    """Call number i is where the cumulative rate reaches i + u, with u uniform in [0, 1), drawn per
    replication.

    Calls that fall into a time when the spout cannot go on are skipped. Subclasses give ``pieces``.
    """

    def pieces(self) -> Pieces:
        """The rate over time."""
        raise NotImplementedError

    def offset(self, task: str, draws: Draws) -> int:
        return 0

    def expected(self, duration: int) -> float:
        return _Cumulative(self.pieces()).value(float(duration))

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        bits = draws.bits(task, Purpose.OFFSET, np.zeros(1, np.int64))
        phase = float(bits[0] >> np.uint64(11)) * 2.0**-53
        pieces = self.pieces()
        at = _Cumulative(pieces)
        first = max(0, int(np.floor(at.value(float(last)) - phase)) - 1)
        calls = at.inverse(np.arange(first, first + n + 4, dtype=np.float64) + phase)
        return calls[calls > last][:n]


class _Cumulative:
    """The integral of a rate, and its inverse."""

    def __init__(self, pieces: Pieces) -> None:
        self.p = pieces
        ends = np.append(pieces.start[1:], pieces.length if pieces.length is not None else np.inf)
        spans = ends - pieces.start
        finite = np.where(np.isfinite(spans), spans, 0.0)
        whole = pieces.rate * finite + pieces.slope * finite**2 / 2
        self.at_start = np.cumsum(whole) - whole
        self.cycle = float(whole.sum()) if pieces.length is not None else np.inf

    def value(self, time: float) -> float:
        """Calls expected before ``time`` (ns)."""
        cycles = 0.0
        if self.p.length is not None:
            cycles, time = divmod(time, self.p.length)
        i = int(np.searchsorted(self.p.start, time, "right")) - 1
        dt = time - self.p.start[i]
        done = float(self.at_start[i] + self.p.rate[i] * dt + self.p.slope[i] * dt**2 / 2)
        return done + (cycles * self.cycle if cycles else 0.0)

    def inverse(self, count: Floats) -> npt.NDArray[np.int64]:
        """When the expected number of calls reaches ``count`` (ns, rounded); what is never reached is left
        out.
        """
        base = np.zeros(len(count))
        if self.p.length is not None:
            if self.cycle <= 0:
                return np.zeros(0, np.int64)
            cycles = np.floor(count / self.cycle)
            count = count - cycles * self.cycle
            base = cycles * self.p.length
        i = np.searchsorted(self.at_start, count, "right") - 1
        left = count - self.at_start[i]
        rate, slope = self.p.rate[i], self.p.slope[i]
        root = np.sqrt(np.maximum(rate**2 + 2 * slope * left, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            time = base + self.p.start[i] + np.where(left > 0, 2 * left / (rate + root), 0.0)
        return np.rint(time[np.isfinite(time) & (time < 2**62)]).astype(np.int64)


def per_ns(rate: float) -> float:
    """Tuples per second to tuples per ns."""
    return rate / S
