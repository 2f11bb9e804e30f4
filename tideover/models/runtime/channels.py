"""Channels between tasks: what is sent over an edge, latency, order, loss, and the cards of hosts.

Network cards: the bandwidth that all channels of a host share.

The rules (tests/models/test_cards.py, test_plane_worlds.py, test_cores.py):

- A message to another host goes out through the card of its host, over the link, and in through the card of
  the receiver's; only then it arrives. A card serves one message after the other, each for bytes /
  bandwidth, rounded up, by the time at which it comes, then sender, receiver, order in the channel; data
  before what a control action of that instant sends.
- Bytes are the sender's `tuple_size` and `links.header`. Markers, barriers and ends of replays keep their
  place and take no time. The link's order is that of messages as they leave the card out.
- Within a host, in batches, and for acks, checkpoints and copies there is none of this; replays use cards.
  What is at a card survives the crash of both ends.
- A bolt's service grows by `serialise` + bytes * `serialise_cost` for each message to another host, and by
  `deserialise` + bytes * `deserialise_cost` for a tuple from one. A window's messages leave at once, and
  occupy the task then. A spout's serialising is part of its `emit_cost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tideover.models.job.components import Links
from tideover.models.job.topology import Edge
from tideover.models.operators.base import Children
from tideover.sim.distributions import Distribution
from tideover.sim.draws import Draws, Purpose
from tideover.sim.kernel import Action, Kernel
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train
from tideover.sim.units import MAX_DURATION, S


def describe(plane: Plane, distribution: Distribution, into: Any) -> None:
    law = distribution.law()
    plane.ffi.memmove(plane.ffi.addressof(into), law.struct, plane.ffi.sizeof("distribution"))
    plane.keep(law)


Way = Literal["card out", "card in"]
OUT: Way = "card out"
IN: Way = "card in"


class Card:
    """One direction of a host's network card, which carries ``bandwidth`` bytes/s.

    A message is served in its size / bandwidth (ns, rounded up), a control message in no time. Messages are
    served in the order in which they come; at one instant by sender, then receiver (in physical order), then
    as they were sent. ``number``: its place among the cards of the data plane.
    """

    def __init__(self, plane: Plane, number: int, way: Way, host: int, bandwidth: int) -> None:
        self._c: Any = plane.cards[number]
        self.number, self.host, self.bandwidth = number, host, bandwidth
        self.kind = self.name = way
        self._c.into = way == IN

    def busy_ns(self, now: int) -> int:
        """For how long it has been sending, or receiving, up to ``now`` (ns)."""
        return int(self._c.busy - max(0, self._c.free_at - now))

    def takes(self, message_bytes: int, factor: float) -> int:
        """How long a message takes, if it takes so many times as long as it should (ns)."""
        return min(round(-(-message_bytes * S // self.bandwidth) * factor), MAX_DURATION)


SENDER = "sender"
"""Column: number of the task that a message came from, counted from 1; 0: it has not arrived anywhere."""


class Carried(NamedTuple):
    """What went from one host to another, or (not ``remote``) within one."""

    from_host: int
    to_host: int
    messages: int
    bytes: int
    remote: bool


class Wire:
    """From one task to another: what it has carried, and what befalls it.

    up, down   the tasks at its ends
    number     its place among all channels of the data plane, whose struct it has as ``c``
    position   which of the receiver's inputs it is
    remote     whether its ends are on different hosts
    logged     whether what it carries waits in a log, and not in a queue
    """

    __slots__ = (
        *("_before", "_cards", "_losing", "_plane", "_slow"),
        *("c", "down", "logged", "message_bytes", "number", "position", "remote", "up"),
    )

    def __init__(self, plane: Plane, number: int, up: Any, down: Any) -> None:
        self.logged, self.message_bytes = False, 0
        self._plane, self.number, self.up, self.down = plane, number, up, down
        self.position, self.remote = len(down.inputs), up.host != down.host
        self._slow: dict[int, tuple[float, float]] = {}  # (latency, transfer) factors by reason
        self._losing: list[int] = []
        self._cards: tuple[Card | None, Card | None] = (None, None)
        self._before: list[Carried] = []
        """What it carried over other ways than now."""
        self.c: Any = plane.channels[number]
        self.c.up, self.c.down, self.c.position, self.c.stretch = up.number, down.number, self.position, 1.0

    @property
    def name(self) -> str:
        return f"{self.up.name}->{self.down.name}"

    @property
    def messages(self) -> int:
        return int(self.c.sent)

    @property
    def bytes(self) -> int:
        return sum(way.bytes for way in self.by_way)

    @property
    def remote_bytes(self) -> int:
        return sum(way.bytes for way in self.by_way if way.remote)

    @property
    def by_way(self) -> list[Carried]:
        return [*self._before, self._since((self.up.host, self.down.host))]

    def _since(self, hosts: tuple[int, int]) -> Carried:
        """What it has carried since it was led this way, between these hosts."""
        messages = self.messages - sum(way.messages for way in self._before)
        return Carried(*hosts, messages, messages * self.message_bytes, self.remote)

    @property
    def on_the_way(self) -> Sequence[Train]:
        w = self.c.passage
        lists = [self.c.wire, w.flying, w.leaving] if w else [self.c.wire]
        return [train for each in lists if each.n and (train := self._plane.listed(each)).n]

    def arrival(self, count: int) -> tuple[int, bool]:
        """When message number ``count`` (from 1) arrives (ns; 0: it has); False: not before then."""
        behind, w = self.messages - count, self.c.passage
        for place, messages in enumerate((w.leaving, w.flying, self.c.wire) if w else (self.c.wire,)):
            if behind < messages.n:
                when = int(self._plane.rows(messages)["time"][-1 - behind])
                return when, not w or place == 2
            behind -= messages.n
        return 0, True

    def follow(self, ahead: Wire) -> None:
        """Nothing that is sent from now on arrives before what another one has on its way."""
        self._plane.lib.plane_follow(self._plane.p, self.number, ahead.number)

    @property
    def delay(self) -> int | None:
        """Latency of every message, ns; None: it varies."""
        constant = self.c.latency.kind == self._plane.lib.DRAW_CONSTANT
        return int(self.c.latency.low) if constant else None

    def hold(self, until: int) -> None:
        """Nothing gets through before ``until`` (ns)."""
        self._plane.lib.plane_hold(self._plane.p, self.number, self._plane.p.now, until)

    def let_go(self, now: int) -> None:
        """What is sent from now on is not held up any more, and what was held up arrives now."""
        self._plane.lib.plane_let_go(self._plane.p, self.number, now)

    def slow_down(self, reason: int, factors: tuple[float, float] | None) -> None:
        """From now on wires, and cards, take so many times as long, of several the greatest; None: they do no
        more for this reason.
        """
        if factors is None:
            del self._slow[reason]
        else:
            self._slow[reason] = factors
        self._take_time()

    def _take_time(self) -> None:
        """On the wire, and at cards."""
        self._plane.p.changed = 1
        self.c.stretch, transfer = map(max, zip((1.0, 1.0), *self._slow.values(), strict=True))
        if self.c.passage:
            takes = [card.takes(self.message_bytes, transfer) if card else 0 for card in self._cards]
            self.c.passage.out_takes, self.c.passage.in_takes = takes

    def lose(self, reason: int) -> list[Train]:
        """From now on tuples, not control messages, are lost on the wire to this outage; returns those that
        are on it now.
        """
        plane, p = self._plane, self._plane.p
        p.losing += not self._losing
        p.changed = 1
        self._losing.append(reason)
        self.c.losing = reason + 1
        plane.have_messages(0)
        on_wire = self.c.passage.flying if self.c.passage and self._cards[1] is not None else self.c.wire
        plane.lib.plane_take_in(p, self.down.number, p.now)
        train = plane.listed(on_wire)
        lost = train if train.mark is None else train.pick(train.mark == 0)
        if lost.n:
            plane.lib.plane_lose(p, self.number, p.now)
        return [lost]

    def keep(self, reason: int) -> None:
        """Nothing is lost any more for this reason."""
        self._losing.remove(reason)
        self.c.losing = self._losing[-1] + 1 if self._losing else 0
        self._plane.p.changed = 1
        self._plane.p.losing -= not self._losing

    def cut(self) -> list[Train]:
        """Close the connection and open a new one; returns what was on its way, which is lost."""
        lost = list(self.on_the_way)
        self._plane.have_messages(sum(train.n for train in lost))
        self._plane.lib.plane_cut(self._plane.p, self.number, self._plane.p.now)
        return lost

    def go_through(self, out: Card | None, into: Card | None, place_out: int, place_in: int) -> None:
        """From now on messages go through these cards, at these places among the channels of each."""
        w = self._plane.passages[self.number]
        w.out, w.into = (-1 if card is None else card.number for card in (out, into))
        w.place_out, w.place_in = place_out, place_in
        self._cards = out, into
        none = out is None and into is None
        self.c.passage = self._plane.ffi.NULL if none else self._plane.ffi.addressof(w)
        self._take_time()

    def lead(self, before: tuple[int, int], unpacks: bool) -> None:
        """An end has moved, and it was between the hosts ``before``: what is on the wire arrives as it
        would have, and is not overtaken. ``unpacks``: whether messages between hosts cost the receiver
        something.
        """
        self._before.append(self._since(before))
        self.remote = self.up.host != self.down.host
        self._plane.p.changed = 1
        self._plane.lib.plane_lead(self._plane.p, self.number, self._plane.p.now, self.remote and unpacks)


def when_arrived(
    kernel: Kernel, sent: Sequence[tuple[Wire, int]], earliest: int, rank: int, action: Action, order: int
) -> None:
    """Call ``action`` when on each channel message number so-and-so (from 1) of those sent has arrived, at
    ``earliest``. When a message comes through a card is certain only when it has come to it, and a fault may
    hold up what is on its way: this looks again. ``rank``, ``order``: see the kernel.
    """

    def look() -> None:
        when, certain = expected()
        if certain and when <= kernel.now:
            action()
        else:
            kernel.at(when, rank, look, order)

    def expected() -> tuple[int, bool]:
        found = [wire.arrival(count) for wire, count in sent]
        return max([kernel.now, earliest, *(time for time, _ in found)]), all(sure for _, sure in found)

    kernel.at(expected()[0], rank, look, order)


class Line:
    """What one task has made and not sent yet; ``c``: the struct ``line``."""

    def __init__(self, plane: Plane, task: Any, send: int) -> None:
        self._plane, self._number, self._wires = plane, task.number, task.wires
        self.c: Any = task.c.line
        self.c.send = send
        task.c.bounded |= plane.lib.HAS_LINE

    def trains(self) -> list[tuple[Wire, Train]]:
        rows = self._plane.rows(self.c.messages)
        routes = dict.fromkeys(rows["source"].tolist())
        return [(self._wires[route], self._plane.train(rows[rows["source"] == route])) for route in routes]

    def clear(self, now: int) -> list[tuple[Wire, Train]]:
        """Destroy it; returns what was in it."""
        lost = self.trains()
        self._plane.lib.plane_lose_line(self._plane.p, self._number, now)
        return lost

    def blocked_until(self, now: int) -> int:
        """For how long it has held the task up until now (ns)."""
        return int(self.c.blocked + (now - self.c.blocked_since if self.c.full else 0))


GROUPINGS = {"shuffle": "SHUFFLE", "fields": "BY_KEY", "direct": "BY_KEY", "global": "FIRST", "all": "EVERY"}
"""Groupings that the data plane knows, and what they are called there."""
LATE = "late"
"""Column of tuples that were processed: 1 if it came too late for a window by event, 2 if it is known."""


class Sent(NamedTuple):
    """Tuples that left over an edge, in order of their parents. ``copies``: how many of each; None: one."""

    edge: Edge
    copies: Ints | None
    train: Train


def is_given(edge: Edge) -> bool:
    grouping = edge.grouping
    return grouping.kind not in GROUPINGS and not grouping.copies and edge.down.tasks > 1


class Outlet:
    """What one physical task sends over one edge: ``channels[task][replica]``; ``c``: the struct ``outlet``.

    Its channels are in the plane's ``routes`` from that place on.
    """

    def __init__(
        self, plane: Plane, o: Any, edge: Edge, channels: list[list[Wire]], routes: int, draws: Draws
    ) -> None:
        self.edge, self.channels, self.c = edge, channels, o
        kind = "EVERY" if edge.grouping.copies else GROUPINGS.get(edge.grouping.kind, "FIRST")
        o.grouping = getattr(plane.lib, "GIVEN" if is_given(edge) else kind)
        o.component = edge.down.index
        o.tasks, o.replicas, o.routes = len(channels), len(channels[0]), routes
        o.working, o.groups = edge.down.config.parallelism, edge.down.groups or 0
        o.key = int(draws.key(edge.name, Purpose.TARGET))
        o.digits = edge.digits
        o.has_position = bool(edge.fan_bits)
        o.position_shift = edge.edge_bits + edge.task_bits
        o.digit = edge.input_index << edge.task_bits if edge.edge_bits else 0
        o.width = edge.up.output_bits + edge.digits
        o.pad = edge.down.bits - o.width

    def follow(self, other: Outlet) -> None:
        """Nothing arrives before what a replica's outlet has on its wires: connections are new."""
        for mine, theirs in zip(self.channels, other.channels, strict=True):
            for wire, ahead in zip(mine, theirs, strict=True):
                wire.follow(ahead)

    def sent(self, parents: Train, children: Children) -> list[Sent]:
        """What has left over the edge, for those who look at tuples one by one."""
        train = parents if children.rows is None else parents.pick(children.rows, children.key)
        if children.key is not None:
            train = train.replace(key=children.key)
        train = train.replace(uid=self.edge.child_uid(train.uid, children.position))
        copies = children.of_each(parents.n)
        if not self.edge.grouping.copies:
            return [Sent(self.edge, copies, train)]
        tasks = range(len(self.channels))
        return [Sent(self.edge, copies, train.replace(uid=train.uid | task)) for task in tasks]


End = tuple[Way, int]
"""Which card of which host."""


def _ends(wire: Wire) -> tuple[End, End]:
    return (OUT, wire.up.host), (IN, wire.down.host)


MOST = 4_096
"""Latencies that are drawn at once at most: besides what must be known."""


class Network:
    """The cards of all hosts, what messages between hosts cost, and latencies that only Python can draw.

    ``bandwidths``: of the cards that have one, by host (bytes/s). ``moves``: tasks may go to other hosts.
    ``cards``: those that something goes through, or may, by host, out before in.
    """

    def __init__(
        self, plane: Plane, draws: Draws, links: Links, bandwidths: Mapping[int, int], moves: bool
    ) -> None:
        self._plane, self._draws, self._links = plane, draws, links
        self._bandwidths, self._moves = bandwidths, moves
        self._laws: dict[Wire, Distribution] = {}
        self.cards: list[Card] = []
        self.costs = any((links.serialise, links.serialise_cost, links.deserialise, links.deserialise_cost))
        self._cards: dict[End, Card] = {}
        self._wires: list[Wire] = []

    def follow(self, wire: Wire, latency: Distribution) -> None:
        """From its next message on a channel has this latency."""
        self._laws.pop(wire, None)
        wire.c.n_drawn = 0
        if wire.c.latency.kind == self._plane.lib.DRAW_ELSEWHERE:
            self._laws[wire] = latency

    def draw(self, more: int) -> None:
        """Let so many messages more than one step can send have their latencies on each channel."""
        wanted = more + 2 * self._plane.p.most_made
        for wire, latency in self._laws.items():
            c = wire.c
            if c.first_drawn + c.n_drawn - c.sent >= wanted:
                continue
            flown = c.sent - c.stuck - (c.passage.leaving.n if c.passage else 0)
            number = np.arange(flown, c.sent + wanted + min(c.sent, MOST), dtype=np.int64)
            drawn = latency.sample(self._draws.bits(wire.name, Purpose.LATENCY, number))
            self._plane.array(c, "drawn", np.ascontiguousarray(drawn, np.int64))
            c.first_drawn, c.n_drawn = flown, len(number)
        self._plane.p.unknown = 0

    def connect(self, wires: Sequence[Wire]) -> None:
        """Make the cards, and let channels go through them; call it once, with all channels made."""
        self._wires = sorted(wires, key=lambda wire: (wire.up.number, wire.down.number))
        for wire in wires:
            self._price(wire)
        used = {end for wire in wires if wire.remote for end in _ends(wire)}
        ends = [(way, host) for host in sorted(self._bandwidths) for way in (OUT, IN)]
        places = [end for end in ends if self._moves or end in used]
        if places:
            self._plane.have_cards(len(places))
        for number, end in enumerate(places):
            self._cards[end] = Card(self._plane, number, *end, self._bandwidths[end[1]])
        self.cards = list(self._cards.values())

    def lay(self) -> None:
        """Let channels go through the cards of the hosts that their ends are on now."""
        through: list[list[int]] = [[] for _ in self._cards]
        for wire in self._wires if self._cards else ():
            out, into = (self._cards.get(end) if wire.remote else None for end in _ends(wire))
            places = [0 if card is None else len(through[card.number]) for card in (out, into)]
            wire.go_through(out, into, *places)
            for card in (out, into):
                if card is not None:
                    through[card.number].append(wire.number)
        for card, channels in zip(self.cards, through, strict=True):
            self._plane.lay_card(card.number, channels)

    def lead(self, wire: Wire, before: tuple[int, int]) -> None:
        """An end of a channel, which was between those hosts, has moved; ``lay`` when all are told of."""
        wire.lead(before, wire.c.unpacking > 0)
        self._price(wire)

    def _price(self, wire: Wire) -> None:
        """What a message takes, and costs its sender and receiver, by where the ends of its channel are."""
        links, c, size = self._links, wire.c, wire.up.component.config.tuple_size
        wire.message_bytes = size + self._links.header * (wire.up.host != wire.down.host)
        c.unpacking = links.deserialise + (size + links.header) * links.deserialise_cost
        c.unpacks = wire.remote and c.unpacking > 0
        self._plane.p.changed = 1
        c.packing = wire.remote * (links.serialise + wire.message_bytes * links.serialise_cost)

    def passed(self, wire: Wire) -> list[int]:
        """Numbers of the cards that a message goes through, as those behind all tasks."""
        first = self._plane.p.n_tasks
        ends = _ends(wire) if wire.remote else ()
        return [first + self._cards[end].number for end in ends if end in self._cards]
