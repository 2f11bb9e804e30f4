"""Network cards: the bandwidth that all channels of a host share."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from tideover.sim.contention import Contention
from tideover.sim.link import Channel, Latency, due, time_of
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.sim.node import Node


UNPACKING = "unpacking"
"""Column: time (ns) that a message takes where it is received, on top of the tuple's service."""
Way = Literal["card out", "card in"]
OUT: Way = "card out"
IN: Way = "card in"


class Card:
    """One direction of a host's network card: first in, first out, ``bandwidth`` bytes/s.

    A message is served in its size / bandwidth (ns, rounded up), a control message in no time. Messages are
    served in the order in which they come; at one instant by sender, then receiver (in physical order), then
    as they were sent.

    A card is one node of the data plane if none of its messages can come of another one of them (``ports``:
    1), and its waiting times are exact. Else it has a port for each level of the topology, and what they do
    to one another is approximated: see `tideover.sim.contention`. ``way``: out or in.
    """

    def __init__(self, way: Way, host: int, bandwidth: int) -> None:
        self.way = way
        self.host = host
        self.bandwidth = bandwidth
        self.line = Contention()

    @property
    def kind(self) -> Way:
        """What sort of resource it is."""
        return self.way

    @property
    def name(self) -> str:
        """What it is called: there is one on each host."""
        return self.way

    @property
    def exact(self) -> bool:
        """Whether its waiting times are exact."""
        return self.line.exact

    def busy_ns(self, now: int) -> int:
        """For how long it has been sending, or receiving, up to ``now`` (ns)."""
        return self.line.busy_ns(now)

    def service(self, message_bytes: int) -> int:
        """How long so many bytes take (ns)."""
        return -(-message_bytes * 1_000_000_000 // self.bandwidth)


class Port:
    """Where the messages of some channels go through a card: a node of the data plane.

    ``level``: its place among the ports of the card.
    """

    def __init__(self, card: Card, level: int) -> None:
        self.card = card
        self.level = level
        self._wires: dict[NetworkChannel, deque[Train]] = {}

    def enter(self, channel: NetworkChannel, train: Train) -> None:
        """Messages come, at ``train.time``, or will."""
        wire = self._wires.get(channel)
        if wire is None:
            wire = self._wires[channel] = deque()
        wire.append(train)

    def flow(self, now: int) -> None:
        """Serve what has come by ``now``, and hand it on: its departures are known."""
        line = self.card.line
        found = [(channel, train) for channel, wire in self._wires.items() if (train := due(wire, now))]
        self._wires = {channel: wire for channel, wire in self._wires.items() if wire}
        if not found:
            line.step(self.level, now, NONE, NONE)
            return
        found.sort(key=_by_number)
        service = np.repeat(
            np.array([self.card.service(channel.message_bytes) for channel, _ in found], np.int64),
            [train.n for _, train in found],
        )
        begin = 0
        for _, train in found:
            if train.mark is not None:
                service[begin : begin + train.n][train.mark != 0] = 0
            begin += train.n
        done = line.step(self.level, now, np.concatenate([train.time for _, train in found]), service)
        begin = 0
        for channel, train in found:
            channel.passed(self, train.replace(time=done[begin : begin + train.n]))
            begin += train.n

    def waiting(self, channel: NetworkChannel) -> Sequence[Train]:
        """What has come, or will, and has not been served."""
        return self._wires.get(channel, ())

    def forget(self, channel: NetworkChannel) -> list[Train]:
        """The connection breaks: returns what was to come."""
        return list(self._wires.pop(channel, ()))

    def next_event(self) -> int | None:
        """When the first message comes that has not come yet; None: none is to come."""
        return min((int(wire[0].time[0]) for wire in self._wires.values()), default=None)


NONE: Ints = np.zeros(0, np.int64)


def _by_number(entry: tuple[NetworkChannel, Train]) -> int:
    return entry[0].number


class NetworkChannel(Channel):
    """A channel between hosts: out through the card of the sender's host, over the wire, in through that of
    the receiver's.

    number     place among all such channels: by sender, then receiver, in physical order
    out, into  the ports (None: that host's card is no limit); set once all channels are known
    unpacking  what the receiver spends on each message (ns); messages carry it as column ``UNPACKING``
    """

    def __init__(
        self, up: Node, down: Node, latency: int | Latency, message_bytes: int, unpacking: int
    ) -> None:
        super().__init__(up, down, latency, message_bytes, remote=True)
        self.number = 0
        self.unpacking = unpacking
        self.out: Port | None = None
        self.into: Port | None = None
        self._over = 0
        """Messages that have gone over the wire."""
        self._in_by = 0
        """When the last message came through the receiver's card."""

    def put(self, train: Train) -> None:
        self.messages += train.n
        if self.out is None:
            self._fly(train)
        else:
            self.out.enter(self, train)

    def passed(self, port: Port, train: Train) -> None:
        """Messages have gone through a card, at ``train.time``."""
        if port is self.out:
            self._fly(train)
            return
        if train.time[0] < self._in_by:
            train = train.replace(time=np.maximum(train.time, self._in_by))
        self._in_by = int(train.time[-1])
        self.wire.append(train)

    def _fly(self, train: Train) -> None:
        first, self._over = self._over, self._over + train.n
        train = self._flown(train, first)
        if self.into is None:
            self.wire.append(train)
        else:
            self.into.enter(self, train)

    def take(self, until: int) -> Train | None:
        train = super().take(until)
        if train is None or not self.unpacking:
            return train
        return train.adding(**{UNPACKING: np.full(train.n, self.unpacking, np.int64)})

    @property
    def on_the_way(self) -> Sequence[Train]:
        trains = list(self.wire)
        for port in (self.into, self.out):
            if port is not None:
                trains += port.waiting(self)
        return trains

    def arrival(self, count: int) -> tuple[int, bool]:
        behind = self.messages - count
        for port in (self.out, self.into):
            if port is not None:
                waiting = port.waiting(self)
                when = time_of(waiting, behind)
                if when is not None:
                    return when, False
                behind -= sum(train.n for train in waiting)
        return time_of(self.wire, behind) or 0, True

    @property
    def last_arrival(self) -> int | None:
        if self.into is None:
            return super().last_arrival
        waiting = self.into.waiting(self)
        return int(waiting[-1].time[-1]) if waiting else None

    @property
    def delay(self) -> int | None:
        return None

    @property
    def least_delay(self) -> int:
        """No message is on the wire for less (ns)."""
        return 0 if callable(self._latency) else self._latency

    def cut(self) -> list[Train]:
        lost = super().cut()
        for port in (self.into, self.out):
            if port is not None:
                lost += port.forget(self)
        self._in_by = 0
        return lost
