"""What a sweep would do: runs, why they are not there; time and memory, from a pilot."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tideover.scenarios.runs import code
from tideover.scenarios.sweeps.engine import Engine, Task
from tideover.scenarios.sweeps.files import LocalFiles
from tideover.scenarios.sweeps.survey import Unit, split
from tideover.scenarios.sweeps.sweep import Options, Report, Work, begun, no_report

if TYPE_CHECKING:
    from tideover.scenarios.sweeps.recipe import Recipe

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


def forecast(recipe: Recipe, files: LocalFiles, options: Options, report: Report = no_report) -> Forecast:
    """Look at all points and at what is there, and simulate at most three runs; nothing is written.

    Raises ScenarioError for a point that cannot be built.
    """
    work = begun(recipe, Engine(files), options, report)
    total, least = len(work.points), recipe.replications.least
    chunks = list(work.chunks([(0, least)] * total))
    work.known = replace(work.known, chunks=[(chunk.name, len(chunk.units)) for chunk in chunks])
    whole = work.whole()
    missing = [unit for chunk in chunks if chunk.name not in whole for unit in chunk.units]
    _, todo = split(work.usable(whole, missing), missing)
    failed = work.index.filter(work.index["failed"])["file"].to_pylist()
    mine = set(work.known.files)
    report("timing some runs", 0, 0)
    seconds, worker, row = pilot(work.task, todo)
    return Forecast(
        points=total,
        runs=total * least,
        most_runs=total * recipe.replications.most,
        there=work.known.runs - len(missing),
        reused=len(missing) - len(todo),
        failed=sum(path in mine for path in failed),
        to_do=len(todo),
        why=(_why(work),) if todo else (),
        core_s=seconds,
        worker_bytes=worker,
        dataset_bytes=round(row * len(todo)),
        remarks=tuple(work.known.remarks),
    )


def _why(work: Work) -> str:
    """Why runs are not there."""
    before = work.before
    if before is None:
        return "nothing is there yet"
    if before.model != code():
        return "the code that simulates them has changed since"
    if work.damaged:
        return "files are damaged"
    if not before.complete:
        return "the sweep was interrupted, or has been changed since"
    return "the scenario, its points or the number of replications have changed since"


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
