"""One task of a job: the log that it reads, where barriers meet, its part in snapshots, its rollback."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from tideover.models.job.topology import Component
from tideover.models.mechanisms.backing import Backing
from tideover.models.mechanisms.barriers.in_flight import InFlight, Waits
from tideover.models.mechanisms.barriers.snapshot import Part, Snapshot
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.log import TaskLog
from tideover.models.runtime.saved_state import SavedState
from tideover.sim.plane.plane import CHANNEL
from tideover.sim.train import Train


class Member:
    """One task of the job: the log that it reads, its inputs and their barriers, its part in snapshots."""

    def __init__(self, job: Job, task: BoltTask, overtakes: bool = False) -> None:
        """``overtakes``: its barriers may overtake what waits."""
        self._job = job
        self.task = task
        spouts = {c.position for c in task.inputs if not isinstance(c.up, BoltTask)}
        self._bolts = {c.position for c in task.inputs} - spouts
        self._spouts = spouts
        self._come: set[int] = set()
        """Channels whose barrier of the snapshot under way has come: what follows on them is set aside."""
        self._plane = job.plane
        self._log: TaskLog | None = None
        if job.needs.log and self.reads_log:
            self._log = TaskLog(job.plane, task, [wire for wire in task.inputs if wire.logged])
        self.backing = Backing(task)
        self.in_flight = InFlight(task, job.plane, overtakes)
        self._told_apart = bool(self._bolts) and len(task.inputs) > 1
        """Whether messages carry the position of their channel."""
        self._aligning_since = 0
        """When the first barrier of the snapshot under way had its turn (ns)."""
        self._number = 0
        """Of the newest snapshot that the task is in."""
        self._emitted: dict[int, list[Effects]] = defaultdict(list)
        """Windows emitted since the last complete snapshot, by the newest one that the task was in then."""
        self._saved = Waits()
        self._again: list[Train] = []
        """What it will read again when the job runs."""

    @property
    def reads_log(self) -> bool:
        """Whether a source is read here: some of the inputs come from spouts."""
        return len(self._spouts) > 0

    # -- barriers --------------------------------------------------------------------------------------------

    def aligned(self, number: int, message: Train | None) -> bool:
        """A barrier has its turn (None: that of the sources); returns whether it was the last one. If not,
        what is behind it on its channel is set aside.
        """
        self.in_flight.reaches(number)
        if not self._come:
            self._aligning_since = self._job.kernel.now
        self._come.update(self._channels_of(message))
        if len(self._come) == len(self.task.inputs):
            return True
        self._set_aside()
        return False

    def _set_aside(self) -> None:
        for position in self._come:
            self.task.inputs[position].c.blocked = 1
        self._plane.lib.plane_block(self._plane.p, self.task.number, self._job.kernel.now)

    def overtaken(self, number: int, message: Train | None) -> None:
        """A barrier that overtakes has its turn (None: that of the sources)."""
        self.in_flight.reaches(number)
        if not self.in_flight.turned:
            self._aligning_since = self._job.kernel.now
        self.in_flight.turned |= self._channels_of(message)

    def gives_up_aligning(self) -> bool:
        """It is time to overtake; returns whether the task waits for barriers, and has to take part now."""
        self.in_flight.turned |= self._come
        return bool(self._come)

    def overtake_line(self, snapshot: Snapshot) -> int:
        """The barrier, if it is still in the line, leaves it ahead of what waits there, which is part of the
        snapshot then; returns the bytes of that.
        """
        waits = self.in_flight.overtake_line() if self.in_flight.number == snapshot.number else None
        if waits is None:
            return 0
        size = self.in_flight.size(waits)
        snapshot.parts[self.task] = snapshot.parts[self.task]._replace(waits=waits, size=size)
        self.task.send_barrier_ahead(snapshot.number)
        return size

    def _channels_of(self, message: Train | None) -> set[int]:
        if message is None:
            return set(self._spouts)
        return {int(message.column(CHANNEL)[0])} if self._told_apart else self._bolts

    def take_part(self, snapshot: Snapshot) -> Part:
        """All barriers are here, or the first that overtakes: what the task contributes."""
        waits = self.in_flight.overtake() if self.task.hurries else Waits()
        part = Part(SavedState.of(self.task), self._position(), waits, share=self.backing.to_write())
        snapshot.parts[self.task] = part
        self._number = snapshot.number
        snapshot.aligning = max(snapshot.aligning, self._job.kernel.now - self._aligning_since)
        return part

    def _position(self) -> int:
        """How far it has read its log (0 without one)."""
        return 0 if self._log is None else self._log.position

    def hand_on(self, snapshot: Snapshot) -> None:
        """Send the snapshot's barrier on all channels."""
        if self.task.hurries:
            self.task.send_barrier_ahead(snapshot.number)
        else:
            self.task.send_barrier(snapshot.number)

    def is_whole(self, snapshot: Snapshot) -> Part:
        """All that belongs to its part is there; returns it."""
        part = snapshot.parts[self.task]
        waits = replace(part.waits, queue=part.waits.queue + self.in_flight.recorded())
        part = snapshot.parts[self.task] = part._replace(waits=waits, size=self.in_flight.size(waits))
        return part

    def let_go(self) -> None:
        """No barrier of the snapshot means anything any more."""
        self.in_flight.stop()
        self.unblock()

    def unblock(self) -> None:
        """What was set aside arrives now; or, if the task takes in nothing, when it does."""
        self._come.clear()
        self._plane.lib.plane_unblock(self._plane.p, self.task.number, self._job.kernel.now)

    def window_emitted(self, parts: list[Effects]) -> None:
        """The task has emitted a window of these tuples."""
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
        """The store has nothing of the task any more."""
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
        again = self._go_back()
        for train in again:
            job.say.reopened(task, without_markers(train))
        for down, train in part.waits.at(task):
            job.say.reopened(down, train)
        self._again += again

    def _go_back(self) -> list[Train]:
        """What has been read since the complete snapshot waits in the log; returns it."""
        if self._log is None:
            return []
        again = self._log.done()
        self._log.go_back()
        return [again] if again.n else []

    def read_again(self, part: Part) -> int:
        """The job runs again: what is in the log above the snapshot is there at once, in order, behind what
        the ``part`` has of the queue; returns how many of these messages had been read before.
        """
        self.backing.restored()
        again, self._again = self._again, []
        for train in again:
            self._job.say.replayed(self.task, without_markers(train), None)
        part.waits.give_back(self.task)
        self.task.gate.open()
        return sum(train.n for train in again)

    # -- what the log keeps ----------------------------------------------------------------------------------

    @property
    def trimmed(self) -> int:
        """Messages that the log has no more."""
        return 0 if self._log is None else self._log.start

    def copies(self) -> list[tuple[Component, Train]]:
        """Tuples that have been read, or were overtaken, and may be served again, and where."""
        read = [] if self._log is None else [(self.task.component, self._log.tuples())]
        saved = ((down.component, train) for down, train in self._saved.at(self.task))
        return [*read, *((component, train) for component, train in saved if component.anchored)]
