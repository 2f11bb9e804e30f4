"""A figure by name: the mean with its interval, and how the values behind it spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tideover.reports.figures import facets, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def ranges(
    cells: pd.DataFrame,
    names: str | None = None,
    *,
    columns: str | None = None,
    rows: str | None = None,
    quantity: str = facets.QUANTITY,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """A row for each value of ``names``: a mark at the mean with its interval; below it a thin line from the
    least to the greatest value, a thick one from the 5th to the 95th percentile, a box for the middle half,
    and a stroke at the median; a hollow triangle where something did not recover within its run. A panel for
    each value of ``columns`` and ``rows``.

    ``cells`` as in ``facets``, with ``min``, ``p5``, ``p25``, ``p50``, ``p75``, ``p95`` and ``max``.
    """
    every = ["all points"] if names is None else list(dict.fromkeys(cells[names]))
    with style.applied():
        drawn = facets.panels(cells, columns, rows, 0.9 + 0.3 * len(every), axes)
        for ax, mine in drawn:
            for row, (name, colour) in enumerate(facets.colours_of(every).items()):
                one = mine if names is None else mine[mine[names] == name]
                if len(one):
                    _row(ax, row, one.iloc[0], colour)
            ax.set(xlabel=quantity, xlim=(0, None), ylim=(len(every) - 0.5, -0.5))
            ax.set_yticks(range(len(every)), every)
            ax.tick_params(axis="y", length=0)
            ax.grid(axis="x")
        only = [ax for ax, _ in drawn]
        facets.outer(only)
    return only


def _row(ax: Axes, row: int, cell: pd.Series[float], colour: str) -> None:
    if np.isnan(cell["mean"]):
        return
    below = row + 0.22
    for first, last, width in (("min", "max", 0.7), ("p5", "p95", 2.0), ("p25", "p75", 4.5)):
        ends = [cell[first], cell[last]]
        ax.plot(ends, [below, below], lw=width, color=colour, alpha=0.45, solid_capstyle="butt")
    ax.plot([cell["p50"]], [below], "|", color=style.INK, markersize=6, markeredgewidth=1.0)
    if cell["late"]:
        ax.plot([cell["mean"]], [row], ">", ms=6, color=colour, mfc=style.PAPER)
        return
    interval = np.nan_to_num([[cell["mean"] - cell["low"]], [cell["high"] - cell["mean"]]])
    ax.errorbar([cell["mean"]], [row], xerr=interval, fmt="o", ms=5, color=colour, capsize=3)
