"""What the `state` of a bolt adds to what a store has of its tasks: all of it, or what has changed."""

from __future__ import annotations

from typing import NamedTuple

from tideover.models.runtime.bolt_task import BoltTask


class Share(NamedTuple):
    """What of a task's `state` is written, or read, at once.

    entries  how many
    size     their bytes
    worked   tuples that the task had worked on when they were copied
    """

    entries: int = 0
    size: int = 0
    worked: int = 0


class Backing:
    """The `state` of one task, and what the store has of it (a bolt without one: nothing, ever).

    A share *counts* once the task would go back to it. The first that does is whole; after it an incremental
    backend writes only what has changed since.
    """

    def __init__(self, task: BoltTask) -> None:
        self._task, self._backend = task, task.component.backend
        self._since: int | None = None
        """Tuples that the task had worked on when its state was as the store has it. None: it has none."""

    def _share(self, entries: int) -> Share:
        assert self._backend is not None
        return Share(entries, entries * self._backend.entry_size, self._task.worked)

    def to_write(self) -> Share:
        """What has to be copied and written now."""
        if self._backend is None:
            return Share()
        if self._since is None:
            return self._share(self._backend.entries)
        return self._share(self._backend.to_write(self._task.worked - self._since))

    def to_read(self) -> Share:
        """What the store has: all entries, or nothing yet."""
        if self._backend is None or self._since is None:
            return Share()
        return self._share(self._backend.entries)

    def counts(self, share: Share) -> None:
        """From now on the task goes back to what was written with this share."""
        self._since = share.worked

    def restored(self) -> None:
        """The task has its state as the store has it; nothing has changed since."""
        if self._since is not None:
            self._since = self._task.worked
