"""What a bolt does to a tuple, apart from the time it takes.

Tasks call it for each train that they serve; `kinds`, `window` and plugins derive from it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from tideover.models.operators.state import State
from tideover.models.operators.window import Window
from tideover.sim.draws import Draws
from tideover.sim.registry import Part, Registry
from tideover.sim.train import Ints, Train

Floats = npt.NDArray[np.float64]

BOLTS: Registry[Bolt] = Registry("bolt")


class Children(NamedTuple):
    """What a train turns into.

    rows      for each child the row of its parent, rising; None: one child a parent
    position  for each child its number among its parent's children; None: 0 each
    key       for each child its key; None: its parent's
    copies    for each parent the number of its children; None: as ``rows`` say
    """

    rows: Ints | None = None
    position: Ints | None = None
    key: Ints | None = None
    copies: Ints | None = None

    def of_each(self, parents: int) -> Ints | None:
        """How many children each of so many parents has; None: one each."""
        if self.rows is None or self.copies is not None:
            return self.copies
        return np.bincount(self.rows, minlength=parents)


class Bolt(Part):
    """A pure function from tuples to tuples (``children``); or, if ``stateful``, a state that takes tuples in
    (``new_state``) and puts something out at the end of windows (``ends``).

    Subclasses give ``children``; ``fan_out`` if one tuple can make several; ``key_count`` and ``emits`` if
    the keys change. Stateful ones are subclasses of `tideover.models.operators.base.Stateful`.
    """

    kind: ClassVar[str]
    emits: ClassVar[tuple[str, ...]] = ()
    """Fields of the output; empty: those of the input."""
    stateful: ClassVar[bool] = False
    sides: ClassVar[int | None] = None
    """How many streams it has to read, if it tells them apart; None: any number."""

    @property
    def fan_out(self) -> int:
        return 1

    def key_count(self, upstream: int) -> int:
        return upstream

    def key_names(self, upstream: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return upstream

    def rates(self, inputs: Floats) -> Floats:
        """Tuples/s out by key, from those in by key; of keys that are new nothing is known: all alike."""
        keys = self.key_count(len(inputs))
        return inputs if keys == len(inputs) else np.full(keys, inputs.sum() / keys)

    @property
    def ends(self) -> Window | None:
        """What ends its windows; None: it has no state."""
        return None

    def new_state(self, keys: int) -> State:
        """The state of a task before the first tuple; ``keys``: how many different ones can come."""
        raise NotImplementedError

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        """The children of each tuple, in order of their parents."""
        raise NotImplementedError


class Stateful(Bolt):
    """A bolt with state and windows. Subclasses give ``new_state``; those whose windows may slide say so
    (``slides``), and keep an `EpochState`.
    """

    stateful: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    """Whether it keeps nothing of windows put out: tuples since then can rebuild its state."""
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
