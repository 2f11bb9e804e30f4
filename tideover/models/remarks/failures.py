"""Failures that strike nobody."""

from __future__ import annotations

from collections.abc import Set

from tideover.models.remarks.plan import Plan


def without_effect(plan: Plan, kind: str, roles: Set[str]) -> list[str]:
    """A remark on each role that is lost under a strategy of this kind, which has other ``roles``."""
    lost = [role for role in ("driver", "coordinator") if role not in roles and plan.hit(role)]
    return [f"failures: {kind} has no {role}: that it is lost changes nothing" for role in lost]
