"""The block ``slo`` of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tideover.models.config import Scenario
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.nodes import Node, Origin
from tideover.scenarios.objectives.objective import Objective

KEY = "slo"


def objectives_of(scenario: Scenario) -> list[Objective]:
    """The objectives that a scenario names; raises ScenarioError for one that is none, which only a scenario
    that was not loaded can have.
    """
    return [Objective.parse(one.objective, one.level) for one in scenario.slo]


def problems(root: Node) -> Iterator[Problem]:
    """What is wrong with the texts in the block of a scenario's tree; other values are refused elsewhere."""
    block = root.get(KEY)
    entries = block.value if block is not None and isinstance(block.value, list) else []
    for number, entry in enumerate(entries):
        node = entry.get("objective") if entry.is_mapping else entry
        key = f"{KEY}.{number}.objective" if entry.is_mapping else f"{KEY}.{number}"
        if node is not None and isinstance(node.value, str):
            try:
                Objective.parse(node.value, at=node, key=key)
            except ScenarioError as error:
                yield from error.problems


def read(texts: Sequence[str], source: str) -> list[Objective]:
    """The objectives of texts that did not come in a file but from ``source``; raises ScenarioError with all
    that is wrong.
    """
    found, wrong = [], []
    for text in texts:
        try:
            found.append(Objective.parse(text, at=Node(text, Origin(source)), key=text or repr(text)))
        except ScenarioError as error:
            wrong += error.problems
    if wrong:
        raise ScenarioError(wrong)
    return found
