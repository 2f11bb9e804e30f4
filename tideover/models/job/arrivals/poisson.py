"""Calls of a Poisson process."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tideover.models.job.arrivals.base import ARRIVALS, Arrivals
from tideover.sim.distributions.exponential import Exponential
from tideover.sim.draws import Draws, Purpose
from tideover.sim.units import Rate


@ARRIVALS.register("poisson")
class Poisson(Arrivals):
    """Independent exponential gaps with mean 1 / ``rate``, keyed by the call's number."""

    rate: Annotated[Rate, Field(description="calls per time on average, e.g. 100/s")]

    @property
    def mean_gap_ns(self) -> float:
        return 1e9 / self.rate

    def gaps(self, task: str, draws: Draws, index: int, n: int) -> npt.NDArray[np.int64]:
        bits = draws.bits(task, Purpose.GAP, np.arange(index, index + n, dtype=np.int64))
        gaps = Exponential(mean=round(self.mean_gap_ns)).sample(bits)
        return np.maximum(gaps, 1, out=gaps)

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        gaps = self.gaps(task, draws, index, n)
        np.cumsum(gaps, out=gaps)
        gaps += last
        return gaps
