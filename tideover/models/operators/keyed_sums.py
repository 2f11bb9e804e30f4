"""Sums by key: the state of counts."""

from __future__ import annotations

from typing import Self

import numpy as np

from tideover.models.operators.state import Effects, EpochState
from tideover.sim.train import Ints, Train


class KeyedSums(EpochState):
    """The sum of the tuples' values for each key, shape (keys,); a window puts out the sums that are not 0,
    and forgets them.
    """

    def _nothing(self) -> Ints:
        return np.zeros(self.keys, np.int64)

    def _taken_in(self, content: Ints, train: Train) -> Ints:
        content += sums_by_key(train, self.keys)
        return content

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        sums = np.sum(contents, axis=0) if contents else self._nothing()
        keys = np.flatnonzero(sums)
        return keys, sums[keys]

    def _copied(self, content: Ints) -> Ints:
        return content.copy()

    def _entries(self, content: Ints) -> int:
        return int(np.count_nonzero(content))

    def _changed(self, content: Ints, old: Ints) -> int:
        return int(np.count_nonzero(content[content != old]))

    def take_in(self, sums: Ints, effects: Effects) -> None:
        """Take in tuples of the open window whose sums by key are known."""
        n = len(effects.uid)
        self.tuples += n
        self.taken += n
        if 0 not in self._contents:
            self._contents[0], self._behind[0] = self._nothing(), []
        self._contents[0] += sums
        self._trains += 1
        self._behind[0].append((self._trains, effects))


class RunningSums(KeyedSums):
    """Sums that go on from window to window: each puts out all of them as they are by then."""

    def __init__(self, keys: int) -> None:
        super().__init__(keys)
        self._so_far = self._nothing()

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        self._so_far = self._so_far + np.sum(contents, axis=0) if contents else self._so_far
        keys = np.flatnonzero(self._so_far)
        return keys, self._so_far[keys]

    def _whole(self) -> Self:
        new = super()._whole()
        new._so_far = self._so_far.copy()
        return new

    @property
    def entries(self) -> int:
        return super().entries + int(np.count_nonzero(self._so_far))

    def changed_since(self, old: Self) -> int:
        return super().changed_since(old) + self._changed(self._so_far, old._so_far)


class KeySet(KeyedSums):
    """The different keys that have come; a window puts out each of them once, with value 1."""

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        keys, _ = super()._put_out(contents)
        return keys, np.ones(len(keys), np.int64)

    def _taken_in(self, content: Ints, train: Train) -> Ints:
        content[train.key] = 1
        return content


def sums_by_key(train: Train, keys: int) -> Ints:
    """Sum of the tuples' values for each of so many keys."""
    if train.value is None:
        return np.bincount(train.key, minlength=keys)
    sums = np.zeros(keys, np.int64)
    np.add.at(sums, train.key, train.value)
    return sums
