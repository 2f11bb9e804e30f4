"""Exponential durations: the memoryless case."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.draws import Bits
from tideover.sim.units import DAY, MAX_DURATION, Duration

_S32 = np.uint64(32)

MAX_MEAN = MAX_DURATION // 23
"""So that no draw is longer than the longest duration."""


@DISTRIBUTIONS.register("exponential")
class Exponential(Distribution):
    """Exponential with the given mean: the service of an M/M/1 queue, the gaps of a Poisson process.

    By inversion of the upper 32 bits: -mean * log(u), u at the centre of 2**32 cells, so at most 22.9 means.

    >>> import numpy as np
    >>> Exponential(mean=1_000_000).sample(np.array([1 << 63], np.uint64)).tolist()
    [693147]
    """

    mean: Annotated[Duration, Field(description="mean; the standard deviation is the same")]

    @field_validator("mean")
    @classmethod
    def _fits(cls, mean: int) -> int:
        if mean > MAX_MEAN:
            raise ValueError(f"a mean must be at most {MAX_MEAN // DAY} d")
        return mean

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        bits >>= _S32
        u = bits.astype(np.float64)
        u += 0.5
        u *= 2.0**-32
        np.log(u, out=u)
        u *= -float(self.mean)
        return np.rint(u, out=u).astype(np.int64)

    @property
    def mean_ns(self) -> float:
        return float(self.mean)
