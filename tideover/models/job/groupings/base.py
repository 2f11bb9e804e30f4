"""Which task of the receiving component gets a tuple."""

from __future__ import annotations

from typing import ClassVar

from tideover.sim.draws import Draws
from tideover.sim.registry import Part, Registry
from tideover.sim.train import Ints, Train

GROUPINGS: Registry[Grouping] = Registry("grouping")


class Grouping(Part):
    """How a stream is spread over the tasks of its receiver. Subclasses give ``targets``."""

    kind: ClassVar[str]
    copies: ClassVar[bool] = False
    """Every task gets every tuple (grouping `all`); ``targets`` is not asked then."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        """The receiving task of each tuple, in [0, tasks). Ignores the attempt: a retry goes where the
        first went.
        """
        raise NotImplementedError

    def owners(self, keys: int, tasks: int) -> Ints | None:
        """The task that gets the tuples with key 0, 1, … below ``keys``; None: the key does not decide."""
        return None
