"""Figures of a sweep: time to recover and costs over the swept keys, of a size that does not grow with the
number of their values.

One numeric key is an axis, with a line for each name of a further key; two numeric keys span a heat map. A
further key is shown in small multiples; ``Layout.averaged`` has those over which means are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.reports.figures import style
from tideover.reports.figures.cost import RESOURCES
from tideover.reports.formatting import plain
from tideover.reports.sweeps.points import Floats, Key, Points
from tideover.scenarios.statistics.estimates import estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUANTITY = "time to recover (s)"
MOST_LINES, MOST_PANELS, COLUMNS = 8, 6, 3
MOST_ROWS = 24
"""Most names (or combinations of names) that are set one below the other."""
MOST_MARKED, MOST_DRAWN = 40, 200
"""A line has markers at so many values at most; with more than the second it is drawn as pixels."""
LOG_FROM = 30.0
"""An axis may be logarithmic if its greatest value is so many times its least."""
_MARKERS = "os^Dv<>P"


@dataclass(frozen=True)
class Layout:
    """Which key is where: axes, a line each, a panel each. Other keys that vary are ``averaged``."""

    x: Key | None
    y: Key | None
    lines: Key | None
    panels: Key | None
    averaged: tuple[Key, ...]

    def left_out(self, lines: int) -> list[str]:
        """What is not drawn because it would be too much, in words; ``lines``: most lines or rows."""
        most = ((self.lines, lines), (self.panels, MOST_PANELS))
        return [
            f"of {key.short}, the first {limit} of {len(key.labels):,} values are shown"
            for key, limit in most
            if key is not None and len(key.labels) > limit
        ]


def layout(points: Points, of: Floats | None = None, *, plane: bool = True) -> Layout:
    """Where each swept key goes, the most influential first (on the headline, or on ``of``).

    ``plane``: two numeric keys span a plane; else only one is an axis.
    """
    varying = [key for key in points.keys if len(key.labels) > 1]
    varying.sort(key=lambda key: -points.influence(key, of))
    numeric = [key for key in varying if key.numeric]
    names = [key for key in varying if not key.numeric]
    x, y = (*numeric[: 1 + plane], None, None)[:2]
    lines = None if y is not None or not names else names.pop(0)
    panels = names.pop(0) if names and plane else None
    used = (x, y, lines, panels)
    return Layout(x, y, lines, panels, tuple(key for key in varying if all(key is not one for one in used)))


def recovery(points: Points, at: Layout) -> Figure:
    """The mean time to recover over the swept keys: lines, heat maps, or a row for each name."""
    count = min(MOST_PANELS, len(at.panels.labels)) if at.panels is not None else 1
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    with style.applied():
        if at.x is None:
            named = min(MOST_ROWS, len(at.lines.labels) if at.lines is not None else 1)
            height = 0.9 + 0.3 * named
        else:
            height = 3.4 if rows == columns == 1 else 2.6
        figure = style.new_figure(min(rows * height, 9.0))
        drawn = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        highest = max(float(np.nan_to_num(points.headline).max(initial=0.0)), 1e-9)
        for place, ax in enumerate(drawn.flat):
            if place >= count:
                ax.set_axis_off()
                continue
            chosen = np.ones(len(points), bool) if at.panels is None else at.panels.of_point == place
            if at.panels is not None:
                ax.set_title(at.panels.labels[place])
            if at.x is None:
                _rows(points, at, chosen, ax)
            elif at.y is None:
                _lines(points, at, at.x, chosen, ax, legend=place == 0)
            else:
                _heat(points, at.x, at.y, chosen, ax, (0.0, highest))
        if at.y is not None:
            bar = figure.colorbar(drawn[0, 0].collections[0], ax=drawn, label=QUANTITY, aspect=30)
            bar.outline.set_visible(False)
        _outer(drawn)
    return figure


def costs(points: Points, at: Layout) -> Figure:
    """Five small charts over the numeric key, a line for each name: the mean per run of each resource."""
    assert at.x is not None
    with style.applied():
        figure = style.new_figure(4.4)
        grid = figure.subplots(2, COLUMNS)
        for ax, (column, label) in zip(grid.flat, RESOURCES.items(), strict=False):
            values = points.totals[column].to_numpy(dtype=float)
            for name, chosen, look in _each_line(points, at, np.ones(len(points), bool)):
                xs, ys = _means(at.x, values, chosen)
                ax.plot(xs, ys, markersize=3.5, label=name, **_thinned(look, len(xs)))
            ax.set(title=label, ylim=(0, None))
            ax.yaxis.set_major_formatter(lambda value, _: plain(value))
            ax.grid(axis="y")
            _axis(ax, at.x)
        for ax in grid.flat[2:5]:
            ax.set_xlabel(at.x.about)
        grid[1, 2].set_axis_off()
        handles, names = grid[0, 0].get_legend_handles_labels()
        if any(names):
            grid[1, 2].legend(handles, names, loc="upper left", title=at.lines.short if at.lines else None)
    return figure


def _means(x: Key, values: Floats, chosen: Any) -> tuple[Floats, Floats]:
    """Numbers of the key in their order, and the mean of the chosen points' values at each."""
    known = chosen & ~np.isnan(values)
    counts = np.bincount(x.of_point[known], minlength=len(x.labels))
    sums = np.bincount(x.of_point[known], values[known], len(x.labels))
    order = [int(place) for place in x.order if counts[place]]
    return x.numbers[order], sums[order] / counts[order]


def _each_line(points: Points, at: Layout, chosen: Any) -> list[tuple[str, Any, dict[str, Any]]]:
    """Label, points, and colour and marker of each line."""
    if at.lines is None:
        return [("", chosen, {"color": style.BLUE, "marker": "o"})]
    names = list(at.lines.labels[:MOST_LINES])
    kinds = _kinds(at.lines, names)
    colours = style.colours(kinds)
    return [
        (name, chosen & (at.lines.of_point == place), {"color": colours[kind], "marker": _MARKERS[place]})
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]


def _thinned(look: dict[str, Any], count: int) -> dict[str, Any]:
    """The look of a line of so many values: without markers, or as pixels, if they are many."""
    marker = {} if count <= MOST_MARKED else {"marker": ""}
    return look | marker | {"rasterized": count > MOST_DRAWN}


def _kinds(key: Key, names: list[str]) -> list[str]:
    """The names by which colours go: those of strategies, as a scenario has them."""
    from tideover.models.strategies.base import STRATEGIES
    from tideover.reports.formatting import strategy_name

    known = {strategy_name(kind): kind for kind in STRATEGIES}
    return [known.get(name, name) if key.name in ("strategy", "strategy.kind") else name for name in names]


def _lines(points: Points, at: Layout, x: Key, chosen: Any, ax: Axes, *, legend: bool) -> None:
    """A line each, with its t-interval; a cross above where a recovery does not end within its run."""
    place, values = points.values
    for name, mine, look in _each_line(points, at, chosen):
        of_line = mine[place]
        found = estimates(x.of_point[place[of_line]], values[of_line], len(x.labels))
        order = [int(i) for i in x.order if found[int(i)].n]
        xs = x.numbers[order]
        means = np.array([found[i].mean for i in order], dtype=float)
        look = _thinned(look, len(xs))
        ax.plot(xs, means, markersize=4, label=name, **look)
        spans = [found[i].t or (np.nan, np.nan) for i in order]
        low, high = (np.array([span[end] for span in spans]) for end in (0, 1))
        band = {"color": look["color"], "rasterized": look["rasterized"]}
        ax.fill_between(xs, np.maximum(low, 0), high, alpha=0.16, linewidth=0, **band)
        late = x.numbers[[one.undefined > 0 for one in found]]
        top = ax.get_xaxis_transform()
        ax.plot(late, np.full(len(late), 1.02), "x", ms=4, transform=top, clip_on=False, **band)
    ax.set(xlabel=x.about, ylabel=QUANTITY, ylim=(0, None))
    ax.grid(axis="y")
    _axis(ax, x)
    if legend and at.lines is not None:
        ax.legend(title=at.lines.short)


def _axis(ax: Axes, key: Key, which: str = "x") -> None:
    """Numbers on the axis; logarithmic if they grow by factors."""
    from matplotlib.ticker import LogLocator, NullLocator

    if not key.numeric or not _is_wide(key.numbers):
        return
    getattr(ax, f"set_{which}scale")("log")
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(
        LogLocator(10.0, (1.0, 2.0, 5.0) if np.ptp(np.log10(key.numbers)) < 2.5 else (1.0,))
    )
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: plain(value))


def _is_wide(numbers: Floats) -> bool:
    """Whether the numbers span a wide range, and most of them are near the least."""
    low, high = float(numbers.min()), float(numbers.max())
    return low > 0 and high > LOG_FROM * low and float(np.median(numbers)) < (low + high) / 4


def _heat(points: Points, x: Key, y: Key, chosen: Any, ax: Axes, limits: tuple[float, float]) -> None:
    """A cell for each pair of values, with the mean headline; an empty one has no recovery that ended."""
    known = chosen & ~np.isnan(points.headline)
    shape = (len(y.labels), len(x.labels))
    cell = np.ravel_multi_index((y.of_point[known], x.of_point[known]), shape)
    sums, counts = (np.bincount(cell, w, shape[0] * shape[1]) for w in (points.headline[known], None))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (sums / counts).reshape(shape)[np.ix_(y.order, x.order)]
    ax.set(xlabel=x.about, ylabel=y.about)
    _axis(ax, x)
    _axis(ax, y, "y")
    edges = [_edges(key.numbers[key.order]) for key in (x, y)]
    # as one picture: thousands of cells as shapes would be most of the page
    ax.pcolormesh(*edges, means, cmap="cividis", vmin=limits[0], vmax=limits[1], rasterized=True)
    ax.set_facecolor(style.GRID)


def _edges(numbers: Floats) -> Floats:
    """Where cells around these numbers end: half way between them (of their logarithms, if they are wide)."""
    wide = _is_wide(numbers)
    at = np.log(numbers) if wide else numbers
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if wide else edges


def _rows(points: Points, at: Layout, chosen: Any, ax: Axes) -> None:
    """A row for each name: every recovery faint, and the mean with its t-interval."""
    place, values = points.values
    names = ["all points"] if at.lines is None else list(at.lines.labels[:MOST_ROWS])
    group = np.zeros(len(points), np.int64) if at.lines is None else at.lines.of_point
    mine = chosen[place] & (group[place] < len(names))
    colours = style.colours(names if at.lines is None else _kinds(at.lines, names))
    for row, (one, colour) in enumerate(
        zip(estimates(group[place[mine]], values[mine], len(names)), colours.values(), strict=True)
    ):
        every = values[mine][group[place[mine]] == row]
        many = len(every) > MOST_DRAWN
        ax.plot(every, np.full(len(every), row), "o", ms=3.2, alpha=0.35, color=colour, rasterized=many)
        if one.mean is None:
            ax.text(
                0.012, row, "– not recovered", transform=ax.get_yaxis_transform(), va="center", fontsize=8
            )
            continue
        half = [[one.half_width or 0.0], [one.half_width or 0.0]]
        ax.errorbar([one.mean], [row], xerr=half, fmt="o", ms=6, color=colour, capsize=3)
    ax.set(xlabel=QUANTITY, xlim=(0, None), ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(range(len(names)), names)
    ax.grid(axis="x")


def _outer(drawn: npt.NDArray[np.object_]) -> None:
    """Labels at the left and at the bottom of small multiples only."""
    rows, columns = drawn.shape
    for row in range(rows):
        for column in range(columns):
            ax = drawn[row, column]
            below = row + 1 < rows and drawn[row + 1, column].axison
            if below:
                ax.set_xlabel("")
            else:
                ax.tick_params(axis="x", labelbottom=True)
            if column:
                ax.set_ylabel("")
