"""What a sweep found, read from its dataset: summaries at once, rows when they are asked for.

Commands, `tideover.load` and reports read a `Sweep`; what it can be asked is added here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tideover.models import results
from tideover.models.results import Result
from tideover.models.schema import HEADLINE, TABLES, conform
from tideover.scenarios.loader import load
from tideover.scenarios.sweeps import files as manifest
from tideover.scenarios.sweeps import reduction, rows
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.factors import written
from tideover.scenarios.sweeps.files import Damaged, Files, Manifest, NoDataset, local_path, named
from tideover.scenarios.sweeps.rows import AT_LEAST

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

_SHOWN = 50
"""Points that a notebook shows."""

FOLDER = "dataset"
"""Where a directory for results has the dataset."""


class Sweep:
    """What a sweep found.

    name, place          of the sweep; where its dataset lies
    parameters           the swept keys, and the unit of each in the tables (``""``: as they were written)
    points, summary      a row a point; a row a point and metric: mean, interval, quantiles
    runs, recoveries, timeline, tasks    tidy tables: ``point``, the swept keys, then the columns of ``run``;
                         they are read when they are asked for, whole
    failed, warnings     (point, replication, error) of every run that failed; remarks
    """

    def __init__(self, known: Manifest, files: Files, keeps: object = None) -> None:
        """``keeps``: a temporary directory that has to live as long as this does."""
        self.manifest, self._files, self._keeps = known, files, keeps
        self.name, self.place = known.name, files.where
        self.parameters = {key: column.unit for key, column in known.swept.items()}

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
            files = Files(folder)
            if (known := manifest.read(files)) is not None:
                if not known.complete:
                    raise NoDataset(f"{folder}: the sweep has not ended; the same command goes on with it")
                found = files.checksums(known.checksums)
                if bad := [path for path, sum in known.checksums.items() if found.get(path) != sum]:
                    said = f"{folder}: damaged or missing: {named(bad)}"
                    raise Damaged(f"{said}; the same tideover sweep makes them anew")
                return Sweep(known, files)
        raise NoDataset(f"{directory}: holds no dataset of a sweep ({manifest.NAME} is missing)")

    def __repr__(self) -> str:
        times = self.summary[self.summary["metric"] == AT_LEAST]["mean"]
        late = int((self.summary[self.summary["metric"] == HEADLINE]["undefined"] > 0).sum())
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

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row a point: number, swept values, strategy, how many runs it has and how many failed."""
        return self._reduced(reduction.of_points(self.manifest.swept))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a point and metric (`tideover.scenarios.sweeps.rows`)."""
        return self._reduced(reduction.of_figures())

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Paired differences between strategies, if they were swept: one row for each combination of the
        other swept values, pair of strategies, and metric (`tideover.scenarios.sweeps.reduction`).
        """
        key = next((key for key in reduction.STRATEGIES if key in self.parameters), None)
        return self._reduced(None if key is None else self._differences(key))

    def differences_of(self, key: str) -> pd.DataFrame:
        """The same for any swept key, found now, in this process. Raises KeyError for another."""
        if key not in self.parameters:
            raise KeyError(f"{key!r} was not swept; swept: {', '.join(self.parameters)}")
        how = self._differences(key)
        if how is None or isinstance(self._files, manifest.HadoopFiles):
            return self._reduced(None)
        return Engine(self._files).reduced(self.manifest, how).to_pandas()

    def _differences(self, key: str) -> reduction.Reduction | None:
        values = self.points[[*self.parameters]].to_dict("records")
        return reduction.of_differences(key, self.manifest.swept, values)

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
        if not self.points["failed"].any():
            return []
        found = self.scan(["point", "replication", "error"], pc.field("error").is_valid())
        found = found.sort_by(rows.ORDER)
        return list(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))

    @cached_property
    def warnings(self) -> list[str]:
        """One remark of a kind: before running, and then of the runs."""
        from tideover.models.advice import in_short

        found = self._reduced(reduction.of_remarks()).sort_values(["point", "replication"], kind="stable")
        return [*self.manifest.remarks, *in_short(found["remark"])]

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

    def _reduced(self, how: reduction.Reduction | None) -> pd.DataFrame:
        """What the dataset keeps of all rows; empty for None."""
        import pandas as pd

        if how is None:
            return pd.DataFrame()
        paths = [path for path in how.paths(self.manifest) if path in self.manifest.checksums]
        return (self._files.table(paths) if paths else how.schema.empty_table()).to_pandas()

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tidy tables by name, those that have rows (``runs`` and ``recoveries`` always)."""
        found = {name: getattr(self, name) for name in ("recoveries", "runs", "timeline", "tasks")}
        return {name: frame for name, frame in found.items() if name in ("recoveries", "runs") or len(frame)}

    def of_point(self, table: str, point: int) -> pd.DataFrame:
        """A tidy table's rows of one point."""
        return self._table(table, pc.field("point") == point)

    def _table(self, name: str, where: Any = None) -> pd.DataFrame:
        swept = self.manifest.swept
        found = rows.tidy(self.scan(rows.needed(name, swept), where), name, swept).to_pandas()
        documented = conform(found, TABLES[name])
        known = {column.name for column in TABLES[name]}
        added = [key for key in ("point", *swept) if key in found and key not in known]
        return documented[[*added, *(c for c in documented.columns if c not in added)]]
