"""One host after the other."""

from __future__ import annotations

from collections.abc import Iterable

from tideover.models.job.machines import Host
from tideover.models.job.placements.base import PLACEMENTS, Place, Placement, Seating


@PLACEMENTS.register("round_robin")
class RoundRobin(Placement):
    """Task number i goes to host i mod n, as Storm deals executors; replica r sits r hosts further.

    A host without a slot left, or with a replica of the same task, is passed over while there is another.
    """

    def fill(self, seating: Seating) -> None:
        deal(seating, seating.open())


def deal(seating: Seating, places: Iterable[tuple[int, Place]]) -> None:
    """Seat these places, numbered by their logical task, one host after the other."""
    for number, place in places:
        siblings, replica = seating.siblings(place), place[2]
        first = seating.primary(place) + replica if replica else number
        chosen = _first(seating, first, siblings) or _first(seating, first, set())
        if chosen is None:
            raise seating.no_slot(place)
        seating.seat(place, chosen.number)


def _first(seating: Seating, first: int, siblings: set[int]) -> Host | None:
    """The next host with a slot left and none of the siblings."""
    hosts = (host for host in seating.ring(first) if seating.has_room(host))
    return next((host for host in hosts if host.number not in siblings), None)
