"""A sweep's work: a recipe, an engine that does the runs, and a place for what comes out."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import tideover
from tideover.models.advice import in_short
from tideover.models.schema import Column, Dtype
from tideover.scenarios.runs import code
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.spark.settings import LOCAL, Place
from tideover.scenarios.sweeps import files as manifest
from tideover.scenarios.sweeps.dataset import FOLDER, STRATEGIES, Sweep, groups, of_differences
from tideover.scenarios.sweeps.engine import Engine, Task
from tideover.scenarios.sweeps.factors import as_number as as_number
from tideover.scenarios.sweeps.files import (
    Files,
    LocalFiles,
    Manifest,
    local_path,
    named,
    path_of,
    swept_column,
)
from tideover.scenarios.sweeps.in_process import InProcess
from tideover.scenarios.sweeps.on_spark import on_spark
from tideover.scenarios.sweeps.recipe import Points, Until, Wanted, rounds, too_wide
from tideover.scenarios.sweeps.reduction import Reduction, of_figures, of_points, of_remarks, parts_of
from tideover.scenarios.sweeps.survey import (
    NOTHING,
    WITH_SECONDS,
    WITHOUT_SECONDS,
    Chunk,
    Reuse,
    Surveyed,
    Unit,
    checked,
    chunks,
    reuse,
    units,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tideover.scenarios.sweeps.recipe import Recipe


# A sweep's work: every replication of every point, as Spark jobs or in this process, into a dataset.
#
# A run is one row, a failed one too. What is to be done is cut into chunks in a way that depends on nothing
# but what was asked (`chunks`), each of which becomes a file, whole or not at all (`files`). So a sweep
# that was interrupted, by whatever, goes on with the chunks that are missing, and ends with the same rows.

MOST_SECONDS = 500_000
"""A sweep of more simulated seconds than this keeps no timeline: it would be most of the result."""

Report = Callable[[str, float, int], None]
"""Called with what is being done, how much is done (a fraction counts), and of how much."""


class RunsFailed(RuntimeError):
    """A run failed, and the sweep was asked to end with the first one that does."""


@dataclass(frozen=True)
class Options:
    """How a sweep deals with runs that fail.

    fail_fast      it ends with the first
    retry_failed   those that are there already are done again
    """

    fail_fast: bool = False
    retry_failed: bool = False


KEEP_GOING = Options()


def complete(
    recipe: Recipe,
    engine: Engine,
    *,
    options: Options = KEEP_GOING,
    inputs: str | None = None,
    report: Report = lambda what, done, total: None,
) -> Manifest:
    """Do what is missing of a sweep's dataset; returns the manifest of the whole.

    ``inputs``: hash of all that the sweep was made from (`tideover.scenarios.runs`), to be kept. Raises
    ScenarioError for a point that cannot be built, RunsFailed, and what the engine and the files raise.
    """
    engine.files.tidy_up()
    work = begun(recipe, engine, options, report, inputs)
    for wanted in rounds(recipe.replications, len(work.points), work.estimates):
        if work.plan(wanted):
            work.write()
            work.make(wanted, work.write)
    if isinstance(recipe.replications, Until):
        said = too_wide(recipe.replications, len(work.points), work.estimates)
        work.known = replace(work.known, remarks=[*work.known.remarks, *said])
    return work.settled()


def begun(
    recipe: Recipe, engine: Engine, options: Options, report: Report, inputs: str | None = None
) -> Work:
    """A sweep's points are looked at, and what is there of it; raises as ``complete`` does."""
    before = _said(engine.files)
    total = recipe.total
    found = engine.survey(recipe, range(total), lambda what, done: report(what, done, total))
    points = checked(found)
    simulated = sum(point.simulated_s for point in points) * recipe.replications.most
    task = Task(recipe, _swept(recipe), simulated <= MOST_SECONDS)
    return Work(points, task, engine, options, report, inputs, before)


def _said(files: Files) -> Manifest | None:
    """The manifest that is there; of one that is damaged it is said that it will be made anew."""
    try:
        return manifest.read(files)
    except manifest.Damaged as error:
        again = "it is made anew, and of the data what can be read to the end is not done again"
        warnings.warn(f"{error}: {again}", stacklevel=2)
        return None


class Work:
    """A sweep's runs, as far as they are missing."""

    def __init__(
        self,
        points: Sequence[Surveyed],
        task: Task,
        engine: Engine,
        options: Options,
        report: Report,
        inputs: str | None = None,
        before: Manifest | None = None,
    ) -> None:
        self.points, self.task, self.engine, self.files = points, task, engine, engine.files
        self.options, self.report, self.before = options, report, before
        there = {f"{manifest.DATA}/{name}" for name in self.files.names(manifest.DATA)}
        self.damaged: set[str] = set()
        self._sums = self._vouched(there)
        """The checksums of files that are as they were written."""
        self.index = engine.index(sorted(there - self.damaged))
        """A row for each run that is there: its name, its file, and whether it failed."""
        self._unread = there - self.damaged - set(self.index["file"].unique().to_pylist())
        self.made: set[str] = set()
        self._estimates: dict[tuple[str, int], pa.Table] = {}
        self.known = self._nothing(inputs)
        """The manifest of what is planned so far."""

    def _nothing(self, inputs: str | None) -> Manifest:
        """The manifest before anything is planned."""
        return Manifest(
            name=self.task.recipe.name,
            inputs=inputs,
            model=code(),
            version=tideover.__version__,
            swept=self.task.swept,
            points=len(self.points),
            timeline=self.task.timeline,
            remarks=[*self.task.recipe.remarks, *in_short(t for p in self.points for t in p.remarks)],
            chunks=(),
            complete=False,
            columns=manifest.described(self.task.schema),
            checksums={},
        )

    def _vouched(self, there: Collection[str]) -> dict[str, str]:
        """The checksums of those files that are what the manifest says that they are; of others it is told
        that they are damaged.
        """
        known = {} if self.before is None else self.before.checksums
        found = self.files.checksums(path for path in sorted(known) if path in there)
        self._spoiled(path for path in found if found[path] != known[path])
        return {path: found[path] for path in found if path not in self.damaged}

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
        asked = [path for path in paths if path not in self._sums and path not in self.damaged]
        new = [path for path in asked if path not in self.files.sound and path not in self._unread]
        bad = self.files.unreadable(new) | self._unread.intersection(asked)
        self.files.sound.update({*new} - bad)
        self._spoiled(bad)
        return {*paths} - self.damaged

    def write(self) -> None:
        """Say in the manifest what is there."""
        self.files.write(manifest.NAME, self._said(self.known.files).to_bytes())

    def _said(self, paths: Iterable[str], complete: bool = False) -> Manifest:
        """The manifest with the checksums of these files."""
        sums = {path: self._sums[path] for path in paths if path in self._sums}
        return replace(self.known, complete=complete, checksums=sums)

    def chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        """The runs of each point from one replication up to another, in chunks."""
        return chunks(units(self.points, wanted), self.task.timeline)

    def plan(self, wanted: Wanted) -> bool:
        """Add these runs to what is planned; returns whether any chunk is missing."""
        names = [(chunk.name, len(chunk.units)) for chunk in self.chunks(wanted)]
        self.known = replace(self.known, chunks=[*self.known.chunks, *names])
        return len(self.whole(self.known.chunks)) < len(self.known.chunks)

    def make(self, wanted: Wanted, done_some: Callable[[], None] = lambda: None) -> None:
        """Do the chunks of these runs that are not there; ``done_some`` is called when some are."""
        known = self.known
        there = self.whole(known.chunks)

        def missing() -> Iterator[Chunk]:
            return (chunk for chunk in self.chunks(wanted) if chunk.name not in there)

        usable = self.usable(there, (unit for chunk in missing() for unit in chunk.units))
        before = sum(runs for name, runs in known.chunks if name in there)

        def tell(what: str, more: float) -> None:
            self.report(what, before + more, known.runs)

        tell("simulating", 0)
        for done in self.engine.make(self.task, missing(), usable, tell):
            before += done.runs
            self.made.update(done.chunks)
            self._sums |= self.files.checksums(map(path_of, done.chunks))
            done_some()
            tell("simulating", 0)
            if done.failed and self.options.fail_fast:
                raise RunsFailed(f"{done.failed} of {done.runs} runs failed, and no more were begun")

    def estimates(self, metric: str) -> pa.Table:
        """``n``, ``mean`` and ``std`` of a metric, for each point; made anew when runs were added."""
        asked = metric, len(self.known.chunks)
        if asked not in self._estimates:
            self._estimates = {asked: self.engine.reduced(self.known, of_figures((metric,)))}
        return self._estimates[asked]

    def settled(self) -> Manifest:
        """All runs are done: what is said of them, point by point, and the manifest that says so. It may have
        been said before.
        """
        files = self.known.files
        self._sums |= self._others(path for path in files if path in self._sums)
        self._sums |= self.files.checksums(path for path in files if path not in self._sums)
        before = self.before
        told = before is not None and self._told(before)
        if before is not None and before == replace(self.known, complete=True) and told and not self.made:
            return before
        reductions = (of_points(self.task.swept), of_figures(), of_remarks(), *self._differences())
        for done, one in enumerate(reductions):
            self.report(f"summarising {one.folder}", done, len(reductions))
            self.engine.reduce(self.known, one)
        parts = [path for one in reductions for path in parts_of(one, self.files, self.known)]
        self._sums |= self.files.checksums(parts)
        whole = self._said([*files, *parts], complete=True)
        self.files.write(manifest.NAME, whole.to_bytes())
        return whole

    def _others(self, paths: Iterable[str]) -> dict[str, str]:
        """The checksums of files that another sweep, at work in the same place, has written again since: the
        same rows, but Spark's processes write them with different bytes.
        """
        found = self.files.checksums(paths)
        changed = [path for path in found if found[path] != self._sums[path]]
        bad = self.files.unreadable(changed)
        return {path: found[path] for path in changed if path not in bad}

    def _told(self, before: Manifest) -> bool:
        """Whether what is said of points is there, as it was written, and all is vouched for."""
        files = set(before.files)
        told = {path: known for path, known in before.checksums.items() if path not in files}
        found = self.files.checksums(told)
        if bad := sorted(path for path in found if found[path] != told[path]):
            warnings.warn(f"{self.files.where}: damaged: {named(bad)}; made anew", stacklevel=2)
        return found == told and files <= before.checksums.keys()

    def _differences(self) -> Iterator[Reduction]:
        """Those between strategies, if they are swept."""
        for key in STRATEGIES:
            if key in self.task.swept:
                values = [self.task.recipe.values(number) for number in range(len(self.points))]
                if members := groups(values, key):
                    yield of_differences(key, self.task.swept, members)

    def whole(self, planned: Sequence[tuple[str, int]]) -> set[str]:
        """The names of those chunks that are there and need not be done again."""
        failed = self.index.filter(self.index["failed"])["file"].unique().to_pylist()
        again = set(failed) if self.options.retry_failed else set()
        there = {*self.index["file"].unique().to_pylist(), *self._unread} - again
        mine = [path for name, _ in planned if name not in self.made and (path := path_of(name)) in there]
        sound = self._sound(mine)
        return {name for name, _ in planned if name in self.made or path_of(name) in sound}

    def usable(self, whole: set[str], todo: Iterable[Unit]) -> Reuse:
        """Runs that are to be done and are there, of other sweeps and beside failed ones."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kinds = (WITH_SECONDS,) if self.task.timeline else (WITH_SECONDS, WITHOUT_SECONDS)
        paths = self.index["file"].unique().to_pylist()
        others = [
            path
            for path in paths
            if path.removeprefix(f"{manifest.DATA}/").startswith(kinds)
            and path not in {path_of(name) for name in whole}
        ]
        if not others:
            return NOTHING
        mine = pc.is_in(self.index["file"], pa.array(others, pa.string()))
        mine = pc.and_(mine, pc.invert(self.index["failed"]))
        mine = pc.and_(mine, pc.is_in(self.index["run"], pa.array((unit.run for unit in todo), pa.string())))
        found = self.index.filter(mine)
        sound = self._sound(found["file"].unique().to_pylist())
        return reuse(found.filter(pc.is_in(found["file"], pa.array(sorted(sound), pa.string()))))


def _swept(recipe: Recipe) -> dict[str, Column]:
    """The columns of the swept keys: texts, unless all values are numbers or truths."""
    kinds: dict[str, set[type]] = {key: set() for key in recipe.parameters}
    for number in range(recipe.total):
        for key, value in recipe.values(number).items():
            kinds[key].add(type(as_number(value, recipe.parameters[key])))
    return {key: swept_column(key, unit, _dtype(kinds[key])) for key, unit in recipe.parameters.items()}


def _dtype(kinds: set[type]) -> Dtype:
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int64"
    return "float64" if kinds <= {int, float} else "string"


# Runs of any points, on an engine: what plans and audits ask for, beside sweeps.


def runs_of(
    points: Points,
    wanted: list[tuple[int, int]],
    doer: Engine,
    report: Report = lambda what, done, total: None,
) -> pa.Table:
    """The rows of these replications of each point, from the first to before the last, in no order; those
    that ``doer`` has are not done again. Raises as a sweep does.
    """
    found = checked(doer.survey(points, range(points.total), lambda what, done: None))
    work = Work(found, Task(points, {}, timeline=False), doer, KEEP_GOING, report)
    if work.plan(wanted):
        work.make(wanted)
    return doer.files.table(work.known.files)


@contextmanager
def kept(out: str | os.PathLike[str] | None, where: Place, say: Callable[[str], None]) -> Iterator[Engine]:
    """Who does runs, and keeps them in ``out``, a directory for results; None: only for now.

    ``where``: who that is; ``say`` hears of what takes a while before that. Raises as a sweep does.
    """
    with ExitStack() as stack:
        folder = out or stack.enter_context(TemporaryDirectory(prefix="tideover-runs-"))
        yield stack.enter_context(engine(where, Path(folder) / FOLDER, say))


# Sweeps: a recipe, something that does the work, and a place for what comes out.


def sweep(
    recipe: Recipe,
    place: str | os.PathLike[str] | None = None,
    *,
    where: Place | None = None,
    options: Options = KEEP_GOING,
    inputs: str | None = None,
    report: Report = lambda what, done, total: None,
) -> Sweep:
    """Do all runs of a recipe that ``place``, the directory of a dataset, does not have; None keeps nothing.

    ``where``: who does them, by default embedded Spark. ``inputs``: hash of what the recipe was made from.

    Raises ScenarioError for a point that cannot be built; JavaNotFound, SparkNotStarted and SweepFailed if
    Spark does not work; RunsFailed if ``options`` ask for that; ValueError and OSError for the place.
    """
    temporary = None
    if place is None:
        temporary = tempfile.TemporaryDirectory(prefix="tideover-sweep-", ignore_cleanup_errors=True)
        place = temporary.name
    with engine(where or Place(), place, lambda what: report(what, 0, 0)) as doer:
        known = complete(recipe, doer, options=options, inputs=inputs, report=report)
        found = Sweep(known, doer.files, temporary)
        if local_path(place) is None:
            found.fetch()  # while there is a Spark to read it
    return found


@contextmanager
def engine(where: Place, place: str | os.PathLike[str], say: Callable[[str], None]) -> Iterator[Engine]:
    """Who does runs, and writes them to ``place``; ``say`` hears of what takes a while before that.

    Raises as ``sweep`` does.
    """
    directory = local_path(place)
    if directory is None and where.remote is not None:
        raise ValueError(
            f"{place}: cannot be written over Spark Connect, which has no way to rename there; "
            "give the cluster as --master, or a directory that this machine and the workers share"
        )
    if where.master is None and where.remote is None:
        if directory is None:
            raise ValueError(f"{place}: only Spark reaches that; name a directory of this machine")
        yield InProcess(LocalFiles(directory))
        return
    session = spark_session(
        where.master or LOCAL, remote=where.remote, conf=where.conf, archive=where.archive
    )
    with on_spark(session, os.fspath(place), say) as doer:
        yield doer
