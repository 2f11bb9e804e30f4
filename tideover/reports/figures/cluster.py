"""Who runs where, what flows between them, and how busy all of it is.

Called by the page of a run, and by notebooks. What flows is of the record of ``run --json``; what is busy of
the table ``usage``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.figures.style import shade, text_on, traffic_shade
from tideover.reports.formatting import number, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# Who runs where, and how busy all of it is: hosts as boxes, in them tasks, cores and cards.

MOST_HOSTS = 24
"""Hosts that are drawn: the busiest ones, if there are more."""
ACROSS = 4
"""Boxes in a row."""
_ROW, _HEAD, _FOOT, _GAP = 0.23, 0.34, 0.05, 0.2
"""Heights, in inches, of a line in a box, of its head and foot, and of what is between boxes."""
_SHARED = {"cores": 0, "card out": 1, "card in": 2, "store": 3}
"""What a host's tasks share, in the order in which it is drawn."""


def loads(usage: pd.DataFrame, after_s: float = 0.0) -> pd.DataFrame:
    """Part of the time (ratio) that each resource was busy from ``after_s`` on: the mean over stretches and
    replications; columns resource, kind, host, busy.
    """
    usage = conform("usage", usage)
    late = usage[usage["begin_s"] >= after_s]
    usage = usage if late.empty else late
    length = usage["end_s"] - usage["begin_s"]
    parts = usage.assign(length=length, work=usage["busy"] * length)
    keys = ["resource", "kind", "host"]
    total = parts.groupby(keys, dropna=False, sort=False)[["work", "length"]].sum()
    return total.assign(busy=total["work"] / total["length"]).reset_index()[[*keys, "busy"]]


def hosts(usage: pd.DataFrame, *, racks: int = 1, after_s: float = 0.0) -> Axes:
    """A box for each host with its cores, cards and tasks; the darker, the busier, and the figure beside it.

    ``racks``: hosts go round so many racks, which their boxes name if there are several. Of more than
    ``MOST_HOSTS`` hosts those with the busiest resource are drawn.
    """
    found = loads(usage, after_s)
    place = found["kind"].map(lambda kind: _SHARED.get(kind, len(_SHARED)))
    ordered = found.assign(place=place).sort_values(["place", "resource"], kind="stable")
    every = [(int(float(str(host))), mine) for host, mine in ordered.groupby("host")]
    busiest = sorted(every, key=lambda box: -box[1]["busy"].max())[:MOST_HOSTS]
    boxes = sorted(busiest, key=lambda box: box[0])
    across = max(1, min(ACROSS, len(boxes)))
    rows = [boxes[first : first + across] for first in range(0, len(boxes), across)]
    heights = [_HEAD + _FOOT + _ROW * max(len(lines) for _, lines in row) for row in rows]
    height = sum(heights) + _GAP * len(rows)
    with style.applied():
        ax = style.new_axes(height + 0.1, min(style.WIDTH_IN, 1.75 * across))
        top = 0.0
        for row, tall in zip(rows, heights, strict=True):
            for column, (host, lines) in enumerate(row):
                left, width = column + 0.03, 0.94
                _rectangle(ax, left, top, width, tall, "none")
                head = f"host {host}" + (f", rack {host % racks}" if racks > 1 else "")
                ax.text(left + 0.04, top + _HEAD / 2, head, va="center", fontsize=8.5, fontweight="bold")
                for at, (name, busy) in enumerate(zip(lines["resource"], lines["busy"], strict=True)):
                    y, colour = top + _HEAD + at * _ROW, shade(busy)
                    look: dict[str, Any] = {"edgecolor": style.PAPER, "linewidth": 0.6}
                    _rectangle(ax, left + 0.03, y, width - 0.06, _ROW * 0.92, colour, **look)
                    words: dict[str, Any] = {"va": "center", "fontsize": 7.5, "color": text_on(colour)}
                    short = name if len(name) <= 17 else f"{name[:16]}…"
                    ax.text(left + 0.06, y + _ROW * 0.46, short, **words)
                    ax.text(left + width - 0.06, y + _ROW * 0.46, f"{busy:.0%}", ha="right", **words)
            top += tall + _GAP
        ax.set(xlim=(0, across), ylim=(height, 0))
        style.bare(ax)
    return ax


def _rectangle(ax: Axes, x: float, y: float, width: float, height: float, fill: str, **look: Any) -> None:
    from matplotlib.patches import Rectangle

    edge: dict[str, Any] = {"edgecolor": style.MUTED, "linewidth": 0.8} | look
    ax.add_patch(Rectangle((x, y), width, height, facecolor=fill, **edge))


# The components as boxes, and what flows between them as arrows: the wider, the more bytes.

Flow = Mapping[str, Any]
"""What the record says of an edge, or of two hosts."""
_LEVEL_IN, _HIGH = 1.0, 0.46
"""Height of a level with the arrows to the next (inches), and of a box, in heights of a level."""
_HALF, _LANE = 0.4, 0.7
"""Half of a box, and what an edge has for itself that passes a level, in widths of a box with its words."""
_THIN_PT, _WIDE_PT = 0.8, 5.0


def topology(flows: Sequence[Flow], usage: pd.DataFrame, *, after_s: float = 0.0) -> Axes:
    """A box for each component, spouts at the top, as dark as its busiest task is busy from ``after_s`` on;
    an arrow for each edge, with messages and bytes per second, and how much of it goes to other hosts.
    """
    ends = [tuple(flow["edge"].split("->", 1)) for flow in flows]
    levels: dict[str, int] = {}
    """How many edges the longest way from a spout has: edges are in topological order of their ends."""
    for up, down in ends:
        levels.setdefault(up, 0)
        levels[down] = max(levels.get(down, 0), levels[up] + 1)
    rows: dict[int, list[str]] = {}
    for name, level in levels.items():
        rows.setdefault(level, []).append(name)
    across = max((len(row) for row in rows.values()), default=1)
    beside = [levels[down] - levels[up] > 1 for up, down in ends]
    wide = across + _LANE * sum(beside)
    at = {
        name: ((place + 0.5) * across / len(row), float(level))
        for level, row in rows.items()
        for place, name in enumerate(row)
    }
    found = loads(usage, after_s)
    tasks = found[found["kind"] == "task"]
    of_component = dict(iter(tasks.groupby(tasks["resource"].str.rpartition(".")[0], sort=False)))
    with style.applied():
        height = _LEVEL_IN * (len(rows) - 1) + _LEVEL_IN * _HIGH + 0.1
        ax = style.new_axes(height, min(style.WIDTH_IN, 1.0 + 2.6 * wide))
        most, lane = max((flow["bytes_per_s"] for flow in flows), default=0.0), float(across)
        for flow, (up, down), passes in zip(flows, ends, beside, strict=True):
            _arrow(ax, flow, at[up], at[down], most, lane if passes else None, across / 2 - 0.01)
            lane += _LANE * passes
        for name, (x, y) in at.items():
            mine = of_component.get(name)
            busy = 0.0 if mine is None else float(mine["busy"].max())
            _rectangle(ax, x - _HALF, y - _HIGH / 2, 2 * _HALF, _HIGH, shade(busy), zorder=3)
            words: dict[str, Any] = {"ha": "center", "va": "center", "color": text_on(shade(busy))}
            ax.text(x, y - 0.22 * _HIGH, name, fontsize=9, fontweight="bold", zorder=4, **words)
            if mine is not None:
                counts = ((len(mine), "task"), (mine["host"].nunique(), "host"))
                said = " on ".join(f"{n} {what}" + "s" * (n != 1) for n, what in counts)
                ax.text(x, y + 0.22 * _HIGH, f"{said}, busiest {busy:.0%}", fontsize=7.5, zorder=4, **words)
        ax.set(xlim=(0, wide), ylim=(len(rows) - 1 + 0.5 * _HIGH + 0.02, -0.5 * _HIGH - 0.02))
        style.bare(ax)
    return ax


def _arrow(
    ax: Axes, flow: Flow, start: Any, end: Any, most: float, lane: float | None, left_of: float
) -> None:
    """Draw an edge, and what flows beside its middle: to the left of it if that is ``left_of`` here.

    ``lane``: where it goes down, beside all boxes, if it passes a level.
    """
    (x, y), (to_x, to_y), carried = start, end, flow["bytes_per_s"]
    wide = _THIN_PT + (carried / most if most else 0.0) * (_WIDE_PT - _THIN_PT)
    look: dict[str, Any] = {"arrowstyle": "-|>,head_width=0.35,head_length=0.6", "mutation_scale": 10}
    look |= {"linewidth": wide, "color": style.MUTED, "shrinkA": 0, "shrinkB": 0, "joinstyle": "miter"}
    if lane is not None:
        ax.plot([x + _HALF, lane, lane], [y, y, to_y], color=style.MUTED, linewidth=wide, zorder=1)
        ax.annotate("", (to_x + _HALF, to_y), (lane, to_y), arrowprops=look, zorder=1)
        middle = lane, y + 0.5
    else:
        ax.annotate("", (to_x, to_y - _HIGH / 2), (x, y + _HIGH / 2), arrowprops=look, zorder=1)
        middle = (x + to_x) / 2, (y + to_y) / 2
    away = 100 * flow["between_hosts_per_s"] / carried if carried else 0.0
    told = f"{number(flow['messages_per_s'])} messages/s, {size(carried)}/s\n{away:.0f} % to other hosts"
    left = middle[0] < left_of
    words: dict[str, Any] = {"va": "center", "ha": "right" if left else "left", "fontsize": 7.5}
    words |= {"bbox": {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}, **style.POINTS}
    ax.annotate(told, middle, xytext=(-8 if left else 8, 0), zorder=2, **words)


# What flows between hosts: a square table, the darker, the more.

MOST_WRITTEN = 10
"""Hosts up to which the rates are written into the table."""
_MOST_TICKS = 12


def traffic(pairs: Sequence[Flow], hosts: Sequence[int]) -> Axes:
    """A row for each host that sends, a column for each that receives: bytes per second between them.

    ``pairs``: ``between_hosts`` of the record; ``hosts``: those that have tasks, in order. Of few hosts the
    rates are written out, and beside them what each sends and receives in all.
    """
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
        side = 0.6 + (0.54 * (count + 1) if few else style.COLUMN_IN + 1)
        ax = style.new_axes(side, side)
        ax.imshow(cells, interpolation="none", aspect="equal")
        steps = (factor * 10**power for power in range(6) for factor in (1, 2, 5))
        step = next(step for step in steps if count <= _MOST_TICKS * step)
        names = {number: str(hosts[number]) for number in range(0, count, step)}
        if few:
            names[count] = "all"
            for row in range(count):
                for column, rate in enumerate(rates[row]):
                    if rate:
                        _write(ax, row, column, rate, color=text_on(traffic_shade(rate, most)))
                _write(ax, row, count, rates[row].sum(), fontweight="bold")
                _write(ax, count, row, rates[:, row].sum(), fontweight="bold")
            _write(ax, count, count, rates.sum(), fontweight="bold")
        ax.set(xlabel="to host", ylabel="from host", xlim=(-0.5, count - 0.5 + few))
        ax.set_ylim(count - 0.5 + few, -0.5)
        ax.set_xticks(list(names), list(names.values()))
        ax.set_yticks(list(names), list(names.values()))
        ax.xaxis.set_label_position("top")
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(not few)
    return ax


def _write(ax: Axes, row: int, column: int, rate: float, **look: Any) -> None:
    """A rate in its cell, as ``87.9`` and ``kB/s`` in two lines."""
    text = f"{size(rate)}/s".replace(" ", "\n")
    ax.text(column, row, text, ha="center", va="center", fontsize=7, **look)
