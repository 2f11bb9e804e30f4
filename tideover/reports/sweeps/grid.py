"""All points of a sweep in one table of its page."""

from __future__ import annotations

import numpy as np

from tideover.models.schema.fields import HEADLINE, named
from tideover.reports.grid import GridColumn
from tideover.reports.grid import grid as any_grid
from tideover.reports.html import Grid
from tideover.reports.sweeps.points import SUMS, Floats, Points, explained, rounded

_LABELS = {HEADLINE: named("recoveries", HEADLINE).label, "catch_up_s": "catch-up"}
_LATE = (
    "time to recover not ended: replications that had not recovered by the end of their run; they count with "
    "the time until then, so mean and p95 are at least that. Of catch-up, the mean is of the others."
)
_MEANS = {"latency_p99_ms": "p99 latency, ms", "availability": "availability"}
"""Further metrics whose means are shown if any point has them, and what the table calls them."""


def grid(points: Points) -> Grid:
    """The table of all points; swept values are written once each, numbers with four digits. Counts that are
    0 at every point are left out, and named below.
    """
    counts = _counts(points)
    nowhere = [one.name for one in counts if not any(one.cells)]
    notes = [
        "±: half the width of the 95 % t-interval of the mean; p95: of replications; – undefined",
        "; ".join(["network: mean per run", *explained({key.name: key.short for key in points.keys})]),
        *([_LATE] if points.late.any() else []),
        *([f"0 at every point: {', '.join(nowhere)}"] if nowhere else []),
    ]
    shown = [one for one in counts if one.name not in nowhere]
    return any_grid([*_columns(points), *shown, GridColumn("runs", points.runs.tolist())], "points", notes)


def _columns(points: Points) -> list[GridColumn]:
    columns = [GridColumn("point", points.numbers.tolist())]
    for key in points.keys:
        numbers = key.numbers.tolist() if key.numeric else ()
        columns.append(GridColumn(key.short, key.of_point.tolist(), key.labels, numbers))
    for name in (HEADLINE, "catch_up_s"):
        found = points.times if name == HEADLINE else points.metric(name)
        columns.append(GridColumn(f"{_LABELS[name]}, s", _cells(found.mean)))
        columns.append(GridColumn("±", _cells(found.half_width)))
        if name == HEADLINE:
            columns.append(GridColumn("p95, s", _cells(found.p95)))
    for name, label in _MEANS.items():
        mean = points.metric(name).mean
        if not np.isnan(mean).all():
            columns.append(GridColumn(label, _cells(mean)))
    network = _cells(points.metric("network_bytes").mean)
    return [*columns, GridColumn("network", network, is_size=True)]


def _counts(points: Points) -> list[GridColumn]:
    late = [(f"{label} not ended", points.metric(name).undefined.tolist()) for name, label in _LABELS.items()]
    sums = [
        (label, [None if np.isnan(v) else round(v) for v in points.metric(name).total])
        for name, label in SUMS.items()
    ]
    every = [*late, *sums, ("failed runs", points.failed.tolist())]
    return [GridColumn(label, cells) for label, cells in every]


def _cells(values: Floats) -> list[float | None]:
    return [rounded(value) for value in values]
