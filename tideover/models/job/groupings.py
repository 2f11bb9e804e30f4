"""Groupings: which task of the receiving component gets a tuple. One class a kind.

Outlets ask those that the data plane does not know (`runtime/channels.py`), advice all for their owners.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.registry import Part, Registry
from tideover.sim.train import Ints, Train

GROUPINGS: Registry[Grouping] = Registry("grouping")


class Grouping(Part):
    """How a stream is spread over the tasks of its receiver. Subclasses give ``targets``."""

    kind: ClassVar[str]
    copies: ClassVar[bool] = False
    """Every task gets every tuple (grouping `all`); ``targets`` is not asked then."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        """The receiving task of each tuple, in [0, tasks); a retry goes where the first attempt went."""
        raise NotImplementedError

    def owners(self, keys: int, tasks: int) -> Ints | None:
        """The task that gets the tuples with key 0, 1, … below ``keys``; None: the key does not decide."""
        return None


class ByKey(Grouping):
    """The key's number modulo the number of tasks."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return train.key - train.key // tasks * tasks

    def owners(self, keys: int, tasks: int) -> Ints:
        return np.arange(keys, dtype=np.int64) % tasks


@GROUPINGS.register("direct")
class Direct(ByKey):
    """The emitter names the task: here the key is read as its number (modulo the number of tasks)."""


@GROUPINGS.register("all")
class All(Grouping):
    """A copy to each task; each copy is a tuple of its own in the tree."""

    copies: ClassVar[bool] = True


@GROUPINGS.register("fields")
class Fields(ByKey):
    """The key's number modulo the number of tasks: tuples with equal fields meet in one task."""

    fields: Annotated[
        tuple[str, ...], Field(min_length=1, description="fields that make the key, e.g. [word]")
    ]


@GROUPINGS.register("shuffle")
class Shuffle(Grouping):
    """A task drawn uniformly for each tuple."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return below(draws.bits(edge, Purpose.TARGET, train.uid), tasks)


@GROUPINGS.register("global")
class Global(Grouping):
    """Everything to the task with the lowest number."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return np.zeros(train.n, np.int64)

    def owners(self, keys: int, tasks: int) -> Ints:
        return np.zeros(keys, np.int64)
