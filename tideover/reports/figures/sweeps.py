"""Figures over the keys of a sweep, a plan, a day or a setting.

Called by the pages of sweeps, plans, hours and lost time, and by notebooks. What tables hold (``cells``) and
what ``about`` says is told in `style`; which key is where in a figure is decided in `sweeps.points`.
"""

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

MOST_MARKED, MOST_DRAWN = 40, 200
"""A line has markers at so many values at most; with more than the second it is drawn as pixels."""
_POINTS: Any = {"color": style.BLUE, "marker": "o", "markersize": 4.5, "capsize": 2.5, "elinewidth": 1.4}
_OUTSIDE: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
"""A legend to the right of the axes."""


def _arrays(table: pd.DataFrame, *names: str) -> list[style.Floats]:
    return [table[name].to_numpy(dtype=float) for name in names]


# A figure over one number, with a line for each name, in small multiples: up to four factors at once.


def small_multiples(
    cells: pd.DataFrame,
    x: str,
    *,
    lines: str | None = None,
    columns: str | None = None,
    rows: str | None = None,
    about: Mapping[str, str] | None = None,
) -> list[Axes]:
    """The mean over ``x`` with its interval, a line for each value of ``lines``, a panel for each of
    ``columns`` and ``rows``; a hollow triangle where something did not recover within its run.
    """
    about = about or {}
    single = columns is None and rows is None
    every = list(dict.fromkeys(cells[lines])) if lines is not None else []
    with style.applied():
        drawn = style.panels(cells, columns, rows, 3.4 if single else 2.6)
        for ax, mine in drawn:
            for name, line, look in style.each_line(mine, lines, every):
                _line(ax, line[line["mean"].notna()].sort_values(x, kind="stable"), x, look, name)
            ax.set(xlabel=about.get(x, x), ylabel=style.QUANTITY, ylim=(0, None))
            ax.grid(axis="y")
            style.axis(ax, cells[x].to_numpy(dtype=float))
        only = [ax for ax, _ in drawn]
        if lines is not None and single:
            only[0].legend(title=about.get(lines, lines))
        elif lines is not None:
            keys = [
                style.Key(name, look["color"], "line", {"marker": look["marker"]})
                for name, _, look in style.each_line(cells, lines, every)
            ]
            style.legend_below(only[0].figure, keys, 4)
        style.outer(only)
    return only


def _line(ax: Axes, found: pd.DataFrame, x: str, look: dict[str, Any], name: str = "") -> None:
    xs, mean, low, high = _arrays(found, x, "mean", "low", "high")
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
    """Five small charts over ``x``: the mean of each resource, in columns of their names."""
    about = about or {}
    every = list(dict.fromkeys(cells[lines])) if lines is not None else []
    with style.applied():
        grid = style.new_figure(4.4).subplots(2, 3)
        for ax, (column, label) in zip(grid.flat, RESOURCES.items(), strict=False):
            for name, mine, look in style.each_line(cells, lines, every):
                line = mine[mine[column].notna()].sort_values(x, kind="stable")
                ax.plot(line[x], line[column], markersize=3.5, label=name, **thinned(look, len(line)))
            ax.set(title=label, ylim=(0, None))
            ax.grid(axis="y")
            style.axis(ax, cells[x].to_numpy(dtype=float))
            style.plain_ticks(ax.yaxis)
        for ax in grid.flat[2:5]:
            ax.set_xlabel(about.get(x, x))
        grid[1, 2].set_axis_off()
        if lines is not None:
            handles, names = grid[0, 0].get_legend_handles_labels()
            grid[1, 2].legend(handles, names, loc="upper left", title=about.get(lines, lines))
    return list(grid.flat[:5])


# Paired differences: what changing one factor does, with the same luck on both sides.


def paired_differences(differences: pd.DataFrame, by: Sequence[str] = ()) -> Axes:
    """A row for each difference, in their order: mark and interval; filled where the interval leaves out 0.

    ``differences``: ``factor``, ``first`` and ``second`` (its values, the difference is first minus second),
    ``n`` pairs, ``undefined`` ones beside them, ``mean``, ``low`` and ``high``; a heading stands where factor
    and values change. ``by``: the columns with the values of other factors, which name a row. Colour says
    which side is less.
    """
    rows: list[tuple[str, dict[Any, Any] | None]] = []  # a heading has no difference
    heading = ""
    for one in differences.to_dict("records"):
        what = f"{one['factor']}: {one['first']} − {one['second']}"
        if by and what != heading:
            rows.append((what, None))
            heading = what
        rows.append((", ".join(str(one[key]) for key in by) if by else what, one))
    with style.applied():
        ax = style.new_axes(0.8 + 0.24 * len(rows))
        words: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "color": style.MUTED}
        for place, (_, row) in enumerate(rows):
            if row is None:
                continue
            mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
            if np.isnan(mean):
                ax.text(0.012, place, "– no pairs", fontsize=8, **words)
                continue
            clear = low > 0 or high < 0
            colour = style.MUTED if not clear else style.BLUE if mean < 0 else style.VERMILION
            interval = style.ends(*(np.array([value]) for value in (mean, low, high)))
            look: dict[str, Any] = {"mfc": colour if clear else "none", "color": colour, "capsize": 2.5}
            ax.errorbar([mean], [place], xerr=interval, fmt="o", ms=5, **look)
            half = None if np.isnan(low) else (high - low) / 2
            n, undefined = int(row["n"]), int(row["undefined"])
            of = f" of {n + undefined}" if undefined else ""
            text = f"{fixed(mean, places_for(half))}  (n = {n}{of})"
            ax.text(1.01, place, text, fontsize=7.5, **words)
        ax.axvline(0, color=style.INK, linewidth=0.9, zorder=0)
        ax.set_xlabel("difference of the time to recover (s)")
        style.name_rows(ax, [label for label, _ in rows])
        for label, (_, difference) in zip(ax.get_yticklabels(), rows, strict=True):
            label.set_fontweight("bold" if difference is None else "normal")
    return ax


# Main effects: the mean by the values of each factor, over all values of the others.

LETTERS = 84
"""As many letters fit into the width of the figure."""
SLANTED_FROM = 5
"""More names than this are written aslant."""


def main_effects(effects: pd.DataFrame) -> list[Axes]:
    """A panel for each factor, on one scale: a line over numbers, a mark each for names, with intervals.

    ``effects``: a row for each value of each factor, with ``factor``, ``value`` (text), ``number`` (NaN for
    names), ``mean``, ``low``, ``high`` and ``late`` as in ``cells``; ``grand_mean`` of all: a dashed line.
    """
    factors = list(dict.fromkeys(effects["factor"]))
    with style.applied():
        drawn = style.panels(effects, "factor", None, 2.4, share_x=False)
        for place, (ax, mine) in enumerate(drawn):
            known = mine[mine["mean"].notna()]
            if len(mine) and mine["number"].notna().all():
                _line(ax, known, "number", {"color": style.BLUE, "marker": "o"})
                style.axis(ax, mine["number"].to_numpy(dtype=float))
            else:
                _effects_of_names(ax, known, list(mine["value"]), LETTERS // min(style.ACROSS, len(factors)))
            ax.axhline(float(mine["grand_mean"].iloc[0]), color=style.MUTED, lw=0.8, ls=(0, (4, 3)), zorder=0)
            if place % style.ACROSS == 0:
                ax.set_ylabel(style.QUANTITY)
            ax.set_title(factors[place])
            ax.grid(axis="y")
            # one scale; room for a whole mark on top
            top = float(np.nanmax(effects[["mean", "high"]].to_numpy(dtype=float), initial=0.0))
            ax.set_ylim(0, 1.08 * top if top else None)
    return [ax for ax, _ in drawn]


def _effects_of_names(ax: Axes, known: pd.DataFrame, names: list[str], letters: int) -> None:
    """``letters``: so many fit below the panel, side by side."""
    mean, low, high = _arrays(known, "mean", "low", "high")
    colours = style.colours_of(names)
    interval = style.ends(mean, low, high)
    for row, (name, late) in enumerate(zip(known["value"], known["late"] > 0, strict=True)):
        at = np.array([names.index(name)])
        if late:
            style.at_least(ax, at, mean[[row]], colours[name])
        else:
            look: dict[str, Any] = {"fmt": "o", "ms": 6, "capsize": 3, "color": colours[name]}
            ax.errorbar(at, mean[[row]], yerr=interval[:, [row]], **look)
    ax.set_xlim(-0.6, len(names) - 0.4)
    if len(names) > SLANTED_FROM:
        ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    else:
        wrapped = [fill(name, letters // len(names), break_long_words=False) for name in names]
        ax.set_xticks(range(len(names)), wrapped)


# A figure over two numbers as colours, in small multiples over up to two more factors.

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
) -> list[Axes]:
    """A cell for each pair of values of ``x`` and ``y`` with the mean as its colour, a panel for each value
    of ``columns`` and ``rows``; an empty cell has no mean, one with stripes at least this one: something did
    not recover within its run. All panels have one scale. Axes with few values are not to scale, so that
    there is room for figures.
    """
    about = about or {}
    highest = max(float(np.nan_to_num(cells["mean"].to_numpy(dtype=float)).max(initial=0.0)), 1e-9)
    single = columns is None and rows is None
    with style.applied():
        drawn = style.panels(cells, columns, rows, 3.4 if single else 2.6)
        xs, ys = (np.unique(values) for values in _arrays(cells, x, y))
        few = max(len(xs), len(ys)) <= MOST_WRITTEN
        for ax, mine in drawn:
            at = np.searchsorted(ys, mine[y]), np.searchsorted(xs, mine[x])
            means, late = np.full((len(ys), len(xs)), np.nan), np.zeros((len(ys), len(xs)), bool)
            means[at], late[at] = mine["mean"], mine["late"] > 0
            where = (np.arange(len(xs)), np.arange(len(ys))) if few else (xs, ys)
            _heat(ax, _edges(where[0]), _edges(where[1]), means, late, highest)
            if few:
                ax.set_xticks(range(len(xs)), [plain(value) for value in xs])
                ax.set_yticks(range(len(ys)), [plain(value) for value in ys])
                for (row, column), mean in np.ndenumerate(means):
                    if not np.isnan(mean):
                        colour = "#101010" if mean > 0.55 * highest else "#f5f5f5"
                        text = "≥ " * bool(late[row, column]) + number(float(mean), 2 if len(xs) > 5 else 3)
                        ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
            else:
                style.axis(ax, xs)
                style.axis(ax, ys, "y")
            ax.set(xlabel=about.get(x, x), ylabel=about.get(y, y))
        only = [ax for ax, _ in drawn]
        bar = only[0].figure.colorbar(only[0].collections[0], ax=only, label=style.QUANTITY, aspect=30)
        bar.outline.set_visible(False)
        style.outer(only)
    return only


def _heat(ax: Axes, xs: Any, ys: Any, means: Any, late: Any, highest: float) -> None:
    """Cells between these edges; those in a row that are striped have their stripes as one shape."""
    from matplotlib.patches import Rectangle

    # as one picture: thousands of cells as shapes would be most of the page
    ax.pcolormesh(xs, ys, means, cmap="cividis", vmin=0.0, vmax=highest, rasterized=True)
    for row, striped in enumerate(late):
        turns = np.flatnonzero(np.diff(np.concatenate(([0], striped, [0]))))
        for first, last in zip(turns[::2], turns[1::2], strict=True):
            size = xs[last] - xs[first], ys[row + 1] - ys[row]
            stripes: dict[str, Any] = {"hatch": "////", "fill": False, "ec": "#ffffff", "lw": 0}
            ax.add_patch(Rectangle((xs[first], ys[row]), *size, **stripes))
    ax.set_facecolor(style.GRID)


def _edges(numbers: Any) -> Any:
    """Where cells around these numbers end: half way between them (of their logarithms, if they are wide)."""
    wide = style.is_wide(numbers)
    at = np.log(numbers) if wide else numbers
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if wide else edges


# Sensitivities of a figure to factors, the one that matters most on top.

_SOBOL = (("total", "total, with others"), ("first_order", "first order, alone"))
_MORRIS = (("mu_star", "mean effect μ*"), ("sigma", "spread of effects σ"))


def tornado(sensitivities: pd.DataFrame) -> Axes:
    """Bars for each factor, sorted by what is known of it.

    ``sensitivities`` has ``factor`` and either Sobol's indices, ``first_order`` and ``total`` with the ends
    of their intervals (``first_order_low`` and so on; NaN: none), the parts of the variance that a factor has
    alone, and with all others; or those of Morris, ``mu_star``, the mean size of elementary effects, and
    ``sigma``, their standard deviation, great where a factor's effect depends on others.
    """
    sobol = "total" in sensitivities.columns
    shown = _SOBOL if sobol else _MORRIS
    ordered = sensitivities.sort_values(shown[0][0], ascending=False, kind="stable").reset_index(drop=True)
    with style.applied():
        ax = style.new_axes(1.0 + 0.42 * len(ordered))
        for (name, label), colour, offset in zip(shown, (style.SKY, style.BLUE), (-0.19, 0.19), strict=True):
            at = np.arange(len(ordered)) + offset
            (values,) = _arrays(ordered, name)
            ax.barh(at, values, height=0.36, color=colour, label=label)
            if f"{name}_low" in ordered.columns:
                interval = style.ends(values, *_arrays(ordered, f"{name}_low", f"{name}_high")).clip(0)
                look: dict[str, Any] = {"ecolor": style.INK, "elinewidth": 0.9, "capsize": 2.5}
                ax.errorbar(values, at, xerr=interval, fmt="none", **look)
        ax.set_xlabel("part of the variance" if sobol else "effect on the figure, over its range")
        style.name_rows(ax, list(ordered["factor"]))
        ax.axvline(0, color=style.INK, linewidth=0.9)
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return ax


# A measure by hour of the day, with the load of the day behind it.

KEYS = (
    style.Key("mean, with its 95 % interval", style.BLUE),
    style.Key("not over in some run", style.FAILURE, "mark", {"marker": "x"}),
    style.Key("with loss", style.FAILURE, "dot"),
    style.Key("load (right)", style.GRID, "band"),
)


def by_hour(points: pd.DataFrame, load: pd.DataFrame, label: str, *, legend: bool = True) -> Axes:
    """One mark an hour, over the load as an area.

    ``points``: ``hour`` (0 to 24), ``mean``, ``low``, ``high`` (NaN: no interval), ``undefined`` (how many
    runs have no value), ``ended`` (how the recoveries did); ``load``: ``hour``, ``rate_per_s``; ``label``: of
    the measure, with its unit.
    """
    known = points[points["mean"].notna()].astype({"mean": float, "low": float, "high": float})
    with style.applied():
        ax = style.new_axes(3.2)
        behind = ax.twinx()
        behind.fill_between(load["hour"], load["rate_per_s"], color=style.GRID, linewidth=0, zorder=0)
        behind.set(ylim=(0, 1.05 * float(load["rate_per_s"].max())), ylabel="load (tuples/s)")
        style.plain_ticks(behind.yaxis)
        behind.spines["right"].set_visible(True)
        ax.set_zorder(behind.get_zorder() + 1)  # the second axes are drawn above the first
        interval = style.ends(*_arrays(known, "mean", "low", "high"))
        ax.errorbar(known["hour"], known["mean"], yerr=interval, zorder=3, **_POINTS)
        lossy = known[known["ended"].str.contains(LOSSY)]
        late = points[points["undefined"] > 0]
        heights = late["mean"].astype(float).fillna(float(known["mean"].max()) if len(known) else 1.0)
        for hours, values, marker in ((lossy["hour"], lossy["mean"], "o"), (late["hour"], heights, "x")):
            ax.plot(hours, values, color=style.FAILURE, marker=marker, linestyle="none", zorder=4)
        ax.set(xlim=(0, 24), xlabel="hour of the failure", ylabel=label)
        ax.set_xticks(range(0, 25, 3), [f"{hour}:00" for hour in range(0, 25, 3)])
        ax.set_ylim(0, max(ax.get_ylim()[1], 1e-9))
        if legend:
            style.legend_below(ax.figure, KEYS, len(KEYS))
    return ax


# What candidates cost by how far apart their checkpoints are, beside what formulas say of that.

_COST = "cost per month"
_DASHES = ((0, (1, 1.2)), (0, (4, 2)), (0, (6, 1.5, 1, 1.5)))


def checkpoint_intervals(
    candidates: pd.DataFrame, formulas: Mapping[str, float], *, ringed: str = "optimum"
) -> Axes:
    """A mark for each candidate at its interval and its cost: a disc if it meets all objectives, else a
    cross; a line for each formula's optimum (s).

    ``candidates``: ``interval_s``, ``cost_per_month``, ``feasible``; and ``chosen``, if one is to be
    ringed (``ringed``: as what). Those without checkpoints (NaN) are left out.
    """
    known = candidates[candidates["interval_s"].notna()]
    feasible = known["feasible"].to_numpy(dtype=bool)
    xs, ys = _arrays(known, "interval_s", "cost_per_month")
    cross: dict[str, Any] = {"marker": "x", "s": 20, "color": style.GREY, "label": "misses an objective"}
    disc: dict[str, Any] = {"s": 28, "color": style.GREEN, "label": "meets all objectives"}
    with style.applied():
        ax = style.new_axes(3.2)
        for mine, look in ((~feasible, cross), (feasible, disc)):
            if mine.any():
                ax.scatter(xs[mine], ys[mine], **look)
        if "chosen" in known.columns:
            mine = known["chosen"].to_numpy(dtype=bool)
            style.ring(ax, xs[mine], ys[mine], 150, ringed)
        for place, (name, interval) in enumerate(formulas.items()):
            label = f"{name}: {number(interval)} s"
            dashes = _DASHES[place % len(_DASHES)]
            ax.axvline(interval, color=style.INK, linewidth=1.0, linestyle=dashes, zorder=0, label=label)
        ax.set(xlabel="checkpoint interval (s)", ylabel=_COST, ylim=(0, None))
        style.axis(ax, np.concatenate([xs, list(formulas.values())]))
        ax.grid(axis="y")
        ax.legend(**_OUTSIDE)
    return ax


# Time that is lost at each value of a setting, and to what.

TOTAL = style.Key("all, with its 95 % interval", style.BLUE)
_Look = tuple[str, style.Shape]
PARTS: tuple[_Look, ...] = ((style.ORANGE, "dashed"), (style.GREEN, "dotted"))
MARKS: tuple[_Look, ...] = (
    (style.INK, "dotted"),
    (style.INK, "dashed"),
    (style.GREY, "dotted"),
    (style.GREY, "dashed"),
)


def keys(parts: Mapping[str, str], marks: Mapping[str, float]) -> tuple[style.Key, ...]:
    """The legend; ``parts`` and ``marks`` as for `lost_time`."""
    looks = [*zip(parts.values(), PARTS, strict=False), *zip(marks, MARKS, strict=False)]
    return (TOTAL, *(style.Key(label, colour, shape) for label, (colour, shape) in looks))


def lost_time(
    points: pd.DataFrame,
    parts: Mapping[str, str],
    marks: Mapping[str, float],
    label: str,
    *,
    legend: bool = True,
) -> Axes:
    """All that is lost (s a day) over the setting (s), with intervals, and at most two parts of it.

    ``points``: ``value_s``, ``lost``, ``low``, ``high`` (NaN: not known), and a column for each of ``parts``,
    which has its label; ``marks``: values (s) that are marked by a line, by label, four at most; ``label``:
    of the setting. What is far apart is drawn over its logarithm.
    """
    known = points[points["lost"].notna()].astype(float)
    with style.applied():
        ax = style.new_axes(3.3, style.COLUMN_IN)
        x, y, low, high = _arrays(known, "value_s", "lost", "low", "high")
        ax.errorbar(x, y, yerr=style.ends(y, low, high), zorder=3, **_POINTS)
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
PALEST, DARKEST = 0.18, 0.86
"""Where the colours begin and end: what is paler does not show on white, what is darker not on black."""


def pareto_front(candidates: pd.DataFrame, *, ringed: str = "optimum") -> Axes:
    """A mark for each candidate at its cost and recovery; the colour is its latency.

    ``candidates``: ``cost_per_month``, ``recovery`` (s), ``latency`` (ms; NaN: not known), ``feasible``,
    ``on_front``, ``lossy`` (has lost roots for good); and ``chosen``, if one is to be ringed (``ringed``: as
    what). Discs meet all objectives, crosses do not; marks of the front have an edge and, if they are few,
    numbers by cost. The line joins those that are cheaper or quicker than every other: of the front, those
    that latency alone keeps on it stand off the line. Candidates that do not recover are left out.
    """
    from matplotlib.cm import ScalarMappable

    known = candidates[candidates["recovery"].notna() & np.isfinite(candidates["recovery"])]
    cross: dict[str, Any] = {"s": 22, "linewidths": 1.3, "label": "misses an objective", "marker": "x"}
    disc: dict[str, Any] = {"s": 34, "label": "meets all objectives", "marker": "o"}
    with style.applied():
        ax = style.new_axes(4.2)
        shade = _shades(*_arrays(known, "latency"))
        for feasible, look in ((False, cross), (True, disc)):
            mine = known[known["feasible"].astype(bool) == feasible]
            if len(mine):
                xs, ys, latency = _arrays(mine, "cost_per_month", "recovery", "latency")
                look |= {"c": latency, **shade} if shade else {"color": style.BLUE}
                ax.scatter(xs, ys, alpha=0.9, rasterized=len(mine) > 400, plotnonfinite=True, **look)
        front = known[known["on_front"].astype(bool)]
        if len(front):
            ordered = front.sort_values(["cost_per_month", "recovery"], kind="stable")
            xs, ys = _arrays(ordered, "cost_per_month", "recovery")
            edge: dict[str, Any] = {"facecolors": "none", "edgecolors": style.INK, "linewidths": 1.1}
            ax.scatter(xs, ys, s=44, zorder=4, label="Pareto front", **edge)
            stairs = ys < np.append(np.inf, np.minimum.accumulate(ys)[:-1])
            line: dict[str, Any] = {"color": style.INK, "linewidth": 0.9, "drawstyle": "steps-post"}
            ax.plot(xs[stairs], ys[stairs], zorder=1, **line)
            words: dict[str, Any] = {"fontsize": 8, "color": style.INK, **style.POINTS}
            for place in range(len(xs) if len(xs) <= MOST_NAMED else 0):
                ax.annotate(str(place + 1), (xs[place], ys[place]), xytext=(5, 5), **words)
        lossy = known[known["lossy"].astype(bool)]
        if len(lossy):
            dot: dict[str, Any] = {"s": 7, "color": style.FAILURE, "label": "lost roots for good"}
            ax.scatter(lossy["cost_per_month"], lossy["recovery"], zorder=6, **dot)
        if "chosen" in known.columns:
            one = known[known["chosen"].astype(bool)]
            style.ring(ax, one["cost_per_month"], one["recovery"], 190, ringed, zorder=5)
        ax.margins(x=0.06)
        top = 1.12 * float(known["recovery"].max()) if len(known) else 1.0
        ax.set(xlabel=_COST, ylabel=style.QUANTITY, ylim=(0, top or 1.0))
        ax.grid()
        if ax.get_legend_handles_labels()[1]:
            ax.legend(loc="best" if len(known) <= 400 else "upper right")
        if shade:
            label = "99th percentile of latency (ms)"
            bar = ax.figure.colorbar(ScalarMappable(**shade), ax=ax, label=label, aspect=30)
            bar.outline.set_visible(False)
    return ax


def _shades(latency: style.Floats) -> dict[str, Any]:
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


# The race of a plan: how many replications each candidate was given before it was known to be worse.


def race(candidates: pd.DataFrame, most: int) -> Axes:
    """A bar for each candidate, the cheapest first: the replications that it was given; those that it was
    spared, up to ``most``, are pale. Candidates that meet all objectives are in colour.

    ``candidates``: ``cost_per_month``, ``replications``, ``feasible``; ``chosen``, if one is to be marked.
    """
    from matplotlib.ticker import MaxNLocator

    ordered = candidates.sort_values("cost_per_month", kind="stable").reset_index(drop=True)
    (spent,) = _arrays(ordered, "replications")
    feasible = ordered["feasible"].to_numpy(dtype=bool)
    places = np.arange(1, len(ordered) + 1)
    many: dict[str, Any] = {"rasterized": len(places) > 400}
    with style.applied():
        ax = style.new_axes(2.3)
        ax.bar(places, most, width=1.0, color=style.GRID, label="not needed", **many)
        for mine, colour, label in (
            (~feasible, style.GREY, "misses an objective"),
            (feasible, style.GREEN, "meets all objectives"),
        ):
            if mine.any():
                ax.bar(places[mine], spent[mine], width=0.86, color=colour, label=label, **many)
        if "chosen" in ordered.columns:
            at = places[ordered["chosen"].to_numpy(dtype=bool)]
            look: dict[str, Any] = {"ms": 6, "color": style.VERMILION, "clip_on": False}
            ax.plot(at, np.full(len(at), 1.04), "v", transform=ax.get_xaxis_transform(), **look)
        ax.set(xlabel="candidates that were tried, the cheapest first", ylabel="replications")
        ax.set(xlim=(0.3, len(places) + 0.7), ylim=(0, most))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend(**_OUTSIDE)
    return ax
