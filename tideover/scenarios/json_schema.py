"""The JSON Schema of scenario files: every key with its unit, default and meaning.

Made from the parts that are registered, so a part from another package is in it too.
"""

from __future__ import annotations

import typing
from typing import Any

import annotated_types
from pydantic.fields import FieldInfo

from tideover.models.config import AppliedProfile, Scenario
from tideover.models.job.arrivals.base import Arrivals
from tideover.models.job.arrivals.periodic import Periodic
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig, Store
from tideover.models.job.groupings.base import Grouping
from tideover.models.job.spouts.base import SPOUTS
from tideover.models.operators.base import BOLTS
from tideover.models.strategies.base import Strategy
from tideover.scenarios.loader import load_plugins
from tideover.scenarios.parts import BARE, REGISTRIES, key_of, unit_of, without_none
from tideover.sim.distributions.base import Distribution
from tideover.sim.faults.base import Fault
from tideover.sim.registry import Part
from tideover.sim.units import DURATION

Schema = dict[str, Any]

TOP_MEANINGS = {
    "name": "a short title; default: the file's name",
    "description": "what the scenario shows",
    "topology": "the components by name: spouts emit tuples, bolts read and process them",
    "strategy": "how the system survives failure: the kind, and that kind's parameters",
    "strategies": "parameters by kind, used when that kind is picked (--set strategy.kind=…, compare)",
    "failures": "what breaks, and when",
    "hosts": "number of hosts; default: one for each task",
    "links": "latency between and within hosts; default: none",
    "store": "the store that checkpoints are written to",
    "run": "how long, how often, with which luck",
    "profile": "measured values for keys that are not given here: a profile's path, from the file's folder",
    "parameters": "short names for --set, and the dotted keys that they set",
}
_NAMED = {
    Arrivals: "when a spout emits",
    Distribution: "a distribution of durations, or one duration",
    Fault: "what breaks, and when",
    Grouping: "which task of the receiver gets a tuple",
    Strategy: "how the system survives failure",
}


def json_schema() -> Schema:
    """The schema (draft 2020-12) of a scenario file."""
    load_plugins()
    fields = {key: info for key, info in keys_of(Scenario).items() if key in TOP_MEANINGS}
    properties = {
        "name": {"type": "string"},
        "description": field_schema(fields["description"]),
        "topology": {
            "type": "object",
            "propertyNames": {
                "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$",
                "not": {"enum": ["acker", "driver"]},
            },
            "additionalProperties": {"$ref": "#/$defs/Component"},
        },
        "strategy": {"$ref": "#/$defs/Strategy"},
        "strategies": _strategies(),
        "failures": {"type": "array", "items": {"$ref": "#/$defs/Fault"}},
        "hosts": field_schema(fields["hosts"]),
        "links": _links(),
        "store": _object(Store),
        "run": _object(Run),
        "profile": {"anyOf": [{"type": "string"}, _object(AppliedProfile)]},
        "parameters": _parameters(),
    }
    for key, meaning in TOP_MEANINGS.items():
        properties[key] = {**properties[key], "description": meaning}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tideover scenario",
        "description": "Durations, sizes and rates are texts with a unit: 30 s, 256 B, 10/s.",
        **_closed(properties, ["topology", "strategy", "run"]),
        "$defs": {
            "Component": _component(),
            **{base.__name__: _named(base, meaning) for base, meaning in _NAMED.items()},
        },
    }


def keys_of(part: type[Part]) -> dict[str, FieldInfo]:
    """A part's fields by their keys in a file."""
    return {key_of(name): info for name, info in part.model_fields.items()}


def _closed(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _object(part: type[Part], first: Schema | None = None) -> Schema:
    """A mapping with the keys of a part, after those of ``first``, which are required."""
    first = first or {}
    keys = {key: field_schema(info) for key, info in keys_of(part).items()}
    return _closed(first | keys, [*first, *_required(part)])


def _required(part: type[Part]) -> list[str]:
    return [key for key, info in keys_of(part).items() if info.is_required()]


def field_schema(info: FieldInfo) -> Schema:
    """One key: type, limits, unit, default, meaning."""
    schema = _type(info.annotation, tuple(info.metadata))
    if info.description:
        schema = {**schema, "description": info.description}
    if info.is_required() or info.default is None:
        return schema
    unit = unit_of(info.annotation, info.metadata)
    default = info.get_default(call_default_factory=True)
    return {**schema, "default": unit.format(default) if unit else default}


def _type(annotation: Any, metadata: tuple[Any, ...] = ()) -> Schema:
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *given = typing.get_args(annotation)
        marks = [m for mark in given for m in (mark.metadata if isinstance(mark, FieldInfo) else [mark])]
        return _type(inner, (*metadata, *marks))
    unit = unit_of(annotation, metadata) if typing.get_origin(annotation) not in (tuple, list, dict) else None
    if without_none(annotation)[1]:
        (inner,) = (arg for arg in typing.get_args(annotation) if arg is not type(None))
        return {"anyOf": [_type(inner, metadata), {"type": "null"}]}
    if unit is not None:
        return {"type": "string", "title": unit.name, "pattern": unit.pattern}
    return _plain(annotation) | limits(metadata)


def _plain(annotation: Any) -> Schema:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in REGISTRIES:
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    if isinstance(annotation, type) and issubclass(annotation, Part):
        whole = _object(annotation)
        bare = BARE.get(annotation)
        return {"anyOf": [field_schema(annotation.model_fields[bare]), whole]} if bare else whole
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (tuple, list):
        return {"type": "array", "items": _type(args[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(args[1])}
    names = {int: "integer", float: "number", bool: "boolean", str: "string"}
    return {"type": names[annotation]} if annotation in names else {}


def limits(metadata: tuple[Any, ...]) -> Schema:
    """Limits on numbers and lengths."""
    found: Schema = {}
    for mark in metadata:
        for name, key in (
            ("ge", "minimum"),
            ("gt", "exclusiveMinimum"),
            ("le", "maximum"),
            ("lt", "exclusiveMaximum"),
            ("min_length", "minItems"),
            ("max_length", "maxItems"),
        ):
            limit = getattr(mark, name, None)
            if isinstance(mark, annotated_types.BaseMetadata) and limit is not None:
                found[key] = limit
    return found


def meaning_of(part: type[Part]) -> str:
    """The first paragraph of a part's docstring."""
    return " ".join((part.__doc__ or "").strip().split("\n\n")[0].split())


def _kind(name: str, part: type[Part]) -> Schema:
    return {"const": name, "description": meaning_of(part)}


def _named(base: type[Part], meaning: str) -> Schema:
    """Any part of a registry, by its kind, and its short forms."""
    registry = REGISTRIES[base]
    forms: list[Schema] = []
    if base is Distribution:
        forms.append({"type": "string", "title": "always this duration", "pattern": DURATION.pattern})
    elif base in (Grouping, Strategy):
        bare = [n for n, part in registry.items() if not _required(part)]
        forms.append({"enum": bare})
    for name, part in registry.items():
        whole = _object(part, {"kind": _kind(name, part)})
        # A profile, or a short parameter's default, can give what is missing.
        forms.append(whole | {"required": ["kind"]} if base in (Strategy, Fault) else whole)
        if name in keys_of(part):
            forms.append(_object(part))
    return {"description": meaning, "anyOf": forms}


def _strategies() -> Schema:
    kinds = {
        name: {"description": meaning_of(part), "anyOf": [_object(part), {"type": "null"}]}
        for name, part in REGISTRIES[Strategy].items()
    }
    return {"type": "object", "properties": kinds, "additionalProperties": False}


def _parameters() -> Schema:
    keys: Schema = {
        "sets": {
            "description": "dotted key that is set, or several",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
        },
        "default": {"description": "what the key takes if neither the file nor a profile gives it"},
        "description": {"type": "string", "description": "what it means"},
        "inverse": {"type": "boolean", "default": False, "description": "a rate; set is the time of one"},
    }
    return {"type": "object", "additionalProperties": _closed(keys, ["sets"])}


def _links() -> Schema:
    schema = _object(Links)
    return {**schema, "required": []}


def _component() -> Schema:
    """One form for each kind of spout and bolt; their keys stand beside those that every component has."""
    common = {
        k: field_schema(info) for k, info in keys_of(SpoutConfig).items() if k not in ("spout", "arrivals")
    }
    short = {key: field_schema(info) for key, info in keys_of(Periodic).items()}
    forms = []
    for name, part in SPOUTS.items():
        own = _object(part, {"spout": _kind(name, part)})
        arrivals = {"arrivals": {"description": _NAMED[Arrivals], "$ref": "#/$defs/Arrivals"}}
        forms.append(_closed(short | common | arrivals | own["properties"], own["required"]))
    streams = {k: field_schema(info) for k, info in keys_of(BoltConfig).items() if k != "bolt"}
    for name, bolt in BOLTS.items():
        own = _object(bolt, {"bolt": _kind(name, bolt)})
        forms.append(_closed(streams | own["properties"], [*own["required"], "from"]))
    return {"description": "a spout or a bolt", "anyOf": forms}
