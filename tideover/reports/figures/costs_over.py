"""What a sweep's points cost over one number, a line for each name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tideover.reports.figures import facets, style
from tideover.reports.figures.cost import RESOURCES
from tideover.reports.figures.multiples import thinned

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def costs_over(
    cells: pd.DataFrame, x: str, *, lines: str | None = None, about: Mapping[str, str] | None = None
) -> list[Axes]:
    """Five small charts over ``x``: the mean of each resource, in columns of their names.

    ``about``: what axes and legends call the keys.
    """
    about = about or {}
    every = [] if lines is None else list(dict.fromkeys(cells[lines]))
    with style.applied():
        figure = style.new_figure(4.4)
        grid = figure.subplots(2, 3)
        for ax, (column, label) in zip(grid.flat, RESOURCES.items(), strict=False):
            for name, mine, look in facets.each_line(cells, lines, every):
                line = mine[mine[column].notna()].sort_values(x, kind="stable")
                ax.plot(line[x], line[column], markersize=3.5, label=name, **thinned(look, len(line)))
            ax.set(title=label, ylim=(0, None))
            ax.grid(axis="y")
            facets.axis(ax, cells[x].to_numpy(dtype=float))
            ax.yaxis.set_major_formatter(lambda value, _: facets.plain(value))
        for ax in grid.flat[2:5]:
            ax.set_xlabel(facets.named(about, x))
        grid[1, 2].set_axis_off()
        if lines is not None:
            handles, names = grid[0, 0].get_legend_handles_labels()
            title = facets.named(about, lines)
            grid[1, 2].legend(handles, names, loc="upper left", title=title)
    return list(grid.flat[:5])
