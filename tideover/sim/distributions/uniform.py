"""Durations spread evenly over an interval."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.draws import Bits, uniform01
from tideover.sim.units import Duration


@DISTRIBUTIONS.register("uniform")
class Uniform(Distribution):
    """Any duration from ``low`` to ``high`` is equally likely.

    >>> import numpy as np
    >>> Uniform(low=1_000, high=3_000).sample(np.array([0, 1 << 63], np.uint64)).tolist()
    [1000, 2000]
    """

    low: Annotated[Duration, Field(description="shortest duration")]
    high: Annotated[Duration, Field(description="longest duration; at least low")]

    @model_validator(mode="after")
    def _in_order(self) -> Uniform:
        if self.low > self.high:
            raise ValueError("low must not be greater than high")
        return self

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        u = uniform01(bits)
        u *= self.high - self.low
        return np.rint(u, out=u).astype(np.int64) + self.low

    @property
    def mean_ns(self) -> float:
        return (self.low + self.high) / 2
