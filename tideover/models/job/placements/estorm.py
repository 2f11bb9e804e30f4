"""E-Storm's placement: shadows where they make traffic local."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tideover.models.job.machines import Host
from tideover.models.job.placements.base import PLACEMENTS, Place, Placement, Seating
from tideover.models.job.placements.round_robin import deal
from tideover.models.job.topology import Topology
from tideover.models.job.traffic import Floats, traffic


@PLACEMENTS.register("estorm")
class FleetPlacement(Placement):
    """Primaries as round robin puts them; each shadow (a replica after the first) where most of what it reads
    is local then, of the hosts with a slot left, and never where another of its fleet is.

    Operators have their turns breadth-first from the spouts, one shadow a turn. Read are the primaries of the
    tasks before; of hosts that are alike the one with the most senders, then the fewest tasks, then the next
    in order takes it. X. Liu et al., *E-Storm: Replication-based State Management in Distributed Stream
    Processing Systems*, ICPP 2017, section IV.
    """

    def fill(self, seating: Seating) -> None:
        deal(seating, [one for one in seating.open() if one[1][2] == 0])
        rates = traffic(seating.topology)
        shadows = {c: _shadows(seating, c) for c in breadth_first(seating.topology)}
        while shadows:
            for name in list(shadows):
                place = next(shadows[name], None)
                if place is None:
                    del shadows[name]
                else:
                    seating.seat(place, self._best(seating, place, rates).number)

    def _best(self, seating: Seating, place: Place, rates: dict[str, Floats]) -> Host:
        fleet = seating.siblings(place)
        free = [h for h in seating.ring(0) if h.number not in fleet and seating.has_room(h)]
        if not free:
            raise seating.no_host_apart(place)
        local = _local(seating, place, rates)
        none = Local(0, 0)
        return max(free, key=lambda host: (*local.get(host.number, none), -seating.taken(host)))


class Local(NamedTuple):
    """What a shadow would read from its own host: bytes/s, and how many tasks."""

    rate: float
    senders: int


def _local(seating: Seating, place: Place, rates: dict[str, Floats]) -> dict[int, Local]:
    """By host. Senders of a component are taken to send alike."""
    name, task, _ = place
    found: dict[int, Local] = {}
    for edge in seating.topology.by_name[name].inputs:
        each = float(rates[edge.name][task]) * edge.up.config.tuple_size / edge.up.tasks
        for sender in range(edge.up.tasks):
            host = seating.at[edge.up.name, sender, 0]
            rate, senders = found.get(host, Local(0, 0))
            found[host] = Local(rate + each, senders + 1)
    return found


def _shadows(seating: Seating, name: str) -> Iterator[Place]:
    """Those of a component, all first ones before all second ones."""
    tasks = range(seating.topology.by_name[name].tasks)
    return iter([(name, task, r) for r in range(1, seating.replicas[name]) for task in tasks])


def breadth_first(topology: Topology) -> list[str]:
    """The components, nearest to a spout first; of those as near in topological order."""
    depth: dict[str, int] = {}
    for c in topology.components:
        depth[c.name] = 1 + min((depth[edge.up.name] for edge in c.inputs), default=-1)
    return sorted(depth, key=lambda name: depth[name])
