"""What is known of a sweep before anything runs: runs that are there already, and chunks."""

from __future__ import annotations

import hashlib
import heapq
import json
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tideover.models.advice import warnings
from tideover.models.effort import effort
from tideover.models.evaluation.undisturbed import identity, without_failures
from tideover.scenarios.errors import MOST_SHOWN, Problem, ScenarioError
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.runs import digest
from tideover.scenarios.sweeps import rows
from tideover.scenarios.sweeps.files import LocalFiles
from tideover.scenarios.sweeps.rows import FORMAT
from tideover.sim.units import S

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tideover.scenarios.sweeps.recipe import Point, Points


# Rows of a dataset that is there already.


def local_rows(files: LocalFiles, wanted: Mapping[str, Sequence[str]]) -> pa.Table:
    """The rows of some runs, by the file that has them, without what depends on the sweep that did them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    kept = [field.name for field in rows.schema({}) if field.name != rows.POINT.name]
    found = []
    for path, names in wanted.items():
        table = pq.read_table(files.directory / path, columns=kept)
        found.append(table.filter(pc.is_in(table[rows.RUN.name], pa.array(names))))
    return pa.concat_tables(found)


def local_index(files: LocalFiles, paths: Iterable[str]) -> pa.Table:
    """Which runs are in which of some files: ``run``, ``file``, and whether it ``failed``. A file that cannot
    be read has none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for path in paths:
        try:
            table = pq.read_table(files.directory / path, columns=["run", "error"])
        except (pa.ArrowException, OSError, KeyError):  # a file of somebody else has other columns
            continue
        place = pa.array([path] * table.num_rows, pa.string())
        found.append(pa.table({"run": table["run"], "file": place, "failed": table["error"].is_valid()}))
    return pa.concat_tables(found) if found else _nothing()


def _nothing() -> pa.Table:
    import pyarrow as pa

    columns = [("run", pa.string()), ("file", pa.string()), ("failed", pa.bool_())]
    return pa.schema(columns).empty_table()


def remote_index(spark: SparkSession, url: str, paths: Sequence[str]) -> pa.Table:
    """The same of a dataset that Spark has to read."""
    from pyspark.sql import functions as f

    if not paths:
        return _nothing()
    reader = spark.read.option("ignoreCorruptFiles", True)
    rows = reader.parquet(*(f"{url}/{path}" for path in paths))
    name = f.regexp_extract(f.input_file_name(), "([^/]+/[^/]+)$", 1)
    return rows.select("run", name.alias("file"), f.col("error").isNotNull().alias("failed")).toArrow()


# Runs that are there already: in files of another sweep in the same place, or beside failed ones.
#
# A run is known by its name (`survey.run_name`), so a changed grid finds what it shares with the one before.
# Failed runs are never taken over.


@dataclass(frozen=True)
class Reuse:
    """Where runs are: ``names`` in order, and in which of ``files`` (their paths) each of them is."""

    names: np.ndarray
    place: np.ndarray
    files: tuple[str, ...]

    def split(self, units: Sequence[Unit]) -> tuple[dict[str, list[str]], list[Unit]]:
        """The names of those that are there, by file; and those that are to be done."""
        if not len(self.names):
            return {}, list(units)
        asked = np.array([unit.run for unit in units], dtype=self.names.dtype)
        at = np.minimum(np.searchsorted(self.names, asked), len(self.names) - 1)
        there = self.names[at] == asked
        known: dict[str, list[str]] = {}
        for unit, place in zip(np.array(asked)[there], self.place[at[there]], strict=True):
            known.setdefault(self.files[place], []).append(unit.decode())
        return known, [unit for unit, found in zip(units, there, strict=True) if not found]

    @property
    def empty(self) -> bool:
        """Nothing is there."""
        return not len(self.names)


NOTHING = Reuse(np.empty(0, "S32"), np.empty(0, np.int32), ())


def reuse(index: pa.Table) -> Reuse:
    """``index``: a row for each run that did not fail, with ``run`` and ``file`` (a path in the dataset)."""
    if not index.num_rows:
        return NOTHING
    files = sorted(set(index["file"].unique().to_pylist()))
    number = {file: i for i, file in enumerate(files)}
    place = np.fromiter((number[file] for file in index["file"].to_pylist()), np.int32, index.num_rows)
    names = index["run"].to_numpy(zero_copy_only=False).astype("S32")
    order = np.lexsort((place, names))  # of several files that have it always the same
    return Reuse(names[order], place[order], tuple(files))


# A sweep's runs in chunks: what is written, and kept, at once.
#
# Which runs a chunk has depends on what is to be run alone, not on machines, on time, or on what is there
# already. So a chunk has the same name and the same rows whoever makes it, and however often; making it
# twice is harmless.

CHUNK_S = 8.0
"""What a chunk costs, roughly, in seconds of one core. That much is lost if the driver dies."""
MOST_RUNS = 2_000

WITH_SECONDS, WITHOUT_SECONDS = "seconds", "runs"
"""How the names of chunks begin."""


class Unit(NamedTuple):
    """One run: which replication of which point."""

    point: int
    replication: int
    run: str
    document: str
    reference: str
    cost_s: float


@dataclass(frozen=True)
class Chunk:
    """Runs that are kept together. ``name``: of what is in it, and of the shape of its rows."""

    name: str
    units: tuple[Unit, ...]

    @property
    def cost_s(self) -> float:
        """Seconds of one core, roughly."""
        return sum(unit.cost_s for unit in self.units)


def units(points: Iterable[Surveyed], wanted: Iterable[tuple[int, int]]) -> Iterator[Unit]:
    """The runs of points, for each from one replication up to another; those that share a reference follow
    one another: a process keeps it for the next of them.
    """
    groups: dict[str, list[tuple[Surveyed, int, int]]] = {}
    for point, (first, last) in zip(points, wanted, strict=True):
        if last > first:
            groups.setdefault(point.reference, []).append((point, first, last))
    for reference, members in groups.items():
        begin, end = min(first for _, first, _ in members), max(last for *_, last in members)
        for n in range(begin, end):
            for point, first, last in members:
                if first <= n < last:
                    yield Unit(
                        point.number, n, point.run(n), point.document, f"{reference} {n}", point.cost_s
                    )


def chunks(every: Iterable[Unit], timeline: bool) -> Iterator[Chunk]:
    """The runs in chunks of about the same cost; ``timeline``: whether their rows per second are kept."""
    mine: list[Unit] = []
    cost = 0.0
    for unit in every:
        if mine and (cost + unit.cost_s > CHUNK_S or len(mine) >= MOST_RUNS):
            yield _chunk(mine, timeline)
            mine, cost = [], 0.0
        mine.append(unit)
        cost += unit.cost_s
    if mine:
        yield _chunk(mine, timeline)


def _chunk(mine: Sequence[Unit], timeline: bool) -> Chunk:
    digest = hashlib.sha256()
    for unit in mine:
        digest.update(f" {unit.point} {unit.run} {unit.document}".encode())
    kept = WITH_SECONDS if timeline else WITHOUT_SECONDS
    return Chunk(f"{kept}-{digest.hexdigest()[:24]}", tuple(mine))


def shares(todo: Sequence[Unit], count: int) -> list[list[Unit]]:
    """The runs in at most ``count`` shares of about equal cost, the most costly first.

    Runs of one reference stay together, unless they are more than half a share. The longest go first, each to
    whoever has least (Graham 1969, Bounds on Multiprocessing Timing Anomalies, section 3: at most 4/3 of the
    best).
    """
    total = sum(unit.cost_s for unit in todo)
    pieces = sorted(_pieces(todo, total / count / 2), key=_cost, reverse=True)
    found: list[list[Unit]] = [[] for _ in range(count)]
    free = [(0.0, number) for number in range(count)]
    for piece in pieces:
        cost, number = heapq.heappop(free)
        found[number] += piece
        heapq.heappush(free, (cost + _cost(piece), number))
    return sorted(filter(None, found), key=_cost, reverse=True)


def _pieces(todo: Iterable[Unit], most_s: float) -> Iterator[list[Unit]]:
    """Runs that stay together."""
    piece: list[Unit] = []
    cost = 0.0
    for unit in todo:
        if piece and (piece[0].reference != unit.reference or cost + unit.cost_s > most_s):
            yield piece
            piece, cost = [], 0.0
        piece.append(unit)
        cost += unit.cost_s
    if piece:
        yield piece


def _cost(piece: Iterable[Unit]) -> float:
    return sum(unit.cost_s for unit in piece)


# What is known of a sweep's points before anything runs: which runs they are, and how long each takes.
#
# Points are built where the runs are: on executors, from the recipe and a number. The driver only learns a
# few numbers of each.

LEAST_S = 0.02
"""What a run costs at least, beside what it simulates."""


@dataclass(frozen=True)
class Surveyed:
    """A point that can be simulated.

    identity       hash of all that its runs depend on, but for the replication
    document       hash of what their rows say besides: the scenario's name, the swept values
    reference      hash of what they are without failures: runs of one reference and replication share a run
    cost_s         roughly how long one takes on one core of a common machine, with the run without failures
                   that it is held against, which others may share
    simulated_s    how long one is
    remarks        what an expert would remark before running
    idle           why its profile gives it nothing, if so
    """

    number: int
    identity: str
    document: str
    reference: str
    cost_s: float
    simulated_s: float
    remarks: tuple[str, ...]
    idle: tuple[Problem, ...]

    def run(self, replication: int) -> str:
        """The name of one run: whoever has it has the result."""
        return run_name(self.identity, replication)


@dataclass(frozen=True)
class Refused:
    """A point that cannot be built."""

    number: int
    problems: tuple[Problem, ...]


def run_name(identity: str, replication: int) -> str:
    """A run's name, from its scenario's identity."""
    return hashlib.sha256(f"{FORMAT} {identity} {replication}".encode()).hexdigest()[:32]


def survey(recipe: Points, numbers: Iterable[int], model: str) -> Iterator[Surveyed | Refused]:
    """Look at some points; ``model``: hash of the code that simulates them."""
    for number in numbers:
        try:
            point = recipe.point(number)
        except ScenarioError as error:
            yield Refused(number, tuple(error.problems))
            continue
        yield _surveyed(point, model)


def _surveyed(point: Point, model: str) -> Surveyed:
    scenario = point.scenario
    quiet = hashlib.sha256(identity(without_failures(scenario), 0).encode()).hexdigest()[:16]
    said = json.dumps([to_data(scenario), dict(point.values)], default=str)
    return Surveyed(
        point.number,
        digest(scenario, model),
        hashlib.sha256(said.encode()).hexdigest()[:16],
        quiet,
        LEAST_S + effort(scenario).seconds,
        scenario.run.duration / S,
        tuple(map(sys.intern, warnings(scenario))),
        point.idle,
    )


def packed(recipe: Points, numbers: Sequence[int], model: str) -> bytes:
    """The survey of some points as bytes, to be sent from an executor."""
    return pickle.dumps(list(survey(recipe, numbers, model)))


def checked(found: Iterable[Surveyed | Refused]) -> list[Surveyed]:
    """The points in their order; raises ScenarioError with what is wrong with those that were refused."""
    points: list[Surveyed] = []
    problems: dict[Problem, None] = {}
    for one in sorted(found, key=lambda one: one.number):
        if isinstance(one, Surveyed):
            points.append(one)
        elif len(problems) < MOST_SHOWN:
            problems |= dict.fromkeys(one.problems)
    idle = [problem for point in points for problem in point.idle]
    if problems or (points and all(point.idle for point in points)):
        raise ScenarioError(list(problems) or idle[:1])  # a profile that gives nothing to any point
    return points
