"""The changelog of one task: what has changed in its state, batch by batch."""

from __future__ import annotations

from typing import NamedTuple

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.saved_state import SavedState


class Batch(NamedTuple):
    """Changes that go into the changelog together.

    number    batches of a task are numbered in order
    state     what whoever reads the changelog up to here has
    entries   how many of them changed
    size      their bytes
    """

    number: int
    state: SavedState
    entries: int
    size: int


class Changelog:
    """What the topic has of one task, compacted: the newest value of each entry.

    The entries of a bolt's ``state`` are there from the start. What changes of them is what so many tuples
    change in the mean; of the bolt's own entries each tuple changes one.

    state   what whoever reads all of it has
    """

    def __init__(self, task: BoltTask, entry_size: int) -> None:
        """``entry_size``: bytes of an entry of the bolt's own."""
        self._task, self._entry_size = task, entry_size
        self.state = SavedState.at_the_beginning(task)
        self._since = 0
        """Tuples that the task had worked on when the newest batch was taken."""
        self._batches = 0
        self._newest = 0
        """Number of the newest batch that is there."""

    @property
    def behind(self) -> bool:
        """Whether the task has worked on anything since the newest batch was taken."""
        return self._task.worked > self._since

    def take(self) -> Batch:
        """The changes up to now, on their way into the topic."""
        worked = self._task.worked - self._since
        self._since = self._task.worked
        self._batches += 1
        state = SavedState.of(self._task)
        own, backend = min(worked, state.entries), self._task.component.backend
        more = 0 if backend is None else backend.changed(worked)
        size = own * self._entry_size + (more * backend.entry_size if backend else 0)
        return Batch(self._batches, state, own + more, size)

    def add(self, batch: Batch) -> None:
        """A batch is there."""
        if batch.number > self._newest:
            self._newest, self.state = batch.number, batch.state

    def to_read(self) -> tuple[int, int]:
        """Entries that whoever restores the task reads, and their bytes."""
        own, backend = self.state.entries, self._task.component.backend
        if backend is None:
            return own, own * self._entry_size
        return own + backend.entries, own * self._entry_size + backend.entries * backend.entry_size

    def restored(self) -> None:
        """The task has the state that is here: nothing has changed since."""
        self._since = self._task.worked
