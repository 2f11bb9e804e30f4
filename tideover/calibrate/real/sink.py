"""Where the results of a batch go, and when they are there.

The sink is what a reader of the results sees, so it outlives every process: files, each of which appears
whole or not at all. A batch that runs again overwrites what it wrote before, and of each window's result the
first stays, whoever delivers it.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tideover.calibrate.real.events import EventLog
from tideover.calibrate.real.schedule import MICROSECONDS, Schedule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        table = rows.toArrow()
        end = self.end_row(batch)
        self._keep(table, batch, end)
        seen = time.time()
        self.log.write("in_sink", seen, run=self.run, batch=batch, end_row=end, results=table.num_rows)
        if self.window_s is not None:
            self._take(table, self.window_s)
            self._finish(end, self.window_s, seen)

    def _keep(self, table: pa.Table, batch: int, end: int) -> None:
        table = table.replace_schema_metadata({"end_row": str(end)})
        aside = self._batches / f".{batch:06}"
        with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        aside.rename(self._batches / f"{batch:06}.arrow")

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
    """The results of all finished windows, by number."""
    paths = sorted((directory / "windows").glob("[0-9]*.json"))
    return {int(path.stem): json.loads(path.read_text()) for path in paths}
