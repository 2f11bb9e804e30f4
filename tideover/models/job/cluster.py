"""The cluster that a job runs on: racks of hosts, workers, and what is deployed where.

A scenario has it made, a job and its supervisor ask it. Which host takes which task is in `placements.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from tideover.models.job.components import Bounds, Host, Links, MachineType, Run, Store
from tideover.models.job.placements import Place, Placement, PlacementError, RoundRobin, Seating
from tideover.models.job.stores import StoreKind
from tideover.models.job.topology import Topology
from tideover.sim.faults import Fault
from tideover.sim.registry import Part


class Hosts(Part):
    """The machines of a cluster, its racks and workers, and which host takes which task.

    Hosts are numbered from 0, in the order of the machine types, and go round the racks: host h stands in
    rack h mod ``racks``. The last ``reserve`` of them stand by.
    """

    machines: Annotated[dict[str, MachineType], Field(min_length=1, description="types of machines, by name")]
    racks: Annotated[int, Field(ge=1, le=100_000, description="number of racks that the hosts go round")] = 1
    workers: Annotated[
        int, Field(ge=1, le=1024, description="worker processes of each host; its tasks go round them")
    ] = 1
    reserve: Annotated[
        int, Field(ge=0, le=100_000, description="hosts that take no task at first: the last ones")
    ] = 0
    placement: Annotated[Placement, Field(description="which host takes which task")] = RoundRobin()

    @property
    def count(self) -> int:
        """How many hosts there are, those in reserve among them."""
        return sum(machine.count for machine in self.machines.values())

    @model_validator(mode="after")
    def _enough(self) -> Hosts:
        if self.racks > self.count:
            raise ValueError(
                f"racks: {self.racks} racks are too many for {self.count} hosts; at most one for each"
            )
        if self.reserve >= self.count:
            raise ValueError(
                f"reserve: {self.reserve} hosts in reserve of {self.count} leave none for the tasks; "
                f"at most {self.count - 1}"
            )
        return self

    def each(self) -> Iterator[Host]:
        number, first_in_reserve = 0, self.count - self.reserve
        for name, m in self.machines.items():
            for _ in range(m.count):
                reserve, rack = number >= first_in_reserve, number % self.racks
                yield Host(number, name, rack, m.cores, m.nic, m.slots, m.price, reserve)
                number += 1


class Worker(NamedTuple):
    """A process on a host, and what runs in it, in physical order; ``number``: on its host, from 0."""

    host: int
    number: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Cluster:
    """Who runs where. Who fails with whom follows from this tree alone: a rack's hosts, a host's workers, a
    worker's tasks.

    hosts             by number
    at                host of each (component, task, replica), in physical order
    workers_per_host  processes of each host
    """

    hosts: Sequence[Host]
    at: Mapping[Place, int]
    workers_per_host: int = 1

    @cached_property
    def workers(self) -> Mapping[tuple[int, int], Worker]:
        found: dict[int, list[Place]] = {}
        for place, host in self.at.items():
            found.setdefault(host, []).append(place)
        return {
            (host, number): Worker(host, number, tuple(places[number :: self.workers_per_host]))
            for host, places in sorted(found.items())
            for number in range(min(self.workers_per_host, len(places)))
        }

    @cached_property
    def worker_of(self) -> Mapping[Place, Worker]:
        return {place: worker for worker in self.workers.values() for place in worker.places}


def cluster_of(topology: Topology, replicas: Mapping[str, int], hosts: int | Hosts | None) -> Cluster:
    """Where all replicas of a topology's tasks run: on so many hosts without limits, on machines, or (None)
    each on a host of its own. Raises PlacementError if there is no place for one.

    A component's ``hosts`` decide for its tasks, the placement for the others and for replicas.
    """
    components = topology.components
    if hosts is None:
        at: dict[Place, int] = {}
        logical = [(c, task) for c in components for task in range(c.tasks)]
        for number, (c, task) in enumerate(logical):
            for replica in range(replicas[c.name]):
                first = number if c.config.hosts is None else c.config.hosts[task]
                at[c.name, task, replica] = first + replica * (len(logical) if c.config.hosts is None else 1)
        return Cluster([Host(number) for number in range(max(at.values()) + 1)], at)
    long = hosts if isinstance(hosts, Hosts) else None
    every = [Host(number) for number in range(hosts)] if isinstance(hosts, int) else list(hosts.each())
    seating = Seating(topology, replicas, [host for host in every if not host.reserve])
    by_hand = [(c.name, task, n) for c in components for task, n in enumerate(c.config.hosts or ())]
    for name, task, number in by_hand:
        host, path = every[number], ("topology", name, "hosts", task)
        if host.reserve:
            raise PlacementError(path, f"host {number} is in reserve and takes no task")
        if not seating.has_room(host):
            raise PlacementError(path, f"host {number} has no slot left (slots: {host.slots})")
        seating.seat((name, task, 0), number)
    (long.placement if long else RoundRobin()).fill(seating)
    order = {c.name: c.index for c in components}
    at = dict(sorted(seating.at.items(), key=lambda item: (order[item[0][0]], *item[0][1:])))
    return Cluster(every, at, long.workers if long else 1)


@dataclass(frozen=True)
class Deployment:
    """Everything about a job that no strategy decides while it runs.

    replicas   copies of each task, by component
    bounds     of the queues, by component
    cluster    hosts, workers, and who runs where
    stores     those that have a name
    elsewhere  whether who restarts tasks may do so on other hosts
    cycle      first moment and period (ns) of what the strategy does regularly; None: nothing
    """

    topology: Topology
    replicas: Mapping[str, int]
    cluster: Cluster
    links: Links
    store: Store
    run: Run
    bounds: Mapping[str, Bounds]
    failures: tuple[Fault, ...] = ()
    cycle: tuple[int, int] | None = None
    stores: Mapping[str, StoreKind] = field(default_factory=dict)
    elsewhere: bool = False

    @property
    def hosts(self) -> Mapping[Place, int]:
        return self.cluster.at

    @property
    def moves(self) -> bool:
        """Whether tasks may go to other hosts, with their links and cores: not where queues are bounded."""
        bounded = any(bounds.length is not None for bounds in self.bounds.values())
        return self.elsewhere and bool(self.failures) and not bounded

    @property
    def quiet(self) -> Deployment:
        return replace(self, failures=())
