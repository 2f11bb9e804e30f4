"""``compare --strategies all``: under which strategies a scenario can be compared, with which parameters."""

from __future__ import annotations

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

    settings  keys that a strategy needs, and that nobody has given: its usual values
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
            told = ", ".join(f"{one.path[-1]} {one.node.value}" for one in more)
            notes.append(f"{kind}: {told}, since the scenario has none")
    if len(kinds) < 2 and refused:
        raise refused[0]
    return Every(tuple(kinds), usual, tuple(notes))


def needed(tree: Tree, kind: str, given: list[Setting]) -> list[Setting]:
    """The settings without which there is no scenario under a strategy; raises ScenarioError."""
    try:
        loader.load_for_strategies(tree, [kind], given)
    except ScenarioError:
        usual = STRATEGIES[kind].usual if kind in STRATEGIES else {}
        known = {one.path[-1] for one in given if one.key.startswith(("strategy.", f"strategies.{kind}."))}
        block = tree.root.get("strategies", kind)
        known |= {key for key, _ in block.items()} if block is not None and block.is_mapping else set()
        more = [f"strategies.{kind}.{key}={value}" for key, value in usual.items() if key not in known]
        if not more:
            raise
        found = read_settings(more)
        loader.load_for_strategies(tree, [kind], [*found, *given])
        return found
    return []


def _reason(error: ScenarioError) -> str:
    """Why there is no such scenario, in a line."""
    first = error.problems[0]
    return f"{first.key}: {first.message}"
