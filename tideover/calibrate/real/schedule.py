"""The input of the real pipelines: a pure function of the wall clock.

Row i has a stamp and a content that follow from the schedule and the seed alone. So the input survives every
restart, can be read again from any row, needs no process that generates it, and what has to be counted is
known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tideover.sim.draws import mix

Rows = npt.NDArray[np.int64]

MICROSECONDS = 1_000_000
"""Spark's timestamps have this resolution per second."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Schedule:
    """Rates that are constant for a while.

    t0: unix time in whole seconds at which the input begins. pieces: (from_s, rate_per_s) in ascending order
    of from_s, seconds since t0, the first one 0; rates are whole numbers. The last piece ends at end_s.
    """

    t0: int
    pieces: tuple[tuple[float, int], ...]
    end_s: float

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.pieces]
        if not starts or starts[0] != 0 or sorted(set(starts)) != starts or starts[-1] >= self.end_s:
            raise ValueError("pieces: must begin at 0 and ascend, and the last must begin before end_s")
        if any(rate < 0 or rate != int(rate) for _, rate in self.pieces):
            raise ValueError("pieces: a rate must be a whole number of rows per second, 0 or more")

    @cached_property
    def _starts(self) -> Rows:
        """Where the pieces start, in µs since t0."""
        return np.array([round(start * MICROSECONDS) for start, _ in self.pieces], np.int64)

    @cached_property
    def _rates(self) -> Rows:
        return np.array([rate for _, rate in self.pieces], np.int64)

    @cached_property
    def _first(self) -> Rows:
        """The first row of each piece, and the number of all rows."""
        ends = np.append(self._starts[1:], round(self.end_s * MICROSECONDS))
        sizes = -(-(ends - self._starts) * self._rates // MICROSECONDS)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return int(self._first[-1])

    def stamps(self, rows: Rows) -> Rows:
        """When these rows came into being, in µs since t0."""
        piece = np.searchsorted(self._first[:-1], rows, side="right") - 1
        rate = np.maximum(self._rates[piece], 1)
        return self._starts[piece] + (rows - self._first[piece]) * MICROSECONDS // rate

    def rows_before(self, moment_us: int) -> int:
        """How many rows have a stamp before this moment, in µs since t0."""
        if moment_us <= 0:
            return 0
        piece = int(np.searchsorted(self._starts, moment_us, side="right")) - 1
        # The stamp floor(j * 10^6 / rate) is below m exactly where j < m * rate / 10^6.
        inside = -(-(moment_us - int(self._starts[piece])) * int(self._rates[piece]) // MICROSECONDS)
        return min(int(self._first[piece]) + inside, int(self._first[piece + 1]))


def choices(seed: int, rows: Rows, among: int) -> Rows:
    """For each row a number in [0, among), the same whenever it is asked for."""
    bits = mix(rows.astype(np.uint64) * _GOLDEN + mix(np.array([seed], np.uint64)))
    return (bits % np.uint64(among)).astype(np.int64)
