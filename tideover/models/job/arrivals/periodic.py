"""A call every so often: a pulled spout that sleeps, then emits."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.models.job.arrivals.base import ARRIVALS, Arrivals
from tideover.sim.draws import Draws
from tideover.sim.units import Duration, Rate


@ARRIVALS.register("constant")
class Periodic(Arrivals):
    """Calls at a constant distance: 1 / ``rate``, or ``pause`` + ``emit_cost``.

    Stableford's spout sleeps 10 ms and then emits, which costs 0.53 ms: about 95 tuples/s.

    >>> Periodic(pause=10_000_000, emit_cost=530_000).gap_ns
    10530000
    """

    per_tuple: ClassVar[frozenset[str]] = frozenset({"pause", "emit_cost"})

    rate: Annotated[Rate | None, Field(description="calls per time, e.g. 10/s")] = None
    pause: Annotated[Duration | None, Field(description="sleep before each call; instead of rate")] = None
    emit_cost: Annotated[Duration, Field(description="time that a call takes, added to pause")] = 0
    fixed_offset: Annotated[
        Duration | None,
        Field(description="start of the calls; default: drawn within one period, per replication"),
    ] = None

    @model_validator(mode="after")
    def _one_way(self) -> Periodic:
        if (self.rate is None) == (self.pause is None):
            raise ValueError("give either rate or pause (with emit_cost)")
        if self.gap_ns <= 0:
            raise ValueError("calls must be at least 1 ns apart")
        return self

    @property
    def gap_ns(self) -> int:
        """Distance of two calls, in nanoseconds."""
        if self.rate is not None:
            return round(1e9 / self.rate)
        assert self.pause is not None
        return self.pause + self.emit_cost

    @property
    def mean_gap_ns(self) -> float:
        return float(self.gap_ns)

    def gaps(self, task: str, draws: Draws, index: int, n: int) -> npt.NDArray[np.int64]:
        return np.full(n, self.gap_ns, np.int64)

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        return last + self.gap_ns * np.arange(1, n + 1, dtype=np.int64)

    def offset(self, task: str, draws: Draws) -> int:
        return super().offset(task, draws) if self.fixed_offset is None else self.fixed_offset
