"""A figure over two numbers as colours, in small multiples over up to two more factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import facets, style
from tideover.reports.formatting import number, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_WRITTEN = 8
"""Up to so many values on an axis are evenly spaced, and cells have their figure written in them."""


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
    of ``columns`` and ``rows``; an empty cell has no mean. All panels have one scale. Axes with few values
    are not to scale, so that there is room for figures.

    ``cells`` as in ``facets``; ``about``: what axes call the keys.
    """
    about = about or {}
    highest = max(float(np.nan_to_num(cells["mean"].to_numpy(dtype=float)).max(initial=0.0)), 1e-9)
    alone = columns is None and rows is None
    with style.applied():
        drawn = facets.panels(cells, columns, rows, 3.4 if alone else 2.6, axes)
        xs, ys = (np.unique(cells[key].to_numpy(dtype=float)) for key in (x, y))
        few = max(len(xs), len(ys)) <= MOST_WRITTEN
        for ax, mine in drawn:
            at = [np.searchsorted(every, mine[key]) for every, key in ((ys, y), (xs, x))]
            means = np.full((len(ys), len(xs)), np.nan)
            means[at[0], at[1]] = mine["mean"]
            where = (np.arange(len(xs)), np.arange(len(ys))) if few else (xs, ys)
            _panel(ax, where, means, highest)
            if few:
                _write(ax, xs, ys, means, highest)
            else:
                facets.axis(ax, xs)
                facets.axis(ax, ys, "y")
            ax.set(xlabel=facets.named(about, x), ylabel=facets.named(about, y))
        only = [ax for ax, _ in drawn]
        bar = only[0].figure.colorbar(only[0].collections[0], ax=only, label=quantity, aspect=30)
        bar.outline.set_visible(False)
        facets.outer(only)
    return only


def _panel(ax: Axes, at: tuple[Any, Any], means: Any, highest: float) -> None:
    # as one picture: thousands of cells as shapes would be most of the page
    look: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0, "vmax": highest, "rasterized": True}
    ax.pcolormesh(_edges(at[0]), _edges(at[1]), means, **look)
    ax.set_facecolor(style.GRID)


def _write(ax: Axes, xs: Any, ys: Any, means: Any, highest: float) -> None:
    """The values beside evenly spaced cells, and the figures in these."""
    ax.set_xticks(range(len(xs)), [plain(value) for value in xs])
    ax.set_yticks(range(len(ys)), [plain(value) for value in ys])
    for (row, column), mean in np.ndenumerate(means):
        if not np.isnan(mean):
            colour = "#101010" if mean > 0.55 * highest else "#f5f5f5"
            text = number(float(mean), 2 if len(xs) > 5 else 3)
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)


def _edges(numbers: Any) -> Any:
    """Where cells around these numbers end: half way between them (of their logarithms, if they are wide)."""
    wide = facets.is_wide(numbers)
    at = np.log(numbers) if wide else numbers
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if wide else edges
