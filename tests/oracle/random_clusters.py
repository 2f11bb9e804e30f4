"""Random worlds on clusters, with who notices failures: heartbeats, consumer groups, Nimbus, free slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario, deployment_of
from tideover.models.detectors.base import DETECTORS, RESTARTS
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.job.placements import PLACEMENTS, Place
from tideover.sim.faults import FAULTS, Fault, MachineFault
from tideover.sim.registry import kind_of

from .faults import hosts_of
from .layout import MACHINES
from .making import TICK, TICK_MS, times
from .random_changes import longer, networks, placed
from .random_worlds import STRATEGY_NAMES, overlapping, worlds
from .worlds import ms

HEARD = ("none", "source_replay", "rsm", "active_replication", "aligned_snapshots")
"""Strategies whose tasks are processes."""


@st.composite
def _restarts(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from((None, "fixed_delay", "exponential_delay", "failure_rate")))
    if kind is None:
        return None
    more: dict[str, Any] = {"delay": draw(st.sampled_from((0, 3, 8))) * TICK}
    if kind == "fixed_delay":
        more["attempts"] = draw(st.sampled_from((None, None, 0, 1, 2)))
    if kind == "failure_rate":
        more |= {"most_failures": draw(st.integers(1, 3)), "within": draw(st.sampled_from((20, 60))) * TICK}
    if kind == "exponential_delay":
        initial, factor = draw(st.sampled_from((1, 4))) * TICK, draw(st.sampled_from((1.0, 1.5, 2.0)))
        most, reset = draw(st.sampled_from((4, 7))) * TICK, draw(st.sampled_from((5, 30, 500))) * TICK
        more = {"initial": initial, "factor": factor, "most": most, "reset_after": reset}
    return RESTARTS[kind](**more)


@st.composite
def listening(draw: st.DrawFn) -> Any:
    """Heartbeats."""
    ties = draw(st.booleans())
    interval = draw(st.sampled_from((3, 5, 10)))
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["connection"] = ms(draw(times(ties, 0, 1, 4)))
        more["rpc_failure_threshold"] = draw(st.sampled_from((None, 1, 2)))
        more["failed_deployment"] = ms(draw(times(ties, 0, 1, 3)))
    if draw(st.booleans()):
        more["replacement"] = ms(draw(times(ties, 0, 3, 25)))
    return DETECTORS["heartbeats"](
        interval=interval * TICK,
        timeout=(interval + draw(st.sampled_from((0, 1, 10, 20)))) * TICK,
        launch=ms(draw(times(ties, 0, 2, 9, 30))),
        prepare=ms(draw(times(ties, 0, 1, 5))),
        restarts=draw(_restarts()),
        **more,
    )


def noticed(
    found: Scenario,
    ticks: int,
    change: Callable[[Fault], Fault] = lambda fault: fault,
    pauses: bool = False,
    **changes: Any,
) -> Scenario:
    """The same with faults that are noticed by a detector (nothing is merely stopped), and with so much more
    time to recover. ``change``: what else is another fault.
    """
    others = [change(fault) for fault in found.failures if pauses or kind_of(fault) != "pause"]
    failures = tuple(fault.model_copy(update={"detection": 0, "restart": 0}) for fault in others)
    return longer(found, ticks, failures=failures, **changes)


def failing(strategies: tuple[str, ...]) -> st.SearchStrategy[Scenario]:
    """Worlds in which something fails."""
    return st.one_of(worlds(strategies).filter(lambda found: found.failures), overlapping(strategies))


def repaired(draw: st.DrawFn) -> Callable[[Fault], Fault]:
    """In which machines may have to be repaired."""
    some = st.sampled_from((None, 2 * TICK, 3 * TICK, 17 * TICK, 30 * TICK, 100 * TICK))
    return lambda one: one.model_copy(update={"repair": draw(some)}) if isinstance(one, MachineFault) else one


@st.composite
def heard(draw: st.DrawFn, strategies: tuple[str, ...] = HEARD) -> Scenario:
    """A random world with a listener."""
    return noticed(draw(failing(strategies)), 50, detector=draw(listening()))


GROUPED = ("none", "rsm", "changelog", "changelog")


@st.composite
def grouped(draw: st.DrawFn, strategies: tuple[str, ...] = GROUPED) -> Scenario:
    """A random world whose processes are members of a consumer group."""
    interval, back = draw(st.sampled_from((3, 5, 10))), draw(st.sampled_from((None, None, 0, 4, 25)))
    odd = draw(st.sampled_from((0, 17)))
    found = draw(failing(strategies))
    warmups = draw(st.sampled_from((0, 1, 2))) if kind_of(found.strategy) == "changelog" else 0
    detector = DETECTORS["consumer_group"](
        heartbeat_interval=interval * TICK,
        session_timeout=(interval + draw(st.sampled_from((0, 1, 10, 20)))) * TICK,
        rebalance=ms(draw(st.sampled_from((0, 0, 150, 2000)))),
        restart=None if back is None else ms(back * TICK_MS + odd),
        static=back is not None and draw(st.booleans()),
        protocol=draw(st.sampled_from(("cooperative", "eager"))),
        leaves=draw(st.booleans()),
        warmup_replicas=warmups,
        probing_interval=draw(st.sampled_from((7, 30))) * TICK if warmups else None,
    )
    return noticed(found, 100, pauses=True, detector=detector)


SCHEDULE = ("at", "within", "in_interval", "detection", "restart", "while_down")


@st.composite
def clusters(draw: st.DrawFn, tasks: int) -> Hosts:
    """Two to six machines of two types, with slots for so many tasks or without limit."""
    few, many = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    reserve = draw(st.integers(0, 1))
    slots = draw(st.sampled_from((None, 0, 1)))
    room = None if slots is None else -(-tasks // (few + many - reserve)) + slots
    machines = {"small": MachineType(count=few, slots=room), "big": MachineType(count=many, slots=room)}
    return Hosts(
        machines=machines,
        racks=draw(st.integers(1, min(3, few + many))),
        workers=draw(st.sampled_from((1, 2, 2, 3))),
        reserve=reserve,
        placement=PLACEMENTS[draw(st.sampled_from(("round_robin", "k_safe")))](),
    )


@st.composite
def elsewhere(draw: st.DrawFn, fault: Fault, cluster: Hosts) -> Fault:
    """The fault, or one of machines at its time: of each kind, with the keys that it has."""
    if not fault.kills or draw(st.integers(0, 4)) == 0:
        return fault
    kind = draw(st.sampled_from(["crash_worker", *MACHINES]))
    host = st.integers(0, cluster.count - 1)
    keys = {
        "rack": st.integers(0, cluster.racks - 1),
        "host": host,
        "hosts": st.lists(host, min_size=1, max_size=3).map(tuple),
        "worker": st.integers(0, cluster.workers - 1),
    }
    where = {name: draw(key) for name, key in keys.items() if name in FAULTS[kind].model_fields}
    return FAULTS[kind](**{name: getattr(fault, name) for name in SCHEDULE}, **where)


@st.composite
def on_clusters(draw: st.DrawFn, strategies: tuple[str, ...] = STRATEGY_NAMES) -> Scenario:
    """A random world whose tasks live on machines; by hand only where that leaves everyone a slot."""
    base = draw(worlds(strategies))
    tasks = len(deployment_of(base).hosts)
    cluster = draw(clusters(tasks))
    by_hand = cluster.machines["big"].slots is None and draw(st.booleans())
    usable = cluster.count - cluster.reserve
    topology = {
        name: config.model_copy(
            update={"hosts": tuple(h % usable for h in config.hosts) if by_hand and config.hosts else None}
        )
        for name, config in base.topology.items()
    }
    failures = tuple(draw(elsewhere(fault, cluster)) for fault in base.failures)
    found = base.model_copy(update={"hosts": cluster, "topology": topology, "failures": failures})
    at = deployment_of(placed(found)).hosts
    together = len({(name, task, host) for (name, task, _), host in at.items()}) < len(at)
    if together or draw(st.integers(0, 3)):  # by hand, no two replicas of a task may be on one host
        return found
    alone = {name: config.model_copy(update={"hosts": None}) for name, config in topology.items()}
    return found.model_copy(update={"hosts": named(cluster, at, draw), "topology": alone})


def named(cluster: Hosts, at: Mapping[Place, int], draw: st.DrawFn) -> Hosts:
    """The same machines, each task's host named by hand: all of them a number of hosts further."""
    rows: dict[str, list[list[int]]] = {}
    usable = cluster.count - cluster.reserve
    further = draw(st.integers(0, usable - 1))
    for (name, task, _), host in at.items():
        tasks = rows.setdefault(name, [])
        if len(tasks) == task:
            tasks.append([])
        tasks[task].append((host + further) % usable)
    by_hand = PLACEMENTS["by_hand"](tasks={name: tuple(map(tuple, tasks)) for name, tasks in rows.items()})
    return cluster.model_copy(update={"placement": by_hand})


MOVED = ("none", "source_replay", "rsm", "active_replication")


def _dies(scenario: Scenario) -> bool:
    acker = getattr(scenario.strategy, "acker_host", None) is not None
    kinds = {kind_of(fault) for fault in scenario.failures}
    named = {getattr(fault, "component", "") for fault in scenario.failures}
    return bool(kinds & {"crash_task", "crash_host"} and not acker and "acker" not in named)


@st.composite
def moved(draw: st.DrawFn, strategies: tuple[str, ...] = MOVED) -> Scenario:
    """A world of cards in which something dies, and Nimbus is quicker than supervisors. One host more may be
    free; hosts that crash may have to be repaired.
    """
    found = draw(networks(strategies).filter(_dies))
    periods = {
        "supervisor_worker_timeout": (10, 40),
        "nimbus_task_timeout": (5, 10),
        "worker_heartbeat": (1, 2),
        "task_heartbeat": (1, 3),
        "supervisor_round": (1, 3),
        "nimbus_round": (4, 7, 15),
        "worker_start_timeout": (10, 30),
        "task_launch": (10, 30),
    }
    detector = DETECTORS["storm"](
        launch=ms(draw(st.sampled_from((0, 150, 700)))),
        prepare=ms(draw(st.sampled_from((0, 130)))),
        **{name: draw(st.sampled_from(ticks)) * TICK for name, ticks in periods.items()},
    )
    hosts = _with_one_free(draw, found.hosts, draw(st.sampled_from((0, 0, 1))))
    return noticed(found, 60, repaired(draw), detector=detector, hosts=hosts)


def _with_one_free(draw: st.DrawFn, hosts: Any, free: int, slots: int | None = None) -> Hosts:
    """These machines, and one more, if that is ``free``; with a worker or two on each."""
    machines = {name: each.model_copy(update={"slots": slots}) for name, each in hosts.machines.items()}
    if free:
        nic = draw(st.sampled_from((2560, 3000, None)))
        machines["c"] = MachineType(count=1, nic=nic, slots=slots)
    changes = {"machines": machines, "reserve": free, "workers": draw(st.sampled_from((1, 1, 2)))}
    return hosts.model_copy(update=changes)


@st.composite
def reseated(draw: st.DrawFn, strategies: tuple[str, ...] = HEARD) -> Scenario:
    """A world of cards in which hosts die, whose tasks find free slots or not."""
    found = draw(networks(strategies, overlap=draw(st.booleans())).filter(lambda one: one.failures))
    seats = list(deployment_of(found).hosts.values())
    room = max(map(seats.count, seats))
    slots = draw(st.sampled_from((None, room, room + 1)))

    def striking(fault: Fault) -> Fault:
        if not fault.kills or draw(st.integers(0, 3)) == 0:
            return fault
        when = {name: getattr(fault, name) for name in SCHEDULE}
        repair = round(draw(st.sampled_from((0, 20, 100))) * TICK)
        return FAULTS["crash_host"](**when, host=draw(st.sampled_from(hosts_of(found))), repair=repair)

    hosts = _with_one_free(draw, found.hosts, draw(st.integers(0, 1)), slots)
    return noticed(found, 50, striking, detector=draw(on_free_slots()), hosts=hosts)


def on_free_slots() -> st.SearchStrategy[Any]:
    """Heartbeats, and restarts there."""
    return listening().map(lambda detector: detector.model_copy(update={"restart_on": "free_slot"}))


@st.composite
def regrouped(draw: st.DrawFn, strategies: tuple[str, ...] = HEARD, in_place: bool = False) -> Scenario:
    """The same without cards, on clusters with racks and slots; ``in_place``: tasks wait for their hosts."""
    found = draw(on_clusters(strategies).filter(lambda one: one.failures))
    detector = draw(listening() if in_place else on_free_slots())
    return noticed(found, 50, repaired(draw), detector=detector)
