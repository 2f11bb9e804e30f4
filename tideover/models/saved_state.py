"""The state of a task, saved and read back: what of it is kept, and its way into a store and out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tideover.models.windows import Counts
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.task import BoltTask


@dataclass(frozen=True)
class SavedState:
    """What a task needs to go on from where it was.

    counts    None: the task counts nothing
    epochs    newest marker of each logical input
    windows   number of windows emitted
    """

    counts: Counts | None
    epochs: dict[int, int]
    windows: int

    @classmethod
    def of(cls, task: BoltTask) -> SavedState:
        """A copy of the task's state as it is now."""
        counts = None if task.counts is None else task.counts.copy()
        return cls(counts, dict(task.epochs), task.windows)

    @classmethod
    def at_the_beginning(cls, task: BoltTask) -> SavedState:
        """The task's state before the first tuple."""
        counts = None if task.counts is None else Counts(task.counts.keys)
        return cls(counts, dict.fromkeys(task.epochs, 0), 0)

    @property
    def entries(self) -> int:
        """Entries that a store has to hold."""
        return 0 if self.counts is None else self.counts.entries

    def effects(self) -> Ints:
        """Uids of the tuples that are counted in it."""
        assert self.counts is not None
        return self.counts.effects().uid

    def restore(self, task: BoltTask, outage: Outage) -> None:
        """The task has this state back after ``outage``, and can go on."""
        task.epochs, task.windows = self.epochs, self.windows
        if self.counts is not None:
            task.restore(self.counts.copy())
            task.world.restore_effects(task, outage, self.effects())
        task.recovering = False


def newest_window(task: BoltTask, at: BoltTask | SavedState) -> int:
    """Number of the newest window that the task has ended; ``at``: now, or in a state that was saved."""
    return at.windows if task.component.trigger == "tuples" else min(at.epochs.values())


def save(
    task: BoltTask,
    copying: int,
    size: int,
    wanted: Callable[[], bool],
    saved: Callable[[], None],
    uploading: int = 0,
) -> None:
    """Copy the state, which keeps the task for ``copying`` ns; then the store writes ``size`` bytes, and
    ``uploading`` ns later they are safe: ``saved`` is called. The task works on meanwhile. If it is not
    ``wanted`` any more when it is copied, it is not written.
    """
    kernel, store = task.world.kernel, task.world.store

    def after(delay: int, rank: Rank, action: Callable[[], None]) -> None:
        if delay:
            kernel.at(kernel.now + delay, rank, action, task.number)
        else:
            action()

    def write() -> None:
        if wanted():
            store.request(size, Rank.TRIM, lambda: after(uploading, Rank.TRIM, saved), task.number)

    task.occupy(copying)
    after(copying, Rank.CHECKPOINT, write)


def read(task: BoltTask, size: int, restoring: int, restored: Callable[[], None]) -> None:
    """Read ``size`` bytes of state from the store, and restore them, which takes ``restoring`` ns; then
    ``restored`` is called.
    """
    kernel = task.world.kernel

    def done() -> None:
        kernel.at(kernel.now + restoring, Rank.RESTORE, restored, task.number)

    task.world.store.request(size, Rank.RESTORE, done, task.number)
