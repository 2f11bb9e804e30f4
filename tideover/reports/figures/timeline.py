"""What happened around the failure: throughput, latency and backlog over time, with the stages of the
recovery in a strip above each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.models.schema.fields import block
from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.formatting import filled, is_undefined, plain, strategy_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST_SPAN_S = 20.0
MOST_COLUMNS = 3
_STRIP = (1.02, 1.09)
"""Where the strip of stages is, in heights of the panel: above it, so that it hides no line."""
_STRIP_ROOM_IN = 0.09
_LINES_OF_LENGTHS = 2
"""Room for the lengths of stages under a title, so that panels of equal size have axes of equal size."""
_LEAST_SHOWN = 0.008
"""A shorter stage than this share of the time shown could not be seen, and is drawn as long."""

LINES = (
    style.Key("mean over replications", style.INK),
    style.Key("greatest latency", style.INK, "dotted"),
    style.Key("mean latency from the creation stamp", style.INK, "dashed"),
)
FAILURE_KEYS = (
    style.Key("backlog without the failure", style.MUTED, "dashed"),
    style.Key("failure", style.FAILURE),
)


@dataclass(frozen=True)
class Stage:
    """A stage of the time to recover, in seconds from the failure; ``name`` is its key in the record."""

    name: str
    label: str
    start_s: float
    end_s: float


def stages(recoveries: pd.DataFrame) -> list[Stage]:
    """The stages after each replication's first failure, one after the other; lengths are means over
    replications.

    An undefined stage is left out; a stage of length 0 is kept.
    """
    first = _first_failures(recoveries)
    found: list[Stage] = []
    at = 0.0
    for column in block("recoveries", "stages_s", first.columns):
        length = float(first[column.name].astype(float).mean()) if len(first) else math.nan
        if not is_undefined(length):
            found.append(Stage(column.key, column.label, at, at + length))
            at += length
    return found


def timeline(
    timeline: pd.DataFrame,
    recoveries: pd.DataFrame,
    *,
    span_s: tuple[float, float] | None = None,
    scale: Scale | None = None,
    axes: Sequence[Axes] | None = None,
    legend: bool = True,
) -> list[Axes]:
    """Three stacked axes for one strategy: throughput, latency, backlog; time 0 is the first failure.

    Lines are means over replications, bands run from the least to the greatest. Latency is end-to-end; the
    mean from the creation stamp is dashed. ``span_s``: seconds before (negative) and after the failure; by
    default all of the recovery. ``scale``: the vertical axes, if several strategies share them. Without a
    failure the whole run is shown.
    """
    if timeline["strategy"].nunique() != 1:
        raise ValueError("a timeline shows one strategy; filter the frames, or use timelines()")
    timeline, recoveries = conform("timeline", timeline), conform("recoveries", recoveries)
    span = span_s or _span(timeline, recoveries)
    with style.applied():
        drawn = list(axes) if axes is not None else _three(legend)
        _draw(drawn, timeline, recoveries, span)
        (scale or common_scale(timeline, recoveries, span)).apply(drawn)
        if axes is None and legend:
            style.legend_below(drawn[0].figure, legend_keys(recoveries), 1)
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
    parts = by_strategy(timelines, recoveries, strategies)
    if not 1 <= len(parts) <= MOST_COLUMNS:
        raise ValueError(f"a figure holds one to {MOST_COLUMNS} strategies, not {len(parts)}")
    span = span_s or common_span(timelines, recoveries)
    with style.applied():
        figure = style.new_figure(5.2)
        grid = figure.subplots(3, len(parts), sharex=True, sharey="row", squeeze=False)
        for column, (ticks, failed) in enumerate(parts):
            _draw(list(grid[:, column]), ticks, failed, span)
            common_scale(timelines, recoveries, span).apply(list(grid[:, column]))
        for row in grid:
            for ax in row[1:]:
                ax.set_ylabel("")
        style.legend_below(figure, legend_keys(*(failed for _, failed in parts)), 3)
    return figure


def _draw(
    axes: list[Axes], timeline: pd.DataFrame, recoveries: pd.DataFrame, span: tuple[float, float]
) -> None:
    aligned = _aligned(timeline, recoveries)
    shown = aligned[(aligned["time_s"] >= span[0]) & (aligned["time_s"] <= span[1])]
    colour = style.colours([str(timeline["strategy"].iloc[0])]).popitem()[1]
    _line(axes[0], shown, "throughput_per_s", colour)
    _line(axes[1], shown, "end_to_end_mean_ms", colour)
    _thin(axes[1], shown, "end_to_end_max_ms", "dotted", colour)
    _thin(axes[1], shown, "latency_mean_ms", "dashed", colour)
    _line(axes[2], shown, "backlog", colour)
    if len(recoveries):
        _thin(axes[2], shown, "backlog_without_failures", "dashed", style.MUTED)
        _shade(axes, stages(recoveries), _other_failures(recoveries), span)
    _label_axes(axes, timeline, recoveries, span)


def by_strategy(
    timelines: pd.DataFrame, recoveries: pd.DataFrame, strategies: Sequence[str] | None = None
) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Timeline and recoveries of each strategy; by default of all, in the order of the timelines."""
    names = strategies or dict.fromkeys(timelines["strategy"])
    return [(timelines[timelines["strategy"] == n], recoveries[recoveries["strategy"] == n]) for n in names]


def common_span(timelines: pd.DataFrame, recoveries: pd.DataFrame) -> tuple[float, float]:
    """Seconds before (negative) and after the failure that show the recovery of every strategy."""
    spans = [_span(*part) for part in by_strategy(timelines, recoveries)]
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
    reached = _first_failures(recoveries)[["catch_up_s", "time_to_recover_s"]].astype(float).max()
    length = max([_LEAST_SPAN_S, *ends, *reached.dropna()])
    left = float(timeline["second"].max()) + 1.0 - float(recoveries["failed_at_s"].min())
    before = min(max(10.0, 0.2 * length), float(recoveries["failed_at_s"].min()))
    return (-before, min(1.2 * length, max(left, 1.0)))


def _three(legend: bool) -> list[Axes]:
    figure = style.new_figure(6.4 if legend else 4.0, style.PANEL_IN)
    figure.get_layout_engine().set(h_pad=_STRIP_ROOM_IN)  # type: ignore[union-attr, call-arg]
    return list(figure.subplots(3, 1, sharex=True))


def _line(ax: Axes, shown: pd.DataFrame, column: str, colour: str) -> None:
    groups = shown.groupby("time_s")[column]
    times = groups.mean().index.to_numpy()
    if shown["replication"].nunique() > 1:
        low, high = groups.min().to_numpy(dtype=float), groups.max().to_numpy(dtype=float)
        ax.fill_between(times, low, high, step="mid", color=colour, alpha=0.22, linewidth=0)
    ax.plot(times, groups.mean().to_numpy(dtype=float), drawstyle="steps-mid", color=colour, label=column)


def _thin(ax: Axes, shown: pd.DataFrame, column: str, shape: style.Shape, colour: str) -> None:
    """The mean over replications without its range; for a column of maxima, their maximum."""
    groups = shown.groupby("time_s")[column]
    values = groups.max() if column.endswith("_max_ms") else groups.mean()
    look: dict[str, Any] = {"color": colour, "label": column, **style.LINES[shape]}
    ax.plot(values.index, values.to_numpy(dtype=float), drawstyle="steps-mid", **look)


@dataclass(frozen=True)
class Scale:
    """The vertical axes of a timeline: from 0 to ``throughput`` and ``backlog``; latency (ms) between two
    ends, logarithmic if they differ by more than a factor of 20, else from zero.
    """

    throughput: float
    latency: tuple[float, float]
    backlog: float

    def apply(self, axes: Sequence[Axes]) -> None:
        """To the three axes of a timeline."""
        low, high = self.latency
        axes[0].set_ylim(0, self.throughput)
        axes[2].set_ylim(0, self.backlog)
        for ax in (axes[0], axes[2]):
            ax.locator_params(axis="y", nbins=5)
            ax.yaxis.set_major_formatter(lambda value, _: plain(value))
        if 0 < 20 * low < high:
            axes[1].set_yscale("log")
            axes[1].set_ylim(low / 1.5, 1.5 * high)
            axes[1].yaxis.set_major_formatter(lambda value, _: plain(value))
        else:
            axes[1].set_ylim(0, 1.05 * high if high > 0 else 1.0)


_LATENCIES = ["latency_mean_ms", "end_to_end_mean_ms", "end_to_end_max_ms"]


def common_scale(timelines: pd.DataFrame, recoveries: pd.DataFrame, span: tuple[float, float]) -> Scale:
    """Vertical axes on which no value of any strategy is cut off, in the span that is shown."""
    import pandas as pd

    every = pd.concat([_aligned(*part) for part in by_strategy(timelines, recoveries)])
    shown = every[(every["time_s"] >= span[0]) & (every["time_s"] <= span[1])]
    latencies = shown[_LATENCIES].astype(float)
    low, high = (
        0.0 if is_undefined(end) else float(end) for end in (latencies.min().min(), latencies.max().max())
    )
    counts = (1.05 * float(shown[name].max()) for name in ("throughput_per_s", "backlog"))
    throughput, backlog = (0.0 if is_undefined(top) else top for top in counts)
    return Scale(max(throughput, 1.0), (low, high), max(backlog, 10.0))


def _other_failures(recoveries: pd.DataFrame) -> list[float]:
    """Further failures after the first, if they are the same in every replication."""
    times = {tuple(sorted(part)) for _, part in recoveries.groupby("replication")["failed_at_s"]}
    if len(times) != 1:
        return []
    first, *rest = times.pop()
    return [time - first for time in rest]


def _shade(axes: Sequence[Axes], found: list[Stage], others: list[float], span: tuple[float, float]) -> None:
    for ax in axes:
        for stage, (start, end) in zip(found, _spans(found, span), strict=True):
            if end > start:
                look: dict[str, Any] = {"facecolor": style.stage_colour(stage.name), **style.STAGE_EDGE}
                ax.axvspan(
                    start, end, *_STRIP, clip_on=False, in_layout=False, label=f"stage: {stage.name}", **look
                )
                ax.axvline(end, color=style.GRID, linewidth=0.8, zorder=0.5, label="end of a stage")
        ax.axvline(0.0, color=style.FAILURE, linewidth=1.2, zorder=3, label="failure")
        for time in others:
            if span[0] <= time <= span[1]:
                ax.axvline(time, color=style.FAILURE, linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)


def _spans(found: list[Stage], span: tuple[float, float]) -> list[tuple[float, float]]:
    """Where each stage is drawn: within ``span``, and long enough to be seen if it took any time."""
    drawn, at = [], 0.0
    for stage in found:
        end = max(stage.end_s, at + _LEAST_SHOWN * (span[1] - span[0]) if stage.end_s > stage.start_s else at)
        drawn.append((max(span[0], min(at, span[1])), max(span[0], min(end, span[1]))))
        at = end
    return drawn


def _label_axes(
    axes: Sequence[Axes], timeline: pd.DataFrame, recoveries: pd.DataFrame, span: tuple[float, float]
) -> None:
    for ax, text in zip(axes, ("throughput\n(tuples/s)", "latency\n(ms)", "backlog\n(roots)"), strict=True):
        ax.set_ylabel(text)
        ax.grid(axis="y")
    text = _lengths(stages(recoveries), _letters(axes[0])) if len(recoveries) else ""
    lines = max(_LINES_OF_LENGTHS, len(text.splitlines())) if len(recoveries) else 0
    name = strategy_name(timeline["strategy"].iloc[0])
    axes[0].set_title(name, pad=6 + (9 + 9 * lines if lines else 0))
    small: dict[str, Any] = {"fontsize": 7, "color": style.MUTED, "in_layout": False}
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes[0].annotate(text, (0, 1), (0, 10), **small, **place)
    axes[2].set_xlabel("time from the failure (s)" if len(recoveries) else "time (s)")
    axes[2].set_xlim(*span)


def _letters(ax: Axes) -> int:
    """How many small letters fit on a line above the axes."""
    spec = ax.get_subplotspec()
    columns = 1 if spec is None else spec.get_gridspec().ncols
    return round(15 * ax.figure.bbox.width / ax.figure.dpi / columns)


def _lengths(found: list[Stage], width: int) -> str:
    """The stages that took time with their lengths, since short ones are too thin to see; in lines of at most
    ``width`` letters.
    """
    lengths = {stage.label: stage.end_s - stage.start_s for stage in found}
    return filled((f"{name} {_length(s)}" for name, s in lengths.items() if s > 0), width, " · ")


def _length(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if 0 < seconds < 0.1 else f"{seconds:.3g} s"


def legend_keys(*recoveries: pd.DataFrame) -> list[style.Key]:
    """What the lines and colours of timelines with these recoveries stand for."""
    if not any(len(failed) for failed in recoveries):
        return list(LINES)
    present = {name for failed in recoveries for name in failed.columns}
    return [*LINES, *FAILURE_KEYS, *style.stage_keys(present)]
