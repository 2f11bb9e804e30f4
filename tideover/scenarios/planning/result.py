"""The answer: the cheapest candidates that meet the objectives, why, and their headroom."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tideover.models.config import Slo, topology_of
from tideover.models.schema import HEADLINE, counted
from tideover.scenarios.loader import Scenario
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.planning import checkpoint_interval as formulas
from tideover.scenarios.planning.candidate import PARTS, Candidate, best_of, margin, mean_time_between
from tideover.scenarios.planning.search import contends
from tideover.scenarios.planning.spec import Space, Spec
from tideover.scenarios.statistics.availability import Availability, conditioned
from tideover.scenarios.sweeps import factors
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd

CLOSE, TRIES, MOST = 1.05, 5, 64.0
"""Quotient of the two factors of a headroom at the end; loads that are tried as a rule; the greatest."""


@dataclass(frozen=True)
class Headroom:
    """Factors of the planned load: the greatest that was tried at which all objectives hold, the least at
    which one does not (None: none was found), and which break ``first`` there, the worst in front; ``loads``:
    all that were tried, in order, and whether all held.
    """

    holds: float
    breaks: float | None
    first: tuple[str, ...]
    loads: tuple[tuple[float, bool], ...]

    def to_dict(self) -> dict[str, Any]:
        tried = [{"load": load, "holds": held} for load, held in self.loads]
        return {"holds": self.holds, "breaks": self.breaks, "first": list(self.first), "tried": tried}


def headroom(best: Candidate, at_load: Callable[[float], Candidate]) -> Headroom:
    """Bisect between a load at which all objectives hold and one at which one breaks, by the replications of
    the optimum, so with its luck. ``at_load``: the same candidate at so many times its load. It is assumed
    that what breaks at one load breaks at greater ones.
    """
    held, broken, tried = 1.0, math.inf, {1.0: True}
    last: Candidate | None = None
    while held < MOST and broken / held > CLOSE:
        load = 2 * held if math.isinf(broken) else math.sqrt(held * broken)
        found = at_load(load)
        tried[load] = found.holds
        if found.holds:
            held = load
        else:
            broken, last = load, found
    loads = tuple(sorted(tried.items()))
    if last is None:
        return Headroom(held, None, (), loads)
    return Headroom(held, broken, tuple(last.missed), loads)


def row(space: Space, one: Candidate) -> dict[str, Any]:
    """A row of ``Plan.candidates``."""
    values = {
        choice.key: factors.as_number(one.values[choice.key], choice.unit)
        if choice.key in one.values
        else None
        for choice in space.choices
    }
    low, high = one.cost_interval
    costs = {"cost_per_month": one.cost, "cost_low": low, "cost_high": high} | _parts(one)
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
        "cost_per_month": {"mean": one.cost, "low": low, "high": high} | _parts(one),
        "objectives": [
            {"objective": each.objective.text}
            | {name: getattr(each, name) for name in ("value", "low", "high", "limit", "verdict", "holds")}
            | {"ended": counted(each.endings)}
            for each in one.judgements
        ],
        "feasible": one.holds,
        "violation": one.violation,
        "replications": one.n,
        "error": one.error,
    }


def _parts(one: Candidate) -> dict[str, float]:
    return {part: float(one.costs[part].mean()) for part in PARTS}


@dataclass(frozen=True)
class Binding:
    """What keeps the optimum from being cheaper.

    objective   the one with the least margin at the optimum; where nothing is feasible, the one that is
                missed most by the candidate that misses least
    margin      how far its value is from its limit, in parts of the limit; negative: missed by so much
    cheaper     the cheaper candidates, and for each the objectives that it misses, the worst first
    """

    objective: str
    margin: float
    cheaper: tuple[tuple[Candidate, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Intervals:
    """How far apart checkpoints are at the optimum, and how far apart formulas would have them, which know no
    objective and no price: seconds from start to start (`tideover.scenarios.planning.checkpoint_interval`).
    ``cost``: how long one keeps the task that it keeps longest; ``mtbf``: of failures of any kind.
    """

    chosen: float
    cost: float
    mtbf: float
    young: float
    daly: float
    closed_form: float


@dataclass
class Plan:
    """What ``tideover plan`` says.

    found         all candidates that were tried
    runs          made in the search; ``exhaustive``: what all candidates with all replications would take
    headroom      how much more load the optimum takes; None: nothing is feasible, or ``no_headroom`` says why
    whole         the search was not ended early
    """

    spec: Spec
    found: list[Candidate]
    runs: int
    runs_for_headroom: int
    exhaustive: int
    headroom: Headroom | None
    no_headroom: str
    impossible: Mapping[str, str]
    whole: bool = True

    @cached_property
    def best(self) -> Candidate | None:
        """The cheapest on which all objectives hold, with all replications; None: nothing is feasible."""
        return best_of(self.found)

    @cached_property
    def nearest(self) -> Candidate | None:
        """The one that misses its objectives by the least, and the cheapest of these."""
        tried = [one for one in self.found if one.error is None]
        return self.best or min(tried, key=lambda one: (one.violation, one.cost), default=None)

    @cached_property
    def scenario(self) -> Scenario | None:
        """That of the optimum, or of the nearest, with the plan's objectives as its ``slo``: not with that of
        an availability where it is found from how often something fails, as runs do not show it.
        """
        if self.nearest is None:
            return None
        wanted = self.spec.wanted
        block = tuple(
            Slo(objective=one.text, level=one.level)
            for one in wanted.objectives
            if not (wanted.failures and one.metric.column.name == "availability")
        )
        return self.nearest.scenario.model_copy(update={"slo": block})

    @cached_property
    def feasible(self) -> list[Candidate]:
        return sorted((one for one in self.found if one.holds), key=lambda one: one.cost)

    @cached_property
    def undecided(self) -> list[Candidate]:
        """Those that may be better than the optimum all the same, and were not run so often that it shows."""
        few = (one for one in self.found if one is not self.best and one.n < self.spec.effort.most)
        return [one for one in few if contends(one, self.best, self.spec.wanted.level)]

    @cached_property
    def binding(self) -> Binding | None:
        """What binds; None: no run was done well."""
        at = self.nearest
        if at is None or not at.judgements:
            return None
        least = min(at.judgements, key=margin)
        cheaper = [one for one in self.found if self.best and one.cost < self.best.cost]
        cheaper.sort(key=lambda one: -one.cost)
        return Binding(
            least.objective.text, margin(least), tuple((one, tuple(one.missed)) for one in cheaper)
        )

    @cached_property
    def front(self) -> list[Candidate]:
        """The Pareto front of what was tried: no other costs as little, recovers as soon (mean) and has as
        low a p99 latency, and is better in one of these. By cost.
        """
        every = [one for one in self.found if one.error is None]
        figures = [
            (one.cost, _mean(one.recoveries, HEADLINE), _mean(one.runs, "latency_p99_ms")) for one in every
        ]

        def beaten(mine: tuple[float, ...]) -> bool:
            return any(o != mine and all(map(operator.le, o, mine)) for o in figures)

        found = [one for one, mine in zip(every, figures, strict=True) if not beaten(mine)]
        return sorted(found, key=lambda one: one.cost)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """One row a candidate that was tried, the cheapest first.

        The values of the choices (quantities as numbers, in the units of ``units``; missing: without effect),
        ``cost_per_month``, ``cost_low``, ``cost_high``, ``machines``, ``store``, ``network``, ``downtime``;
        for each objective, by its text, ``… value``, ``… low``, ``… high`` and ``… verdict``; then
        ``violation``, ``feasible``, ``replications``, ``on_front``, ``error``.
        """
        import pandas as pd

        front = {id(one) for one in self.front}
        every = sorted(self.found, key=lambda one: one.cost)
        return pd.DataFrame([row(self.spec.space, one) | {"on_front": id(one) in front} for one in every])

    @cached_property
    def units(self) -> dict[str, str]:
        return {choice.key: choice.unit for choice in self.spec.space.choices}

    @cached_property
    def availability(self) -> Availability | None:
        """That of the optimum, with the time that it is down in a year; None: nothing is feasible, or the
        plan does not say how often something fails.
        """
        best, failures = self.best, self.spec.wanted.failures
        if best is None or not failures:
            return None
        means = best.recoveries.groupby(["kind", "replication"])[HEADLINE].agg(lambda s: s.mean(skipna=False))
        return conditioned(
            {kind: means[kind].to_list() for kind in failures},
            {kind: breaks.per_s(best.scenario) for kind, breaks in failures.items()},
        )

    @cached_property
    def checkpoint_interval(self) -> Intervals | None:
        """The optimum's interval beside those of formulas; None: it makes no checkpoints that keep a task, or
        the plan does not say how often something fails.
        """
        best = self.nearest
        if best is None:
            return None
        mtbf = mean_time_between(best.scenario, self.spec.wanted.failures.values())
        cost, chosen = _checkpoint(best)
        if mtbf is None or not cost:
            return None
        each = (formula(cost, mtbf) for formula in (formulas.young, formulas.daly, formulas.closed_form))
        return Intervals(chosen, cost, mtbf, *each)

    def to_dict(self) -> dict[str, Any]:
        best, binding, intervals = self.best, self.binding, self.checkpoint_interval
        return {
            "plan": self.spec.name,
            "whole": self.whole,
            "remarks": list(self.spec.remarks),
            "feasible": best is not None,
            "best": None if best is None else shown(best) | {"scenario": to_data(best.scenario)},
            "nearest": None if best is not None or self.nearest is None else shown(self.nearest),
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
            "availability": None if self.availability is None else self.availability.to_dict(),
            "headroom": None if self.headroom is None else self.headroom.to_dict(),
            "no_headroom": self.no_headroom or None,
            "undecided": [dict(one.values) for one in self.undecided],
            "front": [dict(one.values) for one in self.front],
            "candidates": [shown(one) for one in sorted(self.found, key=lambda one: one.cost)],
            "impossible": dict(self.impossible),
            "runs": {"search": self.runs, "headroom": self.runs_for_headroom, "exhaustive": self.exhaustive},
        }


def _checkpoint(candidate: Candidate) -> tuple[float, float]:
    """How long one checkpoint keeps a task, at most, and how far apart they are (s); 0: there are none."""
    strategy = candidate.scenario.strategy
    cycle = strategy.cycle()
    if cycle is None:
        return 0.0, 0.0
    components = topology_of(candidate.scenario).components
    part = max((strategy.load(one).saving for one in components if not one.is_spout), default=0.0)
    return part * cycle[1] / S, cycle[1] / S


def _mean(table: pd.DataFrame, column: str) -> float:
    """The mean of a column; infinite if something is missing in it."""
    found = float(table[column].mean(skipna=False)) if len(table) else 0.0
    return math.inf if math.isnan(found) else found
