"""How busy resources are over time: a line for each of the busiest, the darker the busier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.figures.hosts import loads
from tideover.reports.figures.shades import shade

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST = 20
"""Resources that are drawn: the busiest ones."""


def usage_over_time(
    usage: pd.DataFrame, failures_s: tuple[float, ...] = (), *, after_s: float = 0.0, ax: Axes | None = None
) -> Axes:
    """A row for each of the busiest resources (mean over the replications), over simulated time; failures as
    lines.
    """
    from matplotlib.colors import ListedColormap

    found: Any = loads(usage, after_s).sort_values("busy", ascending=False, kind="stable").head(MOST)
    table: Any = conform("usage", usage).pivot_table(
        index=["resource", "kind", "host"], columns="begin_s", values="busy", aggfunc="mean", dropna=False
    )
    ends = [*table.columns, float(usage["end_s"].max())]
    names = [_name(row) for row in found.itertuples(index=False)]
    with style.applied():
        if ax is None:
            ax = style.new_figure(0.75 + 0.2 * len(names)).subplots()
        for place, row in enumerate(found.itertuples(index=False)):
            values = table.loc[(row.resource, row.kind, row.host)].to_numpy(dtype=float)
            colours = ListedColormap([shade(value) for value in values])
            cells: dict[str, Any] = {"cmap": colours, "vmin": -0.5, "vmax": len(values) - 0.5}
            cells |= {"edgecolors": "face", "linewidth": 0.2}  # else the page shines through between them
            ax.pcolormesh(ends, [place - 0.45, place + 0.45], [list(range(len(values)))], **cells)
        for moment in failures_s:
            ax.axvline(moment, color=style.FAILURE, linewidth=1.0)
        ax.set(xlabel="simulated time (s)", yticks=range(len(names)), ylim=(len(names) - 0.5, -0.5))
        ax.set_yticklabels(names, fontsize=7.5)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    return ax


def _name(row: Any) -> str:
    on = "" if row.host != row.host or row.kind == "task" else f" of host {int(row.host)}"
    return f"{row.resource}{on}, {row.busy:.0%}"
