"""A bolt of which only selectivity and service time are known."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from tideover.models.operators.base import BOLTS, Bolt, Children, Floats
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.train import Ints, Train


def expand(copies: Ints) -> tuple[Ints, Ints]:
    """Rows and positions of the children, if parent i has ``copies[i]`` of them.

    >>> [a.tolist() for a in expand(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    rows = np.arange(len(copies), dtype=np.int64).repeat(copies)
    starts = copies.cumsum() - copies
    position = np.arange(len(rows), dtype=np.int64)
    position -= starts.repeat(copies)
    return rows, position


@BOLTS.register("generic")
class Generic(Bolt):
    """Each tuple makes ``selectivity`` tuples on average: the whole part always, one more with the rest as
    probability.

    >>> Generic(selectivity=2.5).fan_out
    3
    """

    selectivity: Annotated[float, Field(ge=0, le=64, description="tuples out per tuple in, on average")] = 1.0

    @property
    def fan_out(self) -> int:
        return max(1, math.ceil(self.selectivity))

    def rates(self, inputs: Floats) -> Floats:
        return inputs * self.selectivity

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        whole = math.floor(self.selectivity)
        part = self.selectivity - whole
        copies = np.full(train.n, whole, np.int64)
        if part > 0:
            copies += uniform01(draws.bits(component, Purpose.SELECT, train.uid)) < part
        rows, position = expand(copies)
        return Children(rows, position, copies=copies)
