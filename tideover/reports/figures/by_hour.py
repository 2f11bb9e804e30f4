"""A measure by hour of the day, with the load of the day behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.models.schema.endings import LOSSY
from tideover.reports.figures import style
from tideover.reports.formatting import plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
