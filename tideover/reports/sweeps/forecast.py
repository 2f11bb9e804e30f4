"""What ``sweep --dry-run`` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tideover.reports.formatting import size
from tideover.reports.sweeps.points import explained, short_names
from tideover.reports.tables import Table
from tideover.reports.terminal import render
from tideover.scenarios.swept import text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tideover.scenarios.sweeps.forecast import Forecast
    from tideover.scenarios.sweeps.recipe import Recipe


def forecast_view(found: Forecast, recipe: Recipe, most: int) -> list[RenderableType]:
    """The points, at most so many, what would be done and why, and how long it would take."""
    short = short_names(list(recipe.parameters))
    listed = range(min(most, recipe.total))
    rows = tuple((str(n), *(text(value) for value in recipe.values(n).values())) for n in listed)
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
