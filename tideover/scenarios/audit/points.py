"""An audit's runs as points of a sweep: Spark jobs or this process, and a dataset that keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tideover.models import config
from tideover.scenarios.audit.cases import Case
from tideover.scenarios.audit.verdict import Verdict
from tideover.scenarios.scenario import Scenario
from tideover.scenarios.sweeps.completing import Report
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.recipe import Point
from tideover.scenarios.sweeps.several import runs_of
from tideover.scenarios.sweeps.tables import tidy


@dataclass(frozen=True)
class Struck:
    """A scenario with the faults of each case."""

    scenario: config.Scenario
    cases: tuple[Case, ...]
    name: str = "audit"
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Number of cases."""
        return len(self.cases)

    def values(self, number: int) -> Mapping[str, Any]:
        """What the columns of a dataset say of a case: nothing."""
        return {}

    def point(self, number: int) -> Point:
        """The scenario of a case."""
        return Point(number, {}, Scenario.of(self.cases[number].scenario(self.scenario)))


def verdicts(
    scenario: config.Scenario, cases: tuple[Case, ...], doer: Engine, report: Report
) -> list[Verdict]:
    """What becomes of each case."""
    if not cases:
        return []
    found = runs_of(Struck(scenario, cases), [(0, 1)] * len(cases), doer, report)
    rows = {row["point"]: row for row in tidy(found, "runs", {}).to_pylist()}
    return [Verdict.of(rows[number]) for number in range(len(cases))]
