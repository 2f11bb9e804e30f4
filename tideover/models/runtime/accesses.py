"""Which entries of its state a task has looked up, and which of them it has at hand."""

from __future__ import annotations

import numpy as np

from tideover.models.job.backends.base import Backend
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.train import Ints


class Touched:
    """The entries of one task's state that its tuples have changed, and that are *at hand* therefore: until
    the commit of the prepare that follows. What it takes grows with these, not with the state.

    A tuple's i-th access (i from 0) goes to an entry drawn for its uid * accesses + i, all entries alike.
    """

    def __init__(self, component: str, draws: Draws, backend: Backend) -> None:
        self._component, self._draws = component, draws
        self._accesses, self._entries = backend.accesses, backend.entries
        self._changed: set[int] = set()
        """Since the last prepare."""
        self._prepared: set[int] = set()
        """Before it, and not committed."""

    def look_up(self, uid: Ints) -> Ints:
        """Tuples are processed, in this order; returns for each how many accesses find nothing at hand."""
        missing = np.zeros(len(uid), np.int64)
        if not self._accesses or not len(uid):
            return missing
        accesses = np.arange(self._accesses, dtype=np.int64)
        index = (uid[:, None] * self._accesses + accesses).ravel()
        entries = below(self._draws.bits(self._component, Purpose.ACCESS, index), self._entries).tolist()
        changed, prepared = self._changed, self._prepared
        rows = []
        for number, entry in enumerate(entries):
            if entry not in changed:
                changed.add(entry)
                if entry not in prepared:
                    rows.append(number)
        if rows:
            missing += np.bincount(np.array(rows) // self._accesses, minlength=len(uid))
        return missing

    def prepare(self) -> int:
        """A transaction begins; returns how many entries have changed since the last one."""
        self._prepared, self._changed = self._changed, set()
        return len(self._prepared)

    def commit(self) -> None:
        """What was prepared is committed: it is at hand no more."""
        self._prepared = set()

    def forget(self) -> None:
        """Nothing is at hand: what was changed and not committed is undone."""
        self._changed, self._prepared = set(), set()
