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

_STRIPE = "#ffffff"
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
    of ``columns`` and ``rows``; an empty cell has no mean, one with stripes at least this one: something did
    not recover within its run. All panels have one scale. Axes with few values are not to scale, so that
    there is room for figures.

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
            late = np.zeros(means.shape, bool)
            late[at[0], at[1]] = mine["late"] > 0
            where = (np.arange(len(xs)), np.arange(len(ys))) if few else (xs, ys)
            _panel(ax, where, means, late, highest)
            if few:
                _write(ax, xs, ys, means, late, highest)
            else:
                facets.axis(ax, xs)
                facets.axis(ax, ys, "y")
            ax.set(xlabel=facets.named(about, x), ylabel=facets.named(about, y))
        only = [ax for ax, _ in drawn]
        bar = only[0].figure.colorbar(only[0].collections[0], ax=only, label=quantity, aspect=30)
        bar.outline.set_visible(False)
        facets.outer(only)
    return only


def _panel(ax: Axes, at: tuple[Any, Any], means: Any, late: Any, highest: float) -> None:
    from matplotlib.patches import Rectangle

    # as one picture: thousands of cells as shapes would be most of the page
    look: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0, "vmax": highest, "rasterized": True}
    edges = _edges(at[0]), _edges(at[1])
    ax.pcolormesh(*edges, means, **look)
    for row in range(len(late)):
        for first, last in _stretches(late[row]):
            x, y = edges[0][first], edges[1][row]
            width, height = edges[0][last] - x, edges[1][row + 1] - y
            ax.add_patch(Rectangle((x, y), width, height, hatch="////", fill=False, ec=_STRIPE, lw=0))
    ax.set_facecolor(style.GRID)


def _stretches(late: Any) -> list[tuple[int, int]]:
    """From where up to where cells side by side are striped."""
    ends = np.flatnonzero(np.diff(np.concatenate(([0], late, [0]))))
    return [(int(first), int(last)) for first, last in zip(ends[::2], ends[1::2], strict=True)]


def _write(ax: Axes, xs: Any, ys: Any, means: Any, late: Any, highest: float) -> None:
    """The values beside evenly spaced cells, and the figures in these."""
    ax.set_xticks(range(len(xs)), [plain(value) for value in xs])
    ax.set_yticks(range(len(ys)), [plain(value) for value in ys])
    for (row, column), mean in np.ndenumerate(means):
        if not np.isnan(mean):
            colour = "#101010" if mean > 0.55 * highest else "#f5f5f5"
            text = "≥ " * bool(late[row, column]) + number(float(mean), 2 if len(xs) > 5 else 3)
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)


def _edges(numbers: Any) -> Any:
    """Where cells around these numbers end: half way between them (of their logarithms, if they are wide)."""
    wide = facets.is_wide(numbers)
    at = np.log(numbers) if wide else numbers
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if wide else edges
