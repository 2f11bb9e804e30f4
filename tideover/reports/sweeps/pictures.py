"""The figures of a sweep's page, with captions that say what is drawn, and what is averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tideover.models.schema.fields import HEADLINE
from tideover.reports import figures as shared
from tideover.reports.figures.svg import to_svg
from tideover.reports.formatting import capitalised, listed
from tideover.reports.html import Picture
from tideover.reports.sweeps import figures
from tideover.reports.sweeps.figures import Layout
from tideover.reports.sweeps.points import COSTS, Floats, Points

if TYPE_CHECKING:
    import pandas as pd

_SHAPES = {
    "heat": "Each cell is the mean time to recover at two values; a cell without colour has no recovery that "
    "ended within its run.",
    "lines": "Each line is the mean time to recover, with its 95 % t-interval. A cross above the axes: "
    "there, recoveries did not end within their run, and are in no mean.",
    "rows": "Each faint dot is one recovery, each large mark the mean with its 95 % t-interval.",
}


def recovery_times(points: Points) -> tuple[Picture, ...]:
    """The time to recover over the swept keys; none if nothing recovered."""
    if not any(one.n for one in points.times[HEADLINE]):
        return ()
    at = figures.layout(points)
    shape = "heat" if at.y is not None else "lines" if at.x is not None else "rows"
    over = listed([key.short for key in (at.x, at.y, at.lines, at.panels) if key is not None])
    rows = figures.MOST_LINES if at.x is not None else figures.MOST_ROWS
    alt = f"Time to recover over {over}; the table of points has the same figures."
    svg = to_svg(figures.recovery(points, at), prefix="recovery", alt=alt)
    return (Picture(f"Time to recover over {over}", f"{_SHAPES[shape]} {_not_shown(at, rows)}".strip(), svg),)


def costs(points: Points, runs: pd.DataFrame) -> tuple[Picture, ...]:
    """What the points cost over the numeric key that matters most for it; by name if no key is numeric."""
    known = points.totals["cpu_s"].notna()
    if not known.any():
        return ()
    at = figures.layout(points, _costliness(points), plane=False)
    over = listed([key.short for key in (at.x, at.lines) if key is not None]) or "all points"
    figure = (
        figures.costs(points, at) if at.x is not None else shared.cost(_named(points, at, runs))[0].figure
    )
    caption = (
        "Mean per run. What a fast recovery saves in time it costs here: copies of the work (CPU, hosts), of "
        f"the stream (network, buffered tuples) or of the state (store). {_not_shown(at, figures.MOST_LINES)}"
    )
    alt = f"CPU time, network, store, buffered tuples and hosts over {over}; also in the table."
    return (Picture(f"Cost over {over}", caption.strip(), to_svg(figure, prefix="cost", alt=alt)),)


def _named(points: Points, at: Layout, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that are drawn, and the names of their key where the chart of strategies looks for them."""
    if at.lines is None:
        return runs
    of_run = at.lines.of_point[np.searchsorted(points.numbers, runs["point"].to_numpy())]
    if at.lines.name not in ("strategy", "strategy.kind"):
        runs = runs.assign(strategy=np.array(at.lines.labels)[of_run])
    return runs[of_run < figures.MOST_LINES]


def _costliness(points: Points) -> Floats:
    """One figure for what a point costs: the mean of its resources, each relative to its mean over points."""
    values = points.totals[list(COSTS)].to_numpy(dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = values / np.nanmean(values, axis=0)
    return np.asarray(np.where(np.isnan(values[:, 0]), np.nan, np.nansum(relative, axis=1) / len(COSTS)))


def _not_shown(at: Layout, lines: int) -> str:
    """What the figure does not show: keys it averages over, and values beyond the most lines or rows."""
    said = [f"averaged over {listed([key.short for key in at.averaged])}"] if at.averaged else []
    said += at.left_out(lines)
    text = "; ".join(said)
    return f"{capitalised(text)}." if text else ""
