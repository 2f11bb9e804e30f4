"""Which tasks share the cores of their host, and how that is fitted into the flow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tideover.models.job.deployment import Deployment
from tideover.models.job.topology import Topology
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.network import levels_of
from tideover.models.runtime.resource import Kind
from tideover.sim.card import Port
from tideover.sim.cores import Cores
from tideover.sim.faults.slow_host import SlowHost
from tideover.sim.kernel import Kernel, Mover

NEVER = 1 << 62
"""Longer than any run (ns)."""
PART = 0.25
"""Length of a step in which several levels share cores, in parts of the least mean service among them."""


class CoresResource:
    """The cores of a host, as a resource."""

    kind: Kind = "cores"
    name = "cores"

    def __init__(self, cores: Cores) -> None:
        self._cores = cores
        self.host = cores.host

    def busy_ns(self, now: int) -> int:
        """The mean of them."""
        return self._cores.busy_ns(now)


def crowded(deployment: Deployment) -> frozenset[int]:
    """Hosts with more tasks of bolts than cores, or that are slow for a while: there tasks go at a pace."""
    slow = [fault.host for fault in deployment.failures if isinstance(fault, SlowHost)]
    if deployment.moves and (slow or _may_fill(deployment)):
        return frozenset(host.number for host in deployment.cluster.hosts)
    return frozenset([*_full(deployment), *slow])


def _may_fill(deployment: Deployment) -> bool:
    """Whether some host has not enough cores for all tasks of bolts, wherever they go."""
    spouts = {c.name for c in deployment.topology.components if c.is_spout}
    bolts = sum(component not in spouts for component, _, _ in deployment.hosts)
    return any(host.cores is not None and host.cores < bolts for host in deployment.cluster.hosts)


def layered(deployment: Deployment) -> frozenset[int]:
    """Hosts whose cores are shared by tasks of several levels of the topology."""
    depth = levels_of(deployment.topology)
    full = _full(deployment).items()
    return frozenset(host for host, names in full if len({depth[name] for name in names}) > 1)


def _full(deployment: Deployment) -> dict[int, list[str]]:
    """Hosts with more tasks of bolts than cores, and the components of these tasks."""
    found: dict[int, list[str]] = {}
    for (component, _, _), host in deployment.hosts.items():
        if not deployment.topology.by_name[component].is_spout:
            found.setdefault(host, []).append(component)
    cores = {host: deployment.cluster.hosts[host].cores for host in found}
    return {host: names for host, names in found.items() if len(names) > (cores[host] or len(names))}


def host_cores(deployment: Deployment, tasks: Sequence[BoltTask], step: int | None) -> dict[int, Cores]:
    """The cores, by host, of all hosts with tasks that have a number of them, or whose tasks share them; who
    shares them is not told yet. ``step``: length (ns) of the steps in which several levels share, where only
    throughput is wanted; None: it follows from services.
    """
    hosts = deployment.cluster.hosts
    sharing = [task for task in tasks if task.shares]
    wanted = {t.host for t in sharing} | {t.host for t in tasks if hosts[t.host].cores is not None}
    if sharing and deployment.moves:
        wanted |= {host.number for host in hosts}
    found = {host: Cores(host, hosts[host].cores, evenly=step is not None) for host in sorted(wanted)}
    for task in tasks:
        if task.host in found and not task.shares:
            found[task.host].add([task])
    return found


def fit_in(
    kernel: Kernel,
    topology: Topology,
    tasks: Sequence[BoltTask],
    cores: Mapping[int, Cores],
    step: int | None,
) -> None:
    """Fit the sharing of cores into the flow, by where tasks are now: at the start, and when some have moved
    (to the present; all data have been moved there).
    """
    sharing = [task for task in tasks if task.shares]
    if not sharing:
        return
    groups = companies(topology, tasks)
    levels: dict[int, list[list[BoltTask]]] = {}
    for group in groups:
        levels.setdefault(group[0].host, []).append(group)
    for host, each in cores.items():
        each.share(levels.get(host, []), kernel.now)
    movers: list[Mover] = list(kernel.nodes)
    for group in groups:
        host = group[0].host
        movers.insert(movers.index(group[0]), _Level(cores[host], levels[host].index(group)))
    movers = [mover for mover in movers if mover not in sharing]  # these move with their level
    layered = [task for task in sharing if cores[task.host].layered]
    kernel.movers = _in_short_steps(movers, layered, step, kernel.now) if layered else movers


def companies(topology: Topology, tasks: Sequence[BoltTask]) -> list[list[BoltTask]]:
    """The tasks that share the cores of one host and lie on one level of the topology, the upper levels
    first: they are moved together.
    """
    if not any(task.shares for task in tasks):
        return []
    depth = levels_of(topology)
    found: list[list[BoltTask]] = []
    for level in _levels(tasks):
        here: dict[tuple[int, int], list[BoltTask]] = {}
        for task in level:
            if task.shares:
                here.setdefault((depth[task.component.name], task.host), []).append(task)
        found += [group for _, group in sorted(here.items())]
    return found


def _levels(tasks: Sequence[BoltTask]) -> list[list[BoltTask]]:
    """The tasks in physical order, cut where a component reads one since the last cut."""
    levels: list[list[BoltTask]] = []
    names: set[str] = set()
    for task in tasks:
        if not levels or any(edge.up.name in names for edge in task.component.inputs):
            levels.append([])
            names = set()
        levels[-1].append(task)
        names.add(task.component.name)
    return levels


class _Level:
    """The tasks of one level that share the cores of a host.

    whole   whether they have to be moved, be there something for them to do or not
    """

    def __init__(self, cores: Cores, number: int) -> None:
        self._cores, self._number = cores, number
        self.whole = True
        self.host = cores.host

    def flow(self, now: int) -> None:
        self._cores.flow(self._number, now, self.whole)

    def next_event(self) -> int | None:
        return None


class _ShortSteps:
    """A part of the flow that goes in short steps while the rest goes in long ones."""

    def __init__(self, movers: Sequence[Mover], tasks: Sequence[Mover], step: int, now: int) -> None:
        self._movers, self._tasks, self._step = movers, tasks, step
        self._levels = [mover for mover in movers if isinstance(mover, _Level)]
        self._moved = now

    def flow(self, now: int) -> None:
        while True:
            self._moved = min(self._next(), now)
            for level in self._levels:
                level.whole = self._moved >= now
            for mover in self._movers:
                mover.flow(self._moved)
            if self._moved >= now:
                return

    def _next(self) -> int:
        """The end of the next step: if nothing can happen in it, the next moment at which something can."""
        step = self._moved + self._step
        first: int | None = None
        for task in self._tasks:
            event = task.next_event()
            if event is not None:
                if event <= step:
                    return step
                first = event if first is None else min(first, event)
        return self._moved + NEVER if first is None else max(step, first)

    def next_event(self) -> int | None:
        return None


def _in_short_steps(
    movers: list[Mover], layered: Sequence[BoltTask], step: int | None, now: int
) -> list[Mover]:
    """Those from the first to the last level of these tasks go in short steps, but for tasks that are not on
    a way between two of them; so do the ports of cards that several levels use, which move in the same steps.
    """
    after, before = _reached(layered, down=True), _reached(layered, down=False)
    hosts = {task.host for task in layered}
    bounds = [
        place
        for place, mover in enumerate(movers)
        if (isinstance(mover, _Level) and mover.host in hosts)
        or (isinstance(mover, Port) and not mover.card.line.exact)
        or (mover in after and mover in before)
    ]
    inner = movers[bounds[0] : bounds[-1] + 1]
    outside = [m for m in inner if isinstance(m, BoltTask) and not (m in after and m in before)]
    inside = [m for m in inner if m not in outside]
    services = [mean for task in layered if (mean := task.mean_service) > 0]
    step = max(1, round(PART * min(services, default=1e6))) if step is None else step
    tasks = [*layered, *(m for m in inside if not isinstance(m, _Level))]
    return [
        *movers[: bounds[0]],
        *(m for m in outside if m not in after),
        _ShortSteps(inside, tasks, step, now),
        *(m for m in outside if m in after),
        *movers[bounds[-1] + 1 :],
    ]


def _reached(tasks: Iterable[BoltTask], down: bool) -> set[object]:
    """These tasks, and all that are downstream (else: upstream) of them."""
    found: set[object] = set()
    to_do: list[object] = list(tasks)
    while to_do:
        task = to_do.pop()
        if task in found:
            continue
        found.add(task)
        if isinstance(task, BoltTask) and not down:
            to_do += [channel.up for channel in task.inputs]
        elif isinstance(task, BoltTask):
            to_do += [c.down for o in task.outlets for row in o.channels for c in row]
    return found
