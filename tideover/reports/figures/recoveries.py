"""Time of recovery over the input rate: what was measured, and what a fit predicts between and beyond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tideover.reports.figures import style
from tideover.reports.formatting import plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
        drawn = list(axes) if axes is not None else _row(len(workloads))
        for ax, workload in zip(drawn, workloads, strict=True):
            mine = points[points["workload"] == workload]
            lines = curves[curves["workload"] == workload]
            for place, interval in enumerate(every):
                look = {"color": COLOURS[place % len(COLOURS)]}
                at = mine[mine["checkpoint_interval_s"] == interval]
                _line(ax, lines[lines["checkpoint_interval_s"] == interval], look, measured=len(at) > 0)
                _points(ax, at, look, MARKERS[place % len(MARKERS)])
            _finish(ax, str(workload), mine)
        drawn[0].set_ylabel("time of recovery (s)")
        style.legend_below(drawn[0].figure, _keys(every, {*points["checkpoint_interval_s"]}), 4)
    return drawn


def _row(count: int) -> list[Axes]:
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


def _points(ax: Axes, at: pd.DataFrame, look: dict[str, Any], marker: str) -> None:
    for row in at.to_dict("records"):
        rate, measured, unseen = (row[name] for name in ("rate_per_s", "measured_s", "left_out_s"))
        ax.plot([rate, rate], [measured, unseen], linewidth=0.8, zorder=3, **look)
        ax.plot(rate, unseen, marker, markersize=4.5, markerfacecolor=style.PAPER, zorder=4, **look)
        ax.plot(rate, measured, marker, markersize=5.5, zorder=5, **look)


def _finish(ax: Axes, workload: str, points: pd.DataFrame) -> None:
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
