"""Runs that end the process that simulates them: found by halving, and told as runs that failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tideover.scenarios.sweeps.chunks import Chunk, Unit
from tideover.scenarios.sweeps.files import aside
from tideover.scenarios.sweeps.reuse import Reuse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tideover.scenarios.sweeps.engine import Done
    from tideover.scenarios.sweeps.files import Files
    from tideover.scenarios.sweeps.simulating import Task

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
