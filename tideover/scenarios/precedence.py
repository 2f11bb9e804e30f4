"""Who wins, where several give a value for the same key of a scenario. Nothing else decides that.

From the weakest to the strongest (``RISING``):

==============  ============================================================================================
a part's own    the default of its field; it is not in the tree, the part adds it
``DEFAULT``     the ``default`` of a short parameter
``PROFILE``     a measured value of the scenario's profile
``FILE``        the scenario file: first its block ``strategies``, then everything else
``CHANGE``      ``Scenario.with_``, and settings of ``tideover.load``, once the scenario is there
``SWEEP``       ``set``, ``seed`` and ``replications`` of a sweep file
``SETTING``     ``--set``, and settings in Python; a short parameter stands for the keys that it sets
``POINT``       a grid point; a ``--set`` of a swept key takes the place of the grid's values
==============  ============================================================================================

- The stronger one wins, whatever the order in which they are given; of two that are equal, the later one.
- Whoever gives a mapping or a list gives all of it; who is weaker may still add keys that are not in it.
- ``null`` is a value as well: nobody weaker gives the key, and the part's own default holds.
- ``strategies.KIND.key`` counts for ``strategy.key`` if the strategy is of that kind. Of the two, what is set
  from outside of the file wins over what is not; if both are, ``strategy.key`` wins.
- If somebody from outside of the file chose the kind, the file's own ``strategy`` was meant for another: its
  block wins over it, and of its keys only those count that the new kind knows.
- To a strategy that does not know a key, no profile and no short parameter's default gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tideover.models.detectors.base import DETECTORS
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import shorthand
from tideover.scenarios.errors import Problem, ScenarioError, suggest
from tideover.scenarios.nodes import Giver, Node
from tideover.scenarios.part_builder import fields_of
from tideover.scenarios.settings import Setting

RISING = (Giver.DEFAULT, Giver.PROFILE, Giver.FILE, Giver.CHANGE, Giver.SWEEP, Giver.SETTING, Giver.POINT)


def strength(node: Node) -> int:
    """The greater wins."""
    return RISING.index(node.origin.giver)


def settle(root: Node, settings: Sequence[Setting]) -> Node:
    """The tree with all settings, short parameters among them; the given one stays as it was.

    Raises ScenarioError with everything that is wrong with them.
    """
    problems: list[Problem] = []
    for setting in sorted(shorthand.expand(root, settings), key=lambda setting: strength(setting.node)):
        try:
            root = root if setting.faults else put(root, setting)
            problems += setting.faults
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return root


def put(root: Node, setting: Setting) -> Node:
    """The tree with a setting, or the same tree if it does not win; raises ScenarioError if the tree can have
    no such key.
    """
    there = root.get(*setting.path)
    if there is not None and strength(setting.node) < strength(there):
        return root
    if strength(setting.node) < RISING.index(Giver.FILE) and not _concerns(root, setting.path):
        return root
    return _replaced(root, setting, 0)


def with_defaults(root: Node, known: Mapping[str, shorthand.Parameter]) -> Node:
    """The tree with the defaults of short parameters whose keys it does not give; raises ScenarioError."""
    problems: list[Problem] = []
    for parameter in known.values():
        for found in parameter.defaults():
            if isinstance(found, Problem):
                problems.append(found)
                continue
            try:
                root = put(root, found)
            except ScenarioError as error:
                message = f"{found.key}: {error.problems[0].message}"
                problems.append(found.node.problem(f"{shorthand.KEY}.{parameter.name}.sets", message))
    if problems:
        raise ScenarioError(problems)
    return root


def strategy_kind(root: Node) -> str | None:
    """The kind of the strategy, if there is such a kind."""
    node = root.get("strategy", "kind") or root.get("strategy")
    kind = node.value if node is not None else None
    return kind if isinstance(kind, str) and kind in STRATEGIES else None


def detector_kind(root: Node) -> str | None:
    """The kind of the detector, if there is such a kind and it finds out by itself what fails."""
    node = root.get("detector", "kind") or root.get("detector")
    kind = node.value if node is not None else None
    known = isinstance(kind, str) and kind in DETECTORS and not DETECTORS[kind].by_fault
    return str(kind) if known else None


def with_block(root: Node) -> Node:
    """The tree, its strategy completed from the block ``strategies``."""
    node = root.get("strategy")
    if node is not None and isinstance(node.value, str):
        node = node.like({"kind": node})
    if node is None or not node.is_mapping:
        return root
    kind = node.get("kind")
    name = kind.value if kind is not None and isinstance(kind.value, str) else ""
    block = root.get("strategies", name)
    layer = {key: child for key, child in block.items() if key != "kind"} if block is not None else {}
    own = {key: child for key, child in node.items() if key != "kind"}
    chosen = kind is not None and kind.is_set
    strange = left_out(root)
    own = {key: child for key, child in own.items() if key not in strange}
    merged = {} if kind is None else {"kind": kind}
    for key in [*layer, *own]:
        mine, other = own.get(key), layer.get(key)
        if mine is None or (other is not None and not mine.is_set and (chosen or other.is_set)):
            mine = layer[key]
        merged[key] = mine
    return root.like({**root.value, "strategy": node.like(merged)})


def left_out(root: Node) -> list[str]:
    """Keys of the file's own ``strategy`` that do not count: somebody else chose a kind without them."""
    node = root.get("strategy")
    kind = None if node is None else node.get("kind")
    if node is None or kind is None or not kind.is_set or not isinstance(kind.value, str):
        return []
    known = fields_of(STRATEGIES[kind.value]) if kind.value in STRATEGIES else {}
    return [key for key, child in node.items() if key not in known and key != "kind" and not child.is_set]


def _concerns(root: Node, path: Sequence[str]) -> bool:
    """Whether a key is none of the strategy, or one that it knows."""
    if path[0] != "strategy" or len(path) != 2:
        return True
    kind = strategy_kind(root)
    return kind is not None and path[1] in fields_of(STRATEGIES[kind])


def _replaced(node: Node, setting: Setting, level: int) -> Node:
    """A copy of ``node`` with the value at the rest of the path; what is not on the path is shared."""
    path = setting.path
    if level == len(path):
        return setting.node
    step, here = path[level], ".".join(path[:level])
    if isinstance(node.value, list):
        items = list(node.value)
        if not (step.isascii() and step.isdigit()) or len(step) > 9 or int(step) >= len(items):
            allowed = f"0 to {len(items) - 1}" if items else "none: the list is empty"
            hint = f"; did you mean {f'{here}.0.{step}'!r}?" if items and step.isidentifier() else ""
            message = f"no entry {step!r} in {here}; entries are {allowed}{hint}"
            raise setting.node.refused(setting.key, message)
        items[int(step)] = _replaced(items[int(step)], setting, level + 1)
        return node.like(items)
    if node.is_mapping:
        child = node.get(step)
        if child is None:
            if path[0] == "topology" and level == 1 and len(path) > 2:
                raise setting.node.refused(
                    setting.key, f"unknown component {step!r}; {suggest(step, node.value)}"
                )
            child = _holder(node, setting)
        return node.like(node.value | {step: _replaced(child, setting, level + 1)})
    if node.value is None:
        holder = _holder(node, setting)
        return holder.like({step: _replaced(holder, setting, level + 1)})
    if isinstance(node.value, str) and (short := _written_out(path[:level])):
        return _replaced(node.like({short: node}), setting, level)
    message = f"{here} is {node.shown()} and has no keys of its own; set {here} as a whole"
    raise setting.node.refused(setting.key, message)


def _holder(above: Node, setting: Setting) -> Node:
    """A mapping for what is set: it came with the setting, unless that only fills a gap of the file."""
    return (setting.node if setting.node.is_set else above).like({})


def _written_out(path: Sequence[str]) -> str | None:
    """The key that a text alone stands for: ``strategy: rsm``, ``placement: k_safe``, ``window: 30 s``;
    in ``slo`` an objective.
    """
    if list(path) in (["strategy"], ["hosts", "placement"]):
        return "kind"
    if path[0] == "slo" and len(path) == 2:
        return "objective"
    return "length" if path[0] == "topology" and path[-1] == "window" else None
