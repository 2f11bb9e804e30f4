"""Replicas that no single host or rack takes down together."""

from __future__ import annotations

from tideover.models.job.placements.base import PLACEMENTS, Placement, PlacementError, Seating


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
            siblings, replicas = seating.siblings(place), seating.replicas[place[0]]
            if replicas > len(racks):
                raise PlacementError(("hosts",), _too_few(place[0], replicas, len(racks)))
            first = seating.primary(place) + place[2] if place[2] else number
            free = [h for h in seating.ring(first) if h.number not in siblings and seating.has_room(h)]
            if replicas <= len(set(racks.values())):
                taken = {racks[host] for host in siblings}
                free = [host for host in free if host.rack not in taken]
            if not free:
                raise seating.no_slot(place)
            seating.seat(place, min(free, key=seating.taken).number)


def _too_few(name: str, replicas: int, hosts: int) -> str:
    return (
        f"k_safe keeps the {replicas} replicas of each task of {name} on different hosts, and there are only "
        f"{hosts} for tasks; give more machines or fewer replicas"
    )
