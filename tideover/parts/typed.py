"""How a part is built by a user: with units, as in a scenario file, and checked at once.

The simulator itself builds its parts from numbers of nanoseconds and bytes; a user's numbers have units. So
each public name is not the simulator's class, but stands for it.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from tideover.models.job.components import Links
from tideover.models.job.groupings import Grouping
from tideover.models.job.placements import Placement
from tideover.scenarios import plugins
from tideover.scenarios.errors import Problem, ScenarioError, unknown_parameters
from tideover.scenarios.part_builder import BARE, PartBuilder, from_plain, key_of, unit_of, without_none
from tideover.scenarios.yaml_source import WHOLE, Origin
from tideover.sim.distributions import Distribution
from tideover.sim.registry import Part, kind_of
from tideover.sim.units import Unit

Duration = str | timedelta
"""A text such as ``30 s`` or ``0.2 ms``, or a ``timedelta``."""
Size = str
"""A text such as ``256 B``."""
Bandwidth = str
"""A text such as ``100 MiB/s``."""
Percent = str
Rate = str
"""A text such as ``50/s``."""

DEFAULTS: dict[type[Part], dict[str, Any]] = {Links: {"latency": "0 s", "local": "0 s"}}
"""What a file need not give either, though the simulator's own class asks for it."""


class Typed(type):
    """The class of the public names: each stands for a class of parts, and builds objects of that class."""

    part: type[Part]

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        """A part. Raises ScenarioError for what a scenario file would be refused for."""
        part, known = cls.part, list(cls.part.model_fields)
        if args:
            first = next(iter(known), "name")
            raise TypeError(f"{cls.__name__} takes its parameters by name, as in {cls.__name__}({first}=…)")
        plugins.load_installed()
        if problems := unknown_parameters(part.__name__, fields, known):
            raise ScenarioError(problems)
        data = {key_of(name): value for name, value in {**DEFAULTS.get(part, {}), **fields}.items()}
        builder = PartBuilder(Path())
        found = builder.part(part, from_plain(data, Origin(part.__name__)), "")
        if found is None:
            raise ScenarioError(_in_python(problem, known) for problem in builder.problems)
        return found

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.part)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other.part if isinstance(other, Typed) else other, cls.part)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.part, name)


P = TypeVar("P", bound=Part)


def typed(part: type[P]) -> type[P]:
    """A name that stands for a class of parts (also of another package), whose objects have units."""
    about = {
        "__doc__": _doc(part),
        "__module__": "tideover.parts",
        "__signature__": inspect.Signature([_parameter(part, name) for name in part.model_fields]),
        "part": part,
    }
    return typing.cast("type[P]", Typed(part.__name__, (), about))


def _doc(part: type[Part]) -> str:
    """A class's docstring without its examples, which are the simulator's, and what its parameters mean."""
    prose = [p for p in (inspect.getdoc(part) or "").split("\n\n") if not p.startswith(">>>")]
    meanings = [f"{name}: {info.description}" for name, info in part.model_fields.items() if info.description]
    return "\n\n".join([*prose, "\n".join(meanings)]).rstrip()


def _parameter(part: type[Part], name: str) -> inspect.Parameter:
    """A field as a parameter: its type as an annotation says it, its default as a file does."""
    info = part.model_fields[name]
    unit = unit_of(info.annotation, info.metadata)
    if name in DEFAULTS.get(part, {}):
        default = DEFAULTS[part][name]
    elif info.is_required():
        default = inspect.Parameter.empty
    else:
        default = info.get_default(call_default_factory=True)
        default = unit.format(default) if unit and default is not None else default
        default = kind_of(default) if isinstance(default, Part) else default
    annotation = _annotation(info.annotation, unit)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _annotation(annotation: Any, unit: Unit | None) -> str:
    """What a field takes, as the text of an annotation."""
    inner, optional = without_none(annotation)
    if optional:
        return f"{_annotation(inner, unit)} | None"
    origin, args = typing.get_origin(inner), typing.get_args(inner)
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    if origin is tuple:
        return f"Sequence[{_annotation(args[0], unit)}]"
    if origin is dict:
        return f"Mapping[str, {_annotation(args[1], unit)}]"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_annotation(arg, unit) for arg in args)
    if unit is not None:
        return unit.name.title()
    if inner in BARE or inner is Distribution:
        return f"{inner.__name__} | Duration"
    return f"{inner.__name__} | str" if inner in (Grouping, Placement) else str(inner.__name__)


def _in_python(problem: Problem, known: Sequence[str]) -> Problem:
    """A problem of a file, its key as Python has it; if it has none, the parameters that it is about."""
    if problem.key == WHOLE:
        about = [name for name in known if re.search(rf"\b{name}\b", problem.message)]
        return replace(problem, key=", ".join(about or known))
    first, dot, rest = problem.key.partition(".")
    names = {key_of(name): name for name in known}
    return replace(problem, key=f"{names.get(first, first)}{dot}{rest}")
