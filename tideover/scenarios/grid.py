"""Sweep files: one scenario, and values that some of its keys take; every combination is a point of the grid.

```yaml
scenario: wordcount                       # a built-in name, a path from this file's folder, or a mapping
set: {run.duration: 180 s}                # keys for all points
grid:
  strategy.kind: [source_replay, rsm]     # the first key changes slowest
  failures.0.at: [65 s, 75 s]
replications: 10                          # optional; short for run.replications
seed: 1                                   # optional; short for run.seed
```
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tideover.models.config import Scenario
from tideover.scenarios import library, loader, overrides, swept, yaml_source
from tideover.scenarios.errors import MOST_SHOWN, Problem, ScenarioError, suggest
from tideover.scenarios.overrides import Settings
from tideover.scenarios.yaml_source import FROM_SET, WHOLE, Node

TOP = {
    "name": "a short title; default: the scenario's",
    "description": "what the sweep is for",
    "scenario": "what is swept: a built-in name, a path from this file's folder, or a mapping as in a "
    "scenario file; has to be given",
    "set": "values by dotted key of the scenario, for all points: `run.duration: 180 s`",
    "grid": "lists of values by dotted key; every combination is a point, and the last key changes fastest",
    "replications": "short for `run.replications`",
    "seed": "short for `run.seed`",
}
"""The keys of a sweep file, and what they mean."""

SHORT = {"replications": "run.replications", "seed": "run.seed"}
"""Keys of a sweep file that stand for a key of its scenario."""

MOST_POINTS = 100_000
MOST_RUNS = 1_000_000

Report = Callable[[int, int], None]
"""Called with what is done, and of how many."""


@dataclass(frozen=True)
class Point:
    """One combination: its number, the swept values by key, as they were written, and the whole scenario."""

    number: int
    values: Mapping[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Grid:
    """All points of a sweep, in the order of the file: the last key changes fastest.

    ``parameters``: the swept keys, and the unit in which tables hold the values of each (`swept`).
    """

    name: str
    parameters: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def runs(self) -> int:
        """Number of single runs: replications of all points."""
        return sum(point.scenario.run.replications for point in self.points)

    @property
    def warnings(self) -> list[str]:
        """What an expert would remark about the points, one remark of a kind."""
        from tideover.models.advice import in_short, warnings

        return in_short(remark for point in self.points for remark in warnings(point.scenario))


def read(
    source: str | Path | Mapping[str, Any], settings: Settings = (), report: Report | None = None
) -> Grid:
    """The grid of a sweep file, of a built-in name, or of a mapping as a file would hold it.

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping, for keys of the scenario. A key of
    the grid takes the value or the list of values given here instead of the file's. Every point is checked
    before this returns; raises ScenarioError. ``report`` hears how many points have been.
    """
    loader.load_plugins()
    root, directory = _tree(source)
    return _Sweep(root, directory, overrides.texts(settings)).grid(report or _silent)


def _silent(done: int, total: int) -> None:
    """Report nothing."""


def _tree(source: str | Path | Mapping[str, Any]) -> tuple[Node, Path]:
    if isinstance(source, Mapping):
        return yaml_source.from_plain(source, "sweep"), Path()
    if isinstance(source, str) and not library.is_path(source):
        return yaml_source.parse(library.sweep_text(source), library.file_name(source)), Path()
    text = yaml_source.text_of(Path(source), "give a YAML file or the name of a built-in sweep")
    root = yaml_source.parse(text, str(source), "a sweep is a mapping with scenario and grid")
    return root, Path(source).parent


class _Sweep:
    """A sweep file that is being read."""

    def __init__(self, root: Node, directory: Path, settings: Sequence[str]) -> None:
        self.root = root
        self.directory = directory
        self.problems: list[Problem] = []
        self.fixed = self._mapping("set")
        self.swept = {key: self._values(key, node) for key, node in self._mapping("grid").items()}
        self.settings = [text for text in settings if not self._replaces(text)]

    def grid(self, report: Report) -> Grid:
        """All points, checked."""
        self._check_keys()
        scenario = self._scenario()
        if self.problems or scenario is None:
            raise ScenarioError(self.problems)
        base, directory = scenario
        total = math.prod(len(values) for values in self.swept.values())
        if total > MOST_POINTS:
            message = f"has {total:,} combinations; at most {MOST_POINTS:,} are allowed"
            raise ScenarioError([self.root.value["grid"].problem("grid", message)])
        base = self._settled(base)
        name = self.root.value.get("name")
        points = tuple(self._points(base, directory, report, total))
        title = points[0].scenario.name if name is None else str(name.value)
        units = {key: swept.unit_of(node.plain() for node in nodes) for key, nodes in self.swept.items()}
        grid = Grid(title, units, points)
        if grid.runs > MOST_RUNS:
            message = f"amounts to {grid.runs:,} runs; at most {MOST_RUNS:,} are allowed"
            raise ScenarioError([self.root.problem("grid", message)])
        return grid

    def _points(self, base: Node, directory: Path, report: Report, total: int) -> Iterator[Point]:
        found: dict[Problem, None] = {}
        idle: list[Problem] = []
        for number, chosen in enumerate(itertools.product(*self.swept.values())):
            nodes = dict(zip(self.swept, chosen, strict=True))
            texts = [overrides.text_of(key, node) for key, node in nodes.items()]
            try:
                scenario, reason = loader.built(loader.settled(base, texts), directory)
            except ScenarioError as error:
                found |= dict.fromkeys(self._placed(problem, nodes) for problem in error.problems)
                if len(found) >= MOST_SHOWN:
                    break
                continue
            report(number + 1, total)
            idle += [self._placed(problem, nodes) for problem in reason]
            if not found:
                yield Point(number, {key: node.plain() for key, node in nodes.items()}, scenario)
        if found or len(idle) == total:  # a profile that gives nothing to any point
            raise ScenarioError(found or idle[:1])

    def _settled(self, base: Node) -> Node:
        """The scenario with what holds for all points: the file's ``set``, then the command line's."""
        short = {key: self.root.value[key] for key in SHORT if key in self.root.value}
        fixed = self.fixed | {SHORT[key]: node for key, node in short.items()}
        texts = [overrides.text_of(key, node) for key, node in fixed.items()]
        try:
            base = loader.settled(base, texts)
        except ScenarioError as error:
            raise ScenarioError(self._placed(problem, {}) for problem in error.problems) from None
        return loader.settled(base, self.settings)

    def _placed(self, problem: Problem, chosen: Mapping[str, Node]) -> Problem:
        """A problem of a value that this file set, at the line where it was set."""
        if problem.file != FROM_SET:
            return problem
        given = {key: (f"grid.{key}", node) for key, node in chosen.items()}
        if not _concerned(problem.key, given):
            # The command line comes after what the file fixes.
            if _concerned(problem.key, [text.partition("=")[0].strip() for text in self.settings]):
                return problem
            given = {key: (f"set.{key}", node) for key, node in self.fixed.items()}
            given |= {SHORT[k]: (k, self.root.value[k]) for k in SHORT if k in self.root.value}
        key = _concerned(problem.key, given)
        if key is None:
            return problem
        shown_key, node = given[key]
        rest = problem.key.removeprefix(key) if problem.key.startswith(key) else ""
        return Problem(node.source, None if node.is_set else node.line, f"{shown_key}{rest}", problem.message)

    def _replaces(self, setting: str) -> bool:
        """Whether a setting gives other values to a key of the grid; then it is done."""
        key, equals, text = setting.partition("=")
        if not equals or key.strip() not in self.swept:
            return False
        node = yaml_source.parse_value(text, key.strip())
        self.swept[key.strip()] = node.value if isinstance(node.value, list) else [node]
        if not self.swept[key.strip()]:
            raise ScenarioError([node.problem(key.strip(), "lists no value; give at least one")])
        return True

    def _scenario(self) -> tuple[Node, Path] | None:
        """The tree of the scenario, and where it looks for files."""
        node = self.root.value.get("scenario")
        if node is None:
            message = "is missing; give a built-in name, a path, or a mapping as in a scenario file"
            self.problems.append(self.root.problem("scenario", message))
            return None
        if isinstance(node.value, dict):
            return node, self.directory
        if not isinstance(node.value, str):
            message = f"{node.shown()} is neither a name nor a path nor a mapping"
            self.problems.append(node.problem("scenario", message))
            return None
        path = self.directory / node.value
        is_path = library.is_path(node.value) or (node.value not in library.names() and path.exists())
        try:
            return loader.tree(path if is_path else node.value)
        except ScenarioError as error:
            if not any(problem.key == WHOLE for problem in error.problems):
                raise
            messages = [f"{problem.file!r}: {problem.message}" for problem in error.problems]
            self.problems += [node.problem("scenario", message) for message in messages]
            return None

    def _check_keys(self) -> None:
        if (topology := self.root.value.get("topology")) is not None:
            message = "belongs to a scenario; this must be a sweep file, with scenario: and grid:"
            raise ScenarioError([topology.problem("topology", message)])
        for key, node in self.root.value.items():
            if key not in TOP:
                self.problems.append(node.problem(key, f"unknown key; {suggest(key, TOP)}"))
        for key in ("name", "description"):
            node = self.root.value.get(key)
            if node is not None and not isinstance(node.value, str):
                self.problems.append(node.problem(key, f"must be a text, not {node.shown()}"))
        every = [*self.swept, *self.fixed, *(SHORT[key] for key in SHORT if key in self.root.value)]
        for i, key in enumerate(self.swept):
            others = [*every[:i], *every[i + 1 :]]
            if clash := next((o for o in others if f"{o}.".startswith(f"{key}.")), None):
                message = f"is swept, so {clash} cannot be set as well; keep one of the two"
                self.problems.append(self.root.value["grid"].value[key].problem(f"grid.{key}", message))

    def _mapping(self, name: str) -> dict[str, Node]:
        node = self.root.value.get(name)
        if node is None or node.value is None:
            return {}
        if not isinstance(node.value, dict):
            hint = "key: [value, value]" if name == "grid" else "key: value"
            message = f"must be a mapping {hint}, not {node.shown()}"
            self.problems.append(node.problem(name, message))
            return {}
        return node.value

    def _values(self, key: str, node: Node) -> list[Node]:
        if not isinstance(node.value, list) or not node.value:
            what = "an empty list" if node.value == [] else node.shown()
            message = f"must be a list of values, as in [10/s, 20/s], not {what}"
            self.problems.append(node.problem(f"grid.{key}", message))
            return []
        plain = [json.dumps(item.plain()) for item in node.value]
        for i, item in enumerate(node.value):
            if plain[i] in plain[:i]:
                message = f"lists {swept.text(item.plain())} twice; give each value once"
                self.problems.append(item.problem(f"grid.{key}", message))
        return node.value


def _concerned(key: str, given: Any) -> str | None:
    """The longest of the given keys that is this key, or above it, or below it."""
    near = [g for g in given if f"{key}.".startswith(f"{g}.") or f"{g}.".startswith(f"{key}.")]
    return max(near, key=len, default=None)
