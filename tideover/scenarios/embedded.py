"""The scenario in a file that asks something of it, a sweep or a plan: its key ``scenario``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tideover.models import config
from tideover.scenarios import library, loader
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Tree
from tideover.scenarios.nodes import WHOLE, Node, Origin
from tideover.scenarios.python_values import from_plain
from tideover.scenarios.scenario import tree_of


def from_mapping(source: Mapping[str, Any], name: str) -> tuple[Node, Tree | None]:
    """The tree of such a mapping, and that of its scenario, if it is a ``Scenario``."""
    scenario = source.get("scenario")
    if isinstance(scenario, config.Scenario):
        return from_plain({**source, "scenario": {}}, Origin(name)), tree_of(scenario)
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
        return loader.tree(path if is_path else node.value)
    except ScenarioError as error:
        if not any(problem.key == WHOLE for problem in error.problems):
            raise
        messages = [f"{problem.file!r}: {problem.message}" for problem in error.problems]
        raise ScenarioError(node.problem("scenario", each) for each in messages) from None
