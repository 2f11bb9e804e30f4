"""An operator from outside the package: how many different values each key has had since the beginning, put
out at the end of each window (the different visitors of each page, say); and a spout of keys and values.

What it knows is a set of (key, value). `EpochState` keeps it by the epoch in which the tuples were emitted,
until the window that ends the epoch adds it to what is known for good. It knows no strategy: whoever saves,
sends or restores it calls `copy`, and asks for the `entries` that a store has to hold. A value that comes
twice counts once, so replays do it no harm; lost state does.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field

from tideover.models.job.spouts import SPOUTS, Spout
from tideover.models.operators.base import BOLTS, Stateful
from tideover.models.operators.state import EpochState, State
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.train import Ints, Train

Pairs = set[tuple[int, int]]


class DistinctValues(EpochState):
    """The different (key, value) that have come."""

    def __init__(self, keys: int) -> None:
        super().__init__(keys)
        self._known: Pairs = set()
        """Of the windows that were put out."""

    def _nothing(self) -> Pairs:
        return set()

    def _taken_in(self, content: Pairs, train: Train) -> Pairs:
        content.update(zip(train.key.tolist(), train.column("value").tolist(), strict=True))
        return content

    def _put_out(self, contents: list[Pairs]) -> tuple[Ints, Ints]:
        self._known = self._known.union(*contents)
        counts = np.bincount(np.array([key for key, _ in self._known], np.int64), minlength=self.keys)
        keys = np.flatnonzero(counts)
        return keys, counts[keys]

    def _copied(self, content: Pairs) -> Pairs:
        return set(content)

    def _entries(self, content: Pairs) -> int:
        return len(content - self._known)

    def copy(self) -> Self:
        new = super().copy()
        new._known = self._known  # never changed, only replaced
        return new

    @property
    def entries(self) -> int:
        return super().entries + len(self._known)


@BOLTS.register("running_distinct")
class RunningDistinct(Stateful):
    """At the end of each window emits how many different values each key has had since the beginning."""

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    forgets: ClassVar[bool] = False

    def new_state(self, keys: int) -> State:
        return DistinctValues(keys)


@SPOUTS.register("visits")
class Visits(Spout):
    """One of ``visitors`` visits one of ``pages``; the page is the key, the visitor the value."""

    emits: ClassVar[tuple[str, ...]] = ("page",)
    pages: Annotated[int, Field(ge=1, le=1 << 10, description="number of different pages")] = 10
    visitors: Annotated[int, Field(ge=1, le=1 << 20, description="number of different visitors")] = 1000

    @property
    def key_count(self) -> int:
        return self.pages

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, Ints]:
        drawn = below(draws.bits(component, Purpose.CONTENT, root), self.pages * self.visitors)
        return drawn % self.pages, drawn // self.pages
