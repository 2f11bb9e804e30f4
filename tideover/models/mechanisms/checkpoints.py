"""Checkpoints of one task: taken, written to the store, valid when they are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tideover.models.mechanisms.backing import Backing
from tideover.models.mechanisms.buffers.recovery import Reached
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.plans import Plans
from tideover.models.runtime.saved_state import SavedState, read, save


class Checkpoint(NamedTuple):
    """A task's state, and how far it was then with what is sent to it."""

    state: SavedState
    reached: Reached


@dataclass(frozen=True)
class Costs:
    """What it takes to save a state and to bring it back (ns; bytes).

    saving, saving_entry         time that it keeps the task, and more for each entry
    restoring, restoring_entry   time from when it was read, and more for each entry
    entry_size                   bytes of an entry of the bolt's own in the store
    store                        the name of the store; None: that of the job
    """

    saving: int = 0
    saving_entry: int = 0
    restoring: int = 0
    restoring_entry: int = 0
    entry_size: int = 0
    store: str | None = None


class Checkpoints:
    """The checkpoints of one task.

    writing   one is on its way into the store
    wanted    another is to be taken as soon as it is there
    saved     the newest that is valid; None: there is none yet
    """

    def __init__(self, job: Job, task: BoltTask, costs: Costs) -> None:
        self._job, self._task, self._costs = job, task, costs
        self._plans = Plans(job.kernel)
        self._backing = Backing(task)
        self.writing = False
        self.wanted = False
        self.saved: Checkpoint | None = None

    def void(self) -> None:
        """The task has failed: what is under way does not count (the store stays busy with it)."""
        self._plans.void()
        self.writing = self.wanted = False

    def discard(self) -> None:
        """Forget what is under way, and what the store has."""
        self.void()
        self.saved, self._backing = None, Backing(self._task)

    def store_lost(self, store: str | None) -> None:
        """The store of that name has lost all it had: a state and what was being written, not how far the
        task had got with what is sent to it, for its senders have trimmed that.
        """
        if store != self._costs.store:
            return
        saved = self.saved
        if self.writing:
            self.void()
        self._backing = Backing(self._task)
        self.saved = None if saved is None else saved._replace(state=saved.state.emptied())

    def take(self, reached: Reached, then: Callable[[Checkpoint], None]) -> None:
        """Take one now; ``then`` is called when the store has it, and ``reads`` this."""
        job, task, costs = self._job, self._task, self._costs
        self.writing = True
        taken = Checkpoint(SavedState.of(task), reached)
        share = self._backing.to_write()
        entries = taken.state.entries + share.entries
        job.step(task.name, "checkpoint taken", f"{entries} entries")

        def written() -> None:
            self.writing = False
            self.saved = taken
            self._backing.counts(share)
            job.step(task.name, "checkpoint saved", f"{entries} entries")
            then(taken)

        copying = costs.saving + entries * costs.saving_entry
        size = taken.state.entries * costs.entry_size + share.size
        wanted, saved = self._plans.watch(), self._plans.unless_void(written)
        store = job.store_named(costs.store)
        save(job, task, copying, size, wanted, saved, store=store)

    def read(self, then: Callable[[Checkpoint], None]) -> None:
        """Read the newest valid one (nothing was saved yet: the beginning), which takes its time, and call
        ``then``, unless the task fails before.
        """
        costs = self._costs
        saved = self.saved or Checkpoint(SavedState.at_the_beginning(self._task), Reached())
        share = self._backing.to_read()
        size = saved.state.entries * costs.entry_size + share.size
        restoring = costs.restoring + (saved.state.entries + share.entries) * costs.restoring_entry
        self._job.step(self._task.name, "checkpoint asked for", to="store")

        def restored() -> None:
            self._backing.restored()
            then(self.saved or saved)  # the store may have lost it meanwhile

        done = self._plans.unless_void(restored)
        store = self._job.store_named(costs.store)
        read(self._job, self._task, size, restoring, done, store)
