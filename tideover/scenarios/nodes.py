"""Values as somebody gave them: a tree of nodes, each of which knows where it was written, and by whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from tideover.scenarios.errors import Problem, ScenarioError, shorten

FROM_SET = "--set"
WHOLE = "(file)"


class Giver(Enum):
    """Who gives values to keys of a scenario; `tideover.scenarios.precedence` says who wins."""

    DEFAULT = "default of a short parameter"
    PROFILE = "profile"
    FILE = "scenario file"
    CHANGE = "change in Python"
    SWEEP = "sweep file, for all points"
    SETTING = "--set"
    POINT = "grid point"


class Origin(NamedTuple):
    """Where a value was written: ``file`` as it was named, or ``--set`` (then ``line`` is None).

    ``key`` was set, and the sweep file calls it ``shown``; both are empty if that is the same. ``short``: the
    short parameter that was used.
    """

    file: str
    line: int | None = None
    giver: Giver = Giver.FILE
    key: str = ""
    shown: str = ""
    short: str = ""


@dataclass(slots=True)
class Node:
    """A value and where it was written.

    ``value`` is None, bool, int, float, str, a list of nodes or a dict of nodes by key.
    """

    value: Any
    origin: Origin
    depth: int = 1
    """Levels below and including this one."""
    count: int = 1
    """Values below and including this one, each alias in full."""

    def like(self, value: Any) -> Node:
        """Another value in the same place."""
        return Node(value, self.origin)

    def given(self, **origin: Any) -> Node:
        """The same value, all of it with these entries of its origin changed."""
        value = self.value
        if isinstance(value, dict):
            value = {key: child.given(**origin) for key, child in value.items()}
        elif isinstance(value, list):
            value = [child.given(**origin) for child in value]
        return replace(self, value=value, origin=self.origin._replace(**origin))

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    @property
    def is_set(self) -> bool:
        """Whether it was set from outside of the scenario's file."""
        return self.origin.giver in (Giver.SWEEP, Giver.SETTING, Giver.POINT)

    @property
    def is_outside(self) -> bool:
        """Whether it is not in the scenario's file, but set, now or by an earlier change in Python."""
        return self.is_set or self.origin.giver is Giver.CHANGE

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.value, dict)

    def get(self, *path: str) -> Node | None:
        """What a mapping has under a key, or a list under an index, and so on; None if it is not there."""
        node: Node | None = self
        for step in path:
            inner = node.value if node is not None else None
            if isinstance(inner, list):
                node = inner[int(step)] if step.isdecimal() and int(step) < len(inner) else None
            else:
                node = inner.get(step) if isinstance(inner, dict) else None
        return node

    def items(self) -> Iterable[tuple[str, Node]]:
        """The entries of a mapping; none of anything else."""
        return self.value.items() if isinstance(self.value, dict) else ()

    def problem(self, key: str, message: str) -> Problem:
        """A problem of this value; of what a sweep sets it names the key in the sweep's file."""
        at = self.origin
        if at.shown:
            key = at.shown + (key.removeprefix(at.key) if key.startswith(at.key) else "")
        return Problem(at.file, at.line, key or WHOLE, message)

    def refused(self, key: str, message: str) -> ScenarioError:
        """The same, to be raised."""
        return ScenarioError([self.problem(key, message)])

    def shown(self) -> str:
        """The value as a message shows it."""
        if isinstance(self.value, dict):
            return "a mapping"
        if isinstance(self.value, list):
            return "a list"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, str):
            return repr(shorten(self.value, 60))
        return "nothing" if self.value is None else shorten(str(self.value), 60)
