"""What happened around the failure: throughput, latency and backlog over time, with the stages of recovery
shaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.words import is_undefined, strategy_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

STAGE_COLUMNS = {
    "detect": "detect_s",
    "restart": "restart_s",
    "restore": "restore_s",
    "replay": "replay_s",
    "catch-up": "catch_up_stage_s",
}

_LEAST_SPAN_S = 20.0
MOST_COLUMNS = 3


@dataclass(frozen=True)
class Stage:
    """A stage of recovery, in seconds from the failure."""

    name: str
    start_s: float
    end_s: float


def stages(recoveries: pd.DataFrame) -> list[Stage]:
    """The stages after each replication's first failure, one after the other; lengths are means over
    replications.

    An undefined stage is left out; one of no length stays, as an instant.
    """
    first = _first_failures(recoveries)
    found: list[Stage] = []
    at = 0.0
    for name, column in STAGE_COLUMNS.items():
        length = float(first[column].astype(float).mean()) if len(first) else math.nan
        if not is_undefined(length):
            found.append(Stage(name, at, at + length))
            at += length
    return found


def timeline(
    timeline: pd.DataFrame,
    recoveries: pd.DataFrame,
    *,
    span_s: tuple[float, float] | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Three stacked axes for one strategy: throughput, latency, backlog; time 0 is the first failure.

    Lines are means over replications, bands run from the least to the greatest. ``span_s``: seconds before
    (negative) and after the failure; by default all of the recovery. Without a failure the whole run is
    shown.
    """
    if timeline["strategy"].nunique() != 1:
        raise ValueError("a timeline shows one strategy; filter the frames, or use timelines()")
    timeline, recoveries = conform("timeline", timeline), conform("recoveries", recoveries)
    span = span_s or _span(timeline, recoveries)
    with style.applied():
        drawn = list(axes) if axes is not None else _three()
        _draw(drawn, timeline, recoveries, span)
        _scale_latency([drawn[1]])
        if axes is None:
            _legend(drawn[0].figure, bool(len(recoveries)))
    return drawn


def timelines(
    timelines: pd.DataFrame,
    recoveries: pd.DataFrame,
    strategies: Sequence[str] | None = None,
    *,
    span_s: tuple[float, float] | None = None,
) -> Figure:
    """One column a strategy (three at most), on the same axes, with one legend for the stages."""
    timelines, recoveries = conform("timeline", timelines), conform("recoveries", recoveries)
    names = list(strategies or dict.fromkeys(timelines["strategy"]))
    if not 1 <= len(names) <= MOST_COLUMNS:
        raise ValueError(f"a figure holds one to {MOST_COLUMNS} strategies, not {len(names)}")
    parts = [(timelines[timelines["strategy"] == n], recoveries[recoveries["strategy"] == n]) for n in names]
    span = span_s or common_span(timelines, recoveries)
    with style.applied():
        figure = style.new_figure(5.2)
        grid = figure.subplots(3, len(names), sharex=True, sharey="row", squeeze=False)
        for column, (ticks, failed) in enumerate(parts):
            _draw(list(grid[:, column]), ticks, failed, span)
        _scale_latency(list(grid[1]))
        for row in grid:
            for ax in row[1:]:
                ax.set_ylabel("")
        _legend(figure, any(len(failed) for _, failed in parts))
    return figure


def _draw(
    axes: list[Axes], timeline: pd.DataFrame, recoveries: pd.DataFrame, span: tuple[float, float]
) -> None:
    aligned = _aligned(timeline, recoveries)
    shown = aligned[(aligned["time_s"] >= span[0]) & (aligned["time_s"] <= span[1])]
    colour = style.colours([str(timeline["strategy"].iloc[0])]).popitem()[1]
    _line(axes[0], shown, "throughput_per_s", colour)
    _line(axes[1], shown, "latency_mean_ms", colour, label="mean")
    _thin(axes[1], shown, "latency_max_ms", colour, label="greatest")
    _line(axes[2], shown, "backlog", colour)
    _scale_counts(axes, shown)
    if len(recoveries):
        _shade(axes, stages(recoveries), _other_failures(recoveries), span)
    _label_axes(axes, timeline, recoveries, span)


def common_span(timelines: pd.DataFrame, recoveries: pd.DataFrame) -> tuple[float, float]:
    """Seconds before (negative) and after the failure that show the recovery of every strategy."""
    names = list(dict.fromkeys(timelines["strategy"]))
    parts = [(timelines[timelines["strategy"] == n], recoveries[recoveries["strategy"] == n]) for n in names]
    spans = [_span(*part) for part in parts]
    return (min(low for low, _ in spans), max(high for _, high in spans))


def _first_failures(recoveries: pd.DataFrame) -> pd.DataFrame:
    return recoveries.sort_values("failed_at_s", kind="stable").groupby("replication", as_index=False).first()


def _aligned(timeline: pd.DataFrame, recoveries: pd.DataFrame) -> pd.DataFrame:
    """The timeline with ``time_s``: the middle of each second, from the replication's first failure."""
    if recoveries.empty:
        return timeline.assign(time_s=timeline["second"] + 0.5)
    failed = _first_failures(recoveries).set_index("replication")["failed_at_s"]
    at = timeline["replication"].map(failed)
    known = timeline[at.notna()]
    at = at.dropna()
    offset = at if at.nunique() == 1 else at // 1  # replications that fail at other moments: to the second
    return known.assign(time_s=known["second"] + 0.5 - offset)


def _span(timeline: pd.DataFrame, recoveries: pd.DataFrame) -> tuple[float, float]:
    if recoveries.empty:
        return (0.0, float(timeline["second"].max()) + 1.0)
    ends = [stage.end_s for stage in stages(recoveries)]
    caught_up = float(_first_failures(recoveries)["catch_up_s"].astype(float).max())
    length = max([_LEAST_SPAN_S, *ends, *([] if is_undefined(caught_up) else [caught_up])])
    left = float(timeline["second"].max()) + 1.0 - float(recoveries["failed_at_s"].min())
    before = min(max(10.0, 0.2 * length), float(recoveries["failed_at_s"].min()))
    return (-before, min(1.2 * length, max(left, 1.0)))


def _three() -> list[Axes]:
    return list(style.new_figure(5.2).subplots(3, 1, sharex=True))


def _line(ax: Axes, shown: pd.DataFrame, column: str, colour: str, label: str | None = None) -> None:
    groups = shown.groupby("time_s")[column]
    times = groups.mean().index.to_numpy()
    if shown["replication"].nunique() > 1:
        low, high = groups.min().to_numpy(dtype=float), groups.max().to_numpy(dtype=float)
        ax.fill_between(times, low, high, step="mid", color=colour, alpha=0.22, linewidth=0)
    ax.plot(times, groups.mean().to_numpy(dtype=float), drawstyle="steps-mid", color=colour, label=label)


def _thin(ax: Axes, shown: pd.DataFrame, column: str, colour: str, label: str) -> None:
    means = shown.groupby("time_s")[column].max()
    dots: dict[str, Any] = {"linestyle": (0, (1, 1.2)), "linewidth": 1.1}
    ax.plot(
        means.index, means.to_numpy(dtype=float), drawstyle="steps-mid", color=colour, label=label, **dots
    )


def _scale_counts(axes: Sequence[Axes], shown: pd.DataFrame) -> None:
    """From zero; the same in all columns of a row, since later columns only widen it."""
    for ax, column, least_top in ((axes[0], "throughput_per_s", 1.0), (axes[2], "backlog", 10.0)):
        ax.set_ylim(0, max(ax.get_ylim()[1], 1.05 * float(shown[column].max()), least_top))
        ax.locator_params(axis="y", nbins=5)


def _scale_latency(row: Sequence[Axes]) -> None:
    """Logarithmic if the latencies of the row differ by more than a factor of 20, else from zero."""
    import numpy as np

    lines = [line for ax in row for line in ax.lines if line.get_label() in ("mean", "greatest")]
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in lines])
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() > 20 * values.min():
        row[0].set_yscale("log")
        row[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        row[0].set_ylim(0, 1.05 * float(values.max()) if values.size and values.max() > 0 else 1.0)


def _other_failures(recoveries: pd.DataFrame) -> list[float]:
    """Further failures after the first, if they are the same in every replication."""
    times = {tuple(sorted(part)) for _, part in recoveries.groupby("replication")["failed_at_s"]}
    if len(times) != 1:
        return []
    first, *rest = times.pop()
    return [time - first for time in rest]


def _shade(axes: Sequence[Axes], found: list[Stage], others: list[float], span: tuple[float, float]) -> None:
    hair = 0.004 * (span[1] - span[0])  # what is shorter than this would not be seen
    for ax in axes:
        for stage in found:
            if stage.end_s > stage.start_s:
                end = max(stage.end_s, stage.start_s + hair)
                band: dict[str, Any] = {"alpha": 0.28, "linewidth": 0, "zorder": 0.5}
                colour, label = style.STAGES[stage.name], f"stage: {stage.name}"
                ax.axvspan(stage.start_s, end, color=colour, label=label, **band)
        ax.axvline(0.0, color=style.FAILURE, linewidth=1.2, zorder=3, label="failure")
        for time in others:
            if span[0] <= time <= span[1]:
                ax.axvline(time, color=style.FAILURE, linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)


def _label_axes(
    axes: Sequence[Axes], timeline: pd.DataFrame, recoveries: pd.DataFrame, span: tuple[float, float]
) -> None:
    for ax, text in zip(axes, ("throughput (tuples/s)", "latency (ms)", "backlog (roots)"), strict=True):
        ax.set_ylabel(text)
        ax.grid(axis="y")
    axes[0].set_title(strategy_name(str(timeline["strategy"].iloc[0])), pad=20 if len(recoveries) else 6)
    if len(recoveries):
        small: dict[str, Any] = {"fontsize": 7, "color": style.MUTED, "in_layout": False}
        axes[0].text(0, 1.03, _lengths(stages(recoveries)), transform=axes[0].transAxes, **small)
    axes[2].set_xlabel("time from the failure (s)" if len(recoveries) else "time (s)")
    axes[2].set_xlim(*span)


def _lengths(found: list[Stage]) -> str:
    """The stages with their lengths, since short ones are too thin to see."""
    parts = [f"{stage.name} {_length(stage.end_s - stage.start_s)}" for stage in found]
    half = (len(parts) + 1) // 2 if len(parts) > 2 else len(parts)
    return "\n".join(" · ".join(part) for part in (parts[:half], parts[half:]) if part)


def _length(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if 0 < seconds < 0.1 else f"{seconds:.3g} s"


def _legend(figure: Figure | SubFigure, failed: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = [
        Line2D([], [], color=style.INK, label="mean"),
        Patch(facecolor=style.INK, alpha=0.2, label="range of replications"),
        Line2D([], [], color=style.INK, linestyle=(0, (1, 1.2)), linewidth=1.1, label="greatest latency"),
    ]
    if failed:
        handles.append(Line2D([], [], color=style.FAILURE, label="failure"))
        handles += [Patch(facecolor=colour, alpha=0.4, label=name) for name, colour in style.STAGES.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
