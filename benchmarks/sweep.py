"""(f) How well a sweep of points of about 50 ms uses two cores, after Spark's start-up."""

from __future__ import annotations

import time

from benchmarks.table import Row
from benchmarks.worlds import small
from tideover.models.config import Scenario
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.sweep import sweep
from tideover.scenarios.sweeps.grid import Grid
from tideover.scenarios.sweeps.recipe import Point
from tideover.sim.units import S

CORES = 2
POINT_S = 0.05


def lasting(seconds: float, seed: int) -> Scenario:
    """The small scenario over so much simulated time, with a luck of its own."""
    base = small("source_replay")
    return base.model_copy(
        update={"run": base.run.model_copy(update={"duration": round(seconds * S), "seed": seed})}
    )


def grid(points: int, seconds: float, first: int) -> Grid:
    """Points that differ in their seed."""
    rows = tuple(Point(i, {"run.seed": first + i}, lasting(seconds, first + i)) for i in range(points))
    return Grid("benchmark", ("run.seed",), rows)


def took(points: Grid, master: str | None) -> float:
    """Seconds on the clock."""
    begin = time.perf_counter()
    found = sweep(points, master=master)
    assert len(found.results) == len(points.points)
    return time.perf_counter() - begin


def row(quick: bool) -> Row:
    points = 40 if quick else 400
    seconds = 240.0
    took(grid(2, seconds, 1), None)  # imports
    alone = took(grid(8, seconds, 1), None) / 8
    seconds *= POINT_S / alone  # about 50 ms a point on this machine
    master = f"local[{CORES},4]"
    with spark_session(master):
        took(grid(8 * CORES, seconds, 1), master)  # workers start and import
        together = took(grid(points, seconds, 100), master)
    alone = took(grid(points, seconds, 100), None)
    return Row(
        "sweep on two cores",
        f"{points} points of {alone / points * 1e3:.0f} ms in {together:.1f} s",
        alone / CORES / together,
        0.90,
        True,
        f"{alone:.1f} s in one process",
        "of linear, on the clock: other work on the machine counts against it",
    )
