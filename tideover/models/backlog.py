"""The backlog: roots with a tuple in a queue, in service, on the wire, or waiting for a retry."""

from __future__ import annotations

import numpy as np

from tideover.sim.recorder import Recorder
from tideover.sim.train import Ints, distinct

_COLUMNS = ("_open", "_last", "_inside", "_first")


class Backlog:
    """Counts the open tuples of each root; a root leaves the backlog when the last of them is done.

    Roots enter at their emission or at a control action, and leave when data moves: so the result does not
    depend on how far the data plane is moved at a time.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._first: Ints = np.zeros(1 << 12, np.int64)
        """First emission of each root."""
        self._open = np.zeros(1 << 12, np.int32)
        self._last: Ints = np.zeros(1 << 12, np.int64)
        self._inside = np.zeros(1 << 12, np.bool_)
        self._base = 0
        self._used = 0
        """Roots from the base to the newest; the arrays are longer."""
        self._touched: list[slice | Ints] = []

    def _place(self, roots: Ints) -> slice | Ints:
        """Where the roots are; roots that follow one another without a gap are a slice, which is ten times
        faster.
        """
        first, last = int(roots[0]) - self._base, int(roots[-1]) - self._base
        place: slice | Ints
        if last - first == len(roots) - 1 and bool((roots[1:] > roots[:-1]).all()):
            place = slice(first, last + 1)
        else:
            place = roots - self._base
            last = int(place.max())
        self._used = max(self._used, last + 1)
        if last >= len(self._open):
            size = max(last + 1, 2 * len(self._open))
            for name in _COLUMNS:
                old = getattr(self, name)
                grown = np.zeros(size, old.dtype)
                grown[: len(old)] = old
                setattr(self, name, grown)
        return place

    def _add(self, place: slice | Ints, times: Ints, tuples: Ints | int) -> None:
        if isinstance(place, slice):
            self._open[place] += np.asarray(tuples, np.int32)
            last = self._last[place]
            np.maximum(last, times, out=last)
        else:
            np.add.at(self._open, place, np.asarray(tuples, np.int32))
            np.maximum.at(self._last, place, times)

    def enter(self, roots: Ints, times: Ints, tuples: Ints | int) -> None:
        """``tuples`` more of each root (none named twice) are open since ``times``."""
        if not len(roots):
            return
        place = self._place(roots)
        inside = self._inside[place]
        self._recorder.entered.add(times[~inside] if inside.any() else times)
        self._inside[place] = True
        self._add(place, times, tuples)

    def emitted(self, roots: Ints, attempt: Ints | None, times: Ints) -> None:
        """Roots that have entered are emitted; of first attempts (None: all are) the time is kept."""
        if attempt is not None:
            new = np.flatnonzero(attempt == 0)
            roots, times = roots[new], times[new]
        if len(roots):
            self._first[self._place(roots)] = times

    def first(self, roots: Ints) -> Ints:
        """When roots that are open were first emitted."""
        return self._first.take(roots - self._base)

    def change(self, roots: Ints, times: Ints, net: Ints | int) -> None:
        """At ``times`` (rising), ``net`` (mostly negative) is added to the open tuples of each root."""
        if not len(roots):
            return
        place = self._place(roots)
        self._add(place, times, net)
        self._touched.append(place)

    def settle(self) -> None:
        """After a step of the data plane: roots without open tuples leave, each at its last instant."""
        spans: list[tuple[int, int]] = []
        for place in self._touched:
            if isinstance(place, slice):
                spans.append((place.start, place.stop))
                continue
            low, high = int(place.min()), int(place.max()) + 1
            if high - low <= 4 * len(place):
                spans.append((low, high))
                continue
            over = self._open.take(place) == 0
            over &= self._inside.take(place)
            self._leave(distinct(place[over]))
        self._touched = []
        for low, high in _united(spans):
            over = self._open[low:high] == 0
            over &= self._inside[low:high]
            if over.all():
                self._leave(slice(low, high))
            else:
                self._leave(np.flatnonzero(over) + low)

    def _leave(self, done: slice | Ints) -> None:
        if isinstance(done, slice) or len(done):
            self._inside[done] = False
            self._recorder.left.count(self._last[done])

    def prune(self, before: int) -> None:
        """Forget the roots < ``before``: none of them is open or can be emitted again."""
        cut = before - self._base
        if cut <= 0:
            return
        used, kept = self._used, max(0, self._used - cut)
        self._base, self._used = before, kept
        room = max(1 << 12, 2 * used)
        for name in _COLUMNS:
            rows = getattr(self, name)
            if len(rows) > 2 * room:  # of a backlog that is long gone
                rows = rows[: max(room, cut + kept)].copy()
                setattr(self, name, rows)
            rows[:kept] = rows[cut : cut + kept]
            rows[kept:used] = 0

    @property
    def size(self) -> int:
        """Roots that are kept."""
        return self._used

    def tuples(self) -> int:
        """Open tuples of all roots."""
        return int(self._open.sum())


def _united(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap as one, so that what the tasks of a component share is looked through once."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if out and low <= out[-1][1]:
            out[-1] = out[-1][0], max(high, out[-1][1])
        else:
            out.append((low, high))
    return out
