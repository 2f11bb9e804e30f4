"""Paired differences: the same replication, seed and failures with two values of one factor.

Common random numbers make the two runs of a pair share their luck, so the difference is known far better than
that of either run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models.schema.fields import POINT
from tideover.scenarios.statistics.estimates import BOOTSTRAP_SEED, LEVEL, Estimate, estimate
from tideover.scenarios.statistics.quantiles import Quantile, quantile_interval
from tideover.scenarios.statistics.student import t_quantile

if TYPE_CHECKING:
    import pandas as pd

STRATEGY = "strategy"
_FAULT = ("kind", "component", "failed_at_s")
_RESAMPLES = 1_999


@dataclass(frozen=True)
class Paired:
    """``column`` of ``first`` minus that of ``second``: two values of the factor ``key``.

    ``difference.n``: pairs; one pair is one replication, in which the failures are averaged.
    ``difference.undefined``: replications with a partner in which one of the two values is undefined.
    ``unmatched``: without a partner.
    """

    first: Any
    second: Any
    column: str
    difference: Estimate
    unmatched: int
    key: str = STRATEGY

    def mirrored(self) -> Paired:
        """The same comparison, seen from the other value."""
        d = self.difference
        turned = Estimate(d.n, d.undefined, _minus(d.mean), d.std, _turn(d.t), _turn(d.bootstrap))
        return Paired(self.second, self.first, self.column, turned, self.unmatched, self.key)


def paired(
    frame: pd.DataFrame,
    first: Any,
    second: Any,
    column: str,
    *,
    key: str = STRATEGY,
    resample: bool = True,
) -> Paired:
    """Compare ``column`` in ``recoveries`` or ``runs`` with two values of the factor ``key``.

    ``key``: the column that has them: a swept key, or the strategy. Rows match by seed, replication, all
    other swept columns (for the strategy: those that are not of one strategy alone, ``strategy.…``), and (in
    ``recoveries``) by the failure's kind, component and time; several equal failures match in their order.
    If the time of failures depends on the factor, give a frame without ``failed_at_s``. Always evaluated
    with the values in one order, so that swapping them only swaps the sign. ``resample``: find the bootstrap
    interval, too.
    """
    return paired_columns(frame, first, second, [column], key=key, resample=resample)[0]


def paired_columns(
    frame: pd.DataFrame,
    first: Any,
    second: Any,
    columns: Sequence[str],
    *,
    key: str = STRATEGY,
    resample: bool = True,
) -> list[Paired]:
    """The same for several columns, whose rows are matched once."""
    if str(first) > str(second):
        found = paired_columns(frame, second, first, columns, key=key, resample=resample)
        return [pair.mirrored() for pair in found]
    unit, rows, every = _matched(frame, first, second, columns, key)
    unmatched = len(every) - _units(rows, unit)
    means = _differences(rows, columns).groupby([rows[name] for name in unit], sort=True).mean()
    return [
        Paired(first, second, column, estimate(means[column], resample=resample), unmatched, key)
        for column in columns
    ]


def paired_in_groups(
    frame: pd.DataFrame, first: Any, second: Any, column: str, group: str, *, key: str
) -> dict[int, Paired]:
    """What ``paired`` says of the rows of each group by themselves, without bootstrap intervals; ``group``:
    the column that has their numbers. A group without rows of either value is left out.
    """
    if str(first) > str(second):
        found = paired_in_groups(frame, second, first, column, group, key=key)
        return {number: one.mirrored() for number, one in found.items()}
    unit, rows, every = _matched(frame, first, second, [column], key, (group,))
    means = _differences(rows, [column])[column].groupby([rows[name] for name in unit], sort=True).mean()
    numbers, begin = np.unique(means.index.get_level_values(0), return_index=True)
    end = [*begin[1:], len(means)][: len(begin)]
    values = {number: means.to_numpy()[i:j] for number, i, j in zip(numbers, begin, end, strict=True)}
    matched = rows[unit].drop_duplicates()[group].value_counts()
    found = {}
    for number, units in zip(*np.unique(every[group], return_counts=True), strict=True):
        alone = int(units) - int(matched.get(number, 0))
        difference = estimate(values.get(number, ()), resample=False)
        found[int(number)] = Paired(first, second, column, difference, alone, key)
    return found


def paired_quantiles(
    frame: pd.DataFrame, first: Any, second: Any, column: str, q: float, *, key: str = STRATEGY
) -> Quantile:
    """The quantile ``q`` over replications with the first value minus that with the second, as ``paired``
    matches them.

    Quantiles are Harrell and Davis's (A New Distribution-Free Quantile Estimator, Biometrika 69, 1982): means
    of all ordered values, weighted by how likely each is the quantile; with quantiles that are one value, or
    two, the interval would be far too wide. It is Student's, with the standard deviation that resampled pairs
    give, with a fixed seed (as Wilcox and Erceg-Hurn resample, Comparing Two Dependent Groups via Quantiles,
    Journal of Applied Statistics 39, 2012; the percentiles that they take cover up to 98 % where the two
    sides share most of their luck).

    None for an end that ``quantile_interval`` does not know of either value: too few pairs. Replications in
    which one of the two is undefined are left out, and counted. Raises ValueError like that.
    """
    if str(first) > str(second):
        found = paired_quantiles(frame, second, first, column, q, key=key)
        return Quantile(found.n, found.undefined, _minus(found.value), _minus(found.high), _minus(found.low))
    unit, rows, _ = _matched(frame, first, second, [column], key)
    values = [f"_{column}_first", f"_{column}_second"]
    both = rows.groupby(unit, sort=True)[values].mean().to_numpy(dtype=np.float64)
    known = both[~np.isnan(both).any(axis=1)]
    sides = [quantile_interval(side, q) for side in known.T]
    n, undefined = len(known), len(both) - len(known)
    if n == 0:
        return Quantile(0, undefined, None, None, None)
    weights = _weights(n, q)
    value = float(np.subtract(*(np.sort(side) @ weights for side in known.T)))
    if any(side.low is None or side.high is None for side in sides):
        return Quantile(n, undefined, value, None, None)
    places = np.random.default_rng(BOOTSTRAP_SEED).integers(0, n, (_RESAMPLES, n))
    resampled = np.subtract(*(np.sort(side[places], axis=1) @ weights for side in known.T))
    half = float(t_quantile(n - 1, LEVEL) * resampled.std())
    return Quantile(n, undefined, value, value - half, value + half)


def _weights(n: int, q: float) -> npt.NDArray[np.float64]:
    """How likely the quantile is each of the ordered values."""
    from scipy.special import betainc

    return np.diff(betainc((n + 1) * q, (n + 1) * (1 - q), np.arange(n + 1) / n))


def _matched(
    frame: pd.DataFrame, first: Any, second: Any, columns: Sequence[str], key: str, by: Sequence[str] = ()
) -> tuple[list[str], pd.DataFrame, pd.DataFrame]:
    """Columns that say which replication it is, those ``by`` which it is told apart first; a row for each
    pair of failures, or runs, with both values of each column (both undefined if one is); and a row for each
    replication, with a partner or without.
    """
    unit = [*by, *_replication_keys(frame, key)]
    keys = [*unit, *(name for name in _FAULT if name in frame.columns)]
    sides = [_side(frame[frame[key] == value], keys, columns) for value in (first, second)]
    joined = sides[0].merge(
        sides[1], on=[*keys, "_order"], how="outer", suffixes=("_first", "_second"), indicator=True
    )
    rows = joined[joined["_merge"] == "both"]
    values: dict[str, pd.Series] = {}
    for column in columns:
        ends = [f"_{column}_first", f"_{column}_second"]
        undefined = rows[ends].isna().any(axis=1)
        values |= {end: rows[end].mask(undefined) for end in ends}
    rows = rows.assign(**values)
    return unit, rows, joined[unit].drop_duplicates()


def _replication_keys(frame: pd.DataFrame, key: str) -> list[str]:
    """The columns that say which replication of which point a row is of, whatever the factor's value."""
    of_strategy = key in (STRATEGY, "strategy.kind")
    swept = [name for name in map(str, frame.columns) if "." in name and name not in (key, POINT.name)]
    others = [name for name in swept if not (of_strategy and name.startswith("strategy."))]
    same = [] if of_strategy or STRATEGY not in frame.columns else [STRATEGY]
    return [*others, *same, "seed", "replication"]


def _side(rows: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    values = {f"_{column}": rows[column].astype(float) for column in columns}
    words = {
        name: object for name in keys if rows[name].dtype.kind not in "biuf"
    }  # pandas 3 merges no empty texts
    return rows[keys].astype(words).assign(**values, _order=rows.groupby(keys, dropna=False).cumcount())


def _differences(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({each: rows[f"_{each}_first"] - rows[f"_{each}_second"] for each in columns})


def _units(frame: pd.DataFrame, unit: list[str]) -> int:
    return len(frame[unit].drop_duplicates())


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _turn(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (-interval[1], -interval[0])
