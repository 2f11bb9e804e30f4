"""The durable log between producers and a query."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tideover.models.task import BoltTask
from tideover.sim.train import Train, merge

Content = dict[BoltTask, Train]
"""What a batch reads, by the task that reads it."""


@dataclass
class Batch:
    """One batch. ``logged``: its range is durable; ``visible``: the sink has its results, ``shown_at``: since
    when (ns).
    """

    number: int
    content: Content
    logged: bool = False
    visible: bool = False
    shown_at: int | None = None

    @property
    def tuples(self) -> int:
        """What it reads, without end markers."""
        trains = self.content.values()
        return sum(t.n if t.mark is None else int(np.count_nonzero(t.mark == 0)) for t in trains)


@dataclass
class Log:
    """What spouts have sent and no batch has taken, by the task that is to read it, in order of arrival."""

    waiting: dict[BoltTask, list[Train]] = field(default_factory=dict)
    size: int = 0
    """Rows that wait."""

    def append(self, task: BoltTask, train: Train) -> None:
        """Arrivals of one channel; those of one instant come in the order of their channels."""
        self.waiting.setdefault(task, []).append(train)
        self.size += train.n

    def take(self) -> Content:
        """Everything that waits, in order of time."""
        taken = {task: merge(trains) for task, trains in sorted(self.waiting.items(), key=_place)}
        self.waiting, self.size = {}, 0
        return taken

    def put_back(self, content: Content) -> None:
        """What a batch had taken, ahead of what has come since."""
        for task, train in content.items():
            self.waiting.setdefault(task, []).insert(0, train)
            self.size += train.n


def _place(item: tuple[BoltTask, list[Train]]) -> int:
    return item[0].number
