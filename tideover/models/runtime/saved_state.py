"""The state of a task, saved in a store and restored; the logs that tasks read and go back in.

Verbs and the mechanisms that save or restore call it. When, and what it costs, is theirs to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tideover.models.operators.keyed_state import KeyedArrays, Owns
from tideover.models.operators.state import State
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.job import Job, Storage
from tideover.models.runtime.views import OutageView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train


class TaskLog:
    """What has come to one task over these channels, in the order in which it has read it.

    A position is a number of messages, counted from the beginning. ``start``: from there on the log is kept.
    """

    def __init__(self, plane: Plane, task: BoltTask, channels: Sequence[Wire]) -> None:
        self._plane, self._task, self._c = plane, task, task.c
        self.start = 0
        self._c.bounded |= plane.lib.READS_LOG
        plane.have_chunks(0)
        for wire in channels:
            wire.c.logged = 1

    @property
    def position(self) -> int:
        """How far the task is: it is done with all before this."""
        return self.start + int(self._c.read.n)

    def done(self) -> Train:
        """What is kept, and the task is done with."""
        rows = self._plane.stored(self._c.read)
        rows["source"] = rows["task"]
        return self._plane.train(rows, self._task.number)

    def tuples(self) -> Train:
        return self._plane.tuples(self._c.read)

    def trim(self, position: int) -> None:
        """What is before ``position`` will not be read again."""
        if position > self.start:
            self._plane.lib.plane_trim_log(self._plane.p, self._task.number, position - self.start)
            self.start = position

    def go_back(self) -> int:
        """Go back to the start: what is kept is read again, ahead of what is held. Returns how far it was."""
        self._task.set_aside()
        position = self.position + int(self._c.aside.n)
        self._plane.have_messages(self._c.read.n)
        self._plane.lib.plane_go_back(self._plane.p, self._task.number)
        return position


@dataclass(frozen=True)
class SavedState:
    """What a task needs to go on from where it was.

    state     None: its bolt has none
    epochs    newest marker of each logical input
    windows   as ``Windows.ended``: of the last window that a count of tuples, or a watermark, has ended
    newest    number of the newest window that was ended; -1: none
    """

    state: State | None
    epochs: dict[int, int]
    windows: int
    newest: int

    @classmethod
    def of(cls, task: BoltTask) -> SavedState:
        state, windows = task.state, task.windows
        copy = None if state is None else state.copy()
        return cls(copy, dict(windows.epochs), windows.ended, windows.newest)

    @classmethod
    def at_the_beginning(cls, task: BoltTask) -> SavedState:
        state = None if task.state is None else task.state.fresh()
        return cls(state, dict.fromkeys(task.windows.epochs, 0), 0, -1)

    @classmethod
    def between_windows(cls, task: BoltTask, epoch: int, windows: int) -> SavedState:
        """An empty state that has had all markers up to ``epoch``, and put out so many windows of tuples."""
        first = cls.at_the_beginning(task)
        return cls(first.state, dict.fromkeys(first.epochs, epoch), windows, epoch)

    def gathered(
        self, others: Sequence[SavedState], mine: Owns, are_mine: Callable[[Ints], Owns]
    ) -> SavedState:
        """The same with what ``others`` have of the keys that are ``mine``; ``are_mine``: of tuples."""
        assert isinstance(self.state, KeyedArrays)
        state = self.state.fresh()
        for other in others:
            assert isinstance(other.state, KeyedArrays)
            state.take_over(other.state, mine, are_mine)
        return replace(self, state=state)

    def emptied(self) -> SavedState:
        return self if self.state is None else replace(self, state=self.state.fresh())

    @property
    def entries(self) -> int:
        return 0 if self.state is None else self.state.entries

    @property
    def tuples(self) -> int:
        return 0 if self.state is None else self.state.tuples

    def effects(self) -> Ints:
        """Uids of the tuples whose effects live in it."""
        return np.zeros(0, np.int64) if self.state is None else self.state.effects().uid

    def put_into(self, task: BoltTask, rewind: bool = True) -> None:
        """The task has this state, whatever it had before. ``rewind``: its inputs come again from where the
        state was taken; else the markers that it has seen and the windows that it has ended since count.
        """
        newer = {} if rewind else task.windows.epochs
        task.windows.epochs = {i: max(n, newer.get(i, 0)) for i, n in self.epochs.items()}
        task.windows.ended = self.windows if rewind else max(self.windows, task.windows.ended)
        if self.state is not None:
            task.state = self.state.copy()


def restore(job: Job, task: BoltTask, saved: SavedState, outage: OutageView, rewind: bool = True) -> None:
    """A task that an outage had hit has this state back, and can go on (``rewind``: see ``put_into``)."""
    saved.put_into(task, rewind)
    if saved.state is not None:
        restored(job, task, outage, saved.effects())
    task.gate.closed = False


def restored(job: Job, task: BoltTask, outage: OutageView, uid: Ints) -> None:
    """``task`` has its state back (read, or copied), and with it these effects."""
    job.say.restored(task, outage.number, uid)
    job.step(task.name, "state restored", f"{len(uid)} tuples in it")


def roll_back(job: Job, task: BoltTask, state: State | None) -> None:
    """``task`` goes back to an earlier state; effects since then are undone, unless a window has them."""
    if task.state is None or state is None:
        return
    gone, back = task.state.effects().uid, state.effects().uid
    task.state = state
    if task.component.anchored:
        job.say.rolled_back(task, gone, back)


def go_back(job: Job, task: BoltTask, saved: SavedState) -> None:
    """``task``, which has not failed, goes back to what it was: its inputs come again from there."""
    roll_back(job, task, None if saved.state is None else saved.state.copy())
    task.windows.epochs, task.windows.ended = dict(saved.epochs), saved.windows


def save(
    job: Job,
    task: BoltTask,
    copying: int,
    size: int,
    wanted: Callable[[], bool],
    saved: Callable[[], None],
    uploading: int = 0,
    store: Storage | None = None,
    once_asked: Callable[[], None] | None = None,
) -> None:
    """Copy the state, which keeps the task for ``copying`` ns; then the store writes ``size`` bytes, and
    ``uploading`` ns later they are safe: ``saved`` is called. The task works on meanwhile. If it is not
    ``wanted`` any more when it is copied, it is not written. ``store``: None: that of the job.
    ``once_asked``: called as soon as the store has been asked to write.
    """
    kernel, into = job.kernel, store or job.store

    def written() -> None:
        if uploading:
            kernel.at(kernel.now + uploading, Rank.TRIM, saved, task.number)
        else:
            saved()

    def write() -> None:
        if wanted():
            into.write(task.host, size, Rank.TRIM, written, task.number)
            if once_asked is not None:
                once_asked()

    task.occupy(copying)
    if copying:
        kernel.at(kernel.now + copying, Rank.CHECKPOINT, write, task.number)
    else:
        write()


def read(
    job: Job,
    task: BoltTask,
    size: int,
    restoring: int,
    restored: Callable[[], None],
    store: Storage | None = None,
) -> None:
    """Read ``size`` bytes of state, restore them for ``restoring`` ns; then ``restored`` is called."""

    def done() -> None:
        job.kernel.at(job.kernel.now + restoring, Rank.RESTORE, restored, task.number)

    (store or job.store).read(task.host, size, Rank.RESTORE, done, task.number)
