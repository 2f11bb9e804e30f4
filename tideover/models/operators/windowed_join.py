"""Joins of two streams over windows."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.operators.base import BOLTS
from tideover.models.operators.keyed_pairs import KeyedPairs
from tideover.models.operators.state import State
from tideover.models.operators.stateful import Stateful


@BOLTS.register("windowed_join")
class WindowedJoin(Stateful):
    """Joins the two streams that it reads by key: at the end of a window emits each key that both have in it,
    in order, with the number of pairs (of tuples with values: the sum of the products), and clears.

    One tuple stands for all pairs of its key.
    """

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    slides: ClassVar[bool] = True
    sides: ClassVar[int | None] = 2

    def new_state(self, keys: int) -> State:
        return KeyedPairs(keys)
