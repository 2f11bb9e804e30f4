"""``--set dotted.key=value``: change any key of a scenario from the command line.

List entries go by their index: ``failures.0.at=80s``. The value is YAML: a scalar, or a list or mapping in
flow style. In Python, settings may also be a mapping of keys to values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import Problem, ScenarioError, shorten, suggest
from tideover.scenarios.parts import fields_of
from tideover.scenarios.yaml_source import FROM_SET, Node, from_plain, parse_value

Settings = Sequence[str] | Mapping[str, Any]
"""Texts ``dotted.key=value`` as given to ``--set``, or values by dotted key, as a file would hold them."""


def texts(settings: Settings) -> list[str]:
    """The settings as ``--set`` takes them. Raises TypeError for what is neither a list of texts nor a
    mapping, ScenarioError for a value that no file could hold.
    """
    if isinstance(settings, Mapping):
        return [text_of(str(key), from_plain(value, FROM_SET, str(key))) for key, value in settings.items()]
    if isinstance(settings, str):
        key, _, value = settings.partition("=")
        one, several = [settings], {key: value}
        raise TypeError(f"settings is the text {settings!r}; give a list, {one}, or a mapping, {several}")
    for setting in settings:
        if not isinstance(setting, str):
            raise TypeError(f"settings has {setting!r}; give texts, as in 'run.seed=3', or a mapping")
    return list(settings)


def text_of(key: str, node: Node) -> str:
    """The setting of a key to a value."""
    return f"{key}={json.dumps(node.plain(), ensure_ascii=False)}"


def apply(root: Node, settings: Sequence[str]) -> Node:
    """The tree with all settings applied in order; the given one stays as it was. Raises ScenarioError."""
    problems: list[Problem] = []
    for setting in settings:
        try:
            key, value = _parse(setting)
            root = _replaced(root, key.split("."), value, key, 0)
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return root


def has(root: Node, key: str) -> bool:
    """Whether the tree gives a dotted key, itself or, for the strategy, in the block ``strategies``.

    A strategy that does not know the key counts as one that has it: there is nothing to complete.
    """
    steps = key.split(".")
    if steps[0] == "strategy" and len(steps) == 2:
        kind = strategy_kind(root)
        if (
            kind is None
            or steps[1] not in fields_of(STRATEGIES[kind])
            or _has(root, ["strategies", kind, steps[1]])
        ):
            return True
    return _has(root, steps)


def _has(node: Node | None, steps: Sequence[str]) -> bool:
    for step in steps:
        inner = node.value if node is not None else None
        if isinstance(inner, list):
            node = inner[int(step)] if step.isdigit() and int(step) < len(inner) else None
        else:
            node = inner.get(step) if isinstance(inner, dict) else None
    return node is not None


def strategy_kind(root: Node) -> str | None:
    """The kind of the strategy, if there is such a kind."""
    node = root.value.get("strategy")
    if node is not None and isinstance(node.value, dict):
        node = node.value.get("kind")
    known = node is not None and isinstance(node.value, str) and node.value in STRATEGIES
    return node.value if node is not None and known else None


def fill(root: Node, key: str, value: Node) -> Node:
    """The tree with ``value`` at a dotted key; raises ScenarioError if there cannot be one."""
    return _replaced(root, key.split("."), value, key, 0)


def _refuse(key: str, message: str) -> ScenarioError:
    return ScenarioError([Problem(FROM_SET, None, key, message)])


def _parse(setting: str) -> tuple[str, Node]:
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise _refuse(
            shorten(setting, 60) or "''", "must be key=value, as in run.duration=300s or failures.0.at=80s"
        )
    return key, parse_value(text, key)


def _replaced(node: Node, path: list[str], value: Node, key: str, level: int) -> Node:
    """A copy of ``node`` with the value at ``path``; what is not on the path is shared."""
    if level == len(path):
        return value
    step = path[level]
    here = ".".join(path[:level])
    if isinstance(node.value, list):
        items = list(node.value)
        if not (step.isascii() and step.isdigit()) or len(step) > 9 or int(step) >= len(items):
            allowed = f"0 to {len(items) - 1}" if items else "none: the list is empty"
            hint = f"; did you mean {f'{here}.0.{step}'!r}?" if items and step.isidentifier() else ""
            raise _refuse(key, f"no entry {step!r} in {here}; entries are {allowed}{hint}")
        items[int(step)] = _replaced(items[int(step)], path, value, key, level + 1)
        return Node(items, node.source, node.line)
    if isinstance(node.value, dict):
        child = node.value.get(step)
        if child is None:
            if path[0] == "topology" and level == 1 and len(path) > 2:
                raise _refuse(key, f"unknown component {step!r}; {suggest(step, node.value)}")
            child = Node({}, FROM_SET)
        return Node(
            node.value | {step: _replaced(child, path, value, key, level + 1)}, node.source, node.line
        )
    if here == "strategy" and isinstance(node.value, str):
        return _replaced(Node({"kind": node}, node.source, node.line), path, value, key, level)
    if here.startswith("topology.") and path[level - 1] == "window" and isinstance(node.value, str):
        return _replaced(Node({"length": node}, node.source, node.line), path, value, key, level)
    if node.value is None:
        return Node({step: _replaced(Node({}, FROM_SET), path, value, key, level + 1)}, FROM_SET)
    raise _refuse(key, f"{here} is {node.shown()} and has no keys of its own; set {here} as a whole")


def elsewhere(root: Node, name: str, node: Node, fields: Iterable[str]) -> list[str]:
    """Dotted keys that end in what was set where no such key is.

    ``sentences.rate=50/s`` and ``rate=50/s`` both find ``topology.sentences.rate``. ``name``, ``node``: the
    unknown key and its value. ``fields``: dotted keys that a file could have, beside those that it has.
    """
    tails = [name]
    while isinstance(node.value, dict) and len(node.value) == 1:
        (step, node), *_ = node.value.items()
        tails.append(f"{tails[-1]}.{step}")
    known = list(dict.fromkeys([*_keys(root), *fields]))
    for tail in reversed(tails):
        found = [key for key in known if key.endswith(f".{tail}")]
        # The key of the strategy that is chosen stands for those of the block.
        if found := [key for key in found if "." in tail or not key.startswith("strategies.")]:
            return found
    return []


def _keys(node: Node, key: str = "") -> Iterator[str]:
    """Every dotted key of the tree that was not set on the command line."""
    if isinstance(node.value, dict):
        children = list(node.value.items())
    elif isinstance(node.value, list):
        children = [(str(i), item) for i, item in enumerate(node.value)]
    else:
        return
    for step, child in children:
        if not child.is_set:
            here = f"{key}.{step}" if key else step
            yield here
            yield from _keys(child, here)


def pick_strategy(node: Node, defaults: Mapping[str, Node], known: Iterable[str]) -> Node:
    """The mapping of the strategy, completed from the block ``strategies``.

    A key set on the command line wins; then the file's ``strategy``; then what the block says of the kind.
    If the command line chose the kind, the file's own keys were meant for another: the block wins, and of
    the file's keys only those remain that the new kind knows.
    """
    kind = node.value.get("kind")
    block = defaults.get(kind.value) if kind is not None and isinstance(kind.value, str) else None
    layer = block.value if block is not None and isinstance(block.value, dict) else {}
    own = {k: v for k, v in node.value.items() if k != "kind"}
    if kind is not None and kind.is_set:
        merged = {k: v for k, v in own.items() if v.is_set or k in known} | layer
    else:
        merged = layer | own
    merged |= {k: v for k, v in layer.items() if v.is_set}
    merged |= {k: v for k, v in own.items() if v.is_set}
    head = {} if kind is None else {"kind": kind}
    return Node(head | merged, node.source, node.line)
