"""How far receivers are with what they get (`upstream_backup`), and the output queues of two tasks that do
the same (`active_standby`).

Each of those strategies makes one of the two mechanisms, and has the rules. What is open, or done, is changed
in `Progress`; who of a pair speaks, and what it then sends, in `OutputQueues`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers import Reached, UpstreamBuffer, UpstreamBuffers, send_kept
from tideover.models.mechanisms.checkpoints import Checkpoint
from tideover.models.mechanisms.replicas import DuplicateFilter, ReplayFilter, live_replica
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.hooks import CopyHolder
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import CHANNEL, NUMBER
from tideover.sim.train import Ints, Train


class Mark(NamedTuple):
    """Where a task was: by input channel nothing up to this number was open, newest end marker handed on, and
    by output channel the newest number.
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
    seen      what it had processed, when a tick or a count of tuples ended a window last; None: nothing
    """

    data: dict[tuple[int, int], int] = field(default_factory=dict)
    markers: dict[tuple[int, int], int] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    told: Mark = field(default_factory=lambda: Mark({}, 0, {}))
    windows: int = 0
    seen: Ints | None = None


class Progress(Mechanism):
    """Knows of every bolt task which of its messages are *open*: a tuple in a state until it leaves with a
    window, an end marker until it is handed on. What is not open is *done* when all that was sent by then is
    done at those who got it.

    J.-H. Hwang et al., ICDE 2005, section 4.2: acks of level 1, which go from hop to hop.
    """

    def __init__(self, job: Job, buffers: UpstreamBuffers, seen: ReplayFilter) -> None:
        super().__init__(job)
        self._buffers, self._filter = buffers, seen
        self._of: dict[TaskView, _Task] = {task: _Task() for task in job.bolt_tasks}
        for task in job.bolt_tasks:
            task.tell_numbers(self.passed)

    def told(self, task: BoltView) -> dict[int, int]:
        return self._of[task].told.positions

    def standby(self, task: TaskView) -> Checkpoint:
        """What is known of a task that fails, which begins anew from there: numbers, and no state."""
        own = self._of[task]
        own.data, own.markers, own.marks = {}, {}, []
        state = SavedState.between_windows(self._bolt(task), own.told.epoch, own.windows)
        over = _left(task, own.told.epoch) if task.component.trigger == "marker" else 0
        return Checkpoint(state, Reached(own.told.positions, own.seen), epoch=max(0, over))

    @staticmethod
    def tells(task: BoltView) -> bool:
        """Whether the secondary is told of each window's end: in a replay it would be another."""
        return task.component.trigger in ("tick", "tuples")

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
        assert state is not None and state.clock is not None and times is not None  # noqa: PT018
        assert window is not None and window.extent is not None  # noqa: PT018
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

    def look(self, task: BoltView) -> bool:
        """Note where a task is now; returns whether there is a newer mark of which all is done downstream."""
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


class OutputQueues(Mechanism, CopyHolder):
    """Of the replicas of each bolt task one *speaks*; when another does, it sends what it has kept, one
    message every ``cost_ns``.

    J.-H. Hwang et al., ICDE 2005, section 4.3; M. A. Shah et al., SIGMOD 2004, section 3.
    """

    def __init__(self, job: Job, duplicates: DuplicateFilter, cost_ns: int) -> None:
        super().__init__(job)
        self._duplicates, self._cost = duplicates, cost_ns
        self._of: dict[Wire, UpstreamBuffer] = {}
        self._speaker: dict[BoltTask, BoltTask] = {}
        """By the first of each pair: who speaks, or will when it has its turn."""
        self._outputs: dict[BoltTask, list[Wire]] = {}
        """All channels of a task, in the physical order of their receivers."""
        for task in job.bolt_tasks:
            self._speaker[self._replicas(task)[0]] = self._replicas(task)[0]
            task.held_windows = {}
            self._outputs[task] = [w for outlet in task.outlets for each in outlet.channels for w in each]
            for wire in self._outputs[task]:
                self._of[wire] = UpstreamBuffer(wire, job.plane)
            self._silence(task, task.replica > 0)

    def _silence(self, task: BoltTask, silent: bool) -> None:
        task.silent = silent
        for channel in self._outputs[task]:
            channel.c.withheld = silent

    def _replicas(self, task: BoltTask) -> list[BoltTask]:
        return self._job.bolts[task.component.name, task.index]

    # -- what need not be kept -------------------------------------------------------------------------------

    def trim(self, view: BoltView) -> int:
        """A task tells those who send to it, each replica, what it has had; returns how many it tells."""
        task, told = self._bolt(view), 0
        self.moved(self._job.kernel.now)  # what they keep has its peak now
        for channel in task.inputs:
            if channel in self._of and channel.up.available:
                told += 1
                self._of[channel].drop_known(self._duplicates.seen(task), task.newest_marker(channel))
        newest = max(each.said for each in self._replicas(task))
        task.held_windows = {
            number: closed for number, closed in (task.held_windows or {}).items() if number > newest
        }
        return told

    # -- who speaks ------------------------------------------------------------------------------------------

    def gone(self, view: TaskView) -> None:
        """A task has failed, or is back, empty: if it spoke, and another one is there, that one does."""
        task = self._bolt(view)
        other = live_replica(self._job, task)
        if self._speaker[self._replicas(task)[0]] is task and other is not None:
            self._speak(other)

    def there(self, task: BoltTask, peer: BoltTask | None) -> None:
        """A task goes on, as a copy of its ``peer`` (None: of nobody), and speaks if nobody else can."""
        if peer is not None:
            for mine, theirs in zip(self._outputs[task], self._outputs[peer], strict=True):
                self._lose(mine)
                self._of[mine].become(self._of[theirs].copy().rows)
            task.held_windows = dict(peer.held_windows or {})
        speaker = self._speaker[self._replicas(task)[0]]
        if speaker is task or not speaker.available:
            self._speak(task)

    def _speak(self, task: BoltTask) -> None:
        """From now on; what it has kept leaves when it has served what is in its queue."""
        kernel, replicas = self._job.kernel, self._replicas(task)
        self._speaker[replicas[0]] = task
        self._job.step(task.name, "is to speak")
        for each in replicas:
            if each is not task:
                self._silence(each, True)

        def place() -> None:
            if task.available and task.silent:
                task.enqueue(Rank.REQUEST, partial(self._send, task))

        kernel.at(kernel.now, Rank.REQUEST, place, task.number)

    def _send(self, task: BoltTask) -> None:
        """Its turn: what it has kept leaves, channel by channel; what it makes from now on comes behind."""
        replicas = self._replicas(task)
        if not task.silent or self._speaker[replicas[0]] is not task:
            return
        task.put_out_held(max(each.said for each in replicas))
        self._silence(task, False)
        asked = [(self._of[channel], 0) for channel in self._outputs[task]]
        n = send_kept(self._job, task, asked, 0, self._cost)
        self._job.step(task.name, "queue sent", f"{n} messages")

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        bolt = self._job.tasks[task.number]
        if isinstance(bolt, BoltTask) and not (bolt.up or bolt.gate.stopped):
            bolt.held_windows = {}
            for channel in self._outputs[bolt]:
                self._lose(channel)

    def _lose(self, channel: Wire) -> None:
        buffer = self._of[channel]
        self._job.say.copies_lost(channel.down, buffer.tuples().uid)
        buffer.clear()

    def moved(self, now: int) -> None:
        self._job.say.kept(sum(buffer.size for buffer in self._of.values()))

    def tuples(self) -> list[tuple[Component, Train]]:
        return [(channel.down.component, buffer.tuples()) for channel, buffer in self._of.items()]
