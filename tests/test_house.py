"""The house: rooms whose imports run one way, a seam that strategies keep to, and sizes."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tideover
from tideover.models.runtime import views
from tideover.models.runtime.announcements import EVENTS, Announcements, Announcer, Step
from tideover.models.runtime.hooks import HOOKS, Hooks
from tideover.models.strategies.base import Protocol

PACKAGE = Path(tideover.__file__).parent
ROOT = PACKAGE.parent
MODULES = {
    ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
    for p in PACKAGE.rglob("*.py")
}
STRATEGIES = sorted((PACKAGE / "models" / "strategies").glob("*.py"))
SEEN = {"task", "spout", "outage", "peer", "job"}
"""What a strategy calls what is not its own."""


def imported(module: str) -> set[str]:
    """Modules of the package that a module imports, those for types only and those in functions too."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name in MODULES and name != module}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Modules that can be reached from one another."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen, todo = set[str](), [start]
        while todo:
            for other in graph.get(todo.pop(), set()) - seen:
                seen.add(other)
                todo.append(other)
        reach[start] = seen
    return [{m for m in reach[n] if n in reach[m]} for n in graph if n in reach[n]]


@pytest.mark.parametrize("room", ["sim", "models", "scenarios", "reports", "calibrate", "cli"])
def test_no_module_of_a_room_imports_itself_by_others(room: str) -> None:
    """Law: a reader who follows imports, those for types too, never walks in a circle."""
    inside = [name for name in MODULES if name.startswith(f"tideover.{room}.")]
    graph = {name: {other for other in imported(name) if other in inside} for name in inside}
    assert circles(graph) == []


def test_rooms_of_models_are_no_circle() -> None:
    """Law: the same for the rooms in models: each is one node."""

    def room(name: str) -> str:
        return name.split(".")[2] if name.count(".") > 1 else name

    graph: dict[str, set[str]] = {}
    for name in MODULES:
        if name.startswith("tideover.models."):
            others = {o for o in imported(name) if o.startswith("tideover.models.")}
            graph.setdefault(room(name), set()).update({room(o) for o in others} - {room(name)})
    assert circles(graph) == []


def test_hooks_are_at_most_nine_and_in_one_docstring() -> None:
    assert len(HOOKS) <= 9
    assert [name for name in HOOKS if f"\n    {name} " not in (Hooks.__doc__ or "")] == []


def attributes_of(view: type) -> set[str]:
    return {name for name in dir(view) if not name.startswith("_")}


VISIBLE = set().union(
    *(attributes_of(view) for view in (views.TaskView, views.SpoutView, views.BoltView, views.OutageView))
)


def touched(tree: ast.AST) -> Iterator[str]:
    """What a module does with attributes of others that a view does not show, or that it sets."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        base = node.value
        mine = isinstance(base, ast.Name) and base.id == "self"
        sets = isinstance(node.ctx, ast.Store | ast.Del) and not mine
        if sets or (getattr(base, "id", getattr(base, "attr", "")) in SEEN and node.attr not in VISIBLE):
            yield ast.unparse(node)


@pytest.mark.parametrize("path", STRATEGIES, ids=lambda path: path.stem)
def test_a_strategy_touches_nothing(path: Path) -> None:
    """Law: it reads what a view shows, sets nothing but its own, and acts by verbs and mechanisms."""
    assert list(touched(ast.parse(path.read_text("utf-8")))) == []


def test_touching_is_found() -> None:
    """The test above can fail."""
    source = "task.up = False; outage.ready_at; task.queue; self.job.store; self.x = 1"
    assert sorted(touched(ast.parse(source))) == ["self.job.store", "task.queue", "task.up"]


def test_a_protocol_has_view_verbs_and_hooks_and_no_more() -> None:
    assert {name for name in vars(Protocol) if not name.startswith("_")} <= set(HOOKS)


def test_what_nobody_announces_nobody_hears() -> None:
    """Law: every listener's ``on_…`` in the accounts is an event, with its arguments."""
    for path in [*(PACKAGE / "models" / "accounts").glob("*.py"), PACKAGE / "models" / "world.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("on_"):
                name = node.name.removeprefix("on_")
                assert name in EVENTS, f"{path.name}: {node.name}"
                event = inspect.signature(getattr(Announcements, name)).parameters
                assert [a.arg for a in node.args.args] == list(event), f"{path.name}: {node.name}"


def test_an_announcement_reaches_all_listeners_in_their_order() -> None:
    heard: list[tuple[str, int, str]] = []

    class One:
        def on_step(self, step: Step) -> None:
            heard.append(("one", *step[:2]))

    class Two(One):
        def on_step(self, step: Step) -> None:
            heard.append(("two", *step[:2]))

    say = Announcer([One(), object(), Two()])
    say.step(Step(3, "a", "b"))
    say.kept(5)  # nobody listens
    assert heard == [("one", 3, "a"), ("two", 3, "a")]


@pytest.mark.parametrize("most", [800])
def test_no_file_is_longer(most: int) -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text("utf-8").count("\n") for path in MODULES.values()}
    assert {name: n for name, n in lines.items() if n > most} == {}


def test_rules_name_the_tests_that_hold_them() -> None:
    """Each strategy tells its rules in its module's docstring; what docstrings name of tests there is."""
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    told = {path: ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for path in MODULES.values()}
    named = {path: set(re.findall(r"\btest_\w+\.py", text)) for path, text in told.items()}
    assert {path.name: names - tests for path, names in named.items() if names - tests} == {}
    own = [path for path in STRATEGIES if path.name not in ("__init__.py", "base.py")]
    assert [path.name for path in own if not named[path]] == []
