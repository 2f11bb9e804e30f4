"""Which slots of a run are looked at: all of them, or, in a long one, those in which something happens, and
what is near enough to matter. In between all is as it was before, so a figure is the same with either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tideover.sim.recorder import SLOT
from tideover.sim.train import Ints
from tideover.sim.units import S

SECOND = S // SLOT
"""Slots in a second."""


@dataclass(frozen=True, eq=False)
class Axis:
    """The slots that are kept, rising: the first, all of the kept seconds, and what follows the last whole
    second. Places are counted among the kept ones.

    whole   slots of the run
    kept    numbers of the whole seconds that are kept, rising; None: all
    """

    whole: int
    kept: Ints | None = None

    @classmethod
    def near(cls, whole: int, slots: Ints, margin: int) -> Axis:
        """Seconds that are at most ``margin`` seconds from one of the ``slots`` (rising)."""
        seconds = np.unique(np.maximum(slots - 1, 0) // SECOND)
        last = (whole - 1) // SECOND
        begins, ends = np.maximum(seconds - margin, 0), np.minimum(seconds + margin + 1, last)
        apart = np.flatnonzero(begins[1:] > ends[:-1])
        first, stop = begins[np.append(0, apart + 1)], ends[np.append(apart, len(ends) - 1)]
        parts = [np.arange(a, b, dtype=np.int64) for a, b in zip(first.tolist(), stop.tolist(), strict=True)]
        return cls(whole, np.concatenate(parts))

    def and_those_of(self, other: Axis) -> Axis:
        """What is kept of one or the other."""
        if self.kept is None or other.kept is None or self.kept is other.kept:
            return self
        return Axis(self.whole, np.union1d(self.kept, other.kept))

    @cached_property
    def at(self) -> Ints:
        """The number of the slot at each place."""
        if self.kept is None:
            return np.arange(self.whole, dtype=np.int64)
        inside = self.kept[:, None] * SECOND + np.arange(1, SECOND + 1, dtype=np.int64)
        rest = np.arange((self.whole - 1) // SECOND * SECOND + 1, self.whole, dtype=np.int64)
        return np.concatenate([np.zeros(1, np.int64), inside.ravel(), rest])

    def place(self, slot: int) -> int:
        """Where a slot is, or the next that is kept."""
        return slot if self.kept is None else int(self.at.searchsorted(slot))

    def slot(self, place: int) -> int:
        """The slot at a place."""
        return place if self.kept is None else int(self.at[place])

    def seconds(self, first: int, last: int) -> Ints:
        """The whole seconds from ``first`` to before ``last`` that are kept."""
        if self.kept is None:
            return np.arange(first, last, dtype=np.int64)
        begin, end = self.kept.searchsorted((first, last)).tolist()
        return self.kept[begin:end]

    def slots_of(self, first: int, last: int) -> slice:
        """The places of all slots of these seconds."""
        if self.kept is None:
            return slice(first * SECOND + 1, last * SECOND + 1)
        begin, end = self.kept.searchsorted((first, last)).tolist()
        return slice(begin * SECOND + 1, end * SECOND + 1)
