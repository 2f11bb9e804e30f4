"""Bursts at regular distances."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from tideover.models.job.arrivals.base import ARRIVALS
from tideover.models.job.arrivals.schedule import Pieces, Scheduled, per_ns
from tideover.sim.units import Duration, Rate, S


@ARRIVALS.register("burst")
class Burst(Scheduled):
    """``rate``, but ``peak`` for the last ``length`` of every ``every``.

    >>> round(1e9 / Burst(rate=10, peak=100, length=5_000_000_000, every=50_000_000_000).mean_gap_ns)
    19
    """

    rate: Annotated[Rate, Field(description="rate between the bursts")]
    peak: Annotated[Rate, Field(description="rate in a burst")]
    length: Annotated[Duration, Field(gt=0, description="length of a burst")]
    every: Annotated[Duration, Field(gt=0, description="distance of two bursts")] = 60 * S

    @model_validator(mode="after")
    def _fits(self) -> Burst:
        if self.length >= self.every:
            raise ValueError("length of a burst must be shorter than the distance of two (every)")
        return self

    @property
    def mean_gap_ns(self) -> float:
        in_bursts = self.length / self.every
        return 1e9 / (self.rate * (1 - in_bursts) + self.peak * in_bursts)

    def pieces(self) -> Pieces:
        start = np.array([0.0, float(self.every - self.length)])
        return Pieces(start, np.array([per_ns(self.rate), per_ns(self.peak)]), np.zeros(2), float(self.every))
