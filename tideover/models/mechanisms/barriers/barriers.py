"""Aligned snapshots of a job: barriers flow with the data, and a failure takes every task back."""

from __future__ import annotations

from functools import partial

from tideover.models.job.topology import Component
from tideover.models.mechanisms.barriers.coordinator import Coordinator, Schedule
from tideover.models.mechanisms.barriers.member import Member
from tideover.models.mechanisms.barriers.snapshot import Part, Snapshot
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.checkpoints import Costs
from tideover.models.mechanisms.local_copies import LocalCopies
from tideover.models.mechanisms.sink_transactions import SinkTransactions
from tideover.models.operators.state import Effects
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper, Mask
from tideover.models.runtime.saved_state import read, restore, save
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train


class Barriers(Mechanism, Keeper):
    """At each trigger a barrier goes in where sources are read; a task aligns its inputs' barriers, hands
    them on, and snapshots its state (in this order, as Flink does). The last complete snapshot is kept.

    ``uploading``: time until a task's snapshot is durable after the store has it (ns); the task works on.
    ``patience``: so long after the trigger barriers overtake what waits (ns). None: never.
    """

    def __init__(
        self, job: Job, schedule: Schedule, costs: Costs, uploading: int = 0, patience: int | None = None
    ) -> None:
        super().__init__(job)
        self._schedule, self._costs, self._uploading = schedule, costs, uploading
        self._patience = patience
        overtakes = patience is not None
        self._members: dict[TaskView, Member] = {t: Member(job, t, overtakes) for t in job.bolt_tasks}
        self.coordinator = Coordinator(job, self._members, schedule, self._insert, self.completed)
        if costs.saving or costs.saving_entry:
            job.context.rhythm = lambda: schedule.interval
        job.context.keepers.append(self)

    def start(self) -> None:
        self.coordinator.start(self._schedule.first)

    # -- barriers flow with the data; what is behind one on its channel waits for the others -----------------

    def _insert(self, snapshot: Snapshot) -> None:
        for task, member in self._members.items():
            member.task.hurries = self._patience == 0
            if member.reads_log:
                align = partial(self._align, task, snapshot.number, None)
                # what waits is still in the log, behind the barrier; without a log it was sent before it
                first = self._job.needs.log
                self._bolt(task).enqueue(Rank.CHECKPOINT, align, first=first)
        if self._patience:
            self.coordinator.after(self._patience, snapshot, self._lose_patience)

    def _lose_patience(self, snapshot: Snapshot) -> None:
        """From now on barriers overtake; first each task looks what its own wait for, or behind."""
        for task, member in self._members.items():
            bolt = member.task
            bolt.hurries = True
            # none acts here: what one task sends at its turn comes before the turn of the next
            bolt.queue.markers_first()
            switch = partial(self._switch, task, snapshot)
            bolt.enqueue(Rank.CHECKPOINT, switch, first=True)

    def _switch(self, task: TaskView, snapshot: Snapshot) -> None:
        """A task that is aligning takes part; of one that has, the barrier leaves the line."""
        if not self.coordinator.waits_for(snapshot):
            return
        member = self._members[task]
        if task in snapshot.parts:
            if size := member.overtake_line(snapshot):
                snapshot.awaited[task] += 1
                self._save(task, snapshot, size, whole=False)
        elif member.gives_up_aligning():
            self._take_part_ahead(task, snapshot)
            member.unblock()

    def barrier(self, task: BoltView, message: Train) -> None:
        self._align(task, int(message.key[0]), message)

    def _align(self, task: TaskView, number: int, message: Train | None) -> None:
        snapshot, member = self.coordinator.under_way, self._members[task]
        if snapshot is None or snapshot.number != number:
            return
        if member.task.hurries:
            member.overtaken(number, message)
            if task not in snapshot.parts:
                self._take_part_ahead(task, snapshot)
            self._write(task, snapshot)
        elif member.aligned(number, message):
            self._take_part(task, snapshot)

    def _take_part_ahead(self, task: TaskView, snapshot: Snapshot) -> None:
        """With the first barrier, ahead of what waits."""
        member, kernel = self._members[task], self._job.kernel
        self._step(task, "part taken", snapshot)
        part = member.take_part(snapshot)
        self.took_part(task, snapshot)
        member.hand_on(snapshot)
        copying = self._copying(part) if task.component.keeps_state else 0
        member.task.occupy(copying)

        def copied() -> None:
            if self.coordinator.waits_for(snapshot):
                member.in_flight.copied = True
                self._write(task, snapshot)

        if copying:
            kernel.at(kernel.now + copying, Rank.CHECKPOINT, copied, task.number)
        else:
            member.in_flight.copied = True

    def _write(self, task: TaskView, snapshot: Snapshot) -> None:
        """Write a task's part when the last barrier has come, and the state is copied."""
        member = self._members[task]
        if not member.in_flight.done:
            return
        part = member.is_whole(snapshot)
        if part.size or task.component.keeps_state:
            self._save(task, snapshot, self._size(part))
        else:
            self.coordinator.acknowledge(task, snapshot)

    def _step(self, task: TaskView, what: str, snapshot: Snapshot) -> None:
        self._job.step(task.name, what, f"snapshot {snapshot.number}")

    def _copying(self, part: Part) -> int:
        """How long it takes to copy a part (ns)."""
        return self._costs.saving + (part.state.entries + part.share.entries) * self._costs.saving_entry

    def _size(self, part: Part) -> int:
        """Bytes of a part that are written."""
        return self.state_size(part) + part.size

    def state_size(self, part: Part) -> int:
        """Those of its state."""
        return part.state.entries * self._costs.entry_size + part.share.size

    def _save(
        self, task: TaskView, snapshot: Snapshot, size: int, copying: int = 0, whole: bool = True
    ) -> None:
        """Copy a task's state, and write so many bytes of its part; not ``whole``: none of them is state."""
        wanted = partial(self.coordinator.waits_for, snapshot)
        safe = partial(self.coordinator.acknowledge, task, snapshot)
        bolt, store = self._bolt(task), self._job.store_named(self._costs.store)
        besides = partial(self.written, task, snapshot) if whole else None
        save(self._job, bolt, copying, size, wanted, safe, self._uploading, store, besides)

    def _take_part(self, task: TaskView, snapshot: Snapshot) -> None:
        member = self._members[task]
        self._step(task, "part taken", snapshot)
        part = member.take_part(snapshot)
        self.took_part(task, snapshot)
        member.hand_on(snapshot)
        if task.component.keeps_state:
            self._save(task, snapshot, self._size(part), self._copying(part))
        else:
            self.coordinator.acknowledge(task, snapshot)
        member.let_go()

    def took_part(self, task: TaskView, snapshot: Snapshot) -> None:
        """For those who build on it: all barriers of a snapshot have come at ``task``."""

    def written(self, task: TaskView, snapshot: Snapshot) -> None:
        """For those who build on it: the store is asked to write the state of a task."""

    def completed(self, snapshot: Snapshot) -> None:
        """For those who build on it: the parts of all tasks are safe."""

    def interrupt(self) -> None:
        """A snapshot under way does not count, nothing waits for its barriers any more, and no other is
        triggered until the coordinator starts again.
        """
        self.coordinator.stop()
        for member in self._members.values():
            member.let_go()

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task.component.anchored and task not in self._job.context.withheld:
            self._members[task].window_emitted(parts)
        return 0

    def store_lost(self, store: str | None) -> None:
        if store == self._costs.store:
            self.coordinator.store_lost()

    def effects(self) -> list[tuple[Component, Ints]]:
        return self.coordinator.effects()


class GlobalRollback(Barriers):
    """Any failure stops the whole job: every task goes back to the last complete snapshot, and the sources
    are read again from there. A snapshot under way is interrupted, and does not count.

    ``sink``: what tasks put out between two snapshots is a transaction, which is committed when the second
    one is complete; None: readers see it at once. ``copies``: of what tasks save, which they look for first
    when they restart; None: there are none.
    """

    needs = Needs(log=True, one_job=True)
    steady = True

    def __init__(
        self,
        job: Job,
        schedule: Schedule,
        costs: Costs,
        uploading: int = 0,
        patience: int | None = None,
        sink: SinkTransactions | None = None,
        copies: LocalCopies | None = None,
    ) -> None:
        super().__init__(job, schedule, costs, uploading, patience)
        self._sink, self._copies = sink, copies
        self._outage: OutageView | None = None
        """The newest that has stopped the job."""
        self._cut_short: frozenset[int] = frozenset()
        """Numbers of the outages that a newer one has overtaken before all was replayed."""
        self._last = job.bolt_tasks[-1]
        self._trimmed = 0
        """Messages that the logs have no more."""

    def part(self, task: TaskView) -> Part:
        """A task's part of the last complete snapshot; where there is none yet, the beginning."""
        return self.coordinator.part(task)

    @property
    def _number(self) -> int:
        """Of the last complete snapshot; 0: there is none yet."""
        return self.coordinator.complete.number if self.coordinator.complete is not None else 0

    # -- what goes with a snapshot ---------------------------------------------------------------------------

    def took_part(self, task: TaskView, snapshot: Snapshot) -> None:
        if self._sink is not None:
            self._sink.pre_commit(task, snapshot.number)

    def written(self, task: TaskView, snapshot: Snapshot) -> None:
        if self._copies is not None and task.component.keeps_state:
            self._copies.write(task, snapshot.number, self.state_size(snapshot.parts[task]))

    def completed(self, snapshot: Snapshot) -> None:
        self._trimmed = sum(member.trimmed for member in self._members.values())
        self._commit()
        if self._copies is not None:
            for task in self._members:
                self._copies.counts(task, snapshot.number)

    def _commit(self) -> None:
        """What was put out up to the last complete snapshot is there for good."""
        if self._sink is not None:
            for task in self._members:
                self._sink.commit(task, self._number)

    # -- a failure stops the whole job -----------------------------------------------------------------------

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            return  # producers fall silent; the log has what they have sent
        if self._outage is not outage:
            self._cut_short |= {old.number for old in outage.overtakes}
            self._outage = outage
            self.coordinator.stop()
        self._members[task].roll_back(self.part(task))
        if self._sink is not None:
            self._sink.roll_back(task, self._number)
        if self._copies is not None:
            self._copies.failed(task)

    # -- every task restores its part; when the last has it, the job runs ------------------------------------

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self._bolt(task).gate.closed = True
            if task is self._last:
                self._restore(outage)

    def _restore(self, outage: OutageView) -> None:
        costs, kernel = self._costs, self._job.kernel
        saved = [t for t in self._job.bolt_tasks if t.component.keeps_state or self.part(t).size]
        store = self._job.store_named(costs.store)
        left = 0

        def restored() -> None:
            nonlocal left
            left -= 1
            if left <= 0 and self._outage is outage:
                self._run(outage)

        for task in saved:
            part = self.part(task)
            share = self._members[task].backing.to_read()
            restoring = costs.restoring + (part.state.entries + share.entries) * costs.restoring_entry
            size = part.state.entries * costs.entry_size + share.size
            sources = [(store, size + part.size)]
            if self._copies is not None and self._copies.has(task, self._number):
                sources = [(self._copies.disk, size), *([(store, part.size)] if part.size else [])]
            left += len(sources)
            for source, share_of_it in sources:
                read(self._job, task, share_of_it, restoring, restored, source)
        if not saved:
            kernel.at(kernel.now, Rank.RESTORE, restored, self._last.number)

    def _run(self, outage: OutageView) -> None:
        """What the log has above the snapshot is there at once, in order; behind it, what came meanwhile."""
        for task in self._job.bolt_tasks:
            restore(self._job, task, self.part(task).state, outage)
        again = sum(member.read_again(self.part(task)) for task, member in self._members.items())
        now = self._job.kernel.now
        self._job.step("job", "runs again", f"reads {again} messages once more")
        self.coordinator.start(now + self._schedule.interval)
        self._commit()

    # -- what the accounts ask -------------------------------------------------------------------------------

    def moved(self, now: int) -> None:
        p = self._job.plane.p
        self._job.say.kept(int(self._job.plane.lib.plane_come(p, p.now)) - self._trimmed)

    def tuples(self) -> list[tuple[Component, Train]]:
        return [copies for member in self._members.values() for copies in member.copies()]

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        if self._job.context.newest.get(task, -1) != outage or not task.component.ends_roots:
            return None
        again: Mask = train.created <= self._job.supervisor.outages[outage].failed_at
        return again

    def settled(self, outage: OutageView) -> bool:
        if outage is not self._outage:
            return outage.number not in self._cut_short
        if not all(task.available for task in self._members):
            return False
        waiting = (train for trains in self._job.on_the_way().values() for train in trains)
        return not any((train.created <= outage.failed_at).any() for train in waiting)
