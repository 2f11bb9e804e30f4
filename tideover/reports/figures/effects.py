"""Main effects: the mean by the values of each factor, over all values of the others."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from tideover.reports.figures import facets, style
from tideover.reports.figures.multiples import thinned

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LETTERS = 84
"""As many letters fit into the width of the figure."""
SLANTED_FROM = 5
"""More names than this are written aslant."""


def main_effects(
    effects: pd.DataFrame, *, quantity: str = facets.QUANTITY, axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """A panel for each factor, on one scale: a line over numbers, a mark each for names, with intervals.

    ``effects``: a row for each value of each factor, with ``factor``, ``value`` (text), ``number`` (NaN for
    names), ``mean``, ``low``, ``high`` and ``late`` as in ``facets``; ``grand_mean`` of all: a dashed line.
    """
    factors = list(dict.fromkeys(effects["factor"]))
    with style.applied():
        drawn = facets.panels(effects, "factor", None, 2.4, axes, share_x=False)
        for place, (ax, mine) in enumerate(drawn):
            _panel(ax, mine, LETTERS // min(facets.ACROSS, len(factors)))
            ax.axhline(float(mine["grand_mean"].iloc[0]), color=style.MUTED, lw=0.8, ls=(0, (4, 3)), zorder=0)
            if place % facets.ACROSS == 0:
                ax.set_ylabel(quantity)
            ax.set_title(factors[place])
            ax.grid(axis="y")
            # one scale; room for a whole mark on top
            top = float(np.nanmax(effects[["mean", "high"]].to_numpy(dtype=float), initial=0.0))
            ax.set_ylim(0, 1.08 * top if top else None)
    return [ax for ax, _ in drawn]


def _panel(ax: Axes, mine: pd.DataFrame, letters: int) -> None:
    """``letters``: so many fit below it, side by side."""
    known = mine[mine["mean"].notna()]
    numbers, mean, low, high = (
        known[name].to_numpy(dtype=float) for name in ("number", "mean", "low", "high")
    )
    late = (known["late"] > 0).to_numpy()
    interval = np.nan_to_num(np.array([mean - low, high - mean]))
    if len(mine) and mine["number"].notna().all():
        look = thinned({"color": style.BLUE, "marker": "o"}, len(known))
        ax.plot(numbers, mean, markersize=4, **look)
        ax.fill_between(numbers, np.maximum(low, 0), high, alpha=0.16, linewidth=0, color=style.BLUE)
        facets.axis(ax, mine["number"].to_numpy(dtype=float))
        if late.any():
            facets.at_least(ax, numbers[late], mean[late], style.BLUE)
        return
    names = list(mine["value"])
    colours = facets.colours_of(names)
    for name, least, *ends in zip(known["value"], late, mean, *interval, strict=True):
        at = names.index(name)
        if least:
            facets.at_least(ax, np.array([at]), np.array([ends[0]]), colours[name])
            continue
        ax.errorbar(
            [at], [ends[0]], yerr=[[ends[1]], [ends[2]]], fmt="o", ms=6, capsize=3, color=colours[name]
        )
    ax.set_xlim(-0.6, len(names) - 0.4)
    if len(names) > SLANTED_FROM:
        ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    else:
        wrapped = [fill(name, letters // len(names), break_long_words=False) for name in names]
        ax.set_xticks(range(len(names)), wrapped)
