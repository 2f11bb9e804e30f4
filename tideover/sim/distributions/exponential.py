"""Exponential durations: the memoryless case."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.draws import Bits
from tideover.sim.units import MAX_DURATION, Duration

_S12 = np.uint64(12)
_ONE = np.uint64(0x3FF00000000FFFFF)
_LESS = 1 + 2.0**-33 - 2.0**-52
_ROUND = 1.5 * 2.0**52
"""Added to a float of less than 2**51, it leaves the nearest integer in the lower bits (ties to even)."""
_ROUND_BITS = np.float64(_ROUND).view(np.int64)


@DISTRIBUTIONS.register("exponential")
class Exponential(Distribution):
    """Exponential with the given mean: the service of an M/M/1 queue, the gaps of a Poisson process.

    By inversion of the upper 32 bits: -mean * log(u), u at the centre of 2**32 cells, so at most 22.9 means
    (and at most the longest duration).

    >>> import numpy as np
    >>> Exponential(mean=1_000_000).sample(np.array([1 << 63], np.uint64)).tolist()
    [693147]
    """

    mean: Annotated[Duration, Field(description="mean; the standard deviation is the same")]

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        bits >>= _S12  # read as the mantissa of a float in [1, 2): faster than to convert
        bits |= _ONE
        u = bits.view(np.float64)
        u -= _LESS  # exactly the centre of the cell
        np.log(u, out=u)
        u *= -float(self.mean)
        if self.mean >= 1 << 46:
            np.minimum(u, float(MAX_DURATION), out=u)
            return np.rint(u, out=u).astype(np.int64)
        u += _ROUND
        rounded = u.view(np.int64)
        rounded -= _ROUND_BITS
        return rounded

    @property
    def mean_ns(self) -> float:
        return float(self.mean)
