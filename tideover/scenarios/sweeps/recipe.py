"""A sweep's recipe: what its file says, from which any point can be made, anywhere, by its number; and how
many replications a point has.

`sweep_file.read` makes it; engines and `Work` take points from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from tideover.models.schema import TABLES, Column
from tideover.scenarios import loader, plugins, precedence
from tideover.scenarios.errors import MOST_SHOWN, Problem, ScenarioError, suggest
from tideover.scenarios.loader import Resolved, Scenario
from tideover.scenarios.precedence import Setting
from tideover.scenarios.statistics import intervals
from tideover.scenarios.sweeps.factors import Axis, Constraint, Factor, unknown_keys, whole_number
from tideover.scenarios.sweeps.rows import metric_names
from tideover.scenarios.yaml_source import Giver, Node, Origin
from tideover.sim.units import MS, S, parse_duration, parse_size

if TYPE_CHECKING:
    import pyarrow as pa

# How many replications each point has: a number, or as many as make an interval narrow enough.
#
# ```yaml
# replications: {until: time_to_recover_s, half_width: 5 %, least: 5, most: 200, level: 95 %}
# ```

_KEYS = ("until", "half_width", "least", "most", "level")
_PARSERS: dict[str, Callable[[str], float]] = {
    "s": lambda text: parse_duration(text) / S,
    "ms": lambda text: parse_duration(text) / MS,
    "B": parse_size,
}
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%")
_LEAST, _MOST, _LEVEL = 5, 200, 0.95
_MOST_ALLOWED = 100_000


@dataclass(frozen=True)
class Fixed:
    """So many replications of every point."""

    count: int

    @property
    def least(self) -> int:
        """Replications that every point has."""
        return self.count

    @property
    def most(self) -> int:
        """More than these no point has."""
        return self.count


@dataclass(frozen=True)
class Until:
    """Replications until the confidence interval of the mean of ``metric``, a column of runs or recoveries,
    is at most ``half_width`` wide on each side: in the column's unit, or a part of the mean if ``relative``.
    """

    metric: str
    half_width: float
    relative: bool
    least: int = _LEAST
    most: int = _MOST
    level: float = _LEVEL

    def further(self, done: int, n: int, mean: float, std: float) -> int:
        """How many replications a point should have next; ``done`` if these are enough, or ``most`` allowed.

        ``done``: replications that there are, of which ``n`` have a value, with this mean and standard
        deviation (of n - 1 degrees of freedom; NaN where undefined). It is the least number at which
        Student's interval is narrow enough, should the deviation stay what it is (Law, Simulation Modeling
        and Analysis, section 9.4.1), at most twice ``done``: the deviation of few values may be far off.
        """
        if done < self.least:
            return self.least
        limit = min(2 * done, self.most)
        if n < 2 or done >= self.most:
            return max(done, limit)
        if self.narrow(n, mean, std):
            return done
        target = self._target(mean)
        low, high = n, max(n + 1, n * limit // done)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._half(middle, std) <= target else (middle, high)
        return min(limit, max(done + 1, math.ceil(high * done / n)))

    def narrow(self, n: int, mean: float, std: float) -> bool:
        """Whether the interval of ``n`` values is as narrow as was asked."""
        return n > 1 and self._half(n, std) <= self._target(mean)

    def _target(self, mean: float) -> float:
        return self.half_width * abs(mean) if self.relative else self.half_width

    def _half(self, n: int, std: float) -> float:
        """Half the width of Student's interval of n values."""
        return intervals.half_width(n, std, self.level)


def read(node: Node, problems: list[Problem]) -> Until | None:
    """What a mapping under ``replications`` says; None if something is wrong with it."""
    before = len(problems)
    problems += unknown_keys(node, "replications", _KEYS)
    metric = _metric(node, problems)
    width = _width(node, metric and metric[1], problems)
    bounds = (2, _MOST_ALLOWED)
    least = whole_number(node, "replications", "least", bounds, _LEAST, problems) or _LEAST
    bounds = (max(2, least), _MOST_ALLOWED)
    most = whole_number(node, "replications", "most", bounds, max(_MOST, least), problems)
    level = node.get("level")
    confidence = _LEVEL if level is None else _percent(level.value)
    if confidence is None or not 0.5 <= confidence < 1:
        message = "must be a confidence of at least 50 % and less than 100 %, as in 95 %"
        problems.append((level or node).problem("replications.level", message))
    if len(problems) > before or not (metric and width and most and confidence):
        return None
    return Until(metric[0], *width, least, most, confidence)


def _metric(node: Node, problems: list[Problem]) -> tuple[str, Column] | None:
    """A number of runs or recoveries: what a summary calls it, and its column."""
    until = node.get("until")
    if until is None:
        problems.append(node.problem("replications.until", "is missing; give a column, as time_to_recover_s"))
        return None
    known: dict[str, Column] = {}
    for table in ("runs", "recoveries"):
        names = metric_names(table)
        known |= {names[column.name]: column for column in TABLES[table] if column.name in names}
    if not isinstance(until.value, str) or until.value not in known:
        hint = suggest(str(until.plain()), known)
        problems.append(until.problem("replications.until", f"{until.shown()} is no number of a run; {hint}"))
        return None
    return until.value, known[until.value]


def _width(node: Node, column: Column | None, problems: list[Problem]) -> tuple[float, bool] | None:
    """Half the width, and whether it is a part of the mean."""
    given, key = node.get("half_width"), "replications.half_width"
    if given is None:
        message = "is missing; give a part of the mean, as 5 %, or a width in the unit of the column"
        problems.append(node.problem(key, message))
        return None
    part = _percent(given.value)
    if part:
        return part, True
    if column is None:
        return None
    try:
        if column.unit in _PARSERS:
            value = float(_PARSERS[column.unit](str(given.value)))
        elif isinstance(given.value, bool) or not isinstance(given.value, int | float):
            raise ValueError(f"{given.value!r} is not a number ({column.unit})")
        else:
            value = float(given.value)
    except ValueError as error:
        problems.append(given.problem(key, f"{error}; or give a part of the mean, as 5 %"))
        return None
    if not (math.isfinite(value) and value > 0):
        problems.append(given.problem(key, f"must be more than 0, not {given.shown()}"))
        return None
    return value, False


def _percent(value: Any) -> float | None:
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if match is None else float(match[1]) / 100


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


class Points(Protocol):
    """What can be simulated point by point: a sweep's recipe, the requests of a plan. It can be pickled, and
    whoever has it makes the same.

    name, total    what the points are, and how many
    remarks        what an expert would say of them together
    values         the swept values of a point by key, as they were written
    point          a point, built and checked; raises ScenarioError
    """

    @property
    def name(self) -> str: ...

    @property
    def total(self) -> int: ...

    @property
    def remarks(self) -> Sequence[str]: ...

    def values(self, number: int) -> Mapping[str, Any]: ...

    def point(self, number: int) -> Point: ...


class Refused(NamedTuple):
    """A point that cannot be built."""

    number: int
    problems: tuple[Problem, ...]


def built(points: Points, numbers: Iterable[int]) -> Iterator[Point | Refused]:
    """These points, one after the other."""
    for number in numbers:
        try:
            yield points.point(number)
        except ScenarioError as error:
            yield Refused(number, tuple(error.problems))


class Numbered(Protocol):
    """A point, or what is known of it; ``idle``: why its profile gives it nothing, if so."""

    @property
    def number(self) -> int: ...

    @property
    def idle(self) -> tuple[Problem, ...]: ...


P = TypeVar("P", bound=Numbered)


def checked(found: Iterable[P | Refused]) -> list[P]:
    """The points in their order; raises ScenarioError with what is wrong with those that were refused."""
    points: list[P] = []
    problems: dict[Problem, None] = {}
    for one in sorted(found, key=lambda one: one.number):
        if not isinstance(one, Refused):
            points.append(one)
        elif len(problems) < MOST_SHOWN:
            problems |= dict.fromkeys(one.problems)
    if problems or (points and all(point.idle for point in points)):
        # a profile that gives nothing to any point
        raise ScenarioError(list(problems) or [problem for point in points for problem in point.idle][:1])
    return points


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
        return math.prod(map(len, self.axes)) if self._kept is None else len(self._kept)

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

    def resolved(self, number: int) -> Resolved:
        """The scenario of a point, and the tree that it was made of; raises ScenarioError."""
        root = precedence.settle(self.base, self._settings(number))
        return loader.build_one(root, self.directory, self.profiles)

    def checked(self) -> tuple[Point, ...]:
        """All points; raises ScenarioError with what is wrong with them, up to a number of problems."""
        return tuple(checked(built(self, range(self.total))))

    def _settings(self, number: int) -> list[Setting]:
        """The values of a point."""
        if not 0 <= number < self.total:
            message = f"there is no point {number}; points are 0 to {self.total - 1}"
            raise Node(None, self.origin).refused("grid", message)
        place = number if self._kept is None else int(self._kept[number])
        found: list[Setting] = []
        for axis, position in zip(self.axes, np.unravel_index(place, [*map(len, self.axes)]), strict=True):
            nodes = zip(axis.factors, axis.at(int(position)), strict=True)
            found += [factor.set_to(node) for factor, node in nodes]
        return found

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


Wanted = list[tuple[int, int]]
"""For each point from which replication up to which."""


def rounds(
    replications: Fixed | Until, points: int, estimates: Callable[[str], pa.Table]
) -> Iterator[Wanted]:
    """What is to be done, round by round; ``estimates`` of a metric (``point``, ``n``, ``mean``, ``std``) are
    asked for when a round is over.

    What a round asks for depends on what the rounds before found, and on nothing else.
    """
    counts = [replications.least] * points
    yield [(0, count) for count in counts]
    if isinstance(replications, Fixed):
        return
    while True:
        known = _known(estimates(replications.metric), points)
        further = [replications.further(done, *one) for done, one in zip(counts, known, strict=True)]
        if further == counts:
            return
        yield list(zip(counts, further, strict=True))
        counts = further


def too_wide(until: Until, points: int, estimates: Callable[[str], pa.Table]) -> list[str]:
    """What is to be said when all rounds are over of points whose interval is wider than was asked."""
    many = sum(not until.narrow(*one) for one in _known(estimates(until.metric), points))
    if not many:
        return []
    whose = "the only point" if points == 1 else f"{many:,} of {points:,} points"
    said = f"replications: the interval of {until.metric} is wider than was asked for {whose}, with all"
    return [f"{said} {until.most} replications"]


def _known(found: pa.Table, points: int) -> list[tuple[int, float, float]]:
    """Number of values, mean and standard deviation of a metric of each point; NaN where undefined."""
    frame = found.to_pandas().set_index("point").reindex(range(points))
    columns = (frame["n"].fillna(0).astype(int), frame["mean"], frame["std"])
    return list(zip(*(column.tolist() for column in columns), strict=True))
