"""Sweeps: every replication of every point of a grid, as Spark jobs or in this process.

A run is one row, a failed one too. Rows are put in order at the end, so neither the number of partitions nor
the machine shows in a result. With a directory to keep rows in, an interrupted sweep goes on where it was.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import math
import os
import re
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.models import headline
from tideover.models.advice import in_short
from tideover.models.config import Scenario
from tideover.scenarios.grid import Grid
from tideover.scenarios.runs import Outcome, attempt, decode, has_timeline, keys, record
from tideover.scenarios.swept import joined, text
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

    from tideover.models.results import Result

LOCAL = "local[*,4]"
"""Embedded Spark on all cores; it tries a task that lost its worker again, up to four times."""

MOST_SECONDS = 500_000
"""A sweep of more simulated seconds than this keeps no timeline: it would be most of the result."""

_JOB_S = 6.0
"""How long one Spark job should take: what it has done is kept when it ends. Two are under way at a time."""
_PARTITIONS = 4
"""Most partitions per core in one job. Each costs about 15 ms."""
_SAVE_EVERY_S = 2.0
_SCHEMA = "key string, record string, error string, seconds double"
_CRASHED = re.compile(r"worker (process )?(exited|crashed|died)|ExecutorLostFailure|EOFException", re.I)

Report = Callable[[str, float, int], None]
"""Called with what is being done, how many runs are done (a fraction counts), and of how many."""


class SweepFailed(RuntimeError):
    """Spark could not do the job; the message has Spark's reason."""


@dataclass(frozen=True)
class Unit:
    """One run that has to be done."""

    key: str
    scenario: Scenario
    replication: int


@dataclass
class Sweep:
    """What a sweep found: ``results[i]`` of ``grid.points[i]``, of the runs that did not fail.

    recoveries, runs, timeline, tasks    tidy tables: ``point``, the swept keys, then the columns of ``run``;
                                         ``timeline`` is empty over 500,000 simulated seconds.
    failed, warnings                     (point, replication, error) of every run that failed; remarks
    """

    grid: Grid
    results: list[Result]
    failed: list[tuple[int, int, str]]
    _tables: dict[str, pd.DataFrame] = field(default_factory=dict)

    def __repr__(self) -> str:
        times = [row[headline.RECOVERY] for row in self._headlines() if row[headline.RECOVERY] is not None]
        name, unit = headline.RECOVERY.split(", ")
        span = f"; {name} {min(times):.4g} to {max(times):.4g} {unit}" if times else ""
        points = headline.counted(len(self.results), "point")
        runs = f"{headline.counted(self.grid.runs, 'run')}, {len(self.failed)} failed"
        return f"<Sweep {self.grid.name!r}: {points} of {', '.join(self.parameters)}; {runs}{span}>"

    def _repr_html_(self) -> str:
        return headline.html(self._headlines())

    def _headlines(self) -> list[dict[str, Any]]:
        """A row a point: the swept values, and the figures of its result."""
        swept = [{key: text(value) for key, value in point.values.items()} for point in self.grid.points]
        return [one | result.headline() for one, result in zip(swept, self.results, strict=True)]

    @property
    def parameters(self) -> Mapping[str, str]:
        """The swept keys, and the unit of each in the tables (``""``: values as they were written)."""
        return self.grid.parameters

    @property
    def warnings(self) -> list[str]:
        """One remark of a kind."""
        return in_short(text for result in self.results for text in result.warnings)

    @property
    def recoveries(self) -> pd.DataFrame:
        """One row a failure."""
        return self._table("recoveries")

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run; of a failed one, ``error`` says why."""
        return self._table("runs")

    @property
    def timeline(self) -> pd.DataFrame:
        """One row a simulated second."""
        return self._table("timeline")

    @property
    def tasks(self) -> pd.DataFrame:
        """One row a task and run."""
        return self._table("tasks")

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name, those that have rows (``runs`` and ``recoveries`` always)."""
        found = {name: self._table(name) for name in ("recoveries", "runs", "timeline", "tasks")}
        return {name: frame for name, frame in found.items() if name in ("recoveries", "runs") or len(frame)}

    def to_list(self) -> list[dict[str, Any]]:
        """For each point what ``run --json`` prints, and ``point``, ``swept`` (values by key), ``errors``."""
        found = []
        for point, result in zip(self.grid.points, self.results, strict=True):
            errors = [error for number, _, error in self.failed if number == point.number]
            extra = {"point": point.number, "swept": dict(point.values), "errors": errors}
            found.append(record(result) | extra)
        return found

    def _table(self, name: str) -> pd.DataFrame:
        if name not in self._tables:
            self._tables[name] = joined(self, name)
        return self._tables[name]


def sweep(
    grid: Grid,
    *,
    master: str | None = LOCAL,
    keep: Path | None = None,
    partitions: int | None = None,
    report: Report | None = None,
) -> Sweep:
    """Do all runs of a grid.

    ``master``: Spark's; None does without Spark, in this process. ``keep``: a directory for what is done
    already; runs that are there, of the same scenario, seed, replication and code, are not done again, but
    failed ones are. ``partitions``: of one Spark job for everything; None lets the length of the runs decide.

    Raises JavaNotFound, SparkNotStarted and SweepFailed if Spark does not work, OSError for ``keep``.
    """
    say = report or (lambda *_: None)
    simulated = sum(p.scenario.run.duration * p.scenario.run.replications for p in grid.points)
    timeline = simulated <= MOST_SECONDS * S
    units = [
        [Unit(key, p.scenario, number) for number, key in enumerate(keys(p.scenario))] for p in grid.points
    ]
    kept = Kept(keep)
    wanted = {unit.key: unit for row in units for unit in row}
    done = {k: o for k, o in kept.load(wanted).items() if not timeline or has_timeline(o.record or "")}
    todo = [unit for k, unit in wanted.items() if k not in done]
    total = len(wanted)
    if todo:
        before = total - len(todo)

        def tell(what: str, more: float) -> None:
            say(what, before + more, total)

        tell("simulating", 0)
        work = _in_process if master is None else _on_spark(master, partitions)
        for outcomes in work(todo, timeline, tell):
            kept.add(outcomes)
            done |= {outcome.key: outcome for outcome in outcomes}
            before += len(outcomes)
            tell("simulating", 0)
    kept.settle(done.values())
    return _collected(grid, units, done)


def _collected(grid: Grid, units: Sequence[Sequence[Unit]], done: dict[str, Outcome]) -> Sweep:
    from tideover.models.results import Result

    results, failed = [], []
    for point, row in zip(grid.points, units, strict=True):
        outcomes = [(unit.replication, done[unit.key]) for unit in row]
        failed += [(point.number, number, o.error) for number, o in outcomes if o.error is not None]
        done_well = [decode(o.record) for _, o in outcomes if o.record is not None]
        results.append(Result(point.scenario, done_well))
    return Sweep(grid, results, failed)


# What is kept on disk.


class Kept:
    """Outcomes in the Parquet files of a directory; None keeps nothing.

    While a sweep runs, each batch becomes a file of its own, written aside and renamed: whoever kills the
    sweep loses only what was under way. In the end, one file in the order of the keys holds them all.
    """

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self.others: list[Outcome] = []
        """Runs of other sweeps with the same directory."""
        self._files: list[Path] = []

    def load(self, wanted: Iterable[str]) -> dict[str, Outcome]:
        """What is there of the wanted runs, without those that failed."""
        if self.directory is None:
            return {}
        self.directory.mkdir(parents=True, exist_ok=True)
        self._files = sorted(self.directory.glob("*.parquet"))
        there = {outcome.key: outcome for file in self._files for outcome in _read(file)}
        keys = set(wanted)
        self.others = [outcome for outcome in there.values() if outcome.key not in keys]
        return {k: outcome for k, outcome in there.items() if k in keys and outcome.error is None}

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Keep some more."""
        if self.directory is None or not outcomes:
            return
        name = hashlib.sha256(" ".join(o.key for o in outcomes).encode()).hexdigest()[:16]
        self._files.append(_write(self.directory / f"part-{name}.parquet", outcomes))

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """Everything is done: one file instead of many."""
        if self.directory is None:
            return
        ordered = sorted([*self.others, *outcomes], key=lambda o: o.key)
        whole = _write(self.directory / "runs.parquet", ordered)
        for file in {*self._files, *self.directory.glob(".*.aside")} - {whole}:
            file.unlink(missing_ok=True)


def _read(path: Path) -> list[Outcome]:
    """What a file holds; nothing if it is not one of ours, or broken."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path, columns=["key", "record", "error"]).to_pylist()
    except (pa.ArrowException, KeyError, OSError):
        return []
    return [Outcome(**row) for row in rows]


def _write(path: Path, outcomes: Sequence[Outcome]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("key", pa.string()), ("record", pa.string()), ("error", pa.string())])
    rows = [{"key": o.key, "record": o.record, "error": o.error} for o in outcomes]
    aside = path.with_name(f".{path.name}.{os.getpid()}.aside")
    pq.write_table(pa.Table.from_pylist(rows, schema), aside, compression="zstd")
    os.replace(aside, path)
    return path


# Doing the work.

Tell = Callable[[str, float], None]
Work = Callable[[Sequence[Unit], bool, Tell], Iterator[list[Outcome]]]


def _in_process(todo: Sequence[Unit], timeline: bool, tell: Tell) -> Iterator[list[Outcome]]:
    batch: list[Outcome] = []
    since = time.monotonic()
    for unit in todo:
        batch.append(attempt(unit.scenario, unit.replication, unit.key, timeline))
        tell("simulating", len(batch))
        if time.monotonic() - since > _SAVE_EVERY_S:
            yield batch
            batch, since = [], time.monotonic()
    yield batch


def _on_spark(master: str, partitions: int | None) -> Work:
    """The same with Spark: jobs of a few seconds, two at a time so that no core waits for the last one."""

    def work(todo: Sequence[Unit], timeline: bool, tell: Tell) -> Iterator[list[Outcome]]:
        from tideover.scenarios.spark import spark_session

        tell("starting Spark", 0)
        try:
            with spark_session(master) as spark, _interrupts() as interrupted:
                yield from _Jobs(spark, todo, timeline, partitions).run(tell, interrupted)
        except Exception as error:
            if type(error).__module__.startswith("py4j."):
                raise SweepFailed(f"Spark failed: {_reason(error)}") from error
            raise

    return work


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """An event that is set by Ctrl-C. An exception in the middle of a call would break Spark's connection."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


class _Jobs:
    """The Spark jobs of one sweep."""

    def __init__(
        self, spark: SparkSession, todo: Sequence[Unit], timeline: bool, partitions: int | None
    ) -> None:
        self.spark = spark
        self.context = spark.sparkContext
        self.cores = self.context.defaultParallelism
        self.timeline = timeline
        self.partitions = partitions
        self.waiting = list(todo)
        self.again: list[list[Unit]] = []
        """Halves of jobs that lost their worker."""
        self.seconds: list[float] = []
        """How long runs took."""
        self.started = 0

    def run(self, tell: Tell, interrupted: threading.Event) -> Iterator[list[Outcome]]:
        """Outcomes, a job's at a time; raises KeyboardInterrupt soon after ``interrupted`` is set."""
        with ThreadPoolExecutor(2, "tideover-job") as pool:
            active: dict[Future[list[Outcome]], tuple[str, list[Unit]]] = {}
            try:
                while self.waiting or self.again or active:
                    while len(active) < 2 and (chunk := self._next()):
                        name = f"tideover-{self.started}"
                        self.started += 1
                        active[pool.submit(self._job, name, *chunk)] = (name, chunk[0])
                    finished, _ = wait(active, timeout=0.25, return_when=FIRST_COMPLETED)
                    if interrupted.is_set():
                        raise KeyboardInterrupt
                    for future in finished:
                        yield self._outcomes(future, active.pop(future)[1])
                    tell("simulating", sum(self._fraction(name) * len(c) for name, c in active.values()))
            except BaseException:
                self.context.cancelAllJobs()
                raise

    def _next(self) -> tuple[list[Unit], int] | None:
        """Runs for the next job, and how many partitions it has; None if nothing is waiting."""
        if self.again:
            chunk = self.again.pop()
            return chunk, min(len(chunk), self.cores)
        if not self.waiting:
            return None
        # Nobody knows yet how long a run takes: the first jobs are small.
        each = max(1, math.ceil(_JOB_S / max(1e-3, statistics.median(self.seconds)))) if self.seconds else 2
        size = len(self.waiting) if self.partitions else self.cores * each
        chunk, self.waiting = self.waiting[:size], self.waiting[size:]
        most = self.partitions or self.cores * min(_PARTITIONS, each)
        return chunk, min(most, len(chunk))

    def _job(self, name: str, units: list[Unit], partitions: int) -> list[Outcome]:
        """One Spark job; its rows come back to the driver, so no file system has to be shared."""
        self.context.setJobGroup(name, f"{len(units)} runs")
        numbers = self.spark.range(0, len(units), 1, partitions)
        rows = numbers.mapInPandas(_worker(units, self.timeline), _SCHEMA).collect()
        self.seconds += [row["seconds"] for row in rows]
        return [Outcome(row["key"], row["record"], row["error"]) for row in rows]

    def _outcomes(self, future: Future[list[Outcome]], units: list[Unit]) -> list[Outcome]:
        """A job's outcomes. If it lost its worker, halves are tried again, down to the run that did it."""
        try:
            return future.result()
        except Exception as error:
            if not _CRASHED.search(str(error)):
                raise SweepFailed(f"Spark failed: {_reason(error)}") from error
            if len(units) == 1:
                said = f"replication {units[0].replication}: the process that simulated it ended"
                return [Outcome(units[0].key, None, said)]
            middle = len(units) // 2
            self.again += [units[:middle], units[middle:]]
            return []

    def _fraction(self, name: str) -> float:
        """How much of a job is done."""
        tracker = self.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else 0.0


def _worker(units: list[Unit], timeline: bool) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """What a Spark task does: the runs with these numbers, a row each."""

    def work(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd

        _freeze_imports()
        for batch in batches:
            rows = []
            for number in batch["id"]:
                unit, begun = units[number], time.perf_counter()
                done = attempt(unit.scenario, unit.replication, unit.key, timeline)
                rows.append((done.key, done.record, done.error, time.perf_counter() - begun))
            yield pd.DataFrame(rows, columns=["key", "record", "error", "seconds"])

    return work


@functools.cache
def _freeze_imports() -> None:
    """Take what this worker has imported out of the garbage collection that Spark orders after each task.

    Without this, going through all modules costs 30 ms of the processor a task.
    """
    gc.collect()
    gc.freeze()


def _reason(error: Exception) -> str:
    """The telling line of what may be a long Java trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"(: )?[\w.]*(Error|Exception)\b", line)]
    reason = (told or lines or [type(error).__name__])[-1 if told else 0].lstrip(": ")[:400]
    if "ModuleNotFoundError" in reason:
        reason += (
            " (Spark's workers need the packages that Tideover needs; PYSPARK_PYTHON names their Python)"
        )
    return reason
