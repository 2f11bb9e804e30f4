"""Intervals of means, quantiles and paired differences over replications.

Objectives, plans, sweeps and reports call it; what a figure rests on (docs/statistics.md) is changed here,
and `tests/scenarios/statistics` holds every interval to its coverage.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models.schema import POINT, Column

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]
AT_95 = (
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
    2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205, 2.228138851986274,
    2.200985160091639, 2.1788128296672284, 2.1603686564627913, 2.144786687917804, 2.131449545559776,
    2.1199052992212546, 2.1098155778333156, 2.1009220402410382, 2.0930240544083087, 2.085963447265864,
    2.0796138447276795, 2.0738730679040254, 2.0686576104190486, 2.0638985616280245, 2.0595385527532972,
    2.0555294386428735, 2.0518305164802846, 2.0484071417952454, 2.045229642132703, 2.0422724563012378,
)  # fmt: skip
"""``t_quantile`` at 95 % for 1, 2, … degrees of freedom: scipy takes longer to import than a run takes."""


def t_quantile(freedom: Any, level: float) -> Any:
    """How many standard errors an interval of this ``level`` reaches to either side; ``freedom``: degrees of
    freedom, a number or an array of them, as is what is returned.
    """
    if level == 0.95 and isinstance(freedom, int) and 0 < freedom <= len(AT_95):
        return AT_95[freedom - 1]
    from scipy.special import stdtrit  # a fraction of the time that scipy.stats takes to import

    return stdtrit(freedom, 0.5 + level / 2)


def half_width(n: int, std: float, level: float) -> float:
    """Half the width of the interval of the mean of ``n`` > 1 values."""
    return float(t_quantile(n - 1, level)) * std / math.sqrt(n)


def of_mean(values: Floats, level: float) -> Interval | None:
    """The interval of the mean of some values; None for fewer than two."""
    if values.size < 2:
        return None
    mean, half = float(values.mean()), half_width(values.size, float(values.std(ddof=1)), level)
    return mean - half, mean + half


LEVEL = 0.95
RESAMPLES = 9_999
BOOTSTRAP_SEED = 20_150
MOST_RESAMPLED = 5_000
FEW = 20
"""Of so many values the places that are drawn are kept: a comparison resamples as many again and again."""


@dataclass(frozen=True)
class Estimate:
    """Mean of the defined values, and two 95 % intervals around it.

    ``n``: values; ``undefined``: values that were missing and are in none of the figures. An interval needs
    two values, and is None without them. With zero variance both intervals shrink to the mean.
    """

    n: int
    undefined: int
    mean: float | None
    std: float | None
    t: tuple[float, float] | None
    bootstrap: tuple[float, float] | None

    @property
    def constant(self) -> bool:
        """Whether all values are the same, but for rounding."""
        return self.std is not None and self.mean is not None and self.std <= 1e-9 * max(1.0, abs(self.mean))

    @property
    def half_width(self) -> float | None:
        """Half the width of the t-interval; 0 if all values are the same."""
        if self.t is None:
            return None
        return 0.0 if self.constant else (self.t[1] - self.t[0]) / 2

    def record(self) -> dict[str, float | None]:
        """As ``--json`` and frames have it: ``low`` and ``high`` are the ends of the t-interval."""
        low, high = self.t or (None, None)
        return {"n": self.n, "undefined": self.undefined, "mean": self.mean, "low": low, "high": high}


def estimate(values: Iterable[float | None], *, resample: bool = True) -> Estimate:
    """Mean and intervals of what is defined (not None, NaN); ``resample``: bootstrap, in milliseconds."""
    every = list(values)
    known = np.array([np.nan if value is None else value for value in every], dtype=np.float64)
    known = known[~np.isnan(known)]
    n, undefined = known.size, len(every) - known.size
    if n == 0:
        return Estimate(0, undefined, None, None, None, None)
    mean = float(known.mean())
    if n == 1:
        return Estimate(1, undefined, mean, None, None, None)
    resampled = _bootstrap(known) if resample else None
    return Estimate(n, undefined, mean, float(known.std(ddof=1)), of_mean(known, LEVEL), resampled)


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    """Percentiles of the resampled mean, always with the same seed; of very many values it is normal."""
    if values.size > MOST_RESAMPLED:
        half = 1.959963984540054 * float(values.std()) / math.sqrt(values.size)
        return float(values.mean()) - half, float(values.mean()) + half
    drawn = _drawn(values.size) if values.size > FEW else _few_drawn(values.size)
    means = [values[places].mean(axis=1) for places in drawn]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)


def _drawn(n: int) -> Iterator[npt.NDArray[np.int64]]:
    """Which of ``n`` values are drawn, a row a resample: always the same."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    chunk = max(1, 1_000_000 // n)
    for start in range(0, RESAMPLES, chunk):
        yield rng.integers(0, n, (min(chunk, RESAMPLES - start), n))


_few_drawn = lru_cache(maxsize=4)(lambda n: list(_drawn(n)))


def quantile_interval(
    values: npt.ArrayLike, q: float, level: float = LEVEL
) -> tuple[float | None, float | None]:
    """The interval of the quantile ``q`` (0 < q < 1) of independent values, one a replication, which may be
    infinite: what was never reached. An end is None where so few values have no such limit: at the 95 %
    level, of the 95 % quantile 72 values are needed for the upper one, of the median 6.

    How many of n values are below the quantile is binomial, whatever their distribution, so two of the
    ordered values are an interval (David and Nagaraja, Order Statistics, 2003, section 7.1). Those at or
    beyond the level cover more than it says where n is small; so each limit is interpolated between two
    neighbours, as Hettmansperger and Sheather (1986) do for the median and Nyblom (1992) for any quantile: it
    then covers the level nearly, for all the usual distributions. Raises ValueError for another q.
    """
    if not 0 < q < 1:
        raise ValueError(f"the quantile is {q}; more than 0 and less than 1 is allowed")
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    high = _limit(-ordered[::-1], 1 - q, level)
    return _limit(ordered, q, level), None if high is None else -high


def _limit(ordered: Floats, q: float, level: float) -> float | None:
    """What the quantile is not below, with a probability of half the level and one half; None: too few."""
    place = _rank(len(ordered), q, level)
    if place is None:
        return None
    rank, part = place
    low, high = float(ordered[rank - 1]), float(ordered[min(rank, len(ordered) - 1)])
    # infinite values are no numbers to mix
    return low if part == 0 or low == high or math.isinf(low) else low + part * (high - low)


@lru_cache(maxsize=4096)
def _rank(n: int, q: float, level: float) -> tuple[int, float] | None:
    """The rank (from 1) of the value below the limit, and how far the limit is from there to the next one:
    Nyblom's formula, which for the median is that of Hettmansperger and Sheather.
    """
    from scipy.special import bdtrc

    wanted = 0.5 + level / 2
    chances = bdtrc(np.arange(n), n, q)  # that at least 1, 2, … n values are below the quantile
    rank = int((chances >= wanted).sum())
    if rank == 0:
        return None
    if rank == n:
        return rank, 0.0
    here, beyond = float(chances[rank - 1]), float(chances[rank])
    least = rank * (1 - q) * (wanted - beyond)
    return rank, 1.0 / (1.0 + least / ((n - rank) * q * (here - wanted))) if here > wanted else 0.0


NOTHING = "nothing was replayed"
"""Columns that are undefined for this reason say nothing of a failure, not that it lasted too long."""


def of_replications(found: Iterable[tuple[Hashable, float | None]], column: Column) -> list[float | None]:
    """One value for each replication, in the order in which they come first: the mean of its failures.

    ``found``: the replication and the value of each failure; None and NaN are undefined. If one of them is
    undefined, so is the replication's, since a mean of the others would favour what recovers only sometimes;
    but where the column's reason is that nothing was replayed, those in which something was are averaged.
    """
    values: dict[Hashable, list[float]] = {}
    undefined: set[Hashable] = set()
    for replication, value in found:
        mine = values.setdefault(replication, [])
        if value is None or value != value:
            undefined.add(replication)
        else:
            mine.append(float(value))
    lenient = column.undefined.startswith(NOTHING)
    return [
        None if not mine or (one in undefined and not lenient) else sum(mine) / len(mine)
        for one, mine in values.items()
    ]


# Paired differences: common random numbers make the two runs of a pair share their luck, so the difference is
# known far better than that of either run.

STRATEGY = "strategy"
_FAULT = ("kind", "component", "failed_at_s")


@dataclass(frozen=True)
class Paired:
    """``column`` with the value ``first`` of a factor minus that with its value ``second``.

    ``difference.n``: pairs; one pair is one replication, in which the failures are averaged.
    ``difference.undefined``: replications with a partner in which one of the two values is undefined.
    ``unmatched``: without a partner.
    """

    first: Any
    second: Any
    column: str
    difference: Estimate
    unmatched: int

    def mirrored(self) -> Paired:
        """The same comparison, seen from the other value."""

        def turn(interval: Interval | None) -> Interval | None:
            return None if interval is None else (-interval[1], -interval[0])

        d = self.difference
        mean = None if d.mean is None else -d.mean
        turned = Estimate(d.n, d.undefined, mean, d.std, turn(d.t), turn(d.bootstrap))
        return Paired(self.second, self.first, self.column, turned, self.unmatched)


def paired(
    frame: pd.DataFrame, first: Any, second: Any, *columns: str, key: str = STRATEGY, resample: bool = True
) -> list[Paired]:
    """Compare columns of ``recoveries`` or ``runs`` with two values of the factor ``key``.

    ``key``: the column that has them: a swept key, or the strategy. Rows match by seed, replication, all
    other swept columns (for the strategy: those that are not of one strategy alone, ``strategy.…``), and (in
    ``recoveries``) by the failure's kind, component and time; several equal failures match in their order.
    If the time of failures depends on the factor, give a frame without ``failed_at_s``. Always evaluated
    with the values in one order, so that swapping them only swaps the sign. ``resample``: find the bootstrap
    interval, too.
    """
    if str(first) > str(second):
        found = paired(frame, second, first, *columns, key=key, resample=resample)
        return [pair.mirrored() for pair in found]
    matched, every, means = _matched(frame, first, second, columns, key)
    return [
        Paired(first, second, column, estimate(means[column], resample=resample), len(every) - len(matched))
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
    matched, every, means = _matched(frame, first, second, [column], key, (group,))
    values = dict(iter(means[column].groupby(level=0)))
    partners = matched[group].value_counts()
    found = {}
    for number, units in zip(*np.unique(every[group], return_counts=True), strict=True):
        alone = int(units) - int(partners.get(number, 0))
        difference = estimate(values.get(number, ()), resample=False)
        found[int(number)] = Paired(first, second, column, difference, alone)
    return found


def _matched(
    frame: pd.DataFrame, first: Any, second: Any, columns: Sequence[str], key: str, by: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Replications that have a partner, and all of them; and, for each with a partner, the mean difference of
    each column over its failures (undefined where one side of a failure is). Replications are told apart
    ``by`` columns, and by whatever says which replication of which point a row is of.
    """
    of_strategy = key in (STRATEGY, "strategy.kind")
    swept = [name for name in map(str, frame.columns) if "." in name and name not in (key, POINT.name)]
    others = [name for name in swept if not (of_strategy and name.startswith("strategy."))]
    same = [] if of_strategy or STRATEGY not in frame.columns else [STRATEGY]
    unit = [*by, *others, *same, "seed", "replication"]
    keys = [*unit, *(name for name in _FAULT if name in frame.columns)]

    def side(rows: pd.DataFrame) -> pd.DataFrame:
        values = {f"_{column}": rows[column].astype(float) for column in columns}
        # pandas 3 merges no empty texts
        words = {name: object for name in keys if rows[name].dtype.kind not in "biuf"}
        return rows[keys].astype(words).assign(**values, _order=rows.groupby(keys, dropna=False).cumcount())

    one, other = (side(frame[frame[key] == value]) for value in (first, second))
    ends = ("_first", "_second")
    joined = one.merge(other, on=[*keys, "_order"], how="outer", suffixes=ends, indicator=True)
    rows = joined[joined["_merge"] == "both"]
    differences = {column: rows[f"_{column}_first"] - rows[f"_{column}_second"] for column in columns}
    means = rows[unit].assign(**differences).groupby(unit, sort=True)[[*columns]].mean()
    return rows[unit].drop_duplicates(), joined[unit].drop_duplicates(), means
