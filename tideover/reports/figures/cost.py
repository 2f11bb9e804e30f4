"""What each strategy costs: CPU, network, store, buffered tuples and hosts, beside the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.words import amount, fixed, is_undefined, number, size, strategy_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

RESOURCES = {
    "cpu_s": "CPU time (s)",
    "network_bytes": "network (bytes)",
    "store_bytes": "store (bytes)",
    "peak_buffered_tuples": "buffered tuples (peak)",
    "hosts": "hosts",
}


def cost(runs: pd.DataFrame, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Five small bar charts, mean per run, with amounts; factors are relative to ``baseline``.

    The baseline is ``none`` if it was run, else each resource's cheapest strategy. Where the baseline needs
    nothing of a resource there is no factor, and only amounts are written.
    """
    runs = conform("runs", runs)
    good = runs[runs["error"].isna()]
    means = good.groupby("strategy", sort=False)[list(RESOURCES)].mean()
    with style.applied():
        drawn = list(axes) if axes is not None else _five(len(means), _reference(means))
        for ax, (column, label) in zip(drawn, RESOURCES.items(), strict=True):
            _bars(ax, means[column], column, label)
        for ax in drawn[1:3] + drawn[4:]:
            ax.tick_params(axis="y", labelleft=False)
    return drawn


def baseline(means: pd.Series[float]) -> tuple[str, float]:
    """Name and value of what factors are relative to."""
    name = "none" if "none" in means.index else str(means.idxmin())
    return name, float(means[name])


def _reference(means: pd.DataFrame) -> str:
    return strategy_name("none") if "none" in means.index else "the cheapest of each"


def _five(count: int, relative_to: str) -> list[Axes]:
    figure = style.new_figure(1.5 + 0.56 * count)
    grid = figure.subplots(2, 3)
    grid[1, 2].set_axis_off()
    grid[1, 2].text(0, 1.0, f"×: relative to {relative_to}", va="top", fontsize=8, color=style.MUTED)
    return list(grid.flat[:5])


def _bars(ax: Axes, means: pd.Series[float], column: str, label: str) -> None:
    import seaborn as sns

    strategies = [str(name) for name in means.index]
    names = [strategy_name(name) for name in strategies]
    palette = {strategy_name(name): colour for name, colour in style.colours(strategies).items()}
    sns.barplot(
        x=means.to_numpy(dtype=float),
        y=names,
        hue=names,
        palette=palette,
        width=0.62,
        legend=False,
        ax=ax,
        saturation=1,
    )
    base = 0.0 if means.isna().all() else baseline(means)[1]
    for place, value in enumerate(means):
        text = f" {_amount(float(value), column)}{_factor(float(value), base)}"
        ax.text(0.0 if is_undefined(float(value)) else float(value), place, text, va="center", fontsize=7.5)
    most = float(means.max()) if means.notna().any() else 0.0
    ax.set_xlim(0, 2.15 * most if most > 0 else 1.0)
    ax.set(xlabel="", ylabel="", title=label, xticks=[])
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)


def _amount(value: float, column: str) -> str:
    if column.endswith("_bytes"):
        return size(value)
    return f"{number(value)} s" if column.endswith("_s") else amount(value)


def _factor(value: float, base: float) -> str:
    if base <= 0 or is_undefined(value) or value == 0:
        return ""
    return f"  {fixed(value / base, 2)}×"
