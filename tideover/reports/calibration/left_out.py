"""Studies whose figures are fitted and then predicted, each left out in turn: a row each, with its aim.

The input is the tables of ``columns.RECOVERY_FITS`` and ``columns.CAPACITY_FITS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.reports.calibration.tables import percent
from tideover.reports.formatting import UNDEFINED, fixed, is_undefined
from tideover.reports.tables import Table

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


class Aim(NamedTuple):
    """How near predictions of figures that no fit has seen are to come in the mean: a ratio, or seconds."""

    error: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.error:g} s" if self.unit == "s" else percent(self.error)


COLUMNS = (
    "workload",
    "quantity",
    "points",
    "mean error, s",
    "mean error",
    "worst",
    "in 90 % interval",
    "its mean width",
    "aim",
    "verdict",
)
NOTE = "Each figure was predicted by a fit that had not seen it; the verdict is on the mean error."


def rows(
    errors: pd.DataFrame, quantities: Mapping[str, str], aims: Mapping[tuple[str, str], Aim]
) -> list[Row]:
    """One for each workload and quantity. ``quantities``: what is predicted, by the kind of the errors;
    ``aims``: by workload (or ``""`` for all) and quantity.
    """
    mine = errors[(errors["model"] == "mechanism") & errors["kind"].isin(list(quantities))]
    found = []
    for row in mine.to_dict("records"):
        quantity, workload = quantities[row["kind"]], str(row["workload"])
        aim = aims.get((workload, quantity)) or aims.get(("", quantity))
        error_s = row.get("mean_error_s")
        off = float(row["mean_error_s" if aim is not None and aim.unit == "s" else "mean_error"])
        verdict = "no aim" if aim is None else "predicted" if off <= aim.error else "failed"
        found.append(
            {
                "workload": workload,
                "quantity": quantity,
                "points": int(row["n"]),
                "mean_error_s": None if is_undefined(error_s) else error_s,
                "mean_error": row["mean_error"],
                "worst_error": row["worst_error"],
                "coverage": row["coverage"],
                "mean_width": row["mean_width"],
                "aim": UNDEFINED if aim is None else str(aim),
                "verdict": verdict,
            }
        )
    return found


def table(found: Sequence[Row], title: str) -> Table:
    """As a reader sees them."""
    cells = tuple(
        (
            row["workload"],
            row["quantity"],
            str(row["points"]),
            UNDEFINED if row["mean_error_s"] is None else fixed(row["mean_error_s"], 1),
            percent(row["mean_error"]),
            percent(row["worst_error"]),
            f"{row['coverage'] * row['points']:.0f} ({percent(row['coverage'])})",
            percent(row["mean_width"]),
            row["aim"],
            row["verdict"],
        )
        for row in found
    )
    return Table(title, COLUMNS, cells, (NOTE,), text_columns=2)


def verdict(found: Sequence[Row]) -> str:
    """How many aims are met, and which are not."""
    judged = [row for row in found if row["verdict"] != "no aim"]
    missed = [f"{row['workload']}, {row['quantity']}" for row in judged if row["verdict"] == "failed"]
    told = f"{len(judged) - len(missed)} of {len(judged)} quantities are predicted within their aims"
    return f"{told}; not {'; not '.join(missed)}." if missed else f"{told}."
