"""Sweep files: one scenario, and values that some of its keys take; every combination is a point.

The commands and `tideover.sweep` call `read`; what it makes, a `Recipe`, goes to the engines. A key of sweep
files is added here, and so is how many replications a point has; what a key may take is in `factors`.

```yaml
scenario: wordcount                       # a built-in name, a path from this file's folder, or a mapping
set: {run.duration: 180 s}                # keys for all points
grid:
  strategy.kind: [source_replay, rsm]     # the first key changes slowest
  failures.0.at: {from: 65 s, to: 75 s, steps: 3}
zip:                                      # in step: the first values of all, then the second ones
  topology.sentences.rate: [10/s, 100/s]
  topology.count.parallelism: [1, 4]
where: [failures.0.at < run.duration]     # only points for which this holds
replications: 10                          # optional; or {until: time_to_recover_s, half_width: 5 %}
seed: 1                                   # optional; short for run.seed
```
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.models.job.components import Run
from tideover.models.schema import TABLES, Column
from tideover.scenarios import library, loader, plugins, precedence, profiles, yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, suggest
from tideover.scenarios.loader import Resolved, Scenario, Tree
from tideover.scenarios.precedence import Setting, Settings, read_settings
from tideover.scenarios.statistics import intervals
from tideover.scenarios.sweeps.factors import Axis, Factor, FactorReader
from tideover.scenarios.sweeps.rows import metric_names
from tideover.scenarios.yaml_source import Giver, Node, Origin
from tideover.sim.units import MS, S, parse_duration, parse_size

if TYPE_CHECKING:
    import pyarrow as pa

TOP = {
    "name": "a short title; default: the scenario's",
    "description": "what the sweep is for",
    "scenario": "what is swept: a built-in name, a path from this file's folder, or a mapping as in a "
    "scenario file; has to be given",
    "set": "values by dotted key of the scenario, for all points: `run.duration: 180 s`",
    "grid": "by dotted key a list of values, or a range `{from: 1 s, to: 60 s, steps: 8, scale: log}`; every "
    "combination is a point, and the last key changes fastest",
    "zip": "by dotted key lists or ranges of one length, whose values go together in step; or a list of such "
    "groups, combined with one another and with the grid",
    "sample": "points drawn from ranges and lists: `design` (`latin_hypercube`, `sobol`, or for "
    "sensitivity `saltelli` or `morris`), `size`, `seed` (default 1) and, by dotted key, `factors`; combined "
    "with all the others",
    "where": "list of comparisons of keys and values, as in `checkpoint_interval < count.window`; points "
    "that break one are left out",
    "replications": "of every point, short for `run.replications`; or as many as narrow an interval down: "
    "`until` (a column of runs or recoveries), `half_width` of the interval of its mean (`5 %` of it, or "
    "`2 s`), `least` (default 5), `most` (default 200), `level` (default 95 %)",
    "seed": "short for `run.seed`",
}
"""The keys of a sweep file, and what they mean."""

FACTORS = ("grid", "zip", "sample")
"""Keys under which keys of the scenario take several values."""
REPLICATIONS = "run.replications"
"""The key of a scenario that a sweep decides for all points alike."""
SHORT = {"replications": REPLICATIONS, "seed": "run.seed"}
"""Keys of a sweep file that stand for a key of its scenario."""

MOST_POINTS = 100_000
MOST_COMBINATIONS = 1_000_000
"""Of which constraints leave points."""
MOST_RUNS = 1_000_000

# How many replications each point has: a number, or as many as make an interval narrow enough.
#
# ```yaml
# replications: {until: time_to_recover_s, half_width: 5 %, least: 5, most: 200, level: 95 %}
# ```

_PARSERS: dict[str, Callable[[str], float]] = {
    "s": lambda text: parse_duration(text) / S,
    "ms": lambda text: parse_duration(text) / MS,
    "B": parse_size,
}
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%")
_LEAST, _MOST, _LEVEL = 5, 200, 0.95
_MOST_ALLOWED = 100_000
Wanted = list[tuple[int, int]]
"""For each point from which replication up to which."""


@dataclass(frozen=True)
class Until:
    """At least so many replications of every point, at most so many, and as many as it takes until the
    confidence interval of the mean of ``metric``, a column of runs or recoveries, is at most ``half_width``
    wide on each side: in the column's unit, or a part of the mean if ``relative``.
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
            narrow = intervals.half_width(middle, std, self.level) <= target
            low, high = (low, middle) if narrow else (middle, high)
        return min(limit, max(done + 1, math.ceil(high * done / n)))

    def narrow(self, n: int, mean: float, std: float) -> bool:
        """Whether the interval of ``n`` values is as narrow as was asked."""
        return n > 1 and intervals.half_width(n, std, self.level) <= self._target(mean)

    def _target(self, mean: float) -> float:
        return self.half_width * abs(mean) if self.relative else self.half_width

    def rounds(self, points: int, estimates: Callable[[str], pa.Table]) -> Iterator[Wanted]:
        """What is to be done, round by round; ``estimates`` of a metric (``point``, ``n``, ``mean``, ``std``)
        are asked for when a round is over. It depends on what the rounds before found, and on nothing else.
        """
        counts = [self.least] * points
        yield [(0, count) for count in counts]
        while self.metric:
            known = _known(estimates(self.metric), points)
            further = [self.further(done, *one) for done, one in zip(counts, known, strict=True)]
            if further == counts:
                return
            yield list(zip(counts, further, strict=True))
            counts = further

    def too_wide(self, points: int, estimates: Callable[[str], pa.Table]) -> list[str]:
        """What is to be said after all rounds of points whose interval is wider than was asked."""
        known = _known(estimates(self.metric), points) if self.metric else []
        many = sum(not self.narrow(*one) for one in known)
        if not many:
            return []
        whose = "the only point" if points == 1 else f"{many:,} of {points:,} points"
        said = f"replications: the interval of {self.metric} is wider than was asked for {whose}, with all"
        return [f"{said} {self.most} replications"]


def fixed(count: int) -> Until:
    """So many replications of every point, whatever they find."""
    return Until("", 0.0, False, count, count)


def _known(found: pa.Table, points: int) -> list[tuple[int, float, float]]:
    """Number of values, mean and standard deviation of a metric of each point; NaN where undefined."""
    frame = found.to_pandas().set_index("point").reindex(range(points))
    columns = (frame["n"].fillna(0).astype(int), frame["mean"], frame["std"])
    return list(zip(*(column.tolist() for column in columns), strict=True))


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
class Made:
    """Scenarios that a function makes of items, as points of which tables say nothing else: plans, audits."""

    name: str
    items: tuple[Any, ...]
    of: Callable[[Any], Scenario]
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return len(self.items)

    def values(self, number: int) -> dict[str, Any]:
        return {}

    def point(self, number: int) -> Point:
        return Point(number, {}, self.of(self.items[number]))


@dataclass(frozen=True)
class Recipe(plugins.Carrier):
    """All points of a sweep, in the order of the file: the last factor changes fastest. None is made before
    it is asked for, and whoever has the recipe (it can be pickled) makes the same.

    ``base``: what all points have in common; ``directory``: where that looks for files; ``axes``: what
    differs; ``kept``: numbers of the combinations that are points, None: all; ``origin``: of the sweep's
    file; ``remarks``: what an expert would say of it; ``profiles``: texts of profiles' files, by path.
    """

    name: str
    base: Node
    directory: Path
    axes: tuple[Axis, ...]
    replications: Until
    origin: Origin
    kept: array[int] | None = None
    remarks: tuple[str, ...] = ()
    profiles: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> dict[str, str]:
        """The swept keys, and the unit in which tables hold the values of each (`factors.unit_of`)."""
        keys = (factor.key for axis in self.axes for factor in axis.factors)
        return dict(zip(keys, (unit for axis in self.axes for unit in axis.units()), strict=True))

    @cached_property
    def total(self) -> int:
        return math.prod(map(len, self.axes)) if self.kept is None else len(self.kept)

    def values(self, number: int) -> dict[str, Any]:
        """The swept values of a point by key, as they were written; raises ScenarioError if there is none."""
        return {setting.key: setting.node.plain() for setting in self._settings(number)}

    def point(self, number: int) -> Point:
        """A point, built and checked; raises ScenarioError."""
        settings = self._settings(number)
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

    def resolved(self, number: int) -> Resolved:
        """The scenario of a point, and the tree that it was made of; raises ScenarioError."""
        root = precedence.settle(self.base, self._settings(number))
        return loader.build_one(root, self.directory, self.profiles)

    def _settings(self, number: int) -> list[Setting]:
        """The values of a point; raises ScenarioError if there is none."""
        if not 0 <= number < self.total:
            message = f"there is no point {number}; points are 0 to {self.total - 1}"
            raise Node(None, self.origin).refused("grid", message)
        place = number if self.kept is None else self.kept[number]
        positions = np.unravel_index(place, [*map(len, self.axes)])
        return [
            factor.set_to(node)
            for axis, position in zip(self.axes, positions, strict=True)
            for factor, node in zip(axis.factors, axis.at(int(position)), strict=True)
        ]


Points = Recipe | Made
"""What can be simulated point by point."""


def read(source: str | Path | Mapping[str, Any], settings: Settings = ()) -> Recipe:
    """The recipe in a sweep file, in a built-in one by its name, or in a mapping as a file would hold it, of
    which the scenario may also be a ``Scenario``.

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping, for keys of the scenario. A key of
    the grid takes the value or the list of values given here instead of the file's. What the file itself says
    is checked, points are checked when they are made. Raises ScenarioError.
    """
    if isinstance(source, str) and not library.is_path(source):
        root = yaml_source.parse(library.text(source, "sweep"), library.file_name(source))
        return _SweepFile(root, Path(), read_settings(settings)).recipe()
    wanted = "give a YAML file or the name of a built-in sweep"
    meant = "a sweep is a mapping with scenario and grid"
    root, directory, base = loader.around(source, "sweep", wanted, meant, TOP)
    return _SweepFile(root, directory, read_settings(settings), base).recipe()


class _SweepFile(FactorReader):
    """A sweep file that is being read.

    base      the tree of the scenario, if it is there already
    written   what the file has for each swept key, by what the file calls it
    settings  for keys that are not swept; of one that is, they have taken the file's place
    """

    def __init__(
        self, root: Node, directory: Path, settings: Sequence[Setting], base: Tree | None = None
    ) -> None:
        super().__init__(directory)
        self.root, self.directory, self.settings, self.base = root, directory, settings, base
        self.remarks: list[str] = []
        self.written: dict[str, Node] = {}
        given = [
            (key, node, f"set.{key}") for key, node in self._items(root.get("set"), "set", "key: value") or ()
        ]
        replications = root.get("replications")
        of_interval = replications is not None and replications.is_mapping
        self.until = self._until(replications) if replications and of_interval else None
        """What ends the replications of a point, if not their number."""
        short = ((SHORT[name], root.get(name), name) for name in SHORT)
        given += [(key, node, name) for key, node, name in short if node is not None and not node.is_mapping]
        self.fixed = [self.given(*one) for one in given]
        self.axes = tuple(axis for axis in self._axes() if axis.factors)

    def recipe(self) -> Recipe:
        base, directory = self._base()
        node = base.get(profiles.KEY)
        named = [] if node is None else [node]  # profiles, by whoever gives one, each as in a point
        for axis in self.axes:
            for column, factor in enumerate(axis.factors):
                if factor.key == profiles.KEY:
                    values = (axis.at(position)[column] for position in range(len(axis)))
                    named += [factor.set_to(value).node for value in values]
        kept = self.kept(self.root.get("where"), self.axes, base)
        if self.problems:
            raise ScenarioError(self.problems)
        found = Recipe(
            name=self.name(self.root, base, "sweep"),
            base=base,
            directory=directory,
            axes=self.axes,
            replications=self._replications(base),
            origin=self.root.origin,
            kept=kept,
            remarks=tuple(self.remarks),
            profiles=profiles.texts_of(named, directory),
        )
        if found.total == 0:
            every = math.prod(map(len, self.axes))
            message = f"leaves none of {every:,} points; take a constraint away, or add values"
            raise self.root.value["where"].refused("where", message)
        runs = found.total * found.replications.most
        if runs > MOST_RUNS:
            message = f"amounts to {runs:,} runs; at most {MOST_RUNS:,} are allowed"
            raise self.root.refused(self._block, message)
        return found

    def _axes(self) -> Iterator[Axis]:
        """What differs between points; the last axis changes fastest."""
        for one in self._factors(self.root.get("grid"), "grid"):
            yield self.in_step([one])
        block = self.root.get("zip")
        groups = block.value if block is not None and isinstance(block.value, list) else [block]
        for number, group in enumerate(groups):
            shown = "zip" if group is block else f"zip.{number}"
            yield self.in_step(self._factors(group, shown))
        block = self.root.get("sample")
        if block is not None and self._items(block, "sample", "design: NAME") is not None:
            given = self._factors(block.get("factors"), "sample.factors")
            axis, remark = self.sampled(block, given)
            self.remarks += [remark] if remark else []
            yield from [axis] if axis else []

    def _factors(self, block: Node | None, shown: str) -> list[tuple[Factor, Node]]:
        """The factors of a block, each with what is to be read: the file's, or what was set instead."""
        found = []
        for key, node in self._items(block, shown, "key: [value, value]") or ():
            factor = Factor(key, f"{shown}.{key}")
            self.written[factor.shown] = node
            replaced = [one for one in self.settings if one.key == key and not one.faults]
            self.settings = [one for one in self.settings if one not in replaced]
            found.append((factor, replaced[-1].node if replaced else node))
        return found

    @property
    def _block(self) -> str:
        """The first key of the file that has factors."""
        return next((name for name in FACTORS if self.root.get(name) is not None), FACTORS[0])

    def _replications(self, base: Node) -> Until:
        """Of every point. A count that is none is told with the points, which it spoils all."""
        node = base.get(*REPLICATIONS.split("."))
        if self.until is not None and (node is None or node.origin.giver is not Giver.SETTING):
            return self.until
        count = node.value if node is not None else None
        default = Run.model_fields["replications"].default
        return fixed(count if isinstance(count, int) and count > 0 else default)

    def _base(self) -> tuple[Node, Path]:
        """The tree that all points have in common, and where it looks for files."""
        self._check_keys()
        tree = self.base
        if tree is None:
            try:
                tree = loader.scenario_of(self.root, self.directory)
            except ScenarioError as error:
                self.problems += error.problems
        if self.problems or tree is None:
            raise ScenarioError(self.problems)
        total = math.prod(map(len, self.axes))
        most = MOST_POINTS if self.root.get("where") is None else MOST_COMBINATIONS
        if total > most:
            message = f"has {total:,} combinations; at most {most:,} are allowed"
            raise self.root.value[self._block].refused(self._block, message)
        fixed = self.fixed
        if self.until is not None:
            node = Node(self.until.least, self.root.value["replications"].origin)
            fixed = [*fixed, self.given(REPLICATIONS, node, "replications.least")]
        return precedence.settle(precedence.settle(tree.root, fixed), self.settings), tree.directory

    def _check_keys(self) -> None:
        if (topology := self.root.value.get("topology")) is not None:
            message = "belongs to a scenario; this must be a sweep file, with scenario: and grid:"
            raise topology.refused("topology", message)
        self.unknown_keys(self.root, "", TOP)
        self.texts(self.root)
        swept = {factor: self.written[factor.shown] for axis in self.axes for factor in axis.factors}
        every = [*(factor.key for factor in swept), *(setting.key for setting in self.fixed)]
        for i, (factor, node) in enumerate(swept.items()):
            others = [*every[:i], *every[i + 1 :]]
            if clash := next((o for o in others if f"{o}.".startswith(f"{factor.key}.")), None):
                message = f"is swept, so {clash} cannot be set as well; keep one of the two"
                self.refuse(node, factor.shown, message)

    def _items(self, node: Node | None, name: str, form: str) -> list[tuple[str, Node]] | None:
        """The entries of a block; None if it is not there, or no mapping, which is a problem."""
        if node is None or node.value is None:
            return None
        if not node.is_mapping:
            self.refuse(node, name, f"must be a mapping {form}, not {node.shown()}")
            return None
        return list(node.items())

    def _until(self, node: Node) -> Until | None:
        """What a mapping under ``replications`` says; None if something is wrong with it."""
        before = len(self.problems)
        self.unknown_keys(node, "replications", ("until", "half_width", "least", "most", "level"))
        metric = self._metric(node)
        width = self._width(node, metric and metric[1])
        bounds = (2, _MOST_ALLOWED)
        least = self.whole_number(node, "replications", "least", bounds, _LEAST) or _LEAST
        bounds = (max(2, least), _MOST_ALLOWED)
        most = self.whole_number(node, "replications", "most", bounds, max(_MOST, least))
        level = node.get("level")
        confidence = _LEVEL if level is None else _percent(level.value)
        if confidence is None or not 0.5 <= confidence < 1:
            message = "must be a confidence of at least 50 % and less than 100 %, as in 95 %"
            self.refuse(level or node, "replications.level", message)
        if len(self.problems) > before or not (metric and width and most and confidence):
            return None
        return Until(metric[0], *width, least, most, confidence)

    def _metric(self, node: Node) -> tuple[str, Column] | None:
        """A number of runs or recoveries: what a summary calls it, and its column."""
        until, key = node.get("until"), "replications.until"
        if until is None:
            self.refuse(node, key, "is missing; give a column, as time_to_recover_s")
            return None
        known = {
            name: column
            for table in ("runs", "recoveries")
            for column in TABLES[table]
            if (name := metric_names(table).get(column.name)) is not None
        }
        if not isinstance(until.value, str) or until.value not in known:
            hint = suggest(str(until.plain()), known)
            self.refuse(until, key, f"{until.shown()} is no number of a run; {hint}")
            return None
        return until.value, known[until.value]

    def _width(self, node: Node, column: Column | None) -> tuple[float, bool] | None:
        """Half the width, and whether it is a part of the mean."""
        given, key = node.get("half_width"), "replications.half_width"
        if given is None:
            message = "is missing; give a part of the mean, as 5 %, or a width in the unit of the column"
            self.refuse(node, key, message)
            return None
        if part := _percent(given.value):
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
            self.refuse(given, key, f"{error}; or give a part of the mean, as 5 %")
            return None
        if not (math.isfinite(value) and value > 0):
            self.refuse(given, key, f"must be more than 0, not {given.shown()}")
            return None
        return value, False


def _percent(value: Any) -> float | None:
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if match is None else float(match[1]) / 100
