"""Weibull durations: lifetimes that wear out, or that fail early or not at all."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.draws import Bits, uniform01
from tideover.sim.units import MAX_DURATION, Duration


@DISTRIBUTIONS.register("weibull")
class Weibull(Distribution):
    """Weibull with the given mean and ``shape``: below 1 failures come in bursts, above 1 with age.

    shape = 1 is exponential. Schroeder and Gibson (*A large-scale study of failures in high-performance
    computing systems*, DSN 2006) found 0.7 to 0.8 for the times between failures of a cluster's nodes. By
    inversion: scale * (-log(1 - u))^(1/shape), u at the centre of 2**53 cells.

    >>> import numpy as np
    >>> Weibull(mean=1_000_000, shape=1.0).sample(np.array([1 << 63], np.uint64)).tolist()
    [693147]
    """

    mean: Annotated[Duration, Field(description="mean")]
    shape: Annotated[float, Field(ge=0.2, le=100, description="shape k; 1 is exponential")]

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        x = (-np.log1p(-uniform01(bits))) ** (1 / self.shape)
        x *= self.mean / math.gamma(1 + 1 / self.shape)
        np.minimum(x, float(MAX_DURATION), out=x)
        return np.rint(x, out=x).astype(np.int64)

    @property
    def mean_ns(self) -> float:
        return float(self.mean)
