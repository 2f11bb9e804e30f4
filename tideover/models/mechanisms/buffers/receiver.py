"""The receiver's side of upstream buffers: each message is let in once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tideover.models.mechanisms.buffers.upstream_buffer import (
    CHANNEL,
    END_OF_REPLAY,
    NUMBER,
    RECOVERY,
    UpstreamBuffer,
)
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Mask
from tideover.sim.link import Channel
from tideover.sim.node import Action
from tideover.sim.train import Ints, Train


class Receiver:
    """What one task takes from its buffered channels. A replay belongs to one recovery of the task.

    step   time that a sender takes for each message that it replays (ns)
    """

    def __init__(self, job: Job, task: BoltTask, buffers: Mapping[int, UpstreamBuffer], step: int) -> None:
        self._job = job
        self.task = task
        self.step = step
        self.buffers = buffers
        """By the position of the channel among the task's inputs."""
        senders: dict[tuple[str, int], set[int]] = {}
        for position, buffer in buffers.items():
            up = job.tasks[buffer.channel.up.number]
            senders.setdefault((up.component.name, up.index), set()).add(position)
        self._senders = list(senders.values())
        """The channels of each task that sends here: one, or one from each of its replicas."""
        self.positions = dict.fromkeys(buffers, 0)
        """Newest number processed on each channel."""
        self.recovery = 0
        """Counts recoveries: replays that belong to an earlier one are stale."""
        self._restoring = False
        self._brought = dict(self.positions)
        """Newest number on each channel that the checkpoint holds or this recovery's replay has brought."""
        self._waiting: set[int] = set()
        """Channels whose end-of-replay marker has not arrived: their direct messages will come again."""
        self._unfinished: set[int] = set()
        """Channels whose end-of-replay marker has not been processed."""
        task.sieve = self

    def save(self) -> Action:
        """Remember what moving data changes; returns what brings that back."""
        names = ("positions", "_brought", "_waiting", "_unfinished")
        kept = {name: getattr(self, name).copy() for name in names}

        def restore() -> None:
            for name, value in kept.items():
                setattr(self, name, value)

        return restore

    # -- a recovery ------------------------------------------------------------------------------------------

    @property
    def recovering(self) -> bool:
        """From a fault until an end-of-replay marker of each sender, of one of its replicas, has been
        processed.
        """
        return self._restoring or any(channels <= self._unfinished for channels in self._senders)

    @property
    def active(self) -> bool:
        """Whether arrivals may be turned away."""
        return bool(self._unfinished)

    def has_come(self, channel: Channel) -> bool:
        """Whether the replay of a channel has come to its end."""
        return channel.position not in self._waiting

    def begin_recovery(self) -> None:
        """A fault: from now on every channel is to be replayed."""
        self.recovery += 1
        self._restoring = True
        self._waiting = set(self.buffers)
        self._unfinished = set(self.buffers)

    def empty_queue(self) -> None:
        """The task is up, and does nothing until it is restored: throw away what is in its queue, or was held
        for it, and comes again; keep the rest.
        """
        task, now = self.task, self._job.kernel.now
        gate, queue = task.gate, task.start_over()
        gate.aside, gate.held = (
            [rest for train in trains if (rest := self._filter(train.at(now), ~_from_buffer(train))).n]
            for trains in (queue, gate.held)
        )

    def restored(self, positions: Mapping[int, int]) -> None:
        """The state is that of ``positions``: the replay goes on from there."""
        self.positions = dict.fromkeys(self.buffers, 0) | dict(positions)
        self._brought = dict(self.positions)
        self._restoring = False

    # -- messages --------------------------------------------------------------------------------------------

    def passed(self, train: Train) -> None:
        """Messages, markers among them, were processed."""
        number, channel = train.column(NUMBER), train.column(CHANNEL)
        for mine in self.positions:
            newest = number[channel == mine].max(initial=0)
            self.positions[mine] = max(self.positions[mine], int(newest))
        if train.mark is not None and train.mark[-1] == END_OF_REPLAY:
            self._unfinished.discard(int(channel[-1]))

    def let_in(self, channel: Channel, train: Train) -> Train:
        """Messages arrive: stale replays, what the task has, and what will be replayed are dropped."""
        position, number = channel.position, train.column(NUMBER)
        if position not in self.buffers or not self.task.up or not (self._unfinished or train.has(RECOVERY)):
            return train
        recovery = train.column(RECOVERY)
        end = train.column("mark") == END_OF_REPLAY
        replay = (recovery > 0) & ~end
        ours = recovery == self.recovery
        brought = np.maximum.accumulate(
            np.append(self._brought[position], np.where(replay & ours, number, 0))
        )
        self._brought[position] = int(brought[-1])
        keep = np.where(replay | end, ours & (end | (number > brought[:-1])), True)
        if position in self._waiting:
            ends = np.flatnonzero(end & ours)
            until = int(ends[0]) if len(ends) else train.n
            keep[:until] &= (replay | end)[:until]
            if len(ends):
                self._waiting.discard(position)
        return self._filter(train, keep)

    def _filter(self, train: Train, keep: Mask) -> Train:
        out = train.pick(~keep & (train.column("mark") == 0))
        if out.n:
            self.task.turn_away(out)
            lost = self._without_copy(out)
            self.task.tell(self._job.say.copies_lost, self.task, lost)
        return train.pick(keep)

    def _without_copy(self, train: Train) -> Ints:
        """Of messages thrown away for a replay: the uids of those whose sender's buffer is gone."""
        parts = [np.zeros(0, np.int64)]
        first = train.column(RECOVERY) == 0
        for position, buffer in self.buffers.items():
            mine = first & (train.column(CHANNEL) == position)
            number = np.where(mine, train.column(NUMBER), 0)
            parts.append(train.uid[(number > self.positions[position]) & (number <= buffer.gone_to)])
        return np.concatenate(parts)


def _from_buffer(train: Train) -> Mask:
    """Messages that a sender keeps, replays, and the ends of replays."""
    return (train.column(NUMBER) != 0) | (train.column("mark") == END_OF_REPLAY)
