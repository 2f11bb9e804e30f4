"""A sweep's runs in this process; runs that end the process that simulates them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tideover.scenarios.runs import code
from tideover.scenarios.sweeps.engine import Done, Tell
from tideover.scenarios.sweeps.files import LocalFiles, Manifest, aside, path_of
from tideover.scenarios.sweeps.reduction import Reduction, cut
from tideover.scenarios.sweeps.reduction import path_of as part_path
from tideover.scenarios.sweeps.rows import ORDER
from tideover.scenarios.sweeps.survey import (
    Chunk,
    Refused,
    Reuse,
    Surveyed,
    Unit,
    local_index,
    local_rows,
    survey,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tideover.scenarios.sweeps.engine import Task
    from tideover.scenarios.sweeps.files import Files
    from tideover.scenarios.sweeps.recipe import Points


# Runs that end the process that simulates them: found by halving, and told as runs that failed.

_CRASHED = re.compile(r"worker (process )?(exited|crashed|died)|ExecutorLostFailure|EOFException", re.I)
ENDED = "the process that simulated it ended"


class Jobs(Protocol):
    """What Spark can be asked for."""

    @property
    def files(self) -> Files:
        """Where the dataset lies."""

    @property
    def spark(self) -> SparkSession:
        """The session."""

    def rows(self, task: Task, reuse: Reuse, job: Sequence[Chunk]) -> DataFrame:
        """The rows of some chunks, to be made."""

    def failed(self, task: Task, unit: Unit, chunk: str, why: str) -> DataFrame:
        """The row of a run that cannot be done."""

    def placed(self, rows: DataFrame, job: Sequence[Chunk]) -> Done:
        """Write the rows of chunks."""


def lost_worker(error: Exception) -> bool:
    """Whether a Spark job failed because a worker's process ended, as often as Spark tried."""
    return _CRASHED.search(str(error)) is not None


def reason(error: Exception) -> str:
    """The telling line of what may be a long Java trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"(: )?[\w.]*(Error|Exception)\b", line)]
    said = (told or lines or [type(error).__name__])[-1 if told else 0].lstrip(": ")[:400]
    if "ModuleNotFoundError" in said:
        said += (
            " (Spark's workers need the packages that Tideover needs: PYSPARK_PYTHON names a Python that has "
            "them, or --archive sends them)"
        )
    return said


def halved(engine: Jobs, task: Task, reuse: Reuse, chunk: Chunk) -> Done:
    """A chunk whose job lost its workers: what can be done is done, in ever smaller parts."""
    folder = aside()
    try:
        paths = _parts(engine, task, reuse, chunk, chunk.units, folder)
        rows = engine.spark.read.parquet(*(f"{engine.files.url}/{path}" for path in paths))
        return engine.placed(rows, [chunk])
    finally:
        engine.files.remove(folder)


def _parts(
    engine: Jobs,
    task: Task,
    reuse: Reuse,
    chunk: Chunk,
    units: Sequence[Unit],
    folder: str,
) -> list[str]:
    """Where the rows of these runs are."""
    path = f"{folder}/{units[0].run}-{len(units)}"
    part = Chunk(chunk.name, tuple(units))
    try:
        engine.rows(task, reuse, [part]).write.parquet(f"{engine.files.url}/{path}")
        return [path]
    except Exception as error:
        if not lost_worker(error):
            raise
    if len(units) == 1:
        engine.failed(task, units[0], chunk.name, ENDED).write.mode("overwrite").parquet(
            f"{engine.files.url}/{path}"
        )
        return [path]
    middle = len(units) // 2
    halves = units[:middle], units[middle:]
    return [place for half in halves for place in _parts(engine, task, reuse, chunk, half, folder)]


# A sweep's runs in this process, one after the other: no Spark, no Java.


class InProcess:
    """The engine without Spark."""

    def __init__(self, files: LocalFiles) -> None:
        self.files = files

    def survey(self, recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterable[Surveyed | Refused]:
        """Look at some points."""
        yield from surveyed(recipe, numbers, tell)

    def make(self, task: Task, chunks: Iterable[Chunk], reuse: Reuse, tell: Tell) -> Iterator[Done]:
        """Do the runs of chunks, and write each."""
        import pyarrow as pa

        for chunk in chunks:
            known, todo = reuse.split(chunk.units)
            parts = []
            for batch in task.simulated(todo):
                parts.append(batch)
                tell("simulating", sum(part.num_rows for part in parts))
            done = [pa.Table.from_batches(parts, task.schema)]
            if known:
                done.append(task.again(local_rows(self.files, known), chunk.units))
            table = pa.concat_tables(done)
            with self.files.aside_of(path_of(chunk.name)) as part:
                write(table.sort_by(ORDER), part)
            failed = table.num_rows - table["error"].null_count
            yield Done((chunk.name,), table.num_rows, failed)

    def index(self, paths: Sequence[str]) -> pa.Table:
        """Which runs are in which of some files."""
        return local_index(self.files, paths)

    def reduced(self, known: Manifest, how: Reduction) -> pa.Table:
        """What is made of the rows of each point."""
        import pyarrow as pa

        return pa.concat_tables(self._parts(known, how))

    def reduce(self, known: Manifest, how: Reduction) -> None:
        """Write what is made of the rows of each point."""
        for number, found in enumerate(self._parts(known, how)):
            path = part_path(how.folder, number)
            if not found.num_rows:
                self.files.remove(path)
                continue
            with self.files.aside_of(path) as part:
                write(found, part)

    def _parts(self, known: Manifest, how: Reduction) -> Iterator[pa.Table]:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        rows = ds.dataset([str(self.files.directory / path) for path in known.files], format="parquet")
        parts = cut(how, known.points, known.runs)
        members: list[list[int]] = [[] for _ in range(parts.count)]
        for point, part in parts.place.items():
            members[part].append(point)
        for mine in members:
            yield how(rows.to_table(columns=list(how.needs), filter=pc.field("point").isin(mine)))


def write(table: pa.Table, place: Path) -> None:
    """As Spark does: compressed, and each page with its checksum."""
    import pyarrow.parquet as pq

    pq.write_table(table, place, compression="zstd", write_page_checksum=True)


def surveyed(recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterator[Surveyed | Refused]:
    """Look at some points, in this process."""
    for done, found in enumerate(survey(recipe, numbers, code()), 1):
        yield found
        tell("checking points", done)
