"""Any task."""

from __future__ import annotations

from tideover.models.job.groupings.base import GROUPINGS, Grouping
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.train import Ints, Train


@GROUPINGS.register("shuffle")
class Shuffle(Grouping):
    """A task drawn uniformly for each tuple."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return below(draws.bits(edge, Purpose.TARGET, train.uid), tasks)
