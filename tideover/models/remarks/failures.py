"""Failures that strike nobody."""

from __future__ import annotations

from collections.abc import Set

from tideover.models.remarks.plan import Plan


def without_effect(plan: Plan, kind: str, roles: Set[str]) -> list[str]:
    """A remark if a driver is lost, under a strategy of this kind and with these roles that has none."""
    if "driver" in roles or not plan.hit("driver"):
        return []
    return [f"failures: {kind} has no driver: that it is lost changes nothing"]
