"""Upstream buffers and what receives from them.

The sender keeps every message of a channel, in order, numbered from 1, until its receiver has it safe; after a failure it replays
them. The receiver knows the newest number that it has processed, and lets in each message once.

R. Castro Fernandez et al., *Integrating Scale Out and Fault Tolerance in Stream Processing using Operator State
Management*, SIGMOD 2013, section 3.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.sim.link import Channel
from tideover.sim.train import Ints, Train, join

END_OF_REPLAY = -1
_BITS = 16
_MASK = (1 << _BITS) - 1
Mask = npt.NDArray[np.bool_]


class UpstreamBuffer:
    """The sender's side of one channel. A message's ``seq`` is its number, negative if it is a replay."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.sent = 0
        self.size = 0
        self.gone_to = 0
        """Messages up to this number went down with the sender, if they were not trimmed before."""
        self._trains: list[Train] = []

    def number(self, train: Train) -> Train:
        """Number messages that are about to be sent, and keep them."""
        numbered = train.replace(seq=np.arange(self.sent + 1, self.sent + train.n + 1, dtype=np.int64))
        self.sent += train.n
        self.size += train.n
        self._trains.append(numbered)
        return numbered

    def trim(self, safe: int) -> None:
        """Drop the messages up to number ``safe``."""
        kept = []
        for train in self._trains:
            assert train.seq is not None
            if train.seq[-1] > safe:
                begin = max(0, int(safe - train.seq[0] + 1))
                kept.append(train.pick(slice(begin, None)) if begin else train)
        self._trains = kept
        self.size = sum(train.n for train in kept)

    def clear(self) -> None:
        """Lose everything: the sender has crashed."""
        self.gone_to = self.sent
        self._trains = []
        self.size = 0

    def after(self, number: int) -> Train | None:
        """The messages above ``number``, in order; None if there are none."""
        parts = [train.pick(np.flatnonzero(train.column("seq") > number)) for train in self._trains]
        parts = [train for train in parts if train.n]
        return join(parts) if parts else None

    def uids(self) -> Ints:
        """Uids of the tuples (not the markers) in the buffer."""
        parts = [t.uid if t.mark is None else t.uid[t.mark == 0] for t in self._trains]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class Intake:
    """The receiver's side: what one task takes from its buffered channels.

    Inside the task a message's ``seq`` holds its number and the position of its channel: number << 16 | position, negative
    if it is a replay. While a recovery is under way, ``route`` of a replay and of its end marker is the recovery's number.
    """

    def __init__(self, buffers: dict[int, UpstreamBuffer]) -> None:
        self.buffers = buffers
        """By the position of the channel among the task's inputs."""
        self.positions = dict.fromkeys(buffers, 0)
        """Newest number processed on each channel."""
        self.recovery = 0
        """Counts recoveries: replays that belong to an earlier one are stale."""
        self.waiting: set[int] = set()
        """Channels whose end-of-replay marker has not arrived: their direct messages will come again."""
        self.unfinished: set[int] = set()
        """Channels whose end-of-replay marker has not been processed."""

    def begin_recovery(self) -> None:
        """From now on every channel is to be replayed."""
        self.recovery += 1
        self.waiting = set(self.buffers)
        self.unfinished = set(self.buffers)

    def processed(self, train: Train) -> None:
        """Messages, markers among them, were processed."""
        assert train.seq is not None
        number, position = np.abs(train.seq) >> _BITS, np.abs(train.seq) & _MASK
        for mine in self.positions:
            newest = number[position == mine].max(initial=0)
            self.positions[mine] = max(self.positions[mine], int(newest))

    def arriving(self, channel: Channel, train: Train, up: bool) -> tuple[Train, Mask | None]:
        """The messages as they are known inside, and which of them are let in (None: all)."""
        assert train.seq is not None
        position = channel.position
        number = np.abs(train.seq)
        seq = np.sign(train.seq) * (number << _BITS | position)
        inside = train.replace(seq=seq, route=None)
        if not self.unfinished and train.route is None:
            return inside, None
        ours = train.column("route") == self.recovery
        end = train.column("mark") == END_OF_REPLAY
        replay = train.seq < 0
        keep = np.where(replay | end, ours, True) & ~(replay & (number <= self.positions[position]))
        if up and position in self.waiting:
            ends = np.flatnonzero(end & ours)
            direct_until = int(ends[0]) if len(ends) else train.n
            keep[:direct_until] &= (replay | end)[:direct_until]
            if len(ends):
                self.waiting.discard(position)
        return inside, keep

    def will_come_again(self, train: Train) -> Mask:
        """Of messages inside a task that begins or waits for a replay: those that the replay will bring."""
        assert train.seq is not None
        stale = (train.seq < 0) | (train.column("mark") == END_OF_REPLAY)
        direct = (train.seq > 0) & np.isin(train.seq & _MASK, list(self.waiting))
        return stale | direct

    def without_copy(self, train: Train) -> Ints:
        """Of messages that are thrown away for a replay: the uids of those whose sender's buffer is gone."""
        assert train.seq is not None
        parts = [np.zeros(0, np.int64)]
        for position, buffer in self.buffers.items():
            number = np.where((train.seq > 0) & (train.seq & _MASK == position), train.seq >> _BITS, 0)
            parts.append(train.uid[(number > self.positions[position]) & (number <= buffer.gone_to)])
        return np.concatenate(parts)
