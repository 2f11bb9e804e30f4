"""A figure over one number, with a line for each name, in small multiples: up to four factors at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import facets, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_MARKED, MOST_DRAWN = 40, 200
"""A line has markers at so many values at most; with more than the second it is drawn as pixels."""


def small_multiples(
    cells: pd.DataFrame,
    x: str,
    *,
    lines: str | None = None,
    columns: str | None = None,
    rows: str | None = None,
    about: Mapping[str, str] | None = None,
    quantity: str = facets.QUANTITY,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """The mean over ``x`` with its interval, a line for each value of ``lines``, a panel for each of
    ``columns`` and ``rows``; a hollow triangle where something did not recover within its run.

    ``cells`` as in ``facets``; ``about``: what axes and legends call the keys.
    """
    about = about or {}
    alone = columns is None and rows is None
    every = [] if lines is None else list(dict.fromkeys(cells[lines]))
    with style.applied():
        drawn = facets.panels(cells, columns, rows, 3.4 if alone else 2.6, axes)
        for ax, mine in drawn:
            for name, line, look in facets.each_line(mine, lines, every):
                _line(ax, line, x, name, look)
            ax.set(xlabel=facets.named(about, x), ylabel=quantity, ylim=(0, None))
            ax.grid(axis="y")
            facets.axis(ax, cells[x].to_numpy(dtype=float))
        only = [ax for ax, _ in drawn]
        if lines is not None:
            title = facets.named(about, lines)
            if alone:
                only[0].legend(title=title)
            else:
                looks = facets.each_line(cells, lines, every)
                keys = [
                    style.Key(name, look["color"], "line", {"marker": look["marker"]})
                    for name, _, look in looks
                ]
                style.legend_below(only[0].figure, keys, 4)
        facets.outer(only)
    return only


def _line(ax: Axes, line: pd.DataFrame, x: str, name: str, look: dict[str, Any]) -> None:
    found = line.sort_values(x, kind="stable")
    found = found[found["mean"].notna()]
    xs, mean, low, high = (found[one].to_numpy(dtype=float) for one in (x, "mean", "low", "high"))
    late = (found["late"] > 0).to_numpy()
    look = thinned(look, len(xs))
    ax.plot(xs, mean, markersize=4, label=name, **look)
    band: dict[str, Any] = {"color": look["color"], "rasterized": look["rasterized"]}
    ax.fill_between(xs, np.maximum(low, 0), high, alpha=0.16, linewidth=0, **band)
    if late.any():
        facets.at_least(ax, xs[late], mean[late], look["color"])


def thinned(look: dict[str, Any], count: int) -> dict[str, Any]:
    """The look of a line of so many values: without markers, or as pixels, if they are many."""
    marker = {} if count <= MOST_MARKED else {"marker": ""}
    return look | marker | {"rasterized": count > MOST_DRAWN}
