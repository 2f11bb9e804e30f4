"""Profiles: measured values that scenarios take unless they set the key themselves.

```yaml
name: ysb
provenance: {source: recoveries.csv, measurements: 8}    # and whatever else says where the values come from
values:                                                  # in the scenario's own words
  strategy: {aligned_snapshots: {snapshot_time: 0.2 s}}  # by kind of strategy
  failures: {crash_task: {detection: 50 s, restart: 4 s}}  # by kind of failure; driver: of component driver
  bolts: {forward: {service: 7 us}}                      # by kind of bolt
  run: {lag_window: 30 s}
intervals: {failures.crash_task.restart: {low: 2 s, high: 6 s, identified: true}}    # at 90 %
draws: {keys: [failures.crash_task.restart], rows: [[3 s], [5 s]]}                   # values that go together
scatter: {catch_up_s: 0.05}                              # relative, what the values do not explain
errors: {leave_one_out: 0.06}
```

``profile: path`` in a scenario names one, ``--set profile=path`` too.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from tideover.models.config import BOLTS, FAULTS, STRATEGIES, BoltConfig, Fault, Run
from tideover.scenarios import library, overrides, yaml_source
from tideover.scenarios.errors import ScenarioError, suggest
from tideover.scenarios.parts import Builder, fields_of, join
from tideover.scenarios.yaml_source import Node
from tideover.sim.registry import Part

KEY = "profile"
TOP = ("name", "provenance", "values", "intervals", "draws", "scatter", "errors")
PARTS = ("strategy", "failures", "bolts", "run")
DRIVER = "driver"
"""Faults of a component of this name have their own values."""

MEASURES = ("state_recovery_s", "catch_up_s", "throughput_90_s", "output_gap_s")
"""Columns of the recoveries that a profile may know the scatter of."""


@dataclass(frozen=True)
class Profile:
    """A profile as its file says it. ``values`` by dotted key; ``draws``: rows of values by the same keys."""

    name: str
    file: str
    sha256: str
    provenance: dict[str, Any]
    values: dict[str, Node]
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    draws: tuple[dict[str, str], ...] = ()
    scatter: dict[str, float] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)


def named(node: Node, directory: Path) -> Profile:
    """The profile that a scenario's key ``profile`` names: a file, or a built-in one; raises ScenarioError.

    ``directory``: of the scenario; what ``--set`` names is looked for where the command runs.
    """
    if not isinstance(node.value, str) or not node.value:
        raise ScenarioError([node.problem(KEY, f"must be the path of a profile, not {node.shown()}")])
    if node.value in library.profiles():
        return parse(library.profile_text(node.value), library.file_name(node.value))
    path = Path(node.value) if node.is_set else directory / node.value
    if not path.is_file():
        listed = ", ".join(library.profiles())
        hint = f"; built in: {listed}" if listed else ""
        message = f"there is no file {str(path)!r}; give the path of a profile{hint}"
        raise ScenarioError([node.problem(KEY, message)])
    return read(path)


def read(path: Path) -> Profile:
    """The profile in a file; raises ScenarioError."""
    return parse(yaml_source.text_of(path), str(path))


def again(name: str) -> Profile:
    """A profile by what ``Profile.file`` said of it; raises ScenarioError."""
    return named(Node(name, yaml_source.FROM_SET), Path())


@lru_cache(maxsize=8)
def parse(text: str, name: str) -> Profile:
    """The profile in a text; ``name`` stands for the file in messages. Raises ScenarioError."""
    reader = _Reader(Path(name).parent)
    root = yaml_source.parse(text, name)
    reader.unknown_keys(root, "", TOP)
    values = dict(reader.values(root))
    found = Profile(
        name=str(root.value["name"].value) if "name" in root.value else Path(name).stem,
        file=name.removesuffix(".yaml") if name.removesuffix(".yaml") in library.profiles() else name,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        provenance=reader.free(root, "provenance"),
        values=values,
        intervals=reader.intervals(root, values),
        draws=tuple(reader.draws(root, values)),
        scatter=reader.scatter(root),
        errors=reader.free(root, "errors"),
    )
    if reader.problems:
        raise ScenarioError(reader.problems)
    return found


class _Reader(Builder):
    """Reads a profile's tree; what is wrong is collected."""

    def values(self, root: Node) -> Iterator[tuple[str, Node]]:
        """Dotted keys below ``values`` and what is given there."""
        block = root.value.get("values")
        if block is None:
            self.refuse(root, "values", f"is missing; a mapping of {', '.join(PARTS)}")
        elif self.mapping(block, "values") and not self.unknown_keys(block, "values", PARTS):
            registries: dict[str, dict[str, type[Part]]] = {
                "strategy": dict(STRATEGIES.items()),
                "failures": {DRIVER: Fault, **dict[str, type[Part]](FAULTS.items())},
                "bolts": dict.fromkeys((name for name, _ in BOLTS.items()), BoltConfig),
            }
            for sort, node in block.value.items():
                if sort == "run":
                    yield from self._fields(node, sort, Run)
                elif self.mapping(node, f"values.{sort}"):
                    known = registries[sort]
                    for kind, inner in node.value.items():
                        if kind in known:
                            yield from self._fields(inner, f"{sort}.{kind}", known[kind])
                        else:
                            message = f"unknown kind; {suggest(kind, known)}"
                            self.refuse(inner, f"values.{sort}.{kind}", message)

    def _fields(self, node: Node, key: str, cls: type[Part]) -> Iterator[tuple[str, Node]]:
        known = {k: name for k, name in fields_of(cls).items() if k not in ("bolt", "from")}
        if self.mapping(node, f"values.{key}"):
            self.unknown_keys(node, f"values.{key}", known)
            for name in [name for name in known if name in node.value]:
                value = node.value[name]
                if self.fits(cls, known[name], value, f"values.{key}.{name}"):
                    yield f"{key}.{name}", value

    def fits(self, cls: type[Part], name: str, node: Node, key: str) -> bool:
        """Whether a value can be that of a field; a problem if not."""
        info = cls.model_fields[name]
        before = len(self.problems)
        ok, plain = self._value(info.annotation, node, key)
        if ok:
            try:
                _adapter(cls, name).validate_python(plain, strict=True, context=self._context)
            except ValidationError as error:
                said = error.errors(include_url=False, include_input=False)[0]
                reason = said.get("ctx", {}).get("error", said["msg"])
                self.refuse(node, key, f"{reason}")
        return len(self.problems) == before

    def free(self, root: Node, key: str) -> dict[str, Any]:
        """A mapping of whatever is worth saying."""
        node = root.value.get(key)
        return node.plain() if node is not None and self.mapping(node, key) else {}

    def intervals(self, root: Node, values: Mapping[str, Node]) -> dict[str, dict[str, Any]]:
        """``low``, ``high`` and ``identified`` by dotted key."""
        node = root.value.get("intervals")
        if node is None or not self.mapping(node, "intervals"):
            return {}
        found = {}
        for key, inner in node.value.items():
            place = f"intervals.{key}"
            if key not in values:
                self.refuse(inner, place, f"there is no such value; {suggest(key, values)}")
            elif self.mapping(inner, place):
                self.unknown_keys(inner, place, ("low", "high", "identified"))
                missing = [name for name in ("low", "high") if name not in inner.value]
                for name in missing:
                    self.refuse(inner, join(place, name), "is missing; the ends of an interval at 90 %")
                found[key] = {"identified": True} | inner.plain()
        return found

    def draws(self, root: Node, values: Mapping[str, Node]) -> Iterator[dict[str, str]]:
        """Rows of values by dotted key."""
        node = root.value.get("draws")
        if node is None or not self.mapping(node, "draws"):
            return
        self.unknown_keys(node, "draws", ("keys", "rows"))
        keys, rows = node.value.get("keys"), node.value.get("rows")
        if (
            keys is None
            or rows is None
            or not isinstance(keys.value, list)
            or not isinstance(rows.value, list)
        ):
            self.refuse(node, "draws", "needs keys (a list of dotted keys) and rows (a list of lists)")
            return
        for i, key in enumerate(keys.value):
            if not isinstance(key.value, str) or key.value not in values:
                self.refuse(
                    key, f"draws.keys.{i}", f"there is no such value; {suggest(str(key.value), values)}"
                )
                return
        names = [key.value for key in keys.value]
        for i, row in enumerate(rows.value):
            if not isinstance(row.value, list) or len(row.value) != len(names):
                self.refuse(
                    row, f"draws.rows.{i}", f"must be a list of {len(names)} values, one for each key"
                )
                continue
            for name, item in zip(names, row.value, strict=True):
                self.fits(*_field(name), item, f"draws.rows.{i}")
            yield dict(zip(names, (item.plain() for item in row.value), strict=True))

    def scatter(self, root: Node) -> dict[str, float]:
        """Standard deviation of the logarithm of measured / predicted, by measure."""
        node = root.value.get("scatter")
        if node is None or not self.mapping(node, "scatter"):
            return {}
        self.unknown_keys(node, "scatter", MEASURES)
        for name, inner in node.value.items():
            number = inner.value
            usable = isinstance(number, int | float) and not isinstance(number, bool)
            if not usable or not math.isfinite(number) or number < 0:
                self.refuse(inner, f"scatter.{name}", f"must be a number, at least 0, not {inner.shown()}")
        return {
            str(name): float(value) for name, value in node.plain().items() if isinstance(value, int | float)
        }


@cache
def _adapter(cls: type[Part], name: str) -> TypeAdapter[Any]:
    """What checks a value of a field by itself."""
    info = cls.model_fields[name]
    kind: Any = Annotated[info.annotation, info]
    return TypeAdapter(kind)


def _field(key: str) -> tuple[type[Part], str]:
    """Class and field that a dotted key of ``values`` stands for."""
    sort, *kind, name = key.split(".")
    if sort == "run":
        cls: type[Part] = Run
    elif sort == "strategy":
        cls = STRATEGIES[kind[0]]
    elif sort == "failures":
        cls = Fault if kind[0] == DRIVER else FAULTS[kind[0]]
    else:
        cls = BoltConfig
    return cls, fields_of(cls)[name]


def apply(root: Node, profile: Profile) -> tuple[Node, dict[str, str]]:
    """The scenario's tree with the profile's values where it has none of its own.

    Also says which: keys of the scenario, and the profile's key that each was taken from.
    """
    taken = {}
    for key, source in _places(root, profile):
        if not overrides.has(root, key):
            try:
                root = overrides.fill(root, key, profile.values[source])
            except ScenarioError:
                continue  # what is there is broken, and said so when the scenario is built
            taken[key] = source
    return root, taken


def _places(root: Node, profile: Profile) -> Iterator[tuple[str, str]]:
    """Keys of the scenario that values of the profile are meant for, the more special values first."""
    for source in sorted(profile.values, key=lambda key: f".{DRIVER}." not in key):
        sort, *kind, name = source.split(".")
        if sort == "run":
            yield f"run.{name}", source
        elif sort == "strategy":
            if overrides.strategy_kind(root) == kind[0]:
                yield f"strategy.{name}", source
        elif sort == "failures":
            for i, node in enumerate(_items(root.value.get("failures"))):
                is_driver = _text(node, "component") == DRIVER
                drawn = name == "in_interval" and "every" in node.value
                if (_text(node, "kind") == kind[0] or (is_driver and kind[0] == DRIVER)) and not drawn:
                    yield f"failures.{i}.{name}", source
        else:
            topology = root.value.get("topology")
            for component, node in topology.value.items() if _is_mapping(topology) else ():
                if _is_mapping(node) and _text(node, "bolt") == kind[0]:
                    yield f"topology.{component}.{name}", source


def _is_mapping(node: Node | None) -> bool:
    return node is not None and isinstance(node.value, dict)


def _items(node: Node | None) -> list[Node]:
    """The mappings in a list."""
    items = node.value if node is not None and isinstance(node.value, list) else []
    return [item if _is_mapping(item) else Node({}, item.source, item.line) for item in items]


def _text(node: Node, key: str) -> Any:
    return node.value[key].value if key in node.value else None
