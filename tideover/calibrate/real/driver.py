"""The process of one query: ``python -m tideover.calibrate.real.driver SPEC.json``.

It starts Spark, warms it up in its first life, says that it is ready, waits for a line on its standard
input that holds the beginning of the input, runs the query until the standard input is closed, and then ends
with all that it started. So nobody is left behind when the process that supervises it dies.

`supervisor` starts it; the events that it writes are read there and by `tables`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.calibrate.real import pipelines
from tideover.calibrate.real.plan import SPEC, DriverSpec, executors_of, spark_settings
from tideover.calibrate.real.processes import EventLog
from tideover.scenarios.spark.settings import is_embedded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

POLL_S = 0.05
"""How often the driver looks which executors there are."""

WARM_UP_S = 3.0
"""Length of the input that warms up. The first batch takes so long that one or two more have the rest."""


class Driver:
    """One life of a query's driver."""

    def __init__(self, spec: DriverSpec) -> None:
        self.spec = spec
        self.log = EventLog(spec.events, query=spec.query, life=spec.life)
        self.sink_directory = spec.directory / "sink"
        self.run = 0
        self.log.write("begun", pid=os.getpid(), tag=spec.tag)

    def main(self) -> int:
        """Returns the exit code: 0 never (it is ended from outside), 3: the query failed."""
        spark = _session(self.spec)
        self.log.write("spark", version=spark.version)
        while len(executors := _executors(spark)) < executors_of(self.spec.plan.master)[0]:
            time.sleep(POLL_S)
        if self.spec.life == 0:
            self._warm_up(spark)
        self.log.write("ready", executors=executors)
        go = sys.stdin.readline()
        if not go:
            _end_all()
        threading.Thread(target=_end_with_stdin, daemon=True).start()
        self.schedule = self.spec.plan.schedule(json.loads(go)["t0"])
        time.sleep(max(0.0, self.schedule.t0 - time.time()))  # before its input begins, a batch has no rows
        spark.streams.addListener(_listener(self.log))
        query = self._start(spark)
        self._watch(spark, query, executors)
        return 3

    def _warm_up(self, spark: SparkSession) -> None:
        """Do the same work on an input of its own, for as long as it takes.

        The first batch of all takes seconds, on a busy machine half a minute; in the query that is measured,
        what piles up meanwhile would reach into the first episode. A later life is measured cold.
        """
        lowest = min(rate for _, rate in self.spec.plan.pieces)
        schedule = pipelines.Schedule(int(time.time()), ((0.0, lowest),), WARM_UP_S)
        checkpoint = self.spec.scratch / "warm-up"
        query = self._count(spark, schedule, 0, lambda rows, batch: rows.toArrow(), checkpoint)
        query.processAllAvailable()
        query.stop()

    def _watch(self, spark: SparkSession, query: StreamingQuery, executors: list[str]) -> None:
        """Note which executors come and go; ends when the query has failed."""
        while query.isActive:
            time.sleep(POLL_S)
            found = _executors(spark)
            for executor in sorted(set(found) - set(executors)):
                self.log.write("executor_added", executor=executor)
            lost = sorted(set(executors) - set(found))
            for executor in lost:
                self.log.write("executor_removed", executor=executor)
            executors = found
            if lost and self.spec.plan.strategy == "source_replay":
                query.stop()
                self.log.write("stopped", run=self.run)
                self.run += 1
                query = self._start(spark)
        self.log.write("failed", error=str(query.exception()))

    def _start(self, spark: SparkSession) -> StreamingQuery:
        spec, plan = self.spec, self.spec.plan
        replay = plan.strategy == "source_replay"
        window_s = plan.window_s if plan.pipeline == "word_count" else None
        first = pipelines.oldest_unfinished(self.sink_directory)
        start = self.schedule.rows_before(first * plan.window_s * pipelines.MICROSECONDS) if replay else 0
        # State that is not kept: every run has a checkpoint of its own, and nobody reads the one before.
        name = f"{spec.query}-{spec.life}-{self.run}" if replay else str(spec.query)
        checkpoint = spec.directory / "checkpoints" / name

        def end_row(batch: int) -> int:
            # The third line of a batch's entry in the offset log is the offset of the one source.
            return int(json.loads((checkpoint / "offsets" / str(batch)).read_text().splitlines()[2])["row"])

        there, schedule = self.sink_directory, self.schedule
        sink = pipelines.Sink(there, name, schedule, window_s, first, self.run, end_row, self.log)
        query = self._count(spark, self.schedule, start, sink, checkpoint)
        self.log.write(
            "query", run=self.run, run_id=str(query.runId), start_row=start, checkpoint=str(checkpoint)
        )
        return query

    def _count(
        self,
        spark: SparkSession,
        schedule: pipelines.Schedule,
        start: int,
        sink: Callable[[DataFrame, int], object],
        checkpoint: Path,
    ) -> StreamingQuery:
        """Begin to count the rows of an input, from this one on."""
        plan = self.spec.plan
        options = pipelines.options(schedule, plan.content(start))
        rows = spark.readStream.format(pipelines.NAME).options(**options).load()
        return (
            pipelines.counts(rows, plan.pipeline, plan.window_s, plan.work)
            .writeStream.outputMode("update")
            .foreachBatch(sink)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=f"{round(plan.trigger_s * 1000)} milliseconds")
            .start()
        )


def _session(spec: DriverSpec) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    spec.spark_events.mkdir(parents=True)
    conf = SparkConf(loadDefaults=False).setAll(list(spark_settings(spec).items()))
    with (spec.scratch / "spark.log").open("ab") as printed:
        gateway = launch_gateway(conf, {"stdout": printed, "stderr": printed})
        spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
    spark.dataSource.register(pipelines.ScheduleSource)
    return spark


def _executors(spark: SparkSession) -> list[str]:
    """The ids of the executors that the scheduler has now; a local master has none."""
    if is_embedded(spark.sparkContext.master):
        return []
    ids = spark.sparkContext._jsc.sc().getExecutorIds()
    return [name for name in str(ids.mkString(",")).split(",") if name]


def _listener(log: EventLog) -> Any:
    from pyspark.sql.streaming import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            log.write("query_started", run_id=str(event.runId))

        def onQueryProgress(self, event: Any) -> None:
            log.write("progress", progress=json.loads(event.progress.json))

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            log.write("query_ended", run_id=str(event.runId), error=event.exception)

    return Listener()


def _end_with_stdin() -> None:
    sys.stdin.read()
    _end_all()


def _end_all() -> None:
    """End this process's group: Java, its executors, and this process."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(Driver(SPEC.validate_json(Path(sys.argv[1]).read_bytes())).main())
