"""Runs of any points, on an engine: what plans and audits ask for, beside sweeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tideover.scenarios.spark.place import Place
from tideover.scenarios.sweeps.completing import KEEP_GOING, Report, Work
from tideover.scenarios.sweeps.dataset import FOLDER
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.points import Points
from tideover.scenarios.sweeps.simulating import Task
from tideover.scenarios.sweeps.survey import checked
from tideover.scenarios.sweeps.sweep import engine

if TYPE_CHECKING:
    import pyarrow as pa


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
