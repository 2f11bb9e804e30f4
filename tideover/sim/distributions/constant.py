"""Always the same duration."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from pydantic import Field

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.distributions.law import Law
from tideover.sim.plane.library import lib
from tideover.sim.units import Duration


@DISTRIBUTIONS.register("constant")
class Constant(Distribution):
    """Always ``value``. In a scenario the value alone is enough: ``service: 0.2 ms``.

    >>> import numpy as np
    >>> Constant(value=200_000).sample(np.zeros(2, np.uint64)).tolist()
    [200000, 200000]
    """

    value: Annotated[Duration, Field(description="the duration")]

    def law(self) -> Law:
        return _law(self.value)

    @property
    def mean_ns(self) -> float:
        return float(self.value)


@lru_cache(maxsize=256)
def _law(value: int) -> Law:
    return Law(lib.DRAW_CONSTANT, low=value)
