"""Histograms of durations, for records and sweeps: bins at most 1 % wide, exact mean and deviation.

`recorder` fills them, `models.results` and sweeps merge and write them. Other bins change what datasets hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.sim.train import Ints

_FIRST = (1022 << 7) + 1
"""What the bits of the first bin's values say."""


def _code(values: Ints) -> Ints:
    """Of each value's float64 the exponent and the upper 7 bits of the mantissa: its bin, and ``_FIRST``.
    That makes 128 bins an octave, each at most 1/128 = 0.78 % wide.
    """
    return values.astype(np.float64).view(np.int64) >> np.int64(52 - 7)


def _middle(index: int) -> float:
    """Middle of a bin, in the unit of the values."""
    if index < 127:
        return 0.0
    return float(np.array([(index + _FIRST) << 45, (index + _FIRST + 1) << 45]).view(np.float64).mean())


def _squares(values: Ints, most: int) -> int:
    """Sum of the squares, exact: int64 would overflow."""
    n = len(values)
    if most * most * n < 1 << 63:
        return int((values * values).sum())
    if (most >> 20) ** 2 * n < 1 << 62:  # in parts: (a * 2**20 + b)**2
        high, low = values >> 20, values & 0xFFFFF
        return (int((high * high).sum()) << 40) + (int((high * low).sum()) << 21) + int((low * low).sum())
    return sum(v * v for v in values.tolist())


class Histogram:
    """Counts of int64 values >= 0 in bins of constant relative width.

    Values are buffered and binned in blocks; sums are integers, so mean and standard deviation do not depend
    on the order or the blocks.
    """

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self.squares = 0
        self.max = 0
        self._low = 0
        self._bins: npt.NDArray[np.integer] | None = None
        """Counts of the bins from ``_low`` on: only the range that occurs."""
        self._buffer: list[Ints] = []
        self._buffered = 0

    def add(self, values: Ints) -> None:
        if len(values):
            self._buffer.append(values)
            self._buffered += len(values)
            if self._buffered > 1 << 16:
                self.flush()

    def flush(self) -> None:
        """Count what is buffered."""
        if self._buffered:
            values = np.concatenate(self._buffer)
            self._buffer, self._buffered = [], 0
            most = int(values.max())
            self._count(len(values), int(values.sum()), _squares(values, most), most)
            code = np.maximum(_code(values), _FIRST)  # zeros are in the first bin, too
            first = int(code.min())
            self._add_bins(first - _FIRST, np.bincount(code - first))

    def _count(self, count: int, total: int, squares: int, most: int) -> None:
        self.count += count
        self.sum += total
        self.squares += squares
        self.max = max(self.max, most)

    def _add_bins(self, low: int, counts: npt.NDArray[np.integer]) -> None:
        if self._bins is None:
            self._low, self._bins = low, counts.astype(np.int64)
            return
        self._bins = self._bins.astype(np.int64, copy=False)
        first = min(low, self._low)
        size = max(low + len(counts), self._low + len(self._bins)) - first
        if size > len(self._bins):
            grown = np.zeros(size, np.int64)
            grown[self._low - first : self._low - first + len(self._bins)] = self._bins
            self._low, self._bins = first, grown
        self._bins[low - first : low - first + len(counts)] += counts

    def pack(self) -> None:
        """Keep it small: nothing more is expected to come."""
        self.flush()
        if self._bins is not None:
            self._bins = self._bins.astype(np.min_scalar_type(int(self._bins.max())))

    def merge(self, other: Histogram) -> None:
        self.flush()
        other.flush()
        if other._bins is not None:
            self._add_bins(other._low, other._bins)
        self._count(other.count, other.sum, other.squares, other.max)

    def state(self) -> dict[str, Any]:
        """Everything as plain data: exact sums, and the bins that are not empty."""
        self.flush()
        filled = np.zeros(0, np.int64) if self._bins is None else np.flatnonzero(self._bins)
        counts = [] if self._bins is None else self._bins[filled].tolist()
        sums = {"count": self.count, "sum": self.sum, "squares": self.squares, "max": self.max}
        return sums | {"bins": (filled + self._low).tolist(), "counts": counts}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Histogram:
        bins = np.zeros(max(state["bins"], default=-1) + 1, np.int64)
        bins[state["bins"]] = state["counts"]
        return cls.of_counts(state["count"], state["sum"], state["squares"], state["max"], bins)

    @classmethod
    def of_counts(
        cls, count: int, total: int, squares: int, most: int, bins: npt.NDArray[np.integer]
    ) -> Histogram:
        """The histogram with these sums, and these counts of all bins from the first on."""
        new = cls()
        new._count(count, total, squares, most)
        filled = np.flatnonzero(bins)
        if len(filled):
            new._low = int(filled[0])
            new._bins = bins[new._low : int(filled[-1]) + 1].astype(np.int64)
        return new

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def quantile(self, q: float) -> float | None:
        """The value at rank ceil(q * count), to within half a bin (0.4 %); None if empty."""
        self.flush()
        if self.count == 0:
            return None
        assert self._bins is not None
        rank = max(1, math.ceil(q * self.count))
        index = self._low + int(np.searchsorted(np.cumsum(self._bins), rank))
        return min(_middle(index), float(self.max))

    @property
    def mean(self) -> float | None:
        """Exact mean; None if empty."""
        self.flush()
        return self.sum / self.count if self.count else None

    @property
    def std(self) -> float | None:
        """Exact standard deviation (of the population); None if empty."""
        self.flush()
        if not self.count:
            return None
        return math.sqrt(max(0, self.squares * self.count - self.sum * self.sum)) / self.count

    def if_median(self, least: float) -> Histogram:
        """The same, or an empty one if its median is less."""
        return self if (self.quantile(0.5) or 0.0) >= least else Histogram()

    def summary(self, unit: float = 1.0) -> dict[str, float | None]:
        """median, mean, std, p95, p99, max, divided by ``unit``; None if empty."""
        self.flush()
        values = {
            "median": self.quantile(0.5),
            "mean": self.mean,
            "std": self.std,
            "p95": self.quantile(0.95),
            "p99": self.quantile(0.99),
            "max": float(self.max) if self.count else None,
        }
        return {name: None if v is None else v / unit for name, v in values.items()}


def merged(parts: Iterable[Histogram]) -> Histogram:
    """All in one."""
    whole = Histogram()
    for part in parts:
        whole.merge(part)
    return whole
