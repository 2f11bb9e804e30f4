"""Which factors of a sampled sweep the time to recover depends on: a table, and a tornado."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tideover.reports import figures
from tideover.reports.figures.svg import to_svg
from tideover.reports.formatting import number
from tideover.reports.html import Picture
from tideover.reports.tables import Table

if TYPE_CHECKING:
    import pandas as pd

_MEANS = {
    "total": "part of the variance of the time to recover, alone and with others",
    "first_order": "part of the variance, alone",
    "mu_star": "mean effect on the time to recover, s",
    "sigma": "spread of the effects, s",
}
_LABELS = {"total": "total", "first_order": "first order", "mu_star": "μ*", "sigma": "σ"}


def table(found: pd.DataFrame) -> Table:
    """A row a factor, what matters most first; one for each combination of others."""
    shown = [name for name in _LABELS if name in found.columns]
    names = [str(name) for name in found.columns[: list(found.columns).index("factor")]]
    ordered = found.sort_values([*names, shown[0]], ascending=[True] * len(names) + [False], kind="stable")
    rows = tuple(
        (*(str(row[name]) for name in (*names, "factor")), *(_figure(row, name) for name in shown))
        for row in ordered.to_dict("records")
    )
    notes = tuple(f"{_LABELS[name]}: {_MEANS[name]}" for name in shown)
    columns = (*names, "factor", *(_LABELS[name] for name in shown))
    return Table("What the time to recover depends on", columns, rows, notes, text_columns=len(names) + 1)


def picture(found: pd.DataFrame) -> tuple[Picture, ...]:
    """The tornado; none where the sample is combined with other factors: the table has these."""
    if found["factor"].duplicated().any():
        return ()
    title = "What the time to recover depends on"
    alt = f"{title}: sensitivity indices of the swept keys, with intervals."
    svg = to_svg(figures.tornado(found).figure, prefix="tornado", alt=alt)
    kind = "Sobol' indices" if "total" in found.columns else "Morris' elementary effects"
    return (Picture(title, f"{kind} of the mean time to recover of each point, with 95 % intervals.", svg),)


def _figure(row: Mapping[Any, Any], name: str) -> str:
    half = (row.get(f"{name}_high", float("nan")) - row.get(f"{name}_low", float("nan"))) / 2
    return number(row[name]) if half != half else f"{number(row[name])} ± {number(half)}"
