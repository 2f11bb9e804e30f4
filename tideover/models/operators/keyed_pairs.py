"""Sums by key and side: the state of joins."""

from __future__ import annotations

import numpy as np

from tideover.models.operators.state import EpochState
from tideover.sim.train import Ints, Train

SIDE = "side"
"""Column of what a state takes in: over which of the component's inputs a tuple has come."""


class KeyedPairs(EpochState):
    """The sum of the tuples' values for each side and key, shape (2, keys); a window puts out the products of
    the two sides that are not 0: the number of pairs with the same key.
    """

    def _nothing(self) -> Ints:
        return np.zeros((2, self.keys), np.int64)

    def _taken_in(self, content: Ints, train: Train) -> Ints:
        np.add.at(content, (train.column(SIDE), train.key), train.column("value"))
        return content

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        left, right = np.sum(contents, axis=0) if contents else self._nothing()
        pairs = left * right
        keys = np.flatnonzero(pairs)
        return keys, pairs[keys]

    def _copied(self, content: Ints) -> Ints:
        return content.copy()

    def _entries(self, content: Ints) -> int:
        return int(np.count_nonzero(content))

    def _changed(self, content: Ints, old: Ints) -> int:
        return int(np.count_nonzero((content != 0) & (content != old)))
