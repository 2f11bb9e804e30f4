"""The points of a sweep, what figures draw of them, and their tables.

Called by the pages and the terminal, of plans too. Which key is where in a figure is decided in ``layout``;
what is asked of a sweep that has a million points is done by numpy here, never point by point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models.schema import HEADLINE, LOSSY, UNAFFECTED, block, named
from tideover.reports import wording
from tideover.reports.formatting import UNDEFINED, is_undefined, number, size, strategy_name, with_ending
from tideover.reports.tables import Notes, Table
from tideover.scenarios.statistics.intervals import Estimate
from tideover.scenarios.sweeps.factors import as_number, unit_of, written
from tideover.scenarios.sweeps.rows import AT_LEAST, FIGURES, QUANTILES, quantiles

if TYPE_CHECKING:
    import pandas as pd

# Which swept key is where in a figure: an axis, a line each, a panel each, or averaged over.

MOST_LINES, MOST_PANELS, MOST_BESIDE = 8, 6, 3
"""Most lines; most panels of one key; most values of each of two keys, as columns and rows of panels."""
MOST_ROWS = 24
"""Most names (or combinations of names) that are set one below the other."""


@dataclass(frozen=True)
class Layout:
    """``x`` and ``y`` are axes, the values of ``lines`` lines or, without ``x``, rows of a panel; ``columns``
    and ``rows`` are panels. Other keys that vary are ``averaged``. ``most``: of the values of ``lines``.
    """

    x: Key | None
    y: Key | None
    lines: Key | None
    columns: Key | None
    rows: Key | None
    averaged: tuple[Key, ...]
    most: int

    @property
    def used(self) -> tuple[Key, ...]:
        every = (self.x, self.y, self.lines, self.columns, self.rows)
        return tuple(key for key in every if key is not None)

    @property
    def limits(self) -> list[tuple[Key, int]]:
        """The keys of which not every value has a place, and how many have."""
        beside = MOST_PANELS if self.rows is None else MOST_BESIDE
        every = ((self.lines, self.most), (self.columns, beside), (self.rows, beside))
        return [(key, most) for key, most in every if key is not None and len(key.labels) > most]

    def chosen(self, points: Points) -> npt.NDArray[np.bool_]:
        """Which points are shown: numbers evenly spread over their range, and the first of names."""
        shown = np.ones(len(points), bool)
        for key, most in self.limits:
            shown &= np.isin(key.of_point, spread(key, most) if key.numeric else range(most))
        return shown

    def left_out(self) -> list[str]:
        """What is not drawn because it would be too much, in words."""
        first = {True: "", False: "the first "}
        return [
            f"of {key.short}, {first[key.numeric]}{most} of {len(key.labels):,} values are shown"
            for key, most in self.limits
        ]


def layout(points: Points, of: Floats | None = None, *, plane: bool = True) -> Layout:
    """Where each swept key goes, the most influential first (on the headline, or on ``of``).

    ``plane``: up to four keys are shown, and two numeric ones span a plane; else only one is an axis, and
    another one is lines.
    """
    varying = sorted(points.varying, key=lambda key: -points.influence(key, of))
    numeric = [key for key in varying if key.numeric]
    names = [key for key in varying if not key.numeric]
    x, y = (*numeric[: 1 + plane], None, None)[:2]
    lines = None if y is not None or not names else names[0]
    rest = [key for key in varying if all(key is not one for one in (x, y, lines))]
    columns, rows = (*rest[: 2 * plane], None, None)[:2]
    most = MOST_ROWS if plane and x is None else MOST_LINES
    return Layout(x, y, lines, columns, rows, tuple(rest[2 * plane :]), most)


# The points of a sweep as a table that figures draw: a row for each combination of some keys' values.


def cells(
    points: Points,
    axes: Sequence[Key],
    names: Sequence[Key] = (),
    *,
    chosen: npt.NDArray[np.bool_] | None = None,
    metric: str | None = None,
) -> pd.DataFrame:
    """Means over the points that have the same values of these keys, of the time to recover or of another
    ``metric``; ``chosen``: of these points only.

    Columns: the keys by their whole names, the ``axes`` with numbers, the ``names`` with texts; ``mean``,
    ``low``, ``high``; ``points``, ``late`` (those in which not every run recovered: a row with any has lower
    bounds); and the quantiles, of replications where every row is one point, else of the means of its points.

    Points share their luck, so their errors may add up: the ends of their intervals are averaged, and an
    interval of a mean of points is never too narrow for that. It is undefined if that of a point is.
    """
    import pandas as pd

    of = points.times if metric is None else points.metric(metric)
    mine = np.flatnonzero(np.ones(len(points), bool) if chosen is None else chosen)
    found: dict[str, Any] = {}
    group, count = np.zeros(len(mine), np.int64), min(1, len(mine))
    if keys := [*names, *axes]:
        ranks = [np.argsort(key.order)[key.of_point[mine]] for key in keys]
        shape = [len(key.labels) for key in keys]
        whole = np.ravel_multi_index(ranks, shape) if len(mine) else np.empty(0, int)
        distinct, group = np.unique(whole, return_inverse=True)
        group, count = group.astype(np.int64), len(distinct)
        for key, rank in zip(keys, np.unravel_index(distinct, shape), strict=True):
            places = key.order[rank]
            # ``R+SM``, but ``hosts 4``: a number alone would not say what it is
            texts = [f"{key.short} {label}" if key.numeric else label for label in key.labels]
            axis = any(key is one for one in axes)
            found[key.name] = key.numbers[places] if axis else [texts[place] for place in places]
    means, known = of.mean[mine], ~np.isnan(of.mean[mine])
    found["mean"] = means_by(group, count, means)
    for name, ends in (("low", of.low), ("high", of.high)):
        whole = np.bincount(group[known & np.isnan(ends[mine])], minlength=count) == 0
        found[name] = np.where(whole, means_by(group, count, np.where(known, ends[mine], np.nan)), np.nan)
    found["points"] = np.bincount(group, minlength=count)
    found["late"] = np.bincount(group[of.undefined[mine] > 0], minlength=count)
    if (found["points"] == 1).all():
        point = np.empty(count, np.intp)
        point[group] = mine
        found |= {name: getattr(of, name)[point] for name in QUANTILES}
    else:
        found |= quantiles(group[known], means[known], np.bincount(group[known], minlength=count))
    return pd.DataFrame(found)


# The points of a sweep, one row each, and the swept values as numbers where they are numbers.

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Parameters = Sequence[str] | Mapping[str, str]
"""The swept keys; with the unit of each whose column holds numbers, if that is known."""

SUMS = {"lost": "roots lost", "duplicated": "roots counted twice", "windows_wrong": "wrong windows"}
"""What is counted over the runs of a point, and how tables call it."""
COSTS = tuple(column.name for column in block("runs", "cost"))


def quantities(values: Sequence[Any], unit: str = "") -> tuple[Floats, str] | None:
    """The values as numbers, and their unit; None if they are not all quantities of one kind.

    Texts are read by the parsers of scenario files: durations in s, rates in 1/s, sizes in B, bandwidths in
    B/s. Numbers are taken as they are, in ``unit``.

    >>> quantities(["30 s", "1m30s"]), quantities([2, 4], "1/s"), quantities(["rsm", "30 s"])
    ((array([30., 90.]), 's'), (array([2., 4.]), '1/s'), None)
    """
    if any(is_undefined(value) or isinstance(value, bool | np.bool_) for value in values):
        return None
    if all(isinstance(value, int | float | np.number) for value in values):
        return np.array(values, dtype=np.float64), unit
    unit = unit_of(values)
    return (np.array([as_number(value, unit) for value in values], dtype=np.float64), unit) if unit else None


@dataclass(frozen=True)
class Key:
    """A swept key: its distinct values in the order of the grid, and which of them each point has.

    ``numbers``: the values as numbers in ``unit``; empty if they are names.
    """

    name: str
    short: str
    labels: tuple[str, ...]
    numbers: Floats
    unit: str
    of_point: npt.NDArray[np.int64]

    @property
    def numeric(self) -> bool:
        return len(self.numbers) > 0

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Places of the values from the least to the greatest; names as they come."""
        return np.argsort(self.numbers, kind="stable") if self.numeric else np.arange(len(self.labels))

    @property
    def about(self) -> str:
        """``at (s)``, as an axis or a column has it."""
        return f"{self.short} ({self.unit})" if self.unit else self.short


@dataclass(frozen=True)
class Metric:
    """A metric of all points, an entry a point; NaN is undefined. The fields are columns of a summary
    (`tideover.scenarios.sweeps.rows`); values are those of replications.
    """

    n: Counts
    undefined: Counts
    mean: Floats
    std: Floats
    low: Floats
    high: Floats
    min: Floats
    p5: Floats
    p25: Floats
    p50: Floats
    p75: Floats
    p95: Floats
    max: Floats

    def estimate(self, place: int) -> Estimate:
        values = (float(each[place]) for each in (self.mean, self.std, self.low, self.high))
        mean, std, low, high = (None if np.isnan(value) else value for value in values)
        interval = None if low is None or high is None else (low, high)
        return Estimate(int(self.n[place]), int(self.undefined[place]), mean, std, interval, None)

    @cached_property
    def total(self) -> Floats:
        """The sum over the replications of each point."""
        return np.asarray(self.mean * self.n)

    @cached_property
    def half_width(self) -> Floats:
        """Half the width of each interval; 0 if all values are the same (up to rounding)."""
        constant = self.std <= 1e-9 * np.maximum(1.0, np.abs(self.mean))
        return np.asarray(np.where(constant, 0.0, (self.high - self.low) / 2))


class Points:
    """The points of a sweep, in the order of the grid.

    numbers       of each point
    keys          swept keys; the strategy first if it is not swept
    runs, failed  how many runs each has, and how many of them failed
    metric(name)  what the others gave
    """

    def __init__(
        self, numbers: Counts, keys: tuple[Key, ...], runs: Counts, failed: Counts, summary: pd.DataFrame
    ) -> None:
        self.numbers, self.keys, self.runs, self.failed = numbers, keys, runs, failed
        self._rows = dict(tuple(summary.groupby("metric", sort=False)))
        self._metrics: dict[str, Metric] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def metric(self, name: str) -> Metric:
        """The metric of this name; undefined where the summary has nothing of it."""
        if name not in self._metrics:
            found: dict[str, Any] = {one: np.zeros(len(self), np.int64) for one in ("n", "undefined")}
            found |= {one: np.full(len(self), np.nan) for one in FIGURES}
            if (rows := self._rows.get(name)) is not None:
                place = np.searchsorted(self.numbers, rows["point"].to_numpy(dtype=np.int64))
                for one, values in found.items():
                    values[place] = rows[one].to_numpy()
            self._metrics[name] = Metric(**found)
        return self._metrics[name]

    @property
    def varying(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if len(key.labels) > 1)

    @cached_property
    def times(self) -> Metric:
        """The time to recover of each point; a replication that did not recover by the end of its run
        (``undefined`` counts them) has the time until then, so that figures of such a point are lower bounds.
        They have no interval: nobody knows how much longer it takes.
        """
        found, late = self.metric(AT_LEAST), self.metric(HEADLINE).undefined
        low, high = (np.where(late > 0, np.nan, end) for end in (found.low, found.high))
        return replace(found, undefined=late, low=low, high=high)

    @property
    def headline(self) -> Floats:
        """The mean headline of each point, or the least that it can be (``late``); NaN: nothing fails."""
        return self.times.mean

    @property
    def late(self) -> npt.NDArray[np.bool_]:
        """Which points have a run that did not recover by its end."""
        return np.asarray(self.times.undefined > 0)

    @cached_property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Which points lost roots, counted some twice, or have no run that did not fail."""
        return ~((self.metric("lost").mean == 0) & (self.metric("duplicated").mean == 0))

    @cached_property
    def ranked(self) -> npt.NDArray[np.int64]:
        """Positions from the best point to the worst: those that are right first; of these, those that always
        recover; of these, by the mean headline.
        """
        return np.lexsort((self.numbers, self.headline, self.late, self.wrong)).astype(np.int64)

    def effect(self, key: Key, of: Floats | None = None) -> Floats:
        """For each value of a key the mean over all points that have it, of the headline or of ``of``."""
        return means_by(key.of_point, len(key.labels), self.headline if of is None else of)

    def influence(self, key: Key, of: Floats | None = None) -> float:
        """How far the effects of a key's values are apart; 0 for fewer than two."""
        known = self.effect(key, of)
        known = known[~np.isnan(known)]
        return float(np.ptp(known)) if len(known) else 0.0


def means_by(group: Counts, count: int, values: Floats) -> Floats:
    """The mean of the defined values of each of ``count`` groups; ``values[i]`` is of ``group[i]``."""
    known = ~np.isnan(values)
    sums, counts = (np.bincount(group[known], weights, count) for weights in (values[known], None))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / counts)


def points(frame: pd.DataFrame, summary: pd.DataFrame, parameters: Parameters) -> Points:
    """The points of a sweep.

    ``frame``: a row a point, with ``point``, the swept keys, ``strategy``, ``runs`` and ``failed``;
    ``summary``: a row for each point and metric, as `tideover.scenarios.sweeps.rows` has it.
    """
    first = frame.sort_values("point", kind="stable")
    names = [key for key in parameters if key in first.columns]
    if "strategy.kind" not in names:
        names = ["strategy", *(name for name in names if name != "strategy")]
    units = parameters if isinstance(parameters, Mapping) else {}
    short, keys = short_names(names), []
    for name in names:
        values, unit = list(first[name]), units.get(name, "")
        shown = [_label(name, value, unit) for value in values]
        labels = {text: i for i, text in enumerate(dict.fromkeys(shown))}
        places = np.array([labels[text] for text in shown], dtype=np.int64)
        found = quantities(values, unit)
        numbers = np.empty(0) if found is None else found[0][np.unique(places, return_index=True)[1]]
        keys.append(Key(name, short[name], tuple(labels), numbers, "" if found is None else found[1], places))
    point, runs, failed = (first[name].to_numpy(dtype=np.int64) for name in ("point", "runs", "failed"))
    return Points(point, tuple(keys), runs, failed, summary)


def _label(name: str, value: Any, unit: str) -> str:
    """A swept value as a table shows it."""
    if is_undefined(value):
        return UNDEFINED
    if name in ("strategy", "strategy.kind"):
        return strategy_name(value)
    return str(value) if isinstance(value, str) or not unit else written(value, unit)


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """The shortest ends of dotted keys that still tell them apart."""
    found: dict[str, str] = {}
    for key in keys:
        parts = key.split(".")
        ends = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        others = [other for other in keys if other != key]
        found[key] = next((e for e in ends if not any(f".{o}".endswith(f".{e}") for o in others)), key)
    return found | ({"strategy.kind": "strategy"} if "strategy.kind" in found else {})


def explained(short: Mapping[str, str]) -> list[str]:
    """What short names stand for, as ``rate: topology.sentences.rate``."""
    return [f"{name}: {key}" for key, name in short.items() if key not in (name, "strategy.kind")]


def spread(key: Key, most: int) -> list[int]:
    """Up to ``most`` values of a key, evenly spread from the least to the greatest (names: as they come)."""
    count = len(key.labels)
    chosen = np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))
    return [int(place) for place in key.order[chosen]]


def spoken(key: Key) -> str:
    """A key and its values in a few words, as ``at: 100 values from 30 s to 60 s``."""
    if len(key.labels) <= 6:
        return f"{key.name}: {', '.join(key.labels)}"
    if not key.numeric:
        return f"{key.name}: {len(key.labels):,} values"
    low, high = (key.labels[place] for place in (key.order[0], key.order[-1]))
    return f"{key.name}: {len(key.labels):,} values from {low} to {high}"


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Four significant digits, which a page keeps of numbers; None for what is missing or has no end."""
    return [None if v is None or not np.isfinite(v) else float(f"{v:.4g}") for v in values]


# The tables of a sweep: its points, or the best and the worst of many, and the effect of each swept key.

MOST_LISTED = 24
"""Most points that are listed one by one; of more, the best and the worst are."""
BEST, WORST = 10, 5
MOST_VALUES = 8
"""Most values of a swept key in the table of effects."""

_HEADLINE = named("recoveries", HEADLINE)


def key_tables(points: Points) -> tuple[Table, ...]:
    """What a screen holds: every point if they are few, else the best, the worst, and the effects."""
    if len(points) <= MOST_LISTED:
        return (points_table(points, range(len(points)), "Points of the sweep"),)
    effects = (effects_table(points),) if any(points.influence(key) for key in points.keys) else ()
    if np.isnan(points.headline).all():
        return (points_table(points, range(BEST), f"First {BEST} points"), *effects)
    right = [int(place) for place in points.ranked if not points.wrong[place]]
    shown = []
    if right:
        title = f"Best {len(right[:BEST])} points"
        shown.append(points_table(points, right[:BEST], title, wording.sentences("ranked")))
    worst = points_table(points, [int(p) for p in points.ranked[: -WORST - 1 : -1]], f"Worst {WORST} points")
    return (*shown, worst, *effects)


def points_table(points: Points, places: Iterable[int], title: str, meant: Sequence[str] = ()) -> Table:
    """One row a point: the swept values, the mean time to recover or the least that it can be, what was lost,
    cost, and how many runs failed.
    """
    notes, rows, network = Notes(), [], points.metric("network_bytes").mean
    for place in (places := list(places)):
        found, endings = points.times.estimate(place), list[str]()
        if points.metric("roots_lost").total[place] > 0:
            endings = [LOSSY]
        elif points.metric(HEADLINE).max[place] == 0:
            endings = [UNAFFECTED]
        if found.undefined:
            notes.lossy |= LOSSY in endings
            time = f"≥ {number(found.mean)} ({found.n - found.undefined} of {found.n})"
            time = with_ending(time, endings)
        else:
            time = notes.mean(found, _HEADLINE.label, _HEADLINE, endings)
        sums = (points.metric(column).total[place] for column in SUMS)
        rows.append(
            (
                *(key.labels[key.of_point[place]] for key in points.keys),
                time,
                *(UNDEFINED if np.isnan(total) else number(round(total)) for total in sums),
                size(float(network[place])),
                f"{points.failed[place]}/{points.runs[place]}",
            )
        )
    extra = "; ".join(["network: mean per run", *explained({key.name: key.short for key in points.keys})])
    if points.late[places].any():
        meant = [*meant, *wording.sentences("censored")]
    columns = (*(key.short for key in points.keys), _HEADLINE.label_with_unit, *SUMS.values())
    columns += ("network", "failed runs")
    return Table(title, columns, tuple(rows), (*meant, extra, *notes.lines()), len(points.keys))


def effects_table(points: Points, most: int = MOST_VALUES) -> Table:
    """For each swept key, and each of its values, the mean time to recover over all points that have it."""
    rows: list[tuple[str, ...]] = []
    left_out = False
    for key in sorted(points.varying, key=lambda one: -points.influence(one)):
        chosen, count, means = spread(key, most), len(key.labels), points.effect(key)
        left_out |= len(chosen) < count
        more = f", {len(chosen)} of {count:,} values" if len(chosen) < count else ""
        rows.append((f"{key.short} (means {number(points.influence(key))} s apart{more})",))
        counts = [
            np.bincount(key.of_point[some], minlength=count) for some in (..., points.late, points.wrong)
        ]
        for place in chosen:
            cells = (f"{of_value[place]:,}" for of_value in counts)
            least = "≥ " if counts[1][place] else ""
            rows.append((key.labels[place], f"{least}{number(float(means[place]))}", *cells))
    columns = ("", "mean, s", "points", "not recovered", "wrong")
    title = "Effect of each swept key on the time to recover"
    return Table(title, columns, tuple(rows), tuple(wording.sentences("effects", left_out)))


def summary(points: Points) -> str:
    """At which points it takes shortest and longest to recover, what else goes wrong, and how many points and
    runs there are.
    """
    ends = []
    if not np.isnan(points.headline).all():
        for place in (int(np.nanargmin(points.headline)), int(np.nanargmax(points.headline))):
            least = "at least " if points.late[place] else ""
            where = ", ".join(f"{key.short} {key.labels[key.of_point[place]]}" for key in points.varying)
            time = f"{least}{number(float(points.headline[place]))} s"
            ends.append(f"{time} ({where})" if where else time)
    counts = (int(each.sum()) for each in (points.late, points.wrong, points.runs, points.failed))
    return wording.text("sweep_summary", points, list(dict.fromkeys(ends)), *counts)
