"""``compare --strategies all``: under which strategies a scenario can be compared, with which parameters."""

from __future__ import annotations

import json
from typing import NamedTuple

from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import loader, shorthand
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Source, Tree
from tideover.scenarios.settings import Setting, Settings, read_settings

ALL = "all"
"""What stands for all strategies in a list of them."""


class Every(NamedTuple):
    """The strategies: first those that the scenario's block ``strategies`` names, then the others.

    settings  usual values of strategies that the scenario says nothing of, and of keys that one needs
    notes     which these are, and why strategies are left out
    """

    kinds: tuple[str, ...]
    settings: list[Setting]
    notes: tuple[str, ...]


def every_strategy(source: Source | Tree, settings: Settings = ()) -> Every:
    """All registered strategies that go with a scenario; raises ScenarioError if fewer than two do."""
    root, directory = loader.tree(source)
    given = shorthand.expand(root, read_settings(settings))
    block = root.get("strategies")
    named = [kind for kind, _ in block.items()] if block is not None and block.is_mapping else []
    kinds: list[str] = []
    usual: list[Setting] = []
    notes: list[str] = []
    refused: list[ScenarioError] = []
    for kind in dict.fromkeys([*named, *sorted(name for name, _ in STRATEGIES.items())]):
        try:
            more = needed(Tree(root, directory), kind, given)
        except ScenarioError as error:
            refused.append(error)
            notes.append(f"{kind} is left out: {_reason(error)}")
            continue
        kinds.append(kind)
        usual += more
        if more:
            told = ", ".join(f"{one.path[-1]} {one.text.partition('=')[2]}" for one in more)
            notes.append(f"{kind}: {told}, since nothing else is said")
    if len(kinds) < 2 and refused:
        raise refused[0]
    return Every(tuple(kinds), usual, tuple(notes))


def needed(tree: Tree, kind: str, given: list[Setting]) -> list[Setting]:
    """The usual values of a strategy that the scenario says nothing of; else those without which there
    is no scenario under it. Raises ScenarioError.
    """
    root = tree.root
    own, named = root.get("strategy"), root.get("strategy", "kind") or root.get("strategy")
    blocks = [root.get("strategies", kind), own if named is not None and named.value == kind else None]
    if any(block is not None for block in blocks):
        try:
            loader.load_for_strategies(tree, [kind], given)
            return []
        except ScenarioError:
            pass
    said = {one.path[-1] for one in given if one.key.startswith(("strategy.", f"strategies.{kind}."))}
    for block in blocks:
        said |= {key for key, _ in block.items()} if block is not None and block.is_mapping else set()
    usual = STRATEGIES[kind].usual if kind in STRATEGIES else {}
    left = {key: value for key, value in usual.items() if key not in said}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in left.items()}
    found = read_settings([f"strategies.{kind}.{key}={text}" for key, text in texts.items()])
    loader.load_for_strategies(tree, [kind], [*found, *given])
    return found


def _reason(error: ScenarioError) -> str:
    """Why there is no such scenario, in a line."""
    first = error.problems[0]
    return f"{first.key}: {first.message}"
