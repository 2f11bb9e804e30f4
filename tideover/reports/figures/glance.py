"""Strategies at a glance: one row each, a bar and a figure for each measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tideover.models.schema.endings import UNAFFECTED
from tideover.reports.figures import style
from tideover.reports.formatting import strategy_name
from tideover.reports.glance import MEASURES, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_IN, _HEAD_IN = 0.32, 0.62
_NAMES = 1.95
"""Width of the names, in widths of a measure."""
_BAR = 0.86
"""The longest bar, of the width of its column."""


def glance(rows: Sequence[Row], *, ax: Axes | None = None) -> Axes:
    """A table whose figures stand above bars; bars of one measure share a scale, which begins at 0. What
    breaks a guarantee is in the colour of failures.
    """
    most = [max((row.values[i] or 0.0 for row in rows), default=0.0) for i in range(len(MEASURES))]
    with style.applied():
        ax = style.new_axes(_HEAD_IN + _ROW_IN * len(rows), ax)
        for place, measure in enumerate(MEASURES):
            what, _, unit = measure.what.partition(", ")
            heading = "\n".join([*_broken(what), *([f"({unit})"] if unit else [])])
            ax.text(place, -0.35, heading, va="bottom", fontsize=8, color=style.MUTED)
        for at, row in enumerate(rows):
            ax.text(-_NAMES, at + 0.12, strategy_name(row.strategy), va="center", fontsize=8.5)
            for place, (measure, value, text) in enumerate(zip(MEASURES, row.values, row.cells, strict=True)):
                bad = measure.bad and bool(value)
                ink, colour = (style.FAILURE, style.FAILURE) if bad else (style.INK, style.BLUE)
                shown = "\n".join(_broken(text)) if text == UNAFFECTED else text  # as wide as its column
                ax.text(place, at - 0.02, shown, va="center", fontsize=8, color=ink)
                if value and most[place]:
                    ax.barh(at + 0.29, _BAR * value / most[place], left=place, height=0.2, color=colour)
            ax.axhline(at + 0.5, color=style.GRID, linewidth=0.6)
        ax.set(xlim=(-_NAMES, len(MEASURES)), ylim=(len(rows) - 0.45, -1.45), xticks=[], yticks=[])
        ax.spines[["bottom", "left"]].set_visible(False)
    return ax


def _broken(words: str) -> list[str]:
    """Two lines for what is too long for one."""
    head, _, tail = words.rpartition(" ")
    return [head, tail] if head and len(words) > 9 else [words]
