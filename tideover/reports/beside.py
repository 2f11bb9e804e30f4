"""Tables of published figures beside simulated ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tideover.reports.estimates import Estimate
from tideover.reports.tables import Notes, Table, swept_value
from tideover.reports.words import UNDEFINED, fixed, is_undefined, number, strategy_name

if TYPE_CHECKING:
    import pandas as pd


def reproduction_table(pairs: pd.DataFrame, title: str) -> Table:
    """Published recovery cells beside the simulated ones (from ``published.pair_recoveries``)."""
    notes = Notes()
    rows: list[tuple[str, ...]] = []
    previous = None
    records: list[dict[Any, Any]] = pairs.to_dict("records")
    for row in records:
        if row["strategy"] != previous:
            previous = row["strategy"]
            rows.append((strategy_name(previous),))
        rows.append(_cell_row(row, notes))
    columns = ("", "into window", "published", "as logged", "error", "uncut", "agrees if in", "agrees")
    extra = [
        "into window: when it failed, from the start of the window. All durations are in seconds.",
        "as logged: simulated, from stamps cut as in the study's logs; uncut: simulated, before that.",
        "agrees: the mean lies in the range that the published figure allows, and so do n of m replications.",
    ]
    if pairs["published_s"].isna().any():
        extra.append(f"{UNDEFINED} published: the study did not measure this")
    return Table(title, columns, tuple(rows), (*extra, *notes.lines()))


def cells_table(pairs: pd.DataFrame, title: str) -> Table:
    """Any other published cells beside the simulated ones (from ``published.pair_cells``)."""
    keys = list(pairs.columns[: list(pairs.columns).index("quantity")])
    rows = []
    for row in pairs.to_dict("records"):
        values = [swept_value(row[key], key) for key in keys]
        figures = (f"{row['published']:g}", number(row["simulated"]), _percent(row["error_percent"]))
        rows.append((*values, _quantity(row["quantity"], row["unit"]), *figures))
    columns = (*map(_heading, keys), "quantity", "published", "simulated", "error")
    return Table(title, columns, tuple(rows), (), len(keys) + 1)


def rise_table(rises: pd.DataFrame) -> Table:
    """Rise of the mean latency of source replay over R+SM (from ``published.rise_of_mean``)."""
    rows = []
    for row in rises.to_dict("records"):
        agrees = UNDEFINED if is_undefined(row["within"]) else "yes" if row["within"] else "NO"
        figures = (number(row["published_ms"]), number(row["simulated_ms"]))
        rows.append((str(row["phase"]), *figures, _percent(row["error_percent"]), agrees))
    columns = ("phase", "published, ms", "simulated, ms", "error", "within 20 %")
    return Table("Rise of the mean latency of source replay over R+SM", columns, tuple(rows))


def _cell_row(row: Mapping[Any, Any], notes: Notes) -> tuple[str, ...]:
    label, into = f"{row['tuples_per_s']:g} tuples/s", f"{row['fail_at_s']:g}"
    known = UNDEFINED if is_undefined(row["published_s"]) else f"{row['published_s']:g}"
    simulated = notes.mean(_estimate(row), "uncut", "state_recovery_s")
    error = fixed(row["error_s"], 2)
    agrees = UNDEFINED
    if not is_undefined(row["within"]):
        agrees = f"{'yes' if row['within'] else 'NO'} {row['n_within']:.0f}/{row['n']}"
    logged = number(row["logged_s"])
    return (label, into, known, logged, error, simulated, row["required"] or UNDEFINED, agrees)


def _estimate(row: Mapping[Any, Any]) -> Estimate:
    """What a row of pairs keeps of the estimate that it comes from."""
    if is_undefined(row["simulated_s"]):
        return Estimate(0, row["undefined"], None, None, None, None)
    spread = None if row["n"] < 2 else (row["low_s"], row["high_s"])
    std = None if spread is None else row["most_s"] - row["least_s"]
    return Estimate(row["n"], row["undefined"], row["simulated_s"], std, spread, None)


def _quantity(name: str, unit: str) -> str:
    words = name.removesuffix(f"_{unit}").removesuffix("_per_s").replace("_", " ")
    return f"{words}, {unit}"


def _heading(key: str) -> str:
    return key.replace("_per_s", "/s").replace("_", " ")


def _percent(value: Any) -> str:
    return UNDEFINED if is_undefined(value) else f"{fixed(value, 0)} %"
