"""Profiles: measured values that scenarios take unless they set the key themselves; `loader` applies them,
`prediction` uses their draws. What a profile may hold: `TOP` and `PARTS`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import TypeAdapter

from tideover.models.detectors.base import DETECTORS
from tideover.models.job.components import BoltConfig, Run
from tideover.models.operators.base import BOLTS
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import library, precedence, yaml_source
from tideover.scenarios.errors import ScenarioError, listed, suggest
from tideover.scenarios.part_builder import BROKEN, PartBuilder, fields_of
from tideover.scenarios.precedence import Setting
from tideover.scenarios.yaml_source import FROM_SET, Giver, Node, Origin
from tideover.sim.distributions import Distribution
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.registry import Part
from tideover.sim.text_files import is_file
from tideover.sim.units import Duration, Rate

# A profile is a YAML file with the keys of `TOP`, and `values` with those of `PARTS`. ``profile: path`` in a
# scenario names one, ``--set profile=path`` too. A value is taken where the scenario gives none; values of
# ``run`` only beside others, since they say how the others were measured.

KEY = "profile"
MOST_SCATTER = 10.0
"""Standard deviations of a logarithm: beyond a factor of 20,000 nothing is said."""

MEASURES = (
    *("state_recovery_s", "catch_up_s", "throughput_90_s"),
    *("output_gap_s", "outage_end_s", "latency_recovered_s"),
)
"""Columns of the recoveries that a profile may know the scatter of."""

TOP = ("name", "provenance", "values", "intervals", "draws", "ranges", "conditions", "scatter", "errors")
PARTS = ("strategy", "failures", "detector", "bolts", "run")
"""The keys of a profile, and of its block ``values``; `reference.md.j2` says what they mean."""

Value = str | int | float
"""Of a condition."""


class Measured(NamedTuple):
    """The values of a condition under which something was measured: a range of numbers, or a few values."""

    low: float | None
    high: float | None
    values: tuple[Value, ...] = ()

    def has(self, value: Value) -> bool:
        if self.low is None or self.high is None:
            return value in self.values
        return not isinstance(value, str) and self.low <= value <= self.high

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return listed([value if isinstance(value, str) else f"{value:g}" for value in self.values])
        low, high = f"{self.low:.12g}", f"{self.high:.12g}"
        return low if low == high else f"{low} to {high}"


DRIVER = "driver"
"""Faults of a component of this name have their own values."""


@dataclass(frozen=True)
class Profile:
    """A profile as its file says it. ``values`` by dotted key; ``draws``: rows of values by the same keys.

    ``ranges``: lowest and highest that was measured: ``rate`` (1/s, of all spouts), ``interval`` (ns, of what
    the strategy does again and again). ``conditions``: what else it was measured under, by name: the lowest
    and highest of a number, or all values that there were.
    """

    name: str
    file: str
    sha256: str
    provenance: dict[str, Any]
    values: dict[str, Node]
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    draws: tuple[dict[str, str], ...] = ()
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    conditions: dict[str, Measured] = field(default_factory=dict)
    scatter: dict[str, float] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)


def named(node: Node, directory: Path, texts: Mapping[str, str] = {}) -> Profile:
    """The profile that a key ``profile`` names: a file, or a built-in one; raises ScenarioError.
    ``directory``: of the scenario, for names in its file; ``texts``: of files that were read before, by their
    paths.
    """
    if not isinstance(node.value, str) or not node.value:
        raise ScenarioError([node.problem(KEY, f"must be the path of a profile, not {node.shown()}")])
    if node.value in library.profiles():
        return parse(library.profile_text(node.value), library.file_name(node.value))
    path = _path(node.value, node, directory)
    if str(path) in texts:
        return parse(texts[str(path)], str(path))
    if not is_file(path):
        hint = suggest(node.value, library.profiles())
        message = f"there is no file {str(path)!r}; give the path of a profile, or a built-in one: {hint}"
        raise ScenarioError([node.problem(KEY, message)])
    return read(path)


def texts_of(nodes: Iterable[Node], directory: Path) -> dict[str, str]:
    """The texts of the files that values of a key ``profile`` name, by path, for processes that may not see
    them; what is no file is left for ``named`` to tell. Raises ScenarioError.
    """
    names = ((node.value, node) for node in nodes if isinstance(node.value, str))
    paths = (_path(name, node, directory) for name, node in names if name not in library.profiles())
    return {str(path): _text(path) for path in paths if is_file(path)}


def _path(name: str, node: Node, directory: Path) -> Path:
    return Path(name) if node.is_outside else directory / name


def _text(path: Path) -> str:
    return yaml_source.text_of(path, "give the path of a profile")


def read(path: Path) -> Profile:
    return parse(_text(path), str(path))


def again(name: str) -> Profile:
    """A profile by what ``Profile.file`` said of it; raises ScenarioError."""
    return named(Node(name, Origin(FROM_SET, None, Giver.SETTING)), Path())


@lru_cache(maxsize=8)
def parse(text: str, name: str) -> Profile:
    """The profile in a text; ``name`` stands for the file in messages. Raises ScenarioError."""
    reader = _Reader(Path(name).parent)
    root = yaml_source.parse(text, name, "a profile is a mapping with name and values", TOP)
    reader.unknown_keys(root, "", TOP)
    values = dict(reader.values(root))
    found = Profile(
        name=reader.name(root) or Path(name).stem,
        file=name.removesuffix(".yaml") if name.removesuffix(".yaml") in library.profiles() else name,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        provenance=reader.free(root, "provenance"),
        values=values,
        intervals=reader.intervals(root, values),
        draws=tuple(reader.draws(root, values)),
        ranges=reader.ranges(root),
        conditions=reader.conditions(root),
        scatter=reader.scatter(root),
        errors=reader.free(root, "errors"),
    )
    if reader.problems:
        raise ScenarioError(reader.problems)
    return found


class _Measured(Part):
    """What a profile may know the measured range of."""

    rate: Rate
    interval: Duration


class _Reader(PartBuilder):
    """Reads a profile's tree; what is wrong is collected."""

    def name(self, root: Node) -> str | None:
        node = root.get("name")
        if node is not None and (not isinstance(node.value, str) or not node.value):
            self.refuse(node, "name", f"must be a text, not {node.shown()}")
        return None if node is None else str(node.value)

    def values(self, root: Node) -> Iterator[tuple[str, Node]]:
        """Dotted keys below ``values`` and what is given there."""
        block = root.get("values")
        if block is None:
            self.refuse(root, "values", f"is missing; a mapping of {', '.join(PARTS)}")
            return
        if not self.mapping(block, "values") or self.unknown_keys(block, "values", PARTS):
            return
        places: list[tuple[Node, str, type[Part]]] = []
        for sort, node in block.items():
            if sort == "run":
                places.append((node, sort, Run))
                continue
            known = _classes()[sort]
            for kind, inner in node.items() if self.mapping(node, f"values.{sort}") else ():
                if kind in known:
                    places.append((inner, f"{sort}.{kind}", known[kind]))
                else:
                    self.refuse(inner, f"values.{sort}.{kind}", f"unknown kind; {suggest(kind, known)}")
        for node, key, cls in places:
            fields = measurable(cls)
            if self.mapping(node, f"values.{key}"):
                self.unknown_keys(node, f"values.{key}", fields)
                for name, field in fields.items():
                    value = node.get(name)
                    if value is not None and self._value_of(cls, field, value, f"values.{key}.{name}")[0]:
                        yield f"{key}.{name}", value.given(giver=Giver.PROFILE)

    def _value_of(self, cls: type[Part], field: str, node: Node, key: str) -> tuple[bool, Any]:
        """Whether a value can be that of a field, with a problem if not; and the value."""
        before, value = len(self.problems), self.value(cls.model_fields[field].annotation, node, key)
        if value is not BROKEN:
            value, wrong = self.validated(_adapter(cls, field).validate_python, value)
            for said in wrong[:1]:
                self.refuse(node, key, f"{said.get('ctx', {}).get('error', said['msg'])}")
        return len(self.problems) == before, value

    def free(self, root: Node, key: str) -> dict[str, Any]:
        return {name: node.plain() for name, node in self.entries(root, key).items()}

    def intervals(self, root: Node, values: Mapping[str, Node]) -> dict[str, dict[str, Any]]:
        """``low``, ``high`` and ``identified`` by dotted key."""
        found = {}
        for key, inner in self.entries(root, "intervals").items():
            place = f"intervals.{key}"
            if key not in values:
                self.refuse(inner, place, f"there is no such value; {suggest(key, values)}")
            elif self.mapping(inner, place):
                self.unknown_keys(inner, place, ("low", "high", "identified"))
                self._ends(inner, place, *_field(key))
                known = inner.get("identified")
                if known is not None and not isinstance(known.value, bool):
                    self.refuse(known, f"{place}.identified", f"must be true or false, not {known.shown()}")
                found[key] = {"identified": True} | inner.plain()
        return found

    def ranges(self, root: Node) -> dict[str, tuple[float, float]]:
        """Lowest and highest that was measured, by what it is."""
        found: dict[str, tuple[float, float]] = {}
        known = fields_of(_Measured)
        for name, inner in self.entries(root, "ranges", known).items():
            if name in known and self.mapping(inner, f"ranges.{name}"):
                self.unknown_keys(inner, f"ranges.{name}", ("low", "high"))
                ends = self._ends(inner, f"ranges.{name}", _Measured, name)
                found |= {} if ends is None else {name: ends}
        return found

    def conditions(self, root: Node) -> dict[str, Measured]:
        found = {}
        for name, inner in self.entries(root, "conditions").items():
            place, plain = f"conditions.{name}", inner.plain()
            if inner.is_mapping:
                self.unknown_keys(inner, place, ("low", "high"))
                low, high = (plain.get(end) for end in ("low", "high"))
                if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high)):
                    self.refuse(inner, place, "needs two numbers, low and high")
                elif low > high:
                    self.refuse(inner, place, f"low is more than high: {low} and {high}")
                else:
                    found[name] = Measured(low, high)
                continue
            values = plain if isinstance(plain, list) else [plain]
            if values and all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values):
                found[name] = Measured(None, None, tuple(values))
            else:
                said = "must be a text, a number, a list of them, or {low: …, high: …}"
                self.refuse(inner, place, f"{said}, not {inner.shown()}")
        return found

    def _ends(self, node: Node, place: str, cls: type[Part], field: str) -> tuple[float, float] | None:
        """Both ends of an interval of values of a field, if they are there and can be compared."""
        found: list[float] = []
        for name in ("low", "high"):
            end, at = node.get(name), f"{place}.{name}"
            if end is None:
                self.refuse(node, at, "is missing; an interval has two ends, low and high")
                continue
            _, value = self._value_of(cls, field, end, at)
            value = value.mean_ns if isinstance(value, Distribution) else value
            if isinstance(value, int | float) and not isinstance(value, bool):  # else it is no quantity
                found.append(value)
        if len(found) < 2:
            return None
        if found[0] > found[1]:
            shown = (node.value[name].plain() for name in ("low", "high"))
            self.refuse(node, place, "low is more than high: {} and {}".format(*shown))
        return found[0], found[1]

    def draws(self, root: Node, values: Mapping[str, Node]) -> Iterator[dict[str, str]]:
        node, given = root.get("draws"), self.entries(root, "draws", ("keys", "rows"))
        if node is None or not node.is_mapping:
            return
        keys, rows = (given.get(name, node.like(None)) for name in ("keys", "rows"))
        if not isinstance(keys.value, list) or not isinstance(rows.value, list):
            self.refuse(node, "draws", "needs keys (a list of dotted keys) and rows (a list of lists)")
            return
        names = [key.value for key in keys.value]
        for i, key in enumerate(keys.value):
            if not isinstance(key.value, str) or key.value not in values:
                said = f"there is no such value; {suggest(str(key.value), values)}"
                self.refuse(key, f"draws.keys.{i}", said)
                return
        for i, row in enumerate(rows.value):
            if not isinstance(row.value, list) or len(row.value) != len(names):
                said = f"must be a list of {len(names)} values, one for each key"
                self.refuse(row, f"draws.rows.{i}", said)
                continue
            for name, item in zip(names, row.value, strict=True):
                self._value_of(*_field(name), item, f"draws.rows.{i}")
            yield dict(zip(names, (item.plain() for item in row.value), strict=True))

    def scatter(self, root: Node) -> dict[str, float]:
        """Standard deviation of the logarithm of measured / predicted, by measure."""
        given = self.entries(root, "scatter", MEASURES)
        for name, inner in given.items():
            number = inner.value
            usable = isinstance(number, int | float) and not isinstance(number, bool)
            if not usable or not 0 <= number <= MOST_SCATTER:
                message = f"must be a number, at least 0 and at most {MOST_SCATTER:g}, not {inner.shown()}"
                self.refuse(inner, f"scatter.{name}", message)
        return {name: float(n.value) for name, n in given.items() if isinstance(n.value, int | float)}


@cache
def _adapter(cls: type[Part], name: str) -> TypeAdapter[Any]:
    """What checks a value of a field by itself."""
    info = cls.model_fields[name]
    kind: Any = Annotated[info.annotation, info]
    return TypeAdapter(kind)


def measurable(cls: type[Part]) -> dict[str, str]:
    """Keys of a part that a profile may give, and their fields."""
    return {key: name for key, name in fields_of(cls).items() if key not in ("bolt", "from")}


def _field(key: str) -> tuple[type[Part], str]:
    """Class and field that a dotted key of ``values`` stands for."""
    sort, *kind, name = key.split(".")
    cls = Run if sort == "run" else _classes()[sort][kind[0]]
    return cls, fields_of(cls)[name]


def _classes() -> dict[str, dict[str, type[Part]]]:
    """What the kinds in a block of ``values`` stand for."""
    return {
        "strategy": dict(STRATEGIES.items()),
        "failures": {DRIVER: Fault, **dict[str, type[Part]](FAULTS.items())},
        "detector": dict(DETECTORS.items()),
        "bolts": dict.fromkeys(BOLTS, BoltConfig),
    }


def apply(root: Node, profile: Profile) -> tuple[Node, dict[str, str]]:
    """The scenario's tree with the profile's values where it has none of its own; and the keys that took one,
    with the profile's key. Nothing is taken if there are values of ``run`` alone.
    """
    taken = {}
    completed = root
    for key, source in _places(root, profile):
        if key in taken:
            continue  # by a value that is more special
        with suppress(ScenarioError):  # what is there is broken, and said so when the scenario is built
            before, completed = completed, precedence.put(completed, Setting(key, profile.values[source]))
            if completed is not before:
                taken[key] = source
    return (completed, taken) if any(not key.startswith("run.") for key in taken) else (root, {})


def why_idle(root: Node, profile: Profile) -> str:
    """Why a scenario takes nothing from a profile, in words."""
    places = [key for key, _ in _places(root, profile) if not key.startswith("run.")]
    if places:
        return f"the scenario itself gives all that the profile could: {', '.join(places)}"
    wanted: dict[str, list[str]] = {}  # kinds of parts by their sort
    for sort, kind, *_ in (key.split(".") for key in profile.values if not key.startswith("run.")):
        wanted[sort] = [*dict.fromkeys([*wanted.get(sort, ()), kind])]
    there: dict[str, list[str]] = {}
    for sort, (kind, *_), _ in _slots(root):
        there[sort] = [*dict.fromkeys([*there.get(sort, ()), *([str(kind)] if kind else [])])]
    if not wanted:
        return "it has no value for any strategy, failure or bolt"
    parts = ", ".join(f"{sort} {listed(kinds)}" for sort, kinds in wanted.items())
    here = [f"{sort} {listed(there[sort])}" for sort in wanted if there.get(sort)]
    return f"it has values for {parts}; the scenario has {', '.join(here) or 'nothing of the sort'}"


def missing(root: Node, profile: Profile, key: str) -> str | None:
    """What to say of a key that neither the scenario nor its profile gives; None if no profile could."""
    place, _, name = key.rpartition(".")
    for sort, (kind, *_), at in _slots(root):
        if at == place and sort in ("strategy", "bolts") and kind:
            cls: type[Part] = STRATEGIES[kind] if sort == "strategy" else BoltConfig
            if name not in measurable(cls) or root.get(*key.split(".")) is not None:
                return None
            near = [one for one in profile.values if one.startswith(f"{sort}.") and one.endswith(f".{name}")]
            only = f", only {listed(near)}" if near else ""
            return f"profile {profile.name} does not give {sort}.{kind}.{name}{only}"
    return None


def _slots(root: Node) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """What profiles may know of a scenario: sort, kinds that it goes by (the first is told), and its key."""
    yield "strategy", (precedence.strategy_kind(root),), "strategy"
    yield "detector", (precedence.detector_kind(root),), "detector"
    failures = root.get("failures")
    faults = failures.value if failures is not None and isinstance(failures.value, list) else []
    for i, node in enumerate(faults):
        special = (DRIVER,) if (of := node.get("component")) is not None and of.value == DRIVER else ()
        kind = node.get("kind")
        yield "failures", (*special, None if kind is None else kind.value), f"failures.{i}"
    for name, node in (root.get("topology") or root.like(None)).items():
        bolt = node.get("bolt")
        yield "bolts", (None if bolt is None else bolt.value,), f"topology.{name}"


def _places(root: Node, profile: Profile) -> Iterator[tuple[str, str]]:
    """Keys of the scenario that values of the profile are meant for, the more special values first."""
    noticed = precedence.detector_kind(root) is not None  # by the detector, whatever failures say
    for source in sorted(profile.values, key=lambda key: f".{DRIVER}." not in key):
        sort, *kind, name = source.split(".")
        if sort == "run":
            yield f"run.{name}", source
        for of, kinds, key in _slots(root):
            if of != sort or kind[0] not in kinds:
                continue
            drawn = name == "in_interval" and root.get(*key.split("."), "every") is not None
            if sort != "failures" or not (drawn or (noticed and name in ("detection", "restart"))):
                yield f"{key}.{name}", source
