"""Channels between tasks: latency, first in first out, bytes counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.sim.kernel import Action, Kernel
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.models.runtime.card import Card
    from tideover.sim.plane.plane import Plane

Tell = Callable[[Train, bool], None]
"""Is told of tuples that are lost; whether they were on the wire already."""

SENDER = "sender"
"""Column: number of the task that a message came from, counted from 1; 0: it has not arrived anywhere."""


class Carried(NamedTuple):
    """Messages that went from one host to another, or (not ``remote``) within one, and their bytes."""

    from_host: int
    to_host: int
    messages: int
    bytes: int
    remote: bool


class Wire:
    """From one task to another: what it has carried, and what befalls it.

    up, down   the tasks at its ends: that of a spout or of a bolt; and of a bolt
    number     its place among all channels of the data plane
    c          the struct ``channel``
    message_bytes  how long a message is
    position   which of the receiver's inputs it is
    remote     whether its ends are on different hosts
    logged     whether what it carries waits in a log, and not in a queue
    """

    __slots__ = (
        *("_before", "_cards", "_losing", "_plane", "_slow"),
        *("c", "down", "logged", "message_bytes", "number", "position", "remote", "up"),
    )

    def __init__(
        self,
        plane: Plane,
        number: int,
        up: Any,
        down: Any,
        position: int,
        remote: bool,
    ) -> None:
        self.logged, self.message_bytes = False, 0
        self._plane, self.number, self.up, self.down = plane, number, up, down
        self.position, self.remote = position, remote
        self._slow: dict[int, tuple[float, float]] = {}
        self._losing: list[int] = []
        self._cards: tuple[Card | None, Card | None] = (None, None)
        self._before: list[Carried] = []
        """What it carried over other ways than now."""
        self.c: Any = plane.channels[number]

    # -- what it has carried ---------------------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """Messages that were sent."""
        return int(self.c.sent)

    @property
    def withheld(self) -> bool:
        """What is made for it does not leave: its sender keeps it."""
        return bool(self.c.withheld)

    @withheld.setter
    def withheld(self, withheld: bool) -> None:
        self.c.withheld = withheld

    @property
    def flown(self) -> int:
        """Those of them that have come to the wire."""
        waiting = int(self.c.passage.leaving.n) if self.c.passage else 0
        return self.messages - waiting - int(self.c.stuck)

    @property
    def bytes(self) -> int:
        """Bytes carried so far."""
        return sum(way.bytes for way in self.by_way)

    @property
    def remote_bytes(self) -> int:
        """Those of them that went from one host to another."""
        return sum(way.bytes for way in self.by_way if way.remote)

    @property
    def by_way(self) -> list[Carried]:
        """What it has carried, by where its ends were."""
        return [*self._before, self._since((self.up.host, self.down.host))]

    def _since(self, hosts: tuple[int, int]) -> Carried:
        """What it has carried since it was led this way, between these hosts."""
        messages = self.messages - sum(way.messages for way in self._before)
        return Carried(*hosts, messages, messages * self.message_bytes, self.remote)

    @property
    def on_the_way(self) -> Sequence[Train]:
        """All that was sent and has not arrived."""
        w = self.c.passage
        lists = [self.c.wire, w.flying, w.leaving] if w else [self.c.wire]
        return [train for each in lists if each.n and (train := self._plane.listed(each)).n]

    def arrival(self, count: int) -> tuple[int, bool]:
        """When the message number ``count`` (from 1) of those sent arrives (ns; 0: it has), and whether this
        is certain; else it is not before.
        """
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

    # -- what befalls it -------------------------------------------------------------------------------------

    def hold(self, until: int) -> None:
        """Nothing gets through before ``until`` (ns)."""
        self._plane.lib.plane_hold(self._plane.p, self.number, self._plane.p.now, until)

    def let_go(self, now: int) -> None:
        """What is sent from now on is not held up any more, and what was held up arrives now."""
        self._plane.lib.plane_let_go(self._plane.p, self.number, now)

    def slow_down(self, reason: int, latency: float, transfer: float) -> None:
        """Messages that come to the wire from now on are on it for ``latency`` times as long, those that come
        to a card take ``transfer`` times as long there; of several reasons the greatest factor holds.
        """
        self._slow[reason] = latency, transfer
        self._take_time()

    def recover(self, reason: int) -> None:
        """What made it slow does so no more."""
        del self._slow[reason]
        self._take_time()

    def _take_time(self) -> None:
        """On the wire, and at cards."""
        self._plane.p.changed = 1
        self.c.stretch, transfer = map(max, zip((1.0, 1.0), *self._slow.values(), strict=True))
        if self.c.passage:
            out, into = (
                0 if card is None else card.takes(self.message_bytes, transfer) for card in self._cards
            )
            self.c.passage.out_takes, self.c.passage.in_takes = out, into

    def lose(self, reason: int, tell: Tell) -> None:
        """Tuples that are on the wire, or come to it from now on, are lost, because of the outage of this
        number; control messages stay. ``tell`` is told of the former.
        """
        p = self._plane.p
        p.losing += not self._losing
        p.changed = 1
        self._losing.append(reason)
        self.c.losing = reason + 1
        self._plane.have_messages(0)
        on_wire = self.c.passage.flying if self.c.passage and self._cards[1] is not None else self.c.wire
        self._plane.lib.plane_take_in(p, self.down.number, p.now)
        train = self._plane.listed(on_wire)
        lost = train if train.mark is None else train.pick(train.mark == 0)
        if lost.n:
            tell(lost, True)
            self._plane.lib.plane_lose(p, self.number, p.now)

    def keep(self, reason: int) -> None:
        """Nothing is lost any more for this reason."""
        self._losing.remove(reason)
        self.c.losing = self._losing[-1] + 1 if self._losing else 0
        self._plane.p.changed = 1
        self._plane.p.losing -= not self._losing

    def cut(self) -> list[Train]:
        """Close the connection, and open a new one: what is on its way is lost, and gives back its places;
        returns it.
        """
        lost = list(self.on_the_way)
        self._plane.have_messages(sum(train.n for train in lost))
        self._plane.lib.plane_cut(self._plane.p, self.number, self._plane.p.now)
        return lost

    # -- which way it goes -----------------------------------------------------------------------------------

    def go_through(self, out: Card | None, into: Card | None, place_out: int, place_in: int) -> None:
        """Messages that are sent from now on go through these cards (None: through none), at these places
        among the channels of each.
        """
        w, c = self._plane.passages[self.number], self.c
        w.out, w.into = (-1 if card is None else card.number for card in (out, into))
        w.place_out, w.place_in = place_out, place_in
        self._cards = out, into
        none = out is None and into is None
        c.passage = self._plane.ffi.NULL if none else self._plane.ffi.addressof(w)
        self._take_time()

    def lead(self, before: tuple[int, int], unpacks: bool) -> None:
        """An end has moved, and it was between the hosts ``before``: what is on the wire arrives as it
        would have, and is not overtaken. ``unpacks``: whether messages between hosts cost the receiver
        something.
        """
        self._before.append(self._since(before))
        self.remote = self.up.host != self.down.host
        plane = self._plane
        plane.p.changed = 1
        plane.lib.plane_lead(plane.p, self.number, plane.p.now, self.remote and unpacks)


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
