"""Tuples at one place, numbered in the order in which they became known."""

from __future__ import annotations

import numpy as np

from tideover.sim.line import NONE, take_places
from tideover.sim.train import Ints, Train, join


class Pool:
    """Tuples at one node, or on their way out of the coupled part.

    n       how many
    takes   for each whether it takes a place in a queue

    A tuple that descends from a root which is not emitted yet gets its creation stamp when the root is:
    ``origin`` is the number of that root (-1: it has one).
    """

    def __init__(self) -> None:
        self.n = 0
        self.takes: list[bool] = []
        self._trains: list[Train] = []
        self._origin: list[Ints] = []

    def add(self, train: Train, origin: Ints | None = None) -> int:
        """Tuples are known; returns the number of the first."""
        first = self.n
        self.n += train.n
        self.takes += [True] * train.n if (taking := take_places(train)) is None else taking.tolist()
        self._trains.append(train)
        self._origin.append(np.full(train.n, -1, np.int64) if origin is None else origin)
        return first

    def whole(self) -> tuple[Train | None, Ints]:
        """All of them, and their origins."""
        if len(self._trains) > 1:
            self._trains = [join(self._trains)]
            self._origin = [np.concatenate(self._origin)]
        return (self._trains[0], self._origin[0]) if self._trains else (None, NONE)

    def write(self, rows: list[int], columns: dict[str, Ints]) -> None:
        """From now on these tuples have these columns."""
        train, _ = self.whole()
        assert train is not None
        known = {name: train.column(name).copy() for name in columns}
        for name, column in known.items():
            column[rows] = columns[name]
        self._trains = [train.adding(**known)]

    def pick(self, rows: list[int], times: list[int], emitted: Ints) -> Train | None:
        """These tuples at these times; ``emitted``: when roots were emitted. None: there are none."""
        train, origin = self.whole()
        if train is None or not rows:
            return None
        index = np.array(rows, np.int64)
        found = train.pick(index).replace(time=np.array(times, np.int64))
        origin = origin[index]
        new = origin >= 0
        if new.any():
            created = found.created.copy()
            created[new] = emitted[origin[new]]
            found = found.replace(created=created)
        return found

    def one(self, row: int, time: int, emitted: list[int]) -> Train:
        """The same of one tuple."""
        train, origin = self.whole()
        assert train is not None
        found = train.pick(slice(row, row + 1)).at(time)
        root = int(origin[row])
        return found if root < 0 else found.replace(created=np.array([emitted[root]]))
