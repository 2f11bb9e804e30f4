"""Paired differences between the values of one factor, all other swept keys equal, over all of a sweep.

The same replication has the same luck with both values, so their difference is known far better than either.
Points that differ in the factor alone form a group; groups are cut into parts, each reduced where its rows
are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from tideover.models.schema.columns import Column
from tideover.models.schema.fields import HEADLINE
from tideover.scenarios.statistics.estimates import estimate
from tideover.scenarios.statistics.paired import Paired, paired_in_groups
from tideover.scenarios.sweeps import tables
from tideover.scenarios.sweeps.reduction import Parts, Reduction
from tideover.scenarios.sweeps.rows import arrow_type, identity

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FOLDER = "differences"
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


def groups(points: Sequence[Mapping[Any, Any]], key: str) -> list[list[int]]:
    """The numbers of the points that differ in one factor alone, those with a partner; ``points``: the swept
    values of each.
    """
    found: dict[str, list[int]] = {}
    for number, values in enumerate(points):
        others = {name: value for name, value in values.items() if name != key}
        found.setdefault(json.dumps(others, sort_keys=True, default=str), []).append(number)
    return [members for members in found.values() if len(members) > 1]


def of_differences(key: str, swept: Mapping[str, Column], members: Sequence[Sequence[int]]) -> Reduction:
    """A row for each group, pair of the factor's values, and metric: how many pairs there are, and the mean
    of their differences, the first value's minus the second's, with its 95 % t-interval.
    """
    import pyarrow as pa

    others = {name: column for name, column in swept.items() if name != key}
    kinds = {"point": pa.int64(), "factor": pa.string(), "first": pa.string(), "second": pa.string()}
    kinds |= {name: arrow_type(column) for name, column in others.items()} | {"metric": pa.string()}
    kinds |= dict.fromkeys(("n", "undefined", "unmatched"), pa.int64())
    kinds |= dict.fromkeys(("mean", "std", "low", "high"), pa.float64())
    wanted = [column for columns in METRICS.values() for column in columns]
    needs = dict.fromkeys(name for table in METRICS for name in tables.needed(table, swept))
    kept = {"point", "recoveries", "error", *wanted, *tables.names(swept), *(c.name for c in identity())}
    count = max(1, math.ceil(len(members) / _GROUPS))
    place = {point: number * count // len(members) for number, group in enumerate(members) for point in group}
    return Reduction(
        FOLDER,
        tuple(name for name in needs if name in kept),
        partial(_differences, key, swept, tuple(kinds)),
        pa.schema(list(kinds.items())),
        Parts(count, place),
    )


def _differences(
    key: str, swept: Mapping[str, Column], columns: Sequence[str], found: pa.Table
) -> pd.DataFrame:
    import pandas as pd

    if key in found.column_names and key != (column := swept[key].name):
        # a whole strategy is swept: its kind, a column of its own, may be the same for two of them
        found = found.drop_columns([key]).rename_columns(
            [key if name == column else name for name in found.drop_columns([key]).column_names]
        )
    found = tables.named(found.sort_by(tables.ORDER), swept, [c for c in identity() if c.name != key])
    runs = found.drop_columns(["recoveries"]).to_pandas()
    keys = [name for name in swept if name in found.column_names]
    named = dict.fromkeys(["point", *keys, *(c.name for c in identity()), "recoveries"])
    about = found.select([*named])
    recoveries = tables.exploded(about, "recoveries").to_pandas()
    others = [name for name in keys if name != key]
    runs[_GROUP] = runs.groupby(others, sort=False, dropna=False).ngroup() if others else 0
    recoveries[_GROUP] = recoveries["point"].map(runs.drop_duplicates("point").set_index("point")[_GROUP])
    frames = {"recoveries": recoveries, "runs": runs[runs["error"].isna()]}
    values = {
        number: list(dict.fromkeys(mine.sort_values("point")[key])) for number, mine in runs.groupby(_GROUP)
    }
    pairs = {number: list(_pairs(mine)) for number, mine in values.items()}
    known = {
        (pair, metric): paired_in_groups(frame, *pair, metric, _GROUP, key=key)
        for pair in dict.fromkeys(chain.from_iterable(pairs.values()))
        for table, frame in frames.items()
        for metric in METRICS[table]
    }
    rows: list[dict[str, Any]] = []
    for number, mine in runs.groupby(_GROUP):
        said = {"point": int(mine["point"].min()), "factor": key}
        said |= {name: mine[name].iloc[0] for name in others}
        for pair in pairs[number]:
            for metric in chain.from_iterable(METRICS.values()):
                found = known[pair, metric].get(number, Paired(*pair, metric, estimate(()), 0))
                rows.append(said | _row(found))
    return pd.DataFrame(rows, columns=list(columns))


def _pairs(values: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Later values minus earlier ones; of many only minus the first."""
    if len(values) < _MANY:
        yield from ((second, first) for first, second in combinations(values, 2))
    else:
        yield from ((value, values[0]) for value in values[1:])


def _row(pair: Paired) -> dict[str, Any]:
    found = pair.difference
    low, high = found.t or (None, None)
    return {
        "first": str(pair.first),
        "second": str(pair.second),
        "metric": pair.column,
        "n": found.n,
        "undefined": found.undefined,
        "unmatched": pair.unmatched,
        "mean": found.mean,
        "std": found.std,
        "low": low,
        "high": high,
    }
