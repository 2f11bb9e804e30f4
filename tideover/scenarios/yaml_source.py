"""YAML 1.2 to a tree of nodes that know where they stand, and plain data to text; for all that reads files.

What a file may be at most stands in `MAX_BYTES` and below it; who gives values to a scenario in `Giver`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from tideover.scenarios.errors import Problem, ScenarioError, is_misspelt, shorten
from tideover.sim import text_files

FROM_SET = "--set"
WHOLE = "(file)"


class Giver(IntEnum):
    """Who gives values to keys of a scenario, from the weakest on; `precedence` says more."""

    DEFAULT, PROFILE, FILE, CHANGE, SWEEP, SETTING, POINT = range(7)


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
    """A value and where it was written: None, bool, int, float, str, a list of nodes or a dict of nodes."""

    value: Any
    origin: Origin
    depth: int = 1
    """Levels below and including this one."""
    count: int = 1
    """Values below and including this one, each alias in full."""

    def like(self, value: Any) -> Node:
        """Another value in the same place."""
        return Node(value, self.origin)

    def with_origins(self, of: Callable[[Node], Origin]) -> Node:
        """The same value, all of it with other origins."""
        value = self.value
        if isinstance(value, dict):
            value = {key: child.with_origins(of) for key, child in value.items()}
        elif isinstance(value, list):
            value = [child.with_origins(of) for child in value]
        return replace(self, value=value, origin=of(self))

    def given(self, **origin: Any) -> Node:
        """The same value, all of it with these entries of its origin changed."""
        return self.with_origins(lambda node: node.origin._replace(**origin))

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


# A file may come from anywhere, so there are limits. The tree is built from ruamel.yaml's events, one by
# one, so that neither deep nesting nor a bomb of aliases is ever expanded, and a key that is given twice is
# refused with both of its lines (ruamel.yaml's own trees with lines, ``.lc``, are built only after all of
# that, of merged keys, dates and ``1_000`` as well). Refused: duplicate keys, tags, more than one document,
# more than 100 levels, more than 20,000 values (each use of an alias counts in full), files over 1 MiB or
# not in UTF-8.

MAX_BYTES = 2**20
MAX_DEPTH = 100
MAX_VALUES = 20_000
_MAX_SCALAR = 100_000

_WANTED = "give a YAML file or the name of a built-in scenario"
_SCENARIO = "a scenario is a mapping with topology, strategy and run"

_SCALARS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"|~|null|Null|NULL"), lambda text: None),
    (re.compile(r"true|True|TRUE|false|False|FALSE"), lambda text: text.lower() == "true"),
    (re.compile(r"[-+]?[0-9]{1,40}"), int),
    (re.compile(r"0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}"), lambda text: int(text, 0)),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), lambda text: float(text.replace(".", ""))),
)
"""What plain texts stand for, by YAML 1.2's core schema."""


def read(path: Path, known: Collection[str] = ()) -> Node:
    """The mapping in a file; raises ScenarioError. ``known``: as for ``parse``."""
    return parse(text_of(path), str(path), known=known)


def text_of(path: Path, wanted: str = _WANTED) -> str:
    """The text of a file that may come from anywhere; raises ScenarioError if it is no small text file."""
    try:
        return text_files.read_text(path, MAX_BYTES)
    except text_files.Unreadable as error:
        raise ScenarioError([Problem(str(path), error.line, WHOLE, f"{error}; {wanted}")]) from None


def parse(text: str, name: str, meant: str = _SCENARIO, known: Collection[str] = ()) -> Node:
    """The mapping in a text; raises ScenarioError. ``name`` stands for the file, ``meant``: what should be
    there. ``known``: its keys; a file with none of them is of another kind, and nothing in it is told.
    """
    control = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    if control:
        line = text.count("\n", 0, control.start()) + 1
        message = f"holds the control character {control[0]!r}; it must be plain text"
        raise ScenarioError([Problem(name, line, WHOLE, message)])
    node = _Tree(text, lambda line: Origin(name, line)).build()
    if node is None or node.value is None:
        raise ScenarioError([Problem(name, 1, WHOLE, f"is empty; {meant}")])
    if not isinstance(node.value, dict):
        raise ScenarioError([node.problem("", f"is no mapping of keys; {meant}")])
    if known and node.value and not any(key in known or is_misspelt(key, known) for key in node.value):
        raise ScenarioError([node.problem("", f"has none of the keys {', '.join(known)}; {meant}")])
    return node


def parse_value(text: str, key: str) -> Node:
    """The value after ``--set key=``: a scalar, or a list or mapping in flow style; raises ScenarioError."""
    origin = Origin(FROM_SET, None, Giver.SETTING)
    try:
        node = _Tree(text, lambda line: origin).build()
    except ScenarioError as error:
        raise ScenarioError([Problem(FROM_SET, None, key, p.message) for p in error.problems]) from None
    return Node(None, origin) if node is None else node


def scalar(text: str) -> Any:
    """A plain scalar's value by YAML 1.2's core schema.

    >>> [scalar(t) for t in ("30 s", "4", "0x1F", "1e3", "true", "yes", "~")]
    ['30 s', 4, 31, 1000.0, True, 'yes', None]
    """
    return next((read(text) for pattern, read in _SCALARS if pattern.fullmatch(text)), text)


class _Tree:
    """Builds the tree from events, at most ``MAX_DEPTH`` deep; ``origin``: that of a value by its line."""

    def __init__(self, text: str, origin: Callable[[int], Origin]) -> None:
        from ruamel.yaml import YAML

        self.events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
        self.origin = origin
        self.anchors: dict[str, Node] = {}
        self.path: list[str | None] = []
        """Key or index in each open collection; None between two keys."""
        self.counts = [0]
        """Values so far, in each open collection."""

    def build(self) -> Node | None:
        """The one document; None if there is none."""
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        root: Node | None = None
        try:
            for event in self.events:
                kind, line = type(event).__name__, event.start_mark.line + 1
                if kind == "DocumentStartEvent" and root is not None:
                    raise self._refused("starts a second document; a scenario file holds one", line)
                if not kind.startswith(("Stream", "Document")):
                    root = self._node(event, line)
        except MarkedYAMLError as error:
            # What is never closed is found at the end, and mended where it begins.
            unclosed = "end" in str(error.problem) and "stream" in str(error.problem)
            marks = (error.context_mark, error.problem_mark)
            mark = next((m for m in (marks if unclosed else reversed(marks)) if m is not None), None)
            what = ", ".join(str(part) for part in (error.context, error.problem) if part)
            raise self._refused(f"is not valid YAML: {what}", mark.line + 1 if mark else 1) from None
        except YAMLError as error:
            raise self._refused(f"is not valid YAML: {str(error).splitlines()[0]}", 1) from None
        return root

    def _node(self, event: Any, line: int) -> Node:
        """The value that begins with an event; ``line``: of its key, if it has one."""
        kind, at = type(event).__name__, event.start_mark.line + 1
        if kind == "AliasEvent":
            node = self.anchors.get(event.anchor)
            if node is None:
                raise self._refused(f"the alias *{event.anchor} stands for nothing that is complete here", at)
            return node
        self._allow(event, at)
        if kind == "ScalarEvent":
            node = Node(scalar(event.value) if event.implicit[0] else event.value, self.origin(line))
        else:
            if len(self.path) >= MAX_DEPTH:
                raise self._refused(f"is nested more than {MAX_DEPTH} levels deep", at)
            self.path.append(None)
            self.counts.append(1)
            value = self._mapping() if kind == "MappingStartEvent" else self._list()
            inner = value.values() if isinstance(value, dict) else value
            self.path.pop()
            depth = 1 + max((child.depth for child in inner), default=0)
            node = Node(value, self.origin(line), depth, self.counts.pop())
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _mapping(self) -> dict[str, Node]:
        found: dict[str, Node] = {}
        lines: dict[str, int] = {}
        while (kind := type(event := next(self.events)).__name__) != "MappingEndEvent":
            at = event.start_mark.line + 1
            self._allow(event, at)
            if kind != "ScalarEvent":
                what = "an alias" if kind == "AliasEvent" else "a list or a mapping"
                raise self._refused(f"a key must be a plain text, not {what}", at)
            key = event.value
            if key in lines:
                first = f"the key {shorten(key, 60)!r} is given twice (first in line {lines[key]})"
                raise self._refused(f"{first}; give it once", at, key)
            lines[key], self.path[-1] = at, key
            found[key] = self._inner(next(self.events), at)
            self.path[-1] = None
        return found

    def _list(self) -> list[Node]:
        found: list[Node] = []
        self.path[-1] = "0"
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            found.append(self._inner(event, event.start_mark.line + 1))
            self.path[-1] = str(len(found))
        return found

    def _inner(self, event: Any, line: int) -> Node:
        """A value in a collection, within the limits."""
        node = self._node(event, line)
        if len(self.path) + node.depth > MAX_DEPTH + 1:
            raise self._refused(f"is nested more than {MAX_DEPTH} levels deep", line)
        self.counts[-1] += node.count
        if sum(self.counts) > MAX_VALUES:
            raise self._refused(f"holds more than {MAX_VALUES} values (aliases count in full)", line)
        return node

    def _allow(self, event: Any, line: int) -> None:
        """Neither tags nor very long texts."""
        if getattr(event, "tag", None) is not None and type(event).__name__ != "AliasEvent":
            raise self._refused(f"has the tag {str(event.tag)!r}; tags are not allowed", line)
        if type(event).__name__ == "ScalarEvent" and len(event.value) > _MAX_SCALAR:
            raise self._refused(f"a text of {len(event.value)} characters; at most {_MAX_SCALAR}", line)

    def _refused(self, message: str, line: int, key: str | None = None) -> ScenarioError:
        """``key``: in the innermost mapping. Of a deep nest only the first few keys are told."""
        open_ = [step for step in self.path[:8] if step is not None]
        place = ".".join([*open_, *([key] if key is not None else [])])
        at = self.origin(line)
        return ScenarioError([Problem(at.file, at.line, place or WHOLE, message)])


def write(data: Mapping[str, Any]) -> str:
    """A line for each key. Texts are written as they are; see ``quoted``.

    >>> print(write({"run": {"duration": "90 s"}}), end="")
    run:
      duration: 90 s
    """
    from ruamel.yaml import YAML

    writer = YAML()
    writer.width = 2**31  # a value, and a comment, belong to one line
    stream = io.StringIO()
    writer.dump(data, stream)
    return stream.getvalue()


def quoted(value: Any) -> Any:
    """Data whose texts are in quotes where the loader would read something else without.

    >>> print(write(quoted({"name": "0x1F", "seed": 3})), end="")
    name: "0x1F"
    seed: 3
    """
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, dict):
        return {key: quoted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [quoted(item) for item in value]
    plain = not isinstance(value, str) or (scalar(value) == value and value.isprintable())
    return value if plain else DoubleQuotedScalarString(value)
