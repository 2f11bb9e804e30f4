"""Replicas that no single host or rack takes down together."""

from __future__ import annotations

from tideover.models.job.placements.base import PLACEMENTS, Placement, Seating


@PLACEMENTS.register("k_safe")
class KSafe(Placement):
    """No two replicas of a task on one host, nor in one rack if there are as many racks; else evenly.

    Of the hosts that are allowed the one with the fewest tasks takes the next, and of several the next in
    turn. Of k + 1 replicas one is left, whichever k hosts fail, or k racks if there are k + 1 of them. E.
    Tanuwidjaja, *High Availability on a Distributed Real Time Processing System*, UC Berkeley EECS-2015-134.
    """

    def fill(self, seating: Seating) -> None:
        racks = {host.number: host.rack for host in seating.hosts}
        for number, place in seating.open():
            fleet = seating.siblings(place)
            apart = len(set(racks.values())) >= seating.replicas[place[0]]
            taken = {racks[host] for host in fleet} if apart else set()
            first = seating.primary(place) + place[2] if place[2] else number
            free = [h for h in seating.ring(first) if h.number not in fleet and h.rack not in taken]
            free = [host for host in free if seating.has_room(host)]
            if not free:
                raise seating.no_host_apart(place, "racks" if apart else "hosts")
            seating.seat(place, min(free, key=seating.taken).number)
