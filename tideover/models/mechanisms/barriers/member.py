"""One task of a job: the log that it reads, where barriers meet, its part in snapshots, its rollback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tideover.models.flow.bolt import FlowBolt
from tideover.models.job.topology import Component
from tideover.models.mechanisms.backing import Backing
from tideover.models.mechanisms.barriers.in_flight import InFlight, Waits
from tideover.models.mechanisms.barriers.snapshot import Part, Snapshot
from tideover.models.mechanisms.source_log import SourceLog
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BARRIER, SENT_BY, BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.sim.arrivals import waiting, when_arrived
from tideover.sim.kernel import Rank
from tideover.sim.line import places
from tideover.sim.plane.plane import CHANNEL
from tideover.sim.train import Train, single


def hand_on(job: Job, task: BoltTask, number: int) -> None:
    """Send the barrier of that number on all channels of a task."""
    if isinstance(task, FlowBolt):
        task.send_barrier(number)
        return
    kernel, line = job.kernel, task.line
    message = single(kernel.now, 0, mark=BARRIER, key=number, **{SENT_BY: task.number})
    for outlet in task.outlets:
        outlet.broadcast(message)
    if line is not None:
        line.close()
    for channel in (c for outlet in task.outlets for replicas in outlet.channels for c in replicas):
        assert isinstance(channel.down, BoltTask)
        turn, order = channel.down.hurry, channel.down.number
        reads = job.context.reads.get(channel.down)
        sent = [(channel, channel.messages + waiting(channel))]
        look = partial(when_arrived, kernel, sent, 0, Rank.CHECKPOINT, turn, order, reads)
        if line is None:
            look()
        else:  # what can leave leaves now
            kernel.at(kernel.now, Rank.CHECKPOINT, look, order, reads)


def hand_ahead(job: Job, task: BoltTask, number: int) -> None:
    """Send it ahead of what waits in the task's line; where it arrives it overtakes what waits."""
    if isinstance(task, FlowBolt):
        task.send_barrier_ahead(number)
        return
    message = single(job.kernel.now, 0, mark=BARRIER, key=number)
    for channel in (c for outlet in task.outlets for replicas in outlet.channels for c in replicas):
        down = channel.down
        assert isinstance(down, BoltTask)
        channel.send(message)
        sent, reads = [(channel, channel.messages)], job.context.reads.get(down)
        when_arrived(job.kernel, sent, 0, Rank.CHECKPOINT, down.hurry, down.number, reads)


class Member:
    """One task of the job: the log that it reads, its inputs and their barriers, its part in snapshots."""

    def __init__(self, job: Job, task: BoltTask, overtakes: bool = False) -> None:
        """``overtakes``: its barriers may overtake what waits."""
        self._job = job
        self.task = task
        self._overtakes = overtakes
        spouts = {c.position for c in task.inputs if not isinstance(c.up, BoltTask)}
        self._bolts = {c.position for c in task.inputs} - spouts
        self._spouts = np.array(sorted(spouts), np.int64)
        self._log = SourceLog()
        self.backing = Backing(task)
        self.in_flight = self._in_flight(sorted(spouts))
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

    def _in_flight(self, spouts: list[int]) -> InFlight:
        return InFlight(self.task, spouts)

    # -- messages come ---------------------------------------------------------------------------------------

    @property
    def reads_log(self) -> bool:
        """Whether a source is read here: some of the inputs come from spouts."""
        return len(self._spouts) > 0

    @property
    def reached_at_once(self) -> list[BoltTask]:
        """Tasks where a barrier may arrive at the instant at which it is handed on, and meet there what has
        come over other channels: it has to come behind all that comes at this instant.
        """
        channels = (c for outlet in self.task.outlets for replicas in outlet.channels for c in replicas)
        downs = [channel.down for channel in channels if not channel.delay]
        return [down for down in downs if isinstance(down, BoltTask) and len(down.inputs) > 1]

    def receive(self, position: int, train: Train) -> Train:
        """Messages arrive over a channel."""
        return train.adding(channel=np.full(train.n, position, np.int64)) if self._told_apart else train

    def admit(self, train: Train) -> Train:
        """Of messages that have arrived: note those of the log, set aside those that a barrier holds up."""
        if self._job.needs.log:
            self._note(self._log.add, self._from_log(train))
        if self._overtakes:
            self._note(self.in_flight.note, train)
        if not self._come:
            return train
        aside = self._held_up(train)
        if aside.any():
            self._note(self.task.gate.aside.append, train.pick(aside))
        return train.pick(~aside)

    def _note(self, tell: Callable[[Train], None], train: Train) -> None:
        """Tell of messages that have come, when it is certain that they have."""
        if self.task.journal is None:
            tell(train)
        else:
            self.task.journal.append(partial(tell, train))

    @property
    def _come(self) -> set[int]:
        """Channels whose barrier of the snapshot under way has come: what follows on them is set aside."""
        return self.task.gate.set_aside

    def _from_log(self, train: Train) -> Train:
        if self._told_apart:
            return train.pick(np.isin(train.column(CHANNEL), self._spouts))
        return train if self.reads_log else train.pick(slice(0, 0))

    def _held_up(self, train: Train) -> npt.NDArray[np.bool_]:
        return np.isin(train.column(CHANNEL), list(self._come))

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
        self.task.gate.aside += self.task.queue.withdraw(self._held_up)

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
        hand_ahead(self._job, self.task, snapshot.number)
        return size

    def _channels_of(self, message: Train | None) -> set[int]:
        if message is None:
            return set(self._spouts.tolist())
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
        if not self._job.needs.log:
            return 0
        waiting = [*self.task.queue.trains(), *self.task.gate.aside]
        return self._log.read - sum(self._from_log(train).n for train in waiting)

    def hand_on(self, snapshot: Snapshot) -> None:
        """Send the snapshot's barrier on all channels."""
        send = hand_ahead if self.task.hurries else hand_on
        send(self._job, self.task, snapshot.number)

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
        if self.task.available:
            aside, self.task.gate.aside = self.task.gate.aside, []
            self.task.queue.refill(aside)

    def window_emitted(self, parts: list[Effects]) -> None:
        """The task has emitted a window of these tuples."""
        self._emitted[self._number] += parts

    # -- rollback --------------------------------------------------------------------------------------------

    def completed(self, number: int, part: Part) -> None:
        """Snapshot ``number``, with this part, is what the task will go back to."""
        self._trim(part.position)
        self.backing.counts(part.share)
        self._saved = part.waits
        for old in [n for n in self._emitted if n < number]:
            del self._emitted[old]

    def _trim(self, position: int) -> None:
        """What is before this in its log it will not read again."""
        self._log.trim(position)

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
                lost = channel.cut()
                channel.give_back(sum(map(places, lost)), job.kernel.now)
                job.context.destroy(task, lost)
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
        again = self._log.rewind()
        self.task.gate.held[:0] = again
        return again

    def read_again(self, part: Part) -> int:
        """The job runs again: what is in the log above the snapshot is there at once, in order, behind what
        the ``part`` has of the queue; returns how many of these messages had been read before.
        """
        self.backing.restored()
        again, self._again = self._again, []
        for train in again:
            self._job.say.replayed(self.task, without_markers(train), None)
        self._give_back(part)
        self.task.gate.open()
        return sum(train.n for train in again)

    def _give_back(self, part: Part) -> None:
        """What its part has of messages is there again."""
        part.waits.give_back(self.task, self._job.kernel.now)

    # -- what the log keeps ----------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Messages in the log that have been read and may be read again, and those that wait in it."""
        return self._log.size + sum(train.n for train in self.task.gate.held) if self.reads_log else 0

    def _log_read(self) -> list[Train]:
        """What it has read of its log, and may read again."""
        return self._log.trains

    def copies(self) -> list[tuple[Component, Train]]:
        """Tuples that have been read, or were overtaken, and may be served again, and where."""
        read = [(self.task.component, without_markers(train)) for train in self._log_read()]
        saved = ((down.component, train) for down, train in self._saved.at(self.task))
        return [*read, *((component, train) for component, train in saved if component.anchored)]
