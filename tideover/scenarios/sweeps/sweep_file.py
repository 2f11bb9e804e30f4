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

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tideover.models import config
from tideover.models.job.components import Run
from tideover.scenarios import library, loader, precedence, swept, yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, suggest
from tideover.scenarios.loader import Tree
from tideover.scenarios.nodes import WHOLE, Giver, Node, Origin
from tideover.scenarios.python_values import from_plain
from tideover.scenarios.scenario import tree_of
from tideover.scenarios.settings import Setting, Settings, read_settings
from tideover.scenarios.sweeps.factors.axes import Factor, one
from tideover.scenarios.sweeps.recipe import REPLICATIONS, Fixed, Recipe

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

SHORT = {"replications": REPLICATIONS, "seed": "run.seed"}
"""Keys of a sweep file that stand for a key of its scenario."""

MOST_POINTS = 100_000
MOST_RUNS = 1_000_000


def read(source: str | Path | Mapping[str, Any], settings: Settings = ()) -> Recipe:
    """The recipe in a sweep file, in a built-in one by its name, or in a mapping as a file would hold it, of
    which the scenario may also be a ``Scenario``.

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping, for keys of the scenario. A key of
    the grid takes the value or the list of values given here instead of the file's. What the file itself says
    is checked, points are checked when they are made. Raises ScenarioError.
    """
    loader.load_plugins()
    base = None
    if isinstance(source, Mapping) and isinstance(source.get("scenario"), config.Scenario):
        base = tree_of(source["scenario"])
        source = {**source, "scenario": {}}
    root, directory = _tree(source)
    return _SweepFile(root, directory, read_settings(settings), base).recipe()


def _tree(source: str | Path | Mapping[str, Any]) -> tuple[Node, Path]:
    if isinstance(source, Mapping):
        return from_plain(source, Origin("sweep")), Path()
    if isinstance(source, str) and not library.is_path(source):
        return yaml_source.parse(library.sweep_text(source), library.file_name(source)), Path()
    text = yaml_source.text_of(Path(source), "give a YAML file or the name of a built-in sweep")
    root = yaml_source.parse(text, str(source), "a sweep is a mapping with scenario and grid")
    return root, Path(source).parent


class _SweepFile:
    """A sweep file that is being read."""

    def __init__(
        self, root: Node, directory: Path, settings: Sequence[Setting], base: Tree | None = None
    ) -> None:
        """``base``: the tree of the scenario, if it is there already."""
        self.root = root
        self.base = base
        self.directory = directory
        self.problems: list[Problem] = []
        self.fixed = [_given(key, node, Giver.SWEEP, f"set.{key}") for key, node in self._mapping("set")]
        given = [(name, root.get(name)) for name in SHORT]
        self.fixed += [_given(SHORT[name], node, Giver.SWEEP, name) for name, node in given if node]
        self.swept = {key: self._values(key, node) for key, node in self._mapping("grid")}
        self.settings = [setting for setting in settings if not self._replaces(setting)]

    def recipe(self) -> Recipe:
        """Everything that the file says."""
        base, directory = self._base()
        title = self.root.get("name") or base.get("name")
        name = str(title.plain()) if title is not None and title.value is not None else "sweep"
        axes = tuple(one(Factor(key, f"grid.{key}"), nodes) for key, nodes in self.swept.items())
        recipe = Recipe(name, base, directory, axes, self._replications(base), self.root.origin)
        runs = recipe.total * recipe.replications.most
        if runs > MOST_RUNS:
            message = f"amounts to {runs:,} runs; at most {MOST_RUNS:,} are allowed"
            raise self.root.refused("grid", message)
        return recipe

    @property
    def total(self) -> int:
        """Number of points."""
        return math.prod(len(values) for values in self.swept.values())

    def _replications(self, base: Node) -> Fixed:
        """Of every point. A count that is none is told with the points, which it spoils all."""
        node = base.get(*REPLICATIONS.split("."))
        count = node.value if node is not None else None
        return Fixed(
            count if isinstance(count, int) and count > 0 else Run.model_fields["replications"].default
        )

    def _base(self) -> tuple[Node, Path]:
        """The tree that all points have in common, and where it looks for files."""
        self._check_keys()
        scenario = self._scenario()
        if self.problems or scenario is None:
            raise ScenarioError(self.problems)
        if self.total > MOST_POINTS:
            message = f"has {self.total:,} combinations; at most {MOST_POINTS:,} are allowed"
            raise self.root.value["grid"].refused("grid", message)
        tree, directory = scenario
        return precedence.settle(precedence.settle(tree, self.fixed), self.settings), directory

    def _replaces(self, setting: Setting) -> bool:
        """Whether a setting gives other values to a key of the grid; then it is done."""
        if setting.faults or setting.key not in self.swept:
            return False
        node = setting.node
        self.swept[setting.key] = node.value if isinstance(node.value, list) else [node]
        if not self.swept[setting.key]:
            raise node.refused(setting.key, "lists no value; give at least one")
        return True

    def _scenario(self) -> Tree | None:
        """The tree of the scenario."""
        if self.base is not None:
            return self.base
        node = self.root.value.get("scenario")
        if node is None:
            message = "is missing; give a built-in name, a path, or a mapping as in a scenario file"
            self.problems.append(self.root.problem("scenario", message))
            return None
        if isinstance(node.value, dict):
            return Tree(node, self.directory)
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
            raise topology.refused("topology", message)
        for key, node in self.root.value.items():
            if key not in TOP:
                self.problems.append(node.problem(key, f"unknown key; {suggest(key, TOP)}"))
        for key in ("name", "description"):
            node = self.root.value.get(key)
            if node is not None and not isinstance(node.value, str):
                self.problems.append(node.problem(key, f"must be a text, not {node.shown()}"))
        every = [*self.swept, *(setting.key for setting in self.fixed)]
        for i, key in enumerate(self.swept):
            others = [*every[:i], *every[i + 1 :]]
            if clash := next((o for o in others if f"{o}.".startswith(f"{key}.")), None):
                message = f"is swept, so {clash} cannot be set as well; keep one of the two"
                self.problems.append(self.root.value["grid"].value[key].problem(f"grid.{key}", message))

    def _mapping(self, name: str) -> Iterable[tuple[str, Node]]:
        node = self.root.get(name)
        if node is None or node.value is None:
            return ()
        if not node.is_mapping:
            hint = "key: [value, value]" if name == "grid" else "key: value"
            message = f"must be a mapping {hint}, not {node.shown()}"
            self.problems.append(node.problem(name, message))
        return node.items()

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


def _given(key: str, node: Node, giver: Giver, shown: str) -> Setting:
    """A value of the sweep for a key of its scenario; ``shown``: what the sweep's file calls the key."""
    return Setting(key, node.given(giver=giver, key=key, shown=shown))
