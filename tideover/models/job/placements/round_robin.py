"""One host after the other."""

from __future__ import annotations

from tideover.models.job.placements.base import PLACEMENTS, Placement, Seating


@PLACEMENTS.register("round_robin")
class RoundRobin(Placement):
    """Task number i goes to host i mod n, and replica r of it r hosts further, as Storm deals executors.

    A host without a slot left, or with a replica of the same task, is passed over while there is another.
    """

    def fill(self, seating: Seating) -> None:
        for number, place in seating.open():
            siblings = seating.siblings(place)
            free = [host for host in seating.ring(number + place[2]) if seating.has_room(host)]
            if not free:
                raise seating.no_slot(place)
            chosen = next((host for host in free if host.number not in siblings), free[0])
            seating.seat(place, chosen.number)
