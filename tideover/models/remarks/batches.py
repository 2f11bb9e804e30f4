"""Batches that take longer than what comes in while they run."""

from __future__ import annotations

from tideover.models.remarks.plan import Plan
from tideover.sim.units import S


def too_long(plan: Plan, key: str, interval: int, fixed: int) -> list[str]:
    """A remark if batches of all that comes in grow without end, or take longer than the ``interval`` of
    their triggers (ns, named ``key``; 0: they follow each other at once). Their stages run one after the
    other.

    ``fixed``: what a batch takes besides the service of its tuples (ns).
    """
    work = sum(load.load for load in plan.loads.values())
    if work >= 1:
        return [
            f"the stages of a batch, one after the other, need {work:.2f} s for what comes in a second: "
            "batches grow without end"
        ]
    lasts = fixed + round(work * interval)
    if 0 < interval < lasts:
        return [
            f"{key} {interval / S:g} s: a batch of what comes in it takes about {lasts / S:.4g} s, longer "
            "than the interval"
        ]
    return []
