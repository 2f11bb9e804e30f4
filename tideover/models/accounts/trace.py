"""Every tuple's times, for tests and small teaching runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tideover.models.operators.state import Closed
from tideover.models.runtime.steps import Step
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.views import BoltView, SpoutView, TaskView
from tideover.sim.faults.base import FAULTS
from tideover.sim.train import Ints, Train
from tideover.sim.units import S


class Trace:
    """Plain lists of what happened, in the order in which each task did it; times in ns.

    emitted     (spout, task, root, attempt, time)
    processed   (component, task, replica, uid, attempt, arrival, departure)
    windows     (component, task, replica, number, time, {key: sum})
    completed   (root, attempt, time): trees that the acker saw complete
    failed      (root, attempt, time): roots that timed out
    committed   (component, task, transaction, time): readers see what is in it
    destroyed   (component, task, replica, uid, time): tuples lost in a queue, or at a task that was down
    overflowed  the same for tuples that found a queue full and were dropped
    final_state {(component, task, replica): {key: sum}} at the end of the run
    steps       what the protocol did (`tideover.models.runtime.steps.Step`)
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        """``clock``: the present, ns."""
        self._clock = clock
        self.emitted: list[tuple[str, int, int, int, int]] = []
        self.processed: list[tuple[str, int, int, int, int, int, int]] = []
        self.windows: list[tuple[str, int, int, int, int, dict[int, int]]] = []
        self.completed: list[tuple[int, int, int]] = []
        self.failed: list[tuple[int, int, int]] = []
        self.committed: list[tuple[str, int, int, int]] = []
        self.destroyed: list[tuple[str, int, int, int, int]] = []
        self.overflowed: list[tuple[str, int, int, int, int]] = []
        self.final_state: dict[tuple[str, int, int], dict[int, int]] = {}
        self.steps: list[Step] = []

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """Roots left a spout task."""
        name, task = spout.component.name, spout.index
        for root, attempt, time in _rows(train.uid, train.column("attempt"), train.time):
            self.emitted.append((name, task, root, attempt, time))

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        """A task is done with tuples."""
        place = (task.component.name, task.index, task.replica)
        for uid, attempt, came, left in _rows(train.uid, train.column("attempt"), arrival, train.time):
            self.processed.append((*place, uid, attempt, came, left))

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        """A task put out a window."""
        counts = dict(zip(closed.keys.tolist(), closed.values.tolist(), strict=True))
        self.windows.append((task.component.name, task.index, task.replica, number, now, counts))

    def on_completed(self, root: Ints, attempt: Ints, emitted: Ints, time: Ints) -> None:
        """The acker saw trees complete."""
        self.completed += _rows(root, attempt, time)

    def on_committed(self, task: BoltView, number: int, now: int) -> None:
        """Readers see what is in a task's transaction."""
        self.committed.append((task.component.name, task.index, number, now))

    def on_timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        """Roots timed out."""
        now = self._clock()
        self.on_step(timed_out(now, spout, roots))
        self.failed += [(r, a, now) for r, a in _rows(roots, attempt)]

    def on_destroyed(self, task: TaskView, train: Train, times: Ints, outage: int) -> None:
        """Tuples were destroyed."""
        replica = getattr(task, "replica", 0)
        for uid, time in _rows(train.uid, times):
            self.destroyed.append((task.component.name, task.index, replica, uid, time))

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        """Tuples found a queue full."""
        place = (task.component.name, task.index, task.replica)
        self.overflowed += [(*place, uid, time) for uid, time in _rows(train.uid, train.time)]

    def on_step(self, step: Step) -> None:
        """The protocol did something."""
        self.steps.append(step)

    def end(self, component: str, task: int, replica: int, content: dict[int, int]) -> None:
        """The run is over: what a task holds."""
        self.final_state[component, task, replica] = content


def timed_out(now: int, spout: SpoutView, roots: Ints) -> Step:
    """That a spout gives up roots, as a step."""
    return Step(now, spout.name, "roots timed out", f"{len(roots)} roots")


def moment_text(moment: int) -> str:
    """A moment (ns), in words."""
    return f"{moment / S:.6f} s"


def window_text(number: int, counted: int, keys: int) -> str:
    """That a window is put out, in words."""
    return f"window {number}: {counted} counted under {keys} keys"


def struck_text(component: str, kind: str) -> str:
    """That a fault strikes, or something else that begins an outage, in words."""
    return f"{component}: {'fault ' if kind in FAULTS else ''}{kind}"


DETECTED, READY = "failure detected", "ready again"
"""What an outage's other moments are called."""


def _rows(*columns: Ints) -> Any:
    return zip(*(np.asarray(c).tolist() for c in columns), strict=True)
