"""A run as one row of a sweep's dataset, the tidy tables of rows, and the figures of each point.

A run is whole or missing: its recoveries, tasks and seconds are lists inside its row, so no table can have
half of one. What the tidy tables do not hold (histograms, edges, usage) is in ``detail``, from which
`replication_of` gives back exactly what was simulated. Rows are a file format: if ``detail`` has something
else, or the manifest, `FORMAT` changes. Other columns are seen by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tideover.models.evaluation.bottleneck import Used
from tideover.models.schema import HEADLINE, POINT, ROWS, TABLES, Column
from tideover.models.simulation import Replication
from tideover.scenarios.statistics.intervals import LEVEL, t_quantile
from tideover.sim.histogram import Histogram
from tideover.sim.units import S, parse_duration

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT = 3
"""Version of what rows and manifest have: runs of another are done again."""

LISTS = ("recoveries", "tasks", "timeline")
"""Tables whose rows are lists inside a run's row."""

RUN = Column(
    "run",
    "hash of the whole scenario, the replication and the model's code: what this row is of",
    dtype="string",
)
REMARKS = Column("remarks", "what an expert would remark on this run", dtype="string")
ENDS = Column(
    "run_ends_at_s",
    "when the run ends; a recovery that is not over by then takes at least from failed_at_s until then",
    "s",
)
DETAIL = Column(
    "detail", "as JSON, what the tables do not have: histograms of latencies, edges, usage", dtype="string"
)
ORDER = [(POINT.name, "ascending"), ("replication", "ascending")]
"""Of the rows of a table; those of one run keep theirs."""

IDENTITY = TABLES["runs"][: [column.name for column in TABLES["runs"]].index("replication") + 1]
"""The columns that say which run a row is of."""

_HISTOGRAMS = ("latency", "end_to_end")
_NOT_KEPT = ("trace", "world")


def schema(swept: Mapping[str, Column]) -> pa.Schema:
    """The columns of the dataset, with units and meanings as metadata; ``swept``: those of the swept keys."""
    import pyarrow as pa

    def field(column: Column) -> pa.Field:
        said = {"meaning": column.meaning, "unit": column.unit, "undefined": column.undefined}
        about = {key: text for key, text in said.items() if text}
        return pa.field(column.name, pa.type_for_alias(column.dtype), metadata=about)

    def nested(table: str) -> pa.Field:
        own = (column for column in TABLES[table] if column.name not in {c.name for c in IDENTITY})
        return pa.field(table, pa.list_(pa.struct(map(field, own))), metadata={"meaning": ROWS[table]})

    remarks = pa.field(REMARKS.name, pa.list_(pa.string()), metadata={"meaning": REMARKS.meaning})
    before = map(field, (RUN, POINT, *swept.values(), *TABLES["runs"]))
    return pa.schema([*before, remarks, field(ENDS), *map(nested, LISTS), field(DETAIL)])


def kept_of(replication: Replication, timeline: bool) -> dict[str, Any]:
    """A run's nested tables, and its detail; ``timeline``: with its rows per second."""
    lists = {name: getattr(replication, name) for name in LISTS}
    names = [one.name for one in fields(Replication) if one.name not in (*LISTS, *_NOT_KEPT)]
    data = {name: getattr(replication, name) for name in names}
    data |= {name: data[name].state() for name in _HISTOGRAMS}
    if data["end_to_end"] == data["latency"]:
        data["end_to_end"] = None  # where nothing is replayed, they are the same
    data["complete"] = None if replication.complete is None else replication.complete.state()
    # columns that the rows have, whether or not they are defined there
    data["optional"] = {
        table: [name for name in _optional(table) if any(name in row for row in rows)]
        for table, rows in lists.items()
    }
    detail = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return lists | {DETAIL.name: detail} | ({} if timeline else {"timeline": None})


def replication_of(row: Mapping[str, Any]) -> Replication:
    """The replication that a row was made of; without a timeline if that was left out."""
    data: dict[str, Any] = json.loads(row[DETAIL.name])
    for table, present in data.pop("optional").items():
        gone = set(_optional(table)) - set(present)
        data[table] = [{k: v for k, v in one.items() if k not in gone} for one in row[table] or []]
    data |= {name: Histogram.of_state(data[name] or data["latency"]) for name in _HISTOGRAMS}
    used, complete = data["used"], data["complete"]
    data["used"] = None if used is None else Used(*used)
    data["complete"] = None if complete is None else Histogram.of_state(complete)
    return Replication(**data)


def _optional(table: str) -> list[str]:
    return [column.name for column in TABLES[table] if column.optional]


def needed(table: str, swept: Mapping[str, Column]) -> list[str]:
    """The columns of the dataset of which a tidy table is made."""
    columns = [POINT.name, *names(swept), *(column.name for column in TABLES["runs"] if table == "runs")]
    if table != "runs":
        columns += [column.name for column in IDENTITY] + [table]
    return list(dict.fromkeys(columns))


def names(swept: Mapping[str, Column]) -> list[str]:
    return [column.name for column in swept.values()]


def named(found: pa.Table, swept: Mapping[str, Column], others: Iterable[Column]) -> pa.Table:
    """The swept keys' columns by the keys' own names, without those that ``others`` has already."""
    taken = {column.name for column in others}
    keys = {column.name: key for key, column in swept.items()}
    kept = [name for name in found.column_names if keys.get(name) not in taken]
    return found.select(kept).rename_columns([keys.get(name, name) for name in kept])


def tidy(found: pa.Table, table: str, swept: Mapping[str, Column]) -> pa.Table:
    """A tidy table: ``point``, the swept keys, the columns of ``run``; optional ones if anything is there."""
    found = named(found.select(needed(table, swept)), swept, TABLES[table])
    found = found.sort_by(ORDER) if found.num_rows else found
    if table != "runs":
        found = exploded(found, table)
    optional = {column.name for column in TABLES[table] if column.optional}
    empty = [n for n in found.column_names if n in optional and found[n].null_count == found.num_rows]
    return found.drop_columns(empty)


def exploded(found: pa.Table, table: str) -> pa.Table:
    """A row for each item of the lists of a column, with the columns of the run that it is of."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # concatenated: compute functions on lists count parents by chunk of memory
    found = found.combine_chunks()
    items = pa.Table.from_struct_array(pc.list_flatten(found[table]))
    outer = found.drop_columns([table]).take(pc.list_parent_indices(found[table]))
    return pa.table([*outer.columns, *items.columns], names=[*outer.column_names, *items.column_names])


# The figures of each point and metric: mean, interval and quantiles.
#
# A metric is a numeric column of ``runs`` or ``recoveries``; where both tables have the name, that of
# recoveries is ``recoveries.NAME``. Its values are those of replications, which are independent of each
# other: the recoveries of one replication are averaged first, and if one of them is undefined, so is the
# replication's value (a mean of the others would favour what recovers only sometimes). Runs that failed
# have no values.
#
# A time to recover that is undefined is censored: the run ended first. ``AT_LEAST`` counts it with the time
# from the failure to the end of the run, so its mean is a lower bound, and the mean itself where nothing is
# undefined.

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

QUANTILES = {"min": 0.0, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}
FIGURES = ("mean", "std", "low", "high", *QUANTILES)
COLUMNS = ("point", "metric", "n", "undefined", *FIGURES)
"""Of a summary: ``n`` values are defined, ``undefined`` are not; ``low`` and ``high`` are the ends of the
95 % t-interval of the mean; quantiles are interpolated between the two nearest values. NaN is undefined.
"""
AT_LEAST = "time_to_recover_at_least_s"
_NO_METRICS = frozenset({"seed", "replication"})
_ORDER = ("failed_at_s", "component", "kind")


def summarise(
    recoveries: pd.DataFrame, runs: pd.DataFrame, parameters: Collection[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points of a sweep (``points_of``), and the summary of each (``summarise_points``); the frames are
    ``recoveries`` and ``runs`` with ``point`` and the swept keys, ``parameters``, as columns.
    """
    if ENDS.name not in runs.columns:  # tidy tables leave it to the scenario
        ends = {text: json.loads(text)["run"]["duration"] for text in runs["scenario_json"].unique()}
        ends = {text: parse_duration(duration) / S for text, duration in ends.items()}
        runs = runs.assign(**{ENDS.name: runs["scenario_json"].map(ends)})
    return points_of(runs, parameters), summarise_points(recoveries, runs)


def points_of(runs: pd.DataFrame, parameters: Collection[str]) -> pd.DataFrame:
    """A row for each point of these runs: ``point``, the swept keys, ``strategy``, and how many ``runs``
    there are and ``failed``; ``parameters``: the swept keys, columns of the runs like ``point``.
    """
    names = list(dict.fromkeys([*(key for key in parameters if key in runs.columns), "strategy"]))
    grouped = runs.groupby("point", sort=True)
    points = grouped[names].first()
    return points.assign(runs=grouped.size(), failed=grouped["error"].count()).reset_index()


def summarise_points(
    recoveries: pd.DataFrame, runs: pd.DataFrame, metrics: Collection[str] | None = None
) -> pd.DataFrame:
    """The summary of the points whose rows these are, by point and, of each, metric by metric.

    A point's figures depend on its own rows only, and not on their order: it makes no difference how points
    are distributed over calls. ``metrics``: those that are wanted, None: all.
    """
    import pandas as pd

    good = runs[runs["error"].isna()]
    numbers = np.unique(runs["point"].to_numpy(dtype=np.int64))
    found = {
        name: _figures(np.searchsorted(numbers, points), values, len(numbers))
        for name, points, values in _metrics(recoveries, good, metrics)
    }
    names = np.array(list(found), dtype=object)
    columns: dict[str, Any] = {
        "point": np.repeat(numbers, len(names)),
        "metric": np.tile(names, len(numbers)),
    }
    for column in COLUMNS[2:]:  # a row of figures for each point
        every = [figures[column] for figures in found.values()]
        columns[column] = np.column_stack(every).ravel() if every else np.empty(0)
    there = (columns["n"] > 0) | (columns["undefined"] > 0)
    return pd.DataFrame({name: values[there] for name, values in columns.items()})


def metric_names(table: str) -> dict[str, str]:
    """The numeric columns of ``runs`` or ``recoveries``, and what each is called as a metric."""
    columns = [c.name for c in TABLES[table] if c.dtype != "string" and c.name not in _NO_METRICS]
    others = {column.name for column in TABLES["runs"]} if table == "recoveries" else set()
    return {name: f"{table}.{name}" if name in others else name for name in columns}


def _metrics(
    recoveries: pd.DataFrame, runs: pd.DataFrame, wanted: Collection[str] | None
) -> Iterator[tuple[str, Places, Floats]]:
    """Of each metric its name, and point and value of each replication that can have one."""
    by_run = runs.sort_values(["point", "replication"], kind="stable")
    by = ["point", "replication", *(name for name in _ORDER if name in recoveries.columns)]
    by_failure = recoveries.sort_values(by, kind="stable")
    unit = by_failure[["point", "replication"]].to_numpy(dtype=np.int64)
    first = np.append(True, (unit[1:] != unit[:-1]).any(axis=1))[: len(unit)]
    replication = np.cumsum(first) - 1
    counts = np.bincount(replication) if len(unit) else np.empty(0)
    for table, frame in (("runs", by_run), ("recoveries", by_failure)):
        for column, name in metric_names(table).items():
            if column not in frame.columns or (wanted is not None and name not in wanted):
                continue
            values = frame[column].to_numpy(dtype=np.float64)
            if table == "runs":
                yield name, frame["point"].to_numpy(dtype=np.int64), values
                continue
            # NaN of one recovery is NaN of its replication
            yield name, unit[first, 0], np.bincount(replication, values, len(counts)) / counts
    if len(unit) and (wanted is None or AT_LEAST in wanted):
        ends = runs.drop_duplicates("point").set_index("point")[ENDS.name]
        seen = by_failure["point"].map(ends) - by_failure["failed_at_s"]
        least = by_failure[HEADLINE].fillna(seen).to_numpy(dtype=np.float64)
        yield AT_LEAST, unit[first, 0], np.bincount(replication, least, len(counts)) / counts


def _figures(place: Places, values: Floats, count: int) -> dict[str, Any]:
    """The figures of each of ``count`` groups; ``values[i]`` is of group ``place[i]``.

    Sums go one value after the other, as no other order would be the same for any number of groups.
    """
    known = ~np.isnan(values)
    every = np.bincount(place, minlength=count)
    place, values = place[known], values[known]
    n = np.bincount(place, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(place, values, count) / n
        square = np.bincount(place, (values - mean[place]) ** 2, count)
        std = np.where(n > 1, np.sqrt(square / (n - 1)), np.nan)
        half = t_quantile(np.maximum(n - 1, 1), LEVEL) * std / np.sqrt(n)
    figures = {"n": n, "undefined": every - n, "mean": mean, "std": std}
    return figures | {"low": mean - half, "high": mean + half} | quantiles(place, values, n)


def quantiles(place: Places, values: Floats, n: Places) -> dict[str, Floats]:
    """Of each group, between the two nearest of its values in order: definition 7 of Hyndman and Fan,
    "Sample quantiles in statistical packages", The American Statistician 50 (1996).
    """
    ordered = values[np.lexsort((values, place))]
    start = np.cumsum(n) - n
    found = {}
    filled = n > 0
    for name, part in QUANTILES.items():
        position = (n[filled] - 1) * part
        below = np.floor(position).astype(np.int64)
        above = np.minimum(below + 1, n[filled] - 1)
        low, high = ordered[start[filled] + below], ordered[start[filled] + above]
        found[name] = np.full(len(n), np.nan)
        found[name][filled] = low + (high - low) * (position - below)
    return found
