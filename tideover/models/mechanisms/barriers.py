"""Snapshots of a whole job by barriers, and the rollback of all its tasks to the last complete one.

`aligned_snapshots` alone uses it, and has the rules in its docstring. What a task has in a snapshot is
`Member`; when snapshots are taken, written and gone back to is `GlobalRollback`.

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
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from tideover.models.job.topology import Component, keys_of
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.checkpoints import Backing, Costs, LocalCopies, Share
from tideover.models.mechanisms.sink_transactions import SinkTransactions
from tideover.models.operators.keyed_state import Owns
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BARRIER, BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import CopyHolder, Mask, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, TaskLog, read, restore, save
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, OutageView, Saver, Stop, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import CHANNEL, Rows
from tideover.sim.train import Ints, Train


class Part(NamedTuple):
    """One task in a snapshot.

    position   messages of its log that it had read
    queue      what its barriers have overtaken there: rows of the data plane, by channels in ``source``
    line       the same in the line of what it sends
    size       bytes of the tuples in these two
    share      what of its `state` is written with it
    """

    state: SavedState
    position: int
    queue: tuple[Rows, ...] = ()
    line: tuple[Rows, ...] = ()
    size: int = 0
    share: Share = Share()

    def at(self, task: BoltTask) -> Iterator[tuple[BoltTask, Train]]:
        """Tuples that were overtaken, and where they wait or go to."""
        for rows in self.queue:
            yield task, without_markers(task.trained(rows))
        for rows in self.line:
            for route in dict.fromkeys(rows["source"].tolist()):
                down = task.wires[route].down
                yield down, without_markers(task.trained(rows[rows["source"] == route]))

    def weighed(self, task: BoltTask) -> Part:
        """The same, with the size that it has now."""
        size = sum(
            wires[way].message_bytes
            for found, wires in ((self.queue, task.inputs), (self.line, task.wires))
            for rows in found
            for way in rows["source"][rows["mark"] == 0].tolist()
        )
        return self._replace(size=size)


def _some(rows: Rows) -> tuple[Rows, ...]:
    return (rows,) if len(rows) else ()


@dataclass(eq=False)
class Snapshot:
    """One snapshot of the job, begun at ``begun`` (ns); complete when no write of a task is awaited any more.

    aligning   the longest that a task has waited for its barriers, from the first to the last (ns)
    last       a savepoint: tasks that have taken part read nothing any more, and the job stops with it
    """

    number: int
    begun: int
    awaited: Counter[TaskView]
    aligning: int = 0
    last: bool = False
    parts: dict[TaskView, Part] = field(default_factory=dict)


class Member:
    """One task of the job: the log that it reads, its inputs and their barriers, its part in snapshots.

    backing   what the store has of its `state`
    copied    with overtaking barriers: the state was copied; None: the task has not taken part
    number    of the newest snapshot that the task is in
    emitted   windows put out since the last complete snapshot, by the newest one that the task was in then
    """

    def __init__(self, job: Job, task: BoltTask, overtakes: bool = False) -> None:
        """``overtakes``: its barriers may overtake what waits."""
        self._job, self.task, self._plane = job, task, job.plane
        self._spouts = {c.position for c in task.inputs if not isinstance(c.up, BoltTask)}
        self._bolts = {c.position for c in task.inputs} - self._spouts
        self.reads_log = len(self._spouts) > 0
        self.log: TaskLog | None = None
        if job.needs.log and self.reads_log:
            self.log = TaskLog(job.plane, task, [wire for wire in task.inputs if wire.logged])
        self.backing = Backing(task)
        self._come: set[int] = set()
        """Positions of inputs whose barrier has come: what follows on them is set aside."""
        self._begin(0)
        if overtakes:
            task.c.bounded |= self._plane.lib.OVERTAKES
            self._plane.log(task.c.recorded)
        self._aligning_since = self.number = 0
        self.emitted: dict[int, list[Effects]] = defaultdict(list)
        self.saved: Part | None = None
        self._still = self._stops = False
        """It reads nothing any more; and what it goes back to is how it stands now."""
        self._again: list[Train] = []

    def _begin(self, number: int) -> None:
        self._barrier = number
        """Number of the newest snapshot of which it has seen a barrier."""
        self._turned: set[int] = set()
        """Positions of inputs whose overtaking barrier has had its turn."""
        self.copied: bool | None = None

    def reaches(self, number: int, message: Train | None, overtakes: bool) -> None:
        """A barrier has its turn (None: that of the sources); it may be the first of this snapshot."""
        self._plane.lib.plane_notice(self._plane.p, self.task.number, number)
        if number > self._barrier:
            self._begin(number)
        come = self._turned if overtakes else self._come
        if not come:
            self._aligning_since = self._job.kernel.now
        if message is None:
            come |= self._spouts
        elif len(self.task.inputs) > 1:
            come.add(int(message.column(CHANNEL)[0]))
        else:  # with a single input messages do not carry their channel
            come |= self._bolts

    def aligned(self, number: int, message: Train | None) -> bool:
        """A barrier that waits for others has its turn: whether it was the last. Its channel is blocked."""
        self.reaches(number, message, overtakes=False)
        if len(self._come) == len(self.task.inputs):
            return True
        for position in self._come:
            self.task.inputs[position].c.blocked = 1
        self._plane.lib.plane_block(self._plane.p, self.task.number, self._job.kernel.now)
        return False

    def stand_still(self) -> None:
        """What comes from now on is set aside, until the job goes down or ``let_go``."""
        self._still = True
        for channel in self.task.inputs:
            channel.c.blocked = 1
        self._plane.lib.plane_block(self._plane.p, self.task.number, self._job.kernel.now)

    def gives_up_aligning(self) -> bool:
        """It is time to overtake; returns whether the task waits for barriers, and has to take part now."""
        self._turned |= self._come
        return bool(self._come)

    def overtake_line(self, snapshot: Snapshot) -> int:
        """The barrier leaves the line, if it is there, ahead of what waits: so many bytes are in the part."""
        line = self._plane.rows(self.task.c.line.messages)
        mine = (line["mark"] == BARRIER) & (line["key"] == snapshot.number)
        if self._barrier != snapshot.number or not mine.any():
            return 0
        before = line[: mine.argmax()]
        part = snapshot.parts[self.task]._replace(queue=(), line=_some(before[before["mark"] != BARRIER]))
        part = snapshot.parts[self.task] = part.weighed(self.task)
        self.task.send_barrier_ahead(snapshot.number)
        return part.size

    def take_part(self, snapshot: Snapshot) -> Part:
        """What the task contributes, before it hands the barrier on."""
        position = 0 if self.log is None else self.log.position
        part = Part(SavedState.of(self.task), position, share=self.backing.to_write())
        if self.task.hurries:
            self.copied = False
            self.task.c.records = 1
            line = self._plane.rows(self.task.c.line.messages)
            part = part._replace(queue=_some(self.task.ahead()), line=_some(line[line["mark"] != BARRIER]))
        snapshot.parts[self.task] = part
        self.number = snapshot.number
        snapshot.aligning = max(snapshot.aligning, self._job.kernel.now - self._aligning_since)
        return part

    def whole(self, snapshot: Snapshot) -> Part | None:
        """Its part, with what came ahead of its channel's barrier; None: not all has come, or is copied."""
        if not self.copied or len(self._turned) < len(self.task.inputs):
            return None
        part = snapshot.parts[self.task]
        part = part._replace(queue=(*part.queue, *_some(self._plane.read(self.task.c.recorded))))
        part = snapshot.parts[self.task] = part.weighed(self.task)
        return part

    def let_go(self) -> None:
        """No barrier of the snapshot means anything any more."""
        self._still = False
        self._plane.lib.plane_forget_barriers(self._plane.p, self.task.number)
        self._begin(self._barrier)
        self.unblock()

    def unblock(self) -> None:
        """What was set aside arrives now; or, if the task takes in nothing, when it does."""
        self._come.clear()
        self._plane.lib.plane_unblock(self._plane.p, self.task.number, self._job.kernel.now)

    def completed(self, number: int, part: Part) -> None:
        """Snapshot ``number``, with this part, is what the task will go back to."""
        if self.log is not None:
            self.log.trim(part.position)
        self.backing.counts(part.share)
        self.saved, self._stops = part, self._still
        for old in [n for n in self.emitted if n < number]:
            del self.emitted[old]

    def roll_back(self, part: Part) -> None:
        """The job has stopped: connections are closed, the log and the windows go back to the last complete
        snapshot, where the task had this ``part``; what has been read since waits in the log.
        """
        task, job = self.task, self._job
        self.let_go()
        for channel in task.inputs:
            if isinstance(channel.up, BoltTask):
                job.context.destroy(task, channel.cut())
        for windows in self.emitted.values():
            for parts in windows:  # their tuples come again, and will be in the same windows
                job.say.void(task.component, parts.uid, task.replica)
        self.emitted.clear()
        task.windows.reopen(part.state.newest)
        if self.log is not None:
            again = self.log.done()
            self.log.go_back()
            if again.n:
                job.say.reopened(task, without_markers(again))
            if again.n and not self._stops:
                self._again.append(again)
        self._stops = False
        for down, train in part.at(task):
            job.say.reopened(down, train)

    def read_again(self, part: Part) -> int:
        """The job runs again: what is in the log above the snapshot is there at once, in order, behind what
        the ``part`` has of the queue; returns how many of these messages had been read before.
        """
        self.backing.restored()
        again, self._again = self._again, []
        for train in again:
            self._job.say.replayed(self.task, without_markers(train), None)
        for in_line, found in enumerate((part.queue, part.line)):
            for rows in found:
                self.task.put_back(rows, bool(in_line))
        self.task.gate.open()
        return sum(train.n for train in again)

    def copies(self) -> list[tuple[Component, Train]]:
        """Tuples that have been read, or were overtaken, and may be served again, and where."""
        read = [] if self.log is None else [(self.task.component, self.log.tuples())]
        overtaken = () if self.saved is None else self.saved.at(self.task)
        saved = ((down.component, train) for down, train in overtaken)
        return [*read, *((component, train) for component, train in saved if component.anchored)]


@dataclass(frozen=True)
class Schedule:
    """When snapshots are taken (ns).

    interval    distance of two triggers; the first comes after ``first``
    min_pause   least time from the end of a snapshot to the next trigger
    timeout     a snapshot that takes longer is abandoned
    patience    so long after the trigger barriers overtake what waits; None: never
    uploading   time until a task's part is durable after the store has it; the task works on
    """

    interval: int
    first: int
    min_pause: int
    timeout: int
    patience: int | None = None
    uploading: int = 0


class GlobalRollback(Mechanism, CopyHolder, Saver):
    """Snapshots by barriers, as Flink takes them; a failure takes the whole job back to a complete one.

    sink     what tasks put out between two snapshots is a transaction; None: readers see it at once
    copies   of what tasks save, which they look for first when they restart
    """

    needs = Needs(log=True, one_job=True)
    steady = True

    def __init__(
        self,
        job: Job,
        schedule: Schedule,
        costs: Costs,
        sink: SinkTransactions | None = None,
        copies: LocalCopies | None = None,
    ) -> None:
        super().__init__(job)
        self._schedule, self._costs, self._sink, self._copies = schedule, costs, sink, copies
        overtakes = schedule.patience is not None
        self._members: dict[TaskView, Member] = {t: Member(job, t, overtakes) for t in job.bolt_tasks}
        self._under_way: Snapshot | None = None
        self._complete: Snapshot | None = None
        """The newest that is; None: there is none yet."""
        self._plans = Plans(job.kernel)
        self._triggered = 0
        self._triggered_at = -1
        self._wanted = False
        """A trigger has fallen due that must wait: for the end of the last snapshot, or for the pause."""
        self._earliest = 0
        job.context.saver = self
        if costs.saving or costs.saving_entry:
            job.context.rhythm = lambda: schedule.interval
        self._outage: OutageView | None = None
        self._cut_short: frozenset[int] = frozenset()
        """Numbers of the outages that a newer one has overtaken before all was replayed."""
        self._last = job.bolt_tasks[-1]
        self._trimmed = 0

    def start(self) -> None:
        self._run_from(self._schedule.first)

    def _run_from(self, first: int) -> None:
        """The job runs; the first trigger is at ``first``."""
        self._plans.void()
        self._wanted = False
        self._earliest = 0
        self._plans.at(first, Rank.CHECKPOINT, partial(self._due, first))

    def _due(self, when: int) -> None:
        after = when + self._schedule.interval
        self._plans.at(after, Rank.CHECKPOINT, partial(self._due, after))
        if self._triggered_at < when and not self._wanted:
            self._wanted = True
            if self._under_way is not None:
                return
            if self._earliest > self._job.kernel.now:
                self._plans.at(self._earliest, Rank.CHECKPOINT, self._trigger_due)
            else:
                self._trigger()

    def save_to_stop(self, stop: Stop) -> bool:
        """A savepoint is a snapshot with aligned barriers, which waits for no pause and is not abandoned; who
        asks while another waits for one has the same.
        """
        self._stops += (stop,)
        if self._under_way is None and len(self._stops) == 1:
            self._trigger()
        return True

    def _trigger_due(self) -> None:
        if self._wanted and self._under_way is None:
            self._trigger()

    def _trigger(self) -> None:
        self._wanted = False
        self._triggered += 1
        now = self._triggered_at = self._job.kernel.now
        last = bool(self._stops)
        snapshot = Snapshot(self._triggered, now, Counter(list(self._members)), last=last)
        self._under_way = snapshot
        if not last:
            self._plans.after(self._schedule.timeout, Rank.ROTATION, lambda: self._abandon(snapshot))
        self._step("savepoint triggered" if last else "snapshot triggered")
        patience = None if last else self._schedule.patience
        for task, member in self._members.items():
            member.task.hurries = patience == 0
            if member.reads_log:
                align = partial(self._align, task, snapshot.number, None)
                # what waits is still in the log, behind the barrier; without a log it was sent before it
                member.task.enqueue(Rank.CHECKPOINT, align, first=self._job.needs.log)
        if patience:
            self._plans.after(patience, Rank.ROTATION, lambda: self._lose_patience(snapshot))

    def _acknowledge(self, task: TaskView, snapshot: Snapshot) -> None:
        """A task's part is safe; when all are, the snapshot is what the job goes back to."""
        number = snapshot.number
        self._job.step(task.name, "part acknowledged", f"snapshot {number}", "coordinator")
        snapshot.awaited[task] -= 1
        if not snapshot.awaited[task]:
            del snapshot.awaited[task]
        if snapshot is not self._under_way or snapshot.awaited:
            return
        self._complete = snapshot
        self._job.hooks.moved(self._job.kernel.now)  # what the logs keep has its peak now
        for each, member in self._members.items():
            member.completed(number, snapshot.parts[each])
        self._job.say.snapshot(snapshot.begun, self._job.kernel.now, snapshot.aligning)
        self._ended("snapshot complete")
        logs = [member.log for member in self._members.values()]
        self._trimmed = sum(log.start for log in logs if log is not None)
        self._commit()
        if self._copies is not None:
            for each in self._members:
                self._copies.counts(each, number)
        if snapshot.last:
            self._plans.void()
            self._plans.after(0, Rank.BATCH, self.stop_all)

    def _commit(self) -> None:
        """What was put out up to the last complete snapshot is there for good."""
        if self._sink is not None:
            for task in self._members:
                self._sink.commit(task, self._number)

    def _abandon(self, snapshot: Snapshot) -> None:
        """It takes too long: its barriers, where they still are, mean nothing."""
        if snapshot is self._under_way:
            self._job.kernel.advance()
            for member in self._members.values():
                member.let_go()
            self._ended("snapshot abandoned")
            if snapshot.last:
                self.stop_none()

    def _ended(self, how: str) -> None:
        self._step(how)
        assert self._under_way is not None
        was_last, self._under_way = self._under_way.last, None
        self._earliest = self._job.kernel.now + self._schedule.min_pause
        if self._stops and not was_last:
            self._plans.after(0, Rank.CHECKPOINT, self._trigger)
        elif self._wanted:
            self._plans.at(self._earliest, Rank.CHECKPOINT, self._trigger_due)

    def _step(self, what: str) -> None:
        assert self._under_way is not None
        self._job.step("coordinator", what, f"snapshot {self._under_way.number}")

    @property
    def _number(self) -> int:
        """Of the last complete snapshot; 0: there is none yet."""
        return self._complete.number if self._complete is not None else 0

    def _part(self, task: TaskView) -> Part:
        """A task's part of the complete snapshot; where there is none yet, the beginning."""
        if self._complete is None:
            return Part(SavedState.at_the_beginning(self._bolt(task)), 0)
        return self._complete.parts[task]

    # -- barriers flow with the data; what is behind one on its channel waits for the others -----------------

    def _lose_patience(self, snapshot: Snapshot) -> None:
        """From now on barriers overtake; first each task looks what its own wait for, or behind."""
        if snapshot is not self._under_way:
            return
        self._job.kernel.advance()
        for task, member in self._members.items():
            member.task.hurries = True
            # none acts here: what one task sends at its turn comes before the turn of the next
            member.task.queue.markers_first()
            member.task.enqueue(Rank.CHECKPOINT, partial(self._switch, task, snapshot), first=True)

    def _switch(self, task: TaskView, snapshot: Snapshot) -> None:
        """A task that is aligning takes part; of one that has, the barrier leaves the line."""
        if snapshot is not self._under_way:
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
        snapshot, member = self._under_way, self._members[task]
        if snapshot is None or snapshot.number != number:
            return
        if member.task.hurries:
            member.reaches(number, message, overtakes=True)
            if task not in snapshot.parts:
                self._take_part(task, snapshot)
            self._write(task, snapshot)
        elif member.aligned(number, message):
            self._take_part(task, snapshot)

    def _take_part(self, task: TaskView, snapshot: Snapshot) -> None:
        """With the last barrier, or the first that overtakes: then more may come while state is copied."""
        member, number, kernel = self._members[task], snapshot.number, self._job.kernel
        self._job.step(task.name, "part taken", f"snapshot {number}")
        part = member.take_part(snapshot)
        if self._sink is not None:
            self._sink.pre_commit(task, number)
        costs, copying = self._costs, 0
        if self._keeps(task):
            copying = costs.saving + (part.state.entries + part.share.entries) * costs.saving_entry
        if not member.task.hurries:
            member.task.send_barrier(number)
            if snapshot.last:
                member.stand_still()
            self._save(task, snapshot, self._state_size(part), copying)
            if not snapshot.last:
                member.let_go()
            return
        member.task.send_barrier_ahead(number)
        member.task.occupy(copying)

        def copied() -> None:
            if snapshot is self._under_way:
                member.copied = True
                self._write(task, snapshot)

        if copying:
            kernel.at(kernel.now + copying, Rank.CHECKPOINT, copied, task.number)
        else:
            member.copied = True

    def _write(self, task: TaskView, snapshot: Snapshot) -> None:
        """Write a task's part when the last barrier has come, and the state is copied."""
        part = self._members[task].whole(snapshot)
        if part is not None:
            self._save(task, snapshot, self._state_size(part) + part.size)

    def _keeps(self, task: TaskView) -> bool:
        """Whether a task has state to save."""
        return task.component.keeps_state and not self._members[task].task.idle

    def _state_size(self, part: Part) -> int:
        return part.state.entries * self._costs.entry_size + part.share.size

    def _save(
        self, task: TaskView, snapshot: Snapshot, size: int, copying: int = 0, whole: bool = True
    ) -> None:
        """Copy a task's state, and write so many bytes of its part; not ``whole``: none of them is state."""
        if not (size or self._keeps(task)):
            self._acknowledge(task, snapshot)
            return
        copy = None
        if whole and self._copies is not None and self._keeps(task):
            state_size = self._state_size(snapshot.parts[task])
            copy = partial(self._copies.write, task, snapshot.number, state_size)
        wanted, safe = lambda: snapshot is self._under_way, partial(self._acknowledge, task, snapshot)
        into, uploading = self._job.store_named(self._costs.store), self._schedule.uploading
        save(self._job, self._bolt(task), copying, size, wanted, safe, uploading, into, copy)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task.component.anchored and task not in self._job.context.withheld:
            member = self._members[task]
            member.emitted[member.number] += parts
        return 0

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        if self._outage is not outage:
            self._cut_short |= {old.number for old in outage.overtakes}
            self._outage = outage
            self._plans.void()
            self._under_way = None
            self.stop_none()
        self._members[task].roll_back(self._part(task))
        if self._sink is not None:
            self._sink.roll_back(task, self._number)
        if self._copies is not None:
            self._copies.failed(task)

    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None:
        """Every task restores its part; when the last has it, the job runs."""
        task.gate.closed = True
        if task is self._last:
            self._restore(outage)

    def _restore(self, outage: OutageView) -> None:
        costs, kernel = self._costs, self._job.kernel
        saved = [t for t in self._job.bolt_tasks if self._keeps(t) or self._part(t).size]
        store = self._job.store_named(costs.store)
        left = 0

        def restored() -> None:
            nonlocal left
            left -= 1
            if left <= 0 and self._outage is outage:
                self._run(outage)

        for task in saved:
            part, share = self._part(task), self._members[task].backing.to_read()
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
            restore(self._job, task, self._part(task).state, outage)
        again = sum(member.read_again(self._part(task)) for task, member in self._members.items())
        self._job.step("job", "runs again", f"reads {again} messages once more")
        self._run_from(self._job.kernel.now + self._schedule.interval)
        self._commit()

    def moved(self, now: int) -> None:
        p = self._job.plane.p
        self._job.say.kept(int(self._job.plane.lib.plane_come(p, p.now)) - self._trimmed)

    def rescale(self, component: Component, working: int) -> None:
        """Each task takes from the parts of all what has the keys that are its own from now on."""
        job, found = self._job, self._complete
        assert found is not None
        members = [m for m in self._members.values() if m.task.component is component]
        old = [found.parts[m.task].state for m in members]
        owners = component.inputs[0].owners(component.input_keys, working)
        uid = np.unique(np.concatenate([state.effects() for state in old]))
        keys = keys_of(job.topology, job.draws, component, uid)

        def are_mine(mine: Owns, some: Ints) -> Owns:
            return mine[keys[uid.searchsorted(some)]]

        for index, member in enumerate(members):
            task, part = member.task, found.parts[member.task]
            if part.state.state is not None and owners is not None:
                mine = owners == index
                state = part.state.gathered(old, mine, partial(are_mine, mine))
                member.saved = found.parts[task] = part._replace(state=state)
            task.working = working
            if self._copies is not None:
                self._copies.forget(task)
        for up in job.tasks:
            for outlet in up.outlets:
                if outlet.edge.down is component:
                    outlet.c.working = working
        job.step("job", "parallelism changed", f"{component.name}: {working} tasks")

    def store_lost(self, store: str | None) -> None:
        """A snapshot under way is abandoned; of the complete one is left how far tasks had read."""
        if store != self._costs.store:
            return
        if self._under_way is not None:
            self._abandon(self._under_way)
        if self._complete is not None:
            parts = self._complete.parts
            for task, member in self._members.items():
                parts[task] = Part(parts[task].state.emptied(), parts[task].position)
                member.saved, member.backing = None, Backing(member.task)

    def effects(self) -> list[tuple[Component, Ints]]:
        parts = {} if self._complete is None else self._complete.parts
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
