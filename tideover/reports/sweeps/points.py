"""The points of a sweep, one row each, and the swept values as numbers where they are numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models.schema.fields import HEADLINE, block
from tideover.reports.columns import conform
from tideover.reports.formatting import UNDEFINED, is_undefined, strategy_name
from tideover.scenarios.statistics.estimates import Estimate, estimates
from tideover.scenarios.swept import number, unit_of, written

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
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
class Points:
    """The points of a sweep, in the order of the grid.

    numbers   of each point
    keys      swept keys; the strategy first if it is not swept
    times     of each point, of its recoveries: the headline and the catch-up
    totals    a row each: runs, failed; of the runs that did not fail the sums of SUMS, the means of COSTS
    values    (position of the point, headline) of each recovery
    """

    numbers: npt.NDArray[np.int64]
    keys: tuple[Key, ...]
    times: Mapping[str, list[Estimate]]
    totals: pd.DataFrame
    values: tuple[npt.NDArray[np.int64], Floats]

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def headline(self) -> Floats:
        """The mean headline of each point; NaN: undefined."""
        return np.array([np.nan if one.mean is None else one.mean for one in self.times[HEADLINE]])

    @cached_property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Which points lost roots, counted some twice, or have no run that did not fail."""
        totals = self.totals
        return ~((totals["lost"] == 0) & (totals["duplicated"] == 0)).to_numpy()

    @cached_property
    def ranked(self) -> npt.NDArray[np.int64]:
        """Positions from the best point to the worst: those that are right first; of these, those that always
        recover; of these, by the mean headline.
        """
        never = np.array([one.n == 0 or one.undefined > 0 for one in self.times[HEADLINE]])
        times = np.where(np.isnan(self.headline), np.inf, self.headline)
        return np.lexsort((self.numbers, times, never, self.wrong)).astype(np.int64)

    def effect(self, key: Key, of: Floats | None = None) -> Floats:
        """For each value of a key the mean over all points that have it, of the headline or of ``of``."""
        values = self.headline if of is None else of
        known = ~np.isnan(values)
        places, count = key.of_point[known], len(key.labels)
        sums, counts = (np.bincount(places, weights, count) for weights in (values[known], None))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / counts)

    def influence(self, key: Key, of: Floats | None = None) -> float:
        """How far the effects of a key's values are apart; 0 for fewer than two."""
        known = self.effect(key, of)
        known = known[~np.isnan(known)]
        return float(np.ptp(known)) if len(known) else 0.0


def points(recoveries: pd.DataFrame, runs: pd.DataFrame, parameters: Parameters) -> Points:
    """The points of a sweep; the frames are those of ``run`` with ``point`` and the swept keys as columns."""
    recoveries, runs = conform("recoveries", recoveries), conform("runs", runs)
    first = runs.drop_duplicates("point").sort_values("point", kind="stable")
    numbers = first["point"].to_numpy(dtype=np.int64)
    names = [key for key in parameters if key in runs.columns]
    if "strategy.kind" not in names:
        names = ["strategy", *names]
    units = parameters if isinstance(parameters, Mapping) else {}
    short = short_names(names)
    keys = tuple(_key(name, short[name], list(first[name]), units.get(name, "")) for name in names)
    place = np.searchsorted(numbers, recoveries["point"].to_numpy(dtype=np.int64))
    columns = {name: recoveries[name].to_numpy(dtype=np.float64) for name in (HEADLINE, "catch_up_s")}
    times = {name: estimates(place, values, len(numbers)) for name, values in columns.items()}
    return Points(numbers, keys, times, _totals(runs), (place, columns[HEADLINE]))


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


def _totals(runs: pd.DataFrame) -> pd.DataFrame:
    good = runs[runs["error"].isna()].groupby("point", sort=True)
    every = runs.groupby("point", sort=True)
    found = every.size().to_frame("runs").assign(failed=every["error"].count())
    found = found.join(good[list(SUMS)].sum()).join(good[list(COSTS)].mean())
    return found.reset_index(drop=True)


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
