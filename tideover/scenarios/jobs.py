"""A sweep's runs as Spark jobs of a few seconds, two at a time so that no core waits for the last one."""

from __future__ import annotations

import functools
import gc
import math
import re
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from tideover.scenarios.runs import Outcome, attempt
from tideover.scenarios.spark.cluster import Cluster, cluster
from tideover.scenarios.work import Tell, Unit, Work, cut, shares

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

_JOB_S = 6.0
"""How long one Spark job should take: what it has done is kept when it ends. Two are under way at a time."""
_PARTITIONS = 4
"""Most partitions per core in one job. Each costs about 15 ms."""
_SCHEMA = "key string, record string, error string, seconds double"
_CRASHED = re.compile(r"worker (process )?(exited|crashed|died)|ExecutorLostFailure|EOFException", re.I)


class SweepFailed(RuntimeError):
    """Spark could not do the job; the message has Spark's reason."""


def on_spark(session: AbstractContextManager[SparkSession], partitions: int | None) -> Work:
    """How to do runs with Spark, which is started when they begin.

    ``partitions``: of one job for all, None for jobs of a few seconds.
    """

    def work(todo: Sequence[Unit], timeline: bool, tell: Tell) -> Iterator[list[Outcome]]:
        tell("starting Spark", 0)
        try:
            with session as spark, cluster(spark) as found, _interrupts() as interrupted:
                yield from _Jobs(found, todo, timeline, partitions).run(tell, interrupted)
        except Exception as error:
            if type(error).__module__.startswith(("py4j.", "pyspark.")):
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
        self, cluster: Cluster, todo: Sequence[Unit], timeline: bool, partitions: int | None
    ) -> None:
        self.cluster = cluster
        self.cores = cluster.cores
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
                    tell("simulating", sum(self.cluster.fraction(n) * len(c) for n, c in active.values()))
            except BaseException:
                for name, _ in active.values():
                    self.cluster.interrupt(name)
                raise

    def _next(self) -> tuple[list[Unit], int] | None:
        """Runs for the next job, and how many partitions it has; None if nothing is waiting."""
        if self.again:
            return self.again.pop(), self.cores
        if not self.waiting:
            return None
        # Nobody knows yet how long a run takes: the first jobs are small.
        each = max(1, math.ceil(_JOB_S / max(1e-3, statistics.median(self.seconds)))) if self.seconds else 2
        size = len(self.waiting) if self.partitions else self.cores * each
        end = cut(self.waiting, size, size)
        chunk, self.waiting = self.waiting[:end], self.waiting[end:]
        return chunk, self.partitions or self.cores * min(_PARTITIONS, each)

    def _job(self, name: str, units: list[Unit], partitions: int) -> list[Outcome]:
        """One Spark job; its rows come back to the driver, so no file system has to be shared."""
        parts = shares(units, partitions)
        numbers = self.cluster.session.range(0, len(parts), 1, len(parts))  # one number in each partition
        with self.cluster.tagged(name):
            rows = numbers.mapInPandas(_worker(parts, self.timeline), _SCHEMA).collect()
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


def _worker(
    parts: list[list[Unit]], timeline: bool
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """What a Spark task does: the runs of the parts with these numbers, a row each."""

    def work(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd

        _freeze_imports()
        for batch in batches:
            rows = []
            for unit in chain.from_iterable(parts[number] for number in batch["id"]):
                begun = time.perf_counter()
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
