"""Cost against recovery against latency: all candidates of a plan, and those that nothing else beats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
            _marks(ax, mine, marker, shade)
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


def _marks(ax: Axes, mine: pd.DataFrame, marker: str, shade: dict[str, Any]) -> None:
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
