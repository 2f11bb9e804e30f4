"""Who runs where, what flows between them, and how busy all of it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.figures.style import shade, text_on, text_on_traffic, traffic_shade
from tideover.reports.formatting import number, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# Who runs where, and how busy all of it is: hosts as boxes, in them tasks, cores and cards.

MOST_HOSTS = 24
"""Hosts that are drawn: the busiest ones, if there are more."""
_ROW, _HEAD, _FOOT, _GAP = 0.23, 0.34, 0.05, 0.2
"""Heights, in inches, of a line in a box, of its head and foot, and of what is between boxes."""
_BOX_IN = 1.75
_SHARED = {"cores": 0, "card out": 1, "card in": 2, "store": 3}
"""What a host's tasks share, in the order in which it is drawn."""


class Line(NamedTuple):
    """One line in a host's box: what it is, and which part of the time it was busy."""

    name: str
    busy: float


def loads(usage: pd.DataFrame, after_s: float = 0.0) -> pd.DataFrame:
    """Part of the time (ratio) that each resource was busy from ``after_s`` on: the mean over stretches and
    replications; columns resource, kind, host, busy.
    """
    usage = conform("usage", usage)
    late = usage[usage["begin_s"] >= after_s]
    usage = usage if late.empty else late
    length = usage["end_s"] - usage["begin_s"]
    parts = usage.assign(length=length, work=usage["busy"] * length)
    total = parts.groupby(["resource", "kind", "host"], dropna=False, sort=False)[["work", "length"]].sum()
    return total.assign(busy=total["work"] / total["length"]).reset_index()[
        ["resource", "kind", "host", "busy"]
    ]


def hosts(
    usage: pd.DataFrame, *, racks: int = 1, after_s: float = 0.0, ax: Axes | None = None, across: int = 4
) -> Axes:
    """A box for each host with its cores, cards and tasks; the darker, the busier, and the figure beside it.

    ``racks``: hosts go round so many racks, which their boxes name if there are several. Of more than
    ``MOST_HOSTS`` hosts those with the busiest resource are drawn.
    """
    boxes = list(_boxes(loads(usage, after_s)))
    boxes = sorted(sorted(boxes, key=lambda box: -max(line.busy for line in box[1]))[:MOST_HOSTS])
    across = max(1, min(across, len(boxes)))
    rows = [boxes[first : first + across] for first in range(0, len(boxes), across)]
    heights = [_HEAD + _FOOT + _ROW * max(len(lines) for _, lines in row) for row in rows]
    height = sum(heights) + _GAP * len(rows)
    with style.applied():
        if ax is None:
            ax = style.new_figure(height + 0.1, min(style.WIDTH_IN, _BOX_IN * across)).subplots()
        top = 0.0
        for row, tall in zip(rows, heights, strict=True):
            for column, (number, lines) in enumerate(row):
                _box(ax, column, top, tall, _head(number, racks), lines)
            top += tall + _GAP
        ax.set(xlim=(0, across), ylim=(height, 0), xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set_visible(False)
    return ax


def _boxes(found: pd.DataFrame) -> Iterator[tuple[int, list[Line]]]:
    """Hosts by number, with what is on each: first what its tasks share."""
    on_hosts = found[found["host"].notna()]
    for host, mine in on_hosts.groupby("host"):
        order = mine.assign(
            place=[_SHARED.get(kind, len(_SHARED)) for kind in mine["kind"]],
        ).sort_values(["place", "resource"], kind="stable")
        pairs = zip(order["resource"], order["busy"], strict=True)
        yield int(float(str(host))), [Line(str(name), float(busy)) for name, busy in pairs]


def _head(number: int, racks: int) -> str:
    return f"host {number}" + (f", rack {number % racks}" if racks > 1 else "")


def _box(ax: Axes, column: int, top: float, tall: float, head: str, lines: Sequence[Line]) -> None:
    from matplotlib.patches import Rectangle

    left, width = column + 0.03, 0.94
    edge: dict[str, Any] = {"edgecolor": style.MUTED, "linewidth": 0.8}
    ax.add_patch(Rectangle((left, top), width, tall, facecolor="none", **edge))
    ax.text(left + 0.04, top + _HEAD / 2, head, va="center", fontsize=8.5, fontweight="bold")
    for place, line in enumerate(lines):
        at = top + _HEAD + place * _ROW
        look: dict[str, Any] = {"facecolor": shade(line.busy), "edgecolor": style.PAPER, "linewidth": 0.6}
        ax.add_patch(Rectangle((left + 0.03, at), width - 0.06, _ROW * 0.92, **look))
        words: dict[str, Any] = {"va": "center", "fontsize": 7.5, "color": text_on(line.busy)}
        ax.text(left + 0.06, at + _ROW * 0.46, _short(line.name), **words)
        ax.text(left + width - 0.06, at + _ROW * 0.46, f"{line.busy:.0%}", ha="right", **words)


def _short(name: str, most: int = 17) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


# The components as boxes, and what flows between them as arrows: the wider, the more bytes.

Flow = Mapping[str, Any]
"""What the record says of an edge."""
Place = tuple[float, float]
_LEVEL_IN, _BOX_IN_of_topology, _BESIDE_IN = 1.0, 0.46, 2.6
"""Height of a level with the arrows to the next, of a box, and width of a box with what is beside it."""
_HALF, _LANE = 0.4, 0.7
"""Half of a box, and what an edge has for itself that passes a level, in widths of a box with its beside."""
_THIN_PT, _WIDE_PT = 0.8, 5.0
_ARROW = "->"


class Box(NamedTuple):
    """A component: how many tasks on how many hosts, and how busy the busiest of them is (None: unknown)."""

    tasks: int
    hosts: int
    busiest: float | None


def topology(
    flows: Sequence[Flow], usage: pd.DataFrame, *, after_s: float = 0.0, ax: Axes | None = None
) -> Axes:
    """A box for each component, spouts at the top, as dark as its busiest task is busy from ``after_s`` on;
    an arrow for each edge, with messages and bytes per second, and how much of it goes to other hosts.

    ``flows``: of the record of ``run --json``.
    """
    levels = _levels([_ends(flow["edge"]) for flow in flows])
    boxes = _boxes_of_topology(loads(usage, after_s))
    rows: dict[int, list[str]] = {}
    for name, level in levels.items():
        rows.setdefault(level, []).append(name)
    across = max((len(row) for row in rows.values()), default=1)
    wide = across + _LANE * sum(_passes(levels, flow) for flow in flows)
    at = {
        name: ((place + 0.5) * across / len(row), level)
        for level, row in rows.items()
        for place, name in enumerate(row)
    }
    with style.applied():
        if ax is None:
            height = _LEVEL_IN * (len(rows) - 1) + _BOX_IN_of_topology + 0.1
            ax = style.new_figure(height, min(style.WIDTH_IN, 1.0 + _BESIDE_IN * wide)).subplots()
        most, lane = max((flow["bytes_per_s"] for flow in flows), default=0.0), float(across)
        for flow in flows:
            middle = _arrow(ax, flow, at, most, lane)
            _words(ax, flow, middle, -1 if middle[0] < across / 2 - 0.01 else 1)
            lane += _LANE * _passes(levels, flow)
        for name, place in at.items():
            _box_of_topology(ax, name, place, boxes.get(name))
        low = len(rows) - 1 + 0.5 * _BOX_IN_of_topology / _LEVEL_IN
        ax.set(
            xlim=(0, wide),
            ylim=(low + 0.02, -0.5 * _BOX_IN_of_topology / _LEVEL_IN - 0.02),
            xticks=[],
            yticks=[],
        )
        for spine in ax.spines.values():
            spine.set_visible(False)
    return ax


def _ends(edge: str) -> tuple[str, str]:
    up, _, down = edge.partition(_ARROW)
    return up, down


def _passes(levels: Mapping[str, int], flow: Flow) -> bool:
    """Whether an edge passes a level."""
    up, down = _ends(flow["edge"])
    return levels[down] - levels[up] > 1


def _levels(edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How many edges the longest way from a spout to each component has; edges are in topological order of
    what they lead to.
    """
    found: dict[str, int] = {}
    for up, down in edges:
        found.setdefault(up, 0)
        found[down] = max(found.get(down, 0), found[up] + 1)
    return found


def _boxes_of_topology(found: pd.DataFrame) -> dict[str, Box]:
    tasks = found[found["kind"] == "task"]
    names = tasks["resource"].str.rpartition(".")[0]
    return {
        str(name): Box(len(mine), mine["host"].nunique(), float(mine["busy"].max()))
        for name, mine in tasks.groupby(names, sort=False)
    }


def _box_of_topology(ax: Axes, name: str, at: tuple[float, float], box: Box | None) -> None:
    from matplotlib.patches import Rectangle

    x, y = at
    busy = 0.0 if box is None or box.busiest is None else box.busiest
    high = _BOX_IN_of_topology / _LEVEL_IN
    look: dict[str, Any] = {"facecolor": shade(busy), "edgecolor": style.MUTED, "linewidth": 0.8}
    ax.add_patch(Rectangle((x - _HALF, y - high / 2), 2 * _HALF, high, zorder=3, **look))
    words: dict[str, Any] = {"ha": "center", "va": "center", "color": text_on(busy), "zorder": 4}
    ax.text(x, y - 0.22 * high, name, fontsize=9, fontweight="bold", **words)
    if box is not None:
        tasks, hosts = (_counted(box.tasks, "task"), _counted(box.hosts, "host"))
        ax.text(x, y + 0.22 * high, f"{tasks} on {hosts}, busiest {busy:.0%}", fontsize=7.5, **words)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _arrow(ax: Axes, flow: Flow, at: Mapping[str, Place], most: float, lane: float) -> Place:
    """Draw an edge; its middle. ``lane``: where it goes down, beside all boxes, if it passes a level."""
    (x, y), (to_x, to_y) = (at[name] for name in _ends(flow["edge"]))
    half, share = 0.5 * _BOX_IN_of_topology / _LEVEL_IN, flow["bytes_per_s"] / most if most else 0.0
    wide = _THIN_PT + share * (_WIDE_PT - _THIN_PT)
    look: dict[str, Any] = {
        "arrowstyle": "-|>,head_width=0.35,head_length=0.6",
        "linewidth": wide,
        "color": style.MUTED,
        "shrinkA": 0,
        "shrinkB": 0,
        "mutation_scale": 10,
        "joinstyle": "miter",
    }
    if to_y - y > 1:
        ax.plot([x + _HALF, lane, lane], [y, y, to_y], color=style.MUTED, linewidth=wide, zorder=1)
        ax.annotate("", (to_x + _HALF, to_y), (lane, to_y), arrowprops=look, zorder=1)
        return lane, y + 0.5
    ax.annotate("", (to_x, to_y - half), (x, y + half), arrowprops=look, zorder=1)
    return (x + to_x) / 2, (y + to_y) / 2


def _words(ax: Axes, flow: Flow, middle: Place, side: int) -> None:
    """What flows, to the left (-1) or right (1) of an edge."""
    look: dict[str, Any] = {"va": "center", "ha": "right" if side < 0 else "left", "fontsize": 7.5}
    ground: dict[str, Any] = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}
    place: dict[str, Any] = {"xytext": (8 * side, 0), "textcoords": "offset points"}
    ax.annotate(_in_words(flow), middle, zorder=2, bbox=ground, **place, **look)


def _in_words(flow: Flow) -> str:
    """``343 messages/s, 87.9 kB/s, 87 % of it to other hosts``, in two lines."""
    carried = flow["bytes_per_s"]
    away = 100 * flow["between_hosts_per_s"] / carried if carried else 0.0
    told = f"{number(flow['messages_per_s'])} messages/s, {size(carried)}/s"
    return f"{told}\n{away:.0f} % to other hosts"


# What flows between hosts: a square table, the darker, the more.

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
                ax.text(column, row, _short_of_traffic(rates[row, column]), color=colour, **words)
        ax.text(last, row, _short_of_traffic(rates[row].sum()), fontweight="bold", **words)
        ax.text(row, last, _short_of_traffic(rates[:, row].sum()), fontweight="bold", **words)
    ax.text(last, last, _short_of_traffic(rates.sum()), fontweight="bold", **words)


def _short_of_traffic(rate: float) -> str:
    """``87.9`` and ``kB/s`` in two lines, for a small cell."""
    return f"{size(rate)}/s".replace(" ", "\n")
