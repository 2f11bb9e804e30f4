"""Figures over the keys of a sweep, a plan, a day or a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.models.schema import LOSSY
from tideover.reports.figures import style
from tideover.reports.figures.strategies import RESOURCES
from tideover.reports.formatting import fixed, number, places_for, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# A figure over one number, with a line for each name, in small multiples: up to four factors at once.

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
    quantity: str = style.QUANTITY,
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
        drawn = style.panels(cells, columns, rows, 3.4 if alone else 2.6, axes)
        for ax, mine in drawn:
            for name, line, look in style.each_line(mine, lines, every):
                _line(ax, line, x, name, look)
            ax.set(xlabel=style.named(about, x), ylabel=quantity, ylim=(0, None))
            ax.grid(axis="y")
            style.axis(ax, cells[x].to_numpy(dtype=float))
        only = [ax for ax, _ in drawn]
        if lines is not None:
            title = style.named(about, lines)
            if alone:
                only[0].legend(title=title)
            else:
                looks = style.each_line(cells, lines, every)
                keys = [
                    style.Key(name, look["color"], "line", {"marker": look["marker"]})
                    for name, _, look in looks
                ]
                style.legend_below(only[0].figure, keys, 4)
        style.outer(only)
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
        style.at_least(ax, xs[late], mean[late], look["color"])


def thinned(look: dict[str, Any], count: int) -> dict[str, Any]:
    """The look of a line of so many values: without markers, or as pixels, if they are many."""
    marker = {} if count <= MOST_MARKED else {"marker": ""}
    return look | marker | {"rasterized": count > MOST_DRAWN}


# What a sweep's points cost over one number, a line for each name.


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
            for name, mine, look in style.each_line(cells, lines, every):
                line = mine[mine[column].notna()].sort_values(x, kind="stable")
                ax.plot(line[x], line[column], markersize=3.5, label=name, **thinned(look, len(line)))
            ax.set(title=label, ylim=(0, None))
            ax.grid(axis="y")
            style.axis(ax, cells[x].to_numpy(dtype=float))
            ax.yaxis.set_major_formatter(lambda value, _: style.plain(value))
        for ax in grid.flat[2:5]:
            ax.set_xlabel(style.named(about, x))
        grid[1, 2].set_axis_off()
        if lines is not None:
            handles, names = grid[0, 0].get_legend_handles_labels()
            title = style.named(about, lines)
            grid[1, 2].legend(handles, names, loc="upper left", title=title)
    return list(grid.flat[:5])


# Paired differences: what changing one factor does, with the same luck on both sides.


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


# Main effects: the mean by the values of each factor, over all values of the others.

LETTERS = 84
"""As many letters fit into the width of the figure."""
SLANTED_FROM = 5
"""More names than this are written aslant."""


def main_effects(
    effects: pd.DataFrame, *, quantity: str = style.QUANTITY, axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """A panel for each factor, on one scale: a line over numbers, a mark each for names, with intervals.

    ``effects``: a row for each value of each factor, with ``factor``, ``value`` (text), ``number`` (NaN for
    names), ``mean``, ``low``, ``high`` and ``late`` as in ``facets``; ``grand_mean`` of all: a dashed line.
    """
    factors = list(dict.fromkeys(effects["factor"]))
    with style.applied():
        drawn = style.panels(effects, "factor", None, 2.4, axes, share_x=False)
        for place, (ax, mine) in enumerate(drawn):
            _panel(ax, mine, LETTERS // min(style.ACROSS, len(factors)))
            ax.axhline(float(mine["grand_mean"].iloc[0]), color=style.MUTED, lw=0.8, ls=(0, (4, 3)), zorder=0)
            if place % style.ACROSS == 0:
                ax.set_ylabel(quantity)
            ax.set_title(factors[place])
            ax.grid(axis="y")
            # one scale; room for a whole mark on top
            top = float(np.nanmax(effects[["mean", "high"]].to_numpy(dtype=float), initial=0.0))
            ax.set_ylim(0, 1.08 * top if top else None)
    return [ax for ax, _ in drawn]


def _panel(ax: Axes, mine: pd.DataFrame, letters: int) -> None:
    """``letters``: so many fit below it, side by side."""
    known = mine[mine["mean"].notna()]
    numbers, mean, low, high = (
        known[name].to_numpy(dtype=float) for name in ("number", "mean", "low", "high")
    )
    late = (known["late"] > 0).to_numpy()
    interval = np.nan_to_num(np.array([mean - low, high - mean]))
    if len(mine) and mine["number"].notna().all():
        look = thinned({"color": style.BLUE, "marker": "o"}, len(known))
        ax.plot(numbers, mean, markersize=4, **look)
        ax.fill_between(numbers, np.maximum(low, 0), high, alpha=0.16, linewidth=0, color=style.BLUE)
        style.axis(ax, mine["number"].to_numpy(dtype=float))
        if late.any():
            style.at_least(ax, numbers[late], mean[late], style.BLUE)
        return
    names = list(mine["value"])
    colours = style.colours_of(names)
    for name, least, *ends in zip(known["value"], late, mean, *interval, strict=True):
        at = names.index(name)
        if least:
            style.at_least(ax, np.array([at]), np.array([ends[0]]), colours[name])
            continue
        ax.errorbar(
            [at], [ends[0]], yerr=[[ends[1]], [ends[2]]], fmt="o", ms=6, capsize=3, color=colours[name]
        )
    ax.set_xlim(-0.6, len(names) - 0.4)
    if len(names) > SLANTED_FROM:
        ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    else:
        wrapped = [fill(name, letters // len(names), break_long_words=False) for name in names]
        ax.set_xticks(range(len(names)), wrapped)


# A figure over two numbers as colours, in small multiples over up to two more factors.

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
    quantity: str = style.QUANTITY,
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
        drawn = style.panels(cells, columns, rows, 3.4 if alone else 2.6, axes)
        xs, ys = (np.unique(cells[key].to_numpy(dtype=float)) for key in (x, y))
        few = max(len(xs), len(ys)) <= MOST_WRITTEN
        for ax, mine in drawn:
            at = [np.searchsorted(every, mine[key]) for every, key in ((ys, y), (xs, x))]
            means = np.full((len(ys), len(xs)), np.nan)
            means[at[0], at[1]] = mine["mean"]
            late = np.zeros(means.shape, bool)
            late[at[0], at[1]] = mine["late"] > 0
            where = (np.arange(len(xs)), np.arange(len(ys))) if few else (xs, ys)
            _panel_of_heat_maps(ax, where, means, late, highest)
            if few:
                _write(ax, xs, ys, means, late, highest)
            else:
                style.axis(ax, xs)
                style.axis(ax, ys, "y")
            ax.set(xlabel=style.named(about, x), ylabel=style.named(about, y))
        only = [ax for ax, _ in drawn]
        bar = only[0].figure.colorbar(only[0].collections[0], ax=only, label=quantity, aspect=30)
        bar.outline.set_visible(False)
        style.outer(only)
    return only


def _panel_of_heat_maps(ax: Axes, at: tuple[Any, Any], means: Any, late: Any, highest: float) -> None:
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
    wide = style.is_wide(numbers)
    at = np.log(numbers) if wide else numbers
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if wide else edges


# Sensitivities of a figure to factors, the one that matters most on top.


def tornado(sensitivities: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Bars for each factor, sorted by what is known of it.

    ``sensitivities`` has ``factor`` and either Sobol's indices, ``first_order`` and ``total`` with the ends
    of their intervals (``first_order_low`` and so on; NaN: none), the parts of the variance that a factor has
    alone, and with all others; or those of Morris, ``mu_star``, the mean size of elementary effects, and
    ``sigma``, their standard deviation, great where a factor's effect depends on others.
    """
    sobol = "total" in sensitivities.columns
    shown = ("total", "first_order") if sobol else ("mu_star", "sigma")
    labels = (
        ("total, with others", "first order, alone") if sobol else ("mean effect μ*", "spread of effects σ")
    )
    ordered = sensitivities.sort_values(shown[0], ascending=False, kind="stable").reset_index(drop=True)
    with style.applied():
        ax = style.new_axes(1.0 + 0.42 * len(ordered), ax)
        for side, (name, label) in enumerate(zip(shown, labels, strict=True)):
            colour = (style.SKY, style.BLUE)[side]
            at = np.arange(len(ordered)) + (-0.19, 0.19)[side]
            values = ordered[name].to_numpy(dtype=float)
            ax.barh(at, values, height=0.36, color=colour, label=label)
            _interval(ax, ordered, name, at, values)
        ax.set(xlabel="part of the variance" if sobol else "effect on the figure, over its range")
        ax.set_ylim(len(ordered) - 0.5, -0.5)
        ax.set_yticks(range(len(ordered)), list(ordered["factor"]))
        ax.axvline(0, color=style.INK, linewidth=0.9)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return ax


def _interval(ax: Axes, ordered: pd.DataFrame, name: str, at: Any, values: Any) -> None:
    if f"{name}_low" not in ordered.columns:
        return
    low, high = (ordered[f"{name}_{end}"].to_numpy(dtype=float) for end in ("low", "high"))
    ends = np.nan_to_num(np.array([values - low, high - values])).clip(0)
    ax.errorbar(values, at, xerr=ends, fmt="none", ecolor=style.INK, elinewidth=0.9, capsize=2.5)


# A measure by hour of the day, with the load of the day behind it.

KEYS = (
    style.Key("mean, with its 95 % interval", style.BLUE),
    style.Key("not over in some run", style.FAILURE, "mark", {"marker": "x"}),
    style.Key("with loss", style.FAILURE, "dot"),
    style.Key("load (right)", style.GRID, "band"),
)


def by_hour(
    points: pd.DataFrame, load: pd.DataFrame, label: str, *, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """One mark an hour, over the load as an area.

    ``points``: ``hour`` (0 to 24), ``mean``, ``low``, ``high`` (NaN: no interval), ``undefined`` (how many
    runs have no value), ``ended`` (how the recoveries did); ``load``: ``hour``, ``rate_per_s``; ``label``: of
    the measure, with its unit.
    """
    with style.applied():
        ax = style.new_axes(3.2, ax)
        behind = ax.twinx()
        behind.fill_between(load["hour"], load["rate_per_s"], color=style.GRID, linewidth=0, zorder=0)
        behind.set(ylim=(0, 1.05 * float(load["rate_per_s"].max())), ylabel="load (tuples/s)")
        behind.yaxis.set_major_formatter(lambda value, _: plain(value))
        behind.spines["right"].set_visible(True)
        ax.set_zorder(behind.get_zorder() + 1)  # a twin is drawn above its first
        _marks(points, ax)
        ax.set(xlim=(0, 24), xlabel="hour of the failure", ylabel=label)
        ax.set_xticks(range(0, 25, 3), [f"{hour}:00" for hour in range(0, 25, 3)])
        ax.set_ylim(0, max(ax.get_ylim()[1], 1e-9))
        if legend:
            style.legend_below(ax.figure, KEYS, len(KEYS))
    return ax


def _marks(points: pd.DataFrame, ax: Axes) -> None:
    known = points[points["mean"].notna()].astype({"mean": float, "low": float, "high": float})
    spread: Any = [(known["mean"] - known["low"]).fillna(0.0), (known["high"] - known["mean"]).fillna(0.0)]
    look: Any = {"color": style.BLUE, "marker": "o", "markersize": 4.5, "capsize": 2.5, "elinewidth": 1.4}
    ax.errorbar(known["hour"], known["mean"], yerr=spread, zorder=3, **look)
    lossy = known[known["ended"].str.contains(LOSSY)]
    ax.plot(lossy["hour"], lossy["mean"], color=style.FAILURE, marker="o", linestyle="none", zorder=4)
    missing = points[points["undefined"] > 0]
    heights = missing["mean"].astype(float).fillna(float(known["mean"].max()) if len(known) else 1.0)
    ax.plot(missing["hour"], heights, color=style.FAILURE, marker="x", linestyle="none", zorder=4)


# What candidates cost by how far apart their checkpoints are, beside what formulas say of that.

_DASHES = ((0, (1, 1.2)), (0, (4, 2)), (0, (6, 1.5, 1, 1.5)))


def checkpoint_intervals(
    candidates: pd.DataFrame,
    formulas: Mapping[str, float],
    *,
    currency: str = "",
    ringed: str = "optimum",
    ax: Axes | None = None,
) -> Axes:
    """A mark for each candidate at its interval and its cost: a disc if it meets all objectives, else a
    cross; a line for each formula's optimum (s).

    ``candidates``: ``interval_s``, ``cost_per_month``, ``feasible``; and ``chosen``, if one is to be
    ringed (``ringed``: as what). Those without checkpoints (NaN) are left out.
    """
    known = candidates[candidates["interval_s"].notna()]
    feasible = known["feasible"].to_numpy(dtype=bool)
    xs, ys = (known[name].to_numpy(dtype=float) for name in ("interval_s", "cost_per_month"))
    with style.applied():
        ax = style.new_axes(3.2, ax)
        if not feasible.all():
            look: dict[str, Any] = {"marker": "x", "s": 20, "color": style.GREY}
            ax.scatter(xs[~feasible], ys[~feasible], label="misses an objective", **look)
        if feasible.any():
            ax.scatter(xs[feasible], ys[feasible], s=28, color=style.GREEN, label="meets all objectives")
        if "chosen" in known.columns:
            mine = known["chosen"].to_numpy(dtype=bool)
            ring: dict[str, Any] = {
                "s": 150,
                "facecolors": "none",
                "edgecolors": style.VERMILION,
                "linewidths": 1.6,
            }
            ax.scatter(xs[mine], ys[mine], label=ringed, **ring)
        for place, (name, interval) in enumerate(formulas.items()):
            label = f"{name}: {number(interval)} s"
            dashes = _DASHES[place % len(_DASHES)]
            ax.axvline(interval, color=style.INK, linewidth=1.0, linestyle=dashes, zorder=0, label=label)
        ax.set(
            xlabel="checkpoint interval (s)", ylabel=f"cost per month{f' ({currency})' if currency else ''}"
        )
        ax.set_ylim(0, None)
        style.axis(ax, np.concatenate([xs, list(formulas.values())]))
        ax.grid(axis="y")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


# Time that is lost at each value of a setting, and to what.

TOTAL = style.Key("all, with its 95 % interval", style.BLUE)
PARTS = ((style.ORANGE, "dashed"), (style.GREEN, "dotted"))
MARKS = (
    (style.INK, "dotted"),
    (style.INK, "dashed"),
    (style.GREY, "dotted"),
    (style.GREY, "dashed"),
)


def keys(parts: Mapping[str, str], marks: Mapping[str, float]) -> tuple[style.Key, ...]:
    """The legend; ``parts`` and ``marks`` as for `lost_time`."""
    looks = [*zip(parts.values(), PARTS, strict=False), *zip(marks, MARKS, strict=False)]
    return (TOTAL, *(style.Key(label, colour, shape) for label, (colour, shape) in looks))  # type: ignore[arg-type]


def lost_time(
    points: pd.DataFrame,
    parts: Mapping[str, str],
    marks: Mapping[str, float],
    label: str,
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """All that is lost (s a day) over the setting (s), with intervals, and at most two parts of it.

    ``points``: ``value_s``, ``lost``, ``low``, ``high`` (NaN: not known), and a column for each of ``parts``,
    which has its label; ``marks``: values (s) that are marked by a line, by label, four at most; ``label``:
    of the setting. What is far apart is drawn over its logarithm.
    """
    known = points[points["lost"].notna()].astype(float)
    with style.applied():
        ax = style.new_figure(3.3, style.COLUMN_IN).subplots() if ax is None else ax
        x, y = known["value_s"].to_numpy(), known["lost"].to_numpy()
        spread: Any = np.nan_to_num([y - known["low"].to_numpy(), known["high"].to_numpy() - y])
        look: Any = {"color": style.BLUE, "marker": "o", "markersize": 4.5, "capsize": 2.5, "elinewidth": 1.4}
        ax.errorbar(x, y, yerr=spread, zorder=3, **look)
        for name, (colour, shape) in zip(parts, PARTS, strict=False):
            part = known[name].to_numpy()
            drawn = part > 0  # the axis may be logarithmic
            ax.plot(x[drawn], part[drawn], color=colour, zorder=4, **style.LINES[shape])
        for value, (colour, shape) in zip(marks.values(), MARKS, strict=False):
            ax.axvline(value, color=colour, zorder=0, **style.LINES[shape])
        ax.set(xlabel=label, ylabel="time lost (s a day)")
        style.axis(ax, np.array([*points["value_s"], *marks.values()], float), factors=True)
        if len(y) and 0 < style.LOG_FROM * y.min() < y.max():
            style.axis(ax, y, "y", factors=True)
            ax.set_ylim(y.min() / 3, None)
        else:
            ax.set_ylim(0, None)
        ax.grid(axis="y")
        if legend:
            style.legend_below(ax.figure, keys(parts, marks), 2)
    return ax


# Cost against recovery against latency: all candidates of a plan, and those that nothing else beats.

MOST_NAMED = 9
"""Most candidates of the front that are numbered, as tables do."""
PALEST = 0.18
"""Where the colours begin: what is paler does not show on white."""
DARKEST = 0.86
"""Where they end: what is darker does not show on black."""


def pareto_front(
    candidates: pd.DataFrame,
    *,
    currency: str = "",
    quantity: str = "time to recover (s)",
    ringed: str = "optimum",
    ax: Axes | None = None,
) -> Axes:
    """A mark for each candidate at its cost and recovery; the colour is its latency.

    ``candidates``: ``cost_per_month``, ``recovery`` (s), ``latency`` (ms; NaN: not known), ``feasible``,
    ``on_front``, ``lossy`` (has lost roots for good); and ``chosen``, if one is to be ringed (``ringed``: as
    what). Discs meet all objectives, crosses do not; marks of the front have an edge and, if they are few,
    numbers by cost. The line joins those that are cheaper or quicker than every other: of the front, those
    that latency alone keeps on it stand off the line. Candidates that do not recover are left out.
    """
    known = candidates[candidates["recovery"].notna() & np.isfinite(candidates["recovery"])]
    with style.applied():
        ax = style.new_axes(4.2, ax)
        shade = _shades(known["latency"].to_numpy(dtype=float))
        for feasible, marker in ((False, "x"), (True, "o")):
            mine = known[known["feasible"].astype(bool) == feasible]
            _marks_of_pareto(ax, mine, marker, shade)
        _front(ax, known[known["on_front"].astype(bool)])
        lossy = known[known["lossy"].astype(bool)]
        if len(lossy):
            dot: dict[str, Any] = {"s": 7, "color": style.FAILURE, "label": "lost roots for good"}
            ax.scatter(lossy["cost_per_month"], lossy["recovery"], zorder=6, **dot)
        if "chosen" in known.columns:
            one = known[known["chosen"].astype(bool)]
            ring: dict[str, Any] = {"s": 190, "facecolors": "none", "edgecolors": style.VERMILION}
            ax.scatter(one["cost_per_month"], one["recovery"], linewidths=1.6, zorder=5, label=ringed, **ring)
        unit = f" ({currency})" if currency else ""
        ax.margins(x=0.06)
        top = 1.12 * float(known["recovery"].max()) if len(known) else 1.0
        ax.set(xlabel=f"cost per month{unit}", ylabel=quantity, ylim=(0, top or 1.0))
        ax.grid()
        if ax.get_legend_handles_labels()[1]:
            ax.legend(loc="best" if len(known) <= 400 else "upper right")
        if shade:
            bar = ax.figure.colorbar(
                _mappable(shade), ax=ax, label="99th percentile of latency (ms)", aspect=30
            )
            bar.outline.set_visible(False)
    return ax


def _shades(latency: Any) -> dict[str, Any]:
    """How latencies become colours; nothing if they are not known, or all the same."""
    import matplotlib
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    found = latency[~np.isnan(latency)]
    if not len(found) or float(np.ptp(found)) == 0:
        return {}
    low, high = float(found.min()), float(found.max())
    wide = low > 0 and high > 20 * low
    visible = matplotlib.colormaps["viridis_r"](np.linspace(PALEST, DARKEST, 200))
    return {"cmap": ListedColormap(visible), "norm": LogNorm(low, high) if wide else Normalize(low, high)}


def _mappable(shade: dict[str, Any]) -> Any:
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(**shade)


def _marks_of_pareto(ax: Axes, mine: pd.DataFrame, marker: str, shade: dict[str, Any]) -> None:
    if not len(mine):
        return
    xs, ys = (mine[name].to_numpy(dtype=float) for name in ("cost_per_month", "recovery"))
    meets = marker == "o"
    look: dict[str, Any] = {"s": 34, "alpha": 0.9} if meets else {"s": 22, "linewidths": 1.3, "alpha": 0.9}
    look |= {"c": mine["latency"].to_numpy(dtype=float), **shade} if shade else {"color": style.BLUE}
    look |= {"label": "meets all objectives" if meets else "misses an objective", "marker": marker}
    ax.scatter(xs, ys, rasterized=len(mine) > 400, plotnonfinite=True, **look)


def _front(ax: Axes, front: pd.DataFrame) -> None:
    ordered = front.sort_values(["cost_per_month", "recovery"], kind="stable")
    xs, ys = (ordered[name].to_numpy(dtype=float) for name in ("cost_per_month", "recovery"))
    if not len(xs):
        return
    edge: dict[str, Any] = {"facecolors": "none", "edgecolors": style.INK, "linewidths": 1.1}
    ax.scatter(xs, ys, s=44, zorder=4, label="Pareto front", **edge)
    stairs = ys < np.append(np.inf, np.minimum.accumulate(ys)[:-1])
    ax.plot(xs[stairs], ys[stairs], color=style.INK, linewidth=0.9, drawstyle="steps-post", zorder=1)
    for place in range(len(xs) if len(xs) <= MOST_NAMED else 0):
        offset: dict[str, Any] = {"xytext": (5, 5), "textcoords": "offset points"}
        ax.annotate(str(place + 1), (xs[place], ys[place]), fontsize=8, color=style.INK, **offset)


# The race of a plan: how many replications each candidate was given before it was known to be worse.


def race(candidates: pd.DataFrame, most: int, *, ax: Axes | None = None) -> Axes:
    """A bar for each candidate, the cheapest first: the replications that it was given; those that it was
    spared, up to ``most``, are pale. Candidates that meet all objectives are in colour.

    ``candidates``: ``cost_per_month``, ``replications``, ``feasible``; ``chosen``, if one is to be marked.
    """
    from matplotlib.ticker import MaxNLocator

    ordered = candidates.sort_values("cost_per_month", kind="stable").reset_index(drop=True)
    spent = ordered["replications"].to_numpy(dtype=float)
    feasible = ordered["feasible"].to_numpy(dtype=bool)
    places = np.arange(1, len(ordered) + 1)
    with style.applied():
        ax = style.new_axes(2.3, ax)
        ax.bar(places, most, width=1.0, color=style.GRID, label="not needed", rasterized=len(places) > 400)
        for mine, colour, label in (
            (~feasible, style.GREY, "misses an objective"),
            (feasible, style.GREEN, "meets all objectives"),
        ):
            if mine.any():
                look: dict[str, Any] = {"color": colour, "label": label, "rasterized": len(places) > 400}
                ax.bar(places[mine], spent[mine], width=0.86, **look)
        if "chosen" in ordered.columns:
            at = places[ordered["chosen"].to_numpy(dtype=bool)]
            above = ax.get_xaxis_transform()
            ax.plot(
                at, np.full(len(at), 1.04), "v", ms=6, color=style.VERMILION, transform=above, clip_on=False
            )
        ax.set(xlabel="candidates that were tried, the cheapest first", ylabel="replications")
        ax.set(xlim=(0.3, len(places) + 0.7), ylim=(0, most))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
