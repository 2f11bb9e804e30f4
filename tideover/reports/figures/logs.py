"""Recoveries as logs tell them: one failure stage by stage, with the lines they were taken from, or many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.reports.figures import style
from tideover.reports.formatting import amount, fixed, is_undefined

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LOG_STAGES: dict[str, tuple[str, str]] = {
    "failed": ("first sign", style.FAILURE),
    "detected": ("detected", "#2d3138"),
    "restart_tried": ("restart", "#f3d9a4"),
    "restart_failed": ("restart fails", "#b87b00"),
    "given_up": ("process given up", "#c9c2a5"),
    "slots": ("slots", "#db9500"),
    "deployed": ("tasks started", "#efb643"),
    "restored": ("state restored", "#006baa"),
    "running": ("all tasks run", "#4a9e8c"),
    "snapshot": ("first snapshot", "#eae7db"),
    "caught_up": ("caught up", "#8dccf1"),
}
"""Words for a stage's end, and the colour of the time that leads to it."""
MOST_ROWS = 18
_ENDS = ("detected", "slots", "deployed", "restored", "running", "caught_up")


def place(row: Any) -> str:
    """Where a row was read: its file and line, or the file alone if that has no lines."""
    return f"{row['file']}:{amount(row['line'])}" if row["line"] else str(row["file"])


def log_stages(stages: pd.DataFrame) -> Axes:
    """One failure: a row for each stage, from the end of the one before to its own, with file and line.

    ``stages``: the rows of one failure of the table ``stages``, in the order of their times. Of a long row of
    restarts the middle is left out.
    """
    rows = stages.to_dict("records")
    left_out = len(rows) - MOST_ROWS
    befores = [0.0, *(float(row["after_s"]) for row in rows)]
    placed: list[tuple[float, Any]] = list(zip(befores, rows, strict=False))
    if left_out > 0:
        half = MOST_ROWS // 2
        placed = [*placed[:half], (0.0, None), *placed[-half:]]
    with style.applied():
        ax = style.new_axes(0.7 + 0.27 * len(placed))
        most = max(befores) or 1.0
        for y, (before, row) in enumerate(placed):
            if row is None:
                ax.text(0.0, y, f"… {left_out} more", va="center", fontsize=8.5)
                continue
            colour, at = LOG_STAGES[row["stage"]][1], float(row["after_s"])
            if at > before:
                ax.barh(y, at - before, left=before, height=0.6, color=colour, **style.STAGE_EDGE)
            ax.plot([at, at], [y - 0.36, y + 0.36], color=colour, linewidth=2.0)
            ax.annotate(
                f"{at:,.3f} s  {place(row)}", (at, y), xytext=(5, 0), va="center", fontsize=8, **style.POINTS
            )
        style.name_rows(ax, ["" if row is None else LOG_STAGES[row["stage"]][0] for _, row in placed])
        ax.set(xlabel="time from the first sign of the failure (s)", xlim=(0, 1.35 * most))
    return ax


def log_recoveries(failures: pd.DataFrame) -> Axes:
    """All failures of a source, a bar each: the time that led to each stage of ``_ENDS`` that is known."""
    rows = failures.to_dict("records")
    with style.applied():
        ax = style.new_axes(0.9 + 0.24 * len(rows))
        seen: dict[str, None] = {}
        for y, row in enumerate(rows):
            before = 0.0
            for stage in _ENDS:
                at = row.get(f"{stage}_s")
                if is_undefined(at) or at is None or at <= before:
                    continue
                look = {"color": LOG_STAGES[stage][1], **style.STAGE_EDGE}
                ax.barh(y, at - before, left=before, height=0.66, **look)
                before = float(at)
                seen[stage] = None
            ax.annotate(
                f"{fixed(before, 1)} s", (before, y), xytext=(4, 0), va="center", fontsize=8, **style.POINTS
            )
        style.name_rows(ax, [f"{amount(row['failure'])}: {str(row['began'])[11:19]}" for row in rows])
        ax.set(xlabel="time from the first sign of the failure (s)", xlim=(0, None))
        ax.margins(x=0.12)
        keys = [style.Key(f"until {LOG_STAGES[s][0]}", LOG_STAGES[s][1], "area") for s in _ENDS if s in seen]
        style.legend_below(ax.figure, keys, 3)
    return ax
