"""Candidates as plain data: rows of a plan's table, and in its record."""

from __future__ import annotations

from typing import Any

from tideover.models.schema.endings import counted
from tideover.scenarios import swept
from tideover.scenarios.planning.candidate import PARTS, Candidate
from tideover.scenarios.planning.space import Space


def row(space: Space, one: Candidate) -> dict[str, Any]:
    """A row of ``Plan.candidates``."""
    values = {
        choice.key: swept.number(one.values[choice.key], choice.unit) if choice.key in one.values else None
        for choice in space.choices
    }
    low, high = one.cost_interval
    costs = {"cost_per_month": one.cost, "cost_low": low, "cost_high": high}
    costs |= {part: float(one.costs[part].mean()) for part in PARTS}
    judged = {
        f"{each.objective.text} {what}": getattr(each, what)
        for each in one.judgements
        for what in ("value", "low", "high", "verdict")
    }
    rest = {"violation": one.violation, "feasible": one.holds, "replications": one.n, "error": one.error}
    return values | costs | judged | rest


def shown(one: Candidate) -> dict[str, Any]:
    """A candidate in the record."""
    low, high = one.cost_interval
    return {
        "values": dict(one.values),
        "cost_per_month": {"mean": one.cost, "low": low, "high": high}
        | {part: float(one.costs[part].mean()) for part in PARTS},
        "objectives": [
            {"objective": each.objective.text, "value": each.value, "low": each.low, "high": each.high}
            | {"limit": each.limit, "verdict": each.verdict, "holds": each.holds}
            | {"ended": counted(each.endings)}
            for each in one.judgements
        ],
        "feasible": one.holds,
        "violation": one.violation,
        "replications": one.n,
        "error": one.error,
    }
