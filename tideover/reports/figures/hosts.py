"""Who runs where, and how busy all of it is: hosts as boxes, in them tasks, cores and cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.figures.shades import shade, text_on

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
    for number, mine in on_hosts.groupby("host"):
        order = mine.assign(
            place=[_SHARED.get(kind, len(_SHARED)) for kind in mine["kind"]],
        ).sort_values(["place", "resource"], kind="stable")
        pairs = zip(order["resource"], order["busy"], strict=True)
        yield int(float(str(number))), [Line(str(name), float(busy)) for name, busy in pairs]


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
