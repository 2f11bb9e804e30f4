"""Timeouts that strike without a failure, or though nothing was lost: each emits a root again."""

from __future__ import annotations

from tideover.models.job.topology import Topology
from tideover.models.remarks.plan import Plan
from tideover.sim.faults.base import Fault
from tideover.sim.units import S


def windows(plan: Plan, key: str, timeout: int, least: int, ack_cost: int) -> list[str]:
    """A remark for each window whose tuples can time out before they are acked.

    ``key``, ``timeout``: the parameter that says when; ``least``: the shortest time after which a tuple can
    time out under it (ns); ``ack_cost``: what an ack takes (ns).
    """
    remarks = []
    for c in plan.topology.components:
        if c.window is None or not c.anchored:
            continue
        length, rate = c.window.length, plan.loads[c.name].rate
        if length is None and not rate:
            continue  # no tuple comes here, none waits
        if length is None:
            length = round(S * ((c.window.tuples or 0) + (c.window.slide_tuples or 0)) / rate)
        elif c.window.slide is not None:
            length += c.window.slide  # it leaves with the first window that ends without it
        # The first tuple of a window waits for its end and is acked at once, the last one waits for the acks
        # of all the others, and in between it is so much of the one and so much of the other.
        burst = round(ack_cost * rate * length / S)
        slides = " and its slide" if c.window.extent else ""
        longest, why = max(
            (length, f"the window of {c.name}{slides}"), (burst, f"the burst of acks of {c.name}")
        )
        if least < longest:
            remarks.append(
                f"{key} {timeout / S:g} s: a tuple may wait {longest / S:.4g} s for its ack ({why}), but can "
                f"time out after {least / S:g} s: false timeouts count it twice"
            )
    return remarks


def held(plan: Plan, least: int) -> list[str]:
    """A remark if tuples wait for a task that is down or stopped for longer than ``least`` (ns), after which
    they can time out.
    """
    length = max((c.window.length or 0 for c in plan.stateful if c.window), default=0)
    for i, fault in enumerate(plan.failures):
        waits = _waits(fault, length) if _holds(fault, plan.topology) else 0
        if waits > least:
            return [
                f"failures.{i}: what waits for {fault.where} is not lost, but waits up to {waits / S:.4g} s "
                f"for its ack, and can time out after {least / S:g} s: false timeouts count it twice"
            ]
    return []


def _holds(fault: Fault, topology: Topology) -> bool:
    """Whether tuples wait for what a fault hits."""
    component = topology.by_name.get(getattr(fault, "component", ""))
    if component is None and hasattr(fault, "component"):
        return False  # the acker, the driver
    bolt = component is None or not component.is_spout
    return bolt and fault.lasts > 0 and (not fault.kills or fault.while_down == "hold")


def _waits(fault: Fault, length: int) -> int:
    """How long a tuple may wait that comes just after the fault (ns): until the task is back, and if it was
    down, for the end of the window of ``length`` (0: none) in which that is.
    """
    if not length or not fault.kills:
        return fault.lasts
    if fault.at is None or fault.drawn or fault.in_interval is not None:
        return fault.lasts + length
    return -(-(fault.at + fault.lasts) // length) * length - fault.at
