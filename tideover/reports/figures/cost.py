"""What each strategy costs: CPU, network, store, buffered tuples and hosts, relative to a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tideover.models.schema.fields import named
from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.formatting import amount, fixed, is_undefined, number, size, strategy_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_UNITS = {"s": " (s)", "B": " (bytes)"}
_DRAWN = ("cpu_s", "network_bytes", "store_bytes", "peak_buffered_tuples", "hosts")
RESOURCES = {one.name: one.label + _UNITS.get(one.unit, "") for one in (named("runs", n) for n in _DRAWN)}
"""The costs that are drawn, and the titles of their charts."""


def cost(runs: pd.DataFrame, *, axes: Sequence[Axes] | None = None, apart: bool = False) -> list[Axes]:
    """Five small bar charts, mean per run, with amounts; factors are relative to ``baseline``.

    The baseline is ``none`` if it was run, else each resource's cheapest strategy. Where the baseline needs
    nothing of a resource there is no factor, and only amounts are written. ``apart``: each in a figure of its
    own, for a page that arranges them by the width of the screen.
    """
    means = _means(runs)
    with style.applied():
        drawn = list(axes) if axes is not None else _apart(len(means)) if apart else _five(means)
        for ax, (column, label) in zip(drawn, RESOURCES.items(), strict=True):
            _bars(ax, means[column], column, label)
    return drawn


def _means(runs: pd.DataFrame) -> pd.DataFrame:
    runs = conform("runs", runs)
    good = runs[runs["error"].isna()]
    return good.groupby("strategy", sort=False)[list(RESOURCES)].mean()


def baseline(means: pd.Series[float]) -> tuple[str, float]:
    """Name and value of what factors are relative to."""
    name = "none" if "none" in means.index else str(means.idxmin())
    return name, float(means[name])


def relative_to(runs: pd.DataFrame) -> str:
    """What the factors of ``cost`` are relative to, in words."""
    return _relative(_means(runs))


def _relative(means: pd.DataFrame) -> str:
    return strategy_name("none") if "none" in means.index else "the cheapest of each"


def _apart(count: int) -> list[Axes]:
    return [style.new_figure(0.35 + 0.33 * count, style.PANEL_IN).subplots() for _ in RESOURCES]


def _five(means: pd.DataFrame) -> list[Axes]:
    figure = style.new_figure(0.9 + 0.72 * len(means))
    grid = figure.subplots(2, 3)
    grid[1, 2].set_axis_off()
    grid[1, 2].text(0, 1.0, f"×: relative to {_relative(means)}", va="top", fontsize=8, color=style.MUTED)
    return list(grid.flat[:5])


def _bars(ax: Axes, means: pd.Series[float], column: str, label: str) -> None:
    """One bar a strategy, with its name and amount above it: to its left they would take half the width."""
    strategies = [str(name) for name in means.index]
    palette = style.colours(strategies)
    base = 0.0 if means.isna().all() else baseline(means)[1]
    for place, name in enumerate(strategies):
        value = float(means[name])
        if not is_undefined(value):
            ax.barh(place + 0.2, value, height=0.34, color=palette[name])
        text = f"{strategy_name(name)}  {_amount(value, column)}{_factor(value, base)}"
        ax.text(0.0, place - 0.04, text, va="bottom", fontsize=8)
    most = float(means.max()) if means.notna().any() else 0.0
    ax.set_xlim(0, most if most > 0 else 1.0)
    ax.set(ylim=(len(strategies) - 0.5, -0.5), title=label, xticks=[], yticks=[])
    ax.spines[["bottom", "left"]].set_visible(False)


def _amount(value: float, column: str) -> str:
    if column.endswith("_bytes"):
        return size(value)
    return f"{number(value)} s" if column.endswith("_s") else amount(value)


def _factor(value: float, base: float) -> str:
    if base <= 0 or is_undefined(value) or value == 0:
        return ""
    return f"  {fixed(value / base, 2)}×"
