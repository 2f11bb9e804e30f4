"""Each replica where the scenario says."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tideover.models.job.placements.base import PLACEMENTS, Place, Placement, PlacementError, Seating


@PLACEMENTS.register("by_hand")
class ByHand(Placement):
    """``tasks`` names the host of each replica of each task: `{count: [[0, 1], [2, 0]]}` puts task 0 of count
    on host 0 and its replica on host 1.

    Hosts that are named for replicas which the strategy does not have stay free of them.
    """

    tasks: Annotated[
        dict[str, tuple[tuple[int, ...], ...]],
        Field(description="by component: of each task the hosts of its replicas, the primary's first"),
    ]

    def fill(self, seating: Seating) -> None:
        for name in self.tasks:
            if name not in seating.topology.by_name:
                known = ", ".join(seating.topology.by_name)
                raise _refused(f"there is no component {name!r} (known: {known})", name)
        for _, place in seating.open():
            seating.seat(place, self._host(seating, place))

    def _host(self, seating: Seating, place: Place) -> int:
        name, task, replica = place
        tasks, copies = seating.topology.by_name[name].tasks, seating.replicas[name]
        rows = self.tasks.get(name)
        if rows is None:
            raise _refused(
                f"says nothing of {name}; give the hosts of its {tasks} tasks, as in {name}: [[0]]"
            )
        if len(rows) != tasks:
            raise _refused(f"has {len(rows)} lists of hosts for {tasks} tasks; give one for each", name)
        if len(rows[task]) < copies:
            message = f"names {len(rows[task])} hosts for {copies} replicas of task {task}; give one for each"
            raise _refused(message, name, task)
        number = rows[task][replica]
        host = next((host for host in seating.hosts if host.number == number), None)
        if host is None:
            last = seating.hosts[-1].number
            raise _refused(f"there is no host {number} for tasks; those are 0 to {last}", name, task, replica)
        if number in seating.siblings(place):
            message = f"two replicas of task {task} of {name} on host {number}; give each a host of its own"
            raise _refused(message, name, task, replica)
        if not seating.has_room(host):
            raise _refused(f"host {number} has no slot left (slots: {host.slots})", name, task, replica)
        return number


def _refused(message: str, *path: str | int) -> PlacementError:
    return PlacementError(("hosts", "placement", "tasks", *path), message)
