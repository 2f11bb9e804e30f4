"""From a tree of nodes to parts, by the annotations of their classes; and from parts and values back.

A field annotated with a registry's base class (``Distribution``, ``Grouping`` …) is built by its ``kind``;
one annotated with a ``Part`` by that class's fields; the rest is left to pydantic, in strict mode and with
``border`` set, so that bare numbers are refused where a unit is needed. All problems are collected, each
with its place. Called by whoever reads a file; texts of messages are written here, and rules of parts in the
parts.
"""

from __future__ import annotations

import math
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from tideover.models.config import Scenario, Slo
from tideover.models.detectors.base import DETECTORS, RESTARTS, Detector, RestartStrategy
from tideover.models.job.arrivals import ARRIVALS, Arrivals, Periodic
from tideover.models.job.components import BoltConfig, QueueSettings, SpoutConfig
from tideover.models.job.groupings import GROUPINGS, Grouping
from tideover.models.job.placements import PLACEMENTS, Placement
from tideover.models.job.sinks import SINKS, Sink
from tideover.models.job.spouts import SOURCES, SPOUTS, Source, Spout
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

BROKEN: Any = object()
"""Stands for a value with a problem that is known."""

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
    if typing.get_origin(annotation) is Annotated:
        return without_none(typing.get_args(annotation)[0])
    args = typing.get_args(annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType) and type(None) in args:
        others = [arg for arg in args if arg is not type(None)]
        return (without_none(others[0])[0] if len(others) == 1 else annotation), True
    return annotation, False


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
    return ".".join(part for part in (key, *more) if part)


class PartBuilder:
    """Builds parts, and collects ``problems``; ``directory``: where files that are named are looked for."""

    def __init__(self, directory: Path) -> None:
        self.problems: list[Problem] = []
        self._context = {"border": True, "directory": directory}

    def refuse(self, node: Node, key: str, message: str) -> None:
        self.problems.append(node.problem(key, message))

    def mapping(self, node: Node, key: str) -> bool:
        """Whether a value is a mapping; a problem if not."""
        if not node.is_mapping:
            self.refuse(node, key, f"must be a mapping of keys, not {node.shown()}")
        return node.is_mapping

    def unknown_keys(self, node: Node, key: str, known: Iterable[str]) -> list[str]:
        """Note each key of a mapping that is not known; returns them."""
        known = list(known)
        unknown = [name for name in node.value if name not in known]
        for name in unknown:
            hint = self.hint(node, key, name, known)
            self.refuse(node.value[name], join(key, name), f"unknown key; {hint}")
        return unknown

    def hint(self, node: Node, key: str, name: str, known: list[str]) -> str:
        """What may be meant by an unknown key of a mapping."""
        return suggest(name, known)

    def entries(self, node: Node, key: str, known: Iterable[str] | None = None) -> dict[str, Node]:
        """What a block has, if it is there; a problem if it is no mapping, or has keys not ``known``."""
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
        bare = None if node.is_mapping else BARE.get(cls)
        if bare is not None:
            node = node.like({bare: node})
        if not self.mapping(node, key):
            return None
        keys = fields_of(cls)
        known = [*keys, *(["kind"] if issubclass(cls, _NAMED) else [])]
        unknown = [*unknown, *self.unknown_keys(node, key, known)]
        values = dict(given or {})
        failed = {name for name, value in values.items() if value is None}
        for file_key, name in keys.items():
            if name in values:
                continue
            field, child = cls.model_fields[name], node.value.get(file_key)
            place = key if file_key == bare else join(key, file_key)
            meaning = f"; {field.description}" if field.description else ""
            if child is None:
                if field.is_required() and not is_misspelt(file_key, unknown):
                    self.refuse(node, place, f"is missing{meaning}")
                wrong = field.is_required()
            elif child.value is None and not without_none(field.annotation)[1]:
                # --set key=null takes a key away that has a default.
                if wrong := field.is_required() or not child.is_outside:
                    self.refuse(child, place, f"is empty{meaning}")
            else:
                values[name] = self.value(field.annotation, child, place)
                wrong = values[name] is BROKEN
            failed |= {name} if wrong else set()
        sound = {name: value for name, value in values.items() if name not in failed}
        part, wrong_too = self.validated(cls.model_validate, sound)
        for detail in wrong_too:
            loc = detail["loc"]
            if not ((loc[0] in failed) if loc else (failed or unknown)):  # else it is said already
                at, place = _locate(node, key, loc, bare)
                info = cls.model_fields.get(str(loc[0])) if loc else None
                self.refuse(at, place, _say(detail, at, info))
        return None if failed or unknown or wrong_too else part

    def validated(self, validate: Callable[..., Any], value: Any) -> tuple[Any, Sequence[Any]]:
        """What pydantic makes of a value, and what is wrong with it."""
        try:
            return validate(value, strict=True, context=self._context), ()
        except ValidationError as error:
            return None, error.errors(include_url=False, include_input=False)

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
        if isinstance(node.value, str) and node.value in registry:
            return registry[node.value]
        said = f"must be the name of a {registry.what}, not {node.shown()}"
        if isinstance(node.value, str):
            name = shorten(node.value, 60)
            said = f"unknown {registry.what} {name!r}; {suggest(node.value, registry)}"
        self.refuse(node, key, said)
        return None

    def value(self, annotation: Any, node: Node, key: str) -> Any:
        """What to hand to pydantic for a field of this annotation, or ``BROKEN``."""
        annotation, _ = without_none(annotation)
        if node.value is None:
            return None
        if isinstance(annotation, type) and issubclass(annotation, Part):
            part = (self.named if annotation in REGISTRIES else self.part)(annotation, node, key)
            return BROKEN if part is None else part
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (tuple, list):
            if not isinstance(node.value, list):
                self.refuse(node, key, f"must be a list, as in [{node.plain() if node.value else ''}]")
                return BROKEN
            items = [self.value(args[0], child, join(key, str(i))) for i, child in enumerate(node.value)]
            return BROKEN if any(item is BROKEN for item in items) else origin(items)
        if origin is dict:
            if not self.mapping(node, key):
                return BROKEN
            entries = {name: self.value(args[1], child, join(key, name)) for name, child in node.items()}
            return BROKEN if any(entry is BROKEN for entry in entries.values()) else entries
        return node.plain()


def _locate(node: Node, key: str, loc: tuple[int | str, ...], bare: str | None) -> tuple[Node, str]:
    """Node and key that a pydantic location leads to, as far as the file goes along."""
    for i, step in enumerate(loc):
        name = key_of(str(step)) if i == 0 else str(step)
        inner = node.get(name)
        if inner is None:
            break
        node, key = inner, key if name == bare else join(key, name)
    return node, key


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
    if sort in ("too_short", "too_long"):
        words, limit = ("least", "min_length") if sort == "too_short" else ("most", "max_length")
        return f"must have at {words} {limits[limit]} entries"
    message = str(detail["msg"])
    said = f"{message[:1].lower()}{message[1:]}"
    if sort in _LIMITS:
        name, words = _LIMITS[sort]
        unit = unit_of(info.annotation, info.metadata) if info else None
        limit = limits[name]
        shown = f"{limit:g}" if isinstance(limit, float) else limit
        said = f"must be {words} {unit.format(limit) if unit else shown}"
    elif sort == "literal_error":
        said = f"must be {limits['expected']}"
    elif sort == "int_from_float" or sort.removesuffix("_type").removesuffix("_parsing") in _TYPES:
        said = f"must be {_TYPES.get(sort.split('_')[0], 'a whole number')}"
    return f"{said}, not {node.shown()}"


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
    found: dict[str, Any] = part_to_data(scenario, nulls=False, short=False)
    return found


def part_to_data(part: Part, *, nulls: bool = True, short: bool = True) -> Any:
    """A part of a scenario, or a whole one, as a file has it. ``short``: arrivals of a constant rate stand in
    short form, where dotted keys and short parameters look for them.

    ``nulls``: what is None is null, so that nothing else (a block ``strategies``, a profile) gives the part a
    value that it does not have.

    >>> from tideover.models.operators.window import Window
    >>> part_to_data(Window(tuples=5))
    {'length': None, 'tuples': 5, 'gap': None, 'slide': None, ...}
    >>> part_to_data(Window(tuples=5), nulls=False)
    {'tuples': 5, 'trigger': 'tick'}
    """

    def fields(part: Part) -> dict[str, Any]:
        """A part's keys without its kind."""
        data: dict[str, Any] = {}
        for name, info in type(part).model_fields.items():
            value, unit = getattr(part, name), unit_of(info.annotation, info.metadata)
            default = info.get_default(call_default_factory=True)
            if nulls or not (value is None or (name in part.omitted and value == default)):
                data[key_of(name)] = None if value is None else of(value, unit.format if unit else None)
        return data

    def of(value: Any, text: Any = None) -> Any:
        """``text`` writes the quantities in it; None: there are none."""
        if isinstance(value, SpoutConfig | BoltConfig):
            return component(value)
        if isinstance(value, Constant):
            return format_duration(value.value)
        if isinstance(value, Part):
            return ({"kind": kind_of(value)} if isinstance(value, _NAMED) else {}) | fields(value)
        if isinstance(value, dict):
            return {key: of(item, text) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [of(item, text) for item in value]
        return value if text is None else text(value)

    def component(config: SpoutConfig | BoltConfig) -> dict[str, Any]:
        """The keys of the spout or bolt stand beside those that every component has."""
        role = "spout" if isinstance(config, SpoutConfig) else "bolt"
        own, common = fields(getattr(config, role)), fields(config)
        del common[role]
        arrivals = getattr(config, "arrivals", None)
        if short and isinstance(arrivals, Periodic) and not own.keys() & fields(arrivals).keys():
            del common["arrivals"]
            common = fields(arrivals) | common
        return {role: kind_of(getattr(config, role))} | own | common

    return of(part)


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
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is a class; give an object of it, {value.__name__}(…)")
    if isinstance(value, Part):
        value = part_to_data(value)
    elif hasattr(value, "tolist"):  # an array, a series, or one of their numbers
        value = value.tolist()
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        value = format_duration(microseconds * 1000 + getattr(value, "nanoseconds", 0))  # pandas' has more
    if isinstance(value, Mapping):
        return Node({str(k): from_plain(v, origin, (*path, str(k))) for k, v in value.items()}, origin)
    if isinstance(value, list | tuple | range):
        return Node([from_plain(v, origin, (*path, str(i))) for i, v in enumerate(value)], origin)
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    if value is None or isinstance(value, bool | int | float | str):
        return Node(value, origin)
    what = f"is a {type(value).__name__}; give a number, a text, a list or a mapping"
    raise Node(None, origin).refused(".".join(path), what)
