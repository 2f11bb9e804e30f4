"""The race of a plan: how many replications each candidate was given before it was known to be worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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
