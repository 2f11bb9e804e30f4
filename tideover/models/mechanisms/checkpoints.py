"""Checkpoints of single tasks: taken, written to the store, valid later; second copies on disks.

`rsm`, `hybrid` and strategies from outside save by `TaskCheckpoints`, `passive_standby` by a subclass of it;
`barriers.py` shares `Backing` and `LocalCopies`. When a checkpoint counts, and its costs, are changed here.

What the `state` of a bolt adds to what a store has of its tasks, for every strategy that saves it
(tests/models/test_saved_state.py):

- What is saved of a task has, apart from the entries of the bolt's own, those of its `state`, each with its
  own `entry_size`. Costs by entry, of saving and of restoring, count both. `rsm` saves the `state` of bolts
  that have state of their own only; `passive_standby` and `aligned_snapshots` that of all.
- What is saved *counts* once the task would go back to it: written (`rsm`), at the secondary
  (`passive_standby`), or with its complete snapshot (`aligned_snapshots`). Until then all `entries` are
  saved.
- After that an `incremental` backend saves those that have changed since, in the mean: `entries` * (1 -
  (1 - 1/`entries`)^n), rounded (halves to even), with n = `accesses` * tuples worked on since what counts
  was taken, or since the restore.
- A restore reads all `entries`, however they were written; none if nothing counts yet.

Second copies of what tasks have saved, on the disks of their hosts (tests/models/test_local_recovery.py):

- When the store is asked to write the state of a part, the disk of the task's host is asked to write the
  same bytes; nobody waits for that.
- A fault of the job leaves unwritten what is not written by then; one with `repair` takes all copies on the
  hosts that it breaks.
- A task that restarts where it has a copy of its part of the complete snapshot reads the state from the
  disk, and messages of the part from the store at the same time; it goes on when both are there. All others
  read from the store alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from tideover.models.job.stores import Backend
from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Costs as Costs
from tideover.models.mechanisms.base import Mechanism, when_due
from tideover.models.mechanisms.buffers import Kept, Reached, UpstreamBuffers
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.hooks import CopyHolder
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, read, save
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, OutageView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints


class Share(NamedTuple):
    """What of a task's `state` is written, or read, at once; ``worked``: tuples it had worked on by then."""

    entries: int = 0
    size: int = 0
    worked: int = 0


class Backing:
    """The `state` of one task, and what the store has of it (a bolt without one: nothing, ever).

    A share *counts* once the task would go back to it. The first that does is whole; after it an incremental
    backend writes only what has changed since.
    """

    def __init__(self, task: BoltTask) -> None:
        self._task = task
        self._since: int | None = None
        """Tuples that the task had worked on when its state was as the store has it. None: it has none."""

    @property
    def _backend(self) -> Backend | None:
        """With the entries of this task: those of all are spread evenly over the tasks that work."""
        task, backend = self._task, self._task.component.backend
        first = task.component.config.parallelism
        if backend is None or task.idle:
            return None
        if task.working == first:
            return backend
        return backend.model_copy(update={"entries": -(-backend.entries * first // task.working)})

    def to_write(self) -> Share:
        """What has to be copied and written now."""
        backend, worked = self._backend, self._task.worked
        if backend is None:
            return Share()
        entries = backend.entries if self._since is None else backend.to_write(worked - self._since)
        return Share(entries, entries * backend.entry_size, worked)

    def to_read(self) -> Share:
        """What the store has: all entries, or nothing yet."""
        backend = self._backend
        if backend is None or self._since is None:
            return Share()
        return Share(backend.entries, backend.entries * backend.entry_size, self._task.worked)

    def counts(self, share: Share) -> None:
        """From now on the task goes back to what was written with this share."""
        self._since = share.worked

    def restored(self) -> None:
        """The task has its state as the store has it; nothing has changed since."""
        if self._since is not None:
            self._since = self._task.worked


class LocalCopies:
    """Copies of what tasks have in a store: nobody waits for them to be written.

    Flink's task-local recovery (``state.backend.local-recovery``; *Large State Tuning* in its documentation).
    """

    def __init__(self, job: Job, disk: str) -> None:
        self._job = job
        self.disk = job.store_named(disk)
        self._plans: dict[TaskView, Plans] = {task: Plans(job.kernel) for task in job.bolt_tasks}
        self._of: dict[TaskView, dict[int, tuple[int, int]]] = {task: {} for task in job.bolt_tasks}
        """By number: on which host a copy lies, and since when (ns)."""

    def write(self, task: TaskView, number: int, size: int) -> None:
        """A copy of so many bytes of what the task saves as ``number`` is to be written where it is."""
        host = task.host

        def written() -> None:
            self._of[task][number] = host, self._job.kernel.now
            self._job.step(task.name, "local copy written", f"snapshot {number}")

        self.disk.write(host, size, Rank.TRIM, self._plans[task].unless_void(written), task.number)

    def counts(self, task: TaskView, number: int) -> None:
        """The task goes back to ``number`` from now on: older copies are of no use."""
        self._of[task] = {n: copy for n, copy in self._of[task].items() if n >= number}

    def forget(self, task: TaskView) -> None:
        """What the task had is spread over others now."""
        self._of[task] = {}

    def failed(self, task: TaskView) -> None:
        """The task has: what is not written is not."""
        self._plans[task].void()

    def has(self, task: TaskView, number: int) -> bool:
        """Whether there is a copy of ``number`` where the task is now, on a machine that has not broken."""
        broken = [o.failed_at for o in self._job.supervisor.outages if task.host in o.broken]
        host, since = self._of[task].get(number, (-1, -1))
        return host == task.host and since > max(broken, default=-1)


class Checkpoint(NamedTuple):
    """What a task, or who stands by for it, goes on from: its state, how far it was with what is sent to it,
    what it kept of what it had sent; windows of epochs older than ``epoch`` are over.
    """

    state: SavedState
    reached: Reached = Reached()
    outputs: Mapping[Wire, Kept] = MappingProxyType({})
    epoch: int = 0


@dataclass(eq=False)
class OwnCheckpoints:
    """The checkpoints of one task: one is on its way (``writing``), another is to be taken as soon as it is
    there (``wanted``); the newest that is valid.
    """

    plans: Plans
    backing: Backing
    writing: bool = False
    wanted: bool = False
    saved: Checkpoint | None = None

    def void(self) -> None:
        """What is under way does not count (the store stays busy with it)."""
        self.plans.void()
        self.writing = self.wanted = False


class TaskCheckpoints(Mechanism, CopyHolder):
    """Each of some ``tasks`` with state saves it, one checkpoint after the other. What senders keep for them
    in ``buffers`` is trimmed when a checkpoint is there.
    """

    def __init__(
        self, job: Job, tasks: Iterable[BoltView], costs: Costs, buffers: UpstreamBuffers | None = None
    ) -> None:
        super().__init__(job)
        self._costs, self._buffers = costs, buffers
        self._of: dict[TaskView, OwnCheckpoints] = {
            task: OwnCheckpoints(Plans(job.kernel, task.number), Backing(task))
            for task in map(self._bolt, tasks)
        }

    def take(self, task: BoltView, needed: bool = False) -> None:
        """Save the state now; with a checkpoint on its way not, or, if ``needed``, after that."""
        own = self._of[task]
        if own.writing:
            own.wanted |= needed
        else:
            own.writing = True
            self._save(self._bolt(task), own)

    def _save(self, task: BoltTask, own: OwnCheckpoints) -> None:
        job, costs = self._job, self._costs
        reached = Reached() if self._buffers is None else self._buffers.reached(task)
        taken, share = Checkpoint(SavedState.of(task), reached), own.backing.to_write()
        entries = taken.state.entries + share.entries
        job.step(task.name, "checkpoint taken", f"{entries} entries")

        def written() -> None:
            own.backing.counts(share)
            job.step(task.name, "checkpoint saved", f"{entries} entries")
            self._counts(task, own, taken)

        copying = costs.saving + entries * costs.saving_entry
        size = taken.state.entries * costs.entry_size + share.size
        wanted, saved = own.plans.watch(), own.plans.unless_void(written)
        save(job, task, copying, size, wanted, saved, store=job.store_named(costs.store))

    def _counts(self, task: BoltTask, own: OwnCheckpoints, taken: Checkpoint) -> None:
        """A checkpoint is where it is safe."""
        own.writing, own.saved = False, taken
        if self._buffers is not None:
            self._buffers.trim(task, taken.reached)
        if own.wanted:
            own.wanted = False
            task.enqueue(Rank.CHECKPOINT, lambda: self.take(task))

    def newest(self, task: BoltView) -> Checkpoint | None:
        """The newest checkpoint that is in the store; None: there is none."""
        return self._of[task].saved

    def discard(self, task: BoltView) -> None:
        """Forget the checkpoint in the store, and the one on its way."""
        own = self._of[task]
        own.void()
        own.saved, own.backing = None, Backing(self._bolt(task))

    def read(self, task: BoltView, then: Callable[[Checkpoint], None]) -> None:
        """Read the newest valid checkpoint, or the beginning; then ``then``, unless the task fails before."""
        job, own, costs, bolt = self._job, self._of[task], self._costs, self._bolt(task)
        saved = own.saved or Checkpoint(SavedState.at_the_beginning(bolt))
        share = own.backing.to_read()
        size = saved.state.entries * costs.entry_size + share.size
        restoring = costs.restoring + (saved.state.entries + share.entries) * costs.restoring_entry
        job.step(task.name, "checkpoint asked for", to="store")

        def restored() -> None:
            own.backing.restored()
            then(own.saved or saved)  # the store may have lost it meanwhile

        read(job, bolt, size, restoring, own.plans.unless_void(restored), job.store_named(costs.store))

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        if task in self._of:
            self._of[task].void()

    def store_lost(self, store: str | None) -> None:
        """Not how far tasks had got with what is sent to them: their senders have trimmed that."""
        for task, own in self._of.items() if store == self._costs.store else ():
            if own.writing:
                own.void()
            own.backing = Backing(self._bolt(task))
            if own.saved is not None:
                own.saved = own.saved._replace(state=own.saved.state.emptied())

    def effects(self) -> list[tuple[Component, Ints]]:
        return [(task.component, own.saved.state.effects()) for task, own in self._of.items() if own.saved]


class RegularCheckpoints(TaskCheckpoints):
    """The same every ``interval`` (ns), and at the end of a window that a tick ends: else a failure before
    the next checkpoint would bring back counts that were put out.
    """

    def __init__(
        self,
        job: Job,
        tasks: Iterable[BoltView],
        costs: Costs,
        interval: int,
        buffers: UpstreamBuffers | None = None,
    ) -> None:
        super().__init__(job, tasks, costs, buffers)
        self._interval = interval

    def start(self) -> None:
        when_due(self._job, self._of, self._interval, self._due)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task in self._of and task.component.trigger == "tick":
            self._due(task, needed=True)
        return 0

    def _due(self, task: BoltView, needed: bool = False) -> None:
        # while it recovers, a checkpoint would trim what is still to be replayed
        if self._buffers is None or not self._buffers.recovering(task):
            self.take(task, needed)
