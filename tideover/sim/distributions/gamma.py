"""Gamma durations: from nearly constant to more spread than exponential, by one number."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.draws import Bits, uniform01
from tideover.sim.units import MAX_DURATION, Duration


@DISTRIBUTIONS.register("gamma")
class Gamma(Distribution):
    """Gamma with the given mean, and its ``shape`` or coefficient of variation ``cv`` = 1 / sqrt(shape).

    cv = 1 is exponential, cv = 1 / sqrt(n) is the sum of n equal exponential stages (Erlang), cv > 1 is
    burstier. By inversion: the regularised incomplete gamma function (DiDonato and Morris: *Computation of
    the incomplete gamma function ratios and their inverse*, ACM TOMS 12, 1986), as scipy has it.

    >>> import numpy as np
    >>> Gamma(mean=1_000_000, cv=1.0).sample(np.array([1 << 63], np.uint64)).tolist()
    [693147]
    """

    mean: Annotated[Duration, Field(description="mean")]
    shape: Annotated[float | None, Field(ge=1e-3, le=1e6, description="shape k; give this or cv")] = None
    cv: Annotated[float | None, Field(ge=1e-3, le=30, description="standard deviation / mean")] = None

    @model_validator(mode="after")
    def _one_way(self) -> Gamma:
        if (self.shape is None) == (self.cv is None):
            raise ValueError("give either shape or cv")
        return self

    @property
    def k(self) -> float:
        """The shape, however it was given."""
        if self.shape is not None:
            return self.shape
        assert self.cv is not None
        return self.cv**-2

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        from scipy.special import gammaincinv

        x = gammaincinv(self.k, uniform01(bits))
        x *= self.mean / self.k
        np.minimum(x, float(MAX_DURATION), out=x)
        return np.rint(x, out=x).astype(np.int64)

    @property
    def mean_ns(self) -> float:
        return float(self.mean)
