"""What a plan found, for readers: sentences, tables, figures, the page.

Called by `tideover plan`; the search itself is in `tideover.scenarios.planning`, what is said of figures in
``captions.toml``.
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
from tideover.reports import checks, figures, wording
from tideover.reports.figures.style import picture
from tideover.reports.figures.sweeps import MOST_NAMED
from tideover.reports.formatting import number, strategy_name, with_ending
from tideover.reports.html import Grid, GridColumn, Page, Picture, Section, grid
from tideover.reports.sweeps.points import explained, rounded, short_names
from tideover.reports.tables import Table
from tideover.reports.terminal import render
from tideover.scenarios.errors import listed
from tideover.scenarios.objectives.objective import Judgement
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.planning.plan import Plan
from tideover.scenarios.planning.search import PARTS, Candidate
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
    return wording.text("plan_verdict", plan, _cost, _choices, _value)


def so_far(plan: Plan) -> str:
    """The answer of a plan that is still searched, in a line."""
    return wording.text("plan_so_far", plan, _cost, _choices, _value)


def sentences(plan: Plan) -> list[str]:
    """What binds, what is undecided, what checkpoints should be, and how much more load it takes."""
    missed = Counter(missed[0] for _, missed in plan.binding.cheaper if missed) if plan.binding else {}
    failing = [f"{name} ({count})" for name, count in missed.items()]
    impossible = [f"{_choices(json.loads(values))}: {why}" for values, why in plan.impossible.items()]
    return wording.sentences("plan_sentences", plan, failing, "".join(impossible[:1]), checks.part)


def tables(plan: Plan) -> list[Table]:
    """Those that have rows: the cheapest, cheaper ones and what they miss, cost against recovery against
    latency, the checkpoint interval beside formulas.
    """
    binding, interval = plan.binding, plan.checkpoint_interval
    every = [cheapest(plan)]
    if binding is not None:
        misses = {
            "choices": lambda each: _choices(each[0].values),
            "per month": lambda each: _cost(each[0]),
            "misses": lambda each: listed(each[1]),
            "runs": lambda each: str(each[0].n),
        }
        every.append(Table.of("Cheaper, but", binding.cheaper[:MOST_LISTED], misses))
    if len(plan.front) > 1:
        columns = {
            "choices": lambda one: _choices(one.values),
            "per month": lambda one: number(one.cost),
            "mean recovery, s": lambda one: with_ending(
                number(float(one.recoveries[HEADLINE].mean())), one.recoveries["ended"].tolist()
            ),
            "p99 latency, ms": lambda one: number(float(one.runs["latency_p99_ms"].mean())),
            "meets all": lambda one: "yes" if one.holds else "no",
        }
        every.append(Table.of("Pareto front of what was tried", plan.front[: 2 * MOST_LISTED], columns))
    if interval is not None:
        mine = ("this plan", number(interval.chosen), "what costs least and meets the objectives")
        note = f"A checkpoint keeps a task for {number(interval.cost)} s; {number(interval.mtbf)} s between "
        rows = (mine, *formula_rows(vars(interval)))
        every.append(Table("Checkpoint interval", ("", "s", "optimum of"), rows, (f"{note}failures.",)))
    return [table for table in every if table.rows]


def cheapest(plan: Plan) -> Table:
    """The cheapest candidates that meet all objectives; where there are none, those that miss least."""
    feasible = plan.feasible
    every = feasible or sorted(plan.found, key=lambda one: (one.violation, one.cost))
    title = "The cheapest that meet all objectives" if feasible else "What misses the objectives least"
    shown, rest = every[:MOST_LISTED], len(every) - MOST_LISTED
    rows = []
    for one in shown:
        parts = " + ".join(number(float(one.costs[part].mean())) for part in PARTS if one.costs[part].any())
        rows.append((_choices(one.values), _cost(one), parts, *map(_value, one.judgements), str(one.n)))
    used = [part for part in PARTS if any(one.costs[part].any() for one in shown)]
    objectives = [one.text for one in plan.spec.wanted.objectives]
    columns = ("choices", "per month", " + ".join(used) or "parts", *objectives, "runs")
    return Table(title, columns, tuple(rows), (f"and {rest:,} more",) if rest > 0 else ())


def formula_rows(optima: Mapping[str, float]) -> tuple[tuple[str, str, str], ...]:
    """What the formulas are, the optimum (s) of each that is there, and what it is an optimum of."""
    return tuple((name, number(optima[key]), of) for key, (name, of) in FORMULAS.items() if key in optima)


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


def pictures(plan: Plan) -> Iterator[Picture]:
    """The Pareto front, what checkpoint intervals cost, the race; each if there is something to be seen."""
    table, beside = drawn(plan), plan.checkpoint_interval
    if len(table) < 2:
        return
    which = "optimum" if plan.best is not None else "nearest"
    if np.isfinite(table["recovery"]).any():
        few = ["numbered"] if len(plan.front) <= MOST_NAMED else []
        yield picture("front", figures.pareto_front(table, ringed=which), also=few)
    if beside is not None and table["interval_s"].nunique() > 1:
        optima = {"Young": beside.young, "Daly": beside.daly, "closed form": beside.closed_form}
        yield picture("intervals", figures.checkpoint_intervals(table, optima, ringed=which))
    yield picture("race", figures.race(table, plan.spec.effort.most), which=which)


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
    best, spec = plan.nearest, plan.spec
    setup = (
        ("Objectives", "; ".join(one.text for one in spec.wanted.objectives)),
        ("Candidates", f"{spec.space.total:,}"),
        ("Replications", f"{spec.effort.least} to {spec.effort.most} each"),
    )
    return Page(
        title=spec.name,
        kind="the cheapest configuration that meets the objectives",
        verdict=verdict(plan),
        warnings=spec.remarks,
        setup=setup,
        sections=(
            Section("Figures", "figures", pictures=tuple(pictures(plan))),
            Section("Why, and how far it holds", "answer", sentences=tuple(sentences(plan))),
            Section("Candidates", "candidates", tables=tuple(tables(plan)), grid=candidates_grid(plan)),
        ),
        scenarios_title="The optimum as a scenario" if plan.best else "The nearest as a scenario",
        scenarios=() if best is None else ((spec.name, to_data(best.scenario)),),
        glossary={},
    )
