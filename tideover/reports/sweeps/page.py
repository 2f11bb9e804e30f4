"""The page of a sweep, and what the terminal shows of it.

Called by `tideover sweep`; what is asked of the points of a sweep is in `reports.sweeps.points`, what
is said of a figure in ``captions.toml``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Group
from rich.text import Text

from tideover.models.results import counted
from tideover.models.schema import HEADLINE, named
from tideover.reports import figures, pages, wording
from tideover.reports.figures.style import kinds_of, picture
from tideover.reports.formatting import capitalised, number, strategy_name
from tideover.reports.html import Grid, GridColumn, Page, Picture, Section
from tideover.reports.html import grid as any_grid
from tideover.reports.parquet import aside
from tideover.reports.sweeps import points as asked
from tideover.reports.sweeps.points import MOST_LISTED, SUMS, Key, Layout, Points, cells, layout, rounded
from tideover.reports.tables import Record, Table, scenario_name, setup
from tideover.reports.terminal import render, warnings_view
from tideover.scenarios.errors import listed
from tideover.scenarios.sweeps.factors import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import RenderableType

    from tideover.scenarios.sweeps.sweep import Forecast
    from tideover.scenarios.sweeps.sweep_file import Recipe


# Which factors of a sampled sweep the time to recover depends on: a table, and a tornado.

_INDICES = {
    "total": ("total", "part of the variance of the time to recover, alone and with others"),
    "first_order": ("first order", "part of the variance, alone"),
    "mu_star": ("μ*", "mean effect on the time to recover, s"),
    "sigma": ("σ", "spread of the effects, s"),
}
"""What tables call each index, and what it means."""


def table(found: pd.DataFrame) -> Table:
    """A row a factor, what matters most first; one for each combination of others."""
    shown = {name: _INDICES[name] for name in _INDICES if name in found.columns}
    names = [str(name) for name in found.columns[: list(found.columns).index("factor")]]
    order = [True] * len(names) + [False]
    ordered = found.sort_values([*names, next(iter(shown))], ascending=order, kind="stable")

    def figure(row: Mapping[Any, Any], name: str) -> str:
        half = (row.get(f"{name}_high", float("nan")) - row.get(f"{name}_low", float("nan"))) / 2
        return number(row[name]) if half != half else f"{number(row[name])} ± {number(half)}"

    rows = tuple(
        (*(str(row[name]) for name in (*names, "factor")), *(figure(row, name) for name in shown))
        for row in ordered.to_dict("records")
    )
    notes = tuple(f"{label}: {meaning}" for label, meaning in shown.values())
    columns = (*names, "factor", *(label for label, _ in shown.values()))
    return Table("What the time to recover depends on", columns, rows, notes, text_columns=len(names) + 1)


def sensitivity_figure(found: pd.DataFrame) -> tuple[Picture, ...]:
    """The tornado; none where the sample is combined with other factors: the table has these."""
    if found["factor"].duplicated().any():
        return ()
    kind = "Sobol' indices" if "total" in found.columns else "Morris' elementary effects"
    return (picture("tornado", figures.tornado(found), kind=kind),)


# The figures of a sweep's page: what is drawn, and what is averaged.

MOST_DIFFERENCES = 24
"""Most differences between strategies that are drawn."""
MOST_EFFECTS = 6
"""Most factors of which the main effects are drawn."""
MOST_NAMES = 12
"""Most values that are names, of such a factor."""


def _of_points(points: Points, mark: str = "A hollow triangle", at: Layout | None = None) -> dict[str, Any]:
    """What several captions say: the sentences that are true (``also``), and the words in them.

    ``mark``: of what did not recover; ``at``: a figure that does not show all, by averaging over keys or by
    leaving out values.
    """
    late, lossy = int(points.late.sum()), int((points.metric("roots_lost").total > 0).sum())
    shown = {"late": late, "lossy": lossy, "mark": mark, "total": len(points)}
    out = [] if at is None else at.left_out()
    if at is not None and at.averaged:
        out.insert(0, f"averaged over {listed([key.short for key in at.averaged])}")
    true = {"late": late, "lossy": lossy, "left_out": out}
    also = [name for name, any_ in true.items() if any_]
    words = {"points": counted(len(points), "point"), "left_out": capitalised("; ".join(out))}
    return {"also": also, **shown, **words}


def recovery_times(points: Points) -> tuple[Picture, ...]:
    """The time to recover over the swept keys; none if nothing recovered."""
    if np.isnan(points.headline).all():
        return ()
    at = layout(points)
    shape = "heat" if at.y is not None else "lines" if at.x is not None else "rows"
    over = listed([key.short for key in at.used]) or "all points"
    what = "the means of its points" if at.averaged or not at.used else "the replications"
    words = _of_points(points, "Stripes (≥)" if shape == "heat" else "A hollow triangle", at)
    words["also"].insert(0, shape)
    return (picture("sweep", recovery(points, at), over=over, what=what, **words),)


def recovery(points: Points, at: Layout) -> list[Axes]:
    """The mean time to recover over the swept keys: lines, heat maps, or a row for each name."""
    axes = [key for key in (at.x, at.y) if key is not None]
    names = [key for key in (at.lines, at.columns, at.rows) if key is not None]
    table = cells(points, axes, names, chosen=at.chosen(points))
    lines, columns, rows = (None if key is None else key.name for key in (at.lines, at.columns, at.rows))
    about = {key.name: key.about for key in points.keys}
    if at.x is None:
        return figures.ranges(table, lines, columns=columns, rows=rows)
    if at.y is None:
        return figures.small_multiples(table, at.x.name, lines=lines, columns=columns, rows=rows, about=about)
    return figures.heat_maps(table, at.x.name, at.y.name, columns=columns, rows=rows, about=about)


def pictured_differences(points: Points, found: pd.DataFrame) -> tuple[Picture, ...]:
    """What one strategy takes longer than another to recover; none without pairs of which that is known."""
    every = found[found["metric"] == HEADLINE] if len(found) else found
    known = every[every["n"] > 1] if len(found) else found
    if not len(known):
        return ()
    shown = known.assign(size=known["mean"].abs()).nlargest(MOST_DIFFERENCES, "size").sort_index()
    shown = shown.sort_values(["first", "second"], kind="stable")
    by = [key.name for key in points.varying if key.name in shown.columns]
    also = ["greatest"] if len(known) > len(shown) else []
    few = len(every) - len(known)
    if every["undefined"].any():
        also.append("fewer_pairs" if few else "pairs")
    words = _of_points(points)
    also += [name for name in words.pop("also") if name == "lossy"]
    drawn = figures.paired_differences(shown, by)
    return (picture("differences", drawn, also=also, shown=len(shown), known=len(known), few=few, **words),)


def main_effects(points: Points) -> tuple[Picture, ...]:
    """What each swept key does by itself; none if fewer than two vary, or nothing recovered."""
    known = sorted(points.varying, key=lambda key: -points.influence(key))
    keys = [key for key in known if points.influence(key) and (key.numeric or len(key.labels) <= MOST_NAMES)]
    keys = keys[:MOST_EFFECTS]
    if len(known) < 2 or not keys:
        return ()
    others = [key.short for key in known if all(key is not one for one in keys)]
    words = _of_points(points)
    words["also"] += ["others"] if others else []
    shown = listed([key.short for key in keys])
    drawn = figures.main_effects(effects(points, keys))
    return (picture("effects", drawn, of=shown, others=listed(others), **words),)


def effects(points: Points, keys: list[Key]) -> pd.DataFrame:
    """What ``figures.main_effects`` draws of these keys."""
    found = []
    for key in keys:
        table = cells(points, [key] if key.numeric else [], [] if key.numeric else [key])
        numbers = table[key.name].astype(float) if key.numeric else np.nan
        one = {"factor": key.about, "value": table[key.name], "number": numbers}
        found.append(pd.DataFrame(one).assign(**{end: table[end] for end in ("mean", "low", "high", "late")}))
    return pd.concat(found, ignore_index=True).assign(grand_mean=float(np.nanmean(points.headline)))


def costs(points: Points) -> tuple[Picture, ...]:
    """What the points cost over the numeric key that matters most for it; by name if no key is numeric.

    How much a key matters is told by one figure for what a point costs: the mean of its resources, each
    relative to its mean over all points.
    """
    values = np.column_stack([points.metric(name).mean for name in asked.COSTS])
    known = ~np.isnan(values)
    if not known[:, asked.COSTS.index("cpu_s")].any():
        return ()
    sums, counts = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.nan_to_num(values / (sums / counts))
    costliness = np.where(known[:, 0], relative.sum(axis=1) / len(asked.COSTS), np.nan)
    at = layout(points, costliness, plane=False)
    chosen = at.chosen(points)
    if at.x is not None:
        names, lines = ([], None) if at.lines is None else ([at.lines], at.lines.name)
        table = cells(points, [at.x], names, chosen=chosen)
        for name in figures.RESOURCES:
            table[name] = cells(points, [at.x], names, chosen=chosen, metric=name)["mean"]
        about = {key.name: key.about for key in points.keys}
        drawn = figures.costs_over(table, at.x.name, lines=lines, about=about)
    else:  # as the chart of strategies wants them: the names where it looks for strategies
        key = points.keys[0] if at.lines is None else at.lines
        group, count = key.of_point[chosen], len(key.labels)
        resources = {name: points.metric(name).mean[chosen] for name in figures.RESOURCES}
        means = {name: asked.means_by(group, count, mean) for name, mean in resources.items()}
        table = pd.DataFrame({"strategy": kinds_of(key.labels), "error": None, **means})
        drawn = figures.cost(table[np.bincount(group, minlength=count) > 0])
    over = listed([key.short for key in (at.x, at.lines) if key is not None]) or "all points"
    words = _of_points(points, at=at)
    also = [name for name in words.pop("also") if name == "left_out"]
    return (picture("cost", drawn, also=also, over=over, **words),)


# All points of a sweep in one table of its page.

_TIMES = {HEADLINE: named("recoveries", HEADLINE).label, "catch_up_s": "catch-up"}
_SHOWN_IF_KNOWN = {"latency_p99_ms": "p99 latency, ms", "availability": "availability"}
"""Further metrics whose means are shown if any point has them, and what the table calls them."""


def grid(points: Points) -> Grid:
    """The table of all points; swept values are written once each, numbers with four digits. Counts that are
    0 at every point are left out, and named below.
    """
    columns = [GridColumn("point", points.numbers.tolist())]
    for key in points.keys:
        numbers = key.numbers.tolist() if key.numeric else ()
        columns.append(GridColumn(key.short, key.of_point.tolist(), key.labels, numbers))
    for name, label in _TIMES.items():
        found = points.times if name == HEADLINE else points.metric(name)
        columns.append(GridColumn(f"{label}, s", rounded(found.mean)))
        columns.append(GridColumn("±", rounded(found.half_width)))
        if name == HEADLINE:
            columns.append(GridColumn("p95, s", rounded(found.p95)))
    for name, label in _SHOWN_IF_KNOWN.items():
        mean = points.metric(name).mean
        if not np.isnan(mean).all():
            columns.append(GridColumn(label, rounded(mean)))
    columns.append(GridColumn("network", rounded(points.metric("network_bytes").mean), is_size=True))
    counts = [
        GridColumn(f"{label} not ended", points.metric(name).undefined.tolist())
        for name, label in _TIMES.items()
    ]
    for name, label in SUMS.items():
        total = points.metric(name).total
        counts.append(GridColumn(label, [None if np.isnan(value) else round(value) for value in total]))
    counts.append(GridColumn("failed runs", points.failed.tolist()))
    nowhere = [one.name for one in counts if not any(one.cells)]
    columns += [one for one in counts if one.name not in nowhere]
    short = asked.explained({key.name: key.short for key in points.keys})
    notes = wording.sentences("all_points", short, points.late.any(), nowhere)
    return any_grid([*columns, GridColumn("runs", points.runs.tolist())], "points", notes)


# A mark that a sweep's page is what its dataset says: hashes of both.

STAMP = ".finished"


def stamp(directory: Path, inputs: str, page: Path) -> None:
    """Say in the directory that the page was made from these inputs."""
    with aside(directory / STAMP) as part:
        part.write_text(json.dumps({"inputs": inputs, page.name: _hash(page)}) + "\n", encoding="utf-8")


def unstamp(directory: Path) -> None:
    (directory / STAMP).unlink(missing_ok=True)


def finished(directory: Path, inputs: str, page: Path) -> bool:
    """Whether the page was made from these inputs, and is as it was written."""
    try:
        known = json.loads((directory / STAMP).read_text("utf-8"))
        return bool(known == {"inputs": inputs, page.name: _hash(page)})
    except (OSError, ValueError):
        return False


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def forecast_view(found: Forecast, recipe: Recipe, most: int) -> list[RenderableType]:
    """What ``sweep --dry-run`` shows: the points, at most so many, what would be done and why, and how long
    it would take.
    """
    short = asked.short_names(list(recipe.parameters))
    listed = range(min(most, recipe.total))
    rows = tuple((str(n), *(as_text(value) for value in recipe.values(n).values())) for n in listed)
    columns = ("point", *short.values())
    notes = tuple(filter(None, ["; ".join(asked.explained(short))]))
    table = Table("", columns, rows, notes, text_columns=len(columns))
    rest = found.points - len(rows)
    more = [f"and {rest:,} more"] if rest else []
    told = wording.sentences("sweep_forecast", found)
    return [render(table), *(Text(line) for line in (*more, *told))]


# What the terminal shows of a sweep: at most a screen or two, however many points it has.

MOST_WARNINGS = 8


def sweep_view(points: Points, warnings: Sequence[str] = (), *, name: str = "", kept: bool = False) -> Group:
    """The points of a sweep, or a summary of many, under its name. ``kept``: their table is being written to
    a directory.
    """
    many = len(points) > MOST_LISTED
    where = (
        "Every point: the table in report.html; every run: the dataset beside it."
        if kept
        else "Every point: --out DIR writes a page and a dataset, --json prints them."
    )
    rest = len(warnings) - MOST_WARNINGS
    more = (f"and {rest:,} more remarks, on the page",) if rest > 0 else ()
    return Group(
        *((Text(name, style="bold"),) if name else ()),
        Text(asked.summary(points), style="bold"),
        Text(""),
        *(render(table) for table in asked.key_tables(points)),
        *((Text(where),) if many else ()),
        warnings_view(warnings[:MOST_WARNINGS]),
        *(Text(text, style="yellow") for text in more),
    )


# The page of ``sweep``: the best and the worst points, the effect of each key, figures, and every point.

MOST_PAGE_WARNINGS = 50
_TABLES_SAID = (
    "tideover.load gives the dataset beside this page back as these tables, each row with its point. In the "
    "dataset's own files a run is one row, and its recoveries, tasks and seconds are lists in it."
)
_SWEPT = {
    "Strategy": "strategy",
    "Failures": "failures",
    "Simulated time": "run.duration",
    "Replications": "run.replications",
    "Seed": "run.seed",
}
"""What the page says of a scenario, and the key that decides it."""


def sweep_page(
    points: Points,
    record: Record,
    *,
    name: str = "",
    around: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    differences: pd.DataFrame | None = None,
    sensitivities: pd.DataFrame | None = None,
    warnings: Sequence[str] = (),
) -> Page:
    """A grid of parameters, as large as it may be.

    ``name``: of the sweep, if it has one. ``record``: of its first point (``tables.point_record`` has what is
    needed of it); ``around``: timeline and recoveries of a sweep of one point; ``differences``: between
    strategies, by replication (`tideover.scenarios.sweeps.dataset`); ``sensitivities``: of its factors
    (`tideover.scenarios.statistics.sensitivity`).
    """
    swept = points.varying
    said = [
        (label, text)
        for label, text in setup([record])
        if not any(f"{key.name}.".startswith(f"{_SWEPT.get(label)}.") for key in swept)
    ]
    shown = (
        *recovery_times(points),
        *(() if differences is None else pictured_differences(points, differences)),
        *main_effects(points),
        *(() if sensitivities is None else sensitivity_figure(sensitivities)),
        *costs(points),
        *(pages.around_failure(*around) if around is not None and len(points) == 1 else ()),
    )
    shown_tables = [*asked.key_tables(points), *(() if sensitivities is None else (table(sensitivities),))]
    every_point = grid(points) if len(points) > MOST_LISTED else None
    rest = len(warnings) - MOST_PAGE_WARNINGS
    label = f"point {points.numbers[0]}: {strategy_name(record['strategy'])}"
    if len(points) > 1:
        label += "; the others differ from it in the swept keys, the dataset has each"
    return Page(
        title=name or scenario_name(record),
        kind="a sweep over a grid of parameters",
        verdict=asked.summary(points),
        setup=(*said, ("Swept", "; ".join(asked.spoken(key) for key in swept) or "nothing")),
        sections=(
            Section("Figures", "figures", pictures=shown),
            Section("Results", "results", tables=tuple(shown_tables), grid=every_point),
        ),
        warnings=(*warnings[:MOST_PAGE_WARNINGS], *((f"and {rest:,} more remarks",) if rest > 0 else ())),
        scenarios=((label, record["scenario"]),),
        tables_said=_TABLES_SAID,
    )
