"""The durable log between producers and a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tideover.models.job.tree import effects_of
from tideover.models.mechanisms.batches.records import Records
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.sim.train import Ints, Train

Content = dict[BoltTask, Records]
"""What a batch reads, by the task that reads it."""


@dataclass
class Log:
    """What spouts have sent and no batch has taken, by the task that is to read it, in order of arrival."""

    waiting: dict[BoltTask, list[Records]] = field(default_factory=dict)
    kept: dict[BoltTask, list[Records]] = field(default_factory=dict)
    size: int = 0
    """Records that wait, or are kept."""

    def append(self, task: BoltTask, records: Records) -> None:
        """What has arrived; what comes over one channel at one instant is before what another brings then."""
        self.waiting.setdefault(task, []).append(records)
        self.size += records.n

    def take(self) -> Content:
        """Everything that waits, in order of time."""
        waiting, self.waiting = sorted(self.waiting.items(), key=_place), {}
        taken = {
            task: parts[0].and_then(parts[1:]) if len(parts) > 1 else parts[0] for task, parts in waiting
        }
        self.size -= sum(records.n for records in taken.values())
        return taken

    def keep(self, content: Content) -> None:
        """A batch has read this, but it may be read again."""
        for task, records in content.items():
            self.kept.setdefault(task, []).append(records)
            self.size += records.n

    def trim(self, epoch: int) -> None:
        """What belongs to windows before ``epoch`` will not be read again."""
        for task, parts in self.kept.items():
            later = [part for part in (records.since(epoch) for records in parts) if part.n]
            self.size -= sum(records.n for records in parts) - sum(records.n for records in later)
            self.kept[task] = later

    def rewind(self) -> None:
        """What was kept is to be read again, before what waits."""
        for task, parts in self.kept.items():
            if parts:
                self.waiting[task] = parts + self.waiting.get(task, [])
        self.kept = {}

    def put_back(self, content: Content) -> None:
        """What a batch had taken, ahead of what has come since."""
        for task, records in content.items():
            self.waiting.setdefault(task, []).insert(0, records)
            self.size += records.n


def effects_of_read(job: Job, read: Iterable[tuple[BoltTask, Train]]) -> dict[str, Ints]:
    """Uids of the effects that what tasks read in a log has at the ends of the topology, by component."""
    at: dict[str, list[Train]] = {c.name: [] for c in job.topology.components}
    for task, train in read:
        if task.component.anchored:
            at[task.component.name].append(without_markers(train))
    return effects_of(job.topology, job.draws, at)


def _place(item: tuple[BoltTask, list[Records]]) -> int:
    return item[0].number
