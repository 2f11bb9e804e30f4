"""Copies of one task's state besides its changelog: on its disk, and with standbys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .clock import Rank, control

if TYPE_CHECKING:
    from .changelogs import Changelogs
    from .tasks import Task

SPARED = ("crash_task", "crash_worker", "false_detection", "reassigned")
"""What leaves disks as they are."""


class Batch(NamedTuple):
    """Changes that go into a changelog together."""

    number: int
    entries: int
    size: int


@dataclass
class Standby:
    """One that follows a changelog."""

    done: int | None = 0  # when it has worked on all that is there; None: it has not read it yet
    waiting: int = 0  # entries that have come since it began to read


class Copies:
    """Of one task."""

    def __init__(self, protocol: Changelogs, task: Task) -> None:
        self.protocol, self.world, self.params, self.task = protocol, protocol.world, protocol.params, task
        self.tail: list[Batch] = []  # not on disk
        self.standbys = [Standby() for _ in range(self.params.standby_replicas)]
        self.disk: int | None = None  # of which host is as it was
        self.restored()

    @property
    def host(self) -> int:
        return self.world.layout.host[self.task.physical]

    def add(self, batch: Batch) -> None:
        """It is in the changelog."""
        self.tail.append(batch)
        for standby in self.standbys:
            self.world.record.control_bytes += batch.size
            if standby.done is None:
                standby.waiting += batch.entries
            else:
                begin = max(self.world.clock.now, standby.done)
                standby.done = begin + batch.entries * self.params.restore_cost

    def committed(self, batch: Batch) -> None:
        self.tail = [each for each in self.tail if each.number > batch.number]

    def failed(self, kind: str) -> None:
        if kind not in SPARED:
            self.disk = None

    def restored(self) -> None:
        self.tail = []
        self.disk = self.host if self.params.local_state else None

    def read(self, entries: int, size: int) -> int:
        """The task asks for its state, of which the changelog has so much; when it has it."""
        now, cost, store = self.world.clock.now, self.params.restore_cost, self.protocol.store
        known = [standby.done for standby in self.standbys if standby.done is not None]
        if self.disk == self.host:
            entries, size = sum(each.entries for each in self.tail), sum(each.size for each in self.tail)
        elif known:
            new = Standby(None)
            used = next(standby for standby in self.standbys if standby.done == min(known))
            self.standbys = [new if each is used else each for each in self.standbys]

            def has_read() -> None:
                new.done = self.world.clock.now + (entries + new.waiting) * cost

            end = store.request(size, self.host, False)
            self.world.clock.at(end, control(Rank.RESTORE, self.task.rank), has_read)
            return max(now, min(known)) + self.params.restore_time
        return store.request(size, self.host, False) + self.params.restore_time + entries * cost
