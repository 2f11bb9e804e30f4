"""The figures of a sweep's page, with captions that say what is drawn, and what is averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from tideover.models.results.headline import counted
from tideover.models.schema.fields import HEADLINE
from tideover.reports import figures
from tideover.reports.figures.facets import kinds_of
from tideover.reports.figures.svg import to_svg
from tideover.reports.formatting import capitalised, listed
from tideover.reports.html import Picture
from tideover.reports.sweeps.cells import cells
from tideover.reports.sweeps.layout import Layout, layout
from tideover.reports.sweeps.points import COSTS, Floats, Key, Points, means_by

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    svg = to_svg(_figure(recovery(points, at)), prefix="recovery", alt=alt)
    what = "the means of its points" if at.averaged or not at.used else "the replications"
    caption = f"{_SHAPES[shape].format(what=what)}{_censored(points, _MARKS[shape])}"
    caption += f" {_lossy(points)}{_not_shown(at)}"
    return (Picture(f"Time to recover over {over}", caption.strip(), svg),)


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


def differences(points: Points, found: pd.DataFrame) -> tuple[Picture, ...]:
    """What one strategy takes longer than another to recover; none without pairs of which that is known."""
    known = found[(found["metric"] == HEADLINE) & (found["n"] > 1)] if len(found) else found
    if not len(known):
        return ()
    shown = known.assign(size=known["mean"].abs()).nlargest(MOST_DIFFERENCES, "size").sort_index()
    shown = shown.sort_values(["first", "second"], kind="stable")
    by = [key.name for key in points.varying if key.name in shown.columns]
    svg = to_svg(
        _figure([figures.paired_differences(shown, by)]),
        prefix="differences",
        alt="Paired differences of the time to recover between strategies, with intervals.",
    )
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
    caption = f"{caption} {_lossy(points)}".strip()
    return (Picture("What one strategy takes longer than another", caption, svg),)


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
    return (Picture(f"Main effects of {shown}", caption, to_svg(_figure(drawn), prefix="effects", alt=alt)),)


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
    return (Picture(f"Cost over {over}", caption.strip(), to_svg(_figure(drawn), prefix="cost", alt=alt)),)


def _costs_over(points: Points, at: Layout, x: Key) -> list[Axes]:
    names = [key for key in (at.lines,) if key is not None]
    chosen = at.chosen(points)
    tables = {name: cells(points, [x], names, chosen=chosen, metric=name) for name in figures.RESOURCES}
    table = tables["cpu_s"].assign(**{name: one["mean"] for name, one in tables.items()})
    return figures.costs_over(table, x.name, lines=names[0].name if names else None, about=_about(points))


def _by_name(points: Points, at: Layout) -> pd.DataFrame:
    """Mean costs as the chart of strategies wants them: the names where it looks for strategies."""
    import pandas as pd

    key = points.keys[0] if at.lines is None else at.lines
    chosen = at.chosen(points)
    group, values = (
        key.of_point[chosen],
        {name: points.metric(name).mean[chosen] for name in figures.RESOURCES},
    )
    means = {name: means_by(group, len(key.labels), found) for name, found in values.items()}
    table = pd.DataFrame({"strategy": kinds_of(key.labels), "error": None, **means})
    return table[np.bincount(group, minlength=len(key.labels)) > 0]


def _about(points: Points) -> dict[str, str]:
    return {key.name: key.about for key in points.keys}


def _figure(drawn: list[Axes]) -> Figure:
    return cast("Figure", drawn[0].figure)


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
