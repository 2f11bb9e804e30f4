"""From a scenario file to a ``Scenario``.

``load`` for one scenario; ``load_for_strategies`` for the same one under several strategies, to be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tideover.models.config import AppliedProfile, Scenario
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import library, plugins, precedence, profiles, yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, listed
from tideover.scenarios.part_builder import PartBuilder, fields_of, from_plain
from tideover.scenarios.precedence import (
    Setting,
    Settings,
    is_for_others,
    partly_used,
    read_settings,
    setting,
)
from tideover.scenarios.scenario_builder import TOP, ScenarioBuilder
from tideover.scenarios.yaml_source import FROM_SET, Node, Origin


@dataclass(frozen=True)
class Resolved:
    """A scenario, and the complete tree that it was made of, which knows of each value where it comes from.

    ``idle``: why its profile gives it nothing, if so.
    """

    scenario: Scenario
    root: Node
    idle: tuple[Problem, ...] = ()


class Tree(NamedTuple):
    """The tree of a scenario, and the directory in which it looks for other files."""

    root: Node
    directory: Path


Source = str | Path | Mapping[str, Any]
"""A built-in name, a path, or a mapping as a file would hold it."""


def load(source: Source, settings: Settings = ()) -> Scenario:
    """The scenario of a file, of a built-in name, or of a mapping as a file would hold it.

    ``settings``: texts ``dotted.key=value`` as given to ``--set``, or a mapping. Raises ScenarioError.
    """
    return resolve(source, settings).scenario


def resolve(source: Source, settings: Settings = ()) -> Resolved:
    """The same, and the tree that it was made of. Raises ScenarioError."""
    root, directory = tree(source)
    return build(precedence.settle(root, read_settings(settings)), directory)


def unused(source: Source, kind: str, settings: Sequence[Setting]) -> list[str]:
    """Remarks on keys of the strategy that do not concern its ``kind``: of settings, and of the file, where a
    setting has chosen another strategy than the file's.
    """
    keys = precedence.left_out(precedence.settle(tree(source).root, settings))
    said = f"the file's strategy is another than {kind}, which does not have its {listed(keys)}"
    return [*partly_used([kind], settings), *([f"{said}: left out"] if keys else [])]


def load_text(text: str, name: str = "scenario", settings: Sequence[str] = ()) -> Scenario:
    """The scenario of a YAML text; ``name`` stands for the file in messages. Raises ScenarioError."""
    plugins.load_installed()
    root = precedence.settle(yaml_source.parse(text, name), read_settings(settings))
    return build(root, Path()).scenario


def load_for_strategies(
    source: Source | Tree, kinds: Sequence[str] | None = None, settings: Settings = ()
) -> dict[str, Scenario]:
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
    """The tree of a source; what is one stays as it is. Raises ScenarioError."""
    plugins.load_installed()
    if isinstance(source, Tree):
        return source
    if isinstance(source, Mapping):
        return Tree(from_plain(source, Origin("scenario")), Path())
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
    node = root.get(profiles.KEY)
    if node is None or node.value is None:
        return _built(root, known, directory)
    if node.is_mapping:  # a scenario that was completed before
        builder = PartBuilder(directory)
        applied = builder.part(AppliedProfile, node, profiles.KEY)
        if applied is None:
            raise ScenarioError(builder.problems)
        return _with(_built(root, known, directory), applied)
    profile = profiles.named(node, directory, texts)
    completed, taken = profiles.apply(root, profile)
    idle: tuple[Problem, ...] = ()
    if not taken:
        message = f"{profile.name} gives nothing to this scenario: {profiles.why_idle(root, profile)}"
        idle = (node.problem(profiles.KEY, f"{message}; {_fitting(profile)}"),)
    try:
        found = _built(completed, known, directory)
    except ScenarioError as error:
        raise ScenarioError(_with_profile(completed, profile, error.problems)) from None
    about = AppliedProfile(name=profile.name, sha256=profile.sha256, file=profile.file, taken=taken)
    return replace(_with(found, about), idle=idle)


def _built(root: Node, known: Mapping[str, precedence.Parameter], directory: Path) -> Resolved:
    """The scenario of a tree that lacks nothing but short parameters' defaults; raises ScenarioError."""
    builder = ScenarioBuilder(directory)
    complete = precedence.with_defaults(root, known)
    scenario = builder.scenario(complete)
    if scenario is None or builder.problems:
        raise ScenarioError(builder.problems)
    return Resolved(scenario, complete)


def _with(found: Resolved, profile: AppliedProfile) -> Resolved:
    return replace(found, scenario=found.scenario.model_copy(update={"profile": profile}))


def _with_profile(root: Node, profile: profiles.Profile, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Problems; of what is missing they say that the profile does not have it, and what the profile fits."""
    for problem in problems:
        more = profiles.missing(root, profile, problem.key)
        said = problem.message if more is None else f"{problem.message}; {more}; {_fitting(profile)}"
        yield replace(problem, message=said)


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
