"""Which host takes which task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tideover.models.job.machines import Host
from tideover.models.job.topology import Topology
from tideover.sim.registry import Part, Registry

PLACEMENTS: Registry[Placement] = Registry("placement")

Place = tuple[str, int, int]
"""Component, task, replica."""


class PlacementError(ValueError):
    """Tasks that cannot be placed; ``path``: the keys of the scenario that say where they should go."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(f"{'.'.join(map(str, path))}: {message}")
        self.path = path
        self.message = message


class Seating:
    """Who sits where so far, and where there is room.

    hosts   those that take tasks, by rising number
    at      host of each place that has one
    """

    def __init__(self, topology: Topology, replicas: Mapping[str, int], hosts: Sequence[Host]) -> None:
        self.topology = topology
        self.replicas = replicas
        self.hosts = hosts
        self.at: dict[Place, int] = {}
        self._taken: Counter[int] = Counter()

    def open(self) -> Iterator[tuple[int, Place]]:
        """Places without a host, first the primaries of all tasks, then their first replicas, and so on; so
        no primary sits elsewhere because there are replicas. With the number of the logical task.
        """
        logical = [(c.name, task) for c in self.topology.components for task in range(c.tasks)]
        for replica in range(max(self.replicas.values(), default=0)):
            for number, (name, task) in enumerate(logical):
                if replica < self.replicas[name] and (name, task, replica) not in self.at:
                    yield number, (name, task, replica)

    def primary(self, place: Place) -> int:
        """The host of the task's first replica, which has one."""
        return self.at[place[0], place[1], 0]

    def siblings(self, place: Place) -> set[int]:
        """The hosts of other replicas of the same task."""
        name, task, _ = place
        fleet = ((name, task, replica) for replica in range(self.replicas[name]))
        return {self.at[other] for other in fleet if other in self.at and other != place}

    def taken(self, host: Host) -> int:
        """How many tasks it has."""
        return self._taken[host.number]

    def has_room(self, host: Host) -> bool:
        """Whether it has a slot left."""
        return host.slots is None or self._taken[host.number] < host.slots

    def seat(self, place: Place, host: int) -> None:
        """Put a task on a host."""
        self.at[place] = host
        self._taken[host] += 1

    def ring(self, first: int) -> Iterator[Host]:
        """All hosts, from the one with this place among them on, and round."""
        count = len(self.hosts)
        return (self.hosts[(first + further) % count] for further in range(count))

    def no_host_apart(self, place: Place, apart: str = "hosts") -> PlacementError:
        """There is no host left for a task that keeps its replicas on different hosts, or in ``apart``."""
        name, task, replica = place
        copy = f" replica {replica} of" if replica else ""
        message = (
            f"no host is left for{copy} task {task} of {name}: its {self.replicas[name]} replicas need "
            f"different {apart} and a slot, and {len(self.hosts)} hosts take tasks; "
            "give more machines or slots, or fewer replicas"
        )
        return PlacementError(("hosts",), message)

    def no_slot(self, place: Place) -> PlacementError:
        """There is no slot left for a task."""
        name, task, replica = place
        wanted = sum(c.tasks * self.replicas[c.name] for c in self.topology.components)
        slots = sum(host.slots or 0 for host in self.hosts)
        copy = f", replica {replica}," if replica else ""
        message = (
            f"no slot is left for task {task} of {name}{copy}: {wanted} tasks, and {slots} slots on "
            f"{len(self.hosts)} hosts; give more slots or machines"
        )
        return PlacementError(("hosts",), message)


class Placement(Part):
    """How tasks come to hosts; those of components with ``hosts`` of their own sit there already."""

    kind: ClassVar[str]

    def fill(self, seating: Seating) -> None:
        """Seat every place that is open; raises PlacementError if one finds no host."""
        raise NotImplementedError
