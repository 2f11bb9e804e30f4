"""The durable log between producers and a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tideover.models.job.tree import effects_of
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.sim.train import Ints, Train, merge

Content = dict[BoltTask, Train]
"""What a batch reads, by the task that reads it."""


@dataclass
class Log:
    """What spouts have sent and no batch has taken, by the task that is to read it, in order of arrival."""

    waiting: dict[BoltTask, list[Train]] = field(default_factory=dict)
    kept: dict[BoltTask, list[Train]] = field(default_factory=dict)
    size: int = 0
    """Rows that wait, or are kept."""

    def append(self, task: BoltTask, train: Train) -> None:
        """Arrivals of one channel; those of one instant come in the order of their channels."""
        self.waiting.setdefault(task, []).append(train)
        self.size += train.n

    def take(self) -> Content:
        """Everything that waits, in order of time."""
        taken = {task: merge(trains) for task, trains in sorted(self.waiting.items(), key=_place)}
        self.waiting = {}
        self.size -= sum(train.n for train in taken.values())
        return taken

    def keep(self, content: Content) -> None:
        """A batch has read this, but it may be read again."""
        for task, train in content.items():
            self.kept.setdefault(task, []).append(train)
            self.size += train.n

    def trim(self, epoch: int) -> None:
        """What belongs to windows before ``epoch`` will not be read again."""
        for task, trains in self.kept.items():
            later = [part for part in (since(train, epoch) for train in trains) if part.n]
            self.size -= sum(train.n for train in trains) - sum(train.n for train in later)
            self.kept[task] = later

    def rewind(self) -> None:
        """What was kept is to be read again, before what waits."""
        for task, trains in self.kept.items():
            if trains:
                self.waiting[task] = trains + self.waiting.get(task, [])
        self.kept = {}

    def put_back(self, content: Content) -> None:
        """What a batch had taken, ahead of what has come since."""
        for task, train in content.items():
            self.waiting.setdefault(task, []).insert(0, train)
            self.size += train.n


def since(train: Train, epoch: int) -> Train:
    """The tuples of this epoch and later ones, and the markers that end them."""
    mark = train.column("mark")
    return train.pick(np.where(mark == 0, train.column("epoch") >= epoch, mark > epoch))


def effects_of_read(job: Job, read: Iterable[tuple[BoltTask, Train]]) -> dict[str, Ints]:
    """Uids of the effects that what tasks read in a log has at the ends of the topology, by component."""
    at: dict[str, list[Train]] = {c.name: [] for c in job.topology.components}
    for task, train in read:
        if task.component.anchored:
            at[task.component.name].append(without_markers(train))
    return effects_of(job.topology, job.draws, at)


def _place(item: tuple[BoltTask, list[Train]]) -> int:
    return item[0].number
