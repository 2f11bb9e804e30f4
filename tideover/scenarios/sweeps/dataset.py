"""What a sweep found, read from its dataset; paired differences."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from tideover.models import results
from tideover.models.results import Result
from tideover.models.schema import HEADLINE, TABLES, Column, conform
from tideover.scenarios.loader import load
from tideover.scenarios.statistics.intervals import Paired, estimate, paired_in_groups
from tideover.scenarios.sweeps import files as manifest
from tideover.scenarios.sweeps import reduction, rows
from tideover.scenarios.sweeps import rows as tables
from tideover.scenarios.sweeps.factors import written
from tideover.scenarios.sweeps.files import Damaged, Files, LocalFiles, Manifest, NoDataset, local_path, named
from tideover.scenarios.sweeps.in_process import InProcess
from tideover.scenarios.sweeps.reduction import Parts, Reduction, cut, of_figures, of_points, of_remarks
from tideover.scenarios.sweeps.rows import AT_LEAST, arrow_type, identity

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


# Paired differences between the values of one factor, all other swept keys equal, over all of a sweep.
#
# The same replication has the same luck with both values, so their difference is known far better than
# either. Points that differ in the factor alone form a group; groups are cut into parts, each reduced where
# its rows are.

DIFFERENCES = "differences"
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
        DIFFERENCES,
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


# What a sweep found, read from its dataset: summaries at once, rows when they are asked for.

_SHOWN = 50
"""Points that a notebook shows."""

FOLDER = "dataset"
"""Where a directory for results has the dataset."""


class Sweep:
    """What a sweep found.

    parameters           the swept keys, and the unit of each in the tables (``""``: as they were written)
    points, summary      a row a point; a row a point and metric: mean, interval, quantiles
    runs, recoveries, timeline, tasks    tidy tables: ``point``, the swept keys, then the columns of ``run``;
                         they are read when they are asked for, whole
    failed, warnings     (point, replication, error) of every run that failed; remarks
    """

    def __init__(self, known: Manifest, files: Files, keeps: object = None) -> None:
        """``keeps``: a temporary directory that has to live as long as this does."""
        self.manifest = known
        self._files = files
        self._keeps = keeps

    @staticmethod
    def open(place: str | os.PathLike[str]) -> Sweep:
        """What a sweep found and kept: ``place`` is its directory for results, or that of the dataset itself.

        Raises NoDataset if there is none, or if the sweep has not ended; Damaged if files of it are missing
        or are not as they were written.
        """
        directory = local_path(place)
        if directory is None:
            raise NoDataset(f"{place}: is not on this machine; give Spark the files that its manifest names")
        for folder in (directory / FOLDER, directory):
            files = LocalFiles(folder)
            if (known := manifest.read(files)) is not None:
                if not known.complete:
                    raise NoDataset(f"{folder}: the sweep has not ended; the same command goes on with it")
                if bad := _damaged(known, files):
                    said = f"{folder}: damaged or missing: {named(bad)}"
                    raise Damaged(f"{said}; the same tideover sweep makes them anew")
                return Sweep(known, files)
        raise NoDataset(f"{directory}: holds no dataset of a sweep ({manifest.NAME} is missing)")

    def __repr__(self) -> str:
        times, late = self._of(AT_LEAST)["mean"], int((self._of(HEADLINE)["undefined"] > 0).sum())
        span = f"; time to recover {times.min():.4g} to {times.max():.4g} s" if len(times) else ""
        if late:
            span += f" at least: in {results.counted(late, 'point')} not every run recovers"
        points = results.counted(self.manifest.points, "point")
        done = f"{results.counted(self.manifest.runs, 'run')}, {int(self.points['failed'].sum())} failed"
        return f"<Sweep {self.manifest.name!r}: {points} of {', '.join(self.parameters)}; {done}{span}>"

    def _repr_html_(self) -> str:
        shown = self.points["point"].head(_SHOWN)
        swept = (self._swept(point) for point in self.points.head(_SHOWN).to_dict("records"))
        rows = [one | self.result(number).headline() for one, number in zip(swept, shown, strict=True)]
        return results.html(rows)

    @property
    def name(self) -> str:
        """Of the sweep."""
        return self.manifest.name

    @property
    def parameters(self) -> dict[str, str]:
        """The swept keys, and the unit of each in the tables."""
        return {key: column.unit for key, column in self.manifest.swept.items()}

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row a point: its number, the swept values, the strategy, how many runs it has and how many
        failed.
        """
        return self._reduced(of_points(self.manifest.swept))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a point and metric (`tideover.scenarios.sweeps.rows`)."""
        return self._reduced(of_figures())

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Paired differences between strategies, if they were swept: one row for each combination of the
        other swept values, pair of strategies, and metric (`tideover.scenarios.sweeps.dataset`).
        """
        import pandas as pd

        key = next((key for key in STRATEGIES if key in self.parameters), None)
        how = None if key is None else self._differences(key)
        if how is None:
            return pd.DataFrame()
        return self._reduced(how)

    def differences_of(self, key: str) -> pd.DataFrame:
        """The same for any swept key, found now, in this process. Raises KeyError for another."""
        import pandas as pd

        if key not in self.parameters:
            raise KeyError(f"{key!r} was not swept; swept: {', '.join(self.parameters)}")
        how = self._differences(key)
        if how is None or not isinstance(self._files, LocalFiles):
            return pd.DataFrame()
        return InProcess(self._files).reduced(self.manifest, how).to_pandas()

    def _differences(self, key: str) -> Reduction | None:
        """How they are found; None if no two points differ in this key alone."""
        values = self.points[[*self.parameters]].to_dict("records")
        members = groups(values, key)
        return of_differences(key, self.manifest.swept, members) if members else None

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run; of a failed one, ``error`` says why."""
        return self._table("runs")

    @cached_property
    def recoveries(self) -> pd.DataFrame:
        """One row a failure."""
        return self._table("recoveries")

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """One row a simulated second; empty if a sweep of more than 500,000 left them out."""
        return self._table("timeline")

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """One row a task and run."""
        return self._table("tasks")

    @cached_property
    def failed(self) -> list[tuple[int, int, str]]:
        """Point, replication and error of every run that failed."""
        import pyarrow.compute as pc

        if not self.points["failed"].any():
            return []
        found = self.scan(["point", "replication", "error"], pc.field("error").is_valid())
        found = found.sort_by(rows.ORDER)
        return list(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))

    @cached_property
    def warnings(self) -> list[str]:
        """One remark of a kind: before running, and then of the runs."""
        from tideover.models.advice import in_short

        found = self._reduced(of_remarks()).sort_values(["point", "replication"], kind="stable")
        return [*self.manifest.remarks, *in_short(found["remark"])]

    @property
    def place(self) -> str:
        """Where the dataset lies."""
        return self._files.where

    def fingerprint(self) -> str:
        """A hash of what the dataset holds: its manifest has those of the files."""
        return hashlib.sha256(self.manifest.to_bytes()).hexdigest()

    def fetch(self) -> None:
        """Read what a report shows: points, summary, failed runs and remarks."""
        _ = self.points, self.summary, self.differences, self.failed, self.warnings

    def scan(self, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
        """Rows of the dataset, one a run, as an Arrow table; ``where``: an expression of pyarrow.dataset."""
        return self._files.table(self.manifest.files, columns, where)

    @property
    def urls(self) -> list[str]:
        """The Parquet files that count, in their order."""
        return [f"{self._files.url}/{path}" for path in self.manifest.files]

    def spark(self, session: SparkSession) -> DataFrame:
        """The dataset, one row a run, as a DataFrame of a Spark session."""
        return session.read.parquet(*self.urls)

    def result(self, point: int) -> Result:
        """All replications of a point that did not fail, as ``run`` would give them."""
        import pyarrow.compute as pc

        found = self.scan(where=pc.field("point") == point).sort_by(rows.ORDER).to_pylist()
        document = json.loads(found[0]["scenario_json"])
        done = [rows.replication_of(row) for row in found if row["error"] is None]
        return Result(load(document), done, document)

    def records(self) -> Iterator[dict[str, Any]]:
        """For each point what ``run --json`` prints, and ``point``, ``swept`` (values by key), ``errors``."""
        errors: dict[int, list[str]] = {}
        for number, _, error in self.failed:
            errors.setdefault(number, []).append(error)
        for point in self.points.to_dict("records"):
            number = point["point"]
            extra = {"point": number, "swept": self._swept(point), "errors": errors.get(number, [])}
            yield self.result(number).to_dict() | extra

    def to_list(self) -> list[dict[str, Any]]:
        """The ``records``, all at once."""
        return list(self.records())

    def _swept(self, point: Mapping[Any, Any]) -> dict[str, Any]:
        """The swept values of a point, with their units; None for null, where pandas 3 has NaN."""
        import pandas as pd

        shown: dict[str, Any] = {}
        for key, unit in self.parameters.items():
            value = None if pd.isna(point[key]) else point[key]
            shown[key] = written(value, unit) if unit and value is not None else value
        return shown

    def _of(self, metric: str) -> pd.DataFrame:
        return self.summary[self.summary["metric"] == metric]

    def _reduced(self, how: Reduction) -> pd.DataFrame:
        count = cut(how, self.manifest.points, self.manifest.runs).count
        every = (reduction.path_of(how.folder, number) for number in range(count))
        paths = [path for path in every if path in self.manifest.checksums]
        return (self._files.table(paths) if paths else how.schema.empty_table()).to_pandas()

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tidy tables by name, those that have rows (``runs`` and ``recoveries`` always)."""
        found = {name: getattr(self, name) for name in ("recoveries", "runs", "timeline", "tasks")}
        return {name: frame for name, frame in found.items() if name in ("recoveries", "runs") or len(frame)}

    def of_point(self, table: str, point: int) -> pd.DataFrame:
        """A tidy table's rows of one point."""
        import pyarrow.compute as pc

        return self._table(table, pc.field("point") == point)

    def _table(self, name: str, where: Any = None) -> pd.DataFrame:
        swept = self.manifest.swept
        found = rows.tidy(self.scan(rows.needed(name, swept), where), name, swept).to_pandas()
        documented = conform(found, TABLES[name])
        known = {column.name for column in TABLES[name]}
        added = [key for key in ("point", *swept) if key in found and key not in known]
        return documented[[*added, *(c for c in documented.columns if c not in added)]]


def _damaged(known: Manifest, files: Files) -> list[str]:
    """The files that are missing, or not as they were written."""
    found = files.checksums(known.checksums)
    return [path for path, checksum in known.checksums.items() if found.get(path) != checksum]
