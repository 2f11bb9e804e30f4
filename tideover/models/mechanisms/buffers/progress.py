"""How far tasks are with what they get: what of it is done, and need not be kept any more upstream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers.recovery import UpstreamBuffers
from tideover.models.mechanisms.duplicate_filter import ReplayFilter, Seen
from tideover.models.mechanisms.standbys import Standby
from tideover.models.operators.state import Effects
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import BoltView, TaskView
from tideover.models.runtime.wire import Wire
from tideover.sim.plane.plane import CHANNEL, NUMBER
from tideover.sim.train import Ints, Train


class Mark(NamedTuple):
    """Where a task was at some moment.

    positions   by input channel: nothing up to this number was open
    epoch       newest end marker that it had handed on
    sent        by output channel: newest number
    """

    positions: dict[int, int]
    epoch: int
    sent: dict[Wire, int]


@dataclass(eq=False)
class _Task:
    """What is known of one task.

    data      first number of a tuple that has not left, by input channel and epoch (by event: pane)
    markers   number of an end marker that was not handed on, by input channel and window
    marks     those of which not everything is done downstream, oldest first
    told      the newest of those of which everything is
    windows   number of the last window that a count of tuples has ended, and
    seen      what it had processed, when a tick or a count of tuples ended a window last
    """

    seen: Seen
    data: dict[tuple[int, int], int] = field(default_factory=dict)
    markers: dict[tuple[int, int], int] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    told: Mark = field(default_factory=lambda: Mark({}, 0, {}))
    windows: int = 0


class Progress(Mechanism):
    """Knows of every bolt task which of its messages are *open*: a tuple in a state until it leaves with a
    window, an end marker until it is handed on. What is not open is *done* when all that was sent by then is
    done at those who got it.

    J.-H. Hwang et al., ICDE 2005, section 4.2: acks of level 1, which go from hop to hop.
    """

    def __init__(self, job: Job, buffers: UpstreamBuffers, seen: ReplayFilter) -> None:
        super().__init__(job)
        self._buffers, self._filter = buffers, seen
        self._of: dict[TaskView, _Task] = {task: _Task(Seen(task.component.paths)) for task in job.bolt_tasks}
        for task in job.bolt_tasks:
            task.tell_numbers(self.passed)

    def told(self, task: BoltView) -> dict[int, int]:
        """By input channel, up to which number others know that everything is done."""
        return self._of[task].told.positions

    def standby(self, task: TaskView) -> Standby:
        """What is known of a task that fails, which begins anew from there: numbers, and no state."""
        own = self._of[task]
        own.data, own.markers, own.marks = {}, {}, []
        state = SavedState.between_windows(self._bolt(task), own.told.epoch, own.windows)
        over = _left(task, own.told.epoch) if task.component.trigger == "marker" else 0
        return Standby(state, own.told.positions, own.seen, {}, max(0, over))

    @staticmethod
    def tells(task: BoltView) -> bool:
        """Whether the secondary is told of the end of each window: in a replay it would not come again as it
        was.
        """
        return task.component.trigger in ("tick", "tuples")

    # -- what is open ----------------------------------------------------------------------------------------

    def passed(self, task: BoltView, train: Train) -> None:
        own = self._of[task]
        number, channel, mark = (train.column(name) for name in (NUMBER, CHANNEL, "mark"))
        for row in np.flatnonzero((mark > 0) & (number > 0)).tolist():
            own.markers.setdefault((int(channel[row]), int(mark[row])), int(number[row]))
        if task.state is None:
            return
        epoch, inside = train.column("epoch"), mark == 0
        if task.component.trigger == "watermark":
            epoch = self._panes(task, train, inside)
        for mine in np.unique(channel).tolist():
            rows = np.flatnonzero((channel == mine) & inside)
            epochs, first = np.unique(epoch[rows], return_index=True)
            for each, row in zip(epochs.tolist(), rows[first].tolist(), strict=True):
                own.data.setdefault((mine, each), int(number[row]))

    def _panes(self, task: BoltView, train: Train, inside: npt.NDArray[np.bool_]) -> Ints:
        """The pane of each tuple, by its event; those that are late are taken from ``inside``."""
        state, window, times = self._bolt(task).state, task.component.window, self._job.context.events
        assert state is not None
        assert state.clock is not None
        assert window is not None
        assert window.extent is not None
        assert times is not None
        events, panes = times.of(train.uid[inside] >> task.component.bits), np.zeros(train.n, np.int64)
        panes[inside] = -(-events // window.extent.pane)
        inside[inside] = events > state.clock.watermark
        return panes

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        own, windows = self._of[task], self._bolt(task).windows
        if self.tells(task):
            own.data = {}
            own.windows, own.seen = windows.ended, self._filter.done(task)
        else:
            left = _left(task, windows.epoch if windows.trigger == "marker" else windows.ended)
            own.data = {key: first for key, first in own.data.items() if key[1] >= left}
        return 0

    # -- what is done ----------------------------------------------------------------------------------------

    def look(self, task: BoltView) -> bool:
        """Note where a task is now, and find the newest mark of which everything is done downstream; returns
        whether there is a new one.
        """
        own, outputs = self._of[task], self._buffers.sent_by(task)
        self._bolt(task).catch_up()
        epoch = self._bolt(task).windows.epoch
        own.markers = {key: number for key, number in own.markers.items() if key[1] > epoch}
        positions = dict(self._buffers.positions(task))
        for (channel, _), number in (*own.data.items(), *own.markers.items()):
            positions[channel] = min(positions[channel], number - 1)
        own.marks.append(Mark(positions, epoch, {buffer.channel: buffer.sent for buffer in outputs}))
        safe = {buffer.channel: buffer.safe for buffer in outputs}
        done = [i for i, mark in enumerate(own.marks) if all(safe[c] >= n for c, n in mark.sent.items())]
        if not done:
            return False
        own.told = own.marks[done[-1]]
        del own.marks[: done[-1] + 1]
        return True


def _left(task: TaskView, ended: int) -> int:
    """Before which epoch, or pane, all has left a task: ``ended`` is the newest marker that it has had, or,
    of windows by event, one more than the newest window that it has put out.
    """
    extent = None if task.component.window is None else task.component.window.extent
    if extent is None:
        return ended
    if task.component.trigger == "marker":
        before = ended // extent.slide * extent.slide
    else:
        before = (ended - 1) * extent.slide + 1
    return before - extent.panes * extent.stays
