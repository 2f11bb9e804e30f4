"""Counts over tumbling windows."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.operators.base import BOLTS
from tideover.models.operators.keyed_sums import KeyedSums
from tideover.models.operators.sessions import Sessions
from tideover.models.operators.state import State
from tideover.models.operators.stateful import Stateful


@BOLTS.register("windowed_count")
class WindowedCount(Stateful):
    """Adds up the tuples' values by key; at the end of a window emits all sums, in order of key, and clears.

    >>> from tideover.models.operators.window import Window
    >>> WindowedCount(window=Window(length=30_000_000_000)).stateful
    True
    """

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    slides: ClassVar[bool] = True

    def new_state(self, keys: int) -> State:
        return KeyedSums(keys) if self.window.gap is None else Sessions(keys, self.window.gap)
