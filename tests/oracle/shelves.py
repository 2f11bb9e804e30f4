"""What a bolt's `state` adds to what a store gets of a task, and gives back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


@dataclass
class Shelf:
    """Of one task."""

    entries: int = 0
    entry_size: int = 0
    incremental: bool = False
    accesses: int = 0
    tuples: int = 0  # that the task has served
    base: int | None = None  # of them when it was as it is in the store; None: nothing is there

    @classmethod
    def of(cls, world: World, task: Task) -> Shelf:
        """As the scenario says."""
        state = world.layout.config[task.component].state
        if state is None:
            return cls()
        return cls(state.entries, state.entry_size, getattr(state, "incremental", False), state.accesses)

    def changed(self) -> int:
        """Entries that go into a snapshot taken now."""
        if self.base is None or not self.incremental:
            return self.entries
        return self.changed_by(self.tuples - self.base)

    def changed_by(self, tuples: int) -> int:
        """Entries that so many tuples change."""
        if not self.entries:
            return 0
        untouched = Fraction(self.entries - 1, self.entries) ** (tuples * self.accesses)
        return round(self.entries * (1 - untouched))

    def stored(self) -> int:
        """Entries that are there to be read."""
        return 0 if self.base is None else self.entries

    def restored(self) -> None:
        """As in the store again."""
        if self.base is not None:
            self.base = self.tuples
