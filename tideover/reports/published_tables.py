"""The table of published recovery times with the simulated ones next to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tideover.models.schema.fields import named
from tideover.reports.formatting import UNDEFINED, fixed, is_undefined, number, strategy_name
from tideover.reports.tables import Notes, Table, grouped
from tideover.scenarios.statistics.estimates import Estimate

if TYPE_CHECKING:
    import pandas as pd


def reproduction_table(pairs: pd.DataFrame, title: str) -> Table:
    """Published and simulated recovery times (from ``published.pair_recoveries``)."""
    notes = Notes()
    rows = grouped(
        pairs.to_dict("records"),
        lambda row: strategy_name(row["strategy"]),
        lambda row: _cell_row(row, notes),
    )
    columns = ("", "into window", "published", "as logged", "error", "uncut", "agrees if in", "agrees")
    extra = [
        "into window: when it failed, from the start of the window. All durations are in seconds.",
        "as logged: simulated, from stamps cut as in the study's logs; uncut: simulated, before that.",
        "agrees: the mean lies in the range that the published figure allows, and so do n of m replications.",
    ]
    if pairs["published_s"].isna().any():
        extra.append(f"{UNDEFINED} published: the study did not measure this")
    return Table(title, columns, rows, (*extra, *notes.lines()))


def _cell_row(row: Mapping[Any, Any], notes: Notes) -> tuple[str, ...]:
    label, into = f"{row['tuples_per_s']:g} tuples/s", f"{row['fail_at_s']:g}"
    known = UNDEFINED if is_undefined(row["published_s"]) else f"{row['published_s']:g}"
    simulated = notes.mean(_estimate(row), "uncut", named("recoveries", "state_recovery_s"))
    error = fixed(row["error_s"], 2)
    agrees = UNDEFINED
    if not is_undefined(row["within"]):
        agrees = f"{'yes' if row['within'] else 'NO'} {row['n_within']:.0f}/{row['n']}"
    logged = number(row["logged_s"])
    wanted = UNDEFINED if is_undefined(row["required"]) else row["required"]
    return (label, into, known, logged, error, simulated, wanted, agrees)


def _estimate(row: Mapping[Any, Any]) -> Estimate:
    """What a row of pairs keeps of the estimate that it comes from."""
    if is_undefined(row["simulated_s"]):
        return Estimate(0, row["undefined"], None, None, None, None)
    spread = None if row["n"] < 2 else (row["low_s"], row["high_s"])
    std = None if spread is None else row["most_s"] - row["least_s"]
    return Estimate(row["n"], row["undefined"], row["simulated_s"], std, spread, None)
