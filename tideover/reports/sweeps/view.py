"""What the terminal shows of a sweep: at most a screen or two, however many points it has."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from tideover.reports.sweeps.points import Points
from tideover.reports.sweeps.tables import MOST_LISTED, key_tables, summary
from tideover.reports.terminal import render, warnings_view

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
