"""What candidates cost by how far apart their checkpoints are, beside what formulas say of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import facets, style
from tideover.reports.formatting import number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
        facets.axis(ax, np.concatenate([xs, list(formulas.values())]))
        ax.grid(axis="y")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
