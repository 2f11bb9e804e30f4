"""Upstream buffers: what a sender keeps of a channel until its receiver has it safe.

R. Castro Fernandez et al., *Integrating Scale Out and Fault Tolerance in Stream Processing using Operator
State Management*, SIGMOD 2013, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tideover.models.mechanisms.duplicate_filter import Seen
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.keeper import Mask
from tideover.sim.link import Channel
from tideover.sim.plane.plane import CHANNEL as CHANNEL
from tideover.sim.plane.plane import NUMBER as NUMBER
from tideover.sim.plane.plane import RECOVERY as RECOVERY
from tideover.sim.train import Ints, Train, join

END_OF_REPLAY = -1
"""Mark of the message that ends a replay."""


class Kept(NamedTuple):
    """A copy of an upstream buffer: its messages, the newest number sent, and the newest that was lost."""

    trains: tuple[Train, ...]
    sent: int
    gone_to: int

    def above(self, number: int) -> int:
        """How many of its messages have a greater number."""
        return sum(int(np.count_nonzero(train.column(NUMBER) > number)) for train in self.trains)

    def tuples(self) -> list[Train]:
        """Its messages without the markers."""
        return [without_markers(train) for train in self.trains]


class UpstreamBuffer:
    """The sender's side of one channel: taps it, and numbers and keeps what is made for it from now on."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.sent = 0
        self.size = 0
        self.safe = 0
        """The receiver has everything up to this number safe, and has said so."""
        self.gone_to = 0
        """Messages up to this number went down with the sender, if they were not trimmed before."""
        self._bare = False
        self._trains: list[Train] = []
        channel.tap = self

    def number(self, train: Train) -> Train:
        """Number messages that are about to be sent, and keep them."""
        numbers = np.arange(self.sent + 1, self.sent + train.n + 1, dtype=np.int64)
        numbered = train.adding(**self.columns(numbers))
        self.sent += train.n
        self.size += train.n
        self._trains.append(numbered)
        return numbered

    def columns(self, numbers: Ints) -> dict[str, Ints]:
        """What messages of these numbers carry for the receiver."""
        return {NUMBER: numbers, CHANNEL: np.full(len(numbers), self.channel.position, np.int64)}

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""
        sent, size, trains = self.sent, self.size, self._trains.copy()

        def restore() -> None:
            self.sent, self.size, self._trains = sent, size, trains

        return restore

    def trim(self, safe: int) -> None:
        """Drop the messages up to number ``safe``."""
        self.safe = max(self.safe, safe)
        kept = []
        for train in self._trains:
            number = train.column(NUMBER)
            if number[-1] > safe:
                begin = int(np.searchsorted(number, safe, "right"))
                kept.append(train.pick(slice(begin, None)) if begin else train)
        self._trains = kept
        self.size = sum(train.n for train in kept)

    def keep(self, wanted: Callable[[Train], Mask]) -> None:
        """Drop all messages but those that are ``wanted``."""
        kept = (train.pick(wanted(train)) for train in self._trains)
        self._trains = [train for train in kept if train.n]
        self.size = sum(train.n for train in self._trains)

    def drop_known(self, seen: Seen) -> None:
        """Drop the tuples that were seen."""
        self.keep(lambda train: (train.column("mark") != 0) | ~seen.has(train))

    def become(self, kept: Kept) -> None:
        """Have what a copy has, and nothing else."""
        self._trains = list(kept.trains)
        self.size = sum(train.n for train in kept.trains)

    def follow(self, other: UpstreamBuffer) -> None:
        """Keep what another buffer keeps, and nothing else, as if it had been sent here now."""
        self._trains, self.size = [], 0
        for train in other.copy().trains:
            self.number(train)

    def clear(self) -> None:
        """Lose everything: the sender has crashed."""
        self.gone_to, self._bare = self.sent, True
        self._trains = []
        self.size = 0

    def copy(self) -> Kept:
        """What is in it now."""
        return Kept(tuple(self._trains), self.sent, self.gone_to)

    def put_back(self, kept: Kept) -> None:
        """Have again what went down with the sender, as far as the copy has it."""
        if self._bare:
            self._bare = False
            self.become(kept)
            self.gone_to = kept.gone_to if kept.sent == self.sent else self.sent

    def after(self, number: int) -> Train | None:
        """The messages above ``number``, in order; None if there are none."""
        parts = [train.pick(np.flatnonzero(train.column(NUMBER) > number)) for train in self._trains]
        parts = [train for train in parts if train.n]
        return join(parts) if parts else None

    def tuples(self) -> list[Train]:
        """The tuples (not the markers) in the buffer."""
        return self.copy().tuples()

    def uids(self) -> Ints:
        """Uids of the tuples (not the markers) in the buffer."""
        parts = [t.uid if t.mark is None else t.uid[t.mark == 0] for t in self._trains]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)
