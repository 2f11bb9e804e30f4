"""What became of each root that timed out, above the buckets of the rotating maps in which it waited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.reports.figures import style
from tideover.sim.train import Ints
from tideover.sim.units import S

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tideover.models.accounts.trace import Trace
    from tideover.models.results.result import Result

WAITS, LOST, GIVEN_UP = "#d5d9de", style.ORANGE, style.SKY
_HATCH: Any = {"edgecolor": style.INK, "linewidth": 0}
KEYS = (
    style.Key("waits for its ack", WAITS, "area"),
    style.Key("lost, and the spout does not know", LOST, "area", {"hatch": "///"}),
    style.Key("given up, waits for its turn", GIVEN_UP, "area", {"hatch": ".."}),
    style.Key("emitted", style.INK, "mark", {"marker": ".", "markersize": 5}),
    style.Key("emitted again", style.BLUE, "mark", {"marker": "s", "markersize": 3.5}),
    style.Key("failure", style.FAILURE, "line", {"linewidth": 1.8}),
    style.Key("rotation", style.MUTED, "dashed"),
)
_MARGIN = 0.1
"""What is shown before the first of these roots and after the recovery, as a part of what lies between."""
_MOST_BUCKETS = 64
_INSTANTS = 1000
"""At which the buckets are looked at."""


@dataclass(frozen=True)
class Roots:
    """Roots that timed out, by number, of a traced run; times in s.

    ``lost``: from when nothing of it would be acked any more: the failure, or the emission if that was later.
    ``again``: when it was emitted the second time; not a number: not before the end of the run.
    """

    number: Ints
    emitted: np.ndarray
    lost: np.ndarray
    given_up: np.ndarray
    again: np.ndarray


def timed_out(trace: Trace, failures_s: Iterable[float]) -> Roots:
    """The roots whose first attempt timed out, in the order of their numbers."""
    first = {root: at for _, _, root, attempt, at in trace.emitted if attempt == 0}
    again = {root: at for _, _, root, attempt, at in trace.emitted if attempt == 1}
    given_up = {root: at for root, attempt, at in trace.failed if attempt == 0}
    number = np.array(sorted(given_up), np.int64)
    emitted, gone = (np.array([of[n] for n in number], float) / S for of in (first, given_up))
    lost = emitted.copy()
    for failure in failures_s:
        lost = np.where(failure <= gone, np.maximum(lost, failure), lost)
    return Roots(number, emitted, lost, gone, np.array([again.get(n, np.nan) for n in number], float) / S)


def rotations(trace: Trace) -> dict[str, np.ndarray]:
    """When the map of each spout task was rotated, s."""
    found: dict[str, list[float]] = {}
    for step in trace.steps:
        if step.what == "buckets rotated":
            found.setdefault(step.who, []).append(step.at / S)
    return {who: np.array(at) for who, at in found.items()}


def roots(result: Result) -> Figure:
    """Above: each root that timed out, from its emission to the next. Below: how many roots are in each
    bucket of the spouts' maps. Of a run under acks (source replay and the like), with ``trace=True``; of its
    first replication.
    """
    if not result.traces:
        raise ValueError("a figure of roots needs their times: run(…, trace=True)")
    trace, recoveries = result.traces[0], result.replications[0].recoveries
    these = timed_out(trace, [row["failed_at_s"] for row in recoveries])
    if not these.number.size:
        raise ValueError("no root timed out: there is nothing to draw")
    begin, end = these.emitted.min(), np.nanmax([*these.again, *these.given_up])
    span = begin - _MARGIN * (end - begin), end + _MARGIN * (end - begin)
    turns = rotations(trace)
    instants = np.linspace(*span, _INSTANTS)
    inside = in_buckets(trace, turns, these, instants)
    with style.applied():
        figure = style.new_figure(3.6 + 0.55 * len(inside))
        heights = [4.6, *[1] * len(inside)]
        above, *below = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
        _draw_roots(above, these)
        _draw_buckets(below, inside, instants)
        for axes in (above, *below):
            for at in {at for each in turns.values() for at in each if span[0] < at < span[1]}:
                axes.axvline(at, color=style.MUTED, **style.LINES["dashed"])
            for row in recoveries:
                axes.axvline(row["failed_at_s"], color=style.FAILURE, linewidth=1.8)
        for row in recoveries:
            _measure(above, row["ready_at_s"], row["state_recovery_s"])
        below[-1].set(xlabel="time (s)", xlim=span)
        style.legend_below(figure, KEYS, 4)
    return figure


def in_buckets(trace: Trace, turns: dict[str, np.ndarray], these: Roots, at_s: np.ndarray) -> np.ndarray:
    """How many roots are in which bucket: for each bucket, the newest first, those that are not lost, and
    those that are, at each of the instants.
    """
    ends = {(root, attempt): at / S for root, attempt, at in [*trace.completed, *trace.failed]}
    lost = dict(zip(these.number.tolist(), these.lost.tolist(), strict=True))
    counts = np.zeros((_MOST_BUCKETS, 2, len(at_s)), np.int64)
    for name, task, root, attempt, at in trace.emitted:
        first, last = np.searchsorted(at_s, [at / S, ends.get((root, attempt), np.inf)])
        own, when = turns.get(f"{name}.{task}", np.empty(0)), at_s[first:last]
        # At one instant a root is put into the map before that is rotated.
        depth = np.searchsorted(own, when, "right") - np.searchsorted(own, at / S, "left")
        gone = when >= (lost.get(root, np.inf) if attempt == 0 else np.inf)
        counts[depth, gone.astype(int), np.arange(first, last)] += 1
    return counts[: np.flatnonzero(counts.any(axis=(1, 2))).max(initial=0) + 1]


def _draw_roots(axes: Axes, these: Roots) -> None:
    again = np.where(np.isnan(these.again), these.given_up, these.again)
    for batch in np.split(np.arange(len(these.number)), np.flatnonzero(np.diff(these.given_up)) + 1):
        rows = these.number[batch]
        emitted, lost, given_up, out = (
            each[batch] for each in (these.emitted, these.lost, these.given_up, again)
        )
        _area(axes, rows, emitted, lost, facecolor=WAITS)
        _area(axes, rows, lost, given_up, facecolor=LOST, hatch="///")
        _area(axes, rows, given_up, out, facecolor=GIVEN_UP, hatch="..")
    axes.plot(these.emitted, these.number, ".", color=style.INK, markersize=2)
    axes.plot(these.again, these.number, "s", color=style.BLUE, markersize=1.6)
    low, high = these.number[0], max(these.number[-1], these.number[0] + 1)
    axes.set(ylabel="root, by number", ylim=(low - 0.22 * (high - low), high + 0.06 * (high - low)))


def _area(axes: Axes, rows: Ints, begin: np.ndarray, end: np.ndarray, **look: Any) -> None:
    """A stretch of time of each of some roots, one on the other."""
    edges = np.append(rows - 0.5, rows[-1] + 0.5)
    left, right = (np.append(times, times[-1]) for times in (begin, end))
    axes.fill_betweenx(edges, left, right, step="post", **_HATCH, **look)


def _measure(axes: Axes, ready_s: float, took_s: float | None) -> None:
    """The distance that is called state recovery."""
    if not took_s:
        return
    low, high = axes.get_ylim()
    y = low + 0.06 * (high - low)
    arrow = {"arrowstyle": "<->", "color": style.INK, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (ready_s, y), (ready_s + took_s, y), arrowprops=arrow)
    words: Any = {"ha": "center", "va": "bottom", "fontsize": 9, "backgroundcolor": style.PAPER}
    axes.text(ready_s + took_s / 2, y, f"state recovery {took_s:.1f} s", **words)


def _draw_buckets(rows: list[Axes], inside: np.ndarray, at_s: np.ndarray) -> None:
    between = [f"bucket {n}" for n in range(2, len(inside))]
    names = [
        "newest bucket: takes in what is emitted",
        *between,
        "oldest bucket: what is in it at a rotation is given up",
    ]
    most = inside.sum(axis=1).max()
    for axes, name, (waits, lost) in zip(rows, names, inside, strict=False):
        axes.fill_between(at_s, lost, facecolor=LOST, hatch="///", **_HATCH)
        axes.fill_between(at_s, lost, lost + waits, facecolor=WAITS, linewidth=0)
        axes.set(ylim=(0, 1.12 * most), ylabel="roots")
        axes.set_title(name, fontweight="normal", fontsize=8.5)
