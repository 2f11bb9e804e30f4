"""Hand on every tuple as it is."""

from __future__ import annotations

from tideover.models.operators.base import BOLTS, Bolt, Children
from tideover.sim.draws import Draws
from tideover.sim.train import Train


@BOLTS.register("forward")
class Forward(Bolt):
    """One tuple in, the same out: a queue with a service time.

    >>> Forward().fan_out
    1
    """

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        return Children()
