"""Replays from the tasks before: what they cannot bring back, and what they bring back otherwise."""

from __future__ import annotations

from tideover.models.remarks.plan import Plan
from tideover.sim.faults.base import Fault


def reordered(plan: Plan) -> list[str]:
    """A remark for each window by tuple that several tasks feed."""
    return [
        f"{c.name}: windows by tuple, fed by several tasks: a replay mixes their tuples in another order, so "
        "windows after a recovery hold other tuples than before it"
        for c in plan.stateful
        if c.window and c.window.tuples and sum(edge.up.tasks for edge in c.inputs) > 1
    ]


def lost_together(plan: Plan) -> list[str]:
    """A remark for each worker, host or rack that fails with tasks of a sender, whose memory has the buffer,
    and of its receiver.
    """
    remarks = []
    faults = {fault.where: fault for fault in plan.failures if fault.kills and max(_address(fault)) >= 0}
    for fault in sorted(faults.values(), key=_address):
        there = _living_there(plan, fault)
        pairs = [(edge.up.name, edge.down.name) for c in plan.components for edge in c.inputs]
        both = [f"{up} and {down}" for up, down in pairs if {up, down} <= there]
        if both:
            remarks.append(
                f"{fault.where} has tasks of {', of '.join(both)}: its crash takes tuples together with the "
                "buffer that they would be replayed from, and they are lost"
            )
    return remarks


def lost_with_spouts(plan: Plan) -> list[str]:
    """The same where only a spout's tasks lose their buffers for good."""
    spouts = tuple(c.name for c in plan.topology.components if c.is_spout)
    return [remark for remark in lost_together(plan) if f" {spouts[0]} and " in remark]


def _address(fault: Fault) -> tuple[int, ...]:
    """Rack, host and worker that fail; -1 where that is not said."""
    return tuple(getattr(fault, name, -1) for name in ("rack", "host", "worker"))


def _living_there(plan: Plan, fault: Fault) -> set[str]:
    """Components with tasks that fail with it."""
    found = set()
    for worker in plan.cluster.workers.values():
        here = plan.cluster.hosts[worker.host].rack, worker.host, worker.number
        if all(wanted in (-1, own) for wanted, own in zip(_address(fault), here, strict=True)):
            found |= {name for name, _, _ in worker.places}
    return found


def unbuffered(plan: Plan, at_spouts: bool) -> list[str]:
    """A remark for each component that fails and is not replayed to: it reads a spout that keeps nothing
    (``at_spouts``: spouts do), or has no state.
    """
    found = []
    for c in plan.components:
        faults = [fault for fault in plan.hit(c.name) if fault.kills]
        if not faults or c.is_spout:
            continue
        spouts = [edge.up.name for edge in c.inputs if edge.up.is_spout]
        if not c.window and any(fault.kind == "crash_task" or fault.lasts for fault in faults):
            found.append(
                f"{c.name}: has no state, so R+SM replays nothing to it: what it has in its queue when it "
                "crashes, and what comes while it is down, is lost"
            )
        elif c.window and spouts and not at_spouts:
            found.append(
                f"{c.name}: reads the spout {spouts[0]}, which keeps no buffer: what came since the last "
                "checkpoint is lost; set strategy.spout_buffer=true"
            )
    return found
