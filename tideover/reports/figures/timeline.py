"""What happened around failures: curves over time, stages, roots, and use of resources.

Called by the pages of runs and comparisons, by `tideover explore` (roots), and by notebooks. How a stage or a
line looks is in `style`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tideover.models.schema import HEADLINE, OPEN, block
from tideover.reports.columns import conform
from tideover.reports.figures import style
from tideover.reports.figures.cluster import loads
from tideover.reports.formatting import filled, is_undefined, number, strategy_name, with_ending
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tideover.models.accounts.trace import Trace
    from tideover.models.results import Result


# What happened around the failure: throughput, latency and backlog over time, with the stages of the
# recovery in a strip above each.

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


class Stage(NamedTuple):
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


class View(NamedTuple):
    """What axes show of several timelines so that nothing is cut off: from ``begin`` to ``end`` (s from the
    failure), 0 to ``throughput``, 0 to ``backlog``; latencies (ms) between two ends.
    """

    begin: float
    end: float
    throughput: float
    least_ms: float
    most_ms: float
    backlog: float


def view_of(timelines: pd.DataFrame, recoveries: pd.DataFrame) -> View:
    """All of the recovery under every strategy, and some time before it; without a failure all there is."""
    import pandas as pd

    parts = by_strategy(timelines, recoveries)
    spans = []
    for ticks, failed in parts:
        length = float(ticks["second"].max()) + 1.0
        if failed.empty:
            spans.append((0.0, length))
            continue
        ends = [stage.end_s for stage in stages(failed)]
        reached = _first_failures(failed)[["catch_up_s", "time_to_recover_s"]].astype(float).max()
        most, first = max([_LEAST_SPAN_S, *ends, *reached.dropna()]), float(failed["failed_at_s"].min())
        before = min(max(10.0, 0.2 * most), first)
        spans.append((-before, min(1.2 * most, max(length - first, 1.0))))
    begin, end = min(low for low, _ in spans), max(high for _, high in spans)
    every = pd.concat([_aligned(*part) for part in parts])
    shown = every[(every["time_s"] >= begin) & (every["time_s"] <= end)]
    latencies = shown[["latency_mean_ms", "end_to_end_mean_ms", "end_to_end_max_ms"]].astype(float)
    throughput, low, high, backlog = (
        0.0 if is_undefined(end) else float(end)
        for end in (
            shown["throughput_per_s"].max(),
            latencies.min().min(),
            latencies.max().max(),
            shown["backlog"].max(),
        )
    )
    return View(begin, end, max(1.05 * throughput, 1.0), low, high, max(1.05 * backlog, 10.0))


def timeline(
    timeline: pd.DataFrame, recoveries: pd.DataFrame, *, seen: View | None = None, legend: bool = True
) -> list[Axes]:
    """Three stacked axes for one strategy: throughput, latency, backlog; time 0 is the first failure.

    Lines are means over replications, bands run from the least to the greatest. Latency is end-to-end; the
    mean from the creation stamp is dashed. ``seen``: the axes, if several strategies share them. Without a
    failure the whole run is shown.
    """
    if timeline["strategy"].nunique() != 1:
        raise ValueError("a timeline shows one strategy; filter the frames, or use timelines()")
    timeline, recoveries = conform("timeline", timeline), conform("recoveries", recoveries)
    with style.applied():
        figure = style.new_figure(6.4 if legend else 4.0, style.PANEL_IN)
        figure.get_layout_engine().set(h_pad=_STRIP_ROOM_IN)  # type: ignore[union-attr, call-arg]
        drawn = list(figure.subplots(3, 1, sharex=True))
        _draw(drawn, timeline, recoveries, seen or view_of(timeline, recoveries))
        if legend:
            style.legend_below(figure, legend_keys(recoveries), 1)
    return drawn


def timelines(
    timelines: pd.DataFrame, recoveries: pd.DataFrame, strategies: Sequence[str] | None = None
) -> Figure:
    """One column a strategy (three at most), on the same axes, with one legend for the stages."""
    timelines, recoveries = conform("timeline", timelines), conform("recoveries", recoveries)
    parts = by_strategy(timelines, recoveries, strategies)
    if not 1 <= len(parts) <= MOST_COLUMNS:
        raise ValueError(f"a figure holds one to {MOST_COLUMNS} strategies, not {len(parts)}")
    seen = view_of(timelines, recoveries)
    with style.applied():
        figure = style.new_figure(5.2)
        grid = figure.subplots(3, len(parts), sharex=True, sharey="row", squeeze=False)
        for column, (ticks, failed) in enumerate(parts):
            _draw(list(grid[:, column]), ticks, failed, seen)
        for ax in grid[:, 1:].flat:
            ax.set_ylabel("")
        style.legend_below(figure, legend_keys(*(failed for _, failed in parts)), 3)
    return figure


def _draw(axes: Sequence[Axes], timeline: pd.DataFrame, recoveries: pd.DataFrame, seen: View) -> None:
    aligned = _aligned(timeline, recoveries)
    shown = aligned[(aligned["time_s"] >= seen.begin) & (aligned["time_s"] <= seen.end)]
    strategy = str(timeline["strategy"].iloc[0])
    colour = style.colours([strategy])[strategy]
    _line(axes[0], shown, "throughput_per_s", colour)
    _line(axes[1], shown, "end_to_end_mean_ms", colour)
    _line(axes[1], shown, "end_to_end_max_ms", colour, "dotted")
    _line(axes[1], shown, "latency_mean_ms", colour, "dashed")
    _line(axes[2], shown, "backlog", colour)
    if len(recoveries):
        _line(axes[2], shown, "backlog_without_failures", style.MUTED, "dashed")
        for ax in axes:
            _mark_failure(ax, recoveries, seen)
    for ax, text in zip(axes, ("throughput\n(tuples/s)", "latency\n(ms)", "backlog\n(roots)"), strict=True):
        ax.set_ylabel(text)
        ax.grid(axis="y")
    _title(axes[0], strategy_name(strategy), recoveries)
    axes[2].set_xlabel("time from the failure (s)" if len(recoveries) else "time (s)")
    axes[2].set_xlim(seen.begin, seen.end)
    for ax, most in ((axes[0], seen.throughput), (axes[2], seen.backlog)):
        ax.set_ylim(0, most)
        ax.locator_params(axis="y", nbins=5)
        style.plain_ticks(ax.yaxis)
    low, high = seen.least_ms, seen.most_ms
    if 0 < 20 * low < high:
        axes[1].set_yscale("log")
        axes[1].set_ylim(low / 1.5, 1.5 * high)
        style.plain_ticks(axes[1].yaxis)
    else:
        axes[1].set_ylim(0, 1.05 * high if high > 0 else 1.0)


def by_strategy(
    timelines: pd.DataFrame, recoveries: pd.DataFrame, strategies: Sequence[str] | None = None
) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Timeline and recoveries of each strategy; by default of all, in the order of the timelines."""
    names = strategies or dict.fromkeys(timelines["strategy"])
    return [(timelines[timelines["strategy"] == n], recoveries[recoveries["strategy"] == n]) for n in names]


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


def _line(ax: Axes, shown: pd.DataFrame, column: str, colour: str, shape: style.Shape = "line") -> None:
    """The mean over replications, with its range if the line is not thin; of maxima, their maximum."""
    groups = shown.groupby("time_s")[column]
    values = groups.max() if column.endswith("_max_ms") else groups.mean()
    if shape == "line" and shown["replication"].nunique() > 1:
        low, high = groups.min().to_numpy(dtype=float), groups.max().to_numpy(dtype=float)
        ax.fill_between(values.index.to_numpy(), low, high, step="mid", color=colour, alpha=0.22, linewidth=0)
    look: dict[str, Any] = {"color": colour, "label": column, **style.LINES[shape]}
    ax.plot(values.index, values.to_numpy(dtype=float), drawstyle="steps-mid", **look)


def _mark_failure(ax: Axes, recoveries: pd.DataFrame, seen: View) -> None:
    """The stages, the failure, and further ones, if they are the same in every replication."""
    at = 0.0
    for stage in stages(recoveries):
        # long enough to be seen if it took any time, and within the span
        least = at + _LEAST_SHOWN * (seen.end - seen.begin) if stage.end_s > stage.start_s else at
        end = max(stage.end_s, least)
        left, right = (max(seen.begin, min(moment, seen.end)) for moment in (at, end))
        at = end
        if right > left:
            look: dict[str, Any] = {"facecolor": style.STAGES.get(stage.name, style.GREY), **style.STAGE_EDGE}
            look |= {"clip_on": False, "in_layout": False, "label": f"stage: {stage.name}"}
            ax.axvspan(left, right, *_STRIP, **look)
            ax.axvline(right, color=style.GRID, linewidth=0.8, zorder=0.5, label="end of a stage")
    red: dict[str, Any] = {"color": style.FAILURE, "linewidth": 1.2, "zorder": 3}
    ax.axvline(0.0, label="failure", **red)
    times = {tuple(sorted(part)) for _, part in recoveries.groupby("replication")["failed_at_s"]}
    first, *others = times.pop() if len(times) == 1 else [0.0]
    for time in others:
        if seen.begin <= time - first <= seen.end:
            ax.axvline(time - first, linestyle=(0, (4, 2)), **red)


def _title(ax: Axes, name: str, recoveries: pd.DataFrame) -> None:
    """The strategy, and below it the lengths of the stages: short ones are too thin to be seen."""
    lengths = {stage.label: stage.end_s - stage.start_s for stage in stages(recoveries)}
    told = []
    for label, s in lengths.items():
        if s > 0:
            told.append(f"{label} {1000 * s:.3g} ms" if s < 0.1 else f"{label} {s:.3g} s")
    spec = ax.get_subplotspec()
    columns = 1 if spec is None else spec.get_gridspec().ncols
    letters = round(15 * ax.figure.bbox.width / ax.figure.dpi / columns)  # as many small ones fit on a line
    text = filled(told, letters, " · ") if len(recoveries) else ""
    lines = max(_LINES_OF_LENGTHS, len(text.splitlines())) if len(recoveries) else 0
    ax.set_title(name, pad=6 + (9 + 9 * lines if lines else 0))
    small: dict[str, Any] = {"fontsize": 7, "color": style.MUTED, "in_layout": False}
    ax.annotate(text, (0, 1), (0, 10), xycoords="axes fraction", **small, **style.POINTS)


def legend_keys(*recoveries: pd.DataFrame) -> list[style.Key]:
    """What the lines and colours of timelines with these recoveries stand for."""
    if not any(len(failed) for failed in recoveries):
        return list(LINES)
    present = {name for failed in recoveries for name in failed.columns}
    return [*LINES, *FAILURE_KEYS, *style.stage_keys(present)]


# The failures of a run one below the other, each with the stages of its recovery.

MOST_FAILURES = 20
"""Failures that are drawn: the first ones."""
_MIDDLE, _NAME = 0.17, -0.08
"""Where in its row (from -0.5 to 0.5, downwards) the bar's middle and the text's foot are."""
WATERFALL_KEYS = (style.Key("a later failure", style.FAILURE),)


def of_first_replication(recoveries: pd.DataFrame) -> pd.DataFrame:
    """The failures of the first replication that has any, in the order in which they struck."""
    recoveries = conform("recoveries", recoveries)
    first = recoveries[recoveries["replication"] == recoveries["replication"].min()]
    return first.sort_values("failed_at_s", kind="stable").reset_index(drop=True)


def waterfall(
    recoveries: pd.DataFrame,
    *,
    span_s: float | None = None,
    width_in: float = style.WIDTH_IN,
    legend: bool = True,
) -> Axes:
    """One bar a failure of the first replication: its stages, one after the other, from the moment when it
    struck. Above it stand that moment, what failed and the time to recover (``75.0 s  crash_task of count:
    23.1 s``); a red line is a later failure.

    Of more than ``MOST_FAILURES`` the first ones are drawn. The bar of a failure that was not recovered from
    has the stages that are known, and is open at its end. ``span_s``: length of the axis; None: of the
    longest bar.
    """
    mine = of_first_replication(recoveries)
    struck = mine["failed_at_s"].to_numpy(dtype=float)
    shown = mine.head(MOST_FAILURES)
    with style.applied():
        ax = style.new_axes(0.6 + 0.4 * len(shown) + (0.8 if legend else 0.0), width_in)
        rows = []
        for row in shown.to_dict("records"):
            over, time = not is_undefined(row[HEADLINE]), f"{number(row[HEADLINE])} s"
            told = with_ending(time, [row["ended"]]) if over else OPEN
            words = f"{row['failed_at_s']:,.1f} s  {row['kind']} of {row['component']}: {told}"
            rows.append((row, words, over))
        ends = style.stage_bars(ax, rows, _MIDDLE, _NAME)
        for place, (end, at) in enumerate(zip(ends, struck, strict=False)):
            for later in struck[(struck > at) & (struck < at + end)] - at:
                line: dict[str, Any] = {"color": style.FAILURE, "linewidth": 1.2}
                ax.plot([later, later], [place + _MIDDLE - 0.24, place + _MIDDLE + 0.24], **line)
        style.time_from_failure(ax, len(shown), max(ends, default=0.0) if span_s is None else span_s, -0.6)
        if legend:
            style.legend_below(ax.figure, (*style.stage_keys(shown.columns), *WATERFALL_KEYS), 4)
    return ax


def known_s(recoveries: pd.DataFrame) -> float:
    """How long (s) the longest bar is that ``waterfall`` draws of these."""
    shown = of_first_replication(recoveries).head(MOST_FAILURES)
    names = [stage.name for stage in block("recoveries", "stages_s", shown.columns)]
    return float(shown[names].astype(float).sum(axis=1).max()) if len(shown) else 0.0


# What became of each root that timed out, above the buckets of the rotating maps in which it waited.

WAITS, LOST, GIVEN_UP = "#d5d9de", style.ORANGE, style.SKY
_HATCH: Any = {"edgecolor": style.INK, "linewidth": 0}
ROOT_KEYS = (
    style.Key("waits for its ack", WAITS, "area"),
    style.Key("lost, and the spout does not know", LOST, "area", {"hatch": "///"}),
    style.Key("given up, waits for its turn", GIVEN_UP, "area", {"hatch": ".."}),
    style.Key("emitted", style.INK, "mark", {"marker": ".", "markersize": 5}),
    style.Key("emitted again", style.BLUE, "mark", {"marker": "s", "markersize": 3.5}),
    style.Key("failure", style.FAILURE, "line", {"linewidth": 1.8}),
    style.Key("rotation", style.MUTED, "dashed"),
)
_MOST_BUCKETS = 64


class Roots:
    """Of a traced run the roots whose first attempt timed out, in the order of their ``number``; times in s.

    lost       from when nothing of it would be acked any more: the failure, or the emission if that was later
    again      when it was emitted the second time; not a number: not before the end of the run
    rotations  when the map of each spout task was rotated
    """

    def __init__(self, trace: Trace, failures_s: Iterable[float]) -> None:
        self._trace = trace
        first = {root: at for _, _, root, attempt, at in trace.emitted if attempt == 0}
        again = {root: at for _, _, root, attempt, at in trace.emitted if attempt == 1}
        given_up = {root: at for root, attempt, at in trace.failed if attempt == 0}
        self.number = np.array(sorted(given_up), np.int64)
        self.emitted, self.given_up, self.again = (
            np.array([of.get(n, np.nan) for n in self.number], float) / S for of in (first, given_up, again)
        )
        self.lost = self.emitted.copy()
        for failure in failures_s:
            self.lost = np.where(failure <= self.given_up, np.maximum(self.lost, failure), self.lost)
        turns: dict[str, list[float]] = {}
        for step in trace.steps:
            if step.what == "buckets rotated":
                turns.setdefault(step.who, []).append(step.at / S)
        self.rotations = {who: np.array(at) for who, at in turns.items()}

    def instants(self, margin: float, count: int) -> np.ndarray:
        """So many moments, evenly from before the first emission to after the last of what is known.

        ``margin``: how much before and after, as a part of what lies between.
        """
        begin, end = self.emitted.min(), np.nanmax([*self.again, *self.given_up])
        return np.linspace(begin - margin * (end - begin), end + margin * (end - begin), count)

    def in_buckets(self, at_s: np.ndarray) -> np.ndarray:
        """How many roots are in which bucket: for each bucket, the newest first, those that are not lost, and
        those that are, at each of the instants.
        """
        trace = self._trace
        ends = {(root, attempt): at / S for root, attempt, at in [*trace.completed, *trace.failed]}
        lost = dict(zip(self.number.tolist(), self.lost.tolist(), strict=True))
        counts = np.zeros((_MOST_BUCKETS, 2, len(at_s)), np.int64)
        for name, task, root, attempt, at in trace.emitted:
            first, last = np.searchsorted(at_s, [at / S, ends.get((root, attempt), np.inf)])
            own, when = self.rotations.get(f"{name}.{task}", np.empty(0)), at_s[first:last]
            # At one instant a root is put into the map before that is rotated.
            depth = np.searchsorted(own, when, "right") - np.searchsorted(own, at / S, "left")
            gone = when >= (lost.get(root, np.inf) if attempt == 0 else np.inf)
            counts[depth, gone.astype(int), np.arange(first, last)] += 1
        return counts[: np.flatnonzero(counts.any(axis=(1, 2))).max(initial=0) + 1]


def roots(result: Result) -> Figure:
    """Above: each root that timed out, from its emission to the next. Below: how many roots are in each
    bucket of the spouts' maps. Of a run under acks (source replay and the like), with ``trace=True``; of its
    first replication.
    """
    if not result.traces:
        raise ValueError("a figure of roots needs their times: run(…, trace=True)")
    trace, recoveries = result.traces[0], result.replications[0].recoveries
    these = Roots(trace, [row["failed_at_s"] for row in recoveries])
    if not these.number.size:
        raise ValueError("no root timed out: there is nothing to draw")
    instants = these.instants(0.1, 1000)
    span, inside = (instants[0], instants[-1]), these.in_buckets(instants)
    with style.applied():
        figure = style.new_figure(3.6 + 0.55 * len(inside))
        heights = [4.6, *[1] * len(inside)]
        above, *below = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
        _draw_roots(above, these)
        names = ["newest bucket: takes in what is emitted", *(f"bucket {n}" for n in range(2, len(inside)))]
        names.append("oldest bucket: what is in it at a rotation is given up")
        most = inside.sum(axis=1).max()
        for axes, name, (waits, lost) in zip(below, names, inside, strict=False):
            axes.fill_between(instants, lost, facecolor=LOST, hatch="///", **_HATCH)
            axes.fill_between(instants, lost, lost + waits, facecolor=WAITS, linewidth=0)
            axes.set(ylim=(0, 1.12 * most), ylabel="roots")
            axes.set_title(name, fontweight="normal", fontsize=8.5)
        rotated = {at for each in these.rotations.values() for at in each if span[0] < at < span[1]}
        for axes in (above, *below):
            for at in rotated:
                axes.axvline(at, color=style.MUTED, **style.LINES["dashed"])
            for row in recoveries:
                axes.axvline(row["failed_at_s"], color=style.FAILURE, linewidth=1.8)
        for row in recoveries:
            if took_s := row["state_recovery_s"]:
                low, high = above.get_ylim()
                begin, y = row["ready_at_s"], low + 0.06 * (high - low)
                arrow = {"arrowstyle": "<->", "color": style.INK, "shrinkA": 0, "shrinkB": 0}
                above.annotate("", (begin, y), (begin + took_s, y), arrowprops=arrow)
                words: Any = {"ha": "center", "va": "bottom", "fontsize": 9, "backgroundcolor": style.PAPER}
                above.text(begin + took_s / 2, y, f"state recovery {took_s:.1f} s", **words)
        below[-1].set(xlabel="time (s)", xlim=span)
        style.legend_below(figure, ROOT_KEYS, 4)
    return figure


def _draw_roots(axes: Axes, these: Roots) -> None:
    again = np.where(np.isnan(these.again), these.given_up, these.again)
    for batch in np.split(np.arange(len(these.number)), np.flatnonzero(np.diff(these.given_up)) + 1):
        rows = these.number[batch]
        edges = np.append(rows - 0.5, rows[-1] + 0.5)
        moments = [
            np.append(times[batch], times[batch][-1])
            for times in (these.emitted, these.lost, these.given_up, again)
        ]
        looks: Any = ({"facecolor": WAITS}, {"facecolor": LOST, "hatch": "///"})
        looks += ({"facecolor": GIVEN_UP, "hatch": ".."},)
        for begin, end, look in zip(moments, moments[1:], looks, strict=False):
            axes.fill_betweenx(edges, begin, end, step="post", **_HATCH, **look)
    axes.plot(these.emitted, these.number, ".", color=style.INK, markersize=2)
    axes.plot(these.again, these.number, "s", color=style.BLUE, markersize=1.6)
    low, high = these.number[0], max(these.number[-1], these.number[0] + 1)
    axes.set(ylabel="root, by number", ylim=(low - 0.22 * (high - low), high + 0.06 * (high - low)))


# How busy resources are over time: a line for each of the busiest, the darker the busier.

MOST = 20
"""Resources that are drawn: the busiest ones."""


def usage_over_time(usage: pd.DataFrame, failures_s: tuple[float, ...] = (), *, after_s: float = 0.0) -> Axes:
    """A row for each of the busiest resources (mean over the replications), over simulated time; failures as
    lines.
    """
    from matplotlib.colors import ListedColormap

    found: Any = loads(usage, after_s).sort_values("busy", ascending=False, kind="stable").head(MOST)
    table: Any = conform("usage", usage).pivot_table(
        index=["resource", "kind", "host"], columns="begin_s", values="busy", aggfunc="mean", dropna=False
    )
    ends = [*table.columns, float(usage["end_s"].max())]
    names = []
    for row in found.itertuples(index=False):
        on = "" if row.host != row.host or row.kind == "task" else f" of host {int(row.host)}"
        names.append(f"{row.resource}{on}, {row.busy:.0%}")
    with style.applied():
        ax = style.new_axes(0.75 + 0.2 * len(names))
        for place, row in enumerate(found.itertuples(index=False)):
            values = table.loc[(row.resource, row.kind, row.host)].to_numpy(dtype=float)
            colours = ListedColormap([style.shade(value) for value in values])
            cells: dict[str, Any] = {"cmap": colours, "vmin": -0.5, "vmax": len(values) - 0.5}
            cells |= {"edgecolors": "face", "linewidth": 0.2}  # else the page shines through between them
            ax.pcolormesh(ends, [place - 0.45, place + 0.45], [list(range(len(values)))], **cells)
        for moment in failures_s:
            ax.axvline(moment, color=style.FAILURE, linewidth=1.0)
        ax.set(xlabel="simulated time (s)", yticks=range(len(names)), ylim=(len(names) - 0.5, -0.5))
        ax.set_yticklabels(names, fontsize=7.5)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    return ax
