"""What is made of all rows of some points together: how many runs there are, the figures of each metric,
remarks, and paired differences.

Points are cut into parts by their number alone, so a part has the same rows wherever it is made. A new kind
of summary is one more function that returns a `Reduction`; `of_sweep` lists those that a sweep keeps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tideover.models.schema import HEADLINE, Column
from tideover.scenarios.statistics.intervals import Paired, estimate, paired_in_groups
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.rows import ENDS, IDENTITY

if TYPE_CHECKING:
    import pandas as pd

    from tideover.scenarios.sweeps.files import Manifest

_POINTS, _RUNS = 2_000, 50_000
"""Most of them in one part, if it has more than one point."""
_REMARKS = 1_000
"""Most distinct remarks that are kept of one part."""
_UNUSED = frozenset({"scenario_json", "version", "scenario"})


@dataclass(frozen=True)
class Reduction:
    """``of`` makes rows of the rows of some points, in the columns ``needs``; they are kept in ``folder``.

    ``parts``: the part of each point that counts; None: each point may be by itself.
    """

    folder: str
    needs: tuple[str, ...]
    of: Callable[[pa.Table], pd.DataFrame]
    schema: pa.Schema
    parts: Mapping[int, int] | None = None

    def __call__(self, found: pa.Table) -> pa.Table:
        return pa.Table.from_pandas(self.of(found), self.schema, preserve_index=False)

    def parts_of(self, known: Manifest) -> Mapping[int, int]:
        """The part of each point of a dataset."""
        if self.parts is not None:
            return self.parts
        points = known.points
        count = max(1, min(points, max(math.ceil(points / _POINTS), math.ceil(known.runs / _RUNS))))
        return {point: point * count // points for point in range(points)}

    def paths(self, known: Manifest) -> list[str]:
        """The file of each part; a part without rows has none."""
        count = max(self.parts_of(known).values()) + 1
        return [f"{self.folder}/part-{number:05}.parquet" for number in range(count)]


def of_sweep(swept: Mapping[str, Column], points: Sequence[Mapping[str, Any]]) -> list[Reduction]:
    """Those that every sweep keeps; ``points``: the swept values of each."""
    differences = (of_differences(key, swept, points) for key in STRATEGIES if key in swept)
    return [of_points(swept), of_figures(), of_remarks(), *(one for one in differences if one is not None)]


def of_points(swept: Mapping[str, Column]) -> Reduction:
    """A row for each point: the swept values, the strategy, and how many of its runs there are and failed."""

    def made(swept: Mapping[str, Column], found: pa.Table) -> pd.DataFrame:
        found = rows.named(found.sort_by(rows.ORDER), swept, IDENTITY)
        return rows.points_of(found.to_pandas(), swept)

    kinds = {"point": pa.int64()} | {key: pa.type_for_alias(column.dtype) for key, column in swept.items()}
    kinds |= {"strategy": pa.string(), "runs": pa.int64(), "failed": pa.int64()}
    needs = dict.fromkeys(["point", *rows.names(swept), "strategy", "replication", "error"])
    return Reduction("points", tuple(needs), partial(made, swept), pa.schema(list(kinds.items())))


def of_figures(metrics: tuple[str, ...] | None = None) -> Reduction:
    """A row for each point and metric: mean, interval and quantiles. None: of all metrics."""

    def made(found: pa.Table) -> pd.DataFrame:
        runs = found.drop_columns(["recoveries"]).to_pandas()
        recoveries = rows.exploded(found.select(["point", "replication", "recoveries"]), "recoveries")
        return rows.summarise_points(recoveries.to_pandas(), runs, metrics)

    counts = {"point", "n", "undefined"}
    kinds = {name: pa.int64() if name in counts else pa.float64() for name in rows.COLUMNS}
    needs = dict.fromkeys(name for table in ("runs", "recoveries") for name in rows.needed(table, {}))
    used = (*(name for name in needs if name not in _UNUSED), ENDS.name)
    return Reduction("summary", used, made, pa.schema(list((kinds | {"metric": pa.string()}).items())))


def of_remarks() -> Reduction:
    """A row for each distinct remark on the runs, with the first point and replication that has it."""

    def made(found: pa.Table) -> pd.DataFrame:
        frame = found.sort_by(rows.ORDER).to_pandas().explode("remarks").dropna(subset="remarks")
        first = frame.drop_duplicates("remarks").head(_REMARKS)
        return first.rename(columns={"remarks": "remark"})

    kinds = [("point", pa.int64()), ("replication", pa.int64()), ("remark", pa.string())]
    return Reduction("remarks", ("point", "replication", "remarks"), made, pa.schema(kinds))


# Paired differences between the values of one factor, all other swept keys equal, over all of a sweep.
#
# The same replication has the same luck with both values, so their difference is known far better than
# either. Points that differ in the factor alone form a group; groups are cut into parts.

STRATEGIES = ("strategy.kind", "strategy")
"""Factors whose differences every sweep finds."""
METRICS = {
    "recoveries": (HEADLINE, "catch_up_s"),
    "runs": ("latency_p99_ms", "lost", "duplicated", "cpu_s", "network_bytes", "store_bytes"),
}
"""What is compared, by the table that has it."""
_GROUP = "_group"
_GROUPS = 200
"""Most of them in one part."""
_MANY = 6
"""Values of a factor from which on each is only compared with the first."""


def of_differences(
    key: str, swept: Mapping[str, Column], points: Sequence[Mapping[Any, Any]]
) -> Reduction | None:
    """A row for each group, pair of the factor's values, and metric: how many pairs there are, and the mean
    of their differences, the first value's minus the second's, with its 95 % t-interval.

    ``points``: the swept values of each. None if no two points differ in this key alone.
    """
    groups: dict[str, list[int]] = {}
    for number, values in enumerate(points):
        others = {name: value for name, value in values.items() if name != key}
        groups.setdefault(json.dumps(others, sort_keys=True, default=str), []).append(number)
    members = [group for group in groups.values() if len(group) > 1]
    if not members:
        return None
    kinds = {"point": pa.int64(), "factor": pa.string(), "first": pa.string(), "second": pa.string()}
    kinds |= {name: pa.type_for_alias(column.dtype) for name, column in swept.items() if name != key}
    kinds |= {"metric": pa.string()} | dict.fromkeys(("n", "undefined", "unmatched"), pa.int64())
    kinds |= dict.fromkeys(("mean", "std", "low", "high"), pa.float64())
    needs = dict.fromkeys(name for table in METRICS for name in rows.needed(table, swept))
    kept = {"point", "recoveries", "error", *chain(*METRICS.values()), *rows.names(swept)}
    kept |= {column.name for column in IDENTITY}
    count = math.ceil(len(members) / _GROUPS)
    return Reduction(
        "differences",
        tuple(name for name in needs if name in kept),
        partial(_differences, key, swept, tuple(kinds)),
        pa.schema(list(kinds.items())),
        {point: number * count // len(members) for number, group in enumerate(members) for point in group},
    )


def _differences(
    key: str, swept: Mapping[str, Column], columns: Sequence[str], found: pa.Table
) -> pd.DataFrame:
    import pandas as pd

    if key in found.column_names and key != (column := swept[key].name):
        # a whole strategy is swept: its kind, a column of its own, may be the same for two of them
        found = found.drop_columns([key])
        found = found.rename_columns([key if name == column else name for name in found.column_names])
    found = rows.named(found.sort_by(rows.ORDER), swept, [c for c in IDENTITY if c.name != key])
    runs = found.drop_columns(["recoveries"]).to_pandas()
    others = [name for name in swept if name in found.column_names and name != key]
    about = dict.fromkeys(["point", *others, key, *(c.name for c in IDENTITY), "recoveries"])
    recoveries = rows.exploded(found.select([*about]), "recoveries").to_pandas()
    runs[_GROUP] = runs.groupby(others, sort=False, dropna=False).ngroup() if others else 0
    recoveries[_GROUP] = recoveries["point"].map(runs.drop_duplicates("point").set_index("point")[_GROUP])
    frames = {"recoveries": recoveries, "runs": runs[runs["error"].isna()]}
    groups = {number: mine.sort_values("point") for number, mine in runs.groupby(_GROUP)}
    pairs = {number: list(_pairs(list(dict.fromkeys(mine[key])))) for number, mine in groups.items()}
    known = {
        (pair, metric): paired_in_groups(frame, *pair, metric, _GROUP, key=key)
        for pair in dict.fromkeys(chain.from_iterable(pairs.values()))
        for table, frame in frames.items()
        for metric in METRICS[table]
    }
    made: list[dict[str, Any]] = []
    for number, mine in groups.items():
        said = {"point": int(mine["point"].iloc[0]), "factor": key}
        said |= {name: mine[name].iloc[0] for name in others}
        for pair in pairs[number]:
            for metric in chain.from_iterable(METRICS.values()):
                nothing = Paired(*pair, metric, estimate(()), 0)
                made.append(said | _row(known[pair, metric].get(number, nothing)))
    return pd.DataFrame(made, columns=list(columns))


def _pairs(values: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Later values minus earlier ones; of many only minus the first."""
    if len(values) < _MANY:
        yield from ((second, first) for first, second in combinations(values, 2))
    else:
        yield from ((value, values[0]) for value in values[1:])


def _row(pair: Paired) -> dict[str, Any]:
    found = pair.difference
    names = ("n", "undefined", "mean", "std")
    low, high = found.t or (None, None)
    said = {"first": str(pair.first), "second": str(pair.second), "metric": pair.column}
    more = {"unmatched": pair.unmatched, "low": low, "high": high}
    return said | {name: getattr(found, name) for name in names} | more
