"""All points of a sweep at once, built and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tideover.scenarios.settings import Settings
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.sweeps.recipe import Point, Report


@dataclass(frozen=True)
class Grid:
    """All points of a sweep, in the order of the file: the last key changes fastest.

    ``parameters``: the swept keys, and the unit in which tables hold the values of each (`swept`).
    """

    name: str
    parameters: Mapping[str, str]
    points: tuple[Point, ...]
    remarks: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Number of single runs: replications of all points."""
        return sum(point.scenario.run.replications for point in self.points)

    @property
    def warnings(self) -> list[str]:
        """What an expert would remark about the points, one remark of a kind."""
        from tideover.models.advice import in_short, warnings

        found = (remark for point in self.points for remark in warnings(point.scenario))
        return in_short([*self.remarks, *found])


def read(
    source: str | Path | Mapping[str, Any],
    settings: Settings = (),
    report: Report = lambda done, total: None,
) -> Grid:
    """The points of a sweep, as `sweep_file.read` takes it, all of them checked; raises ScenarioError.
    ``report`` hears how many points have been.
    """
    recipe = sweep_file.read(source, settings)
    return Grid(recipe.name, recipe.parameters, recipe.checked(report), recipe.remarks)
