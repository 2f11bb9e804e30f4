"""Coupled nodes are moved tuple by tuple: their sites, the wires between them, and what they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tideover.sim.agenda import Agenda
from tideover.sim.backpressure import ServerSite
from tideover.sim.card import NetworkChannel, Port
from tideover.sim.card_wire import CardWire
from tideover.sim.core_site import server_site, share
from tideover.sim.link import Channel
from tideover.sim.node import Node
from tideover.sim.server import Server
from tideover.sim.site import Member, Site, Wire
from tideover.sim.spout_site import SpoutSite
from tideover.sim.train import Ints


def contend(members: Sequence[Member], now: int, until: int, ports: Sequence[Port] = ()) -> tuple[int, int]:
    """Move coupled nodes, and the cards among them (``ports``, those out first), from ``now`` to ``until``,
    or to the departure of a trigger; returns the moment, and how much was done.
    """
    agenda = Agenda(now, until)
    servers = {m.node: server_site(agenda, m) for m in members if isinstance(m.node, Server)}
    cores = share(agenda, members, servers)
    spouts = [SpoutSite(agenda, m) for m in members if not isinstance(m.node, Server)]
    senders: dict[Node, Site] = {site.node: site for site in [*spouts, *servers.values()]}
    wires = _Wires(agenda, ports)
    for site in servers.values():
        site.inputs = [wires.of(channel, site) for channel in site.node.inputs]
    for member in members:
        senders[member.node].wires = {channel: wires.of(channel) for channel in member.outputs}
    for site in servers.values():
        site.take_over()
        site.make_room()
        for wire in site.inputs:
            wire.load()
    wires.load()
    for each in senders.values():
        each.load()
    for room in {
        wire.room: None for site in servers.values() for wire in site.inputs if wire.room is not None
    }:
        room.grant(now)
    for spout in spouts:
        spout.start()
    reached = agenda.run()
    for shared in cores:
        shared.close(reached)
    for each in senders.values():
        for wire in each.wires.values():
            wire.settle()
    emitted = np.array(agenda.emitted, np.int64)
    for member in members:
        senders[member.node].settle(reached, emitted)
    wires.put_back(emitted)
    return reached, agenda.done


class _Wires:
    """All channels among coupled nodes."""

    def __init__(self, agenda: Agenda, ports: Sequence[Port]) -> None:
        self._agenda = agenda
        self._ports = dict.fromkeys(ports)
        self._wires: dict[Channel, Wire] = {}

    def of(self, channel: Channel, to: Site | None = None) -> Wire:
        """The one of a channel; ``to``: who gets what it carries, if it is the first time."""
        wire = self._wires.get(channel)
        if wire is None:
            wire = self._wires[channel] = self._new(channel, to)
        return wire

    def _new(self, channel: Channel, to: Site | None) -> Wire:
        assert to is None or isinstance(to, ServerSite)
        if isinstance(channel, NetworkChannel):
            return CardWire(self._agenda, channel, to, self._ports)
        return Wire(self._agenda, channel, to)

    def load(self) -> None:
        """What comes to cards: those in first, since what is there is ahead."""
        for port in reversed(self._ports):
            for _, channel, train, time, _ in port.unload():
                wire = self.of(channel)
                assert isinstance(wire, CardWire)
                wire.load_from(port, train, time)

    def put_back(self, emitted: Ints) -> None:
        """See `Wire.put_back`."""
        for wire in self._wires.values():
            wire.put_back(emitted)
