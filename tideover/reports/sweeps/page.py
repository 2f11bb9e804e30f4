"""The page of a sweep, and what the terminal shows of it.

Called by `tideover sweep`; what is asked of the points of a sweep is in `tideover.reports.sweeps.points`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.text import Text

from tideover.models.results import counted
from tideover.models.schema import HEADLINE, named
from tideover.reports import figures
from tideover.reports import pages as shared
from tideover.reports.figures.style import kinds_of, picture
from tideover.reports.formatting import capitalised, listed, number, size, strategy_name
from tideover.reports.html import Grid, GridColumn, Page, Picture
from tideover.reports.html import grid as any_grid
from tideover.reports.pages import figures_section, results_section
from tideover.reports.parquet import aside
from tideover.reports.sweeps.points import (
    COSTS,
    MOST_LISTED,
    SUMS,
    Floats,
    Key,
    Layout,
    Points,
    cells,
    explained,
    key_tables,
    layout,
    means_by,
    rounded,
    short_names,
    spoken,
    summary,
)
from tideover.reports.tables import Record, Table, scenario_name, setup
from tideover.reports.terminal import render, warnings_view
from tideover.scenarios.sweeps.factors import as_text

if TYPE_CHECKING:
    import pandas as pd
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
    shown = [name for name in _INDICES if name in found.columns]
    names = [str(name) for name in found.columns[: list(found.columns).index("factor")]]
    ordered = found.sort_values([*names, shown[0]], ascending=[True] * len(names) + [False], kind="stable")
    rows = tuple(
        (*(str(row[name]) for name in (*names, "factor")), *(_figure(row, name) for name in shown))
        for row in ordered.to_dict("records")
    )
    notes = tuple(f"{label}: {meaning}" for label, meaning in map(_INDICES.__getitem__, shown))
    columns = (*names, "factor", *(_INDICES[name][0] for name in shown))
    return Table("What the time to recover depends on", columns, rows, notes, text_columns=len(names) + 1)


def sensitivity_figure(found: pd.DataFrame) -> tuple[Picture, ...]:
    """The tornado; none where the sample is combined with other factors: the table has these."""
    if found["factor"].duplicated().any():
        return ()
    title = "What the time to recover depends on"
    alt = f"{title}: sensitivity indices of the swept keys, with intervals."
    kind = "Sobol' indices" if "total" in found.columns else "Morris' elementary effects"
    caption = f"{kind} of the mean time to recover of each point, with 95 % intervals."
    return (picture(title, caption, figures.tornado(found), "tornado", alt),)


def _figure(row: Mapping[Any, Any], name: str) -> str:
    half = (row.get(f"{name}_high", float("nan")) - row.get(f"{name}_low", float("nan"))) / 2
    return number(row[name]) if half != half else f"{number(row[name])} ± {number(half)}"


# The figures of a sweep's page, with captions that say what is drawn, and what is averaged.

MOST_DIFFERENCES = 24
"""Most differences between strategies that are drawn."""
MOST_EFFECTS = 6
"""Most factors of which the main effects are drawn."""
MOST_NAMES = 12
"""Most values that are names, of such a factor."""
_SHAPES = {
    "heat": "Each cell is the mean time to recover at two values.",
    "lines": "Each line is the mean time to recover, with its 95 % t-interval.",
    "rows": "Each mark is the mean with its 95 % t-interval. Below it, of {what}: from the least to the "
    "greatest (thin), from the 5th to the 95th percentile (thick), the middle half (box) and the median.",
}
_TRIANGLE = "A hollow triangle"
_MARKS = {"heat": "Stripes (≥)", "lines": _TRIANGLE, "rows": _TRIANGLE}
"""Where something did not recover within its run."""


def recovery_times(points: Points) -> tuple[Picture, ...]:
    """The time to recover over the swept keys; none if nothing recovered."""
    if np.isnan(points.headline).all():
        return ()
    at = layout(points)
    shape = "heat" if at.y is not None else "lines" if at.x is not None else "rows"
    over = listed([key.short for key in at.used]) or "all points"
    alt = f"Time to recover over {over}; the table of points has the same figures."
    what = "the means of its points" if at.averaged or not at.used else "the replications"
    caption = f"{_SHAPES[shape].format(what=what)}{_censored(points, _MARKS[shape])}"
    caption += f" {_lossy(points)}{_not_shown(at)}"
    title = f"Time to recover over {over}"
    return (picture(title, caption.strip(), recovery(points, at), "recovery", alt),)


def _lossy(points: Points) -> str:
    """A sentence on points in which something was lost; empty if there is none."""
    lossy = int((points.metric("roots_lost").total > 0).sum())
    if not lossy:
        return ""
    return f"In {lossy} of {counted(len(points), 'point')} roots are lost for good: see the table of points. "


def _censored(points: Points, mark: str) -> str:
    """What a mark says, if anything has it."""
    late = int(points.late.sum())
    if not late:
        return ""
    return (
        f" {mark}: at least so much. {late:,} of {len(points):,} points have runs that end before recovery "
        "does; such a run counts with the time from the failure to its end, and there is no interval."
    )


def recovery(points: Points, at: Layout) -> list[Axes]:
    """The mean time to recover over the swept keys: lines, heat maps, or a row for each name."""
    axes = [key for key in (at.x, at.y) if key is not None]
    names = [key for key in (at.lines, at.columns, at.rows) if key is not None]
    table = cells(points, axes, names, chosen=at.chosen(points))
    lines, columns, rows = (None if key is None else key.name for key in (at.lines, at.columns, at.rows))
    about = _about(points)
    if at.x is None:
        return figures.ranges(table, lines, columns=columns, rows=rows)
    if at.y is None:
        return figures.small_multiples(table, at.x.name, lines=lines, columns=columns, rows=rows, about=about)
    return figures.heat_maps(table, at.x.name, at.y.name, columns=columns, rows=rows, about=about)


def pictured_differences(points: Points, found: pd.DataFrame) -> tuple[Picture, ...]:
    """What one strategy takes longer than another to recover; none without pairs of which that is known."""
    known = found[(found["metric"] == HEADLINE) & (found["n"] > 1)] if len(found) else found
    if not len(known):
        return ()
    shown = known.assign(size=known["mean"].abs()).nlargest(MOST_DIFFERENCES, "size").sort_index()
    shown = shown.sort_values(["first", "second"], kind="stable")
    by = [key.name for key in points.varying if key.name in shown.columns]
    alt = "Paired differences of the time to recover between strategies, with intervals."
    rest = len(known) - len(shown)
    caption = (
        "Each mark is the mean difference of replications with the same luck, with its 95 % t-interval; "
        "filled: the interval leaves out 0."
    )
    caption += f" The {len(shown)} greatest of {len(known):,}." if rest else ""
    every = found[found["metric"] == HEADLINE]
    if every["undefined"].any():
        caption += (
            " n of m: of m pairs, both recovered by the end of their runs in n, and the others are left out"
        )
        few = len(every) - len(known)
        caption += f"; {few:,} differences with fewer than two such pairs are not drawn." if few else "."
    title, caption = "What one strategy takes longer than another", f"{caption} {_lossy(points)}".strip()
    return (picture(title, caption, figures.paired_differences(shown, by), "differences", alt),)


def main_effects(points: Points) -> tuple[Picture, ...]:
    """What each swept key does by itself; none if fewer than two vary, or nothing recovered."""
    known = sorted(points.varying, key=lambda key: -points.influence(key))
    keys = [key for key in known if points.influence(key) and (key.numeric or len(key.labels) <= MOST_NAMES)]
    keys = keys[:MOST_EFFECTS]
    if len(known) < 2 or not keys:
        return ()
    drawn = figures.main_effects(effects(points, keys))
    shown = listed([key.short for key in keys])
    caption = (
        "The mean time to recover at each value, over all points that have it, with its 95 % interval; the "
        "key that matters most comes first. Dashed: the mean of all points. What two keys do together does "
        "not show here."
    )
    caption += f"{_censored(points, _TRIANGLE)} {_lossy(points)}".rstrip()
    left_out = [key.short for key in known if all(key is not one for one in keys)]
    caption += f" Not drawn: {listed(left_out)}." if left_out else ""
    alt = f"Mean time to recover by each value of {shown}; the table of effects has the same figures."
    return (picture(f"Main effects of {shown}", caption, drawn, "effects", alt),)


def effects(points: Points, keys: list[Key]) -> pd.DataFrame:
    """What ``figures.main_effects`` draws of these keys."""
    import pandas as pd

    found = []
    for key in keys:
        table = cells(points, [key] if key.numeric else [], [] if key.numeric else [key])
        numbers = table[key.name].astype(float) if key.numeric else np.nan
        one = {"factor": key.about, "value": table[key.name], "number": numbers}
        found.append(pd.DataFrame(one).assign(**{end: table[end] for end in ("mean", "low", "high", "late")}))
    return pd.concat(found, ignore_index=True).assign(grand_mean=float(np.nanmean(points.headline)))


def costs(points: Points) -> tuple[Picture, ...]:
    """What the points cost over the numeric key that matters most for it; by name if no key is numeric."""
    if np.isnan(points.metric("cpu_s").mean).all():
        return ()
    at = layout(points, _costliness(points), plane=False)
    over = listed([key.short for key in (at.x, at.lines) if key is not None]) or "all points"
    drawn = _costs_over(points, at, at.x) if at.x is not None else figures.cost(_by_name(points, at))
    caption = (
        "Mean per run. What a fast recovery saves in time it costs here: copies of the work (CPU, hosts), of "
        f"the stream (network, buffered tuples) or of the state (store). {_not_shown(at)}"
    )
    alt = f"CPU time, network, store, buffered tuples and hosts over {over}; also in the table."
    return (picture(f"Cost over {over}", caption.strip(), drawn, "cost", alt),)


def _costs_over(points: Points, at: Layout, x: Key) -> list[Axes]:
    names, lines = ([], None) if at.lines is None else ([at.lines], at.lines.name)
    chosen = at.chosen(points)
    tables = {name: cells(points, [x], names, chosen=chosen, metric=name) for name in figures.RESOURCES}
    table = tables["cpu_s"].assign(**{name: one["mean"] for name, one in tables.items()})
    return figures.costs_over(table, x.name, lines=lines, about=_about(points))


def _by_name(points: Points, at: Layout) -> pd.DataFrame:
    """Mean costs as the chart of strategies wants them: the names where it looks for strategies."""
    import pandas as pd

    key = points.keys[0] if at.lines is None else at.lines
    chosen = at.chosen(points)
    group, count = key.of_point[chosen], len(key.labels)
    means = {name: means_by(group, count, points.metric(name).mean[chosen]) for name in figures.RESOURCES}
    table = pd.DataFrame({"strategy": kinds_of(key.labels), "error": None, **means})
    return table[np.bincount(group, minlength=count) > 0]


def _about(points: Points) -> dict[str, str]:
    return {key.name: key.about for key in points.keys}


def _costliness(points: Points) -> Floats:
    """One figure for what a point costs: the mean of its resources, each relative to its mean over points."""
    values = np.column_stack([points.metric(name).mean for name in COSTS])
    known = ~np.isnan(values)
    sums, counts = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.nan_to_num(values / (sums / counts))
    return np.asarray(np.where(known[:, 0], relative.sum(axis=1) / len(COSTS), np.nan))


def _not_shown(at: Layout) -> str:
    """What the figure does not show: keys it averages over, and values beyond the most lines or rows."""
    said = [f"averaged over {listed([key.short for key in at.averaged])}"] if at.averaged else []
    text = "; ".join([*said, *at.left_out()])
    return f"{capitalised(text)}." if text else ""


# All points of a sweep in one table of its page.

_TIMES = {HEADLINE: named("recoveries", HEADLINE).label, "catch_up_s": "catch-up"}
_LATE = (
    "time to recover not ended: replications that had not recovered by the end of their run; they count with "
    "the time until then, so mean and p95 are at least that. Of catch-up, the mean is of the others."
)
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
    notes = [
        "±: half the width of the 95 % t-interval of the mean; p95: of replications; – undefined",
        "; ".join(["network: mean per run", *explained({key.name: key.short for key in points.keys})]),
        *([_LATE] if points.late.any() else []),
        *([f"0 at every point: {', '.join(nowhere)}"] if nowhere else []),
    ]
    return any_grid([*columns, GridColumn("runs", points.runs.tolist())], "points", notes)


# A mark that a sweep's page is what its dataset says: hashes of both.

STAMP = ".finished"


def stamp(directory: Path, inputs: str, page: Path) -> None:
    """Say in the directory that the page was made from these inputs."""
    with aside(directory / STAMP) as part:
        part.write_text(json.dumps({"inputs": inputs, page.name: _hash(page)}) + "\n", encoding="utf-8")


def unstamp(directory: Path) -> None:
    """The page is about to be written again."""
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
    short = short_names(list(recipe.parameters))
    listed = range(min(most, recipe.total))
    rows = tuple((str(n), *(as_text(value) for value in recipe.values(n).values())) for n in listed)
    columns = ("point", *short.values())
    notes = tuple(filter(None, ["; ".join(explained(short))]))
    table = Table("", columns, rows, notes, text_columns=len(columns))
    rest = found.points - len(rows)
    return [
        render(table),
        *((Text(f"and {rest:,} more"),) if rest else ()),
        *(Text(line) for line in sentences(found)),
    ]


def sentences(found: Forecast) -> list[str]:
    """How many runs, which of them are there, what the others take."""
    upto = f" to {found.most_runs:,}" if found.most_runs > found.runs else ""
    lines = [f"{found.points:,} points, {found.runs:,}{upto} runs; nothing was written"]
    there = [
        (found.there, "are there already"),
        (found.reused, "are taken from another sweep in the same place"),
        (found.failed, "of those that are there failed; --retry-failed does them again"),
    ]
    lines += [f"{count:,} {what}" for count, what in there if count]
    if not found.to_do:
        return [*lines, "Nothing is left to be simulated."]
    why = "; ".join(found.why)
    return [
        *lines,
        f"{found.to_do:,} would be simulated: {why}",
        f"about {duration(found.core_s)} of one core, {size(found.worker_bytes)} of memory for each process "
        f"that simulates, and {size(found.dataset_bytes)} on the disk, by a pilot of up to three runs",
    ]


def duration(seconds: float) -> str:
    """A time as it is spoken.

    >>> duration(3.21), duration(75.0), duration(7200.0)
    ('3.2 seconds', '75 seconds', '2.0 hours')
    """
    if seconds < 100:
        return f"{seconds:.2g} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


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
        Text(summary(points), style="bold"),
        Text(""),
        *(render(table) for table in key_tables(points)),
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

    ``name``: of the sweep, if it has one. ``record``: of its first point
    (``scenario_summary.point_record`` has what is needed of it); ``around``:
    timeline and recoveries of a sweep of one point; ``differences``: between strategies, by replication
    (`tideover.scenarios.sweeps.dataset`); ``sensitivities``: of its factors
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
        *(shared.around_failure(*around) if around is not None and len(points) == 1 else ()),
    )
    shown_tables = [*key_tables(points), *(() if sensitivities is None else (table(sensitivities),))]
    every_point = grid(points) if len(points) > MOST_LISTED else None
    rest = len(warnings) - MOST_PAGE_WARNINGS
    label = f"point {points.numbers[0]}: {strategy_name(record['strategy'])}"
    if len(points) > 1:
        label += "; the others differ from it in the swept keys, the dataset has each"
    return Page(
        title=name or scenario_name(record),
        kind="a sweep over a grid of parameters",
        verdict=summary(points),
        setup=(*said, ("Swept", "; ".join(spoken(key) for key in swept) or "nothing")),
        sections=(
            figures_section(*shown),
            results_section(*shown_tables, grid=every_point),
        ),
        warnings=(*warnings[:MOST_PAGE_WARNINGS], *((f"and {rest:,} more remarks",) if rest > 0 else ())),
        scenarios=((label, json.dumps(record["scenario"], indent=2, ensure_ascii=False)),),
        tables_said=_TABLES_SAID,
    )
