"""Network cards: the bandwidth that all channels of a host share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import numpy as np

from tideover.sim.contention import Contention
from tideover.sim.link import Channel, Latency, Tell, time_of
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

    def service(self, message_bytes: int, factor: float) -> int:
        """How long so many bytes take (ns): ``factor`` times as long as the bandwidth allows."""
        return round(-(-message_bytes * 1_000_000_000 // self.bandwidth) * factor)


class Port:
    """Where the messages of some channels go through a card: a node of the data plane.

    ``level``: its place among the ports of the card.
    """

    def __init__(self, card: Card, level: int) -> None:
        self.card = card
        self.level = level
        self._out = card.way == OUT
        self._come: list[Entry] = []
        self._takes: dict[tuple[int, float], int] = {}
        """How long messages take (ns), by their bytes and how slow the channel is."""
        self._by_channel: dict[NetworkChannel, list[Train]] | None = None

    def enter(self, channel: NetworkChannel, train: Train, time: Ints, last: int) -> None:
        """Messages come at ``time``, the last of them at ``last``, or will."""
        self._come.append((channel.number, channel, train, time, last))
        self._by_channel = None

    def flow(self, now: int) -> None:
        """Serve what has come by ``now``, and hand it on: its departures are known."""
        line = self.card.line
        found = self._due(now) if self._come else self._come
        if not found:
            line.step(self.level, now, NONE, NONE)
            return
        _, channels, trains, times, _ = zip(*found, strict=True)
        rows = [train.n for train in trains]
        ends = np.cumsum(rows)
        service = np.repeat(np.array([self._service(channel) for channel in channels], np.int64), rows)
        for place, train in enumerate(trains):
            if train.mark is not None:
                service[ends[place] - train.n : ends[place]][train.mark != 0] = 0
        done = line.step(self.level, now, np.concatenate(times), service)
        begins = [0, *ends[:-1].tolist()]
        bounds = zip(begins, ends.tolist(), done[begins].tolist(), done[ends - 1].tolist(), strict=True)
        for channel, train, (begin, end, first, last) in zip(channels, trains, bounds, strict=True):
            if self._out:
                channel.fly(train, done[begin:end], first, last)
            else:
                channel.come_in(train, done[begin:end], first, last)

    def _service(self, channel: NetworkChannel) -> int:
        """How long a message of this channel takes now (ns)."""
        size = channel.message_bytes, channel.transfer
        takes = self._takes.get(size)
        if takes is None:
            takes = self._takes[size] = self.card.service(*size)
        return takes

    def _due(self, now: int) -> list[Entry]:
        """What has come by ``now``, by channel; the rest stays."""
        late = [entry for entry in self._come if entry[4] > now]
        ready = [entry for entry in self._come if entry[4] <= now] if late else self._come
        later = []
        for number, channel, train, time, last in late:
            if time[0] > now:
                later.append((number, channel, train, time, last))
            else:
                at = int(time.searchsorted(now, "right"))
                first, rest = train.split(at)
                ready.append((number, channel, first, time[:at], now))
                later.append((number, channel, rest, time[at:], last))
        self._come, self._by_channel = later, None
        ready.sort(key=_BY_NUMBER)
        return ready

    def waiting(self, channel: NetworkChannel) -> Sequence[Train]:
        """What has come, or will, and has not been served."""
        if self._by_channel is None:
            self._by_channel = {}
            for _, each, train, time, _ in self._come:
                self._by_channel.setdefault(each, []).append(train.replace(time=time))
        return self._by_channel.get(channel, ())

    def forget(self, channel: NetworkChannel) -> list[Train]:
        """The connection breaks: returns what was to come."""
        lost = list(self.waiting(channel))
        self._come = [entry for entry in self._come if entry[1] is not channel]
        self._by_channel = None
        return lost

    def hold(self, channel: NetworkChannel, until: int) -> None:
        """What of a channel has not come yet does not before ``until`` (ns)."""
        come, self._come, self._by_channel = self._come, [], None
        for number, each, train, time, last in come:
            if each is channel:
                time, last = np.maximum(time, until), max(last, until)
            self._come.append((number, each, train, time, last))

    def unload(self) -> list[Entry]:
        """Take out what has come, or will, and has not been served."""
        come, self._come, self._by_channel = self._come, [], None
        return come

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""
        come, restore_line = self._come.copy(), self.card.line.save()

        def restore() -> None:
            self._come, self._by_channel = come, None
            restore_line()

        return restore

    def next_event(self) -> int | None:
        """When the first message comes that has not come yet; None: none is to come."""
        return min((int(time[0]) for _, _, _, time, _ in self._come), default=None)


Entry = tuple[int, "NetworkChannel", Train, Ints, int]
"""Messages of a channel (its number, itself, a train) that come to a card at some times, the last of them
last."""
_BY_NUMBER = itemgetter(0)
NONE: Ints = np.zeros(0, np.int64)


class NetworkChannel(Channel):
    """A channel between hosts: out through the card of the sender's host, over the wire, in through that of
    the receiver's.

    number     place among all such channels: by sender, then receiver, in physical order
    out, into  the ports (None: that host's card is no limit); set once all channels are known
    unpacking  what the receiver spends on each message (ns); messages carry it as column ``UNPACKING``
    """

    def __init__(
        self,
        up: Node,
        down: Node,
        latency: int | Latency,
        message_bytes: int,
        unpacking: int,
        remote: bool = True,
    ) -> None:
        super().__init__(up, down, latency, message_bytes, remote)
        self.number = 0
        self.unpacking = unpacking
        self.out: Port | None = None
        self.into: Port | None = None
        self._over = 0
        """Messages that have gone over the wire."""
        self._in_by = 0
        """When the last message came through the receiver's card."""

    @property
    def stops(self) -> tuple[Port, ...]:
        return tuple(port for port in (self.out, self.into) if port is not None)

    @property
    def flown(self) -> int:
        """Messages that have gone over the wire."""
        return self._over

    @property
    def in_by(self) -> int:
        """When the last message came through the receiver's card (ns)."""
        return self._in_by

    def carried(self, sent: int, flown: int, last: int, in_by: int) -> None:
        """So many messages were sent; so many have gone over the wire in all, the last of them to its end at
        ``last``; the last one came through the receiver's card at ``in_by`` (ns).
        """
        self.messages += sent
        self._over, self._last, self._in_by = flown, last, in_by

    def save(self) -> Callable[[], None]:
        restore, over, in_by = super().save(), self._over, self._in_by

        def also() -> None:
            restore()
            self._over, self._in_by = over, in_by

        return also

    def put(self, train: Train) -> None:
        self.messages += train.n
        self._leave(train)

    def _leave(self, train: Train) -> None:
        time = train.time
        last = int(time[-1])
        if self.out is None:
            self.fly(train, time, int(time[0]), last)
        else:
            self.out.enter(self, train, time, last)

    def come_in(self, train: Train, time: Ints, first: int, last: int) -> None:
        """Messages have come through the receiver's card, at ``time``, from ``first`` to ``last``."""
        if first < self._in_by:
            time = np.maximum(time, self._in_by)
            last = int(time[-1])
        self._in_by = last
        self._fill(train.retimed(time))

    def fly(self, train: Train, time: Ints, first: int, last: int) -> None:
        """Messages come to the wire, at ``time``, from ``first`` to ``last``."""
        if self._losing:
            left = self._survivors(train)
            self.messages -= train.n - left.n
            if not left.n:
                return
            if left.n < train.n:
                assert train.mark is not None
                train, time = left, time[train.mark != 0]
                first, last = int(time[0]), int(time[-1])
        number, self._over = self._over, self._over + train.n
        latency = self._latency
        if self.into is None or callable(latency) or self._stretch > 1:
            train = self._flown(train.replace(time=time), number)
            time, last = train.time, self._last
        else:
            time = time + latency
            if first + latency < self._last:
                time = np.maximum(time, self._last)
                last = int(time[-1])
            else:
                last += latency
            self._last = last
        if self.into is None:
            self._fill(train)
        else:
            self.into.enter(self, train, time, last)

    def take(self, until: int) -> Train | None:
        train = super().take(until)
        return train if train is None or not self.unpacking else self.packed(train)

    def packed(self, train: Train) -> Train:
        """The same, of which the receiver knows what unpacking them takes."""
        return train.adding(**{UNPACKING: np.full(train.n, self.unpacking, np.int64)})

    def arrives(self, train: Train) -> None:
        """Messages have come through the receiver's card, if there is one, and arrive at their times."""
        self._fill(train)

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

    def hold(self, until: int) -> None:
        if self.into is None:
            super().hold(until)
            return
        self._held, self._last = max(self._held, until), max(self._last, until)
        self.into.hold(self, until)  # what has come to the card is through

    def lose(self, reason: int, tell: Tell) -> None:
        if self.into is None:
            super().lose(reason, tell)
            return
        self._losing[reason] = tell
        for train in self.into.forget(self):
            left = self._survivors(train, flying=True)
            if left.n:
                self.into.enter(self, left, left.time, int(left.time[-1]))

    def lead(self, latency: int | Latency, message_bytes: int, remote: bool, before: tuple[int, int]) -> None:
        """The same; what was to come to the receiver's card arrives instead: that host has nothing to do with
        it any more.
        """
        super().lead(latency, message_bytes, remote, before)
        if self.into is not None:
            for train in self.into.forget(self):
                self.come_in(train, train.time, int(train.time[0]), int(train.time[-1]))
            self.into = None
        self._last = max(self._last, self._in_by)

    def go_through(self, out: Port | None, into: Port | None) -> None:
        """From now on it goes through these ports, with all that is to come to those before."""
        leaving = [] if self.out is None or self.out is out else self.out.forget(self)
        coming = [] if self.into is None or self.into is into else self.into.forget(self)
        self.out, self.into = out, into
        for train in coming:
            assert into is not None
            into.enter(self, train, train.time, int(train.time[-1]))
        for train in leaving:
            self._leave(train)

    def cut(self) -> list[Train]:
        lost = super().cut()
        for port in (self.into, self.out):
            if port is not None:
                lost += port.forget(self)
        self._in_by = 0
        return lost
