"""Strategies side by side: cost, recovery, stages, and published figures.

Each public function takes a DataFrame and gives Axes; pages and notebooks call them by `figures`. Tables of
``cells`` are told of in `style`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.models.schema import HEADLINE, UNAFFECTED, block, named
from tideover.reports import formatting, tables
from tideover.reports.columns import conform, find
from tideover.reports.figures import style
from tideover.reports.formatting import fixed, is_undefined, number, places_for, strategy_name, with_ending
from tideover.reports.published import required
from tideover.scenarios.statistics.intervals import BOOTSTRAP_SEED, estimate, of_replications

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# What each strategy costs: CPU, network, store, buffered tuples and hosts, relative to a baseline.

_UNITS = {"s": " (s)", "B": " (bytes)"}
_DRAWN = ("cpu_s", "network_bytes", "store_bytes", "peak_buffered_tuples", "hosts")
RESOURCES = {one.name: one.label + _UNITS.get(one.unit, "") for one in (named("runs", n) for n in _DRAWN)}
"""The costs that are drawn, and the titles of their charts."""


def cost(runs: pd.DataFrame, *, apart: bool = False) -> list[Axes]:
    """Five small bar charts, mean per run, with amounts; factors are relative to ``baseline``.

    The baseline is ``none`` if it was run, else each resource's cheapest strategy. Where the baseline needs
    nothing of a resource there is no factor, and only amounts are written. ``apart``: each in a figure of its
    own, for a page that arranges them by the width of the screen.
    """
    means = _means(runs)
    with style.applied():
        if apart:
            axes = [style.new_axes(0.35 + 0.33 * len(means), style.PANEL_IN) for _ in RESOURCES]
        else:
            grid = style.new_figure(0.9 + 0.72 * len(means)).subplots(2, 3)
            note: dict[str, Any] = {"va": "top", "fontsize": 8, "color": style.MUTED}
            grid[1, 2].set_axis_off()
            grid[1, 2].text(0, 1.0, f"×: relative to {relative_to(runs)}", **note)
            axes = list(grid.flat[:5])
        for ax, (column, label) in zip(axes, RESOURCES.items(), strict=True):
            _bars(ax, means[column], column, label)
    return axes


def _means(runs: pd.DataFrame) -> pd.DataFrame:
    runs = conform("runs", runs)
    return runs[runs["error"].isna()].groupby("strategy", sort=False)[list(RESOURCES)].mean()


def baseline(means: pd.Series[float]) -> tuple[str, float]:
    """Name and value of what factors are relative to."""
    name = "none" if "none" in means.index else str(means.idxmin())
    return name, float(means[name])


def relative_to(runs: pd.DataFrame) -> str:
    """What the factors of ``cost`` are relative to, in words."""
    return strategy_name("none") if "none" in _means(runs).index else "the cheapest of each"


def _bars(ax: Axes, means: pd.Series[float], column: str, label: str) -> None:
    """One bar a strategy, with its name and amount above it."""
    strategies = [str(name) for name in means.index]
    reference = 0.0 if means.isna().all() else baseline(means)[1]
    for place, (name, colour) in enumerate(style.colours(strategies).items()):
        value = float(means[name])
        if column.endswith("_bytes"):
            amount = formatting.size(value)
        else:
            amount = f"{number(value)} s" if column.endswith("_s") else formatting.amount(value)
        text = f"{strategy_name(name)}  {amount}"
        if not is_undefined(value):
            ax.barh(place + 0.2, value, height=style.BAR, color=colour)
            text += f"  {fixed(value / reference, 2)}×" if reference > 0 and value else ""
        ax.text(0.0, place - 0.04, text, va="bottom", fontsize=8)
    most = float(means.max()) if means.notna().any() else 0.0
    ax.set_xlim(0, most if most > 0 else 1.0)
    ax.set(ylim=(len(strategies) - 0.5, -0.5), title=label)
    style.bare(ax)


# Strategies at a glance: one row each, a bar and a figure for each measure.

_NAMES = 1.95
"""Width of the names, in widths of a measure."""
_LONGEST = 0.86
"""The longest bar, of the width of its column."""


def glance(rows: Sequence[tables.Row]) -> Axes:
    """A table whose figures stand above bars; bars of one measure share a scale, which begins at 0. What
    breaks a guarantee is in the colour of failures.
    """
    measures = tables.MEASURES
    most = [max((row.values[i] or 0.0 for row in rows), default=0.0) for i in range(len(measures))]
    with style.applied():
        ax = style.new_axes(0.62 + 0.32 * len(rows))
        for place, measure in enumerate(measures):
            what, _, unit = measure.what.partition(", ")
            heading = f"{_broken(what)}\n({unit})" if unit else _broken(what)
            ax.text(place, -0.35, heading, va="bottom", fontsize=8, color=style.MUTED)
        for at, row in enumerate(rows):
            ax.text(-_NAMES, at + 0.12, strategy_name(row.strategy), va="center", fontsize=8.5)
            for place, (measure, value, text) in enumerate(zip(measures, row.values, row.cells, strict=True)):
                bad = measure.bad and bool(value)
                ink, colour = (style.FAILURE, style.FAILURE) if bad else (style.INK, style.BLUE)
                words = _broken(text) if text == UNAFFECTED else text  # as wide as its column
                ax.text(place, at - 0.02, words, va="center", fontsize=8, color=ink)
                if value and most[place]:
                    ax.barh(at + 0.29, _LONGEST * value / most[place], left=place, height=0.2, color=colour)
            ax.axhline(at + 0.5, color=style.GRID, linewidth=0.6)
        ax.set(xlim=(-_NAMES, len(measures)), ylim=(len(rows) - 0.45, -1.45))
        style.bare(ax)
    return ax


def _broken(words: str) -> str:
    """Two lines for what is too long for one."""
    head, _, tail = words.rpartition(" ")
    return f"{head}\n{tail}" if head and len(words) > 9 else words


# Time to recover by strategy, with its stages stacked: mean, interval, and every replication.

_MIDDLE, _DOTS, _NAME = 0.12, 0.38, -0.14
"""Where in its row (from -0.5 to 0.5, downwards) the bar's middle, the dots and the name's foot are."""
_MOST_DOTS = 200
KEYS = (style.Key("95 % interval of the mean", style.INK), style.Key("one recovery", style.INK, "dot"))


def recovery_stages(recoveries: pd.DataFrame, *, legend: bool = True) -> Axes:
    """One bar a strategy: the mean lengths of the stages, which add up to the mean time to recover.

    Dots are single recoveries; the interval is the 95 % bootstrap interval of the mean, with a fixed seed.
    Recoveries that had not ended by the end of the run are counted next to the name, and are in no mean; if
    none had ended, the bar has the stages that are known, and is open at its end.
    """
    recoveries = conform("recoveries", recoveries)
    names = list(dict.fromkeys(recoveries["strategy"]))
    with style.applied():
        ax = style.new_axes(0.75 + 0.5 * len(names) + (0.8 if legend else 0.0), style.COLUMN_IN)
        rows = [_row(recoveries[recoveries["strategy"] == name]) for name in names]
        ends = style.stage_bars(ax, [row[:3] for row in rows], _MIDDLE, _NAME)
        for place, (_, _, over, times, interval) in enumerate(rows):
            if over and len(times) <= _MOST_DOTS:
                dots: dict[str, Any] = {"linestyle": "none", "clip_on": False, **style.DOT}
                ax.plot(times, [place + _DOTS] * len(times), color=style.INK, **dots)
            if interval is not None:
                middle = [place + _MIDDLE] * 2
                ink: dict[str, Any] = {"color": style.INK, "linewidth": 1.4, "marker": "|"}
                ax.plot(interval, middle, color=style.PAPER, linewidth=3.4)
                ax.plot(interval, middle, label="interval", **ink)
            ends[place] = float(times.max()) if over else ends[place]
        style.time_from_failure(ax, len(names), max(ends, default=0.0), -0.5)
        if legend:
            style.legend_below(ax.figure, (*style.stage_keys(recoveries.columns), *KEYS), 2)
    return ax


def _row(mine: pd.DataFrame) -> tuple[dict[str, float], str, bool, style.Floats, Any]:
    """Of a strategy the mean lengths of its stages, words as ``R+SM: 56.2 s (51.1 to 59.1)``, whether any
    recovery has ended; the times (s) of those that have, and the interval.
    """
    failures = zip(zip(mine["seed"], mine["replication"], strict=True), mine[HEADLINE], strict=True)
    found = estimate(of_replications(failures, named("recoveries", HEADLINE)))
    over, total = mine[mine[HEADLINE].notna()] if found.n else mine, found.n + found.undefined
    stages = block("recoveries", "stages_s", over.columns)
    means = {stage.name: float(over[stage.name].astype(float).mean()) for stage in stages}
    interval = None if found.constant else found.bootstrap
    if found.mean is None:
        words = f"not recovered by the end of the run ({total} of {total})"
    else:
        places = 2 if found.half_width == 0 and found.mean < 10 else max(1, places_for(found.half_width))
        words = f"{fixed(found.mean, places)} s" if found.mean else "0 s"
        words += "" if interval is None else " ({} to {})".format(*(fixed(end, places) for end in interval))
        words = with_ending(words, mine["ended"].tolist())
        words += f"; {found.undefined} of {total} not recovered" if found.undefined else ""
    words = f"{strategy_name(mine['strategy'].iloc[0])}: {words}"
    return means, words, found.n > 0, over[HEADLINE].to_numpy(dtype=float), interval


# A time of recovery by strategy and further columns: every replication, the mean with its confidence
# interval, published values as marks.


def recovery(
    recoveries: pd.DataFrame,
    *,
    column: str = HEADLINE,
    by: Sequence[str] = (),
    published: Mapping[tuple[Any, ...], float] | None = None,
) -> Axes:
    """One row for each strategy or, with ``by``, for each strategy and combination of these columns' values.

    ``published``: values to mark, keyed by strategy and the values of ``by``: ``{("rsm", 10, 5): 0.0}``. The
    interval is the 95 % bootstrap interval of the mean, with a fixed seed. Where no value is defined, the row
    says why.
    """
    recoveries, marks = conform("recoveries", recoveries), published or {}
    keys = list(recoveries[["strategy", *by]].itertuples(index=False, name=None))
    rows = list(dict.fromkeys(keys))
    labels = {row: ", ".join([strategy_name(row[0]), *map(_with_unit, by, row[1:])]) for row in rows}
    table = recoveries.assign(
        _row=[labels[key] for key in keys],
        _value=recoveries[column].to_numpy(dtype=float),
        _unit=recoveries.groupby(["seed", "replication"]).ngroup(),
    )
    about = find("recoveries", column)
    with style.applied():
        ax = style.new_axes(0.9 + (0.36 if len(rows) < 8 else 0.26) * len(rows))
        _recoveries_and_means(table, list(labels.values()), ax)
        for place, (row, label) in enumerate(labels.items()):
            mine = table[table["_row"] == label]
            values = mine["_value"].dropna()
            if values.empty:
                reason = about.undefined.split(",")[0]
                look: dict[str, Any] = {"va": "center", "fontsize": 8, "color": style.MUTED}
                words = f"– undefined: {reason}" if reason else "– undefined"
                ax.text(0.012, place, words, transform=ax.get_yaxis_transform(), **look)
                continue
            mean = with_ending(f"{number(float(values.mean()))} s", mine["ended"].tolist())
            at = (max(values.max(), marks.get(row, 0.0)), place)
            look = {"fontsize": 8, "color": style.INK, "va": "center", **style.POINTS}
            ax.annotate(mean, at, xytext=(11, 0), **look)
        known = [(marks[row], place) for place, row in enumerate(rows) if row in marks]
        if known:
            tick: dict[str, Any] = {"marker": "|", "s": 260, "linewidths": 1.6, "color": style.INK}
            ax.scatter(*zip(*known, strict=True), zorder=4, label="published", **tick)
            ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
        ax.set(xlabel=f"{about.label} ({about.unit})" if about.label else column, ylabel="")
        style.name_rows(ax, list(labels.values()))
        high = max(ax.get_xlim()[1], 1.0)
        ax.set_xlim(-0.02 * high, 1.1 * high)
    return ax


def _with_unit(key: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if key.endswith("_per_s"):
        return f"{text}/s"
    return f"{text} s" if key.endswith("_s") else text


def _recoveries_and_means(data: pd.DataFrame, labels: list[str], ax: Axes) -> None:
    """Every recovery faint, and the mean of each row with its interval."""
    import seaborn as sns

    strategies = list(dict.fromkeys(data["strategy"]))
    common = {"data": data, "x": "_value", "y": "_row", "order": labels, "ax": ax, "legend": False}
    common |= {"hue": "strategy", "hue_order": strategies, "palette": style.colours(strategies)}
    sns.stripplot(**common, size=3.2, alpha=0.35, jitter=False, zorder=2)
    interval: dict[str, Any] = {"errorbar": ("ci", 95), "n_boot": 2000, "seed": BOOTSTRAP_SEED}
    if data.duplicated(["_row", "_unit"]).any():
        interval["units"] = "_unit"  # failures of one replication are not independent
    shapes = {"linestyle": "none", "markers": list(style.markers(strategies).values()), "markersize": 6}
    sns.pointplot(**common, **interval, **shapes, capsize=0.25, err_kws={"linewidth": 1.6})


# Time of recovery over the input rate: what was measured, and what a fit predicts between and beyond.

COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY, style.GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def recoveries_over_rate(points: pd.DataFrame, curves: pd.DataFrame) -> list[Axes]:
    """One Axes for each workload, one line for each snapshot interval; marks are what was measured.

    Open marks are predictions of fits that had not seen the point, joined to it by a thin line. A line has
    its 90 % band if something was measured at this interval, and is dashed if not. ``points`` and ``curves``
    have the columns of ``columns.RECOVERY_FITS``.
    """
    workloads = list(dict.fromkeys([*points["workload"], *curves["workload"]]))
    if not workloads:
        raise ValueError("there is nothing to be drawn")
    measured = {*points["checkpoint_interval_s"]}
    looks = {}
    for place, interval in enumerate(sorted({*measured, *curves["checkpoint_interval_s"]})):
        marker = MARKERS[place % len(MARKERS)] if interval in measured else ""
        looks[interval] = COLOURS[place % len(COLOURS)], marker
    dashes: dict[bool, Any] = {True: "-", False: (0, (4, 2))}
    with style.applied():
        drawn = style.grid(len(workloads), len(workloads), 3.6)
        for ax, workload in zip(drawn, workloads, strict=True):
            mine, lines = (table[table["workload"] == workload] for table in (points, curves))
            for interval, (colour, marker) in looks.items():
                line, at = (one[one["checkpoint_interval_s"] == interval] for one in (lines, mine))
                line = line.sort_values("rate_per_s", kind="stable")
                names = ("rate_per_s", "predicted_s", "low_s", "high_s")
                rate, middle, low, high = (line[name].to_numpy(dtype=float) for name in names)
                if len(at):
                    ax.fill_between(rate, low, high, alpha=0.14, linewidth=0, zorder=1, color=colour)
                ax.plot(rate, middle, linestyle=dashes[len(at) > 0], linewidth=1.3, zorder=2, color=colour)
                _measured(ax, at, colour, marker)
            # from zero, and high enough for what was measured; a line that leaves for infinity is cut
            ax.set(title=str(workload), xlabel="input rate (tuples/s)")
            style.plain_ticks(ax.xaxis)
            heights = mine[["measured_s", "left_out_s"]].to_numpy(dtype=float)
            heights = heights[np.isfinite(heights) & (heights > 0)]
            ax.set_ylim(0, 1.5 * float(heights.max()) if len(heights) else None)
            ax.grid(axis="y")
        drawn[0].set_ylabel("time of recovery (s)")
        keys = []
        for interval, (colour, marker) in looks.items():
            look = {"marker": marker, "linestyle": dashes[bool(marker)], "markersize": 4.5}
            keys.append(style.Key(f"every {interval:g} s", colour, look=look))
        open_mark = {"markersize": 4.5, "markerfacecolor": style.PAPER}
        keys += [
            style.Key("measured", style.INK, "mark", {"markersize": 5.5}),
            style.Key("predicted without it", style.INK, "mark", open_mark),
            style.Key("90 % interval", style.MUTED, "band", {"alpha": 0.2}),
        ]
        style.legend_below(drawn[0].figure, keys, 4)
    return drawn


def _measured(ax: Axes, at: pd.DataFrame, colour: str, marker: str) -> None:
    look: dict[str, Any] = {"color": colour}
    for row in at.to_dict("records"):
        rate, measured, unseen = (row[name] for name in ("rate_per_s", "measured_s", "left_out_s"))
        ax.plot([rate, rate], [measured, unseen], linewidth=0.8, zorder=3, **look)
        ax.plot(rate, unseen, marker, markersize=4.5, markerfacecolor=style.PAPER, zorder=4, **look)
        ax.plot(rate, measured, marker, markersize=5.5, zorder=5, **look)


# A figure by name: the mean with its interval, and how the values behind it spread.


def ranges(
    cells: pd.DataFrame, names: str | None = None, *, columns: str | None = None, rows: str | None = None
) -> list[Axes]:
    """A row for each value of ``names``: a mark at the mean with its interval; below it a thin line from the
    least to the greatest value, a thick one from the 5th to the 95th percentile, a box for the middle half,
    and a stroke at the median; a hollow triangle where something did not recover within its run. A panel for
    each value of ``columns`` and ``rows``.

    ``cells`` as in ``style``, with ``min``, ``p5``, ``p25``, ``p50``, ``p75``, ``p95`` and ``max``.
    """
    every = ["all points"] if names is None else list(dict.fromkeys(cells[names]))
    with style.applied():
        drawn = style.panels(cells, columns, rows, 0.9 + 0.3 * len(every))
        for ax, mine in drawn:
            for row, (name, colour) in enumerate(style.colours_of(every).items()):
                one = mine if names is None else mine[mine[names] == name]
                if len(one) and not np.isnan(one["mean"].iloc[0]):
                    _range(ax, row, one.iloc[0], colour)
            ax.set(xlabel=style.QUANTITY, xlim=(0, None))
            style.name_rows(ax, every)
        only = [ax for ax, _ in drawn]
        style.outer(only)
    return only


def _range(ax: Axes, row: int, cell: pd.Series[float], colour: str) -> None:
    below = row + 0.22
    for first, last, width in (("min", "max", 0.7), ("p5", "p95", 2.0), ("p25", "p75", 4.5)):
        ends = [cell[first], cell[last]]
        ax.plot(ends, [below, below], lw=width, color=colour, alpha=0.45, solid_capstyle="butt")
    ax.plot([cell["p50"]], [below], "|", color=style.INK, markersize=6, markeredgewidth=1.0)
    if cell["late"]:
        ax.plot([cell["mean"]], [row], ">", ms=6, color=colour, mfc=style.PAPER)
        return
    interval = style.ends(*(np.array([cell[name]]) for name in ("mean", "low", "high")))
    ax.errorbar([cell["mean"]], [row], xerr=interval, fmt="o", ms=5, color=colour, capsize=3)


# Published and simulated recovery times, cell by cell.

_RANGE: dict[str, Any] = {"color": style.MUTED, "alpha": 0.25, "height": 0.56, "linewidth": 0}
_DIAMOND: dict[str, Any] = {"marker": "D", "markersize": 7, "markerfacecolor": style.PAPER}
_DIAMOND |= {"color": style.INK, "linestyle": "none"}
_PUBLISHED_KEYS = (
    style.Key("agrees with the published", style.MUTED, "band", {"alpha": 0.25}),
    style.Key("published", style.INK, "mark", _DIAMOND),
    style.Key("simulated, mean", style.INK, "mark", {"markersize": 5}),
    style.Key("simulated, least to greatest", style.INK, look={"linewidth": 2}),
)


def published(pairs: pd.DataFrame) -> list[Axes]:
    """One Axes for each strategy that the study measured, each on its own scale; rows are the study's cells.

    ``pairs`` comes from ``published.pair_recoveries``. A bar is the range that the published figure allows, a
    diamond the figure, a dot the simulated mean, a line from the least to the greatest replication.
    """
    measured = pairs[pairs["published_s"].notna()]
    strategies = list(dict.fromkeys(measured["strategy"]))
    if not strategies:
        raise ValueError("none of the cells has a published figure")
    with style.applied():
        height = 1.5 + 0.32 * (len(measured) // len(strategies))
        drawn = style.grid(len(strategies), len(strategies), height)
        for ax, strategy in zip(drawn, strategies, strict=True):
            colour = style.colours([strategy])[strategy]
            rows = measured[measured["strategy"] == strategy].to_dict("records")
            for place, row in enumerate(rows):
                allowed = required(strategy, row["published_s"])
                ax.barh(place, allowed.high - allowed.low, left=allowed.low, **_RANGE)
                ax.plot(row["published_s"], place, **_DIAMOND)
                if not is_undefined(row["simulated_s"]):
                    ax.plot([row["least_s"], row["most_s"]], [place, place], color=colour, linewidth=2)
                    ax.plot(row["simulated_s"], place, "o", color=colour, markersize=5)
            low, high = ax.get_xlim()
            ax.set_xlim(low - 0.03 * (high - low), high + 0.03 * (high - low))
            ax.set(xlabel="recovery time (s)", title=strategy_name(strategy))
            style.name_rows(ax, [f"{row['tuples_per_s']:g} tuples/s, {row['fail_at_s']:g} s" for row in rows])
        drawn[0].set_ylabel("input rate, failure into window")
        for ax in drawn[1:]:
            ax.tick_params(axis="y", labelleft=False)
        style.legend_below(drawn[0].figure, _PUBLISHED_KEYS, 4)
    return drawn
