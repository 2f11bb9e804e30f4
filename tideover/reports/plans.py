"""What a plan found, for readers: sentences, tables, figures, the page.

Called by `tideover plan`; the search itself is in `tideover.scenarios.planning`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.text import Text

from tideover.models.schema import HEADLINE, LOSSY, counted
from tideover.reports import checks, figures
from tideover.reports.figures.style import picture
from tideover.reports.figures.sweeps import MOST_NAMED
from tideover.reports.formatting import listed, number, strategy_name, with_ending
from tideover.reports.html import Grid, GridColumn, Page, Picture, Section, grid
from tideover.reports.sweeps.points import explained, rounded, short_names
from tideover.reports.tables import Table
from tideover.reports.terminal import render
from tideover.scenarios.objectives.objective import Judgement
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.planning.candidate import PARTS, Candidate
from tideover.scenarios.planning.plan import Plan
from tideover.scenarios.planning.spec import COUNT, TYPE
from tideover.scenarios.sweeps.factors import as_text
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd


# A plan's answer in sentences and tables, for the terminal and for the page.

MOST_LISTED = 8

FORMULAS = {
    "young": ("Young (1974)", "work lost and done twice, to first order"),
    "daly": ("Daly (2006)", "the same, to higher order"),
    "closed_form": ("closed form", "the greatest part of time for work that stays"),
    "at_load": ("with the load", "the least part of time behind, of a stream with time to spare"),
}
"""Formulas for checkpoint intervals: name, and what is best at their optimum."""


def verdict(plan: Plan) -> str:
    """The answer in a sentence or two; of a search that was ended early, what it has found so far."""
    if not plan.whole and not plan.found:
        return "Ended early, before any candidate was tried."
    early = f"Ended early: {len(plan.found):,} of {plan.spec.space.total:,} candidates were tried. "
    tried = "" if plan.whole else early
    best, nearest = plan.best, plan.nearest
    if best is not None:
        unsure = any(one.verdict == "unsure" for one in best.judgements)
        known = f", as far as {best.n} replications show," if unsure else ""
        which = "cheapest" if plan.whole else "cheapest of these"
        cost = f"{_cost(best)} per month: {_choices(best.values)}"
        return f"{tried}The {which} that meets all objectives{known} costs {cost}."
    if nearest is None:
        return f"{tried}Nothing is feasible: no run was done well."
    first = nearest.missed[0]
    missed = next(one for one in nearest.judgements if one.objective.text == first)
    whole = f"Nothing is feasible. {first} cannot be met" if plan.whole else f"None of these meets {first}"
    return (
        f"{tried}{whole}: the nearest has {_value(missed)}, {number(nearest.violation)} times the limit "
        f"beyond it ({_choices(nearest.values)})."
    )


def so_far(plan: Plan) -> str:
    """The answer of a plan that is still searched, in a line."""
    best, nearest = plan.best, plan.nearest
    runs = f"So far, after {plan.runs:,} runs"
    if best is not None:
        met = listed([f"{one.objective.text}: {_value(one)}" for one in best.judgements])
        return f"{runs}: {_cost(best)} per month: {_choices(best.values)}; by {best.n} replications {met}."
    if nearest is None or not nearest.missed:
        return f"{runs}: nothing that meets all objectives."
    missed = f"the nearest misses {nearest.missed[0]}: {_choices(nearest.values)}"
    return f"{runs}: nothing that meets all objectives; {missed}."


def sentences(plan: Plan) -> Iterator[str]:
    """What binds, what is undecided, what checkpoints should be, and how much more load it takes."""
    yield from _binding(plan)
    best = plan.best
    if best is not None:
        unsure = [one.objective.text for one in best.judgements if one.verdict == "unsure"]
        if unsure:
            met = "is met by" if len(unsure) == 1 else "are met by"
            yield f"{listed(unsure)} {met} the value, but the interval of {best.n} replications leaves doubt."
    if plan.undecided:
        many = len(plan.undecided)
        yield (
            f"{many} other {'candidate' if many == 1 else 'candidates'} may be better all the same: "
            "more replications (search.replications) would tell."
        )
    down = plan.availability
    if down is not None and down.minutes_per_year is not None and down.value is not None:
        minutes = number(down.minutes_per_year)
        yield f"Failures take it down for {minutes} minutes a year: {checks.part(down.value)} available."
    yield from _headroom(plan)
    if plan.impossible:
        values, why = next(iter(plan.impossible.items()))
        which = "candidate" if len(plan.impossible) == 1 else "candidates"
        yield f"{len(plan.impossible)} {which} cannot be built; {_choices(json.loads(values))}: {why}."
    share = plan.runs / plan.exhaustive
    yield (
        f"{plan.runs:,} runs of the {plan.exhaustive:,} that all {plan.spec.space.total:,} candidates would "
        f"take ({100 * share:.0f} %); {plan.runs_for_headroom:,} more at other loads."
    )


def _binding(plan: Plan) -> Iterator[str]:
    binding = plan.binding
    if binding is None or plan.best is None:
        return
    failing = [missed[0] for _, missed in binding.cheaper if missed]
    if failing:
        found = listed(f"{name} ({count})" for name, count in Counter(failing).items())
        yield f"What binds: of the cheaper candidates that were tried, each misses {found}."
    else:
        yield "No objective binds: of all that was tried, nothing is cheaper."
    if binding.margin < float("inf"):
        yield f"Least margin at the optimum: {binding.objective}, {100 * binding.margin:.0f} % of the limit."


def _headroom(plan: Plan) -> Iterator[str]:
    found = plan.headroom
    if found is None:
        if plan.best is not None:
            yield f"Headroom is not known: {plan.no_headroom}."
    elif found.breaks is None:
        yield f"Headroom: all objectives still hold at {found.holds:g} times the load."
    else:
        broken, breaks = listed(found.first[:2]), "breaks" if len(found.first) == 1 else "break"
        yield f"Headroom: {found.holds:.2f} times the load; at {found.breaks:.2f} times, {broken} {breaks}."


def tables(plan: Plan) -> list[Table]:
    """Those that have rows."""
    every = [cheapest(plan), cheaper(plan), front(plan), *intervals(plan)]
    return [table for table in every if table.rows]


def cheapest(plan: Plan) -> Table:
    """The cheapest candidates that meet all objectives; where there are none, those that miss least."""
    feasible = plan.feasible
    shown = feasible or sorted(plan.found, key=lambda one: (one.violation, one.cost))
    title = "The cheapest that meet all objectives" if feasible else "What misses the objectives least"
    rest = len(shown) - MOST_LISTED
    notes = (f"and {rest:,} more",) if rest > 0 else ()
    return _table(plan, title, shown[:MOST_LISTED], notes)


def cheaper(plan: Plan) -> Table:
    """Cheaper ones, and what they miss."""
    binding = plan.binding
    rows = [] if binding is None else binding.cheaper[:MOST_LISTED]
    found = tuple((_choices(one.values), _cost(one), listed(missed), str(one.n)) for one, missed in rows)
    return Table("Cheaper, but", ("choices", "per month", "misses", "runs"), found, (), 1)


def front(plan: Plan) -> Table:
    """Cost against recovery against latency."""
    rows = tuple(
        (
            _choices(one.values),
            number(one.cost),
            with_ending(number(float(one.recoveries[HEADLINE].mean())), one.recoveries["ended"].tolist()),
            number(float(one.runs["latency_p99_ms"].mean())),
            "yes" if one.holds else "no",
        )
        for one in plan.front[: 2 * MOST_LISTED]
    )
    columns = ("choices", "per month", "mean recovery, s", "p99 latency, ms", "meets all")
    return Table("Pareto front of what was tried", columns, rows if len(rows) > 1 else ())


def intervals(plan: Plan) -> list[Table]:
    """The checkpoint interval beside formulas."""
    found = plan.checkpoint_interval
    if found is None:
        return []
    mine = ("this plan", number(found.chosen), "what costs least and meets the objectives")
    rows = (mine, *formula_rows(vars(found)))
    note = f"A checkpoint keeps a task for {number(found.cost)} s; {number(found.mtbf)} s between failures."
    return [Table("Checkpoint interval", ("", "s", "optimum of"), rows, (note,))]


def formula_rows(optima: Mapping[str, float]) -> tuple[tuple[str, str, str], ...]:
    """What the formulas are, the optimum (s) of each that is there, and what it is an optimum of."""
    return tuple((name, number(optima[key]), of) for key, (name, of) in FORMULAS.items() if key in optima)


def _table(plan: Plan, title: str, shown: Sequence[Candidate], notes: tuple[str, ...]) -> Table:
    objectives = [one.text for one in plan.spec.wanted.objectives]
    rows = []
    for one in shown:
        parts = " + ".join(number(float(one.costs[part].mean())) for part in PARTS if one.costs[part].any())
        rows.append((_choices(one.values), _cost(one), parts, *map(_value, one.judgements), str(one.n)))
    used = [part for part in PARTS if any(one.costs[part].any() for one in shown)]
    columns = ("choices", "per month", " + ".join(used) or "parts", *objectives, "runs")
    return Table(title, columns, tuple(rows), notes)


def _choices(values: Mapping[str, Any]) -> str:
    """``R+SM, checkpoint_interval 5 s, 3 × small``."""
    short, shown = short_names(list(values)), dict(values)
    machine = shown.pop(TYPE, None) if COUNT in shown else None
    found = []
    for key, value in shown.items():
        if key == "strategy.kind":
            found.append(strategy_name(value))
        elif key == COUNT and machine is not None:
            found.append(f"{value} × {machine}")
        else:
            found.append(f"{short[key]} {as_text(value)}")
    return ", ".join(found)


def _cost(one: Candidate) -> str:
    low, high = one.cost_interval
    half = (high - low) / 2
    return number(one.cost) if half < 1e-9 * max(1.0, one.cost) else f"{number(one.cost)} ± {number(half, 2)}"


def _value(one: Judgement) -> str:
    mark = {"met": "", "broken": " broken", "unsure": " ?" if one.holds else " broken?"}[one.verdict]
    return with_ending(checks.shown(one.value, one), one.endings) + mark


# The figures of a plan's page, and the table of all its candidates.

_FRONT = (
    "Each mark is a candidate that was tried: a disc meets all objectives, a cross does not; the colour is "
    "its 99th percentile of latency; a red dot in it: it has lost roots. Marks with an edge are on the "
    "Pareto front: nothing costs as little, recovers as soon and has as low a latency. The line joins those "
    "that are the quickest at their price."
)
_RACE = (
    "How many replications each candidate was given until it was known to be dearer or to miss an objective. "
    "Pale: what was spared. The arrow is at the {which}."
)
_INTERVALS = (
    "What candidates cost that differ in how far apart their checkpoints are, and in other choices. The "
    "lines are optima of formulas, which know neither prices nor objectives."
)


def pictures(plan: Plan) -> tuple[Picture, ...]:
    """The Pareto front, what checkpoint intervals cost, the race; each if there is something to be seen."""
    table = drawn(plan)
    which = "optimum" if plan.best is not None else "nearest"
    found = []
    if len(table) > 1:
        if np.isfinite(table["recovery"]).any():
            few = len(plan.front) <= MOST_NAMED
            caption = f"{_FRONT}{' Numbers are those of the table of the front.' if few else ''}"
            axes = figures.pareto_front(table, ringed=which)
            alt = "Candidates by cost, time to recover and latency; the table has the same figures."
            found.append(picture("Cost, recovery and latency", caption, axes, "front", alt))
        beside = plan.checkpoint_interval
        if beside is not None and table["interval_s"].nunique() > 1:
            optima = {"Young": beside.young, "Daly": beside.daly, "closed form": beside.closed_form}
            axes = figures.checkpoint_intervals(table, optima, ringed=which)
            alt = "Cost of candidates by checkpoint interval, and the optima of three formulas."
            found.append(picture("Cost by checkpoint interval", _INTERVALS, axes, "intervals", alt))
        axes = figures.race(table, plan.spec.effort.most)
        alt = "Replications that each candidate was given; the table has the same figures."
        found.append(picture("Replications spent", _RACE.format(which=which), axes, "race", alt))
    return tuple(found)


def drawn(plan: Plan) -> pd.DataFrame:
    """What the figures draw: a row for each candidate whose runs did not fail, the cheapest first;
    ``interval_s``: from one checkpoint's start to the next one's, NaN if there are none.
    """
    import pandas as pd

    front = {id(one) for one in plan.front}
    rows = [
        {
            "cost_per_month": one.cost,
            "recovery": _mean(one.recoveries, HEADLINE),
            "latency": _mean(one.runs, "latency_p99_ms"),
            "interval_s": math.nan if (cycle := one.scenario.strategy.cycle()) is None else cycle[1] / S,
            "lossy": LOSSY in set(one.recoveries["ended"]),
            "feasible": one.holds,
            "on_front": id(one) in front,
            "replications": one.n,
            "chosen": one is plan.nearest,
        }
        for one in sorted(plan.found, key=lambda one: one.cost)
        if one.error is None
    ]
    return pd.DataFrame(rows)


def candidates_grid(plan: Plan) -> Grid | None:
    """The table of all candidates that were tried; None: none was."""
    every = sorted(plan.found, key=lambda one: one.cost)
    if not every:
        return None
    table, short = plan.candidates, short_names(list(plan.units))
    columns = [
        GridColumn("candidate", list(range(1, len(every) + 1))),
        *(_choice(key, short[key], table, every) for key in plan.units),
        GridColumn("per month", rounded(table["cost_per_month"])),
        GridColumn("±", rounded((table["cost_high"] - table["cost_low"]) / 2)),
        GridColumn("recovery, s", rounded([_mean(one.recoveries, HEADLINE) for one in every])),
        _names("ended", [counted(one.recoveries["ended"]) for one in every]),
        GridColumn("p99 latency, ms", rounded([_mean(one.runs, "latency_p99_ms") for one in every])),
    ]
    for objective in (one.text for one in plan.spec.wanted.objectives):
        columns.append(GridColumn(objective, rounded(table[f"{objective} value"])))
        columns.append(_names("verdict", [str(verdict) for verdict in table[f"{objective} verdict"]]))
    for label, name in (("meets all", "feasible"), ("on the front", "on_front")):
        columns.append(_names(label, ["yes" if truth else "no" for truth in table[name]]))
    columns.append(GridColumn("runs", table["replications"].tolist()))
    notes = ("; ".join(explained(short)), "±: half the width of the interval; – undefined")
    return grid(columns, "candidates", notes)


def _choice(key: str, short: str, table: pd.DataFrame, every: list[Candidate]) -> GridColumn:
    """The values of a choice, as they are written; a dash where it has no effect."""
    words = strategy_name if key == "strategy.kind" else as_text
    shown = [words(one.values[key]) if key in one.values else None for one in every]
    numbers: dict[str, float] = {}
    for label, value in zip(shown, table[key], strict=True):
        if label is not None and isinstance(value, int | float | np.number) and not isinstance(value, bool):
            numbers[label] = float(value)
    column = _names(short, shown)
    ordered = [numbers[label] for label in column.values] if len(numbers) == len(column.values) else ()
    return replace(column, numbers=ordered)


def _names(name: str, texts: Sequence[str | None]) -> GridColumn:
    places = {text: n for n, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
    return GridColumn(name, [None if text is None else places[text] for text in texts], tuple(places))


def _mean(table: pd.DataFrame, column: str) -> float:
    """NaN if something is missing in it: a candidate that does not always recover has no mean."""
    return float(table[column].mean(skipna=False)) if len(table) else math.nan


def plan_view(plan: Plan) -> Group:
    """What the terminal shows: the answer, why it is that, and what else there is."""
    return Group(
        Text(verdict(plan), style="bold"),
        *(Text(sentence) for sentence in sentences(plan)),
        Text(""),
        *(render(table) for table in tables(plan)),
    )


def plan_page(plan: Plan) -> Page:
    """The answer, and the optimum's whole scenario."""
    best = plan.nearest
    spec = plan.spec
    setup = (
        ("Objectives", "; ".join(one.text for one in spec.wanted.objectives)),
        ("Candidates", f"{spec.space.total:,}"),
        ("Replications", f"{spec.effort.least} to {spec.effort.most} each"),
    )
    scenario = "" if best is None else json.dumps(to_data(best.scenario), indent=2, ensure_ascii=False)
    return Page(
        title=spec.name,
        kind="the cheapest configuration that meets the objectives",
        verdict=verdict(plan),
        warnings=spec.remarks,
        setup=setup,
        sections=(
            Section("Figures", "figures", pictures=pictures(plan)),
            Section("Why, and how far it holds", "answer", sentences=tuple(sentences(plan))),
            Section("Candidates", "candidates", tables=tuple(tables(plan)), grid=candidates_grid(plan)),
        ),
        scenarios_title="The optimum as a scenario" if plan.best else "The nearest as a scenario",
        scenarios=() if best is None else ((spec.name, scenario),),
        glossary={},
    )
