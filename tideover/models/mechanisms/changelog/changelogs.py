"""Tasks that commit: changes to the changelog, then offsets; and each comes back by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.changelog.copies import Copies
from tideover.models.mechanisms.changelog.outputs import Outputs
from tideover.models.mechanisms.changelog.reader import Reader
from tideover.models.mechanisms.changelog.topic import Batch, Changelog
from tideover.models.mechanisms.checkpoints import Costs
from tideover.models.operators.state import Effects
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper, Mask
from tideover.models.runtime.plans import Plans
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import RECOVERY
from tideover.sim.train import Ints, Train


@dataclass(frozen=True)
class Pace:
    """When what is written (ns).

    commits     distance of two commits
    committing  from when the changes are written until the offsets are committed
    batches     distance of two batches of changes between commits; None: there are none
    """

    commits: int
    committing: int = 0
    batches: int | None = None


@dataclass(frozen=True)
class Keeping:
    """Who keeps copies of a task's state besides the changelog.

    standbys   how many follow it elsewhere
    on_disk    whether a process that comes back on its host finds there what it had committed
    """

    standbys: int = 0
    on_disk: bool = False


_ALONE = Keeping()


class _Task:
    """One task, and what it has under way."""

    def __init__(self, job: Job, reader: Reader, costs: Costs, keeping: Keeping) -> None:
        self.bolt = task = reader.task
        self.reader = reader
        self.changelog = Changelog(task, costs.entry_size)
        standbys = keeping.standbys if task.component.keeps_state else 0
        self.copies = Copies(job, task, self.changelog, costs, standbys, keeping.on_disk)
        self.plans = Plans(job.kernel, task.number)
        self.committing = self.writing = False
        self.outputs: Outputs | None = None
        """None: what it puts out is there for its readers at once."""

    def void(self) -> None:
        """It has failed."""
        self.plans.void()
        self.committing = self.writing = False


class Changelogs(Mechanism, Keeper):
    """Every task reads a log, writes the changes of its state to another, and commits how far it has read. A
    task that has failed reads its changelog, then goes on from where it had committed.

    ``atomic``: changes, offsets and what was sent hold together, from the commit on; readers see nothing
    before.
    """

    needs = Needs(log=True)
    steady = True

    def __init__(
        self, job: Job, pace: Pace, costs: Costs, keeping: Keeping = _ALONE, atomic: bool = False
    ) -> None:
        super().__init__(job)
        self._pace, self._costs = pace, costs
        self._do = Verbs(job)
        self._tasks: dict[TaskView, _Task] = {
            task: _Task(job, Reader(job, task), costs, keeping) for task in job.bolt_tasks
        }
        for own in self._tasks.values() if atomic else ():
            own.outputs = Outputs(job, own.bolt)
        job.settlers.append(self._note_kept)
        job.context.keepers.append(self)

    # -- messages --------------------------------------------------------------------------------------------

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        outputs = self._tasks[task].outputs
        if outputs is not None and task.component.ends_roots and task.state is None:
            outputs.leave(train.uid)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        outputs = self._tasks[task].outputs
        if outputs is not None:
            outputs.window(parts)
        return 0

    # -- commits, and batches of changes between them --------------------------------------------------------

    def start(self) -> None:
        pace = self._pace
        for own in self._tasks.values():
            commit, batch = partial(self._commit_due, own), partial(self._batch_due, own)
            self._do.every(pace.commits, commit, Rank.CHECKPOINT, own.bolt)
            if pace.batches is not None and own.bolt.component.keeps_state:
                self._do.every(pace.batches, batch, Rank.CHECKPOINT, own.bolt)

    def _batch_due(self, own: _Task, i: int) -> None:
        if self._job.kernel.now % self._pace.commits == 0 or not own.bolt.available:
            return
        if not (own.committing or own.writing) and own.changelog.behind:
            own.writing = True
            batch = own.changelog.take()
            self._write(own, batch, partial(self._batch_written, own, batch))

    def _batch_written(self, own: _Task, batch: Batch) -> None:
        own.writing = False
        self._changed(own, batch)

    def _commit_due(self, own: _Task, i: int) -> None:
        if own.bolt.available and not own.committing:
            own.committing = True
            # between two tuples: what waits is still in the log
            own.bolt.enqueue(Rank.CHECKPOINT, partial(self._commit, own), first=True)

    def _commit(self, own: _Task) -> None:
        """Its turn has come: the task does nothing else until the commit is made."""
        now, task, committing = self._job.kernel.now, own.bolt, self._pace.committing
        self._do.step(task, "commit begins")
        offsets = own.reader.now()
        sent = None if own.outputs is None else own.outputs.now()
        batch = own.changelog.take() if task.component.keeps_state else None

        def committed() -> None:
            self._note_kept()  # it has its peak now
            own.committing = False
            if batch is not None and own.outputs is not None:
                self._changed(own, batch)
            own.reader.commit(offsets)
            if batch is not None:
                own.copies.commit(batch.number)
            if own.outputs is not None and sent is not None:
                own.outputs.commit(sent)
            self._do.step(task, "offsets committed", f"position {offsets.position}")

        def written() -> None:
            if batch is not None and own.outputs is None:
                self._changed(own, batch)
            if committing:
                own.plans.after(committing, Rank.TRIM, committed)
            else:
                committed()

        end = now if batch is None else self._write(own, batch, written)
        task.occupy(end - now + committing)
        if batch is None:
            written()

    def _write(self, own: _Task, batch: Batch, then: Callable[[], None]) -> int:
        store, done = self._job.store_named(self._costs.store), own.plans.unless_void(then)
        return store.write(own.bolt.host, batch.size, Rank.TRIM, done, own.bolt.number)

    def _changed(self, own: _Task, batch: Batch) -> None:
        own.changelog.add(batch)
        own.copies.add(batch)
        self._do.step(own.bolt, "changes written", f"{batch.entries} entries")

    # -- failures --------------------------------------------------------------------------------------------

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            return  # producers fall silent; the logs have what they have sent
        own = self._tasks[task]
        own.void()
        own.copies.failed(outage)
        if own.outputs is not None:
            self._note_kept()
            own.outputs.abort(own.reader.offsets.windows.newest, outage.number)
        own.reader.go_back()

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            return
        own = self._tasks[task]
        own.bolt.gate.closed = True
        restored = own.plans.unless_void(partial(self._restored, own, outage))
        if task.component.keeps_state:
            own.copies.restore(restored)
        else:
            restored()

    def _restored(self, own: _Task, outage: OutageView) -> None:
        """It knows what the changelog has, and goes on from the offsets."""
        epochs = own.reader.offsets.windows.epochs
        self._do.restore(own.bolt, replace(own.changelog.state, epochs=epochs), outage)
        own.changelog.restored()
        own.copies.restored()
        self._do.step(own.bolt, "log read again", f"{own.reader.read_again()} messages")
        self._do.open(own.bolt)

    # -- what the accounts ask -------------------------------------------------------------------------------

    def _note_kept(self) -> None:
        plane = self._job.plane
        self._job.say.kept(int(plane.lib.plane_logged(plane.p, self._job.kernel.now)))

    def tuples(self) -> list[tuple[Component, Train]]:
        return [(own.bolt.component, train) for own in self._tasks.values() for train in own.reader.tuples()]

    def effects(self) -> list[tuple[Component, Ints]]:
        stateful = [own for own in self._tasks.values() if own.bolt.state is not None]
        return [(own.bolt.component, own.changelog.state.effects()) for own in stateful]

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        if not train.has(RECOVERY) or self._job.context.newest.get(task, -1) != outage:
            return None
        return train.column(RECOVERY) > 0

    def settled(self, outage: OutageView) -> bool:
        hit = self._job.supervisor.outages[outage.number].tasks
        return not any(self._tasks[task].reader.recovering for task in hit if task in self._tasks)
