"""The engine that leaves a sweep's work to Spark, in jobs of a few seconds, two at a time so that no core
waits for the last one. `sweep.engine` makes it; how work is cut into jobs and tasks is changed here.

Only what Spark Connect has, too: ranges, ``mapInArrow``, readers and writers. Rows go from the executor that
made them to the file; the driver sees names and counts.
"""

from __future__ import annotations

import gc
import pickle
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache, cached_property, partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tideover.scenarios.runs import code
from tideover.scenarios.spark.session import Cluster, cluster
from tideover.scenarios.spark.settings import schema_text
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.engine import Done, Engine, Task, Tell, noted
from tideover.scenarios.sweeps.files import Files, HadoopFiles, Manifest, aside, local_path, path_of
from tideover.scenarios.sweeps.reduction import Reduction
from tideover.scenarios.sweeps.survey import Chunk, Found, Unit, shares, split, survey
from tideover.scenarios.sweeps.sweep_file import Points

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOB_S = 8.0
"""How long one Spark job should take. Two are under way at a time."""
FEW_POINTS = 1_000
"""So many are looked at before Spark is started: what is wrong with one of them is said at once."""
_AT_ONCE = 1_000
"""So many points are looked at for each core in one of Spark's jobs: what is found comes to the driver."""
_PARTITIONS = 4
"""Tasks per core in one job. Each costs about 15 ms."""

CHUNK, PART = "chunk", "part"
"""Columns that say to which file a row goes."""

ENDED = "the process that simulated it ended"
"""Why a run failed that ends every process that simulates it."""
_LOST_WORKER = re.compile(r"worker (process )?(exited|crashed|died)|ExecutorLostFailure|EOFException", re.I)
"""In the error of a job that failed because a worker's process ended, as often as Spark tried."""
_FILE = "([^/]+/[^/]+)$"
"""The path in the dataset, of a file's URL."""

Batches = Iterator["pa.RecordBatch"]


class SweepFailed(RuntimeError):
    """Spark could not do the job; the message has Spark's reason."""


@contextmanager
def on_spark(
    session: AbstractContextManager[SparkSession], place: str, say: Callable[[str], None]
) -> Iterator[OnSpark]:
    """The engine with Spark; ``say`` hears that it starts. Raises SweepFailed, and as starting it does."""
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
                raise SweepFailed(f"Spark failed: {reason(error)}") from error
            raise


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


class OnSpark(Engine):
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
        return self._start()

    @cached_property
    def files(self) -> Files:
        directory = local_path(self._url)
        return HadoopFiles(self._url, self.cluster.session) if directory is None else Files(directory)

    def survey(self, recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterator[Found]:
        """Look at points, on the executors if they are many."""
        if len(numbers) <= FEW_POINTS:
            yield from super().survey(recipe, numbers, tell)
            return
        cores = self.cluster.cores
        for start in range(0, len(numbers), _AT_ONCE * cores):
            block = numbers[start : start + _AT_ONCE * cores]
            shared = [block[i :: _PARTITIONS * cores] for i in range(min(len(block), _PARTITIONS * cores))]
            # the hash is found here: there, parts that were sent may have no source
            look = partial(_surveyed, recipe, shared, code())
            for row in self._mapped(len(shared), look, "found binary").collect():
                yield from pickle.loads(row["found"])
            tell("checking points", start + len(block))

    def make(
        self, task: Task, chunks: Iterable[Chunk], there: Mapping[str, str], tell: Tell
    ) -> Iterator[Done]:
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
                        future = pool.submit(self._job, task, there, job, tag)
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
        if not isinstance(self.files, HadoopFiles) or not paths:
            return super().index(paths)
        from pyspark.sql import functions as f

        found = self._read(paths, ignoreCorruptFiles=True)
        name = f.regexp_extract(f.input_file_name(), _FILE, 1)
        return found.select("run", name.alias("file"), f.col("error").isNotNull().alias("failed")).toArrow()

    def reduced(self, known: Manifest, how: Reduction) -> pa.Table:
        return self._reduction(known, how).drop(PART).toArrow()

    def reduce(self, known: Manifest, how: Reduction) -> None:
        self._place(self._reduction(known, how), PART, dict(enumerate(how.paths(known))))

    def _reduction(self, known: Manifest, how: Reduction) -> DataFrame:
        """The rows of all parts, with the part's number in a column of its own."""
        from pyspark.sql import functions as f

        parts = how.parts_of(known)
        place = self.cluster.session.createDataFrame(pa.table({"point": [*parts], PART: [*parts.values()]}))
        found = self._read(known.files).join(f.broadcast(place), "point")
        # mapInArrow takes a dot in the name of what it is given for a field of a struct
        plain = (f.col(f"`{name}`").alias(f"column{i}") for i, name in enumerate(how.needs))
        tasks = min(len(set(parts.values())), _PARTITIONS * self.cluster.cores)
        kind = schema_text(how.schema.append(pa.field(PART, pa.int64())))
        return found.select(*plain, PART).repartition(tasks, PART).mapInArrow(partial(_reduced, how), kind)

    def _jobs(self, chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
        """Chunks that are done in one job: enough for all cores."""
        job: list[Chunk] = []
        for chunk in chunks:
            job.append(chunk)
            if sum(each.cost_s for each in job) >= JOB_S * self.cluster.cores:
                yield job
                job = []
        if job:
            yield job

    def _job(
        self, task: Task, there: Mapping[str, str], job: Sequence[Chunk], tag: str | None = None
    ) -> list[Done]:
        """One job. If it loses its workers, each chunk is tried alone, and then its runs in halves."""
        if tag is not None:
            with self.cluster.tagged(tag):
                return self._job(task, there, job)
        try:
            return [self._placed(self._rows(task, there, job), job)]
        except Exception as error:
            if not _LOST_WORKER.search(str(error)):
                raise
        if len(job) > 1:
            return [done for chunk in job for done in self._job(task, there, [chunk])]
        folder = aside()
        try:
            paths = self._halves(task, there, job[0], folder)
            return [self._placed(self._read(paths), job)]
        finally:
            self.files.remove(folder)

    def _halves(self, task: Task, there: Mapping[str, str], chunk: Chunk, folder: str) -> list[str]:
        """Where the rows of a chunk are whose job loses its workers: what can be done is done, in ever
        smaller parts, and a run that cannot be done is a row that says so.
        """
        path = f"{folder}/{chunk.units[0].run}-{len(chunk.units)}"
        try:
            self._rows(task, there, [chunk]).write.parquet(f"{self.files.url}/{path}")
            return [path]
        except Exception as error:
            if not _LOST_WORKER.search(str(error)):
                raise
        if len(chunk.units) == 1:
            fail = partial(_failed, task, chunk)
            failed = self._mapped(1, fail, _kind(task))
            failed.write.mode("overwrite").parquet(f"{self.files.url}/{path}")
            return [path]
        middle = len(chunk.units) // 2
        halves = (Chunk(chunk.name, units) for units in (chunk.units[:middle], chunk.units[middle:]))
        return [place for half in halves for place in self._halves(task, there, half, folder)]

    def _rows(self, task: Task, there: Mapping[str, str], job: Sequence[Chunk]) -> DataFrame:
        """The rows of some chunks, with the chunk's name in a column of its own."""
        units = [unit for chunk in job for unit in chunk.units]
        place = {unit.run: chunk.name for chunk in job for unit in chunk.units}
        known, todo = split(there, units)
        parts = shares(todo, _PARTITIONS * self.cluster.cores)
        found = self._mapped(len(parts), partial(_simulated, task, parts, place), _kind(task))
        if known:
            taken = self._read(known)
            taken = taken.where(taken["run"].isin([name for each in known.values() for name in each]))
            # one file may have a run that is taken from another, or one that failed there
            taken = taken.where(taken["error"].isNull()).dropDuplicates(["run"])
            taken = taken.drop(*rows.names(task.swept))
            found = found.unionByName(taken.mapInArrow(partial(_again, task, units, place), _kind(task)))
        return found

    def _placed(self, found: DataFrame, job: Sequence[Chunk]) -> Done:
        """Write the rows of chunks, a file each, and give the files their names."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        seen = Observation()
        ordered = found.repartition(min(len(job), self.cluster.cores), CHUNK)
        ordered = ordered.sortWithinPartitions(CHUNK, "point", "replication")
        ordered = ordered.observe(seen, f.count(f.lit(1)).alias("runs"), f.count("error").alias("failed"))
        self._place(ordered, CHUNK, {chunk.name: path_of(chunk.name) for chunk in job})
        return Done(tuple(chunk.name for chunk in job), seen.get["runs"], seen.get["failed"])

    def _place(self, found: DataFrame, by: str, names: Mapping[Any, str]) -> None:
        """Write rows, a file for each value of a column that has any, and then give each file its name."""
        part = aside()
        try:
            found.write.partitionBy(by).option("compression", "zstd").parquet(f"{self.files.url}/{part}")
            for value, path in names.items():
                folder = f"{part}/{by}={value}"
                if self.files.names(folder):
                    self.files.place(folder, path)
                else:  # there are no rows; what an earlier sweep had to say goes
                    self.files.remove(path)
        finally:
            self.files.remove(part)

    def _read(self, paths: Iterable[str], **options: Any) -> DataFrame:
        return self.cluster.session.read.options(**options).parquet(*(f"{self.files.url}/{p}" for p in paths))

    def _mapped(self, count: int, work: Callable[[Batches], Batches], kind: str) -> DataFrame:
        """What is made of the numbers from 0 to ``count`` - 1, each in a task of its own."""
        return self.cluster.session.range(0, count, 1, max(count, 1)).mapInArrow(work, kind)


def _kind(task: Task) -> str:
    return schema_text(task.schema.append(pa.field(CHUNK, pa.string())))


# What Spark's tasks do with the batches that come to them; batches of a range are numbers of parts.


def _surveyed(recipe: Points, shared: Sequence[Sequence[int]], model: str, batches: Batches) -> Batches:
    for number in _numbers(batches):
        found = pickle.dumps(list(survey(recipe, shared[number], model)))
        yield pa.RecordBatch.from_pydict({"found": pa.array([found], pa.binary())})


def _simulated(
    task: Task, parts: Sequence[Sequence[Unit]], place: Mapping[str, str], batches: Batches
) -> Batches:
    _freeze_imports()
    for number in _numbers(batches):
        for found in task.simulated(parts[number]):
            yield _with_chunk(found, place)


def _failed(task: Task, chunk: Chunk, batches: Batches) -> Batches:
    """Says of a chunk's only run that it cannot be done."""
    (unit,) = chunk.units
    for _ in _numbers(batches):
        yield _with_chunk(task.failed(unit, ENDED), {unit.run: chunk.name})


def _again(task: Task, units: Sequence[Unit], place: Mapping[str, str], batches: Batches) -> Batches:
    for batch in batches:
        for part in task.again(pa.Table.from_batches([batch]), units).to_batches():
            yield _with_chunk(part, place)


def _reduced(how: Reduction, batches: Batches) -> Batches:
    """Reduces the rows of some parts: they all come to it."""
    found = list(batches)
    if not found:
        return
    table = pa.Table.from_batches(found).rename_columns([*how.needs, PART])
    for number in sorted(table[PART].unique().to_pylist()):
        made = how(table.filter(pc.equal(table[PART], number)).drop_columns([PART]))
        yield from made.append_column(PART, pa.array([number] * made.num_rows, pa.int64())).to_batches()


def _numbers(batches: Batches) -> Iterator[int]:
    return (number for batch in batches for number in batch["id"].to_pylist())


def _with_chunk(found: pa.RecordBatch, place: Mapping[str, str]) -> pa.RecordBatch:
    names = [place[run] for run in found["run"].to_pylist()]
    return found.append_column(CHUNK, pa.array(names, pa.string()))


@cache
def _freeze_imports() -> None:
    """Take what this worker has imported out of the garbage collection that Spark orders after each task.

    Without this, going through all modules costs 30 ms of the processor a task.
    """
    gc.collect()
    gc.freeze()
