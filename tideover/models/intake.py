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
        self.task = task
        self.buffers = buffers
        """By the position of the channel among the task's inputs."""
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

    # -- a recovery ------------------------------------------------------------------------------------------

    @property
    def recovering(self) -> bool:
        """From a fault until the last channel's end-of-replay marker has been processed."""
        return self._restoring or bool(self._unfinished)

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
        task, now = self.task, self._world.kernel.now
        task.interrupt()
        waiting = task.kept + task.clear_queue() + task.held
        waiting = [train.replace(time=np.full(train.n, now, np.int64)) for train in waiting]
        task.kept, task.held = [self._filter(train, ~_from_buffer(train)) for train in waiting], []

    def restored(self, positions: dict[int, int]) -> None:
        """The state is that of ``positions``: the replay goes on from there."""
        self.positions = dict.fromkeys(self.buffers, 0) | positions
        self._brought = dict(self.positions)
        self._restoring = False

    def finished(self, position: int) -> None:
        """The end-of-replay marker of a channel was processed."""
        self._unfinished.discard(position)

    # -- messages --------------------------------------------------------------------------------------------

    def processed(self, train: Train) -> None:
        """Messages, markers among them, were processed."""
        assert train.seq is not None
        number, position = np.abs(train.seq) >> _BITS, np.abs(train.seq) & _MASK
        for mine in self.positions:
            newest = number[position == mine].max(initial=0)
            self.positions[mine] = max(self.positions[mine], int(newest))

    def receive(self, channel: Channel, train: Train) -> Train:
        """Messages arrive: stale replays, what the task has, and what will be replayed are dropped."""
        if train.seq is None:
            return train
        position, number = channel.position, np.abs(train.seq)
        inside = train.replace(seq=np.sign(train.seq) * (number << _BITS | position), route=None)
        if not self._unfinished and train.route is None:
            return inside
        if not (self.task.up or self.task.hold):
            return inside  # nobody is there: all of it is lost
        end = train.column("mark") == END_OF_REPLAY
        replay = train.seq < 0
        ours = train.column("route") == self.recovery
        brought = np.maximum.accumulate(
            np.append(self._brought[position], np.where(replay & ours, number, 0))
        )
        self._brought[position] = int(brought[-1])
        keep = np.where(replay | end, ours & (end | (number > brought[:-1])), True)
        if self.task.up and position in self._waiting:
            ends = np.flatnonzero(end & ours)
            until = int(ends[0]) if len(ends) else train.n
            keep[:until] &= (replay | end)[:until]
            if len(ends):
                self._waiting.discard(position)
        return self._filter(inside, keep)

    def _filter(self, train: Train, keep: Mask) -> Train:
        out = train.pick(~keep & (train.column("mark") == 0))
        if out.n:
            self._world.discarded(self.task, out)
            self._world.lost_effects(self.task, self._without_copy(out))
        return train.pick(keep)

    def _without_copy(self, train: Train) -> Ints:
        """Of messages thrown away for a replay: the uids of those whose sender's buffer is gone."""
        assert train.seq is not None
        parts = [np.zeros(0, np.int64)]
        for position, buffer in self.buffers.items():
            number = np.where((train.seq > 0) & (train.seq & _MASK == position), train.seq >> _BITS, 0)
            parts.append(train.uid[(number > self.positions[position]) & (number <= buffer.gone_to)])
        return np.concatenate(parts)


def _from_buffer(train: Train) -> Mask:
    """Messages that a sender keeps, replays, and the ends of replays."""
    return (train.column("seq") != 0) | (train.column("mark") == END_OF_REPLAY)
