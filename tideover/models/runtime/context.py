"""What all tasks of a job have around them: resources, cores that are shared, when events took place.

Tasks that share the cores of their host.

The rules (tests/models/test_cores.py, test_plane_cores.py, test_queues_on_hosts.py):

- On a host with more tasks of bolts than `cores` each busy one works at min(1, cores / busy tasks) of a
  core's speed. Busy is who serves a tuple or is occupied (acks, a checkpoint, a replay). A task that is
  down, stopped or blocked, or has nothing to do, uses none. Spouts use none.
- `slow_host`: for `duration` each core works at `factor` of its speed, be there enough or not; of several
  at once the slowest holds.
- Work that begins or ends on shared or slow cores does so at whole ns, rounded up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from tideover.models.job.cluster import Deployment
from tideover.models.job.topology import Topology
from tideover.models.runtime.announcements import Announcer
from tideover.models.runtime.hooks import CopyHolder, Dispatcher, Needs
from tideover.models.runtime.views import BoltView, Grouped, Machine, OutageView, Runner, Saver
from tideover.sim.draws import Draws, Purpose
from tideover.sim.fault_kinds import SlowHost
from tideover.sim.kernel import Kernel
from tideover.sim.plane.plane import Plane
from tideover.sim.store import StoreServer
from tideover.sim.train import Ints, Train, grown

Kind = Literal["task", "cores", "card in", "card out", "store", "link"]


class Resource(Protocol):
    """Something that does work, and can do only so much of it in a second.

    Who models one that several tasks share puts it into ``context.resources`` when the job is wired.
    """

    @property
    def name(self) -> str:
        """What it is called among those of its kind and host (``count.2``, ``redis``)."""

    @property
    def kind(self) -> Kind: ...
    @property
    def host(self) -> int | None: ...

    def busy_ns(self, now: int) -> float:
        """How long it has been busy up to ``now`` (ns): of several cores the mean."""


class Cores:
    """The cores of one host; ``cores``: None: one for each task."""

    kind: Kind = "cores"
    name = "cores"

    def __init__(self, plane: Plane, host: int, cores: int | None, tasks: Sequence[Any], place: int) -> None:
        """``place``: among the data plane's; -1: each of these tasks has a core of its own."""
        self._plane, self._tasks, self.place = plane, tasks, place
        self.host, self.cores = host, cores
        self._slow: dict[int, float] = {}

    def busy_ns(self, now: int) -> int:
        if self.place < 0:
            busy = sum(task.busy.until(now) for task in self._tasks)
        else:
            c: Any = self._plane.p.cores[self.place]
            busy = c.busy + int((now - c.since) * min(c.jobs, c.number))
        return round(busy / (self.cores or 1))

    def slow_down(self, reason: int, factor: float, now: int) -> None:
        """From now on a core works at this part of its speed, 1: as it should; of several the least holds."""
        self._slow[reason] = factor
        self._plane.lib.plane_slow(self._plane.p, self.place, now, min(self._slow.values()))


def crowded(deployment: Deployment) -> frozenset[int]:
    """Hosts with more tasks of bolts than cores, or that are slow for a while: there tasks go at a pace."""
    slow = [fault.host for fault in deployment.failures if isinstance(fault, SlowHost)]
    by_name, hosts = deployment.topology.by_name, deployment.cluster.hosts
    bolts = Counter(host for (name, _, _), host in deployment.hosts.items() if not by_name[name].is_spout)
    may_fill = any(host.cores is not None and host.cores < bolts.total() for host in hosts)
    if deployment.moves and (slow or may_fill):
        return frozenset(host.number for host in hosts)
    full = [host for host, tasks in bolts.items() if tasks > (hosts[host].cores or tasks)]
    return frozenset([*full, *slow])


def share_cores(
    plane: Plane, deployment: Deployment, tasks: Sequence[Any], unshared: bool
) -> dict[int, Cores]:
    """Let tasks share the cores of their hosts, unless they are ``unshared``; returns cores of which the
    number or the speed matters.
    """
    hosts, moves = deployment.cluster.hosts, deployment.moves
    shared = frozenset() if unshared else crowded(deployment)
    if not unshared and moves and (shared or any(host.cores is not None for host in hosts)):
        shared = frozenset(host.number for host in hosts)
    there: dict[int, list[Any]] = {host: [] for host in shared if moves}
    for task in tasks:
        there.setdefault(task.host, []).append(task)
    places = sorted(shared & there.keys())
    plane.share(
        [hosts[host].cores or math.inf for host in places],
        len(tasks) if moves else max(map(len, there.values()), default=0),
    )
    place = dict.fromkeys(sorted(there), -1) | {host: place for place, host in enumerate(places)}
    matter = [host for host in place if host in places or hosts[host].cores is not None]
    cores = {host: Cores(plane, host, hosts[host].cores, there[host], place[host]) for host in matter}
    seat(cores, tasks)
    return cores


def seat(cores: Mapping[int, Cores], tasks: Sequence[Any]) -> None:
    """Let each task use the cores of the host where it is now: those that have moved do nothing."""
    for task in tasks:
        if task.host in cores:
            task.c.cores = cores[task.host].place


class EventTimes:
    """The time of the event of each root (ns): for good, so a retry has that of the first attempt.

    It is what the spout says (``stamps``), else ``event_delay`` (drawn by the root) before the root was first
    emitted, or appended to the queue before its spout; not before 0.
    """

    def __init__(self, topology: Topology, draws: Draws) -> None:
        self._draws = draws
        self._bits = topology.spout_bits
        self._spouts = [(component.name, component.spout_config) for component, _ in topology.spout_tasks]
        self._known: list[Ints] = [np.zeros(0, np.int64) for _ in self._spouts]

    def emitted(self, spout: int, train: Train) -> None:
        """The spout task of that number emits roots; those of first attempts tell of new events."""
        new = train if train.attempt is None else train.pick(train.attempt == 0)
        if not new.n:
            return
        name, config = self._spouts[spout]
        number = new.uid >> self._bits
        events = config.spout.stamps_of(number)
        if events is None:
            delay = config.event_delay.sample(self._draws.bits(name, Purpose.EVENT, new.uid))
            events = np.maximum(new.created - delay, 0)
        known, most = self._known[spout], int(number.max()) + 1
        if most > len(known):
            self._known[spout] = grown(known, max(most, 2 * len(known), 1 << 10))
        self._known[spout][number] = events

    def of(self, roots: Ints) -> Ints:
        number = roots >> self._bits
        if len(self._spouts) == 1:
            return self._known[0][number]
        events = np.zeros(len(roots), np.int64)
        for spout, known in enumerate(self._known):
            mine = roots & ((1 << self._bits) - 1) == spout
            events[mine] = known[number[mine]]
        return events


OVERFLOW = -2
"""Because of what a tuple is lost that finds a queue full: no outage, but a reason all the same."""


@dataclass(eq=False)
class Context:
    """What tasks use, and who has plugged in.

    overhead     time (ns) that each tuple of a component takes on top of its service
    newest       number of the newest outage that has hit each task
    machines     what can fail besides tasks
    holders      who has copies of tuples or effects
    withheld     tasks whose output readers see when it is committed, and not as it is put out
    cores        of each host on which their number or their speed matters
    servers      of each store, by its name; None: of the one that has none
    resources    what several tasks use, and can only do so much of: cores, cards, stores
    events       when the events took place that tuples tell of; None: nobody asks
    runner       who runs the bolts, if they do not run by themselves
    saver        who saves what is there before a planned stop; None: nobody does
    grouped      who has to know of rebalances of a consumer group; None: nobody does
    marks        what control messages of mechanisms are called, by the mark that they have on channels
    rhythm       asks for the period (ns) of what interrupts the flow in normal operation, and may come at
                 another moment after a failure (a batch, a snapshot that stalls its task); 0: nothing does
    """

    topology: Topology
    draws: Draws
    needs: Needs
    say: Announcer
    kernel: Kernel = field(default_factory=Kernel)
    hooks: Dispatcher = field(default_factory=Dispatcher)
    overhead: Counter[str] = field(default_factory=Counter)
    newest: dict[object, int] = field(default_factory=dict)
    machines: list[Machine] = field(default_factory=list)
    holders: list[CopyHolder] = field(default_factory=list)
    withheld: set[object] = field(default_factory=set)
    cores: dict[int, Cores] = field(default_factory=dict)
    resources: list[Resource] = field(default_factory=list)
    servers: dict[str | None, list[StoreServer]] = field(default_factory=dict)
    events: EventTimes | None = None
    runner: Runner | None = None
    saver: Saver | None = None
    grouped: Grouped | None = None
    marks: dict[int, str] = field(default_factory=dict)
    rhythm: Callable[[], int] = int

    def overflow(self, task: BoltView, train: Train) -> None:
        """Say that tuples were lost because they found a task's queue full."""
        train = without_markers(train)
        self.say.overflowed(task, train)
        if task.component.anchored:
            self.hooks.destroyed(OVERFLOW, train.uid >> task.component.bits, train.attempt)

    def settled(self, outage: OutageView) -> bool:
        """Whether everything that was to be sent again because of an outage was."""
        return all(holder.settled(outage) for holder in self.holders)

    def goes_on(self, outage: OutageView) -> bool:
        """Whether something may still be sent again because of an outage, or arrive."""
        return any(not holder.settled(outage) or holder.on_the_way(outage) for holder in self.holders)

    def destroy(
        self, task: BoltView, trains: list[Train], arrived: bool = False, outage: int | None = None
    ) -> None:
        """Tuples are destroyed: in a queue, (``arrived``) as a task was down, (``outage``) on their way."""
        for train in trains:
            train = without_markers(train)
            if not train.n:
                continue
            times = train.time if arrived else np.full(train.n, self.kernel.now, np.int64)
            by = self.newest.get(task, -1) if outage is None else outage
            self.say.destroyed(task, train, times, by)
            if task.component.anchored:
                self.hooks.destroyed(by, train.uid >> task.component.bits, train.attempt)


def without_markers(train: Train) -> Train:
    return train if train.mark is None else train.pick(train.mark == 0)
