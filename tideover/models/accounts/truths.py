"""What windows hold where nothing fails: found once for all runs whose spouts emit the same roots.

Under another strategy, or without its failures, a run often emits what the last one did; then what its
windows should hold is known already. It is kept for the next runs in this process.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from tideover.models.accounts.window_log import Place, Sums, WindowLog
from tideover.models.runtime.windows import REMEMBERED
from tideover.sim.train import Train, join

KEPT_BYTES = 1 << 26
"""Most memory for one truth, and for all that are kept."""

_COLUMNS = ("time", "uid", "created", "key")
_kept: OrderedDict[str, Truth] = OrderedDict()


class Truth:
    """What was emitted, and the windows of a job under which nothing fails, to the end of a run."""

    def __init__(self, spouts: int) -> None:
        self._parts: list[list[Train]] = [[] for _ in range(spouts)]
        self._open: dict[Place, Sums] = {}
        self._windows = WindowLog()
        self.size = 0
        """Bytes."""

    def emitted(self, spout: int, train: Train) -> bool:
        """Note what a spout task has emitted; returns whether the truth can be kept still."""
        self._parts[spout].append(train)
        self.size += train.n * 8 * len(_COLUMNS)
        return train.plain and self.size <= KEPT_BYTES

    def put_out(self, windows: WindowLog) -> None:
        """Note the windows that have not been compared yet."""
        self._open |= windows.open

    def keep(self, key: str, windows: WindowLog) -> None:
        """The run is over: keep it as the newest; the oldest go if there are too many."""
        self.put_out(windows)
        self.size += sum(keys.nbytes + sums.nbytes for keys, sums in self._open.values())
        if self.size > KEPT_BYTES or len(self._open) > REMEMBERED:
            return
        self._parts = [[join(parts)] if parts else [] for parts in self._parts]
        self._windows = windows.copy(self._open)
        _kept[key] = self
        while sum(truth.size for truth in _kept.values()) > KEPT_BYTES:
            _kept.popitem(last=False)

    def of_spout(self, spout: int, begin: int, end: int | None = None) -> list[Train]:
        """The roots from ``begin`` to ``end`` that a spout task has emitted, as one train; none if it has
        not emitted so many.
        """
        return [part for whole in self._parts[spout] if (part := whole.pick(slice(begin, end))).n]

    def windows(self) -> WindowLog:
        """All windows up to the end."""
        return self._windows.copy(self._open)


def known(key: str) -> Truth | None:
    """The truth that is kept by this name."""
    if key in _kept:
        _kept.move_to_end(key)
    return _kept.get(key)


def forget() -> None:
    """Keep none for the next runs."""
    _kept.clear()


def same(a: Train, b: Train) -> bool:
    """Whether two plain trains are the same."""
    return b.plain and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in _COLUMNS)
