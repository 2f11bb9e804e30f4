"""Placements: which host takes which task. One class a kind.

The rules (tests/models/test_placement.py, test_estorm.py):

- Logical tasks are numbered in physical order. With `hosts: n` task i goes to host i mod n, without it to a
  host of its own; a component's own `hosts` decide for it. Replica r sits r hosts further, or, where each
  task has its own host, r times the number of logical tasks.
- With machine types, hosts are numbered in the order of the types; host h is in rack h mod `racks`; the
  last `reserve` take no task. Primaries are placed before replicas, components with `hosts` first. A host
  takes as many tasks as it has `slots`.
- `round_robin`: over the hosts, as above; one without a slot, or with a replica of the task, is passed over
  while there is another.
- `k_safe`: no two replicas of a task on one host, nor in one rack if there are racks enough; of the hosts
  with a slot the one with the fewest tasks, ties as `round_robin`.
- `estorm`: primaries as `round_robin`. Then components have turns, nearest to a spout first, one replica
  after the other: to a host with a slot and none of its fleet, where most bytes/s of what it reads come
  from primaries there (mean rates without failures; what windows put out counts 0), then from most senders;
  then the fewest tasks, then the lowest. A host with as many replicas as each would have if they were
  spread evenly, rounded up, is passed over while there is another.
- Workers: of a host's tasks, in physical order, the i-th goes to worker i mod `workers`. The acker lives in
  worker 0 of its host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.job.components import Host
from tideover.models.job.topology import Floats, Topology, traffic
from tideover.sim.registry import Part, Registry

PLACEMENTS: Registry[Placement] = Registry("placement")

Place = tuple[str, int, int]


class PlacementError(ValueError):
    """Tasks that cannot be placed; ``path``: the keys of the scenario that say where they should go."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(f"{'.'.join(map(str, path))}: {message}")
        self.path, self.message = path, message


class Seating:
    """Who sits where so far, and where there is room.

    hosts   those that take tasks, by rising number
    at      host of each place that has one
    taken   how many sit on each host
    """

    def __init__(self, topology: Topology, replicas: Mapping[str, int], hosts: Sequence[Host]) -> None:
        self.topology, self.replicas, self.hosts = topology, replicas, hosts
        self.at: dict[Place, int] = {}
        self.taken: Counter[int] = Counter()

    def open(self) -> Iterator[tuple[int, Place]]:
        """Places without a host, with the logical task's number: all primaries, then first replicas, …"""
        logical = [(c.name, task) for c in self.topology.components for task in range(c.tasks)]
        for replica in range(max(self.replicas.values(), default=0)):
            for number, (name, task) in enumerate(logical):
                if replica < self.replicas[name] and (name, task, replica) not in self.at:
                    yield number, (name, task, replica)

    def siblings(self, place: Place) -> set[int]:
        name, task, _ = place
        fleet = ((name, task, replica) for replica in range(self.replicas[name]))
        return {self.at[other] for other in fleet if other in self.at and other != place}

    def has_room(self, host: Host) -> bool:
        return host.slots is None or self.taken[host.number] < host.slots

    def seat(self, place: Place, host: int) -> None:
        self.at[place] = host
        self.taken[host] += 1

    def ring(self, first: int) -> Iterator[Host]:
        """All hosts, from the one with this place among them on, and round."""
        count = len(self.hosts)
        return (self.hosts[(first + further) % count] for further in range(count))

    def no_host_apart(self, place: Place, apart: str = "hosts") -> PlacementError:
        """Of a task that keeps its replicas on different hosts, or in different ``apart``."""
        name, task, replica = place
        copy = f" replica {replica} of" if replica else ""
        return PlacementError(
            ("hosts",),
            f"no host is left for{copy} task {task} of {name}: its {self.replicas[name]} replicas need "
            f"different {apart} and a slot, and {len(self.hosts)} hosts take tasks; "
            "give more machines or slots, or fewer replicas",
        )

    def no_slot(self, place: Place) -> PlacementError:
        name, task, replica = place
        wanted = sum(c.tasks * self.replicas[c.name] for c in self.topology.components)
        slots = sum(host.slots or 0 for host in self.hosts)
        copy = f", replica {replica}," if replica else ""
        return PlacementError(
            ("hosts",),
            f"no slot is left for task {task} of {name}{copy}: {wanted} tasks, and {slots} slots on "
            f"{len(self.hosts)} hosts; give more slots or machines",
        )


class Placement(Part):
    """How tasks come to hosts; those of components with ``hosts`` of their own sit there already."""

    kind: ClassVar[str]

    def fill(self, seating: Seating) -> None:
        """Seat every place that is open; raises PlacementError if one finds no host."""
        raise NotImplementedError


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
            name, task, replica = place
            tasks, copies = seating.topology.by_name[name].tasks, seating.replicas[name]
            rows = self.tasks.get(name)
            if rows is None:
                message = f"says nothing of {name}; give the hosts of its {tasks} tasks, as in {name}: [[0]]"
                raise _refused(message)
            if len(rows) != tasks:
                raise _refused(f"has {len(rows)} lists of hosts for {tasks} tasks; give one for each", name)
            if len(rows[task]) < copies:
                given = f"names {len(rows[task])} hosts for {copies} replicas of task {task}"
                raise _refused(f"{given}; give one for each", name, task)
            number = rows[task][replica]
            host = next((host for host in seating.hosts if host.number == number), None)
            if host is None:
                message = f"there is no host {number} for tasks; those are 0 to {seating.hosts[-1].number}"
            elif number in seating.siblings(place):
                message = (
                    f"two replicas of task {task} of {name} on host {number}; give each a host of its own"
                )
            elif not seating.has_room(host):
                message = f"host {number} has no slot left (slots: {host.slots})"
            else:
                seating.seat(place, number)
                continue
            raise _refused(message, name, task, replica)


def _refused(message: str, *path: str | int) -> PlacementError:
    return PlacementError(("hosts", "placement", "tasks", *path), message)


@PLACEMENTS.register("estorm")
class FleetPlacement(Placement):
    """Primaries as round robin puts them; each shadow (a replica after the first) where most of what it reads
    is local then, of the hosts with a slot left, and never where another of its fleet is.

    Shadows are spread: with n of them on m hosts none takes more than n / m, rounded up, while others have
    room. Operators have their turns breadth-first from the spouts, one shadow a turn. Read are the primaries
    of the tasks before; of hosts that are alike the one with the most senders, then the fewest tasks, then
    the next in order takes it. X. Liu et al., *E-Storm: Replication-based State Management in Distributed
    Stream Processing Systems*, ICPP 2017, section IV, algorithm 1.
    """

    def fill(self, seating: Seating) -> None:
        deal(seating, [one for one in seating.open() if one[1][2] == 0])
        rates = traffic(seating.topology)
        depth: dict[str, int] = {}
        for c in seating.topology.components:
            depth[c.name] = 1 + min((depth[edge.up.name] for edge in c.inputs), default=-1)
        shadows = []
        for name in sorted(depth, key=lambda name: depth[name]):
            tasks = range(seating.topology.by_name[name].tasks)
            shadows.append([(name, task, r) for r in range(1, seating.replicas[name]) for task in tasks])
        most = -(-sum(map(len, shadows)) // len(seating.hosts))
        placed: Counter[int] = Counter()
        for turn in zip_longest(*shadows):
            for place in filter(None, turn):
                full = {host for host, many in placed.items() if many >= most}
                host = self._best(seating, place, rates, full).number
                seating.seat(place, host)
                placed[host] += 1

    def _best(self, seating: Seating, place: Place, rates: Mapping[str, Floats], full: set[int]) -> Host:
        fleet = seating.siblings(place)
        free = [h for h in seating.ring(0) if h.number not in fleet and seating.has_room(h)]
        if not free:
            raise seating.no_host_apart(place)
        free = [host for host in free if host.number not in full] or free
        name, task, _ = place
        local: dict[int, tuple[float, int]] = {}  # bytes/s from each host, and from how many tasks
        for edge in seating.topology.by_name[name].inputs:
            each = float(rates[edge.name][task]) * edge.up.config.tuple_size / edge.up.tasks
            for sender in range(edge.up.tasks):
                host = seating.at[edge.up.name, sender, 0]
                rate, senders = local.get(host, (0.0, 0))
                local[host] = rate + each, senders + 1
        return max(free, key=lambda host: (*local.get(host.number, (0, 0)), -seating.taken[host.number]))


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
            fleet, (name, task, replica) = seating.siblings(place), place
            apart = len(set(racks.values())) >= seating.replicas[name]
            taken = {racks[host] for host in fleet} if apart else set()
            first = seating.at[name, task, 0] + replica if replica else number
            free = [h for h in seating.ring(first) if h.number not in fleet and h.rack not in taken]
            free = [host for host in free if seating.has_room(host)]
            if not free:
                raise seating.no_host_apart(place, "racks" if apart else "hosts")
            seating.seat(place, min(free, key=lambda host: seating.taken[host.number]).number)


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
        siblings, (name, task, replica) = seating.siblings(place), place
        first = seating.at[name, task, 0] + replica if replica else number
        free = [host.number for host in seating.ring(first) if seating.has_room(host)]
        if not free:
            raise seating.no_slot(place)
        seating.seat(place, next((host for host in free if host not in siblings), free[0]))
