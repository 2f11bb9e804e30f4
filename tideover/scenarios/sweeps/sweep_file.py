"""Sweep files: one scenario, and values that some of its keys take; every combination is a point.

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tideover.models.job.components import Run
from tideover.scenarios import library, loader, plugins, precedence, profiles, yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, suggest
from tideover.scenarios.loader import Tree
from tideover.scenarios.precedence import Setting, Settings, read_settings
from tideover.scenarios.sweeps import factors, recipe
from tideover.scenarios.sweeps.factors import Axis, Factor
from tideover.scenarios.sweeps.recipe import REPLICATIONS, Fixed, Recipe, Until
from tideover.scenarios.yaml_source import Giver, Node

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

SHORT = {"replications": REPLICATIONS, "seed": "run.seed"}
"""Keys of a sweep file that stand for a key of its scenario."""

MOST_POINTS = 100_000
MOST_COMBINATIONS = 1_000_000
"""Of which constraints leave points."""
MOST_RUNS = 1_000_000


def read(source: str | Path | Mapping[str, Any], settings: Settings = ()) -> Recipe:
    """The recipe in a sweep file, in a built-in one by its name, or in a mapping as a file would hold it, of
    which the scenario may also be a ``Scenario``.

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping, for keys of the scenario. A key of
    the grid takes the value or the list of values given here instead of the file's. What the file itself says
    is checked, points are checked when they are made. Raises ScenarioError.
    """
    plugins.load_installed()
    base, directory = None, Path()
    if isinstance(source, Mapping):
        root, base = loader.from_mapping(source, "sweep")
    elif isinstance(source, str) and not library.is_path(source):
        root = yaml_source.parse(library.sweep_text(source), library.file_name(source))
    else:
        text = yaml_source.text_of(Path(source), "give a YAML file or the name of a built-in sweep")
        root = yaml_source.parse(text, str(source), "a sweep is a mapping with scenario and grid", TOP)
        directory = Path(source).parent
    return _SweepFile(root, directory, read_settings(settings), base).recipe()


class _SweepFile:
    """A sweep file that is being read.

    base      the tree of the scenario, if it is there already
    written   what the file has for each swept key, by what the file calls it
    settings  for keys that are not swept; of one that is, they have taken the file's place
    """

    def __init__(
        self, root: Node, directory: Path, settings: Sequence[Setting], base: Tree | None = None
    ) -> None:
        self.root, self.directory, self.settings, self.base = root, directory, settings, base
        self.problems: list[Problem] = []
        self.remarks: list[str] = []
        self.written: dict[str, Node] = {}
        given = [
            (key, node, f"set.{key}") for key, node in self._items(root.get("set"), "set", "key: value") or ()
        ]
        replications = root.get("replications")
        of_interval = replications is not None and replications.is_mapping
        self.until = recipe.read(replications, self.problems) if replications and of_interval else None
        """What ends the replications of a point, if not their number."""
        short = ((SHORT[name], root.get(name), name) for name in SHORT)
        given += [(key, node, name) for key, node, name in short if node is not None and not node.is_mapping]
        self.fixed = [_given(*one) for one in given]
        self.axes = tuple(axis for axis in self._axes() if axis.factors)

    def recipe(self) -> Recipe:
        """Everything that the file says."""
        base, directory = self._base()
        title = self.root.get("name") or base.get("name")
        where = tuple(factors.read(self.root.get("where"), self.axes, base, self.problems))
        if self.problems:
            raise ScenarioError(self.problems)
        found = Recipe(
            name=str(title.plain()) if title is not None and title.value is not None else "sweep",
            base=base,
            directory=directory,
            axes=self.axes,
            replications=self._replications(base),
            origin=self.root.origin,
            constraints=where,
            remarks=tuple(self.remarks),
            profiles=profiles.texts_of(self._values(base, profiles.KEY), directory),
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
            yield factors.in_step([one], self.problems)
        block = self.root.get("zip")
        groups = block.value if block is not None and isinstance(block.value, list) else [block]
        for number, group in enumerate(groups):
            shown = "zip" if group is block else f"zip.{number}"
            yield factors.in_step(self._factors(group, shown), self.problems)
        block = self.root.get("sample")
        if block is not None and self._items(block, "sample", "design: NAME") is not None:
            given = self._factors(block.get("factors"), "sample.factors")
            axis, remark = factors.sampled(block, given, self.problems)
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

    def _values(self, base: Node, key: str) -> Iterator[Node]:
        """All values of a key, given by whoever does, each as in a point."""
        node = base.get(key)
        yield from [node] if node is not None else []
        for axis in self.axes:
            for column, factor in enumerate(axis.factors):
                if factor.key == key:
                    every = (axis.at(position)[column] for position in range(len(axis)))
                    yield from (factor.set_to(value).node for value in every)

    @property
    def _block(self) -> str:
        """The first key of the file that has factors."""
        return next((name for name in FACTORS if self.root.get(name) is not None), FACTORS[0])

    def _replications(self, base: Node) -> Fixed | Until:
        """Of every point. A count that is none is told with the points, which it spoils all."""
        node = base.get(*REPLICATIONS.split("."))
        if self.until is not None and (node is None or node.origin.giver is not Giver.SETTING):
            return self.until
        count = node.value if node is not None else None
        default = Run.model_fields["replications"].default
        return Fixed(count if isinstance(count, int) and count > 0 else default)

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
            fixed = [*fixed, _given(REPLICATIONS, node, "replications.least")]
        return precedence.settle(precedence.settle(tree.root, fixed), self.settings), tree.directory

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
        swept = {factor: self.written[factor.shown] for axis in self.axes for factor in axis.factors}
        every = [*(factor.key for factor in swept), *(setting.key for setting in self.fixed)]
        for i, (factor, node) in enumerate(swept.items()):
            others = [*every[:i], *every[i + 1 :]]
            if clash := next((o for o in others if f"{o}.".startswith(f"{factor.key}.")), None):
                message = f"is swept, so {clash} cannot be set as well; keep one of the two"
                self.problems.append(node.problem(factor.shown, message))

    def _items(self, node: Node | None, name: str, form: str) -> list[tuple[str, Node]] | None:
        """The entries of a block; None if it is not there, or no mapping, which is a problem."""
        if node is None or node.value is None:
            return None
        if not node.is_mapping:
            self.problems.append(node.problem(name, f"must be a mapping {form}, not {node.shown()}"))
            return None
        return list(node.items())


def _given(key: str, node: Node, shown: str) -> Setting:
    """A value of the sweep for a key of its scenario; ``shown``: what the sweep's file calls the key."""
    return Setting(key, node.given(giver=Giver.SWEEP, key=key, shown=shown))
