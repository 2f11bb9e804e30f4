"""Snapshots of a whole job by barriers, and the rollback of all its tasks to the last complete one
(`aligned_snapshots`).

Unaligned barriers overtake what waits at a task: it is part of the snapshot then. The rules
(tests/models/test_plane_worlds.py, test_exactness.py):

- A barrier goes ahead of all that waits when it arrives. With the first one the task takes part, and sends
  it ahead of its line. The part has also what is in the line, and what came, or comes, ahead of its
  channel's barrier. It is written when the state is copied and the last barrier has come.
- With `aligned_timeout` a snapshot begins aligned; so long after its trigger (rank ROTATION) barriers
  overtake. A task that waits takes part then; one that has its barrier still in the line sends it ahead,
  and what it overtakes is a second piece of its part.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.checkpoints import Backing, Costs, LocalCopies, Share
from tideover.models.mechanisms.sink_transactions import SinkTransactions
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BARRIER, BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import CopyHolder, Mask, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, TaskLog, read, restore, save
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import CHANNEL, Rows
from tideover.sim.train import Ints, Train


@dataclass
class Waits:
    """Messages of a task that a snapshot has, of its ``queue`` and of the ``line`` of what it sends: rows of
    the data plane, by their channels in ``source``.
    """

    queue: list[Rows] = field(default_factory=list)
    line: list[Rows] = field(default_factory=list)

    def at(self, task: BoltTask) -> Iterator[tuple[BoltTask, Train]]:
        """Tuples, and where they wait or go to."""
        for rows in self.queue:
            yield task, without_markers(task.trained(rows))
        for rows in self.line:
            for route in dict.fromkeys(rows["source"].tolist()):
                down = task.wires[route].down
                yield down, without_markers(task.trained(rows[rows["source"] == route]))

    def size(self, task: BoltTask) -> int:
        """Bytes of the tuples."""
        wires = [task.inputs[way] for way in _ways(self.queue)] + [
            task.wires[way] for way in _ways(self.line)
        ]
        return sum(wire.message_bytes for wire in wires)


def _some(rows: Rows) -> list[Rows]:
    return [rows] if len(rows) else []


def _ways(found: list[Rows]) -> Iterator[int]:
    """The ``source`` of each tuple in these rows."""
    for rows in found:
        yield from rows["source"][rows["mark"] == 0].tolist()


class Part(NamedTuple):
    """One task in a snapshot: its state, how far it had read its log (in messages), what its barriers have
    overtaken, and the bytes of that; what of its `state` is written with it.
    """

    state: SavedState
    position: int
    waits: Waits = Waits()
    size: int = 0
    share: Share = Share()


@dataclass(eq=False)
class Snapshot:
    """One snapshot of the job: complete when no task is awaited any more.

    awaited    how many writes of each task are not yet safe
    aligning   the longest that a task has waited for its barriers, from the first to the last (ns)
    """

    number: int
    begun: int
    awaited: Counter[TaskView]
    aligning: int = 0
    parts: dict[TaskView, Part] = field(default_factory=dict)


class Member:
    """One task of the job: the log that it reads, its inputs and their barriers, its part in snapshots. The
    data plane notes what comes, and records what belongs to an unaligned snapshot.

    backing    what the store has of its `state`
    come       channels whose barrier has come: what follows on them is set aside
    barrier    number of the newest snapshot of which it has seen a barrier
    turned     positions of inputs whose overtaking barrier has had its turn
    copied     with overtaking barriers: the state was copied; None: the task has not taken part
    """

    def __init__(self, job: Job, task: BoltTask, overtakes: bool = False) -> None:
        """``overtakes``: its barriers may overtake what waits."""
        self._job, self.task, self._plane = job, task, job.plane
        self._spouts = {c.position for c in task.inputs if not isinstance(c.up, BoltTask)}
        self._bolts = {c.position for c in task.inputs} - self._spouts
        self.reads_log = len(self._spouts) > 0
        self._log: TaskLog | None = None
        if job.needs.log and self.reads_log:
            self._log = TaskLog(job.plane, task, [wire for wire in task.inputs if wire.logged])
        self.backing = Backing(task)
        self._come: set[int] = set()
        self._begin(0)
        if overtakes:
            task.c.bounded |= self._plane.lib.OVERTAKES
            self._plane.log(task.c.recorded)
        self._aligning_since = 0
        self._number = 0
        """Of the newest snapshot that the task is in."""
        self._emitted: dict[int, list[Effects]] = defaultdict(list)
        """Windows emitted since the last complete snapshot, by the newest one that the task was in then."""
        self._saved = Waits()
        self._again: list[Train] = []
        """What it will read again when the job runs."""

    # -- barriers --------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> None:
        self._barrier = number
        self._turned: set[int] = set()
        self.copied: bool | None = None

    def _reaches(self, number: int) -> None:
        """A barrier of this snapshot is there: it may be the first."""
        self._plane.lib.plane_notice(self._plane.p, self.task.number, number)
        if number > self._barrier:
            self._begin(number)

    def aligned(self, number: int, message: Train | None) -> bool:
        """A barrier has its turn (None: that of the sources); returns whether it was the last one. If not,
        what is behind it on its channel is set aside.
        """
        self._reaches(number)
        if not self._come:
            self._aligning_since = self._job.kernel.now
        self._come.update(self._channels_of(message))
        if len(self._come) == len(self.task.inputs):
            return True
        for position in self._come:
            self.task.inputs[position].c.blocked = 1
        self._plane.lib.plane_block(self._plane.p, self.task.number, self._job.kernel.now)
        return False

    def overtaken(self, number: int, message: Train | None) -> None:
        """A barrier that overtakes has its turn (None: that of the sources)."""
        self._reaches(number)
        if not self._turned:
            self._aligning_since = self._job.kernel.now
        self._turned |= self._channels_of(message)

    def _channels_of(self, message: Train | None) -> set[int]:
        if message is None:
            return set(self._spouts)
        # with a single input messages do not carry their channel
        return {int(message.column(CHANNEL)[0])} if len(self.task.inputs) > 1 else self._bolts

    def gives_up_aligning(self) -> bool:
        """It is time to overtake; returns whether the task waits for barriers, and has to take part now."""
        self._turned |= self._come
        return bool(self._come)

    def overtake_line(self, snapshot: Snapshot) -> int:
        """The barrier, if it is still in the line, leaves it ahead of what waits there, which is part of the
        snapshot then; returns the bytes of that. Older ones, which mean nothing any more, go with it.
        """
        line = self._plane.rows(self.task.c.line.messages)
        mine = (line["mark"] == BARRIER) & (line["key"] == snapshot.number)
        if self._barrier != snapshot.number or not mine.any():
            return 0
        before = line[: mine.argmax()]
        waits = Waits(line=_some(before[before["mark"] != BARRIER]))
        size = waits.size(self.task)
        snapshot.parts[self.task] = snapshot.parts[self.task]._replace(waits=waits, size=size)
        self.task.send_barrier_ahead(snapshot.number)
        return size

    def take_part(self, snapshot: Snapshot) -> Part:
        """All barriers are here, or the first that overtakes: what the task contributes. Then it hands the
        barrier on.
        """
        waits = Waits()
        if self.task.hurries:
            self.copied = False
            self.task.c.records = 1
            line = self._plane.rows(self.task.c.line.messages)
            waits = Waits(_some(self.task.ahead()), _some(line[line["mark"] != BARRIER]))
        position = 0 if self._log is None else self._log.position
        part = Part(SavedState.of(self.task), position, waits, share=self.backing.to_write())
        snapshot.parts[self.task] = part
        self._number = snapshot.number
        snapshot.aligning = max(snapshot.aligning, self._job.kernel.now - self._aligning_since)
        return part

    def whole(self, snapshot: Snapshot) -> Part | None:
        """Its part, with what came before its channel's barrier when the task had taken part; None: the state
        is not copied, or not all barriers have come.
        """
        if not self.copied or len(self._turned) < len(self.task.inputs):
            return None
        part = snapshot.parts[self.task]
        recorded = _some(self._plane.read(self.task.c.recorded))
        waits = replace(part.waits, queue=part.waits.queue + recorded)
        part = snapshot.parts[self.task] = part._replace(waits=waits, size=waits.size(self.task))
        return part

    def let_go(self) -> None:
        """No barrier of the snapshot means anything any more."""
        self._plane.lib.plane_forget_barriers(self._plane.p, self.task.number)
        self._begin(self._barrier)
        self.unblock()

    def unblock(self) -> None:
        """What was set aside arrives now; or, if the task takes in nothing, when it does."""
        self._come.clear()
        self._plane.lib.plane_unblock(self._plane.p, self.task.number, self._job.kernel.now)

    def window_emitted(self, parts: list[Effects]) -> None:
        self._emitted[self._number] += parts

    # -- rollback --------------------------------------------------------------------------------------------

    def completed(self, number: int, part: Part) -> None:
        """Snapshot ``number``, with this part, is what the task will go back to."""
        if self._log is not None:
            self._log.trim(part.position)
        self.backing.counts(part.share)
        self._saved = part.waits
        for old in [n for n in self._emitted if n < number]:
            del self._emitted[old]

    def store_lost(self) -> None:
        self._saved, self.backing = Waits(), Backing(self.task)

    def roll_back(self, part: Part) -> None:
        """The job has stopped: connections are closed, the log and the windows go back to the last complete
        snapshot, where the task had this ``part``.
        """
        task, job = self.task, self._job
        self.let_go()
        for channel in task.inputs:
            if isinstance(channel.up, BoltTask):
                job.context.destroy(task, channel.cut())
        for windows in self._emitted.values():
            for parts in windows:  # their tuples come again, and will be in the same windows
                job.say.void(task.component, parts.uid, task.replica)
        self._emitted.clear()
        task.windows.reopen(part.state.newest)
        if self._log is not None:
            self._read_since()
        for down, train in part.waits.at(task):
            job.say.reopened(down, train)

    def _read_since(self) -> None:
        """What has been read since the complete snapshot waits in the log."""
        assert self._log is not None
        again = self._log.done()
        self._log.go_back()
        if again.n:
            self._job.say.reopened(self.task, without_markers(again))
            self._again.append(again)

    def read_again(self, part: Part) -> int:
        """The job runs again: what is in the log above the snapshot is there at once, in order, behind what
        the ``part`` has of the queue; returns how many of these messages had been read before.
        """
        self.backing.restored()
        again, self._again = self._again, []
        for train in again:
            self._job.say.replayed(self.task, without_markers(train), None)
        for in_line, found in enumerate((part.waits.queue, part.waits.line)):
            for rows in found:
                self.task.put_back(rows, bool(in_line))
        self.task.gate.open()
        return sum(train.n for train in again)

    @property
    def trimmed(self) -> int:
        """Messages that the log has no more."""
        return 0 if self._log is None else self._log.start

    def copies(self) -> list[tuple[Component, Train]]:
        """Tuples that have been read, or were overtaken, and may be served again, and where."""
        read = [] if self._log is None else [(self.task.component, self._log.tuples())]
        saved = ((down.component, train) for down, train in self._saved.at(self.task))
        return [*read, *((component, train) for component, train in saved if component.anchored)]


@dataclass(frozen=True)
class Schedule:
    """When snapshots are taken (ns).

    interval    distance of two triggers; the first comes after ``first``
    min_pause   least time from the end of a snapshot to the next trigger
    timeout     a snapshot that takes longer is abandoned
    """

    interval: int
    first: int
    min_pause: int
    timeout: int


class Coordinator:
    """Triggers snapshots: one at a time, and at once after the last if that took longer than the interval.

    insert     puts a new snapshot's barriers into the sources
    completed  is told of each that is complete
    complete   the newest of these; None: there is none yet
    """

    def __init__(
        self,
        job: Job,
        members: dict[TaskView, Member],
        schedule: Schedule,
        insert: Callable[[Snapshot], None],
        completed: Callable[[Snapshot], None],
    ) -> None:
        self._job, self._kernel = job, job.kernel
        self._members, self._schedule = members, schedule
        self._insert, self._completed = insert, completed
        self.under_way: Snapshot | None = None
        self.complete: Snapshot | None = None
        self._plans = Plans(job.kernel)
        self._triggered = 0
        self._triggered_at = -1
        self._wanted = False
        """A trigger has fallen due that must wait: for the end of the last snapshot, or for the pause."""
        self._earliest = 0

    def start(self, first: int) -> None:
        """The job runs; the first trigger is at ``first``."""
        self._plans.void()
        self._wanted = False
        self._earliest = 0
        self._next(first)

    def stop(self) -> None:
        """Nothing is triggered until ``start``; a snapshot under way is interrupted, and does not count."""
        self._plans.void()
        self.under_way = None

    def _next(self, when: int) -> None:
        def due() -> None:
            self._next(when + self._schedule.interval)
            if self._triggered_at < when and not self._wanted:
                self._wanted = True
                if self.under_way is not None:
                    return
                if self._earliest > self._kernel.now:
                    self._plans.at(self._earliest, Rank.CHECKPOINT, self._trigger)
                else:
                    self._trigger()

        self._plans.at(when, Rank.CHECKPOINT, due)

    def _trigger(self) -> None:
        self._wanted = False
        self._triggered += 1
        self._triggered_at = self._kernel.now
        snapshot = self.under_way = Snapshot(self._triggered, self._kernel.now, Counter(list(self._members)))
        self._plans.after(self._schedule.timeout, Rank.ROTATION, lambda: self._expired(snapshot))
        self._step("snapshot triggered")
        self._insert(snapshot)

    def after(self, delay: int, snapshot: Snapshot, action: Callable[[Snapshot], None]) -> None:
        """So long after now call ``action``, when everything has been moved, if the snapshot is under way."""

        def due() -> None:
            if self.waits_for(snapshot):
                self._kernel.advance()
                action(snapshot)

        self._plans.after(delay, Rank.ROTATION, due)

    def waits_for(self, snapshot: Snapshot) -> bool:
        """Whether it is under way: neither complete, nor abandoned, nor interrupted."""
        return self.under_way is snapshot

    def acknowledge(self, task: TaskView, snapshot: Snapshot) -> None:
        """A task's part is safe; when all are, the snapshot is what the job goes back to."""
        self._job.step(task.name, "part acknowledged", f"snapshot {snapshot.number}", "coordinator")
        snapshot.awaited[task] -= 1
        if not snapshot.awaited[task]:
            del snapshot.awaited[task]
        if self.waits_for(snapshot) and not snapshot.awaited:
            self.complete = snapshot
            self._job.hooks.moved(self._kernel.now)  # what the logs keep has its peak now
            for each, member in self._members.items():
                member.completed(snapshot.number, snapshot.parts[each])
            self._job.say.snapshot(snapshot.begun, self._kernel.now, snapshot.aligning)
            self._ended("snapshot complete")
            self._completed(snapshot)

    def _expired(self, snapshot: Snapshot) -> None:
        """It takes too long: its barriers, where they still are, mean nothing."""
        if self.waits_for(snapshot):
            self._kernel.advance()
            for member in self._members.values():
                member.let_go()
            self._ended("snapshot abandoned")

    def _ended(self, how: str) -> None:
        self._step(how)
        self.under_way = None
        self._earliest = self._kernel.now + self._schedule.min_pause
        if self._wanted:
            self._plans.at(self._earliest, Rank.CHECKPOINT, self._trigger)

    def part(self, task: TaskView) -> Part:
        """A task's part of the complete snapshot; where there is none yet, the beginning."""
        if self.complete is None:
            return Part(SavedState.at_the_beginning(self._members[task].task), 0)
        return self.complete.parts[task]

    def store_lost(self) -> None:
        """The store has nothing any more: a snapshot under way is abandoned; of the complete one is left how
        far tasks had read.
        """
        if self.under_way is not None:
            self._expired(self.under_way)
        if self.complete is not None:
            parts = self.complete.parts
            for task, member in self._members.items():
                parts[task] = Part(parts[task].state.emptied(), parts[task].position)
                member.store_lost()

    def _step(self, what: str) -> None:
        assert self.under_way is not None
        self._job.step("coordinator", what, f"snapshot {self.under_way.number}")


class GlobalRollback(Mechanism, CopyHolder):
    """At each trigger a barrier goes in where sources are read; a task aligns its inputs' barriers, hands
    them on, and snapshots its state (in this order, as Flink does). Any failure stops the whole job: every
    task goes back to the last complete snapshot, and the sources are read again from there. A snapshot under
    way is interrupted, and does not count.

    uploading   time until a task's snapshot is durable after the store has it (ns); the task works on
    patience    so long after the trigger barriers overtake what waits (ns); None: never
    sink        what tasks put out between two snapshots is a transaction, which is committed when the second
                one is complete; None: readers see it at once
    copies      of what tasks save, which they look for first when they restart; None: there are none
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
        super().__init__(job)
        self._schedule, self._costs, self._uploading, self._patience = schedule, costs, uploading, patience
        self._sink, self._copies = sink, copies
        overtakes = patience is not None
        self._members: dict[TaskView, Member] = {t: Member(job, t, overtakes) for t in job.bolt_tasks}
        self._coordinator = Coordinator(job, self._members, schedule, self._insert, self._completed)
        if costs.saving or costs.saving_entry:
            job.context.rhythm = lambda: schedule.interval
        self._outage: OutageView | None = None
        """The newest that has stopped the job."""
        self._cut_short: frozenset[int] = frozenset()
        """Numbers of the outages that a newer one has overtaken before all was replayed."""
        self._last = job.bolt_tasks[-1]
        self._trimmed = 0
        """Messages that the logs have no more."""

    def start(self) -> None:
        self._coordinator.start(self._schedule.first)

    # -- barriers flow with the data; what is behind one on its channel waits for the others -----------------

    def _insert(self, snapshot: Snapshot) -> None:
        for task, member in self._members.items():
            member.task.hurries = self._patience == 0
            if member.reads_log:
                align = partial(self._align, task, snapshot.number, None)
                # what waits is still in the log, behind the barrier; without a log it was sent before it
                member.task.enqueue(Rank.CHECKPOINT, align, first=self._job.needs.log)
        if self._patience:
            self._coordinator.after(self._patience, snapshot, self._lose_patience)

    def _lose_patience(self, snapshot: Snapshot) -> None:
        """From now on barriers overtake; first each task looks what its own wait for, or behind."""
        for task, member in self._members.items():
            member.task.hurries = True
            # none acts here: what one task sends at its turn comes before the turn of the next
            member.task.queue.markers_first()
            member.task.enqueue(Rank.CHECKPOINT, partial(self._switch, task, snapshot), first=True)

    def _switch(self, task: TaskView, snapshot: Snapshot) -> None:
        """A task that is aligning takes part; of one that has, the barrier leaves the line."""
        if not self._coordinator.waits_for(snapshot):
            return
        member = self._members[task]
        if task in snapshot.parts:
            if size := member.overtake_line(snapshot):
                snapshot.awaited[task] += 1
                self._save(task, snapshot, size, whole=False)
        elif member.gives_up_aligning():
            self._take_part(task, snapshot)
            member.unblock()

    def barrier(self, task: BoltView, message: Train) -> None:
        self._align(task, int(message.key[0]), message)

    def _align(self, task: TaskView, number: int, message: Train | None) -> None:
        snapshot, member = self._coordinator.under_way, self._members[task]
        if snapshot is None or snapshot.number != number:
            return
        if member.task.hurries:
            member.overtaken(number, message)
            if task not in snapshot.parts:
                self._take_part(task, snapshot)
            self._write(task, snapshot)
        elif member.aligned(number, message):
            self._take_part(task, snapshot)

    def _take_part(self, task: TaskView, snapshot: Snapshot) -> None:
        """With the last barrier, or with the first that goes ahead of what waits."""
        member, number = self._members[task], snapshot.number
        self._job.step(task.name, "part taken", f"snapshot {number}")
        part = member.take_part(snapshot)
        if self._sink is not None:
            self._sink.pre_commit(task, number)
        hurries, keeps_state = member.task.hurries, task.component.keeps_state
        (member.task.send_barrier_ahead if hurries else member.task.send_barrier)(number)
        costs = self._costs
        copying = costs.saving + (part.state.entries + part.share.entries) * costs.saving_entry
        if hurries:
            self._copy(task, snapshot, copying if keeps_state else 0)
            return
        if keeps_state:
            self._save(task, snapshot, self._state_size(part) + part.size, copying)
        else:
            self._coordinator.acknowledge(task, snapshot)
        member.let_go()

    def _copy(self, task: TaskView, snapshot: Snapshot, copying: int) -> None:
        """The state of a task is copied, in so many ns, while more of its part may come."""
        member, kernel = self._members[task], self._job.kernel
        member.task.occupy(copying)

        def copied() -> None:
            if self._coordinator.waits_for(snapshot):
                member.copied = True
                self._write(task, snapshot)

        if copying:
            kernel.at(kernel.now + copying, Rank.CHECKPOINT, copied, task.number)
        else:
            member.copied = True

    def _write(self, task: TaskView, snapshot: Snapshot) -> None:
        """Write a task's part when the last barrier has come, and the state is copied."""
        part = self._members[task].whole(snapshot)
        if part is None:
            return
        if part.size or task.component.keeps_state:
            self._save(task, snapshot, self._state_size(part) + part.size)
        else:
            self._coordinator.acknowledge(task, snapshot)

    def _state_size(self, part: Part) -> int:
        return part.state.entries * self._costs.entry_size + part.share.size

    def _save(
        self, task: TaskView, snapshot: Snapshot, size: int, copying: int = 0, whole: bool = True
    ) -> None:
        """Copy a task's state, and write so many bytes of its part; not ``whole``: none of them is state."""
        wanted = partial(self._coordinator.waits_for, snapshot)
        safe = partial(self._coordinator.acknowledge, task, snapshot)
        copy = None
        if whole and self._copies is not None and task.component.keeps_state:
            state_size = self._state_size(snapshot.parts[task])
            copy = partial(self._copies.write, task, snapshot.number, state_size)
        store = self._job.store_named(self._costs.store)
        save(self._job, self._bolt(task), copying, size, wanted, safe, self._uploading, store, copy)

    def _completed(self, snapshot: Snapshot) -> None:
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

    @property
    def _number(self) -> int:
        """Of the last complete snapshot; 0: there is none yet."""
        return self._coordinator.complete.number if self._coordinator.complete is not None else 0

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task.component.anchored and task not in self._job.context.withheld:
            self._members[task].window_emitted(parts)
        return 0

    # -- a failure stops the whole job -----------------------------------------------------------------------

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            return  # producers fall silent; the log has what they have sent
        if self._outage is not outage:
            self._cut_short |= {old.number for old in outage.overtakes}
            self._outage = outage
            self._coordinator.stop()
        self._members[task].roll_back(self._coordinator.part(task))
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
        saved = [t for t in self._job.bolt_tasks if t.component.keeps_state or self._coordinator.part(t).size]
        store = self._job.store_named(costs.store)
        left = 0

        def restored() -> None:
            nonlocal left
            left -= 1
            if left <= 0 and self._outage is outage:
                self._run(outage)

        for task in saved:
            part = self._coordinator.part(task)
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
            restore(self._job, task, self._coordinator.part(task).state, outage)
        again = sum(member.read_again(self._coordinator.part(task)) for task, member in self._members.items())
        self._job.step("job", "runs again", f"reads {again} messages once more")
        self._coordinator.start(self._job.kernel.now + self._schedule.interval)
        self._commit()

    # -- what the accounts ask -------------------------------------------------------------------------------

    def moved(self, now: int) -> None:
        p = self._job.plane.p
        self._job.say.kept(int(self._job.plane.lib.plane_come(p, p.now)) - self._trimmed)

    def store_lost(self, store: str | None) -> None:
        if store == self._costs.store:
            self._coordinator.store_lost()

    def effects(self) -> list[tuple[Component, Ints]]:
        complete = self._coordinator.complete
        parts = {} if complete is None else complete.parts
        return [(t.component, p.state.effects()) for t, p in parts.items() if p.state.state is not None]

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
