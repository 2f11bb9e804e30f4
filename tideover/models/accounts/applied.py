"""How often effects are applied."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.models.job.topology import Component
from tideover.sim.train import Ints, distinct, grown

EMPTY: Ints = np.zeros(0, np.int64)
_ONE = np.uint8(1)
"""Of the slots' own type: with another type ``ufunc.at`` is fifty times slower."""


class Applied:
    """How often each effect at one component is applied, by replica: one byte each, for the roots that are
    not closed.
    """

    def __init__(self, component: Component, replicas: int, once: bool) -> None:
        self.component = component
        self.replicas = replicas
        self._once = once
        """Whether its reader drops what it has already: an output that comes again is none."""
        self._slots = np.zeros(1 << 12 + min(component.bits, 4), np.uint8)
        self._base = 0
        self._used = 0
        """Slots up to the highest that was touched; the array is larger."""

    def _index(self, uid: Ints, replica: int) -> Ints:
        index = uid - (self._base << self.component.bits)
        if self.replicas > 1:
            index = index * self.replicas + replica
        top = int(index.max()) + 1
        self._used = max(self._used, top)
        if top > len(self._slots):
            self._slots = grown(self._slots, max(top, 2 * len(self._slots)))
        return index

    def have_room(self, roots: int) -> None:
        """Have room for the effects of so many roots from the base on."""
        slots = self.replicas * roots << self.component.bits
        if slots > len(self._slots):
            self._slots = grown(self._slots, slots)

    def apply(self, uid: Ints, replica: int) -> int:
        """Count effects as applied; returns how many of them were applied already in that replica, be it
        further ahead in ``uid``.
        """
        n = len(uid)
        if self._once:
            index = self._index(uid, replica)  # which may make room for them
            self._slots[index] = _ONE
            return 0
        if self.replicas == 1 and int(uid[-1]) - int(uid[0]) == n - 1 and bool((uid[1:] > uid[:-1]).all()):
            first = int(self._index(uid[-1:], replica)[0]) + 1 - n
            slots = self._slots[first : first + n]  # one after the other: ten times faster
            slots += _ONE
            return int(np.count_nonzero(slots > _ONE))
        index = self._index(uid, replica)
        np.add.at(self._slots, index, _ONE)
        twice = index[self._slots.take(index) > _ONE]
        if not len(twice):
            return 0
        places, times = np.unique(twice, return_counts=True)
        new = np.count_nonzero(self._slots.take(places) == times)  # of these the first one is no repetition
        return len(twice) - int(new)

    def duplicated_roots(self) -> Ints:
        """Roots of which an effect is applied more than once in one replica."""
        if not self._used or int(self._slots[: self._used].max()) <= 1:
            return EMPTY
        index = np.flatnonzero(self._slots > 1) // self.replicas
        return distinct((index >> self.component.bits) + self._base)

    def destroy(self, uid: Ints, replica: int) -> None:
        """Count effects as applied once less."""
        if len(uid):
            np.subtract.at(self._slots, self._index(uid, replica), _ONE)

    def times(self, uid: Ints) -> npt.NDArray[np.uint8]:
        """How often each effect is applied, the replica with the most."""
        if not len(uid):
            return self._slots[:0]
        index = self._index(uid, 0)
        most = self._slots.take(index)
        if self.replicas > 1:
            self._index(uid, self.replicas - 1)
            for r in range(1, self.replicas):
                np.maximum(most, self._slots.take(index + r), out=most)
        return most

    def forget(self, before_root: int) -> None:
        """Drop the slots of all roots < ``before_root``."""
        cut = ((before_root - self._base) << self.component.bits) * self.replicas
        self._used = max(0, self._used - cut)
        kept = np.zeros(max(1 << 12, 2 * self._used), np.uint8)
        kept[: self._used] = self._slots[cut : cut + self._used]
        self._slots = kept
        self._base = before_root

    @property
    def size(self) -> int:
        """Slots in use."""
        return self._used
