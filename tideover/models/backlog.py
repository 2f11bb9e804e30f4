"""The backlog: roots with a tuple in a queue, in service, on the wire, or waiting for a retry."""

from __future__ import annotations

import numpy as np

from tideover.sim.recorder import Recorder
from tideover.sim.train import Ints


class Backlog:
    """Counts the open tuples of each root; a root leaves the backlog when the last of them is done.

    Roots enter at their emission or at a control action, and leave when data moves: so the result does not depend on how far the
    data plane is moved at a time.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open = np.zeros(1 << 12, np.int32)
        self._last: Ints = np.zeros(1 << 12, np.int64)
        self._inside = np.zeros(1 << 12, np.bool_)
        self._base = 0
        self._touched: list[Ints] = []

    def _index(self, roots: Ints) -> Ints:
        index = roots - self._base
        top = int(index.max()) + 1
        if top > len(self._open):
            size = max(top, 2 * len(self._open))
            for name in ("_open", "_last", "_inside"):
                old = getattr(self, name)
                grown = np.zeros(size, old.dtype)
                grown[: len(old)] = old
                setattr(self, name, grown)
        return index

    def enter(self, roots: Ints, times: Ints, tuples: Ints | int) -> None:
        """``tuples`` more of each root (none named twice) are open since ``times``."""
        if not len(roots):
            return
        index = self._index(roots)
        fresh = ~self._inside[index]
        np.add.at(self._open, index, np.asarray(tuples, np.int32))
        self._inside[index] = True
        self._last[index] = np.maximum(self._last[index], times)
        self._recorder.entered.add(times if fresh.all() else times[fresh])

    def change(self, roots: Ints, times: Ints, net: Ints | int) -> None:
        """At ``times`` (rising), ``net`` (mostly negative) is added to the open tuples of each root."""
        if not len(roots):
            return
        index = self._index(roots)
        np.add.at(self._open, index, np.asarray(net, np.int32))
        self._last[index] = np.maximum(self._last[index], times)
        self._touched.append(index)

    def settle(self) -> None:
        """After a step of the data plane: roots without open tuples leave, each at its last instant."""
        if not self._touched:
            return
        for index in self._touched:
            low, high = int(index.min()), int(index.max()) + 1
            if high - low <= 4 * len(index):
                done = np.flatnonzero((self._open[low:high] == 0) & self._inside[low:high]) + low
            else:
                done = np.unique(index[(self._open[index] == 0) & self._inside[index]])
            if len(done):
                self._inside[done] = False
                self._recorder.left.add(np.sort(self._last[done]))
        self._touched = []

    def prune(self, before: int) -> None:
        """Forget the roots < ``before``: none of them is open or can be emitted again."""
        cut = before - self._base
        if cut > 0:
            self._base = before
            self._open, self._last, self._inside = (
                self._open[cut:].copy(),
                self._last[cut:].copy(),
                self._inside[cut:].copy(),
            )

    @property
    def size(self) -> int:
        return len(self._open)

    def tuples(self) -> int:
        """Open tuples of all roots."""
        return int(self._open.sum())
