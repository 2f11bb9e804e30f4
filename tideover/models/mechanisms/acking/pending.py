"""The spout's map of pending roots, with the acker's value of each.

The spout keeps unfinished roots in a rotating map (Storm's ``RotatingMap``): what is in the oldest bucket at
a rotation has timed out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.runtime.keeper import NOTHING
from tideover.sim.draws import Bits
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints

LONG_AGO = -(1 << 62)
NONE = (NOTHING, NOTHING, NOTHING)


class PendingRoots:
    """Roots of one spout task that are neither completed nor given up, with the acker's value of each. The
    data plane writes into it; ``c`` is its struct ``pending``.

    Columns by the root's number, from the oldest root that is still needed: 41 bytes a root.

    remembered   called when attempts are over
    up_to_date   called before somebody asks which roots are pending
    """

    _COLUMNS = ("value", "emitted", "last_ack", "attempt", "outage", "cause", "live", "retrying")

    def __init__(self, spout_bits: int, number: int, plane: Plane, c: Any) -> None:
        self._plane, self._c = plane, c
        self.remembered: Callable[[], None] = int  # type: ignore[assignment]
        self.up_to_date: Callable[[], None] = int  # type: ignore[assignment]
        self._bits = spout_bits
        self._number = number
        c.base = c.size = 0
        self._value: Bits = np.zeros(1024, np.uint64)
        self._emitted: Ints = np.zeros(1024, np.int64)
        self._last_ack: Ints = np.zeros(1024, np.int64)
        self._attempt = np.zeros(1024, np.int32)
        self._outage = np.zeros(1024, np.int32)
        """The newest outage that destroyed a tuple of the present attempt; -1: none."""
        self._cause = np.zeros(1024, np.int32)
        """The outage because of which the present attempt was made; -1: none."""
        self._causes: dict[tuple[int, int], int] = {}
        """The same of earlier attempts, of roots that are emitted again and again, while these are kept."""
        self._earlier: set[int] = set()
        """The outages among these."""
        self._live = np.zeros(1024, np.int32)
        """The attempt of a root that is pending, and 1; 0: it is not."""
        self.needed_from: int | None = None
        """Number of the first root that may be emitted again although it is not pending; None: none may."""
        self._retrying = np.zeros(1024, np.bool_)
        self._forgotten: tuple[Ints, Ints, Ints] = NONE
        self._connect()

    def _connect(self) -> None:
        for name in self._COLUMNS:
            column = getattr(self, f"_{name}")
            self._plane.array(self._c, name, column.view(np.uint8) if column.dtype == np.bool_ else column)
        self._c.room = len(self._value)

    @property
    def _base(self) -> int:
        return int(self._c.base)

    @property
    def _size(self) -> int:
        return int(self._c.size)

    def _at(self, roots: Ints) -> Ints:
        return (roots >> self._bits) - self._base

    def _root(self, index: Ints) -> Ints:
        return ((index + self._base) << self._bits) | self._number

    def make_room(self) -> None:
        """Make room for the next roots; forget the oldest that are not needed any more."""
        base, size = self._base, self._size
        needed = np.flatnonzero((self._live > 0) | self._retrying)
        cut = int(needed[0]) if len(needed) else size
        if self.needed_from is not None:
            cut = max(0, min(cut, self.needed_from - base))
        left = size - cut
        for name in self._COLUMNS:
            old = getattr(self, f"_{name}")
            if 4 * (left + 1) <= 3 * len(old):  # in place: fresh memory costs more than to copy
                old[:left] = old[cut:size]
                old[left:size] = 0
                continue
            grown = np.zeros(max(left + 1, 2 * left), old.dtype)
            grown[:left] = old[cut:size]
            setattr(self, f"_{name}", grown)
        self._c.base, self._c.size = base + cut, left
        self._forget_causes()
        self._connect()

    def _forget_causes(self) -> None:
        """Of roots that are not kept any more: else failures of long ago would be followed for ever."""
        if self._causes:
            first = self._base << self._bits
            self._causes = {key: outage for key, outage in self._causes.items() if key[0] >= first}
            self._earlier = set(self._causes.values())

    def _remember(self, index: Ints) -> None:
        """These attempts are over: the outages because of which they were made may still be asked for."""
        for at in index[(self._attempt[index] > 0) & (self._cause[index] >= 0)].tolist():
            root = ((at + self._base) << self._bits) | self._number
            self._causes[root, int(self._attempt[at])] = int(self._cause[at])
            self._earlier.add(int(self._cause[at]))
        self.remembered()

    def expire(self, before: int) -> tuple[Ints, Ints, Ints]:
        """Give up roots last emitted at or before ``before``; returns them, their attempt and outage, in
        order of emission.
        """
        self.up_to_date()
        index = np.flatnonzero((self._live[: self._size] > 0) & (self._emitted[: self._size] <= before))
        index = index[np.argsort(self._emitted[index], kind="stable")]
        self._live[index] = 0
        self._retrying[index] = True
        self._remember(index)
        return self._root(index), self._attempt[index].astype(np.int64), self._outage[index].astype(np.int64)

    def mark(self, roots: Ints, attempt: Ints | None, outage: int) -> None:
        """Tuples of these attempts of roots were destroyed by an outage; of earlier attempts they do not
        matter. Tasks report one after the other, not by time, so of several outages the newest counts.
        """
        index = self._at(roots)
        known = (index >= 0) & (index < self._size)
        known &= self._live[np.where(known, index, 0)] == (1 if attempt is None else attempt + 1)
        index = index[known]
        if outage < 0:  # no outage, which is the weaker reason
            self._outage[index[self._outage[index] == -1]] = outage
        else:
            self._outage[index] = np.maximum(self._outage[index], outage)

    def mark_all(self, emitted_after: int, outage: int) -> None:
        """An outage destroyed what the acker knew of the pending roots emitted after an instant."""
        pending = (self._live[: self._size] > 0) & (self._emitted[: self._size] > emitted_after)
        self._outage[: self._size][pending] = outage

    def replayed_for(self, roots: Ints, attempt: Ints, outage: int) -> npt.NDArray[np.bool_]:
        """Which of these attempts of roots were made because of the outage."""
        index = self._at(roots)
        there = np.maximum(index, 0)
        newest = (index >= 0) & (self._attempt.take(there) == attempt)
        known = newest & (self._cause.take(there) == outage)
        for row in np.flatnonzero(~newest).tolist() if self._causes else ():
            known[row] = self._causes.get((int(roots[row]), int(attempt[row]))) == outage
        return known

    def waiting_for(self, outage: int) -> int:
        """Roots hit by the outage that have not been emitted again."""
        hit = self._outage[: self._size] == outage
        return int(np.count_nonzero(hit & ((self._live > 0) | self._retrying)[: self._size]))

    def emitted_for(self, outage: int) -> bool:
        """Whether roots were emitted again because of the outage. Their tuples may be on their way, even if
        the roots were given up, and emitted once more since.
        """
        return bool((self._cause[: self._size] == outage).any()) or outage in self._earlier

    def roots(self) -> Ints:
        """All pending roots."""
        return self._root(np.flatnonzero(self._live[: self._size] > 0))

    def clear(self) -> None:
        """Forget everything: the spout has crashed."""
        self.up_to_date()
        index = np.flatnonzero((self._live > 0) | self._retrying)
        self._remember(index)
        emitted = np.where(self._retrying[index], LONG_AGO, self._emitted[index])
        self._forgotten = self._root(index), self._attempt[index].astype(np.int64), emitted
        self._live[:] = 0
        self._retrying[:] = False
        self._outage[:] = -1

    def retrying(self, roots: Ints) -> None:
        """These, which it had forgotten, wait to be emitted again."""
        self._retrying[self._at(roots)] = True

    def take_forgotten(self) -> tuple[Ints, Ints, Ints]:
        """What it forgot in the last crash: roots, their last attempt, and when that was emitted (ns); what
        had been given up was so long ago.
        """
        found, self._forgotten = self._forgotten, NONE
        return found
