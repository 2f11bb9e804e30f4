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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tideover.calibrate.real.events import EventLog
from tideover.calibrate.real.schedule import MICROSECONDS, Schedule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sink:
    """The sink of one run of a query.

    directory: shared by all queries of a session. name: of this run of the query; a run that goes on from a
    checkpoint has the name of the one before. window_s: length of the windows in s; None: no windows.
    first: the first window without a result. run: number of this run in the driver's life. end_row: says
    where a batch's rows end.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        schedule: Schedule,
        window_s: int | None,
        first: int,
        run: int,
        end_row: Callable[[int], int],
        log: EventLog,
    ) -> None:
        self._batches = directory / "batches" / name
        self._windows = directory / "windows"
        for path in (self._batches, self._windows):
            path.mkdir(parents=True, exist_ok=True)
        self._schedule = schedule
        self._window_s = window_s
        self._next = first
        self._run = run
        self._end_row = end_row
        self._log = log
        self._counts: dict[int, dict[str, int]] = defaultdict(dict)
        self._restore()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Take a batch's results: Spark calls it once the batch is planned, and collecting runs it."""
        table = rows.toArrow()
        end = self._end_row(batch)
        self._keep(table, batch, end)
        seen = time.time()
        self._log.write("in_sink", seen, run=self._run, batch=batch, end_row=end, results=table.num_rows)
        if self._window_s is not None:
            self._take(table)
            self._finish(end, seen)

    def _keep(self, table: pa.Table, batch: int, end: int) -> None:
        table = table.replace_schema_metadata({"end_row": str(end)})
        aside = self._batches / f".{batch:06}"
        with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        aside.rename(self._batches / f"{batch:06}.arrow")

    def _restore(self) -> None:
        """What an earlier life of this run has delivered."""
        if self._window_s is None:
            return
        for _, table in read_batches(self._batches):
            self._take(table)

    def _take(self, table: pa.Table) -> None:
        assert self._window_s is not None
        columns = (table.column(name).to_pylist() for name in ("start", "word", "count"))
        for start, word, count in zip(*columns, strict=True):
            self._counts[(start - self._schedule.t0) // self._window_s][word] = count

    def _finish(self, end: int, seen: float) -> None:
        """Windows of which all rows have been read are finished."""
        assert self._window_s is not None
        while self._schedule.rows_before((self._next + 1) * self._window_s * MICROSECONDS) <= end:
            if (self._next + 1) * self._window_s > self._schedule.end_s:
                return
            first = _create(self._windows / f"{self._next:06}.json", self._counts.pop(self._next, {}))
            self._log.write("window", seen, run=self._run, window=self._next, first=first)
            self._next += 1


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
