"""Strategies side by side: cost, recovery, stages, and published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.models.schema import HEADLINE, UNAFFECTED, block, named
from tideover.reports.columns import conform, find
from tideover.reports.figures import style
from tideover.reports.formatting import (
    amount,
    fixed,
    is_undefined,
    number,
    places_for,
    plain,
    size,
    strategy_name,
    with_ending,
)
from tideover.reports.published import required
from tideover.reports.tables import MEASURES, Row
from tideover.scenarios.statistics.intervals import BOOTSTRAP_SEED, Estimate, estimate, of_replications

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# What each strategy costs: CPU, network, store, buffered tuples and hosts, relative to a baseline.

_UNITS = {"s": " (s)", "B": " (bytes)"}
_DRAWN = ("cpu_s", "network_bytes", "store_bytes", "peak_buffered_tuples", "hosts")
RESOURCES = {one.name: one.label + _UNITS.get(one.unit, "") for one in (named("runs", n) for n in _DRAWN)}
"""The costs that are drawn, and the titles of their charts."""


def cost(runs: pd.DataFrame, *, axes: Sequence[Axes] | None = None, apart: bool = False) -> list[Axes]:
    """Five small bar charts, mean per run, with amounts; factors are relative to ``baseline``.

    The baseline is ``none`` if it was run, else each resource's cheapest strategy. Where the baseline needs
    nothing of a resource there is no factor, and only amounts are written. ``apart``: each in a figure of its
    own, for a page that arranges them by the width of the screen.
    """
    means = _means(runs)
    with style.applied():
        drawn = list(axes) if axes is not None else _apart(len(means)) if apart else _five(means)
        for ax, (column, label) in zip(drawn, RESOURCES.items(), strict=True):
            _bars(ax, means[column], column, label)
    return drawn


def _means(runs: pd.DataFrame) -> pd.DataFrame:
    runs = conform("runs", runs)
    good = runs[runs["error"].isna()]
    return good.groupby("strategy", sort=False)[list(RESOURCES)].mean()


def baseline(means: pd.Series[float]) -> tuple[str, float]:
    """Name and value of what factors are relative to."""
    name = "none" if "none" in means.index else str(means.idxmin())
    return name, float(means[name])


def relative_to(runs: pd.DataFrame) -> str:
    """What the factors of ``cost`` are relative to, in words."""
    return _relative(_means(runs))


def _relative(means: pd.DataFrame) -> str:
    return strategy_name("none") if "none" in means.index else "the cheapest of each"


def _apart(count: int) -> list[Axes]:
    return [style.new_figure(0.35 + 0.33 * count, style.PANEL_IN).subplots() for _ in RESOURCES]


def _five(means: pd.DataFrame) -> list[Axes]:
    figure = style.new_figure(0.9 + 0.72 * len(means))
    grid = figure.subplots(2, 3)
    grid[1, 2].set_axis_off()
    grid[1, 2].text(0, 1.0, f"×: relative to {_relative(means)}", va="top", fontsize=8, color=style.MUTED)
    return list(grid.flat[:5])


def _bars(ax: Axes, means: pd.Series[float], column: str, label: str) -> None:
    """One bar a strategy, with its name and amount above it: to its left they would take half the width."""
    strategies = [str(name) for name in means.index]
    palette = style.colours(strategies)
    base = 0.0 if means.isna().all() else baseline(means)[1]
    for place, name in enumerate(strategies):
        value = float(means[name])
        if not is_undefined(value):
            ax.barh(place + 0.2, value, height=0.34, color=palette[name])
        text = f"{strategy_name(name)}  {_amount(value, column)}{_factor(value, base)}"
        ax.text(0.0, place - 0.04, text, va="bottom", fontsize=8)
    most = float(means.max()) if means.notna().any() else 0.0
    ax.set_xlim(0, most if most > 0 else 1.0)
    ax.set(ylim=(len(strategies) - 0.5, -0.5), title=label, xticks=[], yticks=[])
    ax.spines[["bottom", "left"]].set_visible(False)


def _amount(value: float, column: str) -> str:
    if column.endswith("_bytes"):
        return size(value)
    return f"{number(value)} s" if column.endswith("_s") else amount(value)


def _factor(value: float, base: float) -> str:
    if base <= 0 or is_undefined(value) or value == 0:
        return ""
    return f"  {fixed(value / base, 2)}×"


# Strategies at a glance: one row each, a bar and a figure for each measure.

_ROW_IN, _HEAD_IN = 0.32, 0.62
_NAMES = 1.95
"""Width of the names, in widths of a measure."""
_BAR = 0.86
"""The longest bar, of the width of its column."""


def glance(rows: Sequence[Row], *, ax: Axes | None = None) -> Axes:
    """A table whose figures stand above bars; bars of one measure share a scale, which begins at 0. What
    breaks a guarantee is in the colour of failures.
    """
    most = [max((row.values[i] or 0.0 for row in rows), default=0.0) for i in range(len(MEASURES))]
    with style.applied():
        ax = style.new_axes(_HEAD_IN + _ROW_IN * len(rows), ax)
        for place, measure in enumerate(MEASURES):
            what, _, unit = measure.what.partition(", ")
            heading = "\n".join([*_broken(what), *([f"({unit})"] if unit else [])])
            ax.text(place, -0.35, heading, va="bottom", fontsize=8, color=style.MUTED)
        for at, row in enumerate(rows):
            ax.text(-_NAMES, at + 0.12, strategy_name(row.strategy), va="center", fontsize=8.5)
            for place, (measure, value, text) in enumerate(zip(MEASURES, row.values, row.cells, strict=True)):
                bad = measure.bad and bool(value)
                ink, colour = (style.FAILURE, style.FAILURE) if bad else (style.INK, style.BLUE)
                shown = "\n".join(_broken(text)) if text == UNAFFECTED else text  # as wide as its column
                ax.text(place, at - 0.02, shown, va="center", fontsize=8, color=ink)
                if value and most[place]:
                    ax.barh(at + 0.29, _BAR * value / most[place], left=place, height=0.2, color=colour)
            ax.axhline(at + 0.5, color=style.GRID, linewidth=0.6)
        ax.set(xlim=(-_NAMES, len(MEASURES)), ylim=(len(rows) - 0.45, -1.45), xticks=[], yticks=[])
        ax.spines[["bottom", "left"]].set_visible(False)
    return ax


def _broken(words: str) -> list[str]:
    """Two lines for what is too long for one."""
    head, _, tail = words.rpartition(" ")
    return [head, tail] if head and len(words) > 9 else [words]


# Time to recover by strategy, with its stages stacked: mean, interval, and every replication.

_BAR_of_stages, _DOTS, _NAME = 0.12, 0.38, -0.14
"""Where in its row (from -0.5 to 0.5, downwards) the bar's middle, the dots and the name's foot are."""
_MOST_DOTS = 200

KEYS = (
    style.Key("95 % interval of the mean", style.INK),
    style.Key("one recovery", style.INK, "dot"),
)


def recovery_stages(recoveries: pd.DataFrame, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """One bar a strategy: the mean lengths of the stages, which add up to the mean time to recover.

    Dots are single recoveries; the interval is the 95 % bootstrap interval of the mean, with a fixed seed.
    Recoveries that had not ended by the end of the run are counted next to the name, and are in no mean; if
    none had ended, the bar has the stages that are known, and is open at its end.
    """
    recoveries = conform("recoveries", recoveries)
    names = list(dict.fromkeys(recoveries["strategy"]))
    with style.applied():
        if ax is None:
            height = 0.75 + 0.5 * len(names) + (0.8 if legend else 0.0)
            ax = style.new_figure(height, style.COLUMN_IN).subplots()
        most = 0.0
        for place, name in enumerate(names):
            most = max(most, _row(ax, place, recoveries[recoveries["strategy"] == name]))
        _finish(ax, len(names), most)
        if legend:
            style.legend_below(ax.figure, (*style.stage_keys(recoveries.columns), *KEYS), 2)
    return ax


def _row(ax: Axes, place: int, mine: pd.DataFrame) -> float:
    """Draw a strategy; how far to the right (s) it reaches."""
    failures = zip(zip(mine["seed"], mine["replication"], strict=True), mine[HEADLINE], strict=True)
    found = estimate(of_replications(failures, named("recoveries", HEADLINE)))
    over = mine[mine[HEADLINE].notna()] if found.n else mine
    at = 0.0
    for stage in block("recoveries", "stages_s", mine.columns):
        length = float(over[stage.name].astype(float).mean())
        if length > 0:  # not so of NaN, either: the stage did not come to its end
            look: dict[str, Any] = {"color": style.stage_colour(stage.key), **style.STAGE_EDGE}
            (bar,) = ax.barh(place + _BAR_of_stages, length, left=at, height=0.34, **look)
            bar.set_label(f"stage: {stage.key}")
            at += length
    name = strategy_name(mine["strategy"].iloc[0])
    foot: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "bottom", "fontsize": 8.5}
    ax.text(0.0, place + _NAME, f"{name}: {_in_words(found, mine['ended'].tolist())}", **foot)
    if found.n == 0:
        ax.annotate("…", (at, place + _BAR_of_stages), xytext=(3, 0), textcoords="offset points", va="center")
        return at
    times = over[HEADLINE].to_numpy(dtype=float)
    if len(times) <= _MOST_DOTS:
        dots: dict[str, Any] = {"color": style.INK, "linestyle": "none", "clip_on": False, **style.DOT}
        ax.plot(times, [place + _DOTS] * len(times), **dots)
    if found.bootstrap is not None and not found.constant:
        ax.plot(found.bootstrap, [place + _BAR_of_stages] * 2, color=style.PAPER, linewidth=3.4)
        ax.plot(
            found.bootstrap,
            [place + _BAR_of_stages] * 2,
            color=style.INK,
            linewidth=1.4,
            marker="|",
            label="interval",
        )
    return float(times.max())


def _in_words(found: Estimate, endings: list[str]) -> str:
    """``56.2 s (51.1 to 59.1)``, and how many had not recovered, or with loss."""
    total = found.n + found.undefined
    if found.mean is None:
        return f"not recovered by the end of the run ({total} of {total})"
    places = 2 if found.half_width == 0 and found.mean < 10 else max(1, places_for(found.half_width))
    text = f"{fixed(found.mean, places)} s" if found.mean else "0 s"
    if found.bootstrap is not None and not found.constant:
        low, high = (fixed(end, places) for end in found.bootstrap)
        text += f" ({low} to {high})"
    text = with_ending(text, endings)
    return text + (f"; {found.undefined} of {total} not recovered" if found.undefined else "")


def _finish(ax: Axes, rows: int, most: float) -> None:
    ax.set(xlabel="time from the failure (s)", ylim=(rows - 0.45, -0.5), yticks=[])
    ax.set_xlim(0, 1.04 * most if most > 0 else 1.0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")


# A time of recovery by strategy and further columns: every replication, the mean with its confidence
# interval, published values as marks.


def recovery(
    recoveries: pd.DataFrame,
    *,
    column: str = HEADLINE,
    by: Sequence[str] = (),
    published: Mapping[tuple[Any, ...], float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One row for each strategy or, with ``by``, for each strategy and combination of these columns' values.

    ``published``: values to mark, keyed by strategy and the values of ``by``: ``{("rsm", 10, 5): 0.0}``. The
    interval is the 95 % bootstrap interval of the mean, with a fixed seed. Where no value is defined, the row
    says why.
    """
    recoveries = conform("recoveries", recoveries)
    rows = list(dict.fromkeys(recoveries[["strategy", *by]].itertuples(index=False, name=None)))
    labels = {row: _label(row, by) for row in rows}
    named = recoveries.assign(
        _row=[labels[row] for row in recoveries[["strategy", *by]].itertuples(index=False, name=None)],
        _value=recoveries[column].to_numpy(dtype=float),
        _unit=recoveries.groupby(["seed", "replication"]).ngroup(),
    )
    with style.applied():
        ax = style.new_axes(0.9 + (0.36 if len(rows) < 8 else 0.26) * len(rows), ax)
        _points(named, list(labels.values()), ax)
        for place, (row, label) in enumerate(labels.items()):
            mine = named[named["_row"] == label]
            values = mine["_value"].dropna()
            if values.empty:
                _undefined(ax, place, column)
            else:
                rightmost = max(values.max(), (published or {}).get(row, 0.0))
                mean = with_ending(f"{number(float(values.mean()))} s", mine["ended"].tolist())
                _write_mean(ax, place, mean, rightmost)
        _mark_published(ax, rows, published or {})
        _finish_of_recovery(ax, list(labels.values()), _axis_label(column))
    return ax


def _axis_label(name: str) -> str:
    column = find("recoveries", name)
    return f"{column.label} ({column.unit})" if column.label else name


def _label(row: tuple[Any, ...], by: Sequence[str]) -> str:
    values = [_with_unit(key, value) for key, value in zip(by, row[1:], strict=True)]
    return ", ".join([strategy_name(row[0]), *values])


def _with_unit(key: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if key.endswith("_per_s"):
        return f"{text}/s"
    return f"{text} s" if key.endswith("_s") else text


def _points(data: pd.DataFrame, labels: list[str], ax: Axes) -> None:
    """Every recovery faint, and the mean of each row with its interval."""
    import seaborn as sns

    strategies = list(dict.fromkeys(data["strategy"]))
    common = {"data": data, "x": "_value", "y": "_row", "order": labels, "ax": ax, "legend": False}
    common |= {"hue": "strategy", "hue_order": strategies, "palette": style.colours(strategies)}
    sns.stripplot(**common, size=3.2, alpha=0.35, jitter=False, zorder=2)
    interval: dict[str, Any] = {"errorbar": ("ci", 95), "n_boot": 2000, "seed": BOOTSTRAP_SEED}
    interval["capsize"] = 0.25
    if data.duplicated(["_row", "_unit"]).any():
        interval["units"] = "_unit"  # failures of one replication are not independent
    shapes = {"linestyle": "none", "markers": list(style.markers(strategies).values()), "markersize": 6}
    sns.pointplot(**common, **interval, **shapes, err_kws={"linewidth": 1.6})


def _write_mean(ax: Axes, place: int, mean: str, most: float) -> None:
    right: dict[str, Any] = {"xytext": (11, 0), "textcoords": "offset points"}
    ax.annotate(mean, (most, place), fontsize=8, color=style.INK, va="center", **right)


def _undefined(ax: Axes, place: int, column: str) -> None:
    reason = find("recoveries", column).undefined.split(",")[0]
    text = f"– undefined: {reason}" if reason else "– undefined"
    ax.text(
        0.012, place, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8, color=style.MUTED
    )


def _mark_published(
    ax: Axes, rows: list[tuple[Any, ...]], published: Mapping[tuple[Any, ...], float]
) -> None:
    known = [(published[row], place) for place, row in enumerate(rows) if row in published]
    if not known:
        return
    xs, ys = zip(*known, strict=True)
    ax.scatter(xs, ys, marker="|", s=260, linewidths=1.6, color=style.INK, zorder=4, label="published")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)


def _finish_of_recovery(ax: Axes, labels: list[str], quantity: str) -> None:
    ax.set(xlabel=quantity, ylabel="", ylim=(len(labels) - 0.5, -0.5))
    ax.set_yticks(range(len(labels)), labels)
    high = max(ax.get_xlim()[1], 1.0)
    ax.set_xlim(-0.02 * high, 1.1 * high)
    ax.grid(axis="x")
    ax.tick_params(axis="y", length=0)


# Time of recovery over the input rate: what was measured, and what a fit predicts between and beyond.

COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY, style.GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def recoveries_over_rate(
    points: pd.DataFrame, curves: pd.DataFrame, *, axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """One Axes for each workload, one line for each snapshot interval; marks are what was measured.

    Open marks are predictions of fits that had not seen the point, joined to it by a thin line. A line has
    its 90 % band if something was measured at this interval, and is dashed if not. ``points`` and ``curves``
    have the columns of ``columns.RECOVERY_FITS``.
    """
    workloads = list(dict.fromkeys([*points["workload"], *curves["workload"]]))
    if not workloads:
        raise ValueError("there is nothing to be drawn")
    every = sorted({*points["checkpoint_interval_s"], *curves["checkpoint_interval_s"]})
    with style.applied():
        drawn = list(axes) if axes is not None else _row_of_recoveries(len(workloads))
        for ax, workload in zip(drawn, workloads, strict=True):
            mine = points[points["workload"] == workload]
            lines = curves[curves["workload"] == workload]
            for place, interval in enumerate(every):
                look = {"color": COLOURS[place % len(COLOURS)]}
                at = mine[mine["checkpoint_interval_s"] == interval]
                _line(ax, lines[lines["checkpoint_interval_s"] == interval], look, measured=len(at) > 0)
                _points_of_recoveries(ax, at, look, MARKERS[place % len(MARKERS)])
            _finish_of_recoveries(ax, str(workload), mine)
        drawn[0].set_ylabel("time of recovery (s)")
        style.legend_below(drawn[0].figure, _keys(every, {*points["checkpoint_interval_s"]}), 4)
    return drawn


def _row_of_recoveries(count: int) -> list[Axes]:
    return list(style.new_figure(3.6).subplots(1, count, squeeze=False)[0])


def _line(ax: Axes, curve: pd.DataFrame, look: dict[str, Any], *, measured: bool) -> None:
    found = curve.sort_values("rate_per_s", kind="stable")
    rate, middle, low, high = (
        found[name].to_numpy(dtype=float) for name in ("rate_per_s", "predicted_s", "low_s", "high_s")
    )
    if measured:
        ax.fill_between(rate, low, high, alpha=0.14, linewidth=0, zorder=1, **look)
    ax.plot(rate, middle, linestyle=_style(measured), linewidth=1.3, zorder=2, **look)


def _style(measured: bool) -> Any:
    return "-" if measured else (0, (4, 2))


def _points_of_recoveries(ax: Axes, at: pd.DataFrame, look: dict[str, Any], marker: str) -> None:
    for row in at.to_dict("records"):
        rate, measured, unseen = (row[name] for name in ("rate_per_s", "measured_s", "left_out_s"))
        ax.plot([rate, rate], [measured, unseen], linewidth=0.8, zorder=3, **look)
        ax.plot(rate, unseen, marker, markersize=4.5, markerfacecolor=style.PAPER, zorder=4, **look)
        ax.plot(rate, measured, marker, markersize=5.5, zorder=5, **look)


def _finish_of_recoveries(ax: Axes, workload: str, points: pd.DataFrame) -> None:
    """From zero, and high enough for what was measured; a line that leaves for infinity is cut."""
    import numpy as np

    ax.set(title=workload, xlabel="input rate (tuples/s)")
    ax.xaxis.set_major_formatter(lambda value, _: plain(value))
    heights = points[["measured_s", "left_out_s"]].to_numpy(dtype=float)
    heights = heights[np.isfinite(heights) & (heights > 0)]
    ax.set_ylim(0, 1.5 * float(heights.max()) if len(heights) else None)
    ax.grid(axis="y")


def _keys(intervals: list[float], measured: set[float]) -> list[style.Key]:
    """Lines as they are drawn: without marks, and dashed, where nothing was measured."""
    keys = []
    for place, interval in enumerate(intervals):
        marker = MARKERS[place % len(MARKERS)] if interval in measured else ""
        look = {"marker": marker, "linestyle": _style(interval in measured), "markersize": 4.5}
        keys.append(style.Key(f"every {interval:g} s", COLOURS[place % len(COLOURS)], look=look))
    return [
        *keys,
        style.Key("measured", style.INK, "mark", {"markersize": 5.5}),
        style.Key(
            "predicted without it", style.INK, "mark", {"markersize": 4.5, "markerfacecolor": style.PAPER}
        ),
        style.Key("90 % interval", style.MUTED, "band", {"alpha": 0.2}),
    ]


# A figure by name: the mean with its interval, and how the values behind it spread.


def ranges(
    cells: pd.DataFrame,
    names: str | None = None,
    *,
    columns: str | None = None,
    rows: str | None = None,
    quantity: str = style.QUANTITY,
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
        drawn = style.panels(cells, columns, rows, 0.9 + 0.3 * len(every), axes)
        for ax, mine in drawn:
            for row, (name, colour) in enumerate(style.colours_of(every).items()):
                one = mine if names is None else mine[mine[names] == name]
                if len(one):
                    _row_of_ranges(ax, row, one.iloc[0], colour)
            ax.set(xlabel=quantity, xlim=(0, None), ylim=(len(every) - 0.5, -0.5))
            ax.set_yticks(range(len(every)), every)
            ax.tick_params(axis="y", length=0)
            ax.grid(axis="x")
        only = [ax for ax, _ in drawn]
        style.outer(only)
    return only


def _row_of_ranges(ax: Axes, row: int, cell: pd.Series[float], colour: str) -> None:
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


# Published and simulated recovery times, cell by cell.


def published(pairs: pd.DataFrame, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """One Axes for each strategy that the study measured, each on its own scale; rows are the study's cells.

    ``pairs`` comes from ``published.pair_recoveries``. A bar is the range that the published figure allows, a
    diamond the figure, a dot the simulated mean, a line from the least to the greatest replication.
    """
    measured = pairs[pairs["published_s"].notna()]
    strategies = list(dict.fromkeys(measured["strategy"]))
    if not strategies:
        raise ValueError("none of the cells has a published figure")
    with style.applied():
        drawn = (
            list(axes)
            if axes is not None
            else _row_of_published(len(strategies), len(measured) // len(strategies))
        )
        for ax, name in zip(drawn, strategies, strict=True):
            _cells(ax, measured[measured["strategy"] == name], str(name))
        drawn[0].set_ylabel("input rate, failure into window")
        for ax in drawn[1:]:
            ax.tick_params(axis="y", labelleft=False)
        style.legend_below(drawn[0].figure, _KEYS, 4)
    return drawn


_RANGE: dict[str, Any] = {"color": style.MUTED, "alpha": 0.25, "height": 0.56, "linewidth": 0}
_PUBLISHED: dict[str, Any] = {
    "marker": "D",
    "markersize": 7,
    "markerfacecolor": style.PAPER,
    "color": style.INK,
    "linestyle": "none",
}


_KEYS = (
    style.Key("agrees with the published", style.MUTED, "band", {"alpha": 0.25}),
    style.Key("published", style.INK, "mark", _PUBLISHED),
    style.Key("simulated, mean", style.INK, "mark", {"markersize": 5}),
    style.Key("simulated, least to greatest", style.INK, look={"linewidth": 2}),
)


def _row_of_published(count: int, cells: int) -> list[Axes]:
    figure = style.new_figure(1.5 + 0.32 * cells)
    return list(figure.subplots(1, count, squeeze=False)[0])


def _cells(ax: Axes, cells: pd.DataFrame, strategy: str) -> None:
    colour = style.colours([strategy])[strategy]
    records = cells.to_dict("records")
    for place, row in enumerate(records):
        allowed = required(strategy, row["published_s"])
        ax.barh(place, allowed.high - allowed.low, left=allowed.low, **_RANGE)
        ax.plot(row["published_s"], place, **_PUBLISHED)
        if not is_undefined(row["simulated_s"]):
            ax.plot([row["least_s"], row["most_s"]], [place, place], color=colour, linewidth=2)
            ax.plot(row["simulated_s"], place, "o", color=colour, markersize=5)
    ax.set_yticks(
        range(len(records)), [f"{r['tuples_per_s']:g} tuples/s, {r['fail_at_s']:g} s" for r in records]
    )
    low, high = ax.get_xlim()
    ax.set_xlim(low - 0.03 * (high - low), high + 0.03 * (high - low))
    ax.set(ylim=(len(records) - 0.5, -0.5), xlabel="recovery time (s)", title=strategy_name(strategy))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
