"""The points of a sweep as a table that figures draw: a row for each combination of some keys' values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.reports.sweeps.points import Counts, Floats, Key, Points, means_by
from tideover.scenarios.sweeps.summary import QUANTILES, quantiles

if TYPE_CHECKING:
    import pandas as pd


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
    keys = [*names, *axes]
    group, combinations = _groups(keys, mine)
    found: dict[str, Any] = {}
    for key, places in zip(keys, combinations, strict=True):
        axis = any(key is one for one in axes)
        found[key.name] = key.numbers[places] if axis else _texts(key, places)
    count = len(combinations[0]) if keys else min(1, len(mine))
    means, known = of.mean[mine], ~np.isnan(of.mean[mine])
    found["mean"] = means_by(group, count, means)
    for name, ends in (("low", of.low), ("high", of.high)):
        whole = np.bincount(group[known & np.isnan(ends[mine])], minlength=count) == 0
        found[name] = np.where(whole, means_by(group, count, np.where(known, ends[mine], np.nan)), np.nan)
    found["points"] = np.bincount(group, minlength=count)
    found["late"] = np.bincount(group[of.undefined[mine] > 0], minlength=count)
    return pd.DataFrame(found | _spread(of, mine, group, count))


def _groups(keys: Sequence[Key], mine: npt.NDArray[np.intp]) -> tuple[Counts, list[Counts]]:
    """The group of each point, and of each group the place of its value of each key, in their order."""
    if not keys:
        return np.zeros(len(mine), np.int64), []
    ranks = [np.argsort(key.order)[key.of_point[mine]] for key in keys]
    whole = np.ravel_multi_index(ranks, [len(key.labels) for key in keys]) if len(mine) else np.empty(0, int)
    distinct, group = np.unique(whole, return_inverse=True)
    places = np.unravel_index(distinct, [len(key.labels) for key in keys])
    return group.astype(np.int64), [key.order[rank] for key, rank in zip(keys, places, strict=True)]


def _texts(key: Key, places: Counts) -> list[str]:
    """``R+SM``, but ``hosts 4``: a number alone would not say what it is."""
    texts = [f"{key.short} {label}" if key.numeric else label for label in key.labels]
    return [texts[place] for place in places]


def _spread(of: Any, mine: npt.NDArray[np.intp], group: Counts, count: int) -> dict[str, Floats]:
    alone = np.bincount(group, minlength=count) == 1
    if alone.all():
        at = np.empty(count, np.intp)
        at[group] = mine
        return {name: getattr(of, name)[at] for name in QUANTILES}
    known = ~np.isnan(of.mean[mine])
    n = np.bincount(group[known], minlength=count)
    return quantiles(group[known], of.mean[mine][known], n)
