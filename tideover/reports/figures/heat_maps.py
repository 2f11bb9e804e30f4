"""A figure over two numbers as colours, in small multiples over up to two more factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import facets, style
from tideover.reports.formatting import number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_WRITTEN = 8
"""Most cells of a panel, along and up, that have their figure written in them."""


def heat_maps(
    cells: pd.DataFrame,
    x: str,
    y: str,
    *,
    columns: str | None = None,
    rows: str | None = None,
    about: Mapping[str, str] | None = None,
    quantity: str = facets.QUANTITY,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """A cell for each pair of values of ``x`` and ``y`` with the mean as its colour, a panel for each value
    of ``columns`` and ``rows``; an empty cell has no mean. All panels have one scale.

    ``cells`` as in ``facets``; ``about``: what axes call the keys.
    """
    about = about or {}
    highest = max(float(np.nan_to_num(cells["mean"].to_numpy(dtype=float)).max(initial=0.0)), 1e-9)
    alone = columns is None and rows is None
    with style.applied():
        drawn = facets.panels(cells, columns, rows, 3.4 if alone else 2.6, axes)
        xs, ys = (np.unique(cells[key].to_numpy(dtype=float)) for key in (x, y))
        written = max(len(xs), len(ys)) <= MOST_WRITTEN and len(drawn) <= 4
        for ax, mine in drawn:
            at = [np.searchsorted(every, mine[key]) for every, key in ((ys, y), (xs, x))]
            means = np.full((len(ys), len(xs)), np.nan)
            means[at[0], at[1]] = mine["mean"]
            _panel(ax, xs, ys, means, highest)
            if written:
                _write(ax, xs, ys, means, highest)
            ax.set(xlabel=facets.named(about, x), ylabel=facets.named(about, y))
        only = [ax for ax, _ in drawn]
        bar = only[0].figure.colorbar(only[0].collections[0], ax=only, label=quantity, aspect=30)
        bar.outline.set_visible(False)
        facets.outer(only)
    return only


def _panel(ax: Axes, xs: Any, ys: Any, means: Any, highest: float) -> None:
    facets.axis(ax, xs)
    facets.axis(ax, ys, "y")
    # as one picture: thousands of cells as shapes would be most of the page
    look: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0, "vmax": highest, "rasterized": True}
    ax.pcolormesh(_edges(xs), _edges(ys), means, **look)
    ax.set_facecolor(style.GRID)


def _write(ax: Axes, xs: Any, ys: Any, means: Any, highest: float) -> None:
    for (row, column), mean in np.ndenumerate(means):
        if not np.isnan(mean):
            colour = "#101010" if mean > 0.55 * highest else "#f5f5f5"
            at = (xs[column], ys[row])
            ax.text(*at, number(float(mean)), ha="center", va="center", fontsize=7.5, color=colour)


def _edges(numbers: Any) -> Any:
    """Where cells around these numbers end: half way between them (of their logarithms, if they are wide)."""
    wide = facets.is_wide(numbers)
    at = np.log(numbers) if wide else numbers
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if wide else edges
