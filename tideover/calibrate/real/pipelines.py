"""The pipelines that are run for real: the schedule of their input, source and sink, and the raw record.

`driver` runs them, `supervisor` and `tables` read what they leave. What a sink or a log writes is read by
later lives and by the tables, so a format has one writer and one reader, both here.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from tideover.calibrate.real.processes import EventLog
from tideover.sim.draws import mix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# The input is a pure function of the wall clock: row i has a stamp and a content that follow from the
# schedule and the seed alone. So the input survives every restart, can be read again from any row, needs no
# process that generates it, and what has to be counted is known exactly.

Rows = npt.NDArray[np.int64]

MICROSECONDS = 1_000_000
"""Spark's timestamps have this resolution per second."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Schedule:
    """Rates that are constant for a while.

    t0: unix time in whole seconds at which the input begins. pieces: (from_s, rate_per_s) in ascending order
    of from_s, seconds since t0, the first one 0; rates are whole numbers. The last piece ends at end_s.
    """

    t0: int
    pieces: tuple[tuple[float, int], ...]
    end_s: float

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.pieces]
        if not starts or starts[0] != 0 or sorted(set(starts)) != starts or starts[-1] >= self.end_s:
            raise ValueError("pieces: must begin at 0 and ascend, and the last must begin before end_s")
        if any(rate < 0 or rate != int(rate) for _, rate in self.pieces):
            raise ValueError("pieces: a rate must be a whole number of rows per second, 0 or more")

    @cached_property
    def _parts(self) -> tuple[Rows, Rows, Rows]:
        """Of each piece the beginning (µs), the rate and the first row; behind these the number of all."""
        starts = np.array([round(start * MICROSECONDS) for start, _ in self.pieces], np.int64)
        rates = np.array([rate for _, rate in self.pieces], np.int64)
        lasts = np.diff(starts, append=round(self.end_s * MICROSECONDS))
        sizes = -(-lasts * rates // MICROSECONDS)
        return starts, rates, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def rows(self) -> int:
        return int(self._parts[2][-1])

    def stamps(self, rows: Rows) -> Rows:
        """When these rows came into being, in µs since t0."""
        starts, rates, first = self._parts
        piece = np.searchsorted(first[:-1], rows, side="right") - 1
        return starts[piece] + (rows - first[piece]) * MICROSECONDS // np.maximum(rates[piece], 1)

    def rows_before(self, moment_us: int) -> int:
        """How many rows have a stamp before this moment, in µs since t0."""
        if moment_us <= 0:
            return 0
        starts, rates, first = self._parts
        piece = int(np.searchsorted(starts, moment_us, side="right")) - 1
        # The stamp floor(j * 10^6 / rate) is below m exactly where j < m * rate / 10^6.
        inside = -(-(moment_us - int(starts[piece])) * int(rates[piece]) // MICROSECONDS)
        return min(int(first[piece]) + inside, int(first[piece + 1]))


def choices(seed: int, rows: Rows, among: int) -> Rows:
    """For each row a number in [0, among), the same whenever it is asked for."""
    bits = mix(rows.astype(np.uint64) * _GOLDEN + mix(np.array([seed], np.uint64)))
    return (bits % np.uint64(among)).astype(np.int64)


NAME = "tideover_schedule"

_CHUNK = 50_000
"""Rows in one Arrow batch: enough to be fast, few enough for a small heap."""


@dataclass(frozen=True)
class Content:
    """What the rows hold.

    seed: chooses the content. start: the first row to be read by a new query. partitions: into how many
    pieces each batch is cut. sentences: one of these per row; if there are none, a row holds a key in
    [0, keys), and the first ``keys`` rows hold each key once, so that the state is full after them.
    """

    seed: int
    start: int
    partitions: int
    sentences: tuple[str, ...]
    keys: int

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        if self.sentences:
            return choices(self.seed, rows, len(self.sentences))
        return np.where(rows < self.keys, rows, choices(self.seed, rows, self.keys))


def options(schedule: Schedule, content: Content) -> dict[str, str]:
    return {"schedule": json.dumps(asdict(schedule)), "content": json.dumps(asdict(content))}


class ScheduleSource(DataSource):
    """The data source, as PySpark wants it (pyspark.sql.datasource, the variant of 4.2)."""

    def __init__(self, options: Any) -> None:
        schedule, content = (json.loads(options[name]) for name in ("schedule", "content"))
        self.schedule = Schedule(**{**schedule, "pieces": tuple(map(tuple, schedule["pieces"]))})
        self.content = Content(**{**content, "sentences": tuple(content["sentences"])})

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "stamp timestamp, sentence string" if self.content.sentences else "stamp timestamp, key bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return ScheduleReader(self.schedule, self.content)


class ScheduleReader(DataSourceStreamReader):
    """Offsets are numbers of rows: ``{"row": n}`` means that the rows below n are read."""

    def __init__(self, schedule: Schedule, content: Content) -> None:
        self.schedule = schedule
        self.content = content

    def initialOffset(self) -> dict[str, int]:
        return {"row": self.content.start}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        since = time.time_ns() // 1000 - self.schedule.t0 * MICROSECONDS
        return {"row": max(start["row"], self.schedule.rows_before(since + 1))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Contiguous pieces: every n-th chunk of a batch would mix the order."""
        edges = np.linspace(start["row"], end["row"], self.content.partitions + 1).astype(int)
        return [InputPartition(rows) for rows in pairwise(edges.tolist())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        begin, end = partition.value
        for first in range(begin, end, _CHUNK):
            rows = np.arange(first, min(first + _CHUNK, end), dtype=np.int64)
            stamps = self.schedule.stamps(rows) + self.schedule.t0 * MICROSECONDS
            name, column = "key", pa.array(self.content.numbers(rows))
            if self.content.sentences:
                name, column = "sentence", pa.array(self.content.sentences).take(column)
            stamp = pa.array(stamps, pa.timestamp("us", tz="UTC"))
            yield pa.RecordBatch.from_arrays([stamp, column], names=["stamp", name])


# The sink is what a reader of the results sees, so it outlives every process: files, each of which appears
# whole or not at all. A batch that runs again overwrites what it wrote before, and of each window's result
# the first stays, whoever delivers it.


@dataclass(eq=False)
class Sink:
    """The sink of one run of a query.

    directory: shared by all queries of a session. name: of this run of the query; a run that goes on from a
    checkpoint has the name of the one before. window_s: length of the windows in s; None: no windows.
    unfinished: the first window without a result. run: number of this run in the driver's life. end_row: says
    where a batch's rows end.
    """

    directory: Path
    name: str
    schedule: Schedule
    window_s: int | None
    unfinished: int
    run: int
    end_row: Callable[[int], int]
    log: EventLog

    def __post_init__(self) -> None:
        self._batches = self.directory / "batches" / self.name
        self._windows = self.directory / "windows"
        for path in (self._batches, self._windows):
            path.mkdir(parents=True, exist_ok=True)
        self._counts: dict[int, dict[str, int]] = defaultdict(dict)
        if self.window_s is not None:
            for _, delivered in read_batches(self._batches):  # by an earlier life of this run
                self._take(delivered, self.window_s)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Take a batch's results: Spark calls it once the batch is planned, and collecting runs it."""
        table, end = rows.toArrow(), self.end_row(batch)
        table = table.replace_schema_metadata({"end_row": str(end)})
        aside = self._batches / f".{batch:06}"
        with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        aside.rename(self._batches / f"{batch:06}.arrow")
        seen = time.time()
        self.log.write("in_sink", seen, run=self.run, batch=batch, end_row=end, results=table.num_rows)
        if self.window_s is not None:
            self._take(table, self.window_s)
            self._finish(end, self.window_s, seen)

    def _take(self, table: pa.Table, window_s: int) -> None:
        columns = (table.column(name).to_pylist() for name in ("start", "word", "count"))
        for start, word, count in zip(*columns, strict=True):
            self._counts[(start - self.schedule.t0) // window_s][word] = count

    def _finish(self, end: int, window_s: int, seen: float) -> None:
        """Windows of which all rows have been read are finished."""
        window = self.unfinished
        while self.schedule.rows_before((window + 1) * window_s * MICROSECONDS) <= end:
            if (window + 1) * window_s > self.schedule.end_s:
                break
            first = _create(self._windows / f"{window:06}.json", self._counts.pop(window, {}))
            self.log.write("window", seen, run=self.run, window=window, first=first)
            window += 1
        self.unfinished = window


def _create(path: Path, counts: dict[str, int]) -> bool:
    """Write a window's result unless there is one; says which. There is never half of one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(counts))
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        aside.unlink()
    return True


def oldest_unfinished(directory: Path) -> int:
    """The number of the oldest window that has no result yet."""
    window = 0
    while (directory / "windows" / f"{window:06}.json").exists():
        window += 1
    return window


def read_batches(directory: Path) -> list[tuple[int, pa.Table]]:
    """What the sink keeps of a run: for each batch, in their order, the row where it ends and its results."""
    found = []
    for path in sorted(directory.glob("*.arrow")):
        with pa.OSFile(str(path), "rb") as file:
            table = pa.ipc.open_file(file).read_all()
        found.append((int(table.schema.metadata[b"end_row"]), table))
    return found


def read_windows(directory: Path) -> dict[int, dict[str, Any]]:
    paths = sorted((directory / "windows").glob("[0-9]*.json"))
    return {int(path.stem): json.loads(path.read_text()) for path in paths}


Pipeline = Literal["word_count", "running_count"]


def counts(rows: DataFrame, pipeline: Pipeline, window_s: int, work: int) -> DataFrame:
    """The streaming counts, to be written in update mode.

    window_s: length of the windows, in s. work: extra work per row, in units of 64 bytes hashed with SHA-512
    (no processor that Java knows does that in hardware, so it costs about the same everywhere).
    """
    from pyspark.sql import functions as sf

    column = "sentence" if pipeline == "word_count" else "key"
    if work:
        # Always true, which the optimiser cannot know; done where the rows are read, before the shuffle.
        text = sf.rpad(sf.col(column).cast("string"), 64 * work, "-")
        rows = rows.where(sf.length(sf.sha2(text, 512)) == 128)
    if pipeline == "running_count":
        return rows.groupBy("key").count()
    words = rows.withWatermark("stamp", "0 seconds").select(  # rows come in the order of their stamps
        "stamp", sf.explode(sf.split("sentence", " ")).alias("word")
    )
    window = sf.window("stamp", f"{window_s} seconds")
    counted = words.groupBy(window, "word").count()
    return counted.select(sf.unix_timestamp(sf.col("window.start")).alias("start"), "word", "count")
