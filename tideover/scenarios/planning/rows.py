"""A plan as plain data: rows of its table, and the record of ``--json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.scenarios import swept
from tideover.scenarios.planning.candidate import PARTS, Candidate
from tideover.scenarios.planning.space import Space
from tideover.scenarios.writer import to_data

if TYPE_CHECKING:
    from tideover.scenarios.planning.plan import Plan


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
            for each in one.judgements
        ],
        "feasible": one.holds,
        "violation": one.violation,
        "replications": one.n,
        "error": one.error,
    }


def record(plan: Plan) -> dict[str, Any]:
    """What ``--json`` prints."""
    best, binding, intervals = plan.best, plan.binding, plan.checkpoint_interval
    return {
        "plan": plan.spec.name,
        "feasible": best is not None,
        "best": None if best is None else shown(best) | {"scenario": to_data(best.scenario)},
        "nearest": None if best is not None or plan.nearest is None else shown(plan.nearest),
        "binding": None
        if binding is None
        else {
            "objective": binding.objective,
            "margin": binding.margin,
            "cheaper": [
                {"values": dict(one.values), "cost_per_month": one.cost, "missed": list(missed)}
                for one, missed in binding.cheaper
            ],
        },
        "checkpoint_interval_s": None if intervals is None else vars(intervals),
        "headroom": None if plan.headroom is None else plan.headroom.to_dict(),
        "no_headroom": plan.no_headroom or None,
        "undecided": [dict(one.values) for one in plan.undecided],
        "front": [dict(one.values) for one in plan.front],
        "candidates": [shown(one) for one in sorted(plan.found, key=lambda one: one.cost)],
        "impossible": dict(plan.impossible),
        "runs": {
            "search": plan.runs,
            "headroom": plan.runs_for_headroom,
            "exhaustive": plan.exhaustive,
        },
    }
