"""YAML 1.2 to a tree that knows its lines, with limits: a file may come from anywhere.

The tree is built from ruamel.yaml's events, one by one, so that neither deep nesting nor a bomb of aliases
is ever expanded. Refused: duplicate keys, tags, more than one document, more than 100 levels, more than
20,000 values (each use of an alias counts in full), files over 1 MiB or not in UTF-8.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tideover.scenarios.errors import Problem, ScenarioError, shorten

MAX_BYTES = 2**20
MAX_DEPTH = 100
MAX_VALUES = 20_000
_MAX_SCALAR = 100_000

_WANTED = "give a YAML file or the name of a built-in scenario"
_SCENARIO = "a scenario is a mapping with topology, strategy and run"

FROM_SET = "--set"
WHOLE = "(file)"

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,40}")
_OTHER_INT = re.compile(r"0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INF = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NAN = re.compile(r"\.(?:nan|NaN|NAN)")


@dataclass
class Node:
    """A value and where it was written: ``source`` is the file as named, or ``--set`` (then ``line`` is
    None).

    ``value`` is None, bool, int, float, str, a list of nodes or a dict of nodes by key.
    """

    value: Any
    source: str
    line: int | None = None
    depth: int = 1  # levels below and including this one
    count: int = 1  # values below and including this one, each alias in full

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    @property
    def is_set(self) -> bool:
        """Whether it came from ``--set``."""
        return self.source == FROM_SET

    def problem(self, key: str, message: str) -> Problem:
        """A problem of this value."""
        return Problem(self.source, None if self.is_set else self.line, key or WHOLE, message)

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


def read(path: Path) -> Node:
    """The mapping in a file; raises ScenarioError."""
    return parse(text_of(path), str(path))


def text_of(path: Path, wanted: str = _WANTED) -> str:
    """The text of a file that may come from anywhere; raises ScenarioError if it is no small text file."""
    name = str(path)

    def refuse(message: str, line: int = 1) -> ScenarioError:
        return ScenarioError([Problem(name, line, WHOLE, message)])

    try:
        if path.is_dir():
            raise refuse(f"is a directory; {wanted}")
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise refuse(f"{what}; {wanted}")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise refuse(f"is larger than {MAX_BYTES // 2**20} MiB; it must be a small text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse("is not UTF-8 text; save the file as UTF-8", line) from None


def parse(text: str, name: str, meant: str = _SCENARIO) -> Node:
    """The mapping in a text; raises ScenarioError. ``name`` stands for the file in messages, ``meant`` says
    what should be there.
    """
    control = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    if control:
        line = text.count("\n", 0, control.start()) + 1
        message = f"holds the control character {control[0]!r}; it must be plain text"
        raise ScenarioError([Problem(name, line, WHOLE, message)])
    node = _Tree(name).build(text)
    if node is None or node.value is None:
        raise ScenarioError([Problem(name, 1, WHOLE, f"is empty; {meant}")])
    if not isinstance(node.value, dict):
        raise ScenarioError([node.problem("", f"must be a mapping of keys, not {node.shown()}")])
    return node


def parse_value(text: str, key: str) -> Node:
    """The value after ``--set key=``: a scalar, or a list or mapping in flow style; raises ScenarioError."""
    try:
        node = _Tree(FROM_SET).build(text)
    except ScenarioError as error:
        raise ScenarioError([Problem(FROM_SET, None, key, p.message) for p in error.problems]) from None
    return Node(None, FROM_SET) if node is None else node


def from_plain(value: Any, name: str, key: str = "") -> Node:
    """The tree of a value made in Python, without lines: what a file may hold, a path, and what numpy and
    pandas have for numbers and lists. ``key``: where it stands. Raises ScenarioError for anything else, and
    if it is nested too deep.
    """
    return _plain_tree(value, name, (key,) if key else ())


def _plain_tree(value: Any, name: str, path: tuple[str, ...]) -> Node:
    if len(path) >= MAX_DEPTH:
        raise ScenarioError([Problem(name, None, WHOLE, f"is nested more than {MAX_DEPTH} levels deep")])
    if hasattr(value, "tolist"):  # an array, a series, or one of their numbers
        value = value.tolist()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, Mapping):
        return Node({str(k): _plain_tree(v, name, (*path, str(k))) for k, v in value.items()}, name)
    if isinstance(value, list | tuple | range):
        return Node([_plain_tree(v, name, (*path, str(i))) for i, v in enumerate(value)], name)
    if value is None or isinstance(value, bool | int | float | str):
        return Node(value, name)
    what = f"is a {type(value).__name__}; give a number, a text, a list or a mapping"
    raise ScenarioError([Problem(name, None, ".".join(path) or WHOLE, what)])


def scalar(text: str) -> Any:
    """A plain scalar's value by YAML 1.2's core schema.

    >>> [scalar(t) for t in ("30 s", "4", "0x1F", "1e3", "true", "yes", "~")]
    ['30 s', 4, 31, 1000.0, True, 'yes', None]
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text)
    if _OTHER_INT.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _INF.fullmatch(text):
        return float(f"{match[1]}inf")
    return float("nan") if _NAN.fullmatch(text) else text


@dataclass
class _Open:
    """A collection that is being read."""

    node: Node
    anchor: str | None
    key: str | None = None
    key_line: int = 0
    seen: dict[str, int] = field(default_factory=dict)


class _Tree:
    """Builds the tree from events; ``stack`` holds the open collections, outermost first."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.stack: list[_Open] = []
        self.anchors: dict[str, Node] = {}
        self.root: Node | None = None
        self.values = 0

    def build(self, text: str) -> Node | None:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            for event in YAML(typ="safe", pure=True).parse(text):
                self._take(event)
        except MarkedYAMLError as error:
            # What is never closed is found at the end, and mended where it begins.
            unclosed = "end" in str(error.problem) and "stream" in str(error.problem)
            marks = (error.context_mark, error.problem_mark)
            mark = next((m for m in (marks if unclosed else reversed(marks)) if m is not None), None)
            what = ", ".join(str(part) for part in (error.context, error.problem) if part)
            raise self._refuse(f"is not valid YAML: {what}", mark.line + 1 if mark else 1) from None
        except YAMLError as error:
            raise self._refuse(f"is not valid YAML: {str(error).splitlines()[0]}", 1) from None
        return self.root

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        kind = type(event).__name__
        if getattr(event, "tag", None) is not None and kind != "AliasEvent":
            raise self._refuse(f"has the tag {str(event.tag)!r}; tags are not allowed", line)
        if kind == "DocumentStartEvent" and self.root is not None:
            raise self._refuse("starts a second document; a scenario file holds one", line)
        if kind == "ScalarEvent":
            self._scalar(event, line)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, line, {} if kind == "MappingStartEvent" else [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            closed = self.stack.pop()
            self._anchor(closed.anchor, closed.node)
            self._add(closed.node, closed.node.line or 1)
        elif kind == "AliasEvent":
            if event.anchor not in self.anchors:
                raise self._refuse(
                    f"the alias *{event.anchor} stands for nothing that is complete here", line
                )
            self._add(self.anchors[event.anchor], line)

    def _scalar(self, event: Any, line: int) -> None:
        if len(event.value) > _MAX_SCALAR:
            raise self._refuse(f"a text of {len(event.value)} characters; at most {_MAX_SCALAR}", line)
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.node.value, dict) and top.key is None:
            if event.value in top.seen:
                at = top.seen[event.value]
                message = (
                    f"the key {shorten(event.value, 60)!r} is given twice (first in line {at}); give it once"
                )
                raise self._refuse(message, line, event.value)
            top.key, top.key_line = event.value, line
            top.seen[event.value] = line
            return
        if top is not None and top.key is not None:
            line = top.key_line
        value = scalar(event.value) if event.implicit[0] else event.value
        node = Node(value, self.source, line)
        self._anchor(event.anchor, node)
        self._add(node, line)

    def _open(self, event: Any, line: int, empty: Any) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self._refuse(f"is nested more than {MAX_DEPTH} levels deep", line)
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.node.value, dict):
            if top.key is None:
                raise self._refuse("a key must be a plain text, not a list or a mapping", line)
            line = top.key_line
        self.stack.append(_Open(Node(empty, self.source, line), event.anchor))

    def _anchor(self, name: str | None, node: Node) -> None:
        if name is not None:
            self.anchors[name] = node

    def _add(self, node: Node, line: int) -> None:
        """Put a complete value where it belongs."""
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if len(self.stack) + node.depth > MAX_DEPTH + 1:
            raise self._refuse(f"is nested more than {MAX_DEPTH} levels deep", line)
        top.node.depth = max(top.node.depth, node.depth + 1)
        top.node.count += node.count
        self.values = max(self.values, sum(open_.node.count for open_ in self.stack))
        if self.values > MAX_VALUES:
            raise self._refuse(f"holds more than {MAX_VALUES} values (aliases count in full)", line)
        if isinstance(top.node.value, list):
            top.node.value.append(node)
        elif top.key is None:
            raise self._refuse("a key must be a plain text, not an alias", line)
        else:
            top.node.value[top.key] = node
            top.key = None

    def _refuse(self, message: str, line: int, key: str | None = None) -> ScenarioError:
        place = [*self._path(), *([key] if key is not None else [])]
        return ScenarioError([Problem(self.source, line, ".".join(place) or WHOLE, message)])

    def _path(self) -> Iterator[str]:
        """Keys of the open collections; only the first few of a deep nest."""
        for open_ in self.stack[:8]:
            if isinstance(open_.node.value, list):
                yield str(len(open_.node.value))
            elif open_.key is not None:
                yield open_.key
