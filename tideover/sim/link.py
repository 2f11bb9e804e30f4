"""Links: latency between hosts, first in first out, bytes counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tideover.sim.train import Ints, Train, join

if TYPE_CHECKING:
    from tideover.sim.node import Node

Latency = Callable[[Ints], Ints]
Tell = Callable[[Train, bool], None]
"""Is told of tuples that are lost; whether they were on the wire already."""


class Stop(Protocol):
    """Something between two nodes that messages go through."""

    def flow(self, now: int) -> None:
        """Move everything at or before ``now``."""

    def next_event(self) -> int | None:
        """The next instant at which data moves here by itself; None: never."""

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""


class Carried(NamedTuple):
    """Messages that went from one host to another, or (not ``remote``) within one, and their bytes."""

    from_host: int
    to_host: int
    messages: int
    bytes: int
    remote: bool


class Tap(Protocol):
    """Numbers what is sent over a channel, and keeps it.

    sent   newest number
    """

    sent: int

    def number(self, train: Train) -> Train:
        """Number messages that are made now, and keep them."""

    def columns(self, numbers: Ints) -> dict[str, Ints]:
        """What messages of these numbers carry for the receiver."""

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""


class Channel:
    """The wire from one task to another.

    A message arrives at its departure plus the latency, and never before the message ahead of it. What is on
    the wire belongs to neither end: a crash of either leaves it there, and the receiver's state decides at
    its arrival. This one has all the bandwidth it needs, and counts what it carried; `tideover.sim.card` has
    the one that shares its hosts' cards with others.
    """

    def __init__(
        self, up: Node, down: Node, latency: int | Latency, message_bytes: int, remote: bool
    ) -> None:
        self.up = up
        self.down = down
        self.message_bytes = message_bytes
        self.remote = remote
        self.messages = 0
        self.logged = False
        """What it carries waits in a log before the receiver, and takes no place in its queue."""
        self.notice = 0
        """How long it takes to tell the sender of a free place (ns)."""
        self.freed: list[int] = []
        """When the sender will know of places of its own that are free (ns)."""
        self.position = 0
        """Which of the receiver's input channels this is."""
        self._latency = latency
        self._before: list[Carried] = []
        """What it carried over other ways than now."""
        self._last = 0
        self._held = 0
        self._arriving: list[Channel] = []
        self._listed = False
        self._slow: dict[int, tuple[float, float]] = {}
        """What makes it slow, by its number: factors of the latency and of the time at a card."""
        self._stretch = self.transfer = 1.0
        """The greatest of each: ``transfer`` is how many times as long a message takes at a card."""
        self._losing: dict[int, Tell] = {}
        """Who is told what is lost on the wire, by the number of the reason."""
        self.wire: deque[Train] = deque()
        self.tap: Tap | None = None
        self.withheld = False
        """What is made for it does not leave: who taps it has it."""

    def send(self, train: Train) -> None:
        """Send a train; ``train.time`` are departures, in order."""
        if train.n:
            made = self.made(train)
            if not self.withheld:
                self.put(made)

    def made(self, train: Train) -> Train:
        """Messages (not none) are made now, and leave when there is room for them."""
        return train if self.tap is None else self.tap.number(train)

    def put(self, train: Train) -> None:
        """Put a train (not empty) on the wire as it is: it was made before, or is a replay."""
        left = self._survivors(train) if self._losing else train
        if left.n:
            first, self.messages = self.messages, self.messages + left.n
            self._fill(self._flown(left, first))

    def passed(self, n: int, last: int) -> None:
        """So many messages were sent that have arrived already, the last of them at ``last`` (ns)."""
        self.messages += n
        self.not_before(last)

    def connect(self, arriving: list[Channel]) -> None:
        """Where it is listed, once, as soon as anything is on the wire."""
        self._arriving, self._listed = arriving, False
        self._list()

    def _fill(self, train: Train) -> None:
        self.wire.append(train)
        if not self._listed:
            self._arriving.append(self)
            self._listed = True

    def _list(self) -> None:
        if self.wire and not self._listed:
            self._arriving.append(self)
            self._listed = True

    def unlist(self) -> None:
        """It was taken off the list: it is listed anew only if something is left on the wire."""
        self._listed = bool(self.wire)
        if self._listed:
            self._arriving.append(self)

    def _flown(self, train: Train, first: int) -> Train:
        """The train as it arrives: messages number ``first``, ``first`` + 1, … of the channel."""
        time, latency = train.time, self._latency
        if callable(latency):
            number = np.arange(first, first + train.n, dtype=np.int64)
            time = np.maximum.accumulate(time + self._stretched(latency(number)))
        elif latency:
            time = time + (latency if self._stretch == 1 else round(latency * self._stretch))
        if time[0] < self._last:
            time = np.maximum(time, self._last)
        if time is not train.time:
            train = train.replace(time=time)
        self._last = int(train.time[-1])
        return train

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""
        wire, messages, last = self.wire.copy(), self.messages, self._last
        tap = None if self.tap is None else self.tap.save()

        def restore() -> None:
            self.wire, self.messages, self._last = wire, messages, last
            self._list()
            if tap is not None:
                tap()

        return restore

    def latencies(self, first: int, n: int) -> list[int]:
        """Latencies (ns) of the n messages from number ``first`` on."""
        if not callable(self._latency):
            return [round(self._latency * self._stretch)] * n
        number = np.arange(first, first + n, dtype=np.int64)
        latencies: list[int] = self._stretched(self._latency(number)).tolist()
        return latencies

    def _stretched(self, latencies: Ints) -> Ints:
        """These latencies, as they are while the wire is slow."""
        return latencies if self._stretch == 1 else np.rint(latencies * self._stretch).astype(np.int64)

    def slow_down(self, reason: int, latency: float, transfer: float) -> None:
        """Messages that come to the wire from now on are on it for ``latency`` times as long, those that come
        to a card take ``transfer`` times as long there; of several reasons the greatest factor holds.
        """
        self._slow[reason] = latency, transfer
        self._stretch, self.transfer = map(max, zip(*self._slow.values(), strict=True))

    def recover(self, reason: int) -> None:
        """What made it slow does so no more."""
        del self._slow[reason]
        factors = [(1.0, 1.0), *self._slow.values()]
        self._stretch, self.transfer = map(max, zip(*factors, strict=True))

    def lose(self, reason: int, tell: Tell) -> None:
        """Tuples that are on the wire, or come to it from now on, are lost, which ``tell`` is told; control
        messages stay.
        """
        self._losing[reason] = tell
        trains, self.wire = self.wire, deque()
        self.wire.extend(left for train in trains if (left := self._survivors(train, flying=True)).n)

    def keep(self, reason: int) -> None:
        """Nothing is lost any more for this reason."""
        del self._losing[reason]

    def _survivors(self, train: Train, flying: bool = False) -> Train:
        """The control messages of a train that comes to the wire, or is on it."""
        tell = next(reversed(self._losing.values()))
        if train.mark is None:
            tell(train, flying)
            return train.pick(slice(0, 0))
        tell(train.pick(train.mark == 0), flying)
        return train.pick(train.mark != 0)

    def take_first(self, n: int) -> None:
        """The first n messages are off the wire."""
        while n:
            train = self.wire.popleft()
            if train.n > n:
                self.wire.appendleft(train.pick(slice(n, None)))
            n -= min(n, train.n)

    @property
    def free_at(self) -> int:
        """Nothing that is sent now arrives before (ns)."""
        return self._last

    def not_before(self, moment: int) -> None:
        """Nothing that is sent from now on arrives before ``moment``."""
        self._last = max(self._last, moment)

    def give_back(self, places: int, now: int) -> None:
        """Places of its own are free, of which the sender will know."""
        self.freed += [now + self.notice] * places

    def cut(self) -> list[Train]:
        """The connection breaks: returns what is on the wire, which is lost; what is sent later does not wait
        for it.
        """
        lost, self.wire = list(self.wire), deque()
        self._last = self._held
        return lost

    @property
    def held(self) -> int:
        """Until when nothing gets through (ns); what is not later than now: something does."""
        return self._held

    def hold(self, until: int) -> None:
        """Nothing gets through before ``until`` (ns): what is on the wire, and what is sent meanwhile,
        arrives then.
        """
        self._held = max(self._held, until)
        self._last = max(self._last, until)
        self.wire = deque(train.replace(time=np.maximum(train.time, until)) for train in self.wire)

    def take(self, until: int) -> Train | None:
        """Everything that arrives at or before ``until``, off the wire; None if nothing does."""
        return due(self.wire, until)

    @property
    def stops(self) -> Sequence[Stop]:
        """What a message goes through on its way."""
        return ()

    @property
    def on_the_way(self) -> Sequence[Train]:
        """All that was sent and has not arrived."""
        return self.wire

    def arrival(self, count: int) -> tuple[int, bool]:
        """When the message number ``count`` (from 1) of those sent arrives (ns; 0: it has), and whether this
        is certain; else it is not before.
        """
        return time_of(self.wire, self.messages - count) or 0, True

    @property
    def delay(self) -> int | None:
        """Latency of every message, ns; None: it varies."""
        return None if callable(self._latency) else self._latency

    @property
    def next_arrival(self) -> int | None:
        """When the first message on the wire arrives; None if the wire is empty."""
        return int(self.wire[0].time[0]) if self.wire else None

    @property
    def last_arrival(self) -> int | None:
        """When the last message now on the wire comes to the receiver's host; None if the wire is empty."""
        return int(self.wire[-1].time[-1]) if self.wire else None

    @property
    def bytes(self) -> int:
        """Bytes carried so far."""
        return sum(each.bytes for each in self._before) + self._messages_now * self.message_bytes

    @property
    def remote_bytes(self) -> int:
        """Those of them that went from one host to another."""
        now = self._messages_now * self.message_bytes if self.remote else 0
        return sum(each.bytes for each in self._before if each.remote) + now

    @property
    def by_way(self) -> list[Carried]:
        """What it has carried, by where its ends were."""
        return [*self._before, self._since((self.up.host, self.down.host))]

    @property
    def _messages_now(self) -> int:
        """Sent since it was led this way."""
        return self.messages - sum(each.messages for each in self._before)

    def _since(self, hosts: tuple[int, int]) -> Carried:
        """What it has carried since it was led this way, between these hosts."""
        messages = self._messages_now
        return Carried(*hosts, messages, messages * self.message_bytes, self.remote)

    def lead(self, latency: int | Latency, message_bytes: int, remote: bool, before: tuple[int, int]) -> None:
        """Messages that are sent from now on go another way, as one end has moved to another host;
        ``before``: the hosts of both. What is on the wire arrives as it would have, and is not overtaken.
        """
        self._before.append(self._since(before))
        self._latency, self.message_bytes, self.remote = latency, message_bytes, remote

    def let_go(self, now: int) -> None:
        """What is sent from now on is not held up any more, and what was held up arrives now."""
        held, self._held, last = self._held, 0, 0
        trains, self.wire = self.wire, deque()
        for train in trains:
            time = np.maximum(np.where(train.time >= held, now, train.time), last)
            self.wire.append(train.replace(time=time))
            last = int(time[-1])
        self._last = last


def time_of(wire: Sequence[Train], behind: int) -> int | None:
    """Time of the message that so many are behind; None: there are not so many."""
    for train in reversed(wire):
        if behind < train.n:
            return int(train.time[train.n - 1 - behind])
        behind -= train.n
    return None


def due(wire: deque[Train], until: int) -> Train | None:
    """Everything whose time is at or before ``until``, off the wire; None if there is nothing."""
    if not wire or wire[0].time[0] > until:
        return None
    if len(wire) == 1 and wire[0].time[-1] <= until:
        return wire.popleft()
    out = []
    while wire and wire[0].time[0] <= until:
        train = wire.popleft()
        if train.time[-1] <= until:
            out.append(train)
            continue
        now, later = train.split(int(train.time.searchsorted(until, "right")))
        out.append(now)
        wire.appendleft(later)
    return join(out)
