"""Each key once."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.operators.base import BOLTS
from tideover.models.operators.keyed_sums import KeySet
from tideover.models.operators.sessions import Sessions
from tideover.models.operators.state import State
from tideover.models.operators.stateful import Stateful


@BOLTS.register("distinct")
class Distinct(Stateful):
    """At the end of a window emits each key that has come in it, once, in order, with value 1, and clears."""

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    slides: ClassVar[bool] = True

    def new_state(self, keys: int) -> State:
        return KeySet(keys) if self.window.gap is None else Sessions(keys, self.window.gap, once=True)
