"""The page of ``sweep``: the best and the worst points, the effect of each key, figures, and every point."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tideover.reports import pictures as shared
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Page
from tideover.reports.pages import figures_section, results_section
from tideover.reports.scenario_summary import scenario_name, setup
from tideover.reports.sweeps import pictures
from tideover.reports.sweeps import sensitivities as factors
from tideover.reports.sweeps.grid import grid
from tideover.reports.sweeps.points import Points, spoken
from tideover.reports.sweeps.tables import MOST_LISTED, key_tables, summary
from tideover.reports.tables import Record

if TYPE_CHECKING:
    import pandas as pd

MOST_WARNINGS = 50
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
    (`tideover.scenarios.sweeps.differences`); ``sensitivities``: of its factors
    (`tideover.scenarios.statistics.sensitivity`).
    """
    swept = points.varying
    said = [
        (label, text)
        for label, text in setup([record])
        if not any(f"{key.name}.".startswith(f"{_SWEPT.get(label)}.") for key in swept)
    ]
    compared = () if differences is None else pictures.differences(points, differences)
    shown = (*pictures.recovery_times(points), *compared, *pictures.main_effects(points))
    said_of_factors = () if sensitivities is None else factors.picture(sensitivities)
    shown = (*shown, *said_of_factors, *pictures.costs(points))
    if around is not None and len(points) == 1:
        shown = (*shown, *shared.around_failure(*around))
    of_factors = () if sensitivities is None else (factors.table(sensitivities),)
    rest = len(warnings) - MOST_WARNINGS
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
            results_section(
                *key_tables(points), *of_factors, grid=grid(points) if len(points) > MOST_LISTED else None
            ),
        ),
        warnings=(*warnings[:MOST_WARNINGS], *((f"and {rest:,} more remarks",) if rest > 0 else ())),
        scenarios=((label, json.dumps(record["scenario"], indent=2, ensure_ascii=False)),),
        tables_said=_TABLES_SAID,
    )
