"""State backends: where a task keeps its state, and what it takes to look something up there."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.sim.registry import Part, Registry
from tideover.sim.units import Duration, Size

BACKENDS: Registry[Backend] = Registry("state backend")


class Backend(Part):
    """Where a task of a bolt keeps its state: so many entries, of which each tuple reads and writes some.

    Which ones is drawn, all alike. What the entries hold is not simulated, only what they take: the effects
    of tuples are those of the bolt.
    """

    kind: ClassVar[str]

    entries: Annotated[int, Field(ge=1, le=2**30, description="entries of the state of one task")] = 1024
    entry_size: Annotated[Size, Field(description="bytes of an entry, in a store or on its way")] = 64
    accesses: Annotated[
        int, Field(ge=0, le=10**6, description="entries that each tuple looks up and changes")
    ] = 1
    access_cost: Annotated[Duration, Field(description="time that one access takes the task")] = 0

    def to_write(self, tuples: int) -> int:
        """Entries that a snapshot has to write when the task has worked on so many tuples since an earlier
        one, which is in the store.
        """
        return self.entries

    def changed(self, tuples: int) -> int:
        """Entries that so many tuples change, in the mean: n accesses to E entries, all alike, leave each
        untouched with probability (1 - 1/E)^n.
        """
        return round(self.entries * (1 - (1 - 1 / self.entries) ** (tuples * self.accesses)))
