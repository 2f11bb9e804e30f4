"""A sweep's recipe: what its file says, from which any point can be made, anywhere, by its number alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tideover.scenarios import loader, plugins, precedence
from tideover.scenarios.errors import MOST_SHOWN, Problem, ScenarioError, suggest
from tideover.scenarios.loader import Resolved
from tideover.scenarios.nodes import Giver, Node, Origin
from tideover.scenarios.python_values import from_plain
from tideover.scenarios.scenario import Scenario
from tideover.scenarios.settings import Setting
from tideover.scenarios.sweeps.constraints import Constraint
from tideover.scenarios.sweeps.factors.axes import Axis, Factor
from tideover.scenarios.sweeps.replications import Fixed, Until

Report = Callable[[int, int], None]
"""Called with what is done, and of how many."""

REPLICATIONS = "run.replications"
"""The key of a scenario that a sweep decides for all points alike."""


@dataclass(frozen=True)
class Point:
    """One combination: its number, the swept values by key, as they were written, and the whole scenario.

    ``idle``: why its profile gives it nothing, if so.
    """

    number: int
    values: Mapping[str, Any]
    scenario: Scenario
    idle: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Recipe(plugins.Carrier):
    """All points of a sweep, in the order of the file: the last factor changes fastest. None is made before
    it is asked for, and whoever has the recipe (it can be pickled) makes the same.

    ``base``: what all points have in common; ``directory``: where that looks for files; ``axes``: what
    differs, every combination but those that break one of the ``constraints``; ``origin``: of the sweep's
    file; ``remarks``: what an expert would say of it; ``profiles``: texts of profiles' files, by path.
    """

    name: str
    base: Node
    directory: Path
    axes: tuple[Axis, ...]
    replications: Fixed | Until
    origin: Origin
    constraints: tuple[Constraint, ...] = ()
    remarks: tuple[str, ...] = ()
    profiles: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def factors(self) -> dict[str, Factor]:
        """The swept keys, in the order of the file."""
        return {factor.key: factor for axis in self.axes for factor in axis.factors}

    @cached_property
    def parameters(self) -> dict[str, str]:
        """The swept keys, and the unit in which tables hold the values of each (`swept.unit_of`)."""
        units = (unit for axis in self.axes for unit in axis.units())
        return dict(zip(self.factors, units, strict=True))

    @cached_property
    def total(self) -> int:
        """Number of points."""
        return self.combinations if self._kept is None else len(self._kept)

    @property
    def combinations(self) -> int:
        """Number of points, had they no constraints."""
        return math.prod(len(axis) for axis in self.axes)

    @cached_property
    def _kept(self) -> np.ndarray | None:
        """Numbers of the combinations that break no constraint; None for all."""
        if not self.constraints:
            return None
        kept = np.ones([len(axis) for axis in self.axes], bool)
        for constraint in self.constraints:
            kept &= constraint.holds(self.axes)
        return np.flatnonzero(kept)

    def values(self, number: int) -> dict[str, Any]:
        """The swept values of a point by key, as they were written; raises ScenarioError if there is none."""
        return {setting.key: setting.node.plain() for setting in self._settings(number)}

    def point(self, number: int) -> Point:
        """A point, built and checked; raises ScenarioError."""
        return self._point(number, self._settings(number))

    def at(self, values: Mapping[str, Any]) -> Point:
        """A point of these values, which no list of the file need have; its number is -1.

        ``values``: one for each swept key, as a file would hold it. Raises ScenarioError.
        """
        origin = Origin("point")
        problems = [
            Problem(origin.file, None, key, f"is not swept; {suggest(key, self.factors)}")
            for key in values
            if key not in self.factors
        ]
        problems += [
            Problem(origin.file, None, key, "is missing; give a value to each swept key")
            for key in self.factors
            if key not in values
        ]
        if problems:
            raise ScenarioError(problems)
        nodes = {key: from_plain(values[key], origin, (key,)) for key in self.factors}
        return self._point(-1, [Factor(key, "").set_to(node) for key, node in nodes.items()])

    def resolved(self, number: int) -> Resolved:
        """The scenario of a point, and the tree that it was made of; raises ScenarioError."""
        root = precedence.settle(self.base, self._settings(number))
        return loader.build_one(root, self.directory, self.profiles)

    def checked(self, report: Report = lambda done, total: None) -> tuple[Point, ...]:
        """All points; raises ScenarioError with what is wrong with them, up to a number of problems.

        ``report`` hears how many points have been built.
        """
        return tuple(self._checked(report))

    def _checked(self, report: Report) -> Iterator[Point]:
        found: dict[Problem, None] = {}
        idle: list[Problem] = []
        for number in range(self.total):
            try:
                point = self.point(number)
            except ScenarioError as error:
                found |= dict.fromkeys(error.problems)
                if len(found) >= MOST_SHOWN:
                    break
                continue
            report(number + 1, self.total)
            idle += point.idle
            if not found:
                yield point
        if found or len(idle) == self.total:  # a profile that gives nothing to any point
            raise ScenarioError(found or idle[:1])

    def _settings(self, number: int) -> list[Setting]:
        """The values of a point."""
        if not 0 <= number < self.total:
            message = f"there is no point {number}; points are 0 to {self.total - 1}"
            raise Node(None, self.origin).refused("grid", message)
        rest, found = number if self._kept is None else int(self._kept[number]), []
        for axis in reversed(self.axes):
            rest, position = divmod(rest, len(axis))
            nodes = zip(axis.factors, axis.at(position), strict=True)
            found.append([factor.set_to(node) for factor, node in nodes])
        return [setting for settings in reversed(found) for setting in settings]

    def _point(self, number: int, settings: Sequence[Setting]) -> Point:
        root = self.base
        if root.get(*REPLICATIONS.split(".")) is None:  # a profile has no say in it
            node = Node(self.replications.least, self.origin._replace(giver=Giver.SWEEP))
            root = precedence.settle(root, [Setting(REPLICATIONS, node)])
        found = loader.build_one(precedence.settle(root, settings), self.directory, self.profiles)
        count = found.scenario.run.replications
        if count != self.replications.least:
            message = f"is {count} in point {number}; it cannot be swept: give replications for all points"
            raise Node(None, self.origin).refused(REPLICATIONS, message)
        values = {setting.key: setting.node.plain() for setting in settings}
        return Point(number, values, Scenario.of(found.scenario), found.idle)
