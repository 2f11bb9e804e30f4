"""The task that the emitter names."""

from __future__ import annotations

import numpy as np

from tideover.models.job.groupings.base import GROUPINGS, Grouping
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train


@GROUPINGS.register("direct")
class Direct(Grouping):
    """The emitter names the task: here the key is read as its number (modulo the number of tasks)."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return train.key - train.key // tasks * tasks

    def owners(self, keys: int, tasks: int) -> Ints:
        return np.arange(keys, dtype=np.int64) % tasks
