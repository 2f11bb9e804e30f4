"""Hand on some tuples."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from tideover.models.operators.base import BOLTS, Bolt, Children, Floats
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.train import Train


@BOLTS.register("filter")
class Filter(Bolt):
    """Each tuple is handed on with probability ``keep``, always the same for the same tuple.

    >>> Filter(keep=0.5).keep
    0.5
    """

    keep: Annotated[float, Field(ge=0, le=1, description="probability that a tuple is handed on")]

    def rates(self, inputs: Floats) -> Floats:
        return inputs * self.keep

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        kept = uniform01(draws.bits(component, Purpose.SELECT, train.uid)) < self.keep
        return Children(rows=np.flatnonzero(kept), copies=kept.astype(np.int64))
