"""What is read off the trace of a run. Times in milliseconds."""

from __future__ import annotations

from typing import Any

from tests.oracle import run as reference
from tests.oracle.worlds import MS
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.models.world import World


def trace_of(scenario: Scenario, who: str = "engine") -> Any:
    """``who`` runs it: the engine, or the per-tuple reference."""
    return reference(scenario) if who == "reference" else simulate(scenario, trace=True).trace


def done(scenario: Scenario, component: str) -> list[float]:
    """When tuples were done there."""
    return sorted(row[6] / MS for row in trace_of(scenario).processed if row[0] == component)


def hosts_at_end(scenario: Scenario) -> dict[str, int]:
    """Where each task is."""
    one = World(scenario)
    one.run()
    return {task.name: task.host for task in one.job.tasks}


def assert_same_tuples(one: Scenario, other: Scenario, *figures: str) -> None:
    """Every tuple of the two runs is processed at the same times; ``figures`` are equal, too."""
    ours, theirs = (simulate(each, trace=True) for each in (one, other))
    for name in ("processed", "emitted"):
        assert sorted(getattr(ours.trace, name)) == sorted(getattr(theirs.trace, name))
    for figure in ("ledger", *figures):
        assert getattr(ours, figure) == getattr(theirs, figure), figure
