"""Sweeps: every replication of every point of a grid, as Spark jobs or in this process.

A run is one row, a failed one too. Rows are put in order at the end, so neither the number of partitions nor
the machine shows in a result. With a directory to keep rows in, an interrupted sweep goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.scenarios.grid import Grid, Point, shown
from tideover.scenarios.jobs import LOCAL, on_spark
from tideover.scenarios.kept import Kept
from tideover.scenarios.runs import Outcome, columns, decode, has_timeline, record, rows
from tideover.scenarios.work import Unit, in_process, together, units
from tideover.scenarios.writer import to_data
from tideover.sim.registry import kind_of
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results import Result

MOST_SECONDS = 500_000
"""A sweep of more simulated seconds than this keeps no timeline: it would be most of the result."""

Report = Callable[[str, float, int], None]
"""Called with what is being done, how many runs are done (a fraction counts), and of how many."""


@dataclass
class Sweep:
    """What a sweep found: ``results[i]`` of ``grid.points[i]``, of the runs that did not fail.

    recoveries, runs, timeline    tidy tables: those of ``run``, with ``point`` and the swept keys as columns.
                                  ``timeline`` is empty for a sweep of more than 500,000 simulated seconds.
    failed                        (point, replication, error) of every run that failed
    warnings                      what an expert would remark about the points
    """

    grid: Grid
    results: list[Result]
    failed: list[tuple[int, int, str]]
    _tables: dict[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The swept keys."""
        return self.grid.parameters

    @property
    def warnings(self) -> list[str]:
        """Each remark once."""
        return list(dict.fromkeys(text for result in self.results for text in result.warnings))

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
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name, those that have rows (``runs`` and ``recoveries`` always)."""
        found = {name: self._table(name) for name in ("recoveries", "runs", "timeline")}
        return {name: frame for name, frame in found.items() if name != "timeline" or len(frame)}

    def to_list(self) -> list[dict[str, Any]]:
        """For each point what ``run --json`` prints, and ``point``, ``swept`` (values by key), ``errors``."""
        errors: dict[int, list[str]] = {}
        for number, _, error in self.failed:
            errors.setdefault(number, []).append(error)
        return [
            record(result) | {"point": p.number, "swept": dict(p.values), "errors": errors.get(p.number, [])}
            for p, result in zip(self.grid.points, self.results, strict=True)
        ]

    def _table(self, name: str) -> pd.DataFrame:
        if name not in self._tables:
            self._tables[name] = _joined(self, name)
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
    say = report or _silent
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
        work = in_process if master is None else on_spark(master, partitions)
        for outcomes in work(todo, timeline, tell):
            kept.add(outcomes)
            done |= {outcome.key: outcome for outcome in outcomes}
            before += len(outcomes)
            tell("simulating", 0)
    kept.settle(done.values())
    return _collected(grid, asked, done)


def _silent(what: str, done: float, total: int) -> None:
    """Report nothing."""


def _collected(grid: Grid, asked: Sequence[Sequence[Unit]], done: dict[str, Outcome]) -> Sweep:
    from tideover.models.results import Result

    results, failed = [], []
    for point, row in zip(grid.points, asked, strict=True):
        outcomes = [(unit.replication, done[unit.key]) for unit in row]
        failed += [(point.number, number, o.error) for number, o in outcomes if o.error is not None]
        results.append(
            Result(point.scenario, [decode(o.record) for _, o in outcomes if o.record is not None])
        )
    return Sweep(grid, results, failed)


# The tables.


def _joined(found: Sweep, name: str) -> pd.DataFrame:
    """One table of all points, in the order of the points and their replications."""
    import pandas as pd

    failed: dict[int, list[tuple[int, str]]] = {}
    for number, replication, error in found.failed if name == "runs" else ():
        failed.setdefault(number, []).append((replication, error))
    every: list[dict[str, Any]] = []
    points: list[Point] = []
    for point, result in zip(found.grid.points, found.results, strict=True):
        mine = rows(result, name) + [_failed_run(point, result, *o) for o in failed.get(point.number, ())]
        if point.number in failed:
            mine.sort(key=lambda row: row["replication"])
        every += mine
        points += [point] * len(mine)
    frame = pd.DataFrame(every) if every else pd.DataFrame(columns=columns(name))
    swept = {key: [_cell(point.values[key]) for point in points] for key in found.parameters}
    return frame.assign(point=[point.number for point in points], **swept)


def _failed_run(point: Point, result: Result, replication: int, error: str) -> dict[str, Any]:
    return {
        "scenario": point.scenario.name,
        "strategy": kind_of(point.scenario.strategy),
        "seed": point.scenario.run.seed,
        "replication": replication,
        "error": error,
        "scenario_json": json.dumps(to_data(point.scenario), ensure_ascii=False),
        "version": result.version,
    }


def _cell(value: Any) -> Any:
    """A swept value as a table holds it: numbers and texts as they are, a list or mapping as text."""
    return shown(value) if isinstance(value, list | dict) else value
