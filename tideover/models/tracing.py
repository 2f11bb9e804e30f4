"""Every tuple's times, for tests and small teaching runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.task import BoltTask, SpoutTask


class Trace:
    """Plain lists of what happened, in the order in which each task did it; times in ns.

    emitted     (spout, task, root, attempt, time)
    processed   (component, task, replica, uid, attempt, arrival, departure)
    windows     (component, task, replica, number, time, {key: sum})
    completed   (root, attempt, time): trees that the acker saw complete
    failed      (root, attempt, time): roots that timed out
    destroyed   (component, task, replica, uid, time): tuples lost in a queue, or at a task that was down
    final_state {(component, task, replica): {key: sum}} at the end of the run
    notes       (time, text): what the protocol did, in words
    """

    def __init__(self) -> None:
        self.emitted: list[tuple[str, int, int, int, int]] = []
        self.processed: list[tuple[str, int, int, int, int, int, int]] = []
        self.windows: list[tuple[str, int, int, int, int, dict[int, int]]] = []
        self.completed: list[tuple[int, int, int]] = []
        self.failed: list[tuple[int, int, int]] = []
        self.destroyed: list[tuple[str, int, int, int, int]] = []
        self.final_state: dict[tuple[str, int, int], dict[int, int]] = {}
        self.notes: list[tuple[int, str]] = []

    def emit(self, spout: SpoutTask, train: Train) -> None:
        """Roots left a spout task."""
        name, task = spout.component.name, spout.task
        for root, attempt, time in _rows(train.uid, train.column("attempt"), train.time):
            self.emitted.append((name, task, root, attempt, time))

    def process(self, task: BoltTask, train: Train, arrival: Ints) -> None:
        """A task is done with tuples."""
        place = (task.component.name, task.task, task.replica)
        for uid, attempt, came, left in _rows(train.uid, train.column("attempt"), arrival, train.time):
            self.processed.append((*place, uid, attempt, came, left))

    def window(self, task: BoltTask, number: int, now: int, keys: Ints, sums: Ints) -> None:
        """A task emitted a window."""
        counts = dict(zip(keys.tolist(), sums.tolist(), strict=True))
        self.windows.append((task.component.name, task.task, task.replica, number, now, counts))

    def complete(self, root: Ints, attempt: Ints, time: Ints) -> None:
        """The acker saw trees complete."""
        self.completed += _rows(root, attempt, time)

    def fail(self, root: Ints, attempt: Ints, now: int) -> None:
        """Roots timed out."""
        self.failed += [(r, a, now) for r, a in _rows(root, attempt)]

    def destroy(self, task: BoltTask | SpoutTask, train: Train, times: Ints) -> None:
        """Tuples were destroyed."""
        replica = getattr(task, "replica", 0)
        for uid, time in _rows(train.uid, times):
            self.destroyed.append((task.component.name, task.task, replica, uid, time))

    def end(self, task: BoltTask) -> None:
        """The run is over: what ``task`` holds."""
        if task.counts is not None:
            self.final_state[task.component.name, task.task, task.replica] = task.counts.total()

    def note(self, now: int, text: str) -> None:
        """The protocol did something."""
        self.notes.append((now, text))


def _rows(*columns: Ints) -> Any:
    return zip(*(np.asarray(c).tolist() for c in columns), strict=True)
