"""What the readers of a topology's output see, and when, where they get it in transactions."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

import numpy as np

from tideover.models.accounts.window_log import WindowLog
from tideover.models.operators.state import Closed
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.views import BoltView
from tideover.sim.histogram import Histogram
from tideover.sim.recorder import Recorder
from tideover.sim.train import Ints, Train
from tideover.sim.units import S


@dataclass(eq=False)
class Held:
    """What is in one transaction: windows (number, when it was put out, content), and when tuples left."""

    windows: list[tuple[int, int, Closed]] = field(default_factory=list)
    tuples: list[Ints] = field(default_factory=list)


class Readers:
    """Holds back what tasks put out (those of ``withheld``) until it is committed, and hands it on then.

    delays    from when a window or a tuple was put out until it was seen (ns)
    expired   windows that were to be committed, but the broker has aborted their transaction
    """

    def __init__(self, withheld: Container[object], windows: WindowLog, recorder: Recorder) -> None:
        self._withheld, self._windows, self._recorder = withheld, windows, recorder
        self._held: dict[tuple[BoltView, int | None], Held] = {}
        """By task and number of the transaction; None: the open one."""
        self.delays = Histogram()
        self.expired = 0

    def _open(self, task: BoltView) -> Held:
        return self._held.setdefault((task, None), Held())

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        """A task has put out a window."""
        if task in self._withheld:
            self._open(task).windows.append((number, now, closed))

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        """A task is done with tuples: they may have left."""
        if task in self._withheld and task.component.ends_roots and not task.component.window:
            self._open(task).tuples.append(train.time)

    def on_pre_committed(self, task: BoltView, number: int) -> None:
        """What it has put out is a transaction."""
        self._held[task, number] = self._held.pop((task, None))

    def on_committed(self, task: BoltView, number: int, now: int) -> None:
        """Readers see it."""
        held = self._held.pop((task, number))
        name, index = task.component.name, task.index
        for window, put_out, closed in held.windows:
            self._windows.see((name, index, window), task.replica, now, closed)
            self._recorder.note_output((name, index, window), now)
            self.delays.add(np.array([now - put_out], np.int64))
        for times in held.tuples:
            self._recorder.output.add(np.full(len(times), now, np.int64))
            self.delays.add(now - times)

    def on_aborted(self, task: BoltView, number: int | None, lost: bool) -> None:
        """They never will."""
        held = self._held.pop((task, number), Held())
        places = ((task.component.name, task.index, window) for window, _, _ in held.windows)
        self._windows.forget(places, lost)
        self.expired += len(held.windows) * lost

    def delay_figures(self) -> dict[str, float | None]:
        """The delay of visibility (s), by name of the column; None where readers have seen nothing."""
        self.delays.tally()
        mean = self.delays.mean
        if mean is None:
            return {"visible_s": None, "visible_max_s": None}
        return {"visible_s": mean / S, "visible_max_s": self.delays.max / S}
