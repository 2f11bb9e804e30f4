"""Failures that strike nobody, and those that a strategy does not survive."""

from __future__ import annotations

from collections.abc import Set

from tideover.models.remarks.plan import Plan
from tideover.sim.faults.cascade import Cascade
from tideover.sim.faults.events import Events
from tideover.sim.faults.lose_store import LoseStore
from tideover.sim.faults.machines_fail import MachinesFail
from tideover.sim.faults.partition import Partition


def without_effect(plan: Plan, kind: str, roles: Set[str]) -> list[str]:
    """A remark on each role that is lost under a strategy of this kind, which has other ``roles``."""
    lost = [role for role in ("driver", "coordinator") if role not in roles and plan.hit(role)]
    return [f"failures: {kind} has no {role}: that it is lost changes nothing" for role in lost]


def not_survived(plan: Plan, kind: str, survives: Set[str], stores: bool) -> list[str]:
    """A remark on each kind of failure, of those that take something, after which a strategy of this ``kind``
    promises nothing; ``stores``: whether it keeps anything in a store.
    """
    found: dict[str, None] = {}
    for fault in (one for each in plan.failures for one in (each, *each.inner.values())):
        what = "crash_host" if isinstance(fault, MachinesFail | Cascade) else fault.kind
        takes = fault.kills or (isinstance(fault, Partition) and fault.messages == "lose")
        takes |= isinstance(fault, LoseStore) and stores
        if takes and what not in survives and not isinstance(fault, Events):
            found[what] = None
    return [
        f"failures: {kind} does not promise to survive {what}: roots may be lost for good, and a time to "
        "recover then only says when all the rest is as it would have been"
        for what in found
    ]
