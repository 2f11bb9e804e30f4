"""A channel through network cards among coupled nodes, message by message.

The rules are those of docs/semantics.md: what comes to a card at one instant is served when all nodes have
sent what they send then, by sender, then receiver. What has come to a card has its place where it goes, so
cards never wait for room, and when a message is through is known as it comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container

import numpy as np

from tideover.sim.agenda import CARD, Agenda
from tideover.sim.card import NetworkChannel, Port
from tideover.sim.site import AHEAD, Receiver, Wire
from tideover.sim.train import Ints, Train

Due = deque[tuple[int, int]]
"""Messages: when they come, and the row."""


class CardWire(Wire):
    """A channel of which a part lies among coupled nodes: it ends where the rest of its way lies outside."""

    channel: NetworkChannel

    def __init__(
        self, agenda: Agenda, channel: NetworkChannel, to: Receiver | None, ports: Container[Port]
    ) -> None:
        super().__init__(agenda, channel, to)
        self._out = _Stop(channel.out, channel, ports)
        self._into = _Stop(channel.into, channel, ports)
        self._sent = channel.flown
        self._new = 0
        self._in_by = channel.in_by
        self._control: set[int] = set()

    def add(self, train: Train, origin: Ints | None = None) -> int:
        if self.channel.unpacking and self.to is not None:
            train = self.channel.packed(train)
        first = super().add(train, origin)
        if train.mark is not None:
            self._control.update((np.flatnonzero(train.mark != 0) + first).tolist())
        return first

    # -- what is on the way ----------------------------------------------------------------------------------

    def load(self) -> None:
        if self.to is None:
            return
        trains, self.channel.wire = self.channel.wire, deque()
        for train in trains:
            first = self.add(train)
            self._coming += zip(train.time.tolist(), range(first, first + train.n), strict=True)
        if self._coming:
            self._expect()

    def load_from(self, port: Port, train: Train, time: Ints) -> None:
        """Messages that come to a card, or will: those nearer to the receiver first."""
        first = self.add(train)
        for row, when in enumerate(time.tolist(), first):
            if port is self.channel.out:
                self._come_out(when, row)
            else:
                self._come_in(when, row)

    # -- what happens ----------------------------------------------------------------------------------------

    def send(self, now: int, row: int) -> None:
        self._new += 1
        if self.channel.out is None:
            self._fly(now, row)
        else:
            self._come_out(now, row)

    def _come_out(self, when: int, row: int) -> None:
        self._out.due.append((when, row))
        if self._out.port is not None:
            self.agenda.at(max(when, self.agenda.now), CARD, self.channel.number, self._go_out)

    def _go_out(self, _: None) -> None:
        row = self._out.due.popleft()[1]
        self._fly(self._out.through(self.agenda.now, row in self._control), row)

    def _fly(self, leaves: int, row: int) -> None:
        """A message comes to the wire, now or later."""
        if not self._latencies:
            self._latencies = self.channel.latencies(self._sent, AHEAD)[::-1]
        self._sent += 1
        self._last = max(self._last, leaves + self._latencies.pop())
        if self.channel.into is None:
            self._come(self._last, row)
        else:
            self._come_in(self._last, row)

    def _come_in(self, when: int, row: int) -> None:
        self._into.due.append((when, row))
        if self._into.port is not None:
            self.agenda.at(max(when, self.agenda.now), CARD, self.channel.number, self._go_in)

    def _go_in(self, _: None) -> None:
        row = self._into.due.popleft()[1]
        self._in_by = max(self._in_by, self._into.through(self.agenda.now, row in self._control))
        self._come(self._in_by, row)

    def _come(self, when: int, row: int) -> None:
        self._coming.append((when, row))
        if self.to is not None and len(self._coming) == self.arrived + 1:
            self._expect()

    # -- what has happened -----------------------------------------------------------------------------------

    def put_back(self, emitted: Ints) -> None:
        channel = self.channel
        channel.carried(self._new, self._sent, self._last, self._in_by)
        for port, due in ((channel.out, self._out.due), (channel.into, self._into.due)):
            train = self._pick(due, emitted)
            if train is not None:
                assert port is not None
                port.enter(channel, train, train.time, int(train.time[-1]))
        train = self._pick(self._coming[self.arrived :], emitted)
        if train is not None:
            channel.arrives(train)

    def _pick(self, due: Due | list[tuple[int, int]], emitted: Ints) -> Train | None:
        return self.pool.pick([row for _, row in due], [when for when, _ in due], emitted)


class _Stop:
    """A card on the way. ``port``: None if there is none, or it is not among those that are coupled;
    ``due``: what comes there.
    """

    def __init__(self, port: Port | None, channel: NetworkChannel, ports: Container[Port]) -> None:
        self.due: Due = deque()
        self.port = port if port is not None and port in ports else None
        self._service = 0 if port is None else port.card.service(channel.message_bytes, channel.transfer)

    def through(self, now: int, control: bool) -> int:
        """A message comes now; when it is through. ``control``: it takes no time."""
        assert self.port is not None
        return self.port.card.line.serve_one(now, 0 if control else self._service)
