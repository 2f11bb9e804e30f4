"""A sweep's work: every replication of every point, as Spark jobs or in this process, into a dataset.

The commands and `tideover.sweep` call `sweep` and `forecast`; plans and audits do their runs here, too
(`kept`, `runs_of`). What is to be done is cut into chunks in a way that depends on nothing but what was asked
(`survey.chunks`), each of which becomes a file, whole or not at all (`files`); so a sweep that was
interrupted, by whatever, goes on with the chunks that are missing, and ends with the same rows. Which runs
are missing, and which may be taken from other sweeps, is changed in `Work`.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc

import tideover
from tideover.models.advice import in_short
from tideover.models.schema import Column, Dtype
from tideover.scenarios.runs import code
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.spark.settings import LOCAL, Place
from tideover.scenarios.sweeps import files as manifest
from tideover.scenarios.sweeps import survey
from tideover.scenarios.sweeps.dataset import FOLDER, Sweep
from tideover.scenarios.sweeps.engine import Engine, Task
from tideover.scenarios.sweeps.factors import as_number
from tideover.scenarios.sweeps.files import Files, Manifest, local_path, named, path_of, swept_column
from tideover.scenarios.sweeps.on_spark import on_spark
from tideover.scenarios.sweeps.reduction import of_figures, of_sweep
from tideover.scenarios.sweeps.survey import Chunk, Unit
from tideover.scenarios.sweeps.sweep_file import Points, Recipe, Wanted

MOST_SECONDS = 500_000
"""A sweep of more simulated seconds than this keeps no timeline: it would be most of the result."""

Report = Callable[[str, float, int], None]
"""Called with what is being done, how much is done (a fraction counts), and of how much."""


def no_report(what: str, done: float, total: int) -> None:
    """Say nothing."""


class RunsFailed(RuntimeError):
    """A run failed, and the sweep was asked to end with the first one that does."""


def sweep(
    recipe: Recipe,
    place: str | os.PathLike[str] | None = None,
    *,
    where: Place | None = None,
    fail_fast: bool = False,
    retry_failed: bool = False,
    inputs: str | None = None,
    report: Report = no_report,
) -> Sweep:
    """Do all runs of a recipe that ``place``, the directory of a dataset, does not have; None keeps nothing.

    ``where``: who does them, by default embedded Spark. ``fail_fast``: it ends with the first that fails;
    ``retry_failed``: those are done again that are there, and failed. ``inputs``: hash of what the recipe was
    made from.

    Raises ScenarioError for a point that cannot be built; JavaNotFound, SparkNotStarted and SweepFailed if
    Spark does not work; RunsFailed with ``fail_fast``; ValueError and OSError for the place.
    """
    temporary = None
    if place is None:
        temporary = TemporaryDirectory(prefix="tideover-sweep-", ignore_cleanup_errors=True)
        place = temporary.name
    with engine(where or Place(), place, lambda what: report(what, 0, 0)) as doer:
        known = complete(
            recipe, doer, fail_fast=fail_fast, retry_failed=retry_failed, inputs=inputs, report=report
        )
        found = Sweep(known, doer.files, temporary)
        if local_path(place) is None:
            found.fetch()  # while there is a Spark to read it
    return found


@contextmanager
def engine(where: Place, place: str | os.PathLike[str], say: Callable[[str], None]) -> Iterator[Engine]:
    """Who does runs, and writes them to ``place``; ``say`` hears of what takes a while. Raises as `sweep`."""
    directory = local_path(place)
    if directory is None and where.remote is not None:
        raise ValueError(
            f"{place}: cannot be written over Spark Connect, which has no way to rename there; "
            "give the cluster as --master, or a directory that this machine and the workers share"
        )
    if where.master is None and where.remote is None:
        if directory is None:
            raise ValueError(f"{place}: only Spark reaches that; name a directory of this machine")
        yield Engine(Files(directory))
        return
    spark = spark_session(where.master or LOCAL, remote=where.remote, conf=where.conf, archive=where.archive)
    with on_spark(spark, os.fspath(place), say) as doer:
        yield doer


@contextmanager
def kept(out: str | os.PathLike[str] | None, where: Place, say: Callable[[str], None]) -> Iterator[Engine]:
    """Who does runs, and keeps them in ``out``, a directory for results; None: only for now.

    ``where``: who that is; ``say`` hears of what takes a while before that. Raises as a sweep does.
    """
    with ExitStack() as stack:
        folder = out or stack.enter_context(TemporaryDirectory(prefix="tideover-runs-"))
        yield stack.enter_context(engine(where, Path(folder) / FOLDER, say))


def runs_of(points: Points, wanted: Wanted, doer: Engine, report: Report = no_report) -> pa.Table:
    """The rows of these replications of each point, from the first to before the last, in no order; those
    that ``doer`` has are not done again. Raises as a sweep does.
    """
    work = Work(points, doer, report)
    if work.plan(wanted):
        work.make(wanted)
    return doer.files.table(work.known.files)


def complete(
    recipe: Recipe,
    engine: Engine,
    *,
    fail_fast: bool = False,
    retry_failed: bool = False,
    inputs: str | None = None,
    report: Report = no_report,
) -> Manifest:
    """Do what is missing of a sweep's dataset, as `sweep` says; returns the manifest of the whole.

    Raises ScenarioError for a point that cannot be built, RunsFailed, and what engine and files raise.
    """
    engine.files.tidy_up()
    work = Work(recipe, engine, report, inputs, fail_fast, retry_failed)
    for wanted in recipe.replications.rounds(len(work.points), work.estimates):
        if work.plan(wanted):
            work.write()
            work.make(wanted, work.write)
    said = recipe.replications.too_wide(len(work.points), work.estimates)
    work.known = replace(work.known, remarks=[*work.known.remarks, *said])
    return work.settled()


def _swept(recipe: Recipe) -> dict[str, Column]:
    """The columns of the swept keys: texts, unless all values are numbers or truths."""
    kinds: dict[str, set[type]] = {key: set() for key in recipe.parameters}
    for number in range(recipe.total):
        for key, value in recipe.values(number).items():
            kinds[key].add(type(as_number(value, recipe.parameters[key])))

    def dtype(kinds: set[type]) -> Dtype:
        if len(kinds) == 1 and kinds <= {bool, int}:
            return "bool" if bool in kinds else "int64"
        return "float64" if kinds <= {int, float} else "string"

    return {key: swept_column(key, unit, dtype(kinds[key])) for key, unit in recipe.parameters.items()}


class Work:
    """The runs of a sweep, or of other points, which keep no manifest, as far as they are missing.

    damaged   files that are not as they were written
    index     a row for each run that is there: its name, its file, and whether it failed
    known     the manifest of what is planned so far
    """

    def __init__(
        self,
        recipe: Points,
        engine: Engine,
        report: Report,
        inputs: str | None = None,
        fail_fast: bool = False,
        retry_failed: bool = False,
    ) -> None:
        """Look at all points, and at what is there; raises ScenarioError for a point that cannot be built."""
        self.engine, self.files, self.report = engine, engine.files, report
        self._fail_fast, self._retry_failed = fail_fast, retry_failed
        self.before: Manifest | None = None
        total = recipe.total
        if isinstance(recipe, Recipe):
            try:
                self.before = manifest.read(self.files)
            except manifest.Damaged as error:
                again = "it is made anew, and of the data what can be read to the end is not done again"
                warnings.warn(f"{error}: {again}", stacklevel=3)
            found = engine.survey(recipe, range(total), lambda what, done: report(what, done, total))
            self.points = survey.checked(found)
            simulated = sum(point.simulated_s for point in self.points) * recipe.replications.most
            self.task = Task(recipe, _swept(recipe), simulated <= MOST_SECONDS)
        else:
            self.points = survey.checked(engine.survey(recipe, range(total), lambda what, done: None))
            self.task = Task(recipe, {}, timeline=False)
        there = {f"{manifest.DATA}/{name}" for name in self.files.names(manifest.DATA)}
        self.damaged: set[str] = set()
        sums = {} if self.before is None else self.before.checksums
        known = self.files.checksums(path for path in sorted(sums) if path in there)
        self._spoiled(path for path in known if known[path] != sums[path])
        self._sums = {path: known[path] for path in known if path not in self.damaged}
        """The checksums of files that are as they were written."""
        self.index = engine.index(sorted(there - self.damaged))
        self._indexed = set(self.index["file"].unique().to_pylist())
        self._unread = there - self.damaged - self._indexed
        self._made: set[str] = set()
        self._estimates: dict[tuple[str, int], pa.Table] = {}
        self.known = Manifest(
            name=recipe.name,
            inputs=inputs,
            model=code(),
            version=tideover.__version__,
            swept=self.task.swept,
            points=len(self.points),
            timeline=self.task.timeline,
            remarks=[*recipe.remarks, *in_short(text for point in self.points for text in point.remarks)],
            chunks=(),
            complete=False,
            columns=manifest.described(self.task.schema),
            checksums={},
        )

    def _spoiled(self, paths: Iterable[str]) -> None:
        """These files are damaged."""
        found = sorted({*paths} - self.damaged)
        self.damaged.update(found)
        if found:
            they = "their runs are" if len(found) > 1 else "its runs are"
            said = f"{self.files.where}: damaged: {named(found)}; {they} simulated anew"
            warnings.warn(said, stacklevel=2)

    def _sound(self, paths: Collection[str]) -> set[str]:
        """Those files that are as they were written. Of what the manifest does not know (a sweep that was
        killed, or another one in this place) that is what can be read to the end.
        """
        asked = {*paths} - self._sums.keys() - self.damaged
        new = asked - self.files.sound - self._unread
        bad = self.files.unreadable(sorted(new)) | (self._unread & asked)
        self.files.sound.update(new - bad)
        self._spoiled(bad)
        return {*paths} - self.damaged

    def write(self, summaries: Sequence[str] = (), complete: bool = False) -> Manifest:
        """Say in the manifest what is there."""
        sums = {path: self._sums[path] for path in (*self.known.files, *summaries) if path in self._sums}
        found = replace(self.known, complete=complete, checksums=sums)
        self.files.write(manifest.NAME, found.to_bytes())
        return found

    def chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        """The runs of each point from one replication up to another, in chunks."""
        return survey.chunks(survey.units(self.points, wanted), self.task.timeline)

    def plan(self, wanted: Wanted) -> bool:
        """Add these runs to what is planned; returns whether any chunk is missing."""
        names = [(chunk.name, len(chunk.units)) for chunk in self.chunks(wanted)]
        self.known = replace(self.known, chunks=[*self.known.chunks, *names])
        return len(self.whole()) < len(self.known.chunks)

    def make(self, wanted: Wanted, done_some: Callable[[], object] = lambda: None) -> None:
        """Do the chunks of these runs that are not there; ``done_some`` is called when some are."""
        there = self.whole()
        before = sum(runs for name, runs in self.known.chunks if name in there)

        def missing() -> Iterator[Chunk]:
            return (chunk for chunk in self.chunks(wanted) if chunk.name not in there)

        def tell(what: str, more: float) -> None:
            self.report(what, before + more, self.known.runs)

        usable = self.usable(there, (unit for chunk in missing() for unit in chunk.units))
        tell("simulating", 0)
        for done in self.engine.make(self.task, missing(), usable, tell):
            before += done.runs
            self._made.update(done.chunks)
            self._sums |= self.files.checksums(map(path_of, done.chunks))
            done_some()
            tell("simulating", 0)
            if done.failed and self._fail_fast:
                raise RunsFailed(f"{done.failed} of {done.runs} runs failed, and no more were begun")

    def estimates(self, metric: str) -> pa.Table:
        """``n``, ``mean`` and ``std`` of a metric, for each point; made anew when runs were added."""
        asked = metric, len(self.known.chunks)
        if asked not in self._estimates:
            self._estimates = {asked: self.engine.reduced(self.known, of_figures((metric,)))}
        return self._estimates[asked]

    def settled(self) -> Manifest:
        """All runs are done: summarise them, unless they were, and say in the manifest that all is there."""
        files, before = self.known.files, self.before
        # another sweep, at work in the same place, may have written files again since: the same rows, but
        # Spark's processes write them with different bytes
        found = self.files.checksums(path for path in files if path in self._sums)
        changed = [path for path in found if found[path] != self._sums[path]]
        bad = self.files.unreadable(changed)
        self._sums |= {path: found[path] for path in changed if path not in bad}
        self._sums |= self.files.checksums(path for path in files if path not in self._sums)
        if before is not None:
            told = {path: sum for path, sum in before.checksums.items() if path not in {*before.files}}
            found = self.files.checksums(told)
            if spoiled := sorted(path for path in found if found[path] != told[path]):
                warnings.warn(f"{self.files.where}: damaged: {named(spoiled)}; made anew", stacklevel=2)
            whole = found == told and {*before.files} <= before.checksums.keys()
            if whole and before == replace(self.known, complete=True) and not self._made:
                return before
        values = [self.task.recipe.values(number) for number in range(len(self.points))]
        reductions = of_sweep(self.task.swept, values)
        for done, one in enumerate(reductions):
            self.report(f"summarising {one.folder}", done, len(reductions))
            self.engine.reduce(self.known, one)
        parts = [path for one in reductions for path in one.paths(self.known)]
        self._sums |= self.files.checksums(parts)
        return self.write(parts, complete=True)

    def whole(self) -> set[str]:
        """The names of those planned chunks that are there and need not be done again."""
        failed = self.index.filter(self.index["failed"])["file"].unique().to_pylist()
        again = set(failed) if self._retry_failed else set()
        there = (self._indexed | self._unread) - again
        mine = {path_of(name): name for name, _ in self.known.chunks}
        sound = self._sound([path for path in mine if mine[path] not in self._made and path in there])
        return {name for path, name in mine.items() if name in self._made or path in sound}

    def usable(self, whole: set[str], todo: Iterable[Unit]) -> dict[str, str]:
        """Runs that are to be done and are there, of other sweeps and beside failed ones: by the name of each
        the file that has it, of several always the same. So a changed grid finds what it shares with the one
        before. Failed runs are never taken over.
        """
        kinds = survey.WITH_SECONDS, *([] if self.task.timeline else [survey.WITHOUT_SECONDS])
        others = self._indexed - {path_of(name) for name in whole}
        others = {path for path in others if Path(path).name.startswith(kinds)}
        if not others:
            return {}
        wanted = pc.field("file").isin(sorted(others)) & ~pc.field("failed")
        names = pa.array((unit.run for unit in todo), pa.string())
        found = self.index.filter(wanted & pc.field("run").isin(names))
        sound = self._sound(found["file"].unique().to_pylist())
        found = found.filter(pc.field("file").isin(pa.array(sorted(sound), pa.string())))
        found = found.sort_by([("file", "descending")])
        return dict(zip(found["run"].to_pylist(), map(sys.intern, found["file"].to_pylist()), strict=True))


# What a sweep would do: runs, why they are not there; time and memory, from a pilot.

_PILOTS = 3


@dataclass(frozen=True)
class Forecast:
    """Of a sweep.

    points, runs   how many there are in all; with replications until an interval is narrow at least
    most_runs      at most
    there          runs that are done already
    reused         runs that another sweep in the same place has done
    failed         runs that are done, and failed
    to_do          runs that would be simulated
    why            why they are not there, in words
    core_s         how long they take on one core, by the pilot (s)
    worker_bytes   memory of a process that does them
    dataset_bytes  what they take on the disk
    remarks        what an expert would remark on what is simulated
    """

    points: int
    runs: int
    most_runs: int
    there: int
    reused: int
    failed: int
    to_do: int
    why: tuple[str, ...]
    core_s: float
    worker_bytes: int
    dataset_bytes: int
    remarks: tuple[str, ...]


def forecast(recipe: Recipe, files: Files, retry_failed: bool, report: Report = no_report) -> Forecast:
    """What would be done, from at most three runs; nothing is written. Raises ScenarioError."""
    work = Work(recipe, Engine(files), report, retry_failed=retry_failed)
    total, least = len(work.points), recipe.replications.least
    chunks = list(work.chunks([(0, least)] * total))
    work.known = replace(work.known, chunks=[(chunk.name, len(chunk.units)) for chunk in chunks])
    whole = work.whole()
    missing = [unit for chunk in chunks if chunk.name not in whole for unit in chunk.units]
    _, todo = survey.split(work.usable(whole, missing), missing)
    failed = work.index.filter(work.index["failed"])["file"].to_pylist()
    mine = set(work.known.files)
    report("timing some runs", 0, 0)
    seconds, worker, row = pilot(work.task, todo)
    before, why = work.before, "the scenario, its points or the number of replications have changed since"
    if before is None:
        why = "nothing is there yet"
    elif before.model != code():
        why = "the code that simulates them has changed since"
    elif work.damaged:
        why = "files are damaged"
    elif not before.complete:
        why = "the sweep was interrupted, or has been changed since"
    return Forecast(
        points=total,
        runs=total * least,
        most_runs=total * recipe.replications.most,
        there=work.known.runs - len(missing),
        reused=len(missing) - len(todo),
        failed=sum(path in mine for path in failed),
        to_do=len(todo),
        why=(why,) if todo else (),
        core_s=seconds,
        worker_bytes=worker,
        dataset_bytes=round(row * len(todo)),
        remarks=tuple(work.known.remarks),
    )


def pilot(task: Task, todo: Sequence[Unit]) -> tuple[float, int, float]:
    """Seconds of one core for all runs, memory of a process that did some (bytes), and bytes of a row: from
    the runs that should take shortest, longest, and in between.
    """
    if not todo:
        return 0.0, 0, 0.0
    ordered = sorted(todo, key=lambda unit: unit.cost_s)
    places = {round(i * (len(ordered) - 1) / (_PILOTS - 1)) for i in range(_PILOTS)}
    measured, expected, size = 0.0, 0.0, 0
    for place in sorted(places):
        begun_at = time.process_time()
        size += sum(rows.nbytes for rows in task.simulated([ordered[place]]))
        if place or len(places) == 1:  # the first run of a process loads what all need
            measured += time.process_time() - begun_at
            expected += ordered[place].cost_s
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return sum(unit.cost_s for unit in todo) * measured / expected, peak, size / len(places)
