"""Replays from the tasks before: what they cannot bring back, and what they bring back otherwise."""

from __future__ import annotations

from tideover.models.advice.plan import Plan
from tideover.sim.faults.crash_host import CrashHost


def reordered(plan: Plan) -> list[str]:
    """A remark for each window by tuple that several tasks feed."""
    return [
        f"{c.name}: windows by tuple, fed by several tasks: a replay mixes their tuples in another order, so "
        "windows after a recovery hold other tuples than before it"
        for c in plan.stateful
        if c.window and c.window.window.tuples and sum(edge.up.tasks for edge in c.inputs) > 1
    ]


def lost_together(plan: Plan) -> list[str]:
    """A remark for each host that fails with tasks of a sender, whose memory has the buffer, and of its
    receiver.
    """
    remarks = []
    for host in sorted({fault.host for fault in plan.failures if isinstance(fault, CrashHost)}):
        there = {name for (name, _, _), place in plan.hosts.items() if place == host}
        pairs = [(edge.up.name, edge.down.name) for c in plan.topology.components for edge in c.inputs]
        both = [f"{up} and {down}" for up, down in pairs if {up, down} <= there]
        if both:
            remarks.append(
                f"host {host} has tasks of {', of '.join(both)}: its crash takes tuples together with the "
                "buffer that they would be replayed from, and they are lost"
            )
    return remarks
