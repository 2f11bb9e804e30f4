"""From scenario files, and changes of them in Python, to scenarios: what everybody calls who needs one.

``load`` for one scenario; ``load_for_strategies`` for the same one under several strategies, to be compared.
`precedence` says who wins where several give a value, `scenario_builder` makes parts of the tree.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, Self

from pydantic import PrivateAttr

from tideover.models import config
from tideover.models.config import AppliedProfile, Slo
from tideover.models.detectors.base import Detector
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, QueueSettings, Run, SpoutConfig, Store
from tideover.models.job.stores import StoreKind
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import library, plugins, precedence, profiles, yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, listed, unknown_parameters
from tideover.scenarios.part_builder import PartBuilder, fields_of, from_plain, part_to_data
from tideover.scenarios.precedence import (
    Setting,
    Settings,
    is_for_others,
    partly_used,
    read_settings,
    setting,
)
from tideover.scenarios.scenario_builder import TOP, ScenarioBuilder
from tideover.scenarios.yaml_source import FROM_SET, WHOLE, Giver, Node, Origin
from tideover.sim.faults import Fault

_BLOCKS = ("strategies", precedence.KEY)
"""What a file may hold besides the scenario itself."""

_FIELDS = tuple(config.Scenario.model_fields)
_KEEP: Any = object()
"""Stands for an argument that was not given, where None means something."""


@dataclass(frozen=True)
class Resolved:
    """A scenario, and the complete tree that it was made of, which knows of each value where it comes from.

    ``idle``: why its profile gives it nothing, if so.
    """

    scenario: config.Scenario
    root: Node
    idle: tuple[Problem, ...] = ()


class Tree(NamedTuple):
    """The tree of a scenario, and the directory in which it looks for other files."""

    root: Node
    directory: Path


Source = str | Path | Mapping[str, Any] | config.Scenario
"""A built-in name, a path, a mapping as a file would hold it, or a scenario that is there already."""


def load(source: Source, settings: Settings = ()) -> Scenario:
    """The scenario of a built-in name, a path, a mapping as a file would hold it, or of another scenario.

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping: ``{"run.seed": 3}``.

    Raises ScenarioError for a scenario that cannot be used, TypeError for settings that are neither a list of
    texts nor a mapping.
    """
    root, directory = tree(source)
    root = precedence.settle(root, read_settings(settings))
    return Scenario.of(build(root, directory).scenario, Tree(_kept(root), directory))


def load_text(text: str, name: str = "scenario", settings: Sequence[str] = ()) -> config.Scenario:
    """The scenario of a YAML text; ``name`` stands for the file in messages. Raises ScenarioError."""
    plugins.load_installed()
    root = precedence.settle(yaml_source.parse(text, name), read_settings(settings))
    return build(root, Path()).scenario


def resolve(source: Source, settings: Settings = ()) -> Resolved:
    """A scenario, and the tree that it was made of. Raises ScenarioError."""
    root, directory = tree(source)
    return build(precedence.settle(root, read_settings(settings)), directory)


def unused(source: Source, kind: str, settings: Sequence[Setting]) -> list[str]:
    """Remarks on keys of the strategy that do not concern its ``kind``: of settings, and of the file, where a
    setting has chosen another strategy than the file's.
    """
    keys = precedence.left_out(precedence.settle(tree(source).root, settings))
    said = f"the file's strategy is another than {kind}, which does not have its {listed(keys)}"
    return [*partly_used([kind], settings), *([f"{said}: left out"] if keys else [])]


def load_for_strategies(
    source: Source | Tree, kinds: Sequence[str] | None = None, settings: Settings = ()
) -> dict[str, config.Scenario]:
    """The same scenario under several strategies, by their kinds; raises ScenarioError.

    ``kinds``: None for all that the file's block ``strategies`` names, or its one strategy if there is
    none. A setting of ``strategy.…`` goes to each kind that knows the key; if none does, it is an error.
    """
    root, directory = tree(source)
    given = precedence.expand(root, read_settings(settings))
    if kinds is None:
        block = root.get("strategies")
        names = [kind for kind, _ in block.items()] if block is not None else []
        kinds = names or [build(precedence.settle(root, given), directory).scenario.strategy.kind]
    if any(one.key in ("strategy", "strategy.kind") for one in given):
        message = "does not go with a list of strategies to compare; give the strategies there"
        raise ScenarioError([Problem(FROM_SET, None, "strategy.kind", message)])
    known = set().union(*(fields_of(STRATEGIES[k]) for k in kinds if k in STRATEGIES))
    trees = {}
    for kind in kinds:
        mine = [one for one in given if not is_for_others(one, kind, known)]
        trees[kind] = precedence.settle(root, [*mine, setting("strategy.kind", kind)])
    return {kind: one.scenario for kind, one in zip(trees, build_all(trees.values(), directory), strict=True)}


def tree(source: Source | Tree) -> Tree:
    """The tree of a source; of a scenario what it was built from, if that is known. Raises ScenarioError."""
    plugins.load_installed()
    if isinstance(source, Tree):
        return source
    if isinstance(source, Scenario) and source._tree is not None:
        return source._tree
    if isinstance(source, Mapping | config.Scenario):
        data = part_to_data(source, nulls=False) if isinstance(source, config.Scenario) else source
        return Tree(from_plain(data, Origin("scenario")), Path())
    if isinstance(source, str) and not library.is_path(source):
        return Tree(library.tree(source), Path())
    return Tree(yaml_source.read(Path(source), (*TOP, "grid")), Path(source).parent)


def build(root: Node, directory: Path) -> Resolved:
    """The scenario of a tree; ``directory``: where it looks for files. Raises ScenarioError."""
    (found,) = build_all([root], directory)
    return found


def build_all(roots: Iterable[Node], directory: Path) -> list[Resolved]:
    """Scenarios that belong together, such as one under several strategies; raises ScenarioError.

    A profile that gives nothing to any of them is refused.
    """
    found = [build_one(root, directory) for root in roots]
    idle = [problem for one in found for problem in one.idle]
    if len(idle) == len(found):
        raise ScenarioError(idle[:1])
    return found


def build_one(root: Node, directory: Path, texts: Mapping[str, str] = {}) -> Resolved:
    """The same of one among several, whose profile may give it nothing. Raises ScenarioError.

    ``texts``: of files of profiles that were read before (`profiles.texts_of`).
    """
    root = precedence.with_block(root)
    known = precedence.declared(root, TOP)
    node, applied, profile = root.get(profiles.KEY), None, None
    idle: tuple[Problem, ...] = ()
    if node is not None and node.is_mapping:  # a scenario that was completed before
        builder = PartBuilder(directory)
        applied = builder.part(AppliedProfile, node, profiles.KEY)
        if applied is None:
            raise ScenarioError(builder.problems)
    elif node is not None and node.value is not None:
        profile = profiles.named(node, directory, texts)
        root, taken = profiles.apply(root, profile)
        applied = AppliedProfile(name=profile.name, sha256=profile.sha256, file=profile.file, taken=taken)
        if not taken:
            message = f"{profile.name} gives nothing to this scenario: {profiles.why_idle(root, profile)}"
            idle = (node.problem(profiles.KEY, f"{message}; {_fitting(profile)}"),)
    try:
        found = _built(root, known, directory)
    except ScenarioError as error:
        if profile is None:
            raise
        # Of what is missing it is said that the profile does not have it, and what the profile fits.
        problems = []
        for problem in error.problems:
            more = profiles.missing(root, profile, problem.key)
            said = problem.message if more is None else f"{problem.message}; {more}; {_fitting(profile)}"
            problems.append(replace(problem, message=said))
        raise ScenarioError(problems) from None
    if applied is None:
        return found
    return replace(found, scenario=found.scenario.model_copy(update={"profile": applied}), idle=idle)


def _built(root: Node, known: Mapping[str, precedence.Parameter], directory: Path) -> Resolved:
    """The scenario of a tree that lacks nothing but short parameters' defaults; raises ScenarioError."""
    builder = ScenarioBuilder(directory)
    complete = precedence.with_defaults(root, known)
    scenario = builder.scenario(complete)
    if scenario is None or builder.problems:
        raise ScenarioError(builder.problems)
    return Resolved(scenario, complete)


def _fitting(profile: profiles.Profile) -> str:
    """The built-in scenarios that are complete with a profile, and take something from it, in words."""
    found = []
    for name in library.names():
        root = precedence.settle(tree(name)[0], [setting(profiles.KEY, None)])
        completed, taken = profiles.apply(precedence.with_block(root), profile)
        try:
            _built(completed, precedence.declared(root, TOP), Path())
        except ScenarioError:
            continue
        found += [name] * bool(taken)
    return f"of the built-in scenarios it fits {listed(found) or 'none'}"


P = ParamSpec("P")


def _with_nearest(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that names the nearest parameter for one that it does not know."""
    _, *known = inspect.signature(init).parameters

    @wraps(init)
    def checked(*args: P.args, **given: P.kwargs) -> None:
        if problems := unknown_parameters("Scenario", given, known):
            raise ScenarioError(problems)
        init(*args, **given)

    return checked


class Scenario(config.Scenario):
    """Everything that one simulation depends on. It never changes; ``with_`` makes another one.

    Its parts are made of typed objects (``tideover.parts``), and it is checked as a scenario file is: raises
    ScenarioError, with the key. Numbers that are read from it are nanoseconds, bytes, and tuples per second.
    """

    _tree: Tree | None = PrivateAttr(default=None)
    """What it was built from, and where that looks for files; None: its fields alone say all."""

    @_with_nearest
    def __init__(
        self,
        *,
        name: str,
        topology: Mapping[str, SpoutConfig | BoltConfig],
        strategy: Strategy | str,
        run: Run,
        description: str = "",
        failures: Sequence[Fault] = (),
        detector: Detector | str | None = None,
        hosts: int | Hosts | None = None,
        links: Links | None = None,
        queues: QueueSettings | int | None = None,
        store: Store | None = None,
        stores: Mapping[str, StoreKind | str] | None = None,
        slo: Sequence[Slo | str] = (),
        profile: AppliedProfile | str | None = None,
    ) -> None:
        given = locals() | {"slo": slo or None}
        data = {key: given[key] for key in _FIELDS if given[key] is not None}
        made_of = Tree(from_plain(data, Origin("Scenario")), Path())
        plugins.load_installed()
        super().__init__(**dict(build(*made_of).scenario))
        self._tree = made_of

    @staticmethod
    def of(scenario: config.Scenario, tree: Tree | None = None) -> Scenario:
        """The same scenario, to be varied; ``tree``: what it was built from, if it is to follow from that."""
        found = Scenario.model_construct(**dict(scenario))
        found._tree = tree
        return found

    def with_(
        self,
        changes: Mapping[str, Any] = {},
        /,
        *,
        name: str = _KEEP,
        description: str = _KEEP,
        topology: Mapping[str, SpoutConfig | BoltConfig] = _KEEP,
        strategy: Strategy | str = _KEEP,
        failures: Sequence[Fault] = _KEEP,
        detector: Detector | str | None = _KEEP,
        hosts: int | Hosts | None = _KEEP,
        links: Links = _KEEP,
        queues: QueueSettings | int | None = _KEEP,
        store: Store = _KEEP,
        stores: Mapping[str, StoreKind | str] = _KEEP,
        run: Run = _KEEP,
        slo: Sequence[Slo | str] = _KEEP,
        profile: str | None = _KEEP,
        **parameters: Any,
    ) -> Scenario:
        """The scenario with some keys changed, as if its file or ``--set`` said so; this one stays as it is.

        A typed part replaces all that was there, its defaults included. The name of a strategy picks that one
        with what the scenario's block ``strategies`` has for it. ``changes``: values by dotted key
        (``{"strategy.message_timeout": "30 s"}``), which change nothing but that key; they are applied first.
        ``parameters``: the short parameters that the scenario's file declares.

        Raises ScenarioError, with the key, for whatever a file would be refused for; TypeError for a class
        instead of an object.

        >>> import tideover
        >>> base = tideover.load("wordcount")
        >>> slow = base.with_({"topology.sentences.rate": "5/s"}, strategy=tideover.Amnesia())
        >>> slow.topology["sentences"].arrivals.rate, base.topology["sentences"].arrivals.rate
        (5.0, 10.0)
        """
        named = locals()
        given = {key: named[key] for key in _FIELDS if named[key] is not _KEEP}
        if not isinstance(changes, Mapping):
            raise TypeError(f"with_ takes values by dotted key, as in {{'run.seed': 3}}, not {changes!r}")
        if twice := [key for key in changes if key in given or key in parameters]:
            message = "is given twice, in the mapping and by name; leave one of them out"
            raise ScenarioError([Problem("with_", None, key, message) for key in twice])
        settings = read_settings({**changes, **given, **parameters}, Origin("with_", None, Giver.SETTING))
        root, directory = tree(self)
        root = precedence.settle(root, settings)
        found = build_one(root, directory)
        if found.idle and any(setting.key == profiles.KEY for setting in settings):
            raise ScenarioError(found.idle)
        return Scenario.of(found.scenario, Tree(_kept(root), directory))

    def to_yaml(self, path: str | Path | None = None) -> str:
        """The text of a scenario file that ``load`` reads back to an equal scenario; every key is in it.

        ``path``: a file to write as well; files that the scenario names are then named from the root. Short
        parameters and the block ``strategies`` of the file that it came from are in it, too. Raises OSError.

        >>> import tideover
        >>> print(tideover.load("wordcount").to_yaml().splitlines()[0])
        name: word count
        """
        root = tree(self).root
        blocks = {key: root.value[key].plain() for key in _BLOCKS if key in root.value}
        data = part_to_data(self, nulls=False) | blocks
        # Without null for what is None a file is easier to read, but a block may then give a value instead.
        try:
            same = load(data) == self
        except ScenarioError:
            same = False
        if not same:
            data = part_to_data(self) | blocks
        for component in data["topology"].values() if path is not None else ():
            if "file" in (arrivals := component.get("arrivals", {})):
                arrivals["file"] = str(Path(arrivals["file"]).absolute())
        text = yaml_source.write(yaml_source.quoted(data))
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's; a copy with other fields no longer follows from what this one was built from."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            copied._tree = None
        return copied

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, wherever they came from."""
        return isinstance(other, config.Scenario) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


def _kept(root: Node) -> Node:
    """The tree after a change: what was set counts as given by the scenario from now on, whose strategy is
    chosen.
    """

    def kept(node: Node) -> Origin:
        return node.origin._replace(giver=Giver.CHANGE) if node.is_set else node.origin

    return precedence.with_block(root).with_origins(kept)


def from_mapping(source: Mapping[str, Any], name: str) -> tuple[Node, Tree | None]:
    """The tree of such a mapping, and that of its scenario, if it is a ``Scenario``."""
    scenario = source.get("scenario")
    if isinstance(scenario, config.Scenario):
        return from_plain({**source, "scenario": {}}, Origin(name)), tree(scenario)
    return from_plain(source, Origin(name)), None


def scenario_of(root: Node, directory: Path) -> Tree:
    """The scenario that a file in this directory names by a built-in name or a path, or has as a mapping.
    Raises ScenarioError.
    """
    node = root.get("scenario")
    if node is None:
        message = "is missing; give a built-in name, a path, or a mapping as in a scenario file"
        raise root.refused("scenario", message)
    if node.is_mapping:
        return Tree(node, directory)
    if not isinstance(node.value, str):
        raise node.refused("scenario", f"{node.shown()} is neither a name nor a path nor a mapping")
    path = directory / node.value
    is_path = library.is_path(node.value) or (node.value not in library.names() and os.path.exists(path))
    try:
        return tree(path if is_path else node.value)
    except ScenarioError as error:
        if not any(problem.key == WHOLE for problem in error.problems):
            raise
        messages = [f"{problem.file!r}: {problem.message}" for problem in error.problems]
        raise ScenarioError(node.problem("scenario", each) for each in messages) from None
