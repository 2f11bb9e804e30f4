"""Batches that take longer than what comes in while they run."""

from __future__ import annotations

from tideover.models.job.topology import Topology
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


def mixed(topology: Topology, one_log: bool = True) -> list[str]:
    """A remark for each bolt with windows by tuple whose tuples have come to a bolt from several tasks: the
    order in which it takes in what these make of a batch depends on the batch's borders, and those are others
    after a failure. ``one_log``: what spouts send a bolt comes in the order of the log, however many they
    are; else each of their tasks has a log of its own, that can be away.
    """
    mixes: set[str] = set()
    for c in topology.components:
        tasks = sum(edge.up.tasks for edge in c.inputs)
        in_log = one_log and all(edge.up.is_spout for edge in c.inputs)
        if (tasks > 1 and not in_log) or any(edge.up.name in mixes for edge in c.inputs):
            mixes.add(c.name)
    return [
        f"{c.name}: windows by tuple, of what comes from several tasks: batches after a failure are others, "
        "and so are the tuples in a window; no tuple is lost or counted twice"
        for c in topology.components
        if c.name in mixes and c.window and c.window.tuples
    ]


def put_out_again(topology: Topology) -> list[str]:
    """A remark for each bolt whose output is not in windows, where all is read again from the log."""
    return [
        f"{c.name}: recovery: replay puts out again what is in no window, and nobody knows it by a number: "
        "it counts twice after a failure; use recovery: checkpoint"
        for c in topology.ends
        if not c.window
    ]
