"""Availability of a scenario whose failures are rare: each cause of failures strikes once in runs of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tideover
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.schema.endings import counted
from tideover.models.schema.fields import HEADLINE
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.runs import RunFailed, told
from tideover.scenarios.statistics.availability import CROWDED, YEAR_S, Availability, conditioned
from tideover.scenarios.statistics.causes import causes, moments
from tideover.scenarios.writer import to_data
from tideover.sim.registry import kind_of
from tideover.sim.units import S

FEW = 10
"""Fewer replications leave the recovery times, and so the budget, nearly unknown."""


@dataclass(frozen=True)
class Dependability:
    """What ``tideover availability`` says of a scenario.

    availability   see there
    moments        of each cause between which moments of a run it strikes
    endings        how each of its recoveries ended
    warnings       what an expert would remark
    """

    scenario: Scenario
    strategy: str
    availability: Availability
    moments: Mapping[str, str]
    endings: Mapping[str, list[str]]
    warnings: list[str]

    def __repr__(self) -> str:
        value = self.availability.value
        found = "unknown" if value is None else f"{value:.6%}"
        return f"<Dependability {self.scenario.name!r}: {self.strategy}, availability {found}>"

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints. Undefined is None."""
        run = self.scenario.run
        return {
            "scenario": to_data(self.scenario),
            "strategy": self.strategy,
            "seed": run.seed,
            "replications": run.replications,
            "warnings": self.warnings,
            "availability": self.availability.to_dict(),
            "ended": {name: counted(each) for name, each in self.endings.items()},
            "version": tideover.__version__,
        }


def find(
    scenario: Scenario,
    mtbf: Mapping[str, str],
    *,
    objective: float | None = None,
    over_s: float = YEAR_S,
    report: Callable[[int, int], None] | None = None,
) -> Dependability:
    """Availability from runs of the scenario in which one failure strikes, at a drawn moment.

    ``mtbf``: mean time between failures, as for `causes.causes`; ``objective`` and ``over_s`` as for
    `conditioned`. ``report``: called with the number of runs that are done, and of all.

    Raises ScenarioError, RunFailed, and ValueError like ``conditioned``.
    """
    found, remarks = causes(scenario, mtbf)
    if scenario.run.warmup >= scenario.run.duration:
        raise ScenarioError([Problem("run", None, "run.warmup", "nothing is measured after it")])
    count = scenario.run.replications
    down: dict[str, list[float | None]] = {cause.name: [] for cause in found}
    endings: dict[str, list[str]] = {cause.name: [] for cause in found}
    for replication in range(count):  # all causes of one share its run without failures
        for place, cause in enumerate(found):
            if report is not None:
                report(replication * len(found) + place, count * len(found))
            struck = cause.struck(scenario, replication)
            done = simulated(struck, replication, cause.name)
            down[cause.name].append(down_s(done, struck))
            endings[cause.name] += [row["ended"] for row in done.recoveries]
    rates = {cause.name: cause.rate_per_s for cause in found}
    availability = conditioned(down, rates, objective=objective, over_s=over_s)
    told_of = [*warnings(found[0].struck(scenario, 0)), *remarks, *_remarks(availability, count)]
    times = {cause.name: moments(cause) for cause in found}
    return Dependability(scenario, kind_of(scenario.strategy), availability, times, endings, told_of)


def simulated(scenario: Scenario, replication: int, what: str) -> Replication:
    """A replication; raises RunFailed, which says in ``what``."""
    try:
        return simulate(scenario, replication)
    except Exception as error:
        raise RunFailed(f"{what}, replication {replication}: {told(error)}") from error


def down_s(done: Replication, scenario: Scenario) -> float | None:
    """How long (s) a run was other than without its failure; None: until its end."""
    if any(row[HEADLINE] is None for row in done.recoveries):
        return None
    part = done.dependability["availability"]
    assert part is not None
    return (1 - part) * (scenario.run.duration - scenario.run.warmup) / S


def _remarks(found: Availability, count: int) -> list[str]:
    said = []
    if found.undefined:
        said.append(
            f"availability is unknown: {found.undefined} runs had not recovered at their end; a longer "
            "run.duration may show when they do"
        )
    if count < FEW:
        said.append(f"run.replications is {count}: recovery times are hardly known; try 30")
    if found.value is not None and 1 - found.value > CROWDED:
        said.append(
            f"{1 - found.value:.0%} of failures strike during a recovery from another: what they do to one "
            "another is not simulated; each is taken to last as long as it does alone"
        )
    return said
