"""Rows of a dataset that is there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.files import LocalFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def local_rows(files: LocalFiles, wanted: Mapping[str, Sequence[str]]) -> pa.Table:
    """The rows of some runs, by the file that has them, without what depends on the sweep that did them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    kept = [field.name for field in rows.schema({}) if field.name != rows.POINT.name]
    found = []
    for path, names in wanted.items():
        table = pq.read_table(files.directory / path, columns=kept)
        found.append(table.filter(pc.is_in(table[rows.RUN.name], pa.array(names))))
    return pa.concat_tables(found)


def local_index(files: LocalFiles, paths: Iterable[str]) -> pa.Table:
    """Which runs are in which of some files: ``run``, ``file``, and whether it ``failed``. A file that cannot
    be read has none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for path in paths:
        try:
            table = pq.read_table(files.directory / path, columns=["run", "error"])
        except (pa.ArrowException, OSError, KeyError):  # a file of somebody else has other columns
            continue
        place = pa.array([path] * table.num_rows, pa.string())
        found.append(pa.table({"run": table["run"], "file": place, "failed": table["error"].is_valid()}))
    return pa.concat_tables(found) if found else _nothing()


def _nothing() -> pa.Table:
    import pyarrow as pa

    columns = [("run", pa.string()), ("file", pa.string()), ("failed", pa.bool_())]
    return pa.schema(columns).empty_table()


def remote_index(spark: SparkSession, url: str, paths: Sequence[str]) -> pa.Table:
    """The same of a dataset that Spark has to read."""
    from pyspark.sql import functions as f

    if not paths:
        return _nothing()
    reader = spark.read.option("ignoreCorruptFiles", True)
    rows = reader.parquet(*(f"{url}/{path}" for path in paths))
    name = f.regexp_extract(f.input_file_name(), "([^/]+/[^/]+)$", 1)
    return rows.select("run", name.alias("file"), f.col("error").isNotNull().alias("failed")).toArrow()
