"""From a tree of nodes to parts, by the annotations of their classes; and from parts and values back.

A field annotated with a registry's base class (``Distribution``, ``Grouping`` …) is built by its ``kind``;
one annotated with a ``Part`` by that class's fields; the rest is left to pydantic, in strict mode and with
``border`` set, so that bare numbers are refused where a unit is needed. All problems are collected, each
with its place.
"""

from __future__ import annotations

import math
import os
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from tideover.models.config import Scenario, Slo
from tideover.models.detectors.base import DETECTORS, Detector
from tideover.models.detectors.restarts import RESTARTS, RestartStrategy
from tideover.models.job.arrivals import ARRIVALS, Arrivals, Periodic
from tideover.models.job.components import BoltConfig, QueueSettings, SpoutConfig
from tideover.models.job.groupings import GROUPINGS, Grouping
from tideover.models.job.placements import PLACEMENTS, Placement
from tideover.models.job.sinks import SINKS, Sink
from tideover.models.job.sources import SOURCES, Source
from tideover.models.job.spouts import SPOUTS, Spout
from tideover.models.job.stores import BACKENDS, STORES, Backend, StoreKind
from tideover.models.operators.base import BOLTS, Bolt
from tideover.models.operators.window import Window
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios.errors import Problem, is_misspelt, shorten, suggest
from tideover.scenarios.yaml_source import MAX_DEPTH, Node, Origin
from tideover.sim.distributions import DISTRIBUTIONS, Constant, Distribution
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.registry import Part, Registry, kind_of
from tideover.sim.units import Unit, format_duration

REGISTRIES: dict[type[Part], Registry[Any]] = {
    Arrivals: ARRIVALS,
    Backend: BACKENDS,
    Bolt: BOLTS,
    Detector: DETECTORS,
    Distribution: DISTRIBUTIONS,
    Fault: FAULTS,
    Grouping: GROUPINGS,
    RestartStrategy: RESTARTS,
    Placement: PLACEMENTS,
    Sink: SINKS,
    Source: SOURCES,
    Spout: SPOUTS,
    StoreKind: STORES,
    Strategy: STRATEGIES,
}
_NAMED = tuple(REGISTRIES)

BARE: dict[type[Part], str] = {Constant: "value", QueueSettings: "length", Slo: "objective", Window: "length"}
"""Parts of which one field may be written alone: ``service: 0.2 ms``, ``window: 30 s``, ``queue: 1000``."""

_RENAMED = {"fixed_offset": "offset"}

P = TypeVar("P", bound=Part)


def key_of(field: str) -> str:
    """The key in a file for a field of a part.

    >>> key_of("from_"), key_of("fixed_offset")
    ('from', 'offset')
    """
    return _RENAMED.get(field, field).rstrip("_")


def fields_of(part: type[Part]) -> dict[str, str]:
    """A part's keys in a file, and the field that each stands for."""
    return {key_of(name): name for name in part.model_fields}


def without_none(annotation: Any) -> tuple[Any, bool]:
    """An annotation without ``Annotated`` and without ``| None``; and whether None was allowed."""
    optional = False
    while True:
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, types.UnionType):
            others = [a for a in typing.get_args(annotation) if a is not type(None)]
            optional = optional or len(others) < len(typing.get_args(annotation))
            if len(others) != 1:
                return annotation, optional
            annotation = others[0]
        else:
            return annotation, optional


def unit_of(annotation: Any, metadata: Iterable[Any] = ()) -> Unit | None:
    """The unit of an annotated quantity, however deep in a union or a list it stands."""
    for mark in metadata:
        if isinstance(mark, Unit):
            return mark
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return unit_of(args[0], args[1:])
    return next((unit for arg in args if (unit := unit_of(arg)) is not None), None)


def join(key: str, *more: str) -> str:
    """A dotted key."""
    return ".".join(part for part in (key, *more) if part)


class PartBuilder:
    """Builds parts, and collects what is wrong in ``problems``.

    ``directory``: where files named in a scenario are looked for; parts find it in pydantic's validation
    context.
    """

    def __init__(self, directory: Path) -> None:
        self.problems: list[Problem] = []
        self._context = {"border": True, "directory": directory}

    def refuse(self, node: Node, key: str, message: str) -> None:
        """Note a problem of a value."""
        self.problems.append(node.problem(key, message))

    def mapping(self, node: Node, key: str) -> bool:
        """Whether a value is a mapping; a problem if not."""
        if not isinstance(node.value, dict):
            self.refuse(node, key, f"must be a mapping of keys, not {node.shown()}")
        return isinstance(node.value, dict)

    def unknown_keys(self, node: Node, key: str, known: Iterable[str]) -> list[str]:
        """Note each key of a mapping that is not known; returns them."""
        known = list(known)
        unknown = [name for name in node.value if name not in known]
        for name in unknown:
            self.refuse(node.value[name], join(key, name), f"unknown key; {suggest(name, known)}")
        return unknown

    def entries(self, node: Node, key: str, known: Iterable[str] | None = None) -> dict[str, Node]:
        """What a block of the file has, if it is there; a problem if it is no mapping, or has other keys than
        those that are ``known``.
        """
        block = node.get(key)
        if block is None or not self.mapping(block, key):
            return {}
        if known is not None:
            self.unknown_keys(block, key, known)
        return dict(block.items())

    def part(
        self,
        cls: type[P],
        node: Node,
        key: str,
        given: Mapping[str, Any] | None = None,
        unknown: Sequence[str] = (),
    ) -> P | None:
        """A part from its keys; None if there was any problem.

        ``given``: fields that are built already; None stands for one with a problem that is known.
        ``unknown``: keys beside those of ``node`` that were refused already.
        """
        bare = BARE.get(cls)
        if bare is not None and not isinstance(node.value, dict):
            node, flat = node.like({bare: node}), bare
        else:
            flat = None
        if not self.mapping(node, key):
            return None
        given = given or {}
        keys = fields_of(cls)
        unknown = [
            *unknown,
            *self.unknown_keys(node, key, [*keys, *(["kind"] if issubclass(cls, _NAMED) else [])]),
        ]
        values = dict(given)
        failed = {name for name, value in given.items() if value is None}
        for file_key, name in keys.items():
            if name in given:
                continue
            place = key if file_key == flat else join(key, file_key)
            ok, found, value = self._field(cls.model_fields[name], node, file_key, place, unknown)
            if not ok:
                failed.add(name)
            elif found:
                values[name] = value
        return self._validate(cls, node, key, values, failed, bool(unknown), flat)

    def named(self, base: type[P], node: Node, key: str) -> P | None:
        """A part of a registry, by its kind; short: a duration, a kind alone, ``{fields: [word]}``."""
        registry = REGISTRIES[base]
        if base is Distribution and not isinstance(node.value, dict | list):
            return typing.cast("P | None", self.part(Constant, node, key))
        if isinstance(node.value, str):
            cls = self.kind(registry, node, key)
            return cls and self.part(cls, node.like({}), key)
        if not self.mapping(node, key):
            return None
        if "kind" not in node.value:
            only = next(iter(node.value)) if len(node.value) == 1 else ""
            if only in registry and only in fields_of(registry[only]):
                return typing.cast("P | None", self.part(registry[only], node, key))
            self.refuse(node, join(key, "kind"), f"is missing; give one of {', '.join(registry)}")
            return None
        cls = self.kind(registry, node.value["kind"], join(key, "kind"))
        return cls and self.part(cls, node, key)

    def kind(self, registry: Registry[Any], node: Node, key: str) -> Any:
        """The class that a kind stands for; None if there is none."""
        if not isinstance(node.value, str):
            self.refuse(node, key, f"must be the name of a {registry.what}, not {node.shown()}")
        elif node.value not in registry:
            name = shorten(node.value, 60)
            self.refuse(node, key, f"unknown {registry.what} {name!r}; {suggest(node.value, registry)}")
        else:
            return registry[node.value]
        return None

    def _field(
        self, info: FieldInfo, node: Node, file_key: str, place: str, unknown: Sequence[str]
    ) -> tuple[bool, bool, Any]:
        """Whether a field is fine, whether it is given, and its value."""
        meaning = f"; {info.description}" if info.description else ""
        child = node.value.get(file_key)
        optional = without_none(info.annotation)[1]
        if child is None:
            if info.is_required() and not is_misspelt(file_key, unknown):
                self.refuse(node, place, f"is missing{meaning}")
            return not info.is_required(), False, None
        if child.value is None and not optional:
            # --set key=null takes a key away that has a default.
            removed = child.is_outside and not info.is_required()
            if not removed:
                self.refuse(child, place, f"is empty{meaning}")
            return removed, False, None
        ok, value = self._value(info.annotation, child, place)
        return ok, True, value

    def _value(self, annotation: Any, node: Node, key: str) -> tuple[bool, Any]:
        """Whether a value is fine so far, and what to hand to pydantic."""
        annotation, _ = without_none(annotation)
        if node.value is None:
            return True, None
        if annotation in REGISTRIES:
            part = self.named(annotation, node, key)
            return part is not None, part
        if isinstance(annotation, type) and issubclass(annotation, Part):
            part = self.part(annotation, node, key)
            return part is not None, part
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (tuple, list):
            if not isinstance(node.value, list):
                self.refuse(node, key, f"must be a list, as in [{node.plain() if node.value else ''}]")
                return False, None
            items = [self._value(args[0], child, join(key, str(i))) for i, child in enumerate(node.value)]
            return all(ok for ok, _ in items), origin(value for _, value in items)
        if origin is dict:
            if not self.mapping(node, key):
                return False, None
            entries = {k: self._value(args[1], child, join(key, k)) for k, child in node.value.items()}
            return all(ok for ok, _ in entries.values()), {k: value for k, (_, value) in entries.items()}
        return True, node.plain()

    def _validate(
        self,
        cls: type[P],
        node: Node,
        key: str,
        values: dict[str, Any],
        failed: set[str],
        broken: bool,
        flat: str | None,
    ) -> P | None:
        """The last step: pydantic's own checks. What is known to be wrong is not said again."""
        try:
            part = cls.model_validate(
                {name: value for name, value in values.items() if name not in failed},
                strict=True,
                context=self._context,
            )
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                loc = detail["loc"]
                if (loc and loc[0] in failed) or (not loc and (failed or broken)):
                    continue
                place, at = _locate(node, key, loc, flat)
                info = cls.model_fields.get(str(loc[0])) if loc else None
                self.refuse(at, place, _say(detail, at, info))
            return None
        return None if failed or broken else part


def _locate(node: Node, key: str, loc: tuple[int | str, ...], flat: str | None) -> tuple[str, Node]:
    """Key and node that a pydantic location leads to, as far as the file goes along."""
    for i, step in enumerate(loc):
        name = key_of(str(step)) if i == 0 else str(step)
        if isinstance(node.value, dict) and name in node.value:
            node = node.value[name]
            key = key if name == flat else join(key, name)
        elif isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
            node, key = node.value[step], join(key, name)
        else:
            break
    return key, node


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "none": "empty",
}
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def _say(detail: Any, node: Node, info: FieldInfo | None) -> str:
    """What pydantic found, in words that fit a file."""
    sort, limits = str(detail["type"]), detail.get("ctx", {})
    if sort in ("value_error", "assertion_error"):
        return str(limits.get("error", detail["msg"]))
    if isinstance(node.value, float) and math.isnan(node.value):
        return "must be a number, not nan"
    if sort in _LIMITS:
        name, words = _LIMITS[sort]
        unit = unit_of(info.annotation, info.metadata) if info else None
        limit = limits[name]
        if unit is not None:
            limit = unit.format(limit)
        elif isinstance(limit, float):
            limit = f"{limit:g}"
        return f"must be {words} {limit}, not {node.shown()}"
    if sort == "literal_error":
        return f"must be {limits['expected']}, not {node.shown()}"
    if sort in ("too_short", "too_long"):
        words, limit = ("least", "min_length") if sort == "too_short" else ("most", "max_length")
        return f"must have at {words} {limits[limit]} entries"
    if sort == "int_from_float" or sort.removesuffix("_type").removesuffix("_parsing") in _TYPES:
        what = _TYPES.get(sort.split("_")[0], "a whole number")
        return f"must be {what}, not {node.shown()}"
    message = str(detail["msg"])
    return f"{message[:1].lower()}{message[1:]}, not {node.shown()}"


def to_data(scenario: Scenario) -> dict[str, Any]:
    """A scenario as a file would say it, which ``load`` reads back to an equal one: mappings, lists, texts
    and numbers only; every key is there, defaults too, except those that are None.

    >>> from tideover.scenarios.loader import load
    >>> scenario = load("wordcount")
    >>> to_data(scenario)["topology"]["count"]["service"]
    '0.1 ms'
    >>> load(to_data(scenario)) == scenario
    True
    """
    return _Form(nulls=False, short=False).fields(scenario)


def part_to_data(part: Part, *, nulls: bool = True) -> Any:
    """A part of a scenario, or a whole one, as a file mostly has it: arrivals of a constant rate stand in
    short form, where dotted keys and short parameters look for them.

    ``nulls``: what is None is null, so that nothing else (a block ``strategies``, a profile) gives the part a
    value that it does not have.

    >>> from tideover.models.operators.window import Window
    >>> part_to_data(Window(tuples=5))
    {'length': None, 'tuples': 5, 'gap': None, 'slide': None, ...}
    >>> part_to_data(Window(tuples=5), nulls=False)
    {'tuples': 5, 'trigger': 'tick'}
    """
    return _Form(nulls, short=True).value(part)


@dataclass(frozen=True)
class _Form:
    """How parts are written. ``nulls``: keys that are None are there; ``short``: arrivals in short form."""

    nulls: bool
    short: bool

    def fields(self, part: Part) -> dict[str, Any]:
        """A part's keys without its kind."""
        data: dict[str, Any] = {}
        for name, info in type(part).model_fields.items():
            value = getattr(part, name)
            default = info.get_default(call_default_factory=True)
            if name in part.omitted and value == default and not self.nulls:
                continue
            if value is not None:
                unit = unit_of(info.annotation, info.metadata)
                data[key_of(name)] = self.value(value, unit.format if unit else None)
            elif self.nulls:
                data[key_of(name)] = None
        return data

    def value(self, value: Any, text: Any = None) -> Any:
        """``text`` writes the quantities in it; None: there are none."""
        if isinstance(value, SpoutConfig | BoltConfig):
            return self.component(value)
        if isinstance(value, Constant):
            return format_duration(value.value)
        if isinstance(value, Part):
            kind = {"kind": kind_of(value)} if isinstance(value, _NAMED) else {}
            return kind | self.fields(value)
        if isinstance(value, dict):
            return {key: self.value(item, text) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, text) for item in value]
        return value if text is None else text(value)

    def component(self, config: SpoutConfig | BoltConfig) -> dict[str, Any]:
        """The keys of the spout or bolt stand beside those that every component has."""
        role = "spout" if isinstance(config, SpoutConfig) else "bolt"
        part = config.spout if isinstance(config, SpoutConfig) else config.bolt
        own = self.fields(part)
        common = {key: value for key, value in self.fields(config).items() if key != role}
        if self.short and isinstance(config, SpoutConfig) and isinstance(config.arrivals, Periodic):
            arrivals = self.fields(config.arrivals)
            if not own.keys() & arrivals.keys():
                del common["arrivals"]
                common = arrivals | common
        return {role: kind_of(part)} | own | common


def from_plain(value: Any, origin: Origin, path: tuple[str, ...] = ()) -> Node:
    """The tree of a value: what a file may hold, a path, what numpy and pandas have for numbers and lists, a
    timedelta, and typed parts. ``path``: where it stands.

    Raises ScenarioError for anything else, and if it is nested too deep; TypeError for the class of a part
    instead of an object, and for a part that no file could name.

    >>> from_plain([timedelta(minutes=1.5), 3], Origin("mine")).plain()
    ['90 s', 3]
    """
    if len(path) >= MAX_DEPTH:
        raise Node(None, origin).refused("", f"is nested more than {MAX_DEPTH} levels deep")
    value = _simple(value)
    if isinstance(value, Mapping):
        return Node({str(k): from_plain(v, origin, (*path, str(k))) for k, v in value.items()}, origin)
    if isinstance(value, list | tuple | range):
        return Node([from_plain(v, origin, (*path, str(i))) for i, v in enumerate(value)], origin)
    if value is None or isinstance(value, bool | int | float | str):
        return Node(value, origin)
    what = f"is a {type(value).__name__}; give a number, a text, a list or a mapping"
    raise Node(None, origin).refused(".".join(path), what)


def _simple(value: Any) -> Any:
    """What a file would hold instead of an object; anything else as it is."""
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is a class; give an object of it, {value.__name__}(…)")
    if isinstance(value, Part):
        return part_to_data(value)
    if hasattr(value, "tolist"):  # an array, a series, or one of their numbers
        value = value.tolist()
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return format_duration(microseconds * 1000 + getattr(value, "nanoseconds", 0))  # pandas' has more
    return os.fspath(value) if isinstance(value, os.PathLike) else value
