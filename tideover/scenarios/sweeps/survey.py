"""What is known of a sweep's points before anything runs: which runs they are, and how long each takes.

Points are built where the runs are: on executors, from the recipe and a number. The driver only learns a few
numbers of each.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tideover.models.advice import warnings
from tideover.models.effort import effort
from tideover.models.evaluation.undisturbed import identity, without_failures
from tideover.scenarios.errors import MOST_SHOWN, Problem, ScenarioError
from tideover.scenarios.runs import digest
from tideover.scenarios.sweeps.rows import FORMAT
from tideover.scenarios.writer import to_data
from tideover.sim.units import S

if TYPE_CHECKING:
    from tideover.scenarios.sweeps.points import Points
    from tideover.scenarios.sweeps.recipe import Point

LEAST_S = 0.02
"""What a run costs at least, beside what it simulates."""


@dataclass(frozen=True)
class Surveyed:
    """A point that can be simulated.

    identity       hash of all that its runs depend on, but for the replication
    document       hash of what their rows say besides: the scenario's name, the swept values
    reference      hash of what they are without failures: runs of one reference and replication share a run
    cost_s         roughly how long one takes on one core of a common machine, with the run without failures
                   that it is held against, which others may share
    simulated_s    how long one is
    remarks        what an expert would remark before running
    idle           why its profile gives it nothing, if so
    """

    number: int
    identity: str
    document: str
    reference: str
    cost_s: float
    simulated_s: float
    remarks: tuple[str, ...]
    idle: tuple[Problem, ...]

    def run(self, replication: int) -> str:
        """The name of one run: whoever has it has the result."""
        return run_name(self.identity, replication)


@dataclass(frozen=True)
class Refused:
    """A point that cannot be built."""

    number: int
    problems: tuple[Problem, ...]


def run_name(identity: str, replication: int) -> str:
    """A run's name, from its scenario's identity."""
    return hashlib.sha256(f"{FORMAT} {identity} {replication}".encode()).hexdigest()[:32]


def survey(recipe: Points, numbers: Iterable[int], model: str) -> Iterator[Surveyed | Refused]:
    """Look at some points; ``model``: hash of the code that simulates them."""
    for number in numbers:
        try:
            point = recipe.point(number)
        except ScenarioError as error:
            yield Refused(number, tuple(error.problems))
            continue
        yield _surveyed(point, model)


def _surveyed(point: Point, model: str) -> Surveyed:
    scenario = point.scenario
    quiet = hashlib.sha256(identity(without_failures(scenario), 0).encode()).hexdigest()[:16]
    said = json.dumps([to_data(scenario), dict(point.values)], default=str)
    return Surveyed(
        point.number,
        digest(scenario, model),
        hashlib.sha256(said.encode()).hexdigest()[:16],
        quiet,
        LEAST_S + effort(scenario).seconds,
        scenario.run.duration / S,
        tuple(map(sys.intern, warnings(scenario))),
        point.idle,
    )


def packed(recipe: Points, numbers: Sequence[int], model: str) -> bytes:
    """The survey of some points as bytes, to be sent from an executor."""
    return pickle.dumps(list(survey(recipe, numbers, model)))


def checked(found: Iterable[Surveyed | Refused]) -> list[Surveyed]:
    """The points in their order; raises ScenarioError with what is wrong with those that were refused."""
    points: list[Surveyed] = []
    problems: dict[Problem, None] = {}
    for one in sorted(found, key=lambda one: one.number):
        if isinstance(one, Surveyed):
            points.append(one)
        elif len(problems) < MOST_SHOWN:
            problems |= dict.fromkeys(one.problems)
    idle = [problem for point in points for problem in point.idle]
    if problems or (points and all(point.idle for point in points)):
        raise ScenarioError(list(problems) or idle[:1])  # a profile that gives nothing to any point
    return points
