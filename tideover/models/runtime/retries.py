"""What a spout of the data plane is to emit again, and how many of its roots are in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints

RETRY = np.dtype(
    [(name, np.int64) for name in ("root", "value", "created")]
    + [(name, np.int32) for name in ("key", "attempt")]
)
"""As ``retry`` in plane.h."""
Content = Callable[[Ints], tuple[Ints, Ints | None, Ints | None]]
"""Keys, values (None: 1) and creation stamps (None: the moments of emission) of roots."""


class Retries:
    """Roots that wait to be emitted again, oldest first, with their attempts; to iterate gives blocks."""

    def __init__(self, plane: Plane, c: Any, content: Content) -> None:
        self._plane, self._c, self._content = plane, c, content
        self._rows = np.zeros(0, RETRY)

    def _waiting(self) -> Any:
        return self._rows[int(self._c.retried) :]

    def __iter__(self) -> Iterator[tuple[Ints, Ints]]:
        rows = self._waiting()
        if len(rows):
            yield rows["root"].copy(), rows["attempt"].astype(np.int64)

    def append(self, roots: Ints, attempts: Ints, now: int) -> None:
        """These wait from ``now`` on (ns)."""
        waiting = self._waiting()
        if not len(waiting):
            self._c.retries_since = now
        key, value, created = self._content(roots)
        self._plane.valued |= value is not None
        new = np.zeros(len(roots), RETRY)
        new["root"], new["attempt"], new["key"] = roots, attempts, key
        new["value"] = 1 if value is None else value
        new["created"] = -1 if created is None else created
        self._hold(np.concatenate([waiting, new]))

    def clear(self) -> None:
        """Nothing waits any more."""
        self._hold(self._rows[:0])

    def _hold(self, rows: Any) -> None:
        self._rows, c = rows, self._c
        c.retries = self._plane.ffi.cast("retry *", rows.ctypes.data)
        c.n_retries, c.retried = len(rows), 0


class InFlight:
    """Roots that were emitted and are neither done nor given up: counted where there is a cap."""

    def __init__(self, c: Any, go_on: Callable[[int], None]) -> None:
        self._c, self._go_on = c, go_on
        c.most_in_flight = -1

    @property
    def most(self) -> int | None:
        """How many there may be (None: any number); no calls are made while there are so many."""
        most = int(self._c.most_in_flight)
        return None if most < 0 else most

    @most.setter
    def most(self, most: int | None) -> None:
        self._c.most_in_flight = -1 if most is None else most

    @property
    def capped(self) -> bool:
        """Whether there are so many."""
        return 0 <= self._c.most_in_flight <= self._c.in_flight

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self._c.in_flight)

    def settle(self, roots: int, moment: int) -> None:
        """So many roots were settled at ``moment`` (ns)."""
        was_capped = self.capped
        self._c.in_flight -= roots
        if was_capped and not self.capped:
            self._go_on(moment)

    def clear(self) -> None:
        """The spout has crashed: it knows of none."""
        self._c.in_flight = 0
