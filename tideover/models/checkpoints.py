"""Checkpoints of one task: taken, written to the store, valid when they are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tideover.models.saved_state import SavedState, read, save
from tideover.models.task import BoltTask

if TYPE_CHECKING:
    from tideover.models.world import World


class Checkpoint(NamedTuple):
    """A task's state, and the newest number processed on each buffered channel."""

    state: SavedState
    positions: dict[int, int]


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
        task, life = self._task, self._life
        self.writing = True
        taken = Checkpoint(SavedState.of(task), dict(positions))
        entries = taken.state.entries

        def written() -> None:
            if self._life == life:
                self.writing = False
                self.saved = taken
                self._world.note(f"{task.name}: checkpoint saved ({entries} entries)")
                saved(taken)

        copying = self._stall + entries * self._cost
        save(task, copying, entries * self._entry_size, lambda: self._life == life, written)

    def read(self, stall_ns: int, cost_ns: int, restored: Callable[[Checkpoint], None]) -> None:
        """Read the newest valid one (nothing was saved yet: the beginning), restore it, and call
        ``restored``, unless the task fails before.
        """
        task, life = self._task, self._life
        saved = self.saved or Checkpoint(SavedState.at_the_beginning(task), {})
        entries = saved.state.entries

        def done() -> None:
            if self._life == life:
                restored(saved)

        read(task, entries * self._entry_size, stall_ns + entries * cost_ns, done)
