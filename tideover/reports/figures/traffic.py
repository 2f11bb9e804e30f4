"""What flows between hosts: a square table, the darker, the more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.reports.figures import style
from tideover.reports.figures.shades import text_on_traffic, traffic_shade
from tideover.reports.formatting import size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = Mapping[str, Any]
"""What the record says of two hosts."""
MOST_WRITTEN = 10
"""Hosts up to which the rates are written into the table."""
_CELL_IN, _MARGIN_IN = 0.54, 0.6
_MOST_TICKS = 12
_STEPS = [factor * 10**power for power in range(6) for factor in (1, 2, 5)]


def traffic(pairs: Sequence[Pair], hosts: Sequence[int], *, ax: Axes | None = None) -> Axes:
    """A row for each host that sends, a column for each that receives: bytes per second between them.

    ``pairs``: ``between_hosts`` of the record of ``run --json``; ``hosts``: those that have tasks, in order.
    Of few hosts the rates are written out, and beside them what each sends and receives in all.
    """
    import numpy as np
    from matplotlib.colors import to_rgba

    count, few = len(hosts), len(hosts) <= MOST_WRITTEN
    place = {host: number for number, host in enumerate(hosts)}
    rates, cells = np.zeros((count, count)), np.zeros((count, count, 4))
    most = max((pair["bytes_per_s"] for pair in pairs), default=0.0)
    for pair in pairs:
        at = place[pair["from_host"]], place[pair["to_host"]]
        rates[at] = pair["bytes_per_s"]
        cells[at] = to_rgba(traffic_shade(rates[at], most))
    with style.applied():
        if ax is None:
            side = _MARGIN_IN + (_CELL_IN * (count + 1) if few else style.COLUMN_IN + 1)
            ax = style.new_figure(side, side).subplots()
        ax.imshow(cells, interpolation="none", aspect="equal")
        step = next(step for step in _STEPS if count <= _MOST_TICKS * step)
        names = {number: str(hosts[number]) for number in range(0, count, step)}
        if few:
            _written(ax, rates)
            names[count] = "all"
        ax.set(xlabel="to host", ylabel="from host", xlim=(-0.5, count - 0.5 + few))
        ax.set_ylim(count - 0.5 + few, -0.5)
        ax.set_xticks(list(names), list(names.values()))
        ax.set_yticks(list(names), list(names.values()))
        ax.xaxis.set_label_position("top")
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(not few)
    return ax


def _written(ax: Axes, rates: Any) -> None:
    """The rates in their cells, and the sums beside them."""
    words: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7}
    last = len(rates)
    for row in range(last):
        for column in range(last):
            if rates[row, column]:
                colour = text_on_traffic(rates[row, column], rates.max())
                ax.text(column, row, _short(rates[row, column]), color=colour, **words)
        ax.text(last, row, _short(rates[row].sum()), fontweight="bold", **words)
        ax.text(row, last, _short(rates[:, row].sum()), fontweight="bold", **words)
    ax.text(last, last, _short(rates.sum()), fontweight="bold", **words)


def _short(rate: float) -> str:
    """``87.9`` and ``kB/s`` in two lines, for a small cell."""
    return f"{size(rate)}/s".replace(" ", "\n")
