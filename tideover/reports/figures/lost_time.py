"""Time that is lost at each value of a setting, and to what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import facets, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

TOTAL = style.Key("all, with its 95 % interval", style.BLUE)
PARTS = ((style.ORANGE, "dashed"), (style.GREEN, "dotted"))
MARKS = (
    (style.INK, "dotted"),
    (style.INK, "dashed"),
    (style.GREY, "dotted"),
    (style.GREY, "dashed"),
)


def keys(parts: Mapping[str, str], marks: Mapping[str, float]) -> tuple[style.Key, ...]:
    """The legend; ``parts`` and ``marks`` as for `lost_time`."""
    looks = [*zip(parts.values(), PARTS, strict=False), *zip(marks, MARKS, strict=False)]
    return (TOTAL, *(style.Key(label, colour, shape) for label, (colour, shape) in looks))  # type: ignore[arg-type]


def lost_time(
    points: pd.DataFrame,
    parts: Mapping[str, str],
    marks: Mapping[str, float],
    label: str,
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """All that is lost (s a day) over the setting (s), with intervals, and at most two parts of it.

    ``points``: ``value_s``, ``lost``, ``low``, ``high`` (NaN: not known), and a column for each of ``parts``,
    which has its label; ``marks``: values (s) that are marked by a line, by label, four at most; ``label``:
    of the setting. What is far apart is drawn over its logarithm.
    """
    known = points[points["lost"].notna()].astype(float)
    with style.applied():
        ax = style.new_figure(3.3, style.COLUMN_IN).subplots() if ax is None else ax
        x, y = known["value_s"].to_numpy(), known["lost"].to_numpy()
        spread: Any = np.nan_to_num([y - known["low"].to_numpy(), known["high"].to_numpy() - y])
        look: Any = {"color": style.BLUE, "marker": "o", "markersize": 4.5, "capsize": 2.5, "elinewidth": 1.4}
        ax.errorbar(x, y, yerr=spread, zorder=3, **look)
        for name, (colour, shape) in zip(parts, PARTS, strict=False):
            part = known[name].to_numpy()
            drawn = part > 0  # the axis may be logarithmic
            ax.plot(x[drawn], part[drawn], color=colour, zorder=4, **style.LINES[shape])
        for value, (colour, shape) in zip(marks.values(), MARKS, strict=False):
            ax.axvline(value, color=colour, zorder=0, **style.LINES[shape])
        ax.set(xlabel=label, ylabel="time lost (s a day)")
        facets.axis(ax, np.array([*points["value_s"], *marks.values()], float), factors=True)
        if len(y) and 0 < facets.LOG_FROM * y.min() < y.max():
            facets.axis(ax, y, "y", factors=True)
            ax.set_ylim(y.min() / 3, None)
        else:
            ax.set_ylim(0, None)
        ax.grid(axis="y")
        if legend:
            style.legend_below(ax.figure, keys(parts, marks), 2)
    return ax
