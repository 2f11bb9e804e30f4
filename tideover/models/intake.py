"""The receiver's side of upstream buffers: each message is let in once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tideover.models.task import BoltTask
from tideover.models.upstream_buffer import END_OF_REPLAY, UpstreamBuffer
from tideover.sim.link import Channel
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.world import World

_BITS = 16
_MASK = (1 << _BITS) - 1
Mask = npt.NDArray[np.bool_]


class Intake:
    """What one task takes from its buffered channels.

    Inside the task a message's ``seq`` holds its number and the position of its channel: number << 16 |
    position, negative if it is a replay. On the wire ``route`` of a replay and of its end marker is the
    recovery's number.
    """

    def __init__(self, world: World, task: BoltTask, buffers: dict[int, UpstreamBuffer]) -> None:
        self._world = world
        self._task = task
        self.buffers = buffers
        """By the position of the channel among the task's inputs."""
        self.positions = dict.fromkeys(buffers, 0)
        """Newest number processed on each channel."""
        self.recovery = 0
        """Counts recoveries: replays that belong to an earlier one are stale."""
        self._waiting: set[int] = set()
        """Channels whose end-of-replay marker has not arrived: their direct messages will come again."""
        self.unfinished: set[int] = set()
        """Channels whose end-of-replay marker has not been processed."""

    def begin_recovery(self) -> None:
        """From now on every channel is to be replayed."""
        self.recovery += 1
        self._waiting = set(self.buffers)
        self.unfinished = set(self.buffers)

    def processed(self, train: Train) -> None:
        """Messages, markers among them, were processed."""
        assert train.seq is not None
        number, position = np.abs(train.seq) >> _BITS, np.abs(train.seq) & _MASK
        for mine in self.positions:
            newest = number[position == mine].max(initial=0)
            self.positions[mine] = max(self.positions[mine], int(newest))

    def receive(self, channel: Channel, train: Train) -> Train:
        """Messages arrive: stale replays, what the checkpoint holds, and what will be replayed are
        dropped.
        """
        if train.seq is None:
            return train
        position, number = channel.position, np.abs(train.seq)
        inside = train.replace(seq=np.sign(train.seq) * (number << _BITS | position), route=None)
        if not self.unfinished and train.route is None:
            return inside
        ours = train.column("route") == self.recovery
        end = train.column("mark") == END_OF_REPLAY
        replay = train.seq < 0
        keep = np.where(replay | end, ours, True) & ~(replay & (number <= self.positions[position]))
        if self._task.up and position in self._waiting:
            ends = np.flatnonzero(end & ours)
            until = int(ends[0]) if len(ends) else train.n
            keep[:until] &= (replay | end)[:until]
            if len(ends):
                self._waiting.discard(position)
        return self._filter(inside, keep)

    def admit(self, train: Train) -> Train:
        """What was held is let in, but for direct messages that the replay will bring."""
        if train.seq is None or not self._waiting:
            return train
        return self._filter(train, ~self._direct(train))

    def empty_queue(self) -> None:
        """Throw away what is in the task's queue and comes again; the rest is kept for when it is
        restored.
        """
        kept = []
        for train in self._task.kept + self._task.clear_queue():
            if train.seq is None:
                kept.append(train)
                continue
            stale = (train.seq < 0) | (train.column("mark") == END_OF_REPLAY)
            kept.append(self._filter(train, ~(stale | self._direct(train))))
        self._task.kept = kept
        self._task.look_again()

    def _direct(self, train: Train) -> Mask:
        """Direct messages of channels that will be replayed."""
        assert train.seq is not None
        return (train.seq > 0) & np.isin(train.seq & _MASK, list(self._waiting))

    def _filter(self, train: Train, keep: Mask) -> Train:
        out = train.pick(~keep & (train.column("mark") == 0))
        if out.n:
            self._world.discarded(self._task, out)
            self._world.lost_effects(self._task, self._without_copy(out))
        return train.pick(keep)

    def _without_copy(self, train: Train) -> Ints:
        """Of messages thrown away for a replay: the uids of those whose sender's buffer is gone."""
        assert train.seq is not None
        parts = [np.zeros(0, np.int64)]
        for position, buffer in self.buffers.items():
            number = np.where((train.seq > 0) & (train.seq & _MASK == position), train.seq >> _BITS, 0)
            parts.append(train.uid[(number > self.positions[position]) & (number <= buffer.gone_to)])
        return np.concatenate(parts)
