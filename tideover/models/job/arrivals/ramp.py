"""A rate that rises or falls steadily."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from tideover.models.job.arrivals.base import ARRIVALS
from tideover.models.job.arrivals.schedule import Pieces, Scheduled, per_ns
from tideover.sim.units import Duration, Rate, S


@ARRIVALS.register("ramp")
class Ramp(Scheduled):
    """``start`` until ``begin``, then in a straight line to ``end`` over ``over``, and ``end`` from then on.

    >>> Ramp(start=10, end=20, over=60_000_000_000).mean_gap_ns
    50000000.0
    """

    start: Annotated[Rate, Field(description="rate before the ramp")]
    end: Annotated[Rate, Field(description="rate after the ramp")]
    begin: Annotated[Duration, Field(description="when the ramp begins")] = 0
    over: Annotated[Duration, Field(gt=0, description="how long the ramp takes")] = 60 * S

    @property
    def mean_gap_ns(self) -> float:
        return 1e9 / max(self.start, self.end)  # the load that it has to bear

    def pieces(self) -> Pieces:
        low, high = per_ns(self.start), per_ns(self.end)
        start = [float(self.begin), float(self.begin + self.over)]
        rate, slope = [low, high], [(high - low) / self.over, 0.0]
        if self.begin:
            start, rate, slope = [0.0, *start], [low, *rate], [0.0, *slope]
        return Pieces(np.array(start), np.array(rate), np.array(slope))
