"""Paired differences: what changing one factor does, with the same luck on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import style
from tideover.reports.formatting import fixed, places_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def paired_differences(
    differences: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    quantity: str = "difference of the time to recover (s)",
    ax: Axes | None = None,
) -> Axes:
    """A row for each difference, in their order: mark and interval; filled where the interval leaves out 0.

    ``differences``: ``factor``, ``first`` and ``second`` (its values, the difference is first minus second),
    ``n`` pairs, ``undefined`` ones beside them, ``mean``, ``low`` and ``high``; a heading stands where factor
    and values change. ``by``: the columns with the values of other factors, which name a row. Colour says
    which side is less.
    """
    rows = _rows(differences, by)
    with style.applied():
        ax = style.new_axes(0.8 + 0.24 * len(rows), ax)
        for place, (_, one) in enumerate(rows):
            if one is not None:
                _mark(ax, place, one)
        ax.axvline(0, color=style.INK, linewidth=0.9, zorder=0)
        ax.set(xlabel=quantity, ylim=(len(rows) - 0.5, -0.5))
        ax.set_yticks(range(len(rows)), [label for label, _ in rows])
        for label, (_, one) in zip(ax.get_yticklabels(), rows, strict=True):
            label.set_fontweight("normal" if one is not None else "bold")
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
    return ax


def _rows(differences: pd.DataFrame, by: Sequence[str]) -> list[tuple[str, dict[Any, Any] | None]]:
    """Labels, and what is drawn beside them; headings have nothing beside them."""
    found: list[tuple[str, dict[Any, Any] | None]] = []
    before = ""
    for one in differences.to_dict("records"):
        what = f"{one['factor']}: {one['first']} − {one['second']}"
        if by and what != before:
            found.append((what, None))
            before = what
        found.append((", ".join(str(one[key]) for key in by) if by else what, one))
    return found


def _mark(ax: Axes, place: int, one: dict[Any, Any]) -> None:
    mean, low, high = (float(one[name]) for name in ("mean", "low", "high"))
    if np.isnan(mean):
        where = ax.get_yaxis_transform()
        ax.text(0.012, place, "– no pairs", transform=where, va="center", fontsize=8, color=style.MUTED)
        return
    clear = low > 0 or high < 0
    colour = style.MUTED if not clear else style.BLUE if mean < 0 else style.VERMILION
    ends = np.nan_to_num([[mean - low], [high - mean]])
    fill = colour if clear else "none"
    ax.errorbar([mean], [place], xerr=ends, fmt="o", ms=5, mfc=fill, color=colour, capsize=2.5)
    half = None if np.isnan(low) else (high - low) / 2
    undefined = int(one["undefined"])
    of = f" of {int(one['n']) + undefined}" if undefined else ""
    text = f"{fixed(mean, places_for(half))}  (n = {int(one['n'])}{of})"
    where = ax.get_yaxis_transform()
    ax.text(1.01, place, text, transform=where, va="center", fontsize=7.5, color=style.MUTED)
