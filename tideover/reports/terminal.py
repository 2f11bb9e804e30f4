"""What the terminal shows, in 100 columns: each function returns something that a rich console prints."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tideover.reports import tables
from tideover.reports.asked import collected_warnings, headline
from tideover.reports.tables import Record, Table

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.verdict import Verdict

MOST_SIDE_BY_SIDE = 5
"""More strategies than this do not fit beside each other; they come one group after the other."""


def run_view(result: Record) -> Group:
    """One scenario under one strategy."""
    return Group(
        _title(headline(result)),
        render(tables.overview([result], brief=True)),
        warnings_view(collected_warnings([result])),
    )


def compare_view(results: Sequence[Record], verdict: Verdict) -> Group:
    """Strategies side by side, their paired differences, and the verdict."""
    step = MOST_SIDE_BY_SIDE
    parts = [tables.overview(results[i : i + step], brief=True) for i in range(0, len(results), step)]
    return Group(
        _title(headline(results[0])),
        *(render(part) for part in parts),
        render(tables.pairs_table(verdict.pairs)),
        Text(verdict.sentence, style="bold"),
        warnings_view(collected_warnings(results)),
    )


def sweep_view(
    recoveries: pd.DataFrame, runs: pd.DataFrame, parameters: Sequence[str], warnings: Sequence[str] = ()
) -> Group:
    """The points of a sweep, one row each."""
    return Group(render(tables.sweep_table(recoveries, runs, parameters)), warnings_view(warnings))


def reproduce_view(
    shown: Iterable[Table], explanation: Sequence[str], source: str, warnings: Sequence[str] = ()
) -> Group:
    """Published tables beside simulated ones, and why the figures are what they are."""
    sentences: list[RenderableType] = [
        Padding(Text(f"{i}. {s}"), (0, 0, 0, 1)) for i, s in enumerate(explanation, 1)
    ]
    return Group(
        *(render(table) for table in shown),
        Text(f"Published: {source}", style="dim"),
        Text(""),
        *((Text("Why source replay takes this long", style="bold"), *sentences) if explanation else ()),
        warnings_view(warnings),
    )


def render(table: Table) -> Group:
    """A table with its footnotes. Texts are shown as they are: nothing in them is taken for markup."""
    shown = RichTable(
        title=Text(table.title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    grouped = any(len(row) == 1 for row in table.rows)
    for index, name in enumerate(table.columns):
        justify: JustifyMethod = "left" if index < table.text_columns else "right"
        header = _folded(name, [row[index] for row in table.rows if len(row) > index and len(row) > 1])
        shown.add_column(Text(header), justify=justify, overflow="fold", no_wrap=index == 0)
    for row in table.rows:
        if len(row) == 1:
            shown.add_row(Text(row[0], style="bold cyan"))
        else:
            cells = [Text(cell, style="bold red" if cell.startswith("NO ") else "") for cell in row]
            shown.add_row(Text(f"  {row[0]}" if grouped else row[0]), *cells[1:])
    notes = [Padding(Text(note, style="dim"), (0, 0, 0, 1)) for note in table.notes]
    return Group(shown, *notes, Text(""))


def _folded(header: str, cells: Sequence[str]) -> str:
    """The header in lines as narrow as its column, so that headers are broken rather than cells."""
    widest = max([len(cell) for cell in cells] + [len(word) for word in header.split()], default=1)
    return "\n".join(textwrap.wrap(header, widest)) if header else ""


def warnings_view(warnings: Iterable[str]) -> Group:
    """Warnings, one a line; nothing if there are none."""
    return Group(*(Text(f"Warning: {text}", style="yellow") for text in warnings))


def _title(text: str) -> Text:
    return Text(text, style="bold")
