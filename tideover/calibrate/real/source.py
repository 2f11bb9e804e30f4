"""A streaming source that reads the schedule: Spark asks it how many rows there are by now, and for rows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from tideover.calibrate.real.schedule import MICROSECONDS, Schedule, choices

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
        """For each row the number of its sentence, or its key."""
        if self.sentences:
            return choices(self.seed, rows, len(self.sentences))
        return np.where(rows < self.keys, rows, choices(self.seed, rows, self.keys))


def options(schedule: Schedule, content: Content) -> dict[str, str]:
    """The options of ``spark.readStream.format(NAME)``."""
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


class Slice(InputPartition):
    """Every n-th chunk of a batch would mix the order; a contiguous piece keeps it."""

    def __init__(self, first: int, end: int) -> None:
        self.first = first
        self.end = end


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
        edges = np.linspace(start["row"], end["row"], self.content.partitions + 1).astype(int)
        return [Slice(int(a), int(b)) for a, b in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        for first in range(partition.first, partition.end, _CHUNK):
            yield self._batch(np.arange(first, min(first + _CHUNK, partition.end), dtype=np.int64))

    def _batch(self, rows: np.ndarray) -> pa.RecordBatch:
        stamps = self.schedule.stamps(rows) + self.schedule.t0 * MICROSECONDS
        numbers = self.content.numbers(rows)
        column = (
            pa.array(self.content.sentences).take(numbers) if self.content.sentences else pa.array(numbers)
        )
        name = "sentence" if self.content.sentences else "key"
        stamp = pa.array(stamps, pa.timestamp("us", tz="UTC"))
        return pa.RecordBatch.from_arrays([stamp, column], names=["stamp", name])
