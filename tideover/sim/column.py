"""Integers that grow at the end, and which messages of a line some are."""

from __future__ import annotations

import numpy as np

from tideover.sim.train import Ints


class Column:
    """A column that is filled piece by piece. ``n``: how many there are."""

    __slots__ = ("_cells", "n")

    def __init__(self, *first: int) -> None:
        self.n = len(first)
        self._cells: Ints = np.empty(8192, np.int64)
        self._cells[: self.n] = first

    def add(self, values: Ints) -> None:
        """Put these at the end."""
        first = self._grow(len(values))
        self._cells[first : self.n] = values

    def fill(self, value: int, n: int) -> None:
        """Put n times the same at the end."""
        first = self._grow(n)
        self._cells[first : self.n] = value

    def _grow(self, n: int) -> int:
        """Make room for n more; returns where they begin."""
        first, self.n = self.n, self.n + n
        if self.n > len(self._cells):
            cells = np.empty(2 * self.n, np.int64)
            cells[:first] = self._cells[:first]
            self._cells = cells
        return first

    @property
    def values(self) -> Ints:
        """All of them, to be read and written; what is added later is not in it."""
        return self._cells[: self.n]

    def until(self, moment: int) -> int:
        """How many are at or before this, if they rise."""
        return int(self.values.searchsorted(moment, "right"))


class Places:
    """Where some messages of a line stand in it. ``n``: how many they are.

    As long as they are all messages of the line from its beginning on, nothing is kept.
    """

    def __init__(self) -> None:
        self.n = 0
        self._kept: Column | None = None

    def follow(self, first: int, n: int) -> None:
        """The next n stand together, from place ``first`` on."""
        if self._kept is None and first == self.n:
            self.n += n
        else:
            self.add(np.arange(first, first + n))

    def add(self, places: Ints) -> None:
        """The next stand at these places."""
        if self._kept is None:
            self._kept = Column()
            self._kept.add(np.arange(self.n))
        self._kept.add(places)
        self.n = self._kept.n

    def of(self, first: int, last: int) -> slice | Ints:
        """Places of those from number ``first`` on, up to ``last``."""
        return slice(first, last) if self._kept is None else self._kept.values[first:last]

    def at(self, number: int) -> int:
        """Place of one of them."""
        return number if self._kept is None else int(self._kept.values[number])

    def before(self, place: int) -> int:
        """How many stand before this place."""
        return min(place, self.n) if self._kept is None else int(self._kept.values.searchsorted(place))

    def last_before(self, ends: Ints, but: int) -> Ints:
        """Place of the last of them before each of these, not counting the last ``but`` ones; -1: there is
        none.
        """
        if self._kept is None or not self.n:
            return np.maximum(np.minimum(ends, self.n) - but - 1, -1)
        number = self._kept.values.searchsorted(ends) - but - 1
        found: Ints = np.where(number >= 0, self._kept.values[np.maximum(number, 0)], -1)
        return found
