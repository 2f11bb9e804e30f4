"""The spout's map of pending roots, with the acker's value of each.

The spout keeps unfinished roots in a rotating map (Storm's ``RotatingMap``): what is in the oldest bucket at
a rotation has timed out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.runtime.keeper import NOTHING
from tideover.sim.draws import Bits
from tideover.sim.train import Ints

LONG_AGO = -(1 << 62)
NONE = (NOTHING, NOTHING, NOTHING)


class Completed(NamedTuple):
    """Roots whose trees were done, and when (the latest ack)."""

    root: Ints
    attempt: Ints
    time: Ints


class PendingRoots:
    """Roots of one spout task that are neither completed nor given up, with the acker's value of each.

    Columns by the root's number, from the oldest root that is still needed: 45 bytes a root.
    """

    _COLUMNS = (
        *("_value", "_emitted", "_last_ack", "_attempt", "_outage", "_cause", "_live", "_retrying"),
        "_newest",
    )

    def __init__(self, spout_bits: int, number: int) -> None:
        self._bits = spout_bits
        self._number = number
        self._base = 0
        self._size = 0
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
        self.expired_to = -1
        """Pending roots were emitted after this instant."""
        self.needed_from: int | None = None
        """Number of the first root that may be emitted again although it is not pending; None: none may."""
        self._retrying = np.zeros(1024, np.bool_)
        self._forgotten: tuple[Ints, Ints, Ints] = NONE
        self._newest = np.zeros(1024, np.int32)
        """Row of a root's last ack, while a train of acks is looked through."""

    def _at(self, roots: Ints) -> Ints:
        return (roots >> self._bits) - self._base

    def _root(self, index: Ints) -> Ints:
        return ((index + self._base) << self._bits) | self._number

    def _reserve(self, roots: Ints) -> Ints:
        """Make room; returns where the roots are."""
        if int(self._at(roots).max()) >= len(self._value):
            needed = np.flatnonzero((self._live > 0) | self._retrying)
            cut = int(needed[0]) if len(needed) else self._size
            if self.needed_from is not None:
                cut = max(0, min(cut, self.needed_from - self._base))
            top = int(self._at(roots).max()) + 1 - cut
            size = max(top, 2 * (self._size - cut))
            for name in self._COLUMNS:
                old = getattr(self, name)
                if 4 * top <= 3 * len(old):  # in place: fresh memory costs more than to copy
                    old[: self._size - cut] = old[cut : self._size]
                    old[self._size - cut : self._size] = 0
                    continue
                grown = np.zeros(size, old.dtype)
                grown[: self._size - cut] = old[cut : self._size]
                setattr(self, name, grown)
            self._base += cut
            self._size -= cut
            self._forget_causes()
        index = self._at(roots)
        self._size = max(self._size, int(index.max()) + 1)
        return index

    def _forget_causes(self) -> None:
        """Of roots that are not kept any more: else failures of long ago would be followed for ever."""
        if self._causes:
            first = self._base << self._bits
            self._causes = {key: outage for key, outage in self._causes.items() if key[0] >= first}
            self._earlier = set(self._causes.values())

    def emit(self, roots: Ints, attempt: Ints | None, times: Ints, value: Bits) -> None:
        """Roots are emitted: their trees begin with ``value``."""
        place = self._reserve(roots)
        index: slice | Ints = place
        if attempt is None:
            first, last = int(place[0]), int(place[-1])
            if last - first == len(place) - 1:  # new roots rise
                index = slice(first, last + 1)
            self._attempt[index] = 0
            self._live[index] = 1
            self._cause[index] = -1
        else:
            for row in np.flatnonzero((attempt > 1) & (self._cause[index] >= 0)).tolist():
                at = int(place[row])
                self._causes[int(roots[row]), int(self._attempt[at])] = int(self._cause[at])
                self._earlier.add(int(self._cause[at]))
            self._attempt[index] = attempt
            self._live[index] = attempt + 1
            self._cause[index] = np.where(attempt > 0, self._outage[index], -1)
        self._value[index] = value
        self._emitted[index] = times
        self._last_ack[index] = 0
        self._outage[index] = -1
        self._retrying[index] = False

    def ack(
        self, roots: Ints, attempt: Ints | None, times: Ints, value: Bits, alive_since: int
    ) -> Completed | None:
        """Acks reach the acker at ``times`` (rising), each with the XOR of what it acks and creates.

        Acks of roots that are not pending, of earlier attempts, or emitted at or before ``alive_since`` (when
        the acker came up) are ignored.
        """
        index = self._at(roots)
        long_gone = int(index.min()) < 0
        there = np.maximum(index, 0) if long_gone else index
        known = self._live.take(there) == (1 if attempt is None else attempt + 1)
        if long_gone:
            known &= index >= 0
        if alive_since >= 0:
            known &= self._emitted.take(there) > alive_since
        if not known.all():
            index, times, value = index[known], times[known], value[known]
        if not len(index):
            return None
        left = self._xor(index, value)
        np.maximum.at(self._last_ack, index, times)
        done = index[left == 0]
        if not len(done):
            return None
        low = int(done.min())
        once = np.zeros(int(done.max()) - low + 1, np.bool_)
        once[done - low] = True
        done = np.flatnonzero(once) + low
        self._live[done] = 0
        return Completed(self._root(done), self._attempt[done].astype(np.int64), self._last_ack[done])

    def _xor(self, index: Ints, value: Bits) -> Bits:
        """XOR values into the roots' own; returns these, as they are then."""
        row = np.arange(len(index), dtype=np.int32)
        self._newest[index] = row
        if (self._newest.take(index) == row).all():  # each root once: ``at`` takes twice as long
            left = self._value.take(index)
            left ^= value
            self._value[index] = left
            return left
        np.bitwise_xor.at(self._value, index, value)
        return self._value.take(index)

    def expire(self, before: int) -> tuple[Ints, Ints, Ints]:
        """Give up roots last emitted at or before ``before``; returns them, their attempt and outage, in
        order of emission.
        """
        self.expired_to = max(self.expired_to, before)
        index = np.flatnonzero((self._live[: self._size] > 0) & (self._emitted[: self._size] <= before))
        index = index[np.argsort(self._emitted[index], kind="stable")]
        self._live[index] = 0
        self._retrying[index] = True
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

    def emitted_at(self, roots: Ints) -> Ints:
        """Last emission of each root (for a root long gone: 0)."""
        index = self._at(roots)
        if int(index.min()) >= 0:
            return self._emitted.take(index)
        return np.where(index >= 0, self._emitted[np.maximum(index, 0)], 0)

    def clear(self) -> None:
        """Forget everything: the spout has crashed."""
        index = np.flatnonzero((self._live > 0) | self._retrying)
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
