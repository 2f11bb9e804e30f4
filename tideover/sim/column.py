"""Integers that grow at the end."""

from __future__ import annotations

import numpy as np

from tideover.sim.train import Ints


class Column:
    """A column that is filled piece by piece. ``n``: how many there are."""

    __slots__ = ("_cells", "n")

    def __init__(self, *first: int) -> None:
        self.n = len(first)
        self._cells: Ints = np.empty(1024, np.int64)
        self._cells[: self.n] = first

    def add(self, values: Ints) -> None:
        """Put these at the end."""
        first, self.n = self.n, self.n + len(values)
        if self.n > len(self._cells):
            cells = np.empty(2 * self.n, np.int64)
            cells[:first] = self._cells[:first]
            self._cells = cells
        self._cells[first : self.n] = values

    def fill(self, value: int, n: int) -> None:
        """Put n times the same at the end."""
        self.add(np.broadcast_to(np.int64(value), n))

    @property
    def values(self) -> Ints:
        """All of them, to be read and written; what is added later is not in it."""
        return self._cells[: self.n]

    def until(self, moment: int) -> int:
        """How many are at or before this, if they rise."""
        return int(self.values.searchsorted(moment, "right"))
