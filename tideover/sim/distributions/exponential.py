"""Exponential durations: the memoryless case."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from pydantic import Field

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.distributions.law import Law
from tideover.sim.plane.library import lib
from tideover.sim.units import Duration


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

    def law(self) -> Law:
        return _law(self.mean)

    @property
    def mean_ns(self) -> float:
        return float(self.mean)


@lru_cache(maxsize=256)
def _law(mean: int) -> Law:
    return Law(lib.DRAW_EXPONENTIAL, mean=mean)
