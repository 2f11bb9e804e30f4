"""Sweeps: a recipe, something that does the work, and a place for what comes out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tideover.scenarios.spark.masters import LOCAL
from tideover.scenarios.spark.place import Place
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.sweeps.completing import KEEP_GOING, Options, Report, complete
from tideover.scenarios.sweeps.dataset import Sweep
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.files import LocalFiles, local_path
from tideover.scenarios.sweeps.in_process import InProcess
from tideover.scenarios.sweeps.on_spark import on_spark

if TYPE_CHECKING:
    from tideover.scenarios.sweeps.recipe import Recipe


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
