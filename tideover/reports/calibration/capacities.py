"""A fit to capacities that others measured, as a page and for the terminal.

The input is the tables of ``columns.CAPACITY_FITS``; nothing here depends on how they were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tideover.reports.calibration.predictions import frame
from tideover.reports.calibration.recoveries import errors_table
from tideover.reports.calibration.tables import parameters_table, percent
from tideover.reports.calibration.verdict import labelled
from tideover.reports.columns import CAPACITY_FITS
from tideover.reports.formatting import amount, fixed, number
from tideover.reports.html import Page, Section
from tideover.reports.tables import Table, grouped

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group


def capacities_page(
    frames: Mapping[str, pd.DataFrame], provenance: Mapping[str, object], *, title: str = "capacities"
) -> Page:
    """Capacities that others measured, and what a law says of them. ``frames``: ``columns.CAPACITY_FITS``."""
    runs, parameters, errors = (frame(frames, name) for name in CAPACITY_FITS)
    measured = Section("Measured beside predicted", tables=(errors_table(errors), runs_table(runs)))
    return Page(
        title=title,
        kind="measured capacities, and a law fitted to them",
        verdict=verdict(runs, errors),
        setup=labelled(provenance),
        setup_title="What was measured, and where",
        sections=(measured, Section("The law", tables=(parameters_table(parameters, by="workload"),))),
        glossary=CAPACITY_FITS,
    )


def capacities_view(frames: Mapping[str, pd.DataFrame]) -> Group:
    """What the terminal shows: the law, every saturated run, errors, verdict."""
    from rich.console import Group
    from rich.text import Text

    from tideover.reports.terminal import rendered

    runs, parameters, errors = (frame(frames, name) for name in CAPACITY_FITS)
    law = parameters_table(parameters, by="workload", brief=True)
    return Group(
        *rendered((law, runs_table(runs), errors_table(errors))),
        Text(verdict(runs, errors), style="bold"),
    )


def verdict(runs: pd.DataFrame, errors: pd.DataFrame) -> str:
    """One line a workload: how far off unseen capacities are, and how many runs that were not saturated had
    more than the law gives them.
    """
    lines = []
    for row in errors[errors["kind"] == "leave_one_out"].to_dict("records"):
        others = runs[(runs["workload"] == row["workload"]) & ~runs["saturated"].astype(bool)]
        beyond = int((others["rate_per_s"] > others["fitted_per_s"]).sum())
        lines.append(
            f"{row['workload']}: capacities that the fit has not seen are off by "
            f"{percent(row['mean_error'])} in the mean (worst {percent(row['worst_error'])}, "
            f"n = {amount(row['n'])}); of {len(others)} runs that were not saturated, {beyond} had a rate "
            "above the law's capacity."
        )
    return "\n".join(lines) or "No capacity was predicted by a fit that had not seen it."


def runs_table(runs: pd.DataFrame) -> Table:
    """Every saturated run, and its prediction by a fit that had not seen it."""

    def cells(row: dict[Any, Any]) -> tuple[str, ...]:
        low, high = row["low_per_s"], row["high_per_s"]
        return (
            number(row["cores"]),
            number(row["slots_per_core"]),
            fixed(row["memory_per_slot_mb"], 0),
            fixed(row["rate_per_s"], 0),
            fixed(row["left_out_per_s"], 0),
            f"{fixed(low, 0)} to {fixed(high, 0)}",
            percent(row["left_out_per_s"] / row["rate_per_s"] - 1, sign=True),
        )

    shown = runs[runs["saturated"].astype(bool)].to_dict("records")
    rows = grouped(shown, lambda row: str(row["workload"]), cells)
    columns = ("cores", "slots a core", "MB a slot", "capacity/s", "left out/s", "90 % interval", "error")
    return Table("Every saturated run", columns, rows, ("left out: by a fit that had not seen this run.",))
