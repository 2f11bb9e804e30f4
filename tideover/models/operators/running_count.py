"""Counts that never end."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.operators.base import BOLTS
from tideover.models.operators.keyed_sums import RunningSums
from tideover.models.operators.state import State
from tideover.models.operators.stateful import Stateful


@BOLTS.register("running_count")
class RunningCount(Stateful):
    """Adds up the tuples' values by key from the beginning; at the end of each window emits all sums as they
    are by then, in order of key, and goes on with them.
    """

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    forgets: ClassVar[bool] = False

    def new_state(self, keys: int) -> State:
        return RunningSums(keys)
