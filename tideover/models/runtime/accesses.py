"""Which entries of its state a task has looked up, and which of them it has at hand."""

from __future__ import annotations

import numpy as np

from tideover.models.job.backends.base import Backend
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.train import Ints

NEVER = -1


class Touched:
    """The entries of one task's state that its tuples have changed, by generation.

    A tuple's i-th access (i from 0) goes to an entry drawn for its uid * accesses + i, all entries alike.
    A generation is what was changed between two prepares; an entry is *at hand* if it was changed in a
    generation that is not committed.
    """

    def __init__(self, component: str, draws: Draws, backend: Backend) -> None:
        self._component, self._draws = component, draws
        self._accesses, self._entries = backend.accesses, backend.entries
        self._changed: Ints = np.full(backend.entries, NEVER, np.int64)
        """The generation in which each entry was changed last."""
        self._generation = 0
        self._committed = NEVER
        """The newest that is committed."""
        self._size = 0
        """Entries changed in this generation."""

    def look_up(self, uid: Ints) -> Ints:
        """Tuples are processed, in this order; returns for each how many accesses find nothing at hand."""
        found = np.zeros(len(uid), np.int64)
        if not self._accesses or not len(uid):
            return found
        accesses = np.arange(self._accesses, dtype=np.int64)
        index = (uid[:, None] * self._accesses + accesses).ravel()
        entry = below(self._draws.bits(self._component, Purpose.ACCESS, index), self._entries)
        once, first = np.unique(entry, return_index=True)
        before = self._changed.take(once)
        self._size += int(np.count_nonzero(before != self._generation))
        self._changed[once] = self._generation
        missing = first[before <= self._committed]
        return found + np.bincount(missing // self._accesses, minlength=len(uid))

    def prepare(self) -> int:
        """A generation ends; returns how many entries it has changed."""
        size, self._size = self._size, 0
        self._generation += 1
        return size

    def commit(self) -> None:
        """All generations that have ended are committed: what they changed is at hand no more."""
        self._committed = self._generation - 1

    def forget(self) -> None:
        """Nothing is at hand: what was changed and not committed is undone."""
        self._changed[:] = NEVER
        self._size = 0
        self._committed = NEVER
