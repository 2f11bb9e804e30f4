"""The state of a windowed count: sums by key, and the tuples that made them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tideover.sim.train import Ints, Train


class Held(NamedTuple):
    """Tuples that a count has taken in: 8 bytes each, 16 if there are retries among them."""

    uid: Ints
    attempt: Ints | None


class Counts:
    """Sums by key for each epoch (one epoch only, 0, unless markers end the windows), with the tuples behind
    them.

    ``held`` keeps the tuples in the order in which they were processed: a window's acks go out in that order,
    and the ledger asks which effects live here.
    """

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.sums: dict[int, Ints] = {}
        self.held: dict[int, list[tuple[int, Held]]] = {}
        """With a number that rises in the order of processing."""
        self._runs = 0
        self.tuples = 0
        """Tuples since the last window."""

    def add(self, train: Train) -> None:
        """Count a train."""
        self.tuples += train.n
        if train.epoch is None:
            self._add(0, train)
            return
        changes = np.flatnonzero(np.diff(train.epoch)) + 1
        for begin, end in zip([0, *changes.tolist()], [*changes.tolist(), train.n], strict=True):
            self._add(
                int(train.epoch[begin]), train if end - begin == train.n else train.pick(slice(begin, end))
            )

    def _add(self, epoch: int, train: Train) -> None:
        if epoch not in self.sums:
            self.sums[epoch] = np.zeros(self.keys, np.int64)
            self.held[epoch] = []
        self.sums[epoch] += sums_by_key(train, self.keys)
        self._runs += 1
        self.held[epoch].append((self._runs, Held(train.uid, train.attempt)))

    def add_sums(self, keys: Ints, sums: Ints) -> None:
        """Count sums, without the tuples behind them: for a twin, which nobody asks for these."""
        if 0 not in self.sums:
            self.sums[0], self.held[0] = np.zeros(self.keys, np.int64), []
        self.sums[0][keys] += sums

    def take(self, before: int | None = None) -> tuple[Ints, list[Held]]:
        """Sums and tuples of all epochs < ``before`` (None: all), which are forgotten here."""
        sums = np.zeros(self.keys, np.int64)
        held: list[tuple[int, Held]] = []
        for epoch in sorted(self.sums):
            if before is None or epoch < before:
                sums += self.sums.pop(epoch)
                held += self.held.pop(epoch)
        self.tuples = 0
        return sums, [part for _, part in sorted(held, key=lambda run: run[0])]

    def copy(self) -> Counts:
        """A copy that later changes here do not reach."""
        new = Counts(self.keys)
        new.sums = {epoch: sums.copy() for epoch, sums in self.sums.items()}
        new.held = {epoch: list(held) for epoch, held in self.held.items()}
        new._runs = self._runs
        new.tuples = self.tuples
        return new

    @property
    def entries(self) -> int:
        """Keys with a sum, over all epochs: what a checkpoint has to write."""
        return sum(int(np.count_nonzero(sums)) for sums in self.sums.values())

    @property
    def size(self) -> int:
        """Tuples that are counted here."""
        return sum(len(part.uid) for held in self.held.values() for _, part in held)

    def effects(self) -> Held:
        """The tuples that are counted here."""
        return joined([part for held in self.held.values() for _, part in held])

    def total(self) -> dict[int, int]:
        """Sum of each key over all epochs, where it is not 0."""
        sums = sum(self.sums.values(), np.zeros(self.keys, np.int64))
        return {int(k): int(sums[k]) for k in np.flatnonzero(sums)}


def sums_by_key(train: Train, keys: int) -> Ints:
    """Sum of the tuples' values for each of so many keys."""
    if train.value is None:
        return np.bincount(train.key, minlength=keys)
    sums = np.zeros(keys, np.int64)
    np.add.at(sums, train.key, train.value)
    return sums


def joined(parts: list[Held]) -> Held:
    """All of it as one."""
    uid = np.concatenate([np.zeros(0, np.int64), *(part.uid for part in parts)])
    if all(part.attempt is None for part in parts):
        return Held(uid, None)
    return Held(
        uid,
        np.concatenate([np.zeros(len(p.uid), np.int64) if p.attempt is None else p.attempt for p in parts]),
    )
