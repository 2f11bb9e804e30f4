"""A sweep's runs as Spark jobs of a few seconds."""

from __future__ import annotations

import functools
import gc
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

from tideover.scenarios.runs import code
from tideover.scenarios.spark.session import Cluster, cluster
from tideover.scenarios.spark.settings import schema_text
from tideover.scenarios.sweeps import in_process, rows
from tideover.scenarios.sweeps.engine import Done, Tell, noted
from tideover.scenarios.sweeps.files import (
    Files,
    HadoopFiles,
    LocalFiles,
    Manifest,
    aside,
    local_path,
    path_of,
)
from tideover.scenarios.sweeps.in_process import surveyed
from tideover.scenarios.sweeps.reduction import Reduction, cut
from tideover.scenarios.sweeps.reduction import path_of as part_path
from tideover.scenarios.sweeps.survey import (
    Chunk,
    Refused,
    Reuse,
    Surveyed,
    Unit,
    local_index,
    packed,
    remote_index,
    shares,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tideover.scenarios.sweeps.engine import Task
    from tideover.scenarios.sweeps.recipe import Points


# What Spark's tasks do, each with the batches that come to it: functions that are sent to the executors.

Batches = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]

CHUNK, PART = "chunk", "part"
"""Columns that say to which file a row goes."""


def surveyor(recipe: Points, shared: Sequence[Sequence[int]]) -> Batches:
    """What a task does to look at points."""
    model = code()  # here: there, parts that were sent may have no source

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            found = [packed(recipe, shared[number], model) for number in batch["id"].to_pylist()]
            yield pa.RecordBatch.from_pydict({"found": pa.array(found, pa.binary())})

    return work


def simulator(task: Task, parts: Sequence[Sequence[Unit]], place: Mapping[str, str]) -> Batches:
    """What a task does: the runs of the parts with these numbers."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _freeze_imports()
        for batch in batches:
            for number in batch["id"].to_pylist():
                for found in task.simulated(parts[number]):
                    yield with_chunk(found, place)

    return work


def renamer(task: Task, units: Sequence[Unit], place: Mapping[str, str]) -> Batches:
    """What a task does with rows that are there already."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            found = task.again(pa.Table.from_batches([batch]), units)
            for part in found.to_batches():
                yield with_chunk(part, place)

    return work


def reducer(how: Reduction) -> Batches:
    """What a task does with the rows of some parts: they all come to it."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = list(batches)
        if not rows:
            return
        table = pa.Table.from_batches(rows).rename_columns([*how.needs, PART])
        for number in sorted(table[PART].unique().to_pylist()):
            mine = table.filter(pc.equal(table[PART], number)).drop_columns([PART])
            found = how(mine)
            found = found.append_column(PART, pa.array([number] * found.num_rows, pa.int64()))
            yield from found.to_batches()

    return work


def with_chunk(rows: pa.RecordBatch, place: Mapping[str, str]) -> pa.RecordBatch:
    import pyarrow as pa

    names = [place[run] for run in rows["run"].to_pylist()]
    return rows.append_column(CHUNK, pa.array(names, pa.string()))


@functools.cache
def _freeze_imports() -> None:
    """Take what this worker has imported out of the garbage collection that Spark orders after each task.

    Without this, going through all modules costs 30 ms of the processor a task.
    """
    gc.collect()
    gc.freeze()


# A sweep's runs as Spark jobs of a few seconds, two at a time so that no core waits for the last one.
#
# Only what Spark Connect has, too: ranges, ``mapInArrow``, readers and writers. Rows go from the executor
# that made them to the file; the driver sees names and counts.

JOB_S = 8.0
"""How long one Spark job should take. Two are under way at a time."""
FEW_POINTS = 1_000
"""So many are looked at before Spark is started: what is wrong with one of them is said at once."""
_AT_ONCE = 1_000
"""So many points are looked at for each core in one of Spark's jobs: what is found comes to the driver."""
_PARTITIONS = 4
"""Tasks per core in one job. Each costs about 15 ms."""


class SweepFailed(RuntimeError):
    """Spark could not do the job; the message has Spark's reason."""


@contextmanager
def on_spark(
    session: AbstractContextManager[SparkSession], place: str, say: Callable[[str], None]
) -> Iterator[OnSpark]:
    """The engine that leaves the work to Spark, which starts when there is any; ``say`` hears of that.

    Raises SweepFailed where Spark fails, and what starting it raises.
    """
    interrupted = threading.Event()
    with ExitStack() as stack:

        def start() -> Cluster:
            say("starting Spark")
            started = stack.enter_context(session)
            stack.enter_context(noted(interrupted))  # PySpark has just put its own handler in
            return stack.enter_context(cluster(started))

        try:
            yield OnSpark(start, interrupted, place)
        except Exception as error:
            if type(error).__module__.startswith(("py4j.", "pyspark.", "grpc.")):
                raise SweepFailed(f"Spark failed: {in_process.reason(error)}") from error
            raise


class OnSpark:
    """The engine that leaves the work to Spark.

    ``start`` starts it; ``interrupted`` is set when the user wants all to stop; ``place``: where the dataset
    lies, a directory of this machine or a URL.
    """

    def __init__(self, start: Callable[[], Cluster], interrupted: threading.Event, place: str) -> None:
        self._start = start
        self._url = place
        self.interrupted = interrupted
        self._number = count()

    @cached_property
    def cluster(self) -> Cluster:
        """What runs Spark's jobs."""
        return self._start()

    @property
    def spark(self) -> SparkSession:
        """The session."""
        session: SparkSession = self.cluster.session
        return session

    @cached_property
    def files(self) -> Files:
        """Where the dataset lies."""
        directory = local_path(self._url)
        return HadoopFiles(self._url, self.spark) if directory is None else LocalFiles(directory)

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""
        return self.cluster.cores

    def survey(self, recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterable[Surveyed | Refused]:
        """Look at some points, on the executors if they are many."""
        if len(numbers) <= FEW_POINTS:
            yield from surveyed(recipe, numbers, tell)
            return
        count = _PARTITIONS * self.cores
        for start in range(0, len(numbers), _AT_ONCE * self.cores):
            block = numbers[start : start + _AT_ONCE * self.cores]
            shared = [block[i::count] for i in range(min(len(block), count))]
            for row in self._mapped(len(shared), surveyor(recipe, shared), "found binary").collect():
                yield from pickle.loads(row["found"])
            tell("checking points", start + len(block))

    def make(self, task: Task, chunks: Iterable[Chunk], reuse: Reuse, tell: Tell) -> Iterator[Done]:
        """Do the runs of chunks, in jobs; raises KeyboardInterrupt soon after ``interrupted`` is set."""
        chunks = iter(chunks)
        if (first := next(chunks, None)) is None:
            return  # and Spark is not started for that
        waiting = self._jobs(chain([first], chunks))
        with ThreadPoolExecutor(2, "tideover-job") as pool:
            active: dict[Future[list[Done]], tuple[str, int]] = {}
            try:
                while True:
                    for job in islice(waiting, 2 - len(active)):
                        tag = f"tideover-{next(self._number)}"
                        future = pool.submit(self._tagged, tag, task, reuse, job)
                        active[future] = tag, sum(len(chunk.units) for chunk in job)
                    if not active:
                        return
                    finished, _ = wait(active, timeout=0.25, return_when=FIRST_COMPLETED)
                    if self.interrupted.is_set():
                        raise KeyboardInterrupt
                    for future in finished:
                        del active[future]
                        yield from future.result()
                    done = (self.cluster.fraction(tag) * runs for tag, runs in active.values())
                    tell("simulating", sum(done))
            except BaseException:
                for tag, _ in active.values():
                    with suppress(Exception):  # it may be Spark that is gone
                        self.cluster.interrupt(tag)
                raise

    def index(self, paths: Sequence[str]) -> pa.Table:
        """Which runs are in which of some files."""
        if isinstance(self.files, LocalFiles):
            return local_index(self.files, paths)
        return remote_index(self.spark, self.files.url, paths)

    def reduced(self, known: Manifest, how: Reduction) -> pa.Table:
        """What is made of the rows of each point."""
        return self._reduction(known, how).drop(PART).toArrow()

    def reduce(self, known: Manifest, how: Reduction) -> None:
        """Write what is made of the rows of each point."""
        count = cut(how, known.points, known.runs).count
        names = {number: part_path(how.folder, number) for number in range(count)}
        self._place(self._reduction(known, how), PART, names)

    def _reduction(self, known: Manifest, how: Reduction) -> DataFrame:
        """The rows of all parts, with the part's number in a column of its own."""
        import pyarrow as pa
        from pyspark.sql import functions as f

        parts = cut(how, known.points, known.runs)
        rows = self.spark.read.parquet(*(f"{self.files.url}/{path}" for path in known.files))
        pairs = {"point": [*parts.place], PART: [*parts.place.values()]}
        place = self.spark.createDataFrame(pa.table(pairs))
        rows = rows.join(f.broadcast(place), "point")
        # mapInArrow takes a dot in the name of what it is given for a field of a struct
        plain = (f.col(f"`{name}`").alias(f"column{i}") for i, name in enumerate(how.needs))
        shared = rows.select(*plain, PART)
        shared = shared.repartition(min(parts.count, _PARTITIONS * self.cores), PART)
        kind = schema_text(how.schema.append(pa.field(PART, pa.int64())))
        return shared.mapInArrow(reducer(how), kind)

    def _jobs(self, chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
        """Chunks that are done in one job: enough for all cores."""
        job: list[Chunk] = []
        for chunk in chunks:
            job.append(chunk)
            if sum(each.cost_s for each in job) >= JOB_S * self.cores:
                yield job
                job = []
        if job:
            yield job

    def _tagged(self, tag: str, task: Task, reuse: Reuse, job: Sequence[Chunk]) -> list[Done]:
        with self.cluster.tagged(tag):
            return self._job(task, reuse, job)

    def _job(self, task: Task, reuse: Reuse, job: Sequence[Chunk]) -> list[Done]:
        """One job. If it loses its workers, each chunk is tried alone, and then its runs in halves."""
        try:
            return [self.placed(self.rows(task, reuse, job), job)]
        except Exception as error:
            if not in_process.lost_worker(error):
                raise
        if len(job) > 1:
            return [done for chunk in job for done in self._job(task, reuse, [chunk])]
        return [in_process.halved(self, task, reuse, job[0])]

    def rows(self, task: Task, reuse: Reuse, job: Sequence[Chunk]) -> DataFrame:
        """The rows of some chunks, with the chunk's name in a column of its own."""
        known, todo = reuse.split([unit for chunk in job for unit in chunk.units])
        place = {unit.run: chunk.name for chunk in job for unit in chunk.units}
        kind = _kind(task)
        parts = shares(todo, _PARTITIONS * self.cores)
        found = self._mapped(len(parts), simulator(task, parts, place), kind)
        if known:
            names = [name for each in known.values() for name in each]
            there = self.spark.read.parquet(*(f"{self.files.url}/{path}" for path in known))
            there = there.where(there["run"].isin(names)).drop(*rows.names(task.swept))
            units = [unit for chunk in job for unit in chunk.units]
            found = found.unionByName(there.mapInArrow(renamer(task, units, place), kind))
        return found

    def failed(self, task: Task, unit: Unit, chunk: str, why: str) -> DataFrame:
        """The row of a run that cannot be done."""

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                yield with_chunk(task.failed(unit, why), {unit.run: chunk})

        return self._mapped(1, work, _kind(task))

    def placed(self, rows: DataFrame, job: Sequence[Chunk]) -> Done:
        """Write the rows of chunks, a file each, and give the files their names."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        seen = Observation()
        ordered = rows.repartition(min(len(job), self.cores), CHUNK)
        ordered = ordered.sortWithinPartitions(CHUNK, "point", "replication")
        ordered = ordered.observe(seen, f.count(f.lit(1)).alias("runs"), f.count("error").alias("failed"))
        self._place(ordered, CHUNK, {chunk.name: path_of(chunk.name) for chunk in job})
        return Done(tuple(chunk.name for chunk in job), seen.get["runs"], seen.get["failed"])

    def _place(self, rows: DataFrame, by: str, names: Mapping[Any, str]) -> None:
        """Write rows, a file for each value of a column that has any, and then give each file its name."""
        part = aside()
        try:
            rows.write.partitionBy(by).option("compression", "zstd").parquet(f"{self.files.url}/{part}")
            for value, path in names.items():
                folder = f"{part}/{by}={value}"
                if self.files.names(folder):
                    self.files.place(folder, path)
                else:  # there are no rows; what an earlier sweep had to say goes
                    self.files.remove(path)
        finally:
            self.files.remove(part)

    def _mapped(self, count: int, work: Batches, kind: str) -> DataFrame:
        """What is made of the numbers from 0 to ``count`` - 1, each in a task of its own."""
        return self.spark.range(0, count, 1, max(count, 1)).mapInArrow(work, kind)


def _kind(task: Task) -> str:
    """Spark's form of a row."""
    import pyarrow as pa

    return schema_text(task.schema.append(pa.field(CHUNK, pa.string())))
