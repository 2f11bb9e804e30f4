"""Every tuple's times, for tests and small teaching runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.task import BoltTask, SpoutTask


class Trace:
    """Plain lists of what happened, in the order in which each task did it.

    emitted     (spout, task, root, attempt, time)
    processed_  (component, task, replica, uid, attempt, arrival, departure)
    windows     (component, task, replica, number, time, {key: sum})
    completed   (root, attempt, time): trees that the acker saw complete
    failed      (root, attempt, time): roots that timed out
    destroyed_  (component, task, replica, uid, time): tuples destroyed in a queue or at a task that was down
    notes       (time, text): what the protocol did, in words
    """

    def __init__(self) -> None:
        self.emissions: list[tuple[str, int, int, int, int]] = []
        self.tuples: list[tuple[str, int, int, int, int, int, int]] = []
        self.windows: list[tuple[str, int, int, int, int, dict[int, int]]] = []
        self.completed: list[tuple[int, int, int]] = []
        self.failed: list[tuple[int, int, int]] = []
        self.lost: list[tuple[str, int, int, int, int]] = []
        self.notes: list[tuple[int, str]] = []

    def emitted(self, spout: SpoutTask, train: Train) -> None:
        """Roots left a spout task."""
        name, task = spout.component.name, spout.task
        for root, attempt, time in _rows(train.uid, train.column("attempt"), train.time):
            self.emissions.append((name, task, root, attempt, time))

    def processed(self, task: BoltTask, train: Train, arrival: Ints) -> None:
        """A task is done with tuples."""
        place = (task.component.name, task.task, task.replica)
        for uid, attempt, came, left in _rows(train.uid, train.column("attempt"), arrival, train.time):
            self.tuples.append((*place, uid, attempt, came, left))

    def window(self, task: BoltTask, number: int, now: int, keys: Ints, sums: Ints) -> None:
        """A task emitted a window."""
        counts = dict(zip(keys.tolist(), sums.tolist(), strict=True))
        self.windows.append((task.component.name, task.task, task.replica, number, now, counts))

    def destroyed(self, task: BoltTask | SpoutTask, train: Train, times: Ints) -> None:
        """Tuples were destroyed."""
        replica = getattr(task, "replica", 0)
        for uid, time in _rows(train.uid, times):
            self.lost.append((task.component.name, task.task, replica, uid, time))

    def note(self, now: int, text: str) -> None:
        """The protocol did something."""
        self.notes.append((now, text))


def _rows(*columns: Ints) -> Any:
    return zip(*(np.asarray(c).tolist() for c in columns), strict=True)
