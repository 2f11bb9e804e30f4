"""Measured and predicted figures: every pair against the identity, residuals, and backlogs on one axis.

Called by the pages of calibrations, by `figures`; a measure or a fault of its own is in
`reports.calibration.tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.calibration.tables import FAILED_BEYOND, FAULTS, MEASURES, fault_name, measure_name
from tideover.reports.figures import style
from tideover.reports.formatting import strategy_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_BAND: dict[str, Any] = {"color": style.MUTED, "alpha": 0.14, "linewidth": 0}
_RING: dict[str, Any] = {"marker": "o", "markersize": 9.5, "markerfacecolor": "none", "linestyle": "none"}
_RING |= {"markeredgecolor": style.FAILURE, "markeredgewidth": 1.2}


def predictions(pairs: pd.DataFrame) -> list[Axes]:
    """One Axes a measure: predicted over measured, both logarithmic, with the identity as a line.

    ``pairs`` comes from ``calibration.predictions.judged``. Filled marks are held-out episodes, open ones
    those of the fit; bars are 90 % intervals of prediction; a ring marks a failed prediction. Pairs without
    two positive figures cannot be drawn.
    """
    known = pairs[(pairs["measured"] > 0) & (pairs["predicted"] > 0)]
    measures = in_order(known["measure"], MEASURES)
    with style.applied():
        drawn = _grid(len(measures), 2.55)
        for ax, measure in zip(drawn, measures, strict=True):
            part = known[known["measure"] == measure]
            _identity(ax, part)
            for row in part.to_dict("records"):
                x, y, low, high = (float(row[key]) for key in ("measured", "predicted", "low", "high"))
                if low == low and high == high:  # NaN: there is no interval
                    ends = [max(low, ax.get_ylim()[0]), min(high, ax.get_ylim()[1])]
                    colour = style.colours([row["strategy"]])[row["strategy"]]
                    ax.plot([x, x], ends, color=colour, linewidth=1.0, alpha=0.55, zorder=2)
                ax.plot(x, y, **_mark(row), zorder=3)
                if row["failed"]:
                    ax.plot(x, y, **_RING, zorder=4)
            ax.set(title=measure_name(measure), xlabel="measured (s)", ylabel="predicted (s)")
        style.legend_below(drawn[0].figure, _keys(known, interval=True), 4)
    return drawn


def catch_up(rows: pd.DataFrame) -> list[Axes]:
    """One Axes a workload: recoveries predicted by fits that had not seen their settings over measured
    ones, both logarithmic, with 90 % intervals; open marks are the plain fluid law's with profiled
    capacities.

    ``rows`` is the table ``catch_up``; what did not end, or is predicted not to, cannot be drawn.
    """
    known = rows[rows["ended"] & (rows["predicted_s"] > 0)]
    known = known.rename(columns=lambda name: name.removesuffix("_s"))
    workloads = list(dict.fromkeys(known["workload"]))
    looks: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.5}
    ours, plain = style.BLUE, style.VERMILION
    with style.applied():
        drawn = _grid(len(workloads), 2.55)
        for ax, workload in zip(drawn, workloads, strict=True):
            part = known[known["workload"] == workload]
            _identity(ax, part)
            bottom, top = ax.get_ylim()
            ends = part[["low", "high"]].fillna(top).clip(bottom, top).to_numpy()
            ax.vlines(part["measured"], *ends.T, color=ours, linewidth=1.0, alpha=0.55, zorder=2)
            law = part["fluid"].where(part["fluid"].between(bottom, top))
            ax.plot(part["measured"], law, **looks, color=plain, markerfacecolor=style.PAPER, zorder=3)
            ax.plot(part["measured"], part["predicted"], **looks, color=ours, zorder=4)
            ax.set(title=str(workload), xlabel="measured (s)", ylabel="predicted (s)")
        hollow = {"markersize": 4.5, "markerfacecolor": style.PAPER}
        keys = [
            style.Key("by catch-up capacity, settings not seen", ours, "mark", {"markersize": 4.5}),
            style.Key("90 % interval", ours, look={"alpha": 0.55}),
            style.Key("fluid law, profiled capacity", plain, "mark", hollow),
        ]
        style.legend_below(drawn[0].figure, keys, 3)
    return drawn


def residuals(pairs: pd.DataFrame, over: str) -> list[Axes]:
    """One Axes a measure: error of prediction in percent over ``rate_per_s``, ``keys`` or ``moment_s``.

    Errors beyond +200 % are drawn at the edge, as arrows: they would hide all others.
    """
    known = pairs[np.isfinite(pairs["error"]) & pairs[over].notna()]
    measures = in_order(known["measure"], MEASURES)
    with style.applied():
        drawn = _grid(len(measures), 2.0)
        for ax, measure in zip(drawn, measures, strict=True):
            _residual_axes(ax, known[known["measure"] == measure], over)
            ax.set(title=measure_name(measure), xlabel=_CAUSES[over], ylabel="error (%)")
        style.legend_below(drawn[0].figure, _keys(known, interval=False), 4)
    return drawn


def backlogs(timelines: pd.DataFrame) -> list[Axes]:
    """One Axes for each strategy and fault, with the real and the simulated backlog of one episode.

    ``timelines`` has exactly one episode for each strategy and fault.
    """
    parts = dict(iter(timelines.groupby(["strategy", "fault"], sort=False)))
    strategies = list(dict.fromkeys(timelines["strategy"]))
    places = [(strategy, fault) for fault in in_order(timelines["fault"], FAULTS) for strategy in strategies]
    with style.applied():
        drawn = _grid(len(places), 1.9, len(strategies))
        for ax, (strategy, fault) in zip(drawn, places, strict=True):
            if (strategy, fault) not in parts:
                ax.set_axis_off()
                continue
            for kind, line in _LINES.items():
                part = parts[strategy, fault]
                mine = part[part["kind"] == kind].sort_values("at_s", kind="stable")
                colour = style.colours([strategy])[strategy] if kind == "simulated" else style.INK
                x, y = (mine[name].to_numpy(dtype=float) for name in ("at_s", "backlog"))
                ax.plot(x, y, **{"label": kind, "color": colour, **line})
            ax.axvline(0.0, color=style.FAILURE, linewidth=1.0, zorder=0.8)
            ax.set_ylim(0, None)
            ax.grid(axis="y")
            ax.locator_params(axis="y", nbins=4)
            ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            ax.set_title(f"{strategy_name(strategy)}\n{fault_name(fault)}", fontsize=8.5)
            ax.set(xlabel="time from the fault (s)", ylabel="backlog (rows)")
        style.legend_below(drawn[0].figure, _BACKLOG_KEYS, 3)
    return [ax for ax, place in zip(drawn, places, strict=True) if place in parts]


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Each name once, the known ones first and in their own order.

    >>> in_order(["mine", "b", "mine"], ["a", "b"])
    ['b', 'mine']
    """
    found = dict.fromkeys(names)
    return [name for name in dict.fromkeys([*known, *found]) if name in found]


_CAUSES = {
    "rate_per_s": "input rate (rows/s)",
    "keys": "keys",
    "moment_s": "time since the batch or checkpoint began (s)",
}
_EDGE = 200.0


def _grid(count: int, row_in: float, columns: int = 3) -> list[Axes]:
    if not count:
        raise ValueError("there is nothing to be drawn")
    return style.grid(count, columns, 0.7 + row_in * -(-count // columns))


def _identity(ax: Axes, part: pd.DataFrame) -> None:
    """The identity, the band in which a prediction has not failed, and the same limits on both axes."""
    columns = ["measured", "predicted"], ["low", "high"]
    marks, bars = (part[names].to_numpy(dtype=float) for names in columns)
    bars = np.clip(bars[np.isfinite(bars)], np.min(marks) / 2, np.max(marks) * 2)  # wide ones leave the axes
    low = max(0.6 * float(np.min(marks)), 1e-3)
    low, high = min([low, *bars]), max([1.6 * float(np.max(marks)), *bars])
    ends = np.array([low, high])
    ax.fill_between(ends, ends * (1 - FAILED_BEYOND), ends * (1 + FAILED_BEYOND), zorder=0.5, **_BAND)
    ax.plot(ends, ends, color=style.MUTED, linewidth=1.0, zorder=1, label="identity")
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    ax.set_aspect("equal")
    for axis in (ax.xaxis, ax.yaxis):
        _plain_ticks(axis, low, high)


def _plain_ticks(axis: Any, low: float, high: float) -> None:
    """A few numbers as people write them; none of the small ticks between."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ticks: list[float] = []
    for bases in ((1, 2, 5), (1, 1.5, 2, 3, 4, 6, 8)):
        if len(ticks) < 3:
            steps = [base * 10.0**power for power in range(-4, 9) for base in bases]
            ticks = [step for step in steps if low <= step <= high]
    while len(ticks) > 5:
        ticks = ticks[::2] if len(ticks) < 9 else [t for t in ticks if f"{t:e}"[0] == "1"]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def _mark(row: Mapping[Any, Any]) -> dict[str, Any]:
    strategy = row["strategy"]
    colour = style.colours([strategy])[strategy]
    return {
        "marker": style.markers([strategy])[strategy],
        "markersize": 4.6,
        "color": colour,
        "markerfacecolor": colour if row["held_out"] else style.PAPER,
        "markeredgewidth": 1.0,
        "linestyle": "none",
    }


def _residual_axes(ax: Axes, part: pd.DataFrame, over: str) -> None:
    ax.axhspan(-100 * FAILED_BEYOND, 100 * FAILED_BEYOND, **_BAND)
    ax.axhline(0, color=style.MUTED, linewidth=1.0)
    for row in part.to_dict("records"):
        x, error, mark = float(row[over]), 100 * float(row["error"]), _mark(row)
        ax.plot(x, min(error, _EDGE), **(mark | {"marker": "^"} if error > _EDGE else mark), zorder=3)
        if row["failed"]:
            ax.plot(x, min(error, _EDGE), **_RING, zorder=4)
    values = part[over]
    if over != "moment_s" and len(values) and values.min() > 0:
        ax.set_xscale("log")
        low, high = float(values.min()) / 1.4, float(values.max()) * 1.4
        ax.set_xlim(low, high)
        _plain_ticks(ax.xaxis, low, high)
        style.plain_ticks(ax.xaxis)
    most = min(float((100 * part["error"].abs()).max()), _EDGE) if len(part) else 0.0
    reach = max(40.0, 1.15 * most)
    ax.set_ylim(max(-105.0, -reach), reach)


_LINES: dict[str, dict[str, Any]] = {
    "measured": {"linewidth": 1.3},
    "simulated": {"linewidth": 1.5, "linestyle": (0, (4, 1.6))},
}
_BACKLOG_KEYS = (
    style.Key("measured", style.INK, look=_LINES["measured"]),
    style.Key("simulated (strategy's colour)", style.MUTED, look=_LINES["simulated"]),
    style.Key("fault", style.FAILURE, look={"linewidth": 1.0}),
)


def _keys(pairs: pd.DataFrame, *, interval: bool) -> Iterator[style.Key]:
    for name in dict.fromkeys(pairs["strategy"]):
        look = _mark({"strategy": name, "held_out": True})
        yield style.Key(strategy_name(name), style.INK, "mark", look)
    yield style.Key("held out", style.INK, "mark", {"markersize": 4.6})
    open_mark = {"markersize": 4.6, "markerfacecolor": style.PAPER}
    yield style.Key("seen by the fit", style.INK, "mark", open_mark)
    yield style.Key("failed", style.INK, "mark", _RING)
    if interval:
        yield style.Key("90 % interval", style.INK, look={"linewidth": 1.0, "alpha": 0.55})
    yield style.Key(f"within {100 * FAILED_BEYOND:.0f} %", style.MUTED, "band", {"alpha": 0.14})
