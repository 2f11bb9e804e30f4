"""Random small worlds on machines, with cards, whose tasks go from host to host: Nimbus moves them, or they
are restarted in free slots.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario, deployment_of
from tideover.models.detectors.base import DETECTORS
from tideover.models.job.components import MachineType
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.registry import kind_of

from .cluster_worlds import SCHEDULE, on_clusters
from .random_cores import FACTORS
from .random_detectors import HEARD, listening
from .random_networks import hosts_of, networks
from .random_times import TICK, TICK_MS
from .worlds import fault, ms

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
    times = st.sampled_from

    def ticks(*some: float) -> int:
        return round(draw(times(some)) * TICK)

    detector: Any = DETECTORS["storm"](
        supervisor_worker_timeout=ticks(10, 40),
        nimbus_task_timeout=ticks(5, 10),
        worker_heartbeat=ticks(1, 2),
        task_heartbeat=ticks(1, 3),
        supervisor_round=ticks(1, 3),
        nimbus_round=ticks(4, 7, 15),
        worker_start_timeout=ticks(10, 30),
        task_launch=ticks(10, 30),
        launch=ms(draw(times((0, 150, 700)))),
        prepare=ms(draw(times((0, 130)))),
    )

    def lasting(fault: Fault) -> Fault:
        changes: dict[str, Any] = {"detection": 0, "restart": 0}
        if kind_of(fault) == "crash_host" and draw(st.booleans()):
            changes["repair"] = ticks(3, 17, 100)
        return fault.model_copy(update=changes)

    hosts: Any = found.hosts
    free = draw(times((0, 0, 1)))
    nic = draw(times((2560, 3000, None)))
    more = {"c": MachineType(count=free, nic=nic)} if free else {}
    machines = hosts.model_copy(
        update={
            "machines": hosts.machines | more,
            "reserve": free,
            "workers": draw(times((1, 1, 2))),
        }
    )
    failures = tuple(lasting(fault) for fault in found.failures if kind_of(fault) != "pause")
    longer = found.run.model_copy(update={"duration": found.run.duration + 60 * TICK})
    changes = {"failures": failures, "run": longer, "detector": detector, "hosts": machines}
    return found.model_copy(update=changes)


@st.composite
def reseated(draw: st.DrawFn, strategies: tuple[str, ...] = HEARD) -> Scenario:
    """A world of cards in which hosts die, whose tasks find free slots or not."""
    found = draw(networks(strategies, overlap=draw(st.booleans())).filter(lambda one: one.failures))
    hosts: Any = found.hosts
    seats = list(deployment_of(found).hosts.values())
    room = max(map(seats.count, seats))
    slots = draw(st.sampled_from((None, room, room + 1)))
    free = draw(st.integers(0, 1))
    machines = {name: each.model_copy(update={"slots": slots}) for name, each in hosts.machines.items()}
    if free:
        machines["c"] = MachineType(count=1, nic=draw(st.sampled_from((2560, None))), slots=slots)

    def striking(fault: Fault) -> Fault:
        if not fault.kills or draw(st.integers(0, 3)) == 0:
            return fault.model_copy(update={"detection": 0, "restart": 0})
        when = {name: getattr(fault, name) for name in SCHEDULE} | {"detection": 0, "restart": 0}
        repair = round(draw(st.sampled_from((0, 20, 100))) * TICK)
        return FAULTS["crash_host"](**when, host=draw(st.sampled_from(hosts_of(found))), repair=repair)

    failures = tuple(striking(fault) for fault in found.failures if kind_of(fault) != "pause")
    longer = found.run.model_copy(update={"duration": found.run.duration + 50 * TICK})
    update = {"machines": machines, "reserve": free, "workers": draw(st.integers(1, 2))}
    changes = {
        "failures": failures,
        "run": longer,
        "detector": draw(listening()).model_copy(update={"restart_on": "free_slot"}),
        "hosts": hosts.model_copy(update=update),
    }
    return found.model_copy(update=changes)


@st.composite
def sharing(draw: st.DrawFn, found: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these worlds, on machines with a core, two, or any number; up to two times a host is slow."""
    scenario = draw(found)
    hosts: Any = scenario.hosts
    cores = st.sampled_from((1, 1, 2, None))
    machines = {name: each.model_copy(update={"cores": draw(cores)}) for name, each in hosts.machines.items()}
    changes: dict[str, Any] = {"hosts": hosts.model_copy(update={"machines": machines})}
    count, until = sum(each.count for each in machines.values()), scenario.run.duration // TICK
    slow = []
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        where = {"host": draw(st.integers(0, count - 1)), "factor": draw(st.sampled_from(FACTORS))}
        at, lasts = draw(st.integers(1, until - 1)) * TICK_MS, draw(st.integers(1, 30)) * TICK
        slow.append(fault("slow_host", at, duration=lasts, **where))
    changes["failures"] = tuple(draw(st.permutations([*scenario.failures, *slow])))
    return scenario.model_copy(update=changes)


@st.composite
def regrouped(draw: st.DrawFn, strategies: tuple[str, ...] = HEARD) -> Scenario:
    """The same without cards, on clusters with racks and slots."""
    found = draw(on_clusters(strategies).filter(lambda one: one.failures))

    def lasting(fault: Fault) -> Fault:
        changes: dict[str, Any] = {"detection": 0, "restart": 0}
        if kind_of(fault) in ("crash_host", "crash_rack"):
            changes["repair"] = draw(st.sampled_from((None, 2 * TICK, 30 * TICK)))
        return fault.model_copy(update=changes)

    failures = tuple(lasting(fault) for fault in found.failures if kind_of(fault) != "pause")
    longer = found.run.model_copy(update={"duration": found.run.duration + 50 * TICK})
    detector = draw(listening()).model_copy(update={"restart_on": "free_slot"})
    changes = {"failures": failures, "run": longer, "detector": detector}
    return found.model_copy(update=changes)
