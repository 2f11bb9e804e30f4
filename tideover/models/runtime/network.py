"""The cards of hosts, and which channels go through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tideover.models.job.components import Links
from tideover.models.runtime.card import IN, OUT, Card, Way
from tideover.models.runtime.wire import Wire
from tideover.sim.plane.plane import Plane


class Network:
    """The cards of all hosts, and what messages between hosts cost.

    ``bandwidths``: of the cards that have one, by host (bytes/s). ``moves``: tasks may go to other hosts.
    """

    def __init__(self, plane: Plane, links: Links, bandwidths: Mapping[int, int], moves: bool) -> None:
        self._plane, self._links, self._bandwidths, self._moves = plane, links, bandwidths, moves
        self._cards: dict[tuple[Way, int], Card] = {}
        self._wires: list[Wire] = []

    @property
    def cards(self) -> list[Card]:
        """All cards that something goes through, or may, by host, out before in."""
        return list(self._cards.values())

    @property
    def costs(self) -> bool:
        """Whether messages between hosts cost tasks anything."""
        links = self._links
        return bool(links.serialise or links.serialise_cost or links.deserialise or links.deserialise_cost)

    def connect(self, wires: Sequence[Wire]) -> None:
        """Make the cards, and let channels go through them; call it once, with all channels made."""
        self._wires = sorted(wires, key=lambda wire: (wire.up.number, wire.down.number))
        for wire in wires:
            self._price(wire)
        used = {end for wire in wires if wire.remote for end in _ends(wire)}
        hosts = sorted(self._bandwidths)
        if self._moves:
            used = {(way, host) for host in hosts for way in (OUT, IN)}
        places = [(way, host) for host in hosts for way in (OUT, IN) if (way, host) in used]
        if not places:
            return
        self._plane.have_cards(len(places))
        for number, (way, host) in enumerate(places):
            self._cards[way, host] = Card(self._plane, number, way, host, self._bandwidths[host])

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
        for card, channels in zip(self._cards.values(), through, strict=True):
            self._plane.lay_card(card.number, channels)

    def lead(self, wire: Wire, before: tuple[int, int]) -> None:
        """An end of a channel, which was between those hosts, has moved; lay the network again when all are
        told of.
        """
        wire.lead(before, bool(self._unpacking(wire)))
        wire.message_bytes = self.message_bytes(wire)
        self._price(wire)

    def message_bytes(self, wire: Wire) -> int:
        """Bytes of a message, by where the ends of its channel are."""
        return wire.up.component.config.tuple_size + self._links.header * (wire.up.host != wire.down.host)

    def _unpacking(self, wire: Wire) -> int:
        """What a message from another host costs the receiver (ns)."""
        size = wire.up.component.config.tuple_size + self._links.header
        return self._links.deserialise + size * self._links.deserialise_cost

    def _price(self, wire: Wire) -> None:
        links, c = self._links, wire.c
        c.unpacking = self._unpacking(wire)
        c.unpacks = wire.remote and c.unpacking > 0
        self._plane.p.changed = 1
        c.packing = wire.remote * (links.serialise + wire.message_bytes * links.serialise_cost)

    def passed(self, wire: Wire) -> list[int]:
        """Numbers of the cards that a message goes through, as those behind all tasks."""
        first = self._plane.p.n_tasks
        ends = _ends(wire) if wire.remote else ()
        return [first + self._cards[end].number for end in ends if end in self._cards]


def _ends(wire: Wire) -> tuple[tuple[Way, int], tuple[Way, int]]:
    return (OUT, wire.up.host), (IN, wire.down.host)
