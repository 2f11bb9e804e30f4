"""Time to recover by strategy, with its stages stacked: mean, interval, and every replication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.models.schema.fields import HEADLINE, block, named
from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.formatting import fixed, places_for, strategy_name, with_ending
from tideover.scenarios.statistics.estimates import Estimate, estimate
from tideover.scenarios.statistics.replications import of_replications

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_BAR, _DOTS, _NAME = 0.12, 0.38, -0.14
"""Where in its row (from -0.5 to 0.5, downwards) the bar's middle, the dots and the name's foot are."""
_MOST_DOTS = 200

KEYS = (
    style.Key("95 % interval of the mean", style.INK),
    style.Key("one recovery", style.INK, "dot"),
)


def recovery_stages(recoveries: pd.DataFrame, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """One bar a strategy: the mean lengths of the stages, which add up to the mean time to recover.

    Dots are single recoveries; the interval is the 95 % bootstrap interval of the mean, with a fixed seed.
    Recoveries that had not ended by the end of the run are counted next to the name, and are in no mean; if
    none had ended, the bar has the stages that are known, and is open at its end.
    """
    recoveries = conform("recoveries", recoveries)
    names = list(dict.fromkeys(recoveries["strategy"]))
    with style.applied():
        if ax is None:
            height = 0.75 + 0.5 * len(names) + (0.8 if legend else 0.0)
            ax = style.new_figure(height, style.COLUMN_IN).subplots()
        most = 0.0
        for place, name in enumerate(names):
            most = max(most, _row(ax, place, recoveries[recoveries["strategy"] == name]))
        _finish(ax, len(names), most)
        if legend:
            style.legend_below(ax.figure, (*style.stage_keys(recoveries.columns), *KEYS), 2)
    return ax


def _row(ax: Axes, place: int, mine: pd.DataFrame) -> float:
    """Draw a strategy; how far to the right (s) it reaches."""
    failures = zip(zip(mine["seed"], mine["replication"], strict=True), mine[HEADLINE], strict=True)
    found = estimate(of_replications(failures, named("recoveries", HEADLINE)))
    over = mine[mine[HEADLINE].notna()] if found.n else mine
    at = 0.0
    for stage in block("recoveries", "stages_s", mine.columns):
        length = float(over[stage.name].astype(float).mean())
        if length > 0:  # not so of NaN, either: the stage did not come to its end
            look: dict[str, Any] = {"color": style.stage_colour(stage.key), **style.STAGE_EDGE}
            (bar,) = ax.barh(place + _BAR, length, left=at, height=0.34, **look)
            bar.set_label(f"stage: {stage.key}")
            at += length
    name = strategy_name(mine["strategy"].iloc[0])
    foot: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "bottom", "fontsize": 8.5}
    ax.text(0.0, place + _NAME, f"{name}: {_in_words(found, mine['ended'].tolist())}", **foot)
    if found.n == 0:
        ax.annotate("…", (at, place + _BAR), xytext=(3, 0), textcoords="offset points", va="center")
        return at
    times = over[HEADLINE].to_numpy(dtype=float)
    if len(times) <= _MOST_DOTS:
        dots: dict[str, Any] = {"color": style.INK, "linestyle": "none", "clip_on": False, **style.DOT}
        ax.plot(times, [place + _DOTS] * len(times), **dots)
    if found.bootstrap is not None and not found.constant:
        ax.plot(found.bootstrap, [place + _BAR] * 2, color=style.PAPER, linewidth=3.4)
        ax.plot(
            found.bootstrap, [place + _BAR] * 2, color=style.INK, linewidth=1.4, marker="|", label="interval"
        )
    return float(times.max())


def _in_words(found: Estimate, endings: list[str]) -> str:
    """``56.2 s (51.1 to 59.1)``, and how many had not recovered, or with loss."""
    total = found.n + found.undefined
    if found.mean is None:
        return f"not recovered by the end of the run ({total} of {total})"
    places = 2 if found.half_width == 0 and found.mean < 10 else max(1, places_for(found.half_width))
    text = f"{fixed(found.mean, places)} s" if found.mean else "0 s"
    if found.bootstrap is not None and not found.constant:
        low, high = (fixed(end, places) for end in found.bootstrap)
        text += f" ({low} to {high})"
    text = with_ending(text, endings)
    return text + (f"; {found.undefined} of {total} not recovered" if found.undefined else "")


def _finish(ax: Axes, rows: int, most: float) -> None:
    ax.set(xlabel="time from the failure (s)", ylim=(rows - 0.45, -0.5), yticks=[])
    ax.set_xlim(0, 1.04 * most if most > 0 else 1.0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
