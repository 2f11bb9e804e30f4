"""Lognormal durations: many short ones, a few very long ones."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.draws import Bits, uniform01
from tideover.sim.units import MAX_DURATION, Duration


@DISTRIBUTIONS.register("lognormal")
class Lognormal(Distribution):
    """Exp of a normal variable, given by ``mean`` and ``cv``, or by ``median`` and ``sigma`` of the log.

    sigma**2 = log(1 + cv**2), median = mean * exp(-sigma**2 / 2). By inversion, with scipy's ``ndtri``.
    Measured service and restart times often look like this (Limpert, Stahel, Abbt: *Log-normal
    distributions across the sciences*, BioScience 51, 2001).

    >>> import numpy as np
    >>> Lognormal(median=1_000_000, sigma=0.5).sample(np.array([1 << 63], np.uint64)).tolist()
    [1000000]
    >>> round(Lognormal(mean=1_000_000, cv=0.5).median_ns)
    894427
    """

    mean: Annotated[Duration | None, Field(description="mean; goes with cv")] = None
    cv: Annotated[float | None, Field(ge=0, le=30, description="standard deviation / mean")] = None
    median: Annotated[Duration | None, Field(description="median; goes with sigma")] = None
    sigma: Annotated[float | None, Field(ge=0, le=3, description="standard deviation of the logarithm")] = (
        None
    )

    @model_validator(mode="after")
    def _one_way(self) -> Lognormal:
        given = tuple(value is not None for value in (self.mean, self.cv, self.median, self.sigma))
        if given not in ((True, True, False, False), (False, False, True, True)):
            raise ValueError("give either mean and cv, or median and sigma")
        return self

    @property
    def log_sigma(self) -> float:
        """Standard deviation of the logarithm."""
        if self.sigma is not None:
            return self.sigma
        assert self.cv is not None
        return math.sqrt(math.log1p(self.cv**2))

    @property
    def median_ns(self) -> float:
        """The median, in nanoseconds."""
        if self.median is not None:
            return float(self.median)
        assert self.mean is not None
        return self.mean * math.exp(-(self.log_sigma**2) / 2)

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        from scipy.special import ndtri

        x = ndtri(uniform01(bits))
        x *= self.log_sigma
        np.exp(x, out=x)
        x *= self.median_ns
        np.minimum(x, float(MAX_DURATION), out=x)
        return np.rint(x, out=x).astype(np.int64)

    @property
    def mean_ns(self) -> float:
        if self.mean is not None:
            return float(self.mean)
        return self.median_ns * math.exp(self.log_sigma**2 / 2)
