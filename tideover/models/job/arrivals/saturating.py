"""A spout that never waits for something to emit."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tideover.models.job.arrivals.base import ARRIVALS, Arrivals
from tideover.sim.draws import Draws
from tideover.sim.units import Duration


@ARRIVALS.register("saturating")
class Saturating(Arrivals):
    """A call whenever the spout may make one: ``emit_cost`` after the last, or after what held it back.

    Something has to hold it back: bounded queues, or a cap on what is pending.

    >>> Saturating(emit_cost=5_000).mean_gap_ns
    5000.0
    """

    per_tuple: ClassVar[frozenset[str]] = frozenset({"emit_cost"})

    emit_cost: Annotated[Duration, Field(gt=0, description="time that a call takes")]

    @property
    def mean_gap_ns(self) -> float:
        return float(self.emit_cost)

    def gaps(self, task: str, draws: Draws, index: int, n: int) -> npt.NDArray[np.int64]:
        return np.full(n, self.emit_cost, np.int64)

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        return last + self.emit_cost * np.arange(1, n + 1, dtype=np.int64)

    def offset(self, task: str, draws: Draws) -> int:
        return 0
