"""Checkpoints of one task: taken, written to the store, valid when they are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tideover.models.task import BoltTask
from tideover.models.windows import Counts
from tideover.sim.kernel import Rank

if TYPE_CHECKING:
    from tideover.models.world import World


@dataclass(frozen=True)
class Checkpoint:
    """State, the newest number processed on each buffered channel, markers seen, windows emitted."""

    counts: Counts
    positions: dict[int, int]
    epochs: dict[int, int]
    windows: int


class Checkpointer:
    """Takes a task's checkpoints and reads them back.

    stall_ns, cost_ns   time that taking one keeps the task, and more for each entry
    entry_size          bytes of an entry in the store
    """

    def __init__(self, world: World, task: BoltTask, stall_ns: int, cost_ns: int, entry_size: int) -> None:
        self._world = world
        self._task = task
        self._stall, self._cost = stall_ns, cost_ns
        self._entry_size = entry_size
        self._life = 0
        """Counts failures: what was begun in an earlier life is void."""
        self.writing = False
        self.wanted = False
        """Another is to be taken as soon as the write under way has ended."""
        self.saved: Checkpoint | None = None
        """The newest valid one."""

    def void(self) -> None:
        """The task has failed: what is under way does not count (the store stays busy with it)."""
        self._life += 1
        self.writing = self.wanted = False

    def take(self, positions: dict[int, int], saved: Callable[[Checkpoint], None]) -> None:
        """Take one now; ``saved`` is called when the store has it."""
        task, kernel = self._task, self._world.kernel
        assert task.counts is not None
        self.writing, life = True, self._life
        taken = Checkpoint(task.counts.copy(), dict(positions), dict(task.epochs), task.windows)
        entries = task.counts.entries
        stall = self._stall + entries * self._cost
        task.occupy(stall)

        def written() -> None:
            if self._life == life:
                self.writing = False
                self.saved = taken
                self._world.note(f"{task.name}: checkpoint saved ({entries} entries)")
                saved(taken)

        def write() -> None:
            if self._life == life:
                self._world.store.request(entries * self._entry_size, Rank.TRIM, written, task.number)

        if stall:
            kernel.at(kernel.now + stall, Rank.CHECKPOINT, write, task.number)
        else:
            write()

    def read(self, stall_ns: int, cost_ns: int, restored: Callable[[Checkpoint], None]) -> None:
        """Read the newest valid one (nothing was saved yet: the beginning), restore it, and call
        ``restored``, unless the task fails before.
        """
        task, kernel, life = self._task, self._world.kernel, self._life
        assert task.counts is not None
        first = Checkpoint(Counts(task.counts.keys), {}, dict.fromkeys(task.epochs, 0), 0)
        saved = self.saved or first
        entries = saved.counts.entries

        def restore() -> None:
            if self._life == life:
                restored(saved)

        def loaded() -> None:
            kernel.at(kernel.now + stall_ns + entries * cost_ns, Rank.RESTORE, restore, task.number)

        self._world.store.request(entries * self._entry_size, Rank.RESTORE, loaded, task.number)
