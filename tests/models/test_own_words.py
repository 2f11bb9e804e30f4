"""A strategy describes itself: nobody else in the package knows its class or its keys."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import tideover
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES, Strategy

PACKAGE = Path(tideover.__file__).parent
LIST = "models/__init__.py"
"""Where strategies are imported, to be registered."""
NAMES = ("parts", "__init__.py")
"""Where users import strategies from, under their names."""
MORE = {"micro_batch": ("batches.py", "batch_log.py", "executors.py")}
"""Whose settings are those of mechanisms, too."""
KINDS = [kind for kind, cls in STRATEGIES.items() if cls.__module__.startswith("tideover.")]


def classes(kind: str) -> list[type[Strategy]]:
    """The class that is registered, and those that it is made of."""
    return [cls for cls in STRATEGIES[kind].__mro__ if issubclass(cls, Strategy) and cls is not Strategy]


def is_own(kind: str, path: Path) -> bool:
    """Whether a file of the package is one of a strategy's own."""
    own = (f"models/strategies/{kind}.py", *(f"models/mechanisms/{name}" for name in MORE.get(kind, ())))
    return path.as_posix() in own


def known_in(path: Path) -> set[str]:
    """Names of the classes, and of the keys, of strategies whose own file this is."""
    mine = [cls for kind in KINDS if is_own(kind, path) for cls in classes(kind)]
    return {cls.__name__ for cls in mine} | {key for cls in mine for key in cls.model_fields}


SECRET = {cls.__name__ for kind in KINDS for cls in classes(kind)}
KEYS = {key for kind in KINDS for cls in classes(kind) for key in cls.model_fields} - {*dir(Strategy)}


def curious(source: str, known: set[str]) -> list[str]:
    """What in a module asks a strategy for more than it says of itself: its class by isinstance, getattr and
    the like, the name of a class, a key. ``known``: the names that may stand there.
    """
    nodes = list(ast.walk(ast.parse(source)))
    strategies, secret = _strategies(nodes), SECRET - known
    found = []
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            asks = node.func.id in ("isinstance", "issubclass", "getattr", "hasattr", "vars")
            if asks and _is_strategy(node.args[0], strategies) and not _is_one_at_all(node):
                found.append(node.func.id)
        name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", None)))
        if name in secret:
            found.append(name)
        if isinstance(node, ast.Attribute) and _is_strategy(node.value, strategies):
            found += [name] * (name in KEYS - known)
    return found


def _is_one_at_all(call: ast.Call) -> bool:
    """Whether a call asks no more than if something is a strategy, or the name of one."""
    return [getattr(arg, "id", "") for arg in call.args[1:]] in (["Strategy"], ["str"])


def _is_strategy(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression is a strategy, by what it is called."""
    name = getattr(node, "id", getattr(node, "attr", ""))
    return name in names if isinstance(node, ast.Name) else name.strip("_") == "strategy"


def _strategies(nodes: list[ast.AST]) -> set[str]:
    """Variables that are called strategy, have the type, or are made from one that is called so."""
    names = {"strategy"}
    for node in nodes:
        if isinstance(node, ast.arg) and node.annotation is not None:
            parts = {getattr(part, "id", None) for part in ast.walk(node.annotation)}
            if "Strategy" in parts and "type" not in parts:
                names.add(node.arg)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
            names |= {
                to.id for to, value in pairs if isinstance(to, ast.Name) and _is_strategy(value, {"strategy"})
            }
    return names


def test_nothing_but_its_own_files_knows_a_strategy() -> None:
    """By the syntax trees of all modules; the list of what is registered names modules, not classes."""
    files = [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py"))]
    files = [path for path in files if path.parts[0] not in NAMES]
    assert all(any(is_own(kind, path) for path in files) for kind in KINDS)
    found = {
        str(path): asked
        for path in files
        if (asked := curious((PACKAGE / path).read_text("utf-8"), known_in(path)))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("isinstance(scenario.strategy, Other)", ["isinstance"]),
        ("s = self.world.strategy\ngetattr(s, 'k', 0)", ["getattr"]),
        ("n, s = 1, self._strategy\nhasattr(s, 'k')", ["hasattr"]),
        ("def ask(it: Strategy | None) -> None:\n    getattr(it, 'components')", ["getattr"]),
        ("x: StateManagement", ["StateManagement"]),
        ("from tideover.models.strategies.rsm import StateManagement", ["StateManagement"]),
        ("match it:\n    case models.SourceReplay():\n        pass", ["SourceReplay"]),
        ("world.strategy.checkpoint_interval", ["checkpoint_interval"]),
        ("strategy.remarks(plan), strategy.kind, isinstance(task, BoltTask), fault.component", []),
    ],
)
def test_what_counts_as_asking(source: str, asks: list[str]) -> None:
    assert curious(source, set()) == asks


NEEDED: dict[str, dict[str, Any]] = {
    "rsm": {"checkpoint_interval": 100 * MS},
    "passive_standby": {"checkpoint_interval": 100 * MS},
    "aligned_snapshots": {"checkpoint_interval": 100 * MS},
    "source_replay": {"message_timeout": 50 * MS},
    "estorm": {"message_timeout": 50 * MS},
    "storm_checkpoint": {"message_timeout": 50 * MS, "checkpoint_interval": 10 * MS},
    "trident": {"batch_interval": 50 * MS},
    "batch_rerun": {"trigger_interval": 50 * MS},
    "hybrid": {"rest": STRATEGIES["none"]()},
}


@pytest.mark.parametrize("role", ["acker", "driver", "coordinator"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_of_a_role_matters_where_there_is_one(kind: str, role: str) -> None:
    """s ──▶ p (1 ms), a root every 10 ms. Without the acker from 45 to 145 ms the spout emits again what is
    not acked; without the driver, or the coordinator, what comes waits until it is back. Who has no such role
    is not touched.
    """
    topology = {"s": spout("values", values=(1,), repeat=True), "p": bolt("forward", {"s": "shuffle"}, 1)}
    crash = fault("crash_task", 45, component=role, detection=0, restart=100)
    seen = []
    for failures in ((crash,), ()):
        needed = NEEDED.get(kind, STRATEGIES[kind].typical)
        trace = simulate(world(topology, kind, failures, 495, **needed), trace=True).trace
        seen.append((sorted(trace.emitted), sorted(trace.processed)))
    assert (seen[0] != seen[1]) is (role in STRATEGIES[kind].roles)
