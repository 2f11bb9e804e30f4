"""Published and simulated recovery times, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tideover.reports.figures import style
from tideover.reports.formatting import is_undefined, strategy_name
from tideover.reports.published import required

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def published(pairs: pd.DataFrame, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """One Axes for each strategy that the study measured, each on its own scale; rows are the study's cells.

    ``pairs`` comes from ``published.pair_recoveries``. A bar is the range that the published figure allows, a
    diamond the figure, a dot the simulated mean, a line from the least to the greatest replication.
    """
    measured = pairs[pairs["published_s"].notna()]
    strategies = list(dict.fromkeys(measured["strategy"]))
    if not strategies:
        raise ValueError("none of the cells has a published figure")
    with style.applied():
        drawn = list(axes) if axes is not None else _row(len(strategies), len(measured) // len(strategies))
        for ax, name in zip(drawn, strategies, strict=True):
            _cells(ax, measured[measured["strategy"] == name], str(name))
        drawn[0].set_ylabel("input rate, failure into window")
        for ax in drawn[1:]:
            ax.tick_params(axis="y", labelleft=False)
        style.legend_below(drawn[0].figure, _KEYS, 4)
    return drawn


_RANGE: dict[str, Any] = {"color": style.MUTED, "alpha": 0.25, "height": 0.56, "linewidth": 0}
_PUBLISHED: dict[str, Any] = {
    "marker": "D",
    "markersize": 7,
    "markerfacecolor": style.PAPER,
    "color": style.INK,
    "linestyle": "none",
}


_KEYS = (
    style.Key("agrees with the published", style.MUTED, "band", {"alpha": 0.25}),
    style.Key("published", style.INK, "mark", _PUBLISHED),
    style.Key("simulated, mean", style.INK, "mark", {"markersize": 5}),
    style.Key("simulated, least to greatest", style.INK, look={"linewidth": 2}),
)


def _row(count: int, cells: int) -> list[Axes]:
    figure = style.new_figure(1.5 + 0.32 * cells)
    return list(figure.subplots(1, count, squeeze=False)[0])


def _cells(ax: Axes, cells: pd.DataFrame, strategy: str) -> None:
    colour = style.colours([strategy])[strategy]
    records = cells.to_dict("records")
    for place, row in enumerate(records):
        allowed = required(strategy, row["published_s"])
        ax.barh(place, allowed.high - allowed.low, left=allowed.low, **_RANGE)
        ax.plot(row["published_s"], place, **_PUBLISHED)
        if not is_undefined(row["simulated_s"]):
            ax.plot([row["least_s"], row["most_s"]], [place, place], color=colour, linewidth=2)
            ax.plot(row["simulated_s"], place, "o", color=colour, markersize=5)
    ax.set_yticks(
        range(len(records)), [f"{r['tuples_per_s']:g} tuples/s, {r['fail_at_s']:g} s" for r in records]
    )
    low, high = ax.get_xlim()
    ax.set_xlim(low - 0.03 * (high - low), high + 0.03 * (high - low))
    ax.set(ylim=(len(records) - 0.5, -0.5), xlabel="recovery time (s)", title=strategy_name(strategy))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
