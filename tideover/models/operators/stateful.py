"""Bolts that keep state, and put it out at the end of windows."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.operators.base import Bolt
from tideover.models.operators.window import Window


class Stateful(Bolt):
    """A bolt with state and windows. Subclasses give ``new_state``."""

    stateful: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    """Whether it keeps nothing of a window that it has put out: then its state can be rebuilt from the tuples
    since.
    """
    window: Annotated[
        Window, Field(description="the tumbling window: 30 s, or {length, trigger}, or {tuples}")
    ]

    @property
    def ends(self) -> Window:
        return self.window
