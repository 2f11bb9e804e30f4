"""The task that owns the key."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from tideover.models.job.groupings.base import GROUPINGS, Grouping
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train


@GROUPINGS.register("fields")
class Fields(Grouping):
    """The key's number modulo the number of tasks: tuples with equal fields meet in one task."""

    fields: Annotated[
        tuple[str, ...], Field(min_length=1, description="fields that make the key, e.g. [word]")
    ]

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return train.key - train.key // tasks * tasks

    def owners(self, keys: int, tasks: int) -> Ints:
        return np.arange(keys, dtype=np.int64) % tasks
