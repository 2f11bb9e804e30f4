"""Replicas that fail together, or that disagree."""

from __future__ import annotations

from tideover.models.remarks.plan import Plan


def side_by_side(plan: Plan, under: str) -> list[str]:
    """Remarks on components with two replicas of a task on one host, and on those whose replicas may emit
    different windows, as each ends them by its own clock; ``under``: the parameters that want replicas.
    """
    remarks = []
    for c in plan.components:
        replicas = plan.replicas(c.name)
        used = {plan.hosts[c.name, 0, replica] for replica in range(replicas)}
        if len(used) < replicas:
            remarks.append(
                f"{c.name}: {replicas} replicas on {len(used)} hosts: one host takes more than one of them "
                "down"
            )
        if c.window and replicas > 1 and c.trigger == "tick":
            better = "{gap: …, by: event}" if c.window.gap is not None else "{length: …, trigger: marker}"
            remarks.append(
                f"{c.name}: a window that a timer ends, under {under}: replicas may emit different sums, and "
                f"deduplication then picks wrong ones; use window: {better}"
            )
    return remarks
