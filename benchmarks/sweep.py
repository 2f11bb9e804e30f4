"""(f) How well a sweep of points of about 50 ms uses two cores, after Spark's start-up."""

from __future__ import annotations

import time

from benchmarks.table import Row
from benchmarks.worlds import small
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.spark.settings import Place
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.sweeps.sweep import sweep
from tideover.scenarios.sweeps.sweep_file import Recipe
from tideover.sim.units import S

CORES = 2
POINT_S = 0.05


def asked(points: int, seconds: float, first: int) -> Recipe:
    """Points that differ in their seed, over so much simulated time."""
    base = small("source_replay")
    scenario = base.model_copy(
        update={"run": base.run.model_copy(update={"duration": round(seconds * S), "replications": 1})}
    )
    seeds = list(range(first, first + points))
    return sweep_file.read({"scenario": scenario, "grid": {"run.seed": seeds}})


def took(recipe: Recipe, master: str | None) -> float:
    """Seconds on the clock."""
    begin = time.perf_counter()
    found = sweep(recipe, where=Place(master))
    assert not found.points["failed"].any()
    return time.perf_counter() - begin


def row(quick: bool) -> Row:
    points = 40 if quick else 400
    seconds = 240.0
    took(asked(2, seconds, 1), None)  # imports
    alone = took(asked(8, seconds, 1), None) / 8
    seconds *= POINT_S / alone  # about 50 ms a point on this machine
    master = f"local[{CORES},4]"
    with spark_session(master):
        took(asked(8 * CORES, seconds, 1), master)  # workers start and import
        together = took(asked(points, seconds, 100), master)
    alone = took(asked(points, seconds, 100), None)
    return Row(
        "sweep on two cores",
        f"{points} points of {alone / points * 1e3:.0f} ms in {together:.1f} s",
        alone / CORES / together,
        0.90,
        True,
        f"{alone:.1f} s in one process",
        "of linear, on the clock: other work on the machine counts against it",
    )
