"""Random small worlds on machines, with cards, whose tasks Nimbus moves from host to host."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.detectors.base import DETECTORS
from tideover.models.job.machines import MachineType
from tideover.sim.faults.base import Fault
from tideover.sim.registry import kind_of

from .random_networks import networks
from .random_worlds import TICK
from .worlds import ms

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
