"""Paired differences: the same replication, seed and failure under two strategies.

Common random numbers make the two runs of a pair share their luck, so the difference is known far better than
that of either run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tideover.models.schema.fields import POINT
from tideover.scenarios.statistics.estimates import Estimate, estimate

if TYPE_CHECKING:
    import pandas as pd

_FAULT = ("kind", "component", "failed_at_s")


@dataclass(frozen=True)
class Paired:
    """``column`` of ``first`` minus that of ``second``.

    ``difference.n``: pairs; one pair is one replication, in which the failures are averaged.
    ``difference.undefined``: replications with a partner in which one of the two values is undefined.
    ``unmatched``: without a partner.
    """

    first: str
    second: str
    column: str
    difference: Estimate
    unmatched: int

    def mirrored(self) -> Paired:
        """The same comparison, seen from the other strategy."""
        d = self.difference
        turned = Estimate(d.n, d.undefined, _minus(d.mean), d.std, _turn(d.t), _turn(d.bootstrap))
        return Paired(self.second, self.first, self.column, turned, self.unmatched)


def paired(frame: pd.DataFrame, first: str, second: str, column: str) -> Paired:
    """Compare ``column`` of two strategies in ``recoveries`` or ``runs``.

    Rows match by seed, replication, swept values other than the strategy's, and (in ``recoveries``) by the
    failure's kind, component and time; several equal failures match in their order. Always evaluated with the
    names in alphabetical order, so that swapping the strategies only swaps the sign.
    """
    if first > second:
        return paired(frame, second, first, column).mirrored()
    unit = _replication_keys(frame)
    keys = [*unit, *(name for name in _FAULT if name in frame.columns)]
    sides = [_side(frame, strategy, keys, column) for strategy in (first, second)]
    joined = sides[0].merge(
        sides[1], on=[*keys, "_order"], how="outer", suffixes=("_first", "_second"), indicator=True
    )
    both = joined[joined["_merge"] == "both"]
    differences = (both["_value_first"] - both["_value_second"]).astype(float)
    if both.empty:
        return Paired(first, second, column, estimate([]), _units(joined, unit))
    means = differences.groupby([both[name] for name in unit], sort=True).mean()
    unmatched = _units(joined, unit) - _units(both, unit)
    return Paired(first, second, column, estimate(float(value) for value in means), unmatched)


def _replication_keys(frame: pd.DataFrame) -> list[str]:
    swept = [
        str(name) for name in frame.columns if "." in str(name) and not str(name).startswith("strategy.")
    ]
    return [*(name for name in swept if name != POINT.name), "seed", "replication"]


def _side(frame: pd.DataFrame, strategy: str, keys: list[str], column: str) -> pd.DataFrame:
    rows = frame[frame["strategy"] == strategy]
    side = rows[keys].assign(_value=rows[column].astype(float))
    return side.assign(_order=rows.groupby(keys, dropna=False).cumcount())


def _units(frame: pd.DataFrame, unit: list[str]) -> int:
    return len(frame[unit].drop_duplicates())


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _turn(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (-interval[1], -interval[0])
