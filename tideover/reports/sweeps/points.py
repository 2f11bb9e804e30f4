"""The points of a sweep, one row each, and the swept values as numbers where they are numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models.schema.fields import HEADLINE, block
from tideover.reports.formatting import UNDEFINED, is_undefined, strategy_name
from tideover.scenarios.statistics.estimates import Estimate
from tideover.scenarios.sweeps.summary import AT_LEAST, FIGURES
from tideover.scenarios.swept import number, unit_of, written

if TYPE_CHECKING:
    import pandas as pd

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
    return (np.array([number(value, unit) for value in values], dtype=np.float64), unit) if unit else None


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
        """The values are numbers, not names."""
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
    (`tideover.scenarios.sweeps.summary`); values are those of replications.
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
        """Of one point."""
        mean, std, low, high = (
            None if np.isnan(value) else float(value)
            for value in (self.mean[place], self.std[place], self.low[place], self.high[place])
        )
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
            self._metrics[name] = _metric(self.numbers, self._rows.get(name))
        return self._metrics[name]

    @property
    def varying(self) -> tuple[Key, ...]:
        """The keys with more than one value."""
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
    ``summary``: a row for each point and metric, as `tideover.scenarios.sweeps.summary` has it.
    """
    first = frame.sort_values("point", kind="stable")
    names = [key for key in parameters if key in first.columns]
    if "strategy.kind" not in names:
        names = ["strategy", *(name for name in names if name != "strategy")]
    units = parameters if isinstance(parameters, Mapping) else {}
    short = short_names(names)
    keys = tuple(_key(name, short[name], list(first[name]), units.get(name, "")) for name in names)
    numbers, runs, failed = (first[name].to_numpy(dtype=np.int64) for name in ("point", "runs", "failed"))
    return Points(numbers, keys, runs, failed, summary)


def _metric(numbers: Counts, rows: pd.DataFrame | None) -> Metric:
    count = len(numbers)
    found: dict[str, Any] = {name: np.zeros(count, np.int64) for name in ("n", "undefined")}
    found |= {name: np.full(count, np.nan) for name in FIGURES}
    if rows is not None:
        place = np.searchsorted(numbers, rows["point"].to_numpy(dtype=np.int64))
        for name, values in found.items():
            values[place] = rows[name].to_numpy()
    return Metric(**found)


def _key(name: str, short: str, values: Sequence[Any], unit: str) -> Key:
    found = quantities(values, unit)
    shown = [_shown(value, name, unit) for value in values]
    labels = {label: i for i, label in enumerate(dict.fromkeys(shown))}
    places = np.array([labels[label] for label in shown], dtype=np.int64)
    if found is None:
        return Key(name, short, tuple(labels), np.empty(0), "", places)
    numbers = found[0][np.unique(places, return_index=True)[1]]
    return Key(name, short, tuple(labels), numbers, found[1], places)


def _shown(value: Any, name: str, unit: str) -> str:
    """A value of a key of the scenario, as a table shows it."""
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


def rounded(value: float) -> float | None:
    """Four significant digits, None for NaN: what a page keeps of a number."""
    return None if np.isnan(value) else float(f"{value:.4g}")
