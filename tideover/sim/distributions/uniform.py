"""Durations spread evenly over an interval."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from pydantic import Field, model_validator

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.distributions.law import Law
from tideover.sim.plane.library import lib
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

    def law(self) -> Law:
        return _law(self.low, self.high)

    @property
    def mean_ns(self) -> float:
        return (self.low + self.high) / 2


@lru_cache(maxsize=256)
def _law(low: int, high: int) -> Law:
    return Law(lib.DRAW_UNIFORM, low=low, spread=high - low)
