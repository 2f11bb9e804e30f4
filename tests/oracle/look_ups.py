"""State that lies in a store: which entries a task has at hand, and what it takes to look up the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tideover.sim.draws import Purpose, below

if TYPE_CHECKING:
    from .layout import Datum, Layout


@dataclass
class AtHand:
    """The entries of one task's state that need not be looked up."""

    fresh: set[int] = field(default_factory=set)  # changed since the last prepare
    prepared: set[int] = field(default_factory=set)  # in the transaction that is not committed yet
    accesses: Iterator[bool] = field(
        default_factory=lambda: iter(())
    )  # of the tuple in service, those to come: not at hand?

    asks: bool = False  # when it has done what it does now it is at the store

    def begin(self, layout: Layout, component: str, datum: Datum) -> None:
        """A tuple is given service."""
        state = layout.config[component].state
        index = datum.uid * state.accesses + np.arange(state.accesses, dtype=np.int64)
        bits = layout.draws.bits(component, Purpose.ACCESS, index)
        missing = []
        for entry in below(bits, state.entries).tolist():
            missing.append(entry not in self.fresh and entry not in self.prepared)
            self.fresh.add(entry)
        self.accesses = iter(missing)

    def prepare(self) -> int:
        """Returns how many entries are in the transaction that begins."""
        self.prepared, self.fresh = self.fresh, set()
        return len(self.prepared)

    def commit(self) -> None:
        """What is in it is at hand no more."""
        self.prepared = set()

    def forget(self) -> None:
        """Nothing is at hand."""
        self.fresh, self.prepared = set(), set()
