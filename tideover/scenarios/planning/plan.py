"""Finding a plan: who searches is asked, who runs is told, until there is an answer; and the answer.

`tideover plan` and `tideover.plan` call `plan`, with an evaluator that `kept` makes; reports read the `Plan`:
the cheapest candidates that meet the objectives, why, and their headroom.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.models.config import Slo, topology_of
from tideover.models.effort import effort, slowness
from tideover.models.schema import HEADLINE, TABLES, conform, counted
from tideover.scenarios.loader import Scenario
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.planning import checkpoint_interval as formulas
from tideover.scenarios.planning import search as searches
from tideover.scenarios.planning.search import Ask, Candidate, Evaluator, Racing, Search, Session, Tables
from tideover.scenarios.planning.spec import Space, Spec
from tideover.scenarios.saturation import scales
from tideover.scenarios.spark.settings import Place
from tideover.scenarios.statistics.availability import Availability, conditioned
from tideover.scenarios.sweeps import factors, rows, sweep
from tideover.scenarios.sweeps.survey import LEAST_S
from tideover.scenarios.sweeps.sweep_file import Made
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd

CLOSE, TRIES, MOST = 1.05, 5, 64.0
"""Quotient of the two factors of a headroom at the end; loads that are tried as a rule; the greatest."""
_LOOKED_AT = 40
"""So many candidates, evenly spread over those of the coarse grid, stand for the rest."""


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
        return searches.best_of(self.found)

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
        return [one for one in few if searches.contends(one, self.best, self.spec.wanted.level)]

    @cached_property
    def binding(self) -> Binding | None:
        """What binds; None: no run was done well."""
        at = self.nearest
        if at is None or not at.judgements:
            return None
        least = min(at.judgements, key=searches.margin)
        cheaper = [one for one in self.found if self.best and one.cost < self.best.cost]
        cheaper.sort(key=lambda one: -one.cost)
        missed = tuple((one, tuple(one.missed)) for one in cheaper)
        return Binding(least.objective.text, searches.margin(least), missed)

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

        found = []
        for one in sorted(self.found, key=lambda one: one.cost):
            row: dict[str, Any] = dict.fromkeys(self.units)
            row |= {key: factors.as_number(value, self.units[key]) for key, value in one.values.items()}
            low, high = one.cost_interval
            row |= {"cost_per_month": one.cost, "cost_low": low, "cost_high": high} | one.mean_costs
            for each in one.judgements:
                for what in ("value", "low", "high", "verdict"):
                    row[f"{each.objective.text} {what}"] = getattr(each, what)
            row |= {"violation": one.violation, "feasible": one.holds, "replications": one.n}
            row |= {"error": one.error, "on_front": any(one is other for other in self.front)}
            found.append(row)
        return pd.DataFrame(found)

    @cached_property
    def units(self) -> dict[str, str]:
        return {choice.key: choice.unit for choice in self.spec.space.choices}

    @cached_property
    def availability(self) -> Availability | None:
        """That of the optimum; None: nothing is feasible, or nothing says how often something fails."""
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
        """The optimum's interval beside those of formulas; None: no checkpoint keeps a task, or no rates."""
        best = self.nearest
        if best is None or (cycle := best.scenario.strategy.cycle()) is None:
            return None
        failures = self.spec.wanted.failures.values()
        rate = sum(breaks.per_s(best.scenario) for breaks in failures)
        bolts = (one for one in topology_of(best.scenario).components if not one.is_spout)
        part = max((best.scenario.strategy.load(one).saving for one in bolts), default=0.0)
        cost = part * cycle[1] / S
        if not rate or not cost:
            return None
        each = (formula(cost, 1 / rate) for formula in (formulas.young, formulas.daly, formulas.closed_form))
        return Intervals(cycle[1] / S, cost, 1 / rate, *each)

    def to_dict(self) -> dict[str, Any]:
        best, binding, intervals, more = self.best, self.binding, self.checkpoint_interval, self.headroom
        cheaper = [] if binding is None else binding.cheaper
        loads = () if more is None else more.loads
        return {
            "plan": self.spec.name,
            "whole": self.whole,
            "remarks": list(self.spec.remarks),
            "feasible": best is not None,
            "best": None if best is None else _shown(best) | {"scenario": to_data(best.scenario)},
            "nearest": None if best is not None or self.nearest is None else _shown(self.nearest),
            "binding": None
            if binding is None
            else {
                "objective": binding.objective,
                "margin": binding.margin,
                "cheaper": [
                    {"values": dict(one.values), "cost_per_month": one.cost, "missed": list(missed)}
                    for one, missed in cheaper
                ],
            },
            "checkpoint_interval_s": None if intervals is None else vars(intervals),
            "availability": None if self.availability is None else self.availability.to_dict(),
            "headroom": None
            if more is None
            else {
                "holds": more.holds,
                "breaks": more.breaks,
                "first": list(more.first),
                "tried": [{"load": load, "holds": held} for load, held in loads],
            },
            "no_headroom": self.no_headroom or None,
            "undecided": [dict(one.values) for one in self.undecided],
            "front": [dict(one.values) for one in self.front],
            "candidates": [_shown(one) for one in sorted(self.found, key=lambda one: one.cost)],
            "impossible": dict(self.impossible),
            "runs": {"search": self.runs, "headroom": self.runs_for_headroom, "exhaustive": self.exhaustive},
        }


def _shown(one: Candidate) -> dict[str, Any]:
    low, high = one.cost_interval
    return {
        "values": dict(one.values),
        "cost_per_month": {"mean": one.cost, "low": low, "high": high} | one.mean_costs,
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


def _mean(table: pd.DataFrame, column: str) -> float:
    """The mean of a column; infinite if something is missing in it."""
    found = float(table[column].mean(skipna=False)) if len(table) else 0.0
    return math.inf if math.isnan(found) else found


@dataclass(frozen=True)
class Forecast:
    """Of a plan, on one core of this machine.

    most_runs    if all candidates took all replications
    runs         that are made as a rule: the coarse grid and one candidate in full, a quarter of the former
                 if this is less, and those at other loads
    run_s        how long one takes; None: none of the candidates that were looked at can be built
    first_s      until the first candidates have their least replications
    """

    candidates: int
    most_runs: int
    runs: int
    run_s: float | None
    first_s: float | None

    @property
    def core_s(self) -> float | None:
        return None if self.run_s is None else self.run_s * self.runs


def forecast(spec: Spec) -> Forecast:
    """Without any run."""
    session = Session(spec.space, spec.wanted, lambda asks: searches.tables([], []))  # nothing is run
    most = spec.space.total * spec.effort.most
    search = Racing(spec, session)
    coarse = search.waiting
    runs = min(search.left, len(coarse) * spec.effort.least + spec.effort.most)
    runs += TRIES * spec.effort.most
    each = {
        index: LEAST_S + effort(session.scenario(index)).seconds * slowness()
        for index in coarse[:: max(1, len(coarse) // _LOOKED_AT)]
    }
    if not each:
        return Forecast(spec.space.total, most, runs, None, None)
    first = sum(ask.runs for ask in search.ask()) * each[coarse[0]]
    return Forecast(spec.space.total, most, runs, float(np.mean(list(each.values()))), first)


Say = Callable[[str, float], None]
"""Called with what is being done, and the number of runs at the planned load that are done."""


def _scenario(space: Space, ask: Ask) -> Scenario:
    return space.at(ask.values, ask.load)


@contextmanager
def kept(space: Space, out: str | os.PathLike[str] | None, where: Place, say: Say) -> Iterator[Evaluator]:
    """Has a plan's runs done by ``where``, and kept in ``out`` (None: for now). Raises as a sweep does."""
    with sweep.kept(out, where, lambda what: say(what, 0)) as doer:
        before = 0  # runs at the planned load

        def evaluate(asks: Sequence[Ask]) -> Tables:
            nonlocal before
            planned = all(ask.load == 1 for ask in asks)

            def tell(what: str, done: float, total: int) -> None:
                say(*((what, before + done) if planned else ("trying other loads", before)))

            # a run is known by its scenario: what an earlier call or an interrupted plan has done is there
            points = Made("plan", tuple(asks), partial(_scenario, space))
            found = sweep.runs_of(points, [(ask.first, ask.last + 1) for ask in asks], doer, tell)
            if planned:
                before += sum(ask.runs for ask in asks)
            renamed = {"point": searches.ASK}
            frames = {n: rows.tidy(found, n, {}).to_pandas().rename(columns=renamed) for n in Tables._fields}
            return Tables(*(conform(frame, TABLES[name]) for name, frame in frames.items()))

        yield evaluate


MakeSearch = Callable[[Spec, Session], Search]
Report = Callable[[str, int, int], None]
"""Called with what is done, the number of runs so far, and the most that there may be."""


class Interrupted(KeyboardInterrupt):
    """Somebody has ended the search early; ``plan``: what it had found by then."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


def plan(
    spec: Spec,
    evaluator: Evaluator,
    search: MakeSearch | None = None,
    report: Report = lambda what, done, most: None,
    answered: Callable[[Plan], None] = lambda plan: None,
) -> Plan:
    """Find the cheapest candidate on which all objectives hold.

    ``evaluator``: who does the runs. ``search``: makes who decides what is run, from the
    plan and what it has found (`tideover.scenarios.planning.search.Search`); None: `Racing`. ``report`` hears
    how many runs are done, ``answered`` of each better answer on the way, be it one that is surer: a plan of
    what is known then, without headroom. Raises Interrupted on Ctrl-C.
    """
    exhaustive = spec.space.total * spec.effort.most
    session = Session(spec.space, spec.wanted, evaluator)

    def result(more: Headroom | None, why: str, whole: bool = True) -> Plan:
        runs = session.runs, session.elsewhere, exhaustive
        return Plan(spec, session.candidates, *runs, more, why, dict(session.impossible), whole)

    before: Candidate | None = None
    try:
        searching = (search or Racing)(spec, session)
        while asks := searching.ask():
            searching.tell(session.evaluate(asks))
            report("simulating", session.runs, exhaustive)
            found = result(None, "the search is not over", whole=False)
            if found.nearest is not before:
                before = found.nearest
                answered(found)
        return result(*_headroom(spec, session, searches.best_of(session.candidates)))
    except KeyboardInterrupt:
        raise Interrupted(result(None, "the search was ended early", whole=False)) from None


def _headroom(spec: Spec, session: Session, best: Candidate | None) -> tuple[Headroom | None, str]:
    """What more load the optimum takes, or why that is not known.

    Bisects between a load at which all objectives hold and one at which one breaks, by the replications of
    the optimum, so with its luck. It is assumed that what breaks at one load breaks at greater ones.
    """
    if best is None:
        return None, "nothing is feasible"
    if not scales(best.scenario):
        return None, "its arrivals have no rate to scale"
    held, broken, tried = 1.0, math.inf, {1.0: True}
    last: Candidate | None = None
    while held < MOST and broken / held > CLOSE:
        load = 2 * held if math.isinf(broken) else math.sqrt(held * broken)
        (found,) = session.evaluate([Ask(best.values, 0, best.n - 1, load)])
        tried[load] = found.holds
        if found.holds:
            held = load
        else:
            broken, last = load, found
    loads = tuple(sorted(tried.items()))
    if last is None:
        return Headroom(held, None, (), loads), ""
    return Headroom(held, broken, tuple(last.missed), loads), ""
