"""Durations as they were measured."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from tideover.sim.distributions.alias import AliasTable
from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.distributions.law import Law
from tideover.sim.plane.library import ffi, lib
from tideover.sim.units import Duration

Weight = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


@DISTRIBUTIONS.register("empirical")
class Empirical(Distribution):
    """One of the measured ``values``, each as likely as its weight says; nothing in between.

    >>> import numpy as np
    >>> restarts = Empirical(values=(4_000, 5_000, 9_000), weights=(1, 2, 1))
    >>> restarts.mean_ns
    5750.0
    >>> sorted(set(restarts.sample(np.arange(0, 2**64, 2**60, np.uint64)).tolist()))
    [4000, 5000, 9000]
    """

    values: Annotated[
        tuple[Duration, ...], Field(min_length=1, max_length=10_000, description="the measured durations")
    ]
    weights: Annotated[
        tuple[Weight, ...] | None,
        Field(description="how much each value counts; as many as values, not all 0; default: all the same"),
    ] = None

    @model_validator(mode="after")
    def _usable(self) -> Empirical:
        if self.weights is not None:
            if len(self.weights) != len(self.values):
                raise ValueError(
                    f"{len(self.weights)} weights for {len(self.values)} values; give one for each"
                )
            if not any(self.weights):
                raise ValueError("at least one weight must be positive")
        return self

    def law(self) -> Law:
        return _law(self.values, self.weights)

    @property
    def mean_ns(self) -> float:
        return float(np.average(np.asarray(self.values, np.float64), weights=self.weights))


@lru_cache(maxsize=64)
def _law(values: tuple[int, ...], weights: tuple[float, ...] | None) -> Law:
    table = AliasTable(weights or (1.0,) * len(values))
    durations = ffi.new("int64_t[]", values)
    return Law(lib.DRAW_EMPIRICAL, kept=(table, durations), values=durations, table=table.struct[0])
