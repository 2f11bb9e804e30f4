"""Bolts that keep state, and put it out at the end of windows."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from tideover.models.operators.base import Bolt
from tideover.models.operators.window import Window


class Stateful(Bolt):
    """A bolt with state and windows. Subclasses give ``new_state``; those whose windows may slide say so
    (``slides``), and keep an `EpochState`.
    """

    stateful: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    """Whether it keeps nothing of a window that it has put out: then its state can be rebuilt from the tuples
    since.
    """
    slides: ClassVar[bool] = False
    window: Annotated[
        Window, Field(description="the window: 30 s, or {length, trigger}, or {tuples}; {length, slide}")
    ]

    @field_validator("window")
    @classmethod
    def _may_slide(cls, window: Window) -> Window:
        if (window.extent is not None or window.saved == "ids") and not cls.slides:
            raise ValueError("its windows neither slide nor go by event: it goes on with what it has put out")
        if window.gap is not None and cls.sides is not None:
            raise ValueError("it has no sessions: what it joins is in a window of time or of tuples")
        return window

    @property
    def ends(self) -> Window:
        return self.window
