"""The figures of a plan's page, and the table of all its candidates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tideover.models.schema.endings import LOSSY, counted
from tideover.models.schema.fields import HEADLINE
from tideover.reports import figures
from tideover.reports.figures.pareto import MOST_NAMED
from tideover.reports.figures.svg import to_svg
from tideover.reports.formatting import strategy_name
from tideover.reports.grid import GridColumn, grid
from tideover.reports.html import Grid, Picture
from tideover.reports.sweeps.points import explained, rounded, short_names
from tideover.scenarios.planning.result import Plan
from tideover.scenarios.swept import text
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tideover.scenarios.planning.candidate import Candidate

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
            numbered = (
                " Numbers are those of the table of the front." if len(plan.front) <= MOST_NAMED else ""
            )
            axes = figures.pareto_front(table, ringed=which)
            alt = "Candidates by cost, time to recover and latency; the table has the same figures."
            found.append(_picture("Cost, recovery and latency", _FRONT + numbered, axes, "front", alt))
        beside = plan.checkpoint_interval
        if beside is not None and table["interval_s"].nunique() > 1:
            optima = {"Young": beside.young, "Daly": beside.daly, "closed form": beside.closed_form}
            axes = figures.checkpoint_intervals(table, optima, ringed=which)
            alt = "Cost of candidates by checkpoint interval, and the optima of three formulas."
            found.append(_picture("Cost by checkpoint interval", _INTERVALS, axes, "intervals", alt))
        axes = figures.race(table, plan.spec.effort.most)
        alt = "Replications that each candidate was given; the table has the same figures."
        found.append(_picture("Replications spent", _RACE.format(which=which), axes, "race", alt))
    return tuple(found)


def drawn(plan: Plan) -> pd.DataFrame:
    """What the figures draw: a row for each candidate whose runs did not fail, the cheapest first."""
    import pandas as pd

    front = {id(one) for one in plan.front}
    rows = [
        {
            "cost_per_month": one.cost,
            "recovery": _mean(one.recoveries, HEADLINE),
            "latency": _mean(one.runs, "latency_p99_ms"),
            "interval_s": _interval(one),
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
    columns = [GridColumn("candidate", list(range(1, len(every) + 1)))]
    columns += [_choice(key, short[key], unit, table, every) for key, unit in plan.units.items()]
    half = (table["cost_high"] - table["cost_low"]) / 2
    columns += [GridColumn("per month", _cells(table["cost_per_month"])), GridColumn("±", _cells(half))]
    columns.append(GridColumn("recovery, s", _cells([_mean(one.recoveries, HEADLINE) for one in every])))
    columns.append(_names("ended", [counted(one.recoveries["ended"]) for one in every]))
    columns.append(
        GridColumn("p99 latency, ms", _cells([_mean(one.runs, "latency_p99_ms") for one in every]))
    )
    for objective in (one.text for one in plan.spec.wanted.objectives):
        columns.append(GridColumn(objective, _cells(table[f"{objective} value"])))
        verdicts = [str(verdict) for verdict in table[f"{objective} verdict"]]
        columns.append(_names("verdict", verdicts))
    columns.append(_names("meets all", [_yes(holds) for holds in table["feasible"]]))
    columns.append(_names("on the front", [_yes(on) for on in table["on_front"]]))
    columns.append(GridColumn("runs", table["replications"].tolist()))
    return grid(
        columns, "candidates", ("; ".join(explained(short)), "±: half the width of the interval; – undefined")
    )


def _choice(key: str, short: str, unit: str, table: pd.DataFrame, every: list[Candidate]) -> GridColumn:
    """The values of a choice, as they are written; a dash where it has no effect."""
    shown = [text(one.values[key]) if key in one.values else None for one in every]
    if key == "strategy.kind":
        shown = [None if kind is None else strategy_name(kind) for kind in shown]
    places = {label: n for n, label in enumerate(dict.fromkeys(one for one in shown if one is not None))}
    numbers: dict[str, float] = {}
    for label, number in zip(shown, table[key], strict=True):
        if label is not None and isinstance(number, int | float | np.number) and not isinstance(number, bool):
            numbers[label] = float(number)
    cells = [None if label is None else places[label] for label in shown]
    ordered = [numbers[label] for label in places] if len(numbers) == len(places) else ()
    return GridColumn(short, cells, tuple(places), ordered)


def _names(name: str, texts: list[str]) -> GridColumn:
    places = {label: n for n, label in enumerate(dict.fromkeys(texts))}
    return GridColumn(name, [places[label] for label in texts], tuple(places))


def _yes(truth: Any) -> str:
    return "yes" if truth else "no"


def _cells(values: Any) -> list[float | None]:
    """Numbers to four digits; None for what is missing or has no end."""
    return [rounded(float(v)) if v is not None and math.isfinite(v) else None for v in values]


def _mean(table: pd.DataFrame, column: str) -> float:
    """NaN if something is missing in it: a candidate that does not always recover has no mean."""
    return float(table[column].mean(skipna=False)) if len(table) else math.nan


def _interval(one: Candidate) -> float:
    """From one checkpoint's start to the next one's (s); NaN: there are none."""
    cycle = one.scenario.strategy.cycle()
    return math.nan if cycle is None else cycle[1] / S


def _picture(title: str, caption: str, axes: Axes, prefix: str, alt: str) -> Picture:
    return Picture(title, caption, to_svg(cast("Figure", axes.figure), prefix=prefix, alt=alt))
