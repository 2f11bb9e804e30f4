"""Sweeps: every replication of every point of a grid, as Spark jobs or in this process.

A run is one row, a failed one too. Rows are put in order at the end, so neither the number of partitions nor
the machine shows in a result. With a directory to keep rows in, an interrupted sweep goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.models.advice import in_short
from tideover.models.results import headline
from tideover.models.schema.fields import frame as documented
from tideover.scenarios.jobs import on_spark
from tideover.scenarios.kept import Kept
from tideover.scenarios.runs import Outcome, decode, has_timeline
from tideover.scenarios.spark.masters import LOCAL
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.sweeps.grid import Grid
from tideover.scenarios.swept import number, text
from tideover.scenarios.work import Unit, in_process, together, units
from tideover.scenarios.writer import to_data
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results.result import Result

MOST_SECONDS = 500_000
"""A sweep of more simulated seconds than this keeps no timeline: it would be most of the result."""

Report = Callable[[str, float, int], None]
"""Called with what is being done, how many runs are done (a fraction counts), and of how many."""


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
            found.append(result.to_dict() | extra)
        return found

    def _table(self, name: str) -> pd.DataFrame:
        if name not in self._tables:
            self._tables[name] = _joined(self, name)
        return self._tables[name]


def _joined(found: Sweep, name: str) -> pd.DataFrame:
    """One table of all points, in the order of the points and their replications."""
    import pandas as pd

    failed: dict[int, list[tuple[int, str]]] = {}
    for index, replication, error in found.failed if name == "runs" else ():
        failed.setdefault(index, []).append((replication, error))
    every: list[dict[str, Any]] = []
    points: list[int] = []
    for point, result in zip(found.grid.points, found.results, strict=True):
        mine = result.rows(name) + [result.failed_run(*one) for one in failed.get(point.number, ())]
        if point.number in failed:
            mine.sort(key=lambda row: row["replication"])
        every += mine
        points += [point.number] * len(mine)
    frame = documented(name, every)
    swept = _values(found.grid).iloc[points].reset_index(drop=True)
    # A key such as hosts, which stands alone, may be a column already, with the same values.
    return pd.concat([swept.drop(columns=[key for key in swept if key in frame]), frame], axis=1)


def _values(grid: Grid) -> pd.DataFrame:
    """``point`` and the swept values of each point, numbers in their units."""
    import pandas as pd

    cells = {
        key: [number(point.values[key], unit) for point in grid.points]
        for key, unit in grid.parameters.items()
    }
    return pd.DataFrame({"point": [point.number for point in grid.points], **cells})


def sweep(
    grid: Grid,
    *,
    master: str | None = LOCAL,
    remote: str | None = None,
    conf: Mapping[str, Any] | None = None,
    keep: Path | None = None,
    partitions: int | None = None,
    report: Report | None = None,
) -> Sweep:
    """Do all runs of a grid.

    ``master``: Spark's; None does without Spark, in this process. ``remote``, ``conf``: as for
    ``spark_session``. ``keep``: a directory for what is done already; runs that are there, of the
    same scenario, seed, replication and code, are not done again, but failed ones are. ``partitions``: of one
    Spark job for everything; None lets the length of the runs decide.

    Raises JavaNotFound, SparkNotStarted and SweepFailed if Spark does not work, OSError for ``keep``.
    """
    session = None if master is None else spark_session(master, remote=remote, conf=conf)
    say = report or (lambda *_: None)
    simulated = sum(p.scenario.run.duration * p.scenario.run.replications for p in grid.points)
    timeline = simulated <= MOST_SECONDS * S
    asked = [units(point.scenario) for point in grid.points]
    kept = Kept(keep)
    wanted = {unit.key: unit for row in asked for unit in row}
    done = {k: o for k, o in kept.load(wanted).items() if not timeline or has_timeline(o.record or "")}
    todo = together(unit for k, unit in wanted.items() if k not in done)
    total = len(wanted)
    if todo:
        before = total - len(todo)

        def tell(what: str, more: float) -> None:
            say(what, before + more, total)

        tell("simulating", 0)
        work = in_process if session is None else on_spark(session, partitions)
        for outcomes in work(todo, timeline, tell):
            kept.add(outcomes)
            done |= {outcome.key: outcome for outcome in outcomes}
            before += len(outcomes)
            tell("simulating", 0)
    kept.settle(done.values())
    return _collected(grid, asked, done)


def _collected(grid: Grid, asked: Sequence[Sequence[Unit]], done: dict[str, Outcome]) -> Sweep:
    from tideover.models.results.result import Result

    results, failed = [], []
    for point, row in zip(grid.points, asked, strict=True):
        outcomes = [(unit.replication, done[unit.key]) for unit in row]
        failed += [(point.number, number, o.error) for number, o in outcomes if o.error is not None]
        done_well = [decode(o.record) for _, o in outcomes if o.record is not None]
        results.append(Result(point.scenario, done_well, to_data(point.scenario)))
    return Sweep(grid, results, failed)
