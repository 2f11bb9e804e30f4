"""Secondaries that stand by to go on in the place of a task that fails, and what they are told.

Both strategies below make `Standbys`; `passive_standby` sends checkpoints by `CheckpointMessages`, and
`upstream_backup`, whose docstring says what is *open* and *done*, tells numbers by `Progress`.

The rules of `passive_standby` and `upstream_backup` (tests/models/test_secondaries.py,
test_plane_worlds.py):

- Every channel has an upstream buffer, from spouts too (see `UpstreamBuffers`). Each bolt task has a
  secondary; it goes by the task's name, host and links, no fault takes it, and what is sent to it is there
  at once. Spouts have none: what they kept goes down with them.
- Every task drops at arrival what it has had on its path (see `ReplayFilter`). Readers of what leaves the
  topology do so too. End markers always come in.
- At detection (rank READY), if the task is not back by then, the secondary is in its place: the restart is
  off. A restart that comes first does the same.
- Whoever goes on discards what is in the queue, or was held for it, and has at this instant what the
  secondary has: state, epochs, window numbers, positions, paths, and the output buffers if its own are
  gone. Then it asks all its senders for what is above these positions.
- What it sends from then on has new numbers, above all that its channels had. What it does once more it
  sends once more, in any order, and receivers know it by its path. A window that comes again is void by its
  number, but its tuples are sent, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Costs, Mechanism
from tideover.models.mechanisms.buffers import Kept, Reached, UpstreamBuffers
from tideover.models.mechanisms.checkpoints import Checkpoint, OwnCheckpoints, RegularCheckpoints
from tideover.models.mechanisms.replicas import ReplayFilter
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.hooks import Mask
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import CHANNEL, NUMBER
from tideover.sim.train import Ints, Train


class Standbys(Mechanism):
    """Every bolt task has a secondary, which goes on as soon as a failure is noticed, or the task itself when
    it is restarted, if that is sooner: from what the secondary has, with what the senders have kept since.
    """

    def __init__(self, job: Job, buffers: UpstreamBuffers, seen: ReplayFilter) -> None:
        super().__init__(job)
        self._buffers, self._filter, self._do = buffers, seen, Verbs(job)

    def copy(self, task: BoltTask, state: SavedState) -> Checkpoint:
        """A task as it is now, with this state."""
        reached = Reached(self._buffers.positions(task), self._filter.done(task))
        return Checkpoint(state, reached, self._buffers.outputs(task))

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        self._do.at(outage.detected_at, partial(self._do.take_over, task, outage), Rank.READY, task)

    def go_on(self, task: TaskView, outage: OutageView, standby: Checkpoint) -> None:
        """A bolt's task is up again, and empty: it goes on from ``standby``, and asks for what came since."""
        bolt, buffers = self._bolt(task), self._buffers
        buffers.put_back(bolt, standby.outputs)
        buffers.empty_queue(bolt)
        buffers.restored(bolt, standby.reached)
        self._filter.go_back(bolt, standby.reached.seen)
        self._filter.begin_after(bolt, standby.epoch)
        self._do.restore(bolt, standby.state, outage)
        self._do.step(bolt, "goes on", f"with {standby.state.tuples} tuples")
        self._do.open(bolt)
        buffers.sender_ready(bolt)
        buffers.ask(bolt)

    def restarted(self, spout: TaskView) -> None:
        """A spout's task is up again, with empty buffers."""
        self._do.open(spout)
        self._buffers.sender_ready(spout)


class CheckpointMessages(RegularCheckpoints):
    """Every task sends its state and its output queues to its secondary; then its senders trim.

    J.-H. Hwang et al., ICDE 2005, section 4.1. ``delta``: of the bolt's own entries only those that have
    changed since the last one, and of the output queues only what has come since.
    """

    def __init__(
        self,
        job: Job,
        standbys: Standbys,
        buffers: UpstreamBuffers,
        costs: Costs,
        interval: int,
        delta: bool,
    ) -> None:
        super().__init__(job, job.bolt_tasks, costs, interval, buffers)
        self._standbys, self._keeps, self._delta = standbys, buffers, delta

    def start(self) -> None:
        for task in self._job.bolt_tasks:
            self._of[task].saved = self._standbys.copy(task, SavedState.at_the_beginning(task))
        super().start()

    def _save(self, task: BoltTask, own: OwnCheckpoints) -> None:
        """Send it; it counts when the secondary has it."""
        costs, old = self._costs, self.there(task)
        taken, share = self._standbys.copy(task, SavedState.of(task)), own.backing.to_write()
        entries = taken.state.entries
        if self._delta and taken.state.state is not None and old.state.state is not None:
            entries = taken.state.state.changed_since(old.state.state)
        since = {channel: kept.sent if self._delta else 0 for channel, kept in old.outputs.items()}
        size = entries * costs.entry_size + share.size + _bytes(taken.outputs, since)
        takes = costs.saving + (entries + share.entries) * costs.saving_entry

        def there() -> None:
            own.backing.counts(share)
            self._job.say.transferred(size)
            self._job.step(task.name, "checkpoint sent", f"{size} bytes")
            self._counts(task, own, taken)

        task.occupy(takes)
        own.plans.after(takes, Rank.TRIM, there)

    def there(self, task: TaskView) -> Checkpoint:
        """What the secondary of a task has."""
        saved = self._of[task].saved
        assert saved is not None
        return saved

    def handed_on(self, task: TaskView) -> Checkpoint:
        """The same, of one that goes on now: all of it goes over the network once more."""
        own, saved = self._of[task], self.there(task)
        share = own.backing.to_read()
        own.backing.restored()
        size = saved.state.entries * self._costs.entry_size + share.size
        self._job.say.transferred(size + _bytes(saved.outputs, {}))
        return saved

    def store_lost(self, store: str | None) -> None:
        """Nothing of it is in a store."""

    def tuples(self) -> list[tuple[Component, Train]]:
        every = [pair for task in self._of for pair in self.there(task).outputs.items()]
        return [(channel.down.component, train) for channel, kept in every for train in kept.tuples()]


def _bytes(outputs: Mapping[Wire, Kept], since: Mapping[Wire, int]) -> int:
    """Of the messages that are kept, above these numbers."""
    return sum(kept.above(since.get(c, 0)) * c.message_bytes for c, kept in outputs.items())


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

    def _panes(self, task: BoltView, train: Train, inside: Mask) -> Ints:
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
