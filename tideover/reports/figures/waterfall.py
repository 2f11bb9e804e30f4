"""The failures of a run one below the other, each with the stages of its recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.models.schema.endings import OPEN
from tideover.models.schema.fields import HEADLINE, block
from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.formatting import is_undefined, number, with_ending

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_FAILURES = 20
"""Failures that are drawn: the first ones."""
_BAR, _NAME, _ROW_IN = 0.17, -0.08, 0.4
"""Where in its row (from -0.5 to 0.5, downwards) the bar's middle and the text's foot are; a row's height."""

KEYS = (style.Key("a later failure", style.FAILURE),)


def of_first_replication(recoveries: pd.DataFrame) -> pd.DataFrame:
    """The failures of the first replication that has any, in the order in which they struck."""
    recoveries = conform("recoveries", recoveries)
    first = recoveries[recoveries["replication"] == recoveries["replication"].min()]
    return first.sort_values("failed_at_s", kind="stable").reset_index(drop=True)


def waterfall(
    recoveries: pd.DataFrame,
    *,
    span_s: float | None = None,
    ax: Axes | None = None,
    width_in: float = style.WIDTH_IN,
    legend: bool = True,
) -> Axes:
    """One bar a failure of the first replication: its stages, one after the other, from the moment when it
    struck. Above it stand that moment, what failed and the time to recover; a red line is a later failure.

    Of more than ``MOST_FAILURES`` the first ones are drawn. The bar of a failure that was not recovered from
    has the stages that are known, and is open at its end. ``span_s``: length of the axis; None: of the
    longest bar.
    """
    mine = of_first_replication(recoveries)
    struck = mine["failed_at_s"].to_numpy(dtype=float)
    shown = mine.head(MOST_FAILURES)
    with style.applied():
        if ax is None:
            height = 0.6 + _ROW_IN * len(shown) + (0.8 if legend else 0.0)
            ax = style.new_figure(height, width_in).subplots()
        ends = [_row(ax, place, row) for place, row in enumerate(shown.to_dict("records"))]
        for place, (end, at) in enumerate(zip(ends, struck, strict=False)):
            for later in struck[(struck > at) & (struck < at + end)] - at:
                line: dict[str, Any] = {"color": style.FAILURE, "linewidth": 1.2}
                ax.plot([later, later], [place + _BAR - 0.24, place + _BAR + 0.24], **line)
        most = max(ends, default=0.0) if span_s is None else span_s
        ax.set(xlabel="time from the failure (s)", ylim=(len(shown) - 0.45, -0.6), yticks=[])
        ax.set_xlim(0, 1.04 * most if most > 0 else 1.0)
        ax.spines["left"].set_visible(False)
        ax.grid(axis="x")
        if legend:
            style.legend_below(ax.figure, (*style.stage_keys(shown.columns), *KEYS), 4)
    return ax


def known_s(recoveries: pd.DataFrame) -> float:
    """How long (s) the longest bar is that ``waterfall`` draws of these."""
    shown = of_first_replication(recoveries).head(MOST_FAILURES)
    names = [stage.name for stage in block("recoveries", "stages_s", shown.columns)]
    return float(shown[names].astype(float).sum(axis=1).max()) if len(shown) else 0.0


def _row(ax: Axes, place: int, row: dict[Any, Any]) -> float:
    """Draw a failure; how far to the right (s) it reaches."""
    end = 0.0
    for stage in block("recoveries", "stages_s", row):
        length = row[stage.name]
        if length > 0:  # not so of NaN, either: the stage did not come to its end
            look: dict[str, Any] = {"color": style.stage_colour(stage.key), **style.STAGE_EDGE}
            (bar,) = ax.barh(place + _BAR, length, left=end, height=0.34, **look)
            bar.set_label(f"stage: {stage.key}")
            end += length
    foot: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "bottom", "fontsize": 8.5}
    ax.text(0.0, place + _NAME, in_words(row), **foot)
    if is_undefined(row[HEADLINE]):
        ax.annotate("…", (end, place + _BAR), xytext=(3, 0), textcoords="offset points", va="center")
    return end


def in_words(row: dict[Any, Any]) -> str:
    """``75.0 s  crash_task of count: 23.1 s``."""
    over = not is_undefined(row[HEADLINE])
    told = with_ending(f"{number(row[HEADLINE])} s", [row["ended"]]) if over else OPEN
    return f"{row['failed_at_s']:,.1f} s  {row['kind']} of {row['component']}: {told}"
