"""Always the same duration."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.draws import Bits
from tideover.sim.units import Duration


@DISTRIBUTIONS.register("constant")
class Constant(Distribution):
    """Always ``value``. In a scenario the value alone is enough: ``service: 0.2 ms``.

    >>> import numpy as np
    >>> Constant(value=200_000).sample(np.zeros(2, np.uint64)).tolist()
    [200000, 200000]
    """

    value: Annotated[Duration, Field(description="the duration")]

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        return np.full(len(bits), self.value, np.int64)

    @property
    def mean_ns(self) -> float:
        return float(self.value)
