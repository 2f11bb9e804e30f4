"""A job that goes back to its snapshots: what can be seen of it meanwhile, by ledger and measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tideover.models.snapshots.coordinator import Coordinator
from tideover.models.snapshots.member import Member
from tideover.models.strategies.base import NOTHING, Protocol
from tideover.models.task import BoltTask
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.topology import Component
    from tideover.models.windows import Held


class Job(Protocol):
    """Tasks that fail together, go back to a snapshot together, and read their logs again from there."""

    coordinator: Coordinator
    members: dict[BoltTask, Member]
    outage: Outage | None = None
    """The newest that has stopped the job."""
    cut_short: frozenset[int] = frozenset()
    """Numbers of the outages that a newer one has overtaken before all was replayed."""

    def stopped_by(self, outage: Outage) -> None:
        """The job stops; the snapshot under way, if there is one, is interrupted."""
        self.cut_short |= {old.number for old in self.world.watched if old is not outage}
        self.outage = outage
        self.coordinator.stop()

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        if task.component.anchored:
            self.members[task].window_emitted(held)
        return 0

    def moved(self, now: int) -> None:
        kept = sum(member.kept for member in self.members.values())
        self.world.peak_buffered = max(self.world.peak_buffered, kept)

    def copies(self) -> Ints:
        read = [roots for member in self.members.values() for roots in member.copies()]
        return np.concatenate([NOTHING, *read])

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        return self.coordinator.kept_effects()

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        if task.fault != outage or not task.component.ends_roots:
            return None
        again: np.ndarray = train.born <= self.world.outages[outage].failed_at
        return again

    def settled(self, outage: Outage) -> bool:
        if outage is not self.outage:
            return outage.number not in self.cut_short
        if not all(task.available for task in self.members):
            return False
        waiting = (train for trains in self.world.on_the_way().values() for train in trains)
        return not any((train.born <= outage.failed_at).any() for train in waiting)
