"""The components as boxes, and what flows between them as arrows: the wider, the more bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.reports.figures import style
from tideover.reports.figures.hosts import loads
from tideover.reports.figures.shades import shade, text_on
from tideover.reports.formatting import number, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Flow = Mapping[str, Any]
"""What the record says of an edge."""
Place = tuple[float, float]
_LEVEL_IN, _BOX_IN, _BESIDE_IN = 1.0, 0.46, 2.6
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
    boxes = _boxes(loads(usage, after_s))
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
            height = _LEVEL_IN * (len(rows) - 1) + _BOX_IN + 0.1
            ax = style.new_figure(height, min(style.WIDTH_IN, 1.0 + _BESIDE_IN * wide)).subplots()
        most, lane = max((flow["bytes_per_s"] for flow in flows), default=0.0), float(across)
        for flow in flows:
            middle = _arrow(ax, flow, at, most, lane)
            _words(ax, flow, middle, -1 if middle[0] < across / 2 - 0.01 else 1)
            lane += _LANE * _passes(levels, flow)
        for name, place in at.items():
            _box(ax, name, place, boxes.get(name))
        low = len(rows) - 1 + 0.5 * _BOX_IN / _LEVEL_IN
        ax.set(xlim=(0, wide), ylim=(low + 0.02, -0.5 * _BOX_IN / _LEVEL_IN - 0.02), xticks=[], yticks=[])
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


def _boxes(found: pd.DataFrame) -> dict[str, Box]:
    tasks = found[found["kind"] == "task"]
    names = tasks["resource"].str.rpartition(".")[0]
    return {
        str(name): Box(len(mine), mine["host"].nunique(), float(mine["busy"].max()))
        for name, mine in tasks.groupby(names, sort=False)
    }


def _box(ax: Axes, name: str, at: tuple[float, float], box: Box | None) -> None:
    from matplotlib.patches import Rectangle

    x, y = at
    busy = 0.0 if box is None or box.busiest is None else box.busiest
    high = _BOX_IN / _LEVEL_IN
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
    half, share = 0.5 * _BOX_IN / _LEVEL_IN, flow["bytes_per_s"] / most if most else 0.0
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
