"""What tasks read in a log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tideover.models.runtime.bolt_task import BoltTask
from tideover.sim.plane.plane import Plane, Rows
from tideover.sim.train import Train


class Records:
    """What one task reads, in order of arrival, end markers among it.

    n       records
    train   the tuples among them
    """

    def __init__(self, plane: Plane, rows: Rows) -> None:
        self._plane, self._rows = plane, rows
        self.n = len(rows)

    @cached_property
    def tuples(self) -> int:
        """How many are no end markers."""
        return self.n - int(np.count_nonzero(self._rows["mark"]))

    @cached_property
    def train(self) -> Train:
        return self._plane.train(self._rows[self._rows["mark"] == 0])

    def and_then(self, others: Sequence[Records]) -> Records:
        """These, and behind them what has come later."""
        return Records(self._plane, np.concatenate([self._rows, *(other._rows for other in others)]))

    def since(self, epoch: int) -> Records:
        """The tuples of this epoch and later ones, and the markers that end them."""
        mark = self._rows["mark"]
        return Records(
            self._plane, self._rows[np.where(mark == 0, self._rows["epoch"] >= epoch, mark > epoch)]
        )

    def work_off(self, task: BoltTask) -> None:
        """Let ``task`` work them off now."""
        task.gate.work_off(self._rows)
