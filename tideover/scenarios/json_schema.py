"""The JSON Schema of scenario files: every key with its unit, default and meaning.

Pydantic makes it from the parts that are registered, so a part from another package is in it too; what is
added here is what a file has and a class does not: kinds, short forms, and names of keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from tideover.models.config import AppliedProfile, Scenario, Slo
from tideover.models.detectors.base import Detector
from tideover.models.detectors.restarts.base import RestartStrategy
from tideover.models.job.arrivals.base import Arrivals
from tideover.models.job.arrivals.periodic import Periodic
from tideover.models.job.backends.base import Backend
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig, Store
from tideover.models.job.groupings.base import Grouping
from tideover.models.job.machines import MachineType
from tideover.models.job.placements.base import Placement
from tideover.models.job.sinks.base import Sink
from tideover.models.job.sources.base import Source
from tideover.models.job.spouts.base import Spout
from tideover.models.job.stores.base import StoreKind
from tideover.models.operators.base import Bolt
from tideover.models.strategies.base import Strategy
from tideover.scenarios import plugins
from tideover.scenarios.part_builder import BARE, REGISTRIES, key_of, unit_of
from tideover.scenarios.scenario_builder import TOP
from tideover.scenarios.writer import part_to_data
from tideover.sim.distributions.base import Distribution
from tideover.sim.faults.base import Fault
from tideover.sim.registry import Part, kind_of
from tideover.sim.units import DURATION

Schema = dict[str, Any]

_NAMED: dict[type[Part], str] = {
    Arrivals: "when a spout emits",
    Backend: "where tasks keep state",
    Source: "a queue that a spout reads",
    Detector: "how failures are noticed, and what they hit is restarted",
    Distribution: "a distribution of durations, or one duration",
    Fault: "what breaks, and when",
    Grouping: "which task of the receiver gets a tuple",
    RestartStrategy: "how long a restart waits",
    Placement: "which host takes which task",
    Sink: "how what leaves the topology comes to its readers",
    StoreKind: "a store",
    Strategy: "how the system survives failure",
}
_SHORT = (Backend, Detector, Grouping, Placement, RestartStrategy, Sink, Source, StoreKind, Strategy)
"""A kind alone will do, if it needs no key."""
_PARAMETER = {
    "sets": {
        "description": "dotted key that is set, or several",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    },
    "default": {"description": "what the key takes if neither the file nor a profile gives it"},
    "description": {"type": "string", "description": "what it means"},
    "inverse": {"type": "boolean", "default": False, "description": "a rate; set is the time of one"},
}
_PLACEHOLDER = "registry"


class _Keys(GenerateJsonSchema):
    """Schemas of parts with the keys of a file; a field of a registry's base class refers to its kinds."""

    def model_schema(self, schema: Any) -> Schema:
        part: type[Part] = schema["cls"]
        if part in REGISTRIES:
            return {_PLACEHOLDER: part.__name__}
        found = super().model_schema(schema)
        properties = {key_of(name): entry for name, entry in found.get("properties", {}).items()}
        for key, info in keys_of(part).items():
            properties[key].pop("default", None)
            if not info.is_required() and info.default is not None:
                properties[key]["default"] = _default(info)
        whole = closed(properties, map(key_of, found.get("required", ())))
        bare = None if any(issubclass(part, base) for base in REGISTRIES) else BARE.get(part)
        return {"anyOf": [properties[bare], whole]} if bare else whole

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _default(info: FieldInfo) -> Any:
    """The default of a field, as a file would have it."""
    unit = unit_of(info.annotation, info.metadata)
    default = info.get_default(call_default_factory=True)
    if isinstance(default, Distribution):
        return part_to_data(default)
    if isinstance(default, tuple(REGISTRIES)):
        return kind_of(default)
    return unit.format(default) if unit else default


def keys_of(part: type[Part]) -> dict[str, FieldInfo]:
    """A part's fields by their keys in a file."""
    return {key_of(name): info for name, info in part.model_fields.items()}


def closed(properties: Schema, required: Iterable[str]) -> Schema:
    """A mapping with these keys and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def part_schemas(*more: type[Part]) -> dict[type[Part], Schema]:
    """The schema of every part that a scenario can have, and of ``more``: a mapping with its keys, without
    its kind.
    """
    plugins.load_installed()
    parts: list[type[Part]] = [SpoutConfig, BoltConfig, MachineType, Hosts, Links, Store, Run]
    parts += [AppliedProfile, Scenario, Slo, *more]
    parts += [part for registry in REGISTRIES.values() for _, part in registry.items()]
    refs, whole = models_json_schema([(part, "validation") for part in parts], schema_generator=_Keys)
    definitions = whole["$defs"]

    def linked(entry: Any) -> Any:
        """References to kinds for placeholders, and the inner parts themselves for references to them."""
        if isinstance(entry, list):
            return [linked(item) for item in entry]
        if not isinstance(entry, dict):
            return entry
        if _PLACEHOLDER in entry:
            return {"$ref": f"#/$defs/{entry[_PLACEHOLDER]}"}
        if "$ref" in entry:
            inner = linked(definitions[entry["$ref"].rpartition("/")[2]])
            return inner | {key: linked(value) for key, value in entry.items() if key != "$ref"}
        return {key: linked(value) for key, value in entry.items()}

    return {part: linked(refs[part, "validation"]) for part in parts}


def json_schema() -> Schema:
    """The schema (draft 2020-12) of a scenario file."""
    parts = part_schemas()
    scenario = parts[Scenario]["properties"]
    properties = {
        "name": {"type": "string"},
        "description": scenario["description"],
        "topology": {
            "type": "object",
            "propertyNames": {
                "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$",
                "not": {"enum": ["acker", "driver", "coordinator"]},
            },
            "additionalProperties": {"$ref": "#/$defs/Component"},
        },
        "strategy": {"$ref": "#/$defs/Strategy"},
        "strategies": _strategies(parts),
        "failures": {"type": "array", "items": {"$ref": "#/$defs/Fault"}},
        "detector": {"$ref": "#/$defs/Detector"},
        "hosts": scenario["hosts"],
        "links": parts[Links] | {"required": []},
        "queues": scenario["queues"],
        "store": parts[Store],
        "stores": {"type": "object", "additionalProperties": {"$ref": "#/$defs/StoreKind"}},
        "run": parts[Run],
        "slo": scenario["slo"],
        "profile": {"anyOf": [{"type": "string"}, parts[AppliedProfile]]},
        "parameters": {"type": "object", "additionalProperties": closed(_PARAMETER, ["sets"])},
    }
    for key, meaning in TOP.items():
        properties[key] = {**properties[key], "description": meaning}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tideover scenario",
        "description": "Durations, sizes and rates are texts with a unit: 30 s, 256 B, 10/s.",
        **closed(properties, ["topology", "strategy", "run"]),
        "$defs": {
            "Component": _component(parts),
            **{base.__name__: _named(base, meaning, parts) for base, meaning in _NAMED.items()},
        },
    }


def meaning_of(part: type[Part]) -> str:
    """The first paragraph of a part's docstring."""
    return " ".join((part.__doc__ or "").strip().split("\n\n")[0].split())


def _with(key: str, name: str, part: type[Part], own: Schema, more: Schema | None = None) -> Schema:
    """A mapping that names the kind of a part under ``key``, with its keys and ``more``."""
    head = {key: {"const": name, "description": meaning_of(part)}}
    return closed(head | (more or {}) | own["properties"], [key, *own["required"]])


def _named(base: type[Part], meaning: str, parts: dict[type[Part], Schema]) -> Schema:
    """Any part of a registry, by its kind, and its short forms."""
    forms: list[Schema] = []
    if base is Distribution:
        forms.append({"type": "string", "title": "always this duration", "pattern": DURATION.pattern})
    elif base in _SHORT:
        forms.append({"enum": [n for n, part in REGISTRIES[base].items() if not parts[part]["required"]]})
    for name, part in REGISTRIES[base].items():
        whole = _with("kind", name, part, parts[part])
        # A profile, or a short parameter's default, can give what is missing.
        forms.append(whole | {"required": ["kind"]} if base in (Strategy, Fault) else whole)
        if name in parts[part]["properties"]:
            forms.append(parts[part])
    return {"description": meaning, "anyOf": forms}


def _strategies(parts: dict[type[Part], Schema]) -> Schema:
    kinds = {
        name: {"description": meaning_of(part), "anyOf": [parts[part], {"type": "null"}]}
        for name, part in REGISTRIES[Strategy].items()
    }
    return closed(kinds, [])


def _component(parts: dict[type[Part], Schema]) -> Schema:
    """One form for each kind of spout and bolt; their keys stand beside those that every component has."""
    forms = []
    bolt, spout = (dict(parts[config]["properties"]) for config in (BoltConfig, SpoutConfig))
    for role, common in (("bolt", bolt), ("spout", spout)):
        del common[role]
    spout |= {"arrivals": {"$ref": "#/$defs/Arrivals"} | spout["arrivals"]}
    for name, part in REGISTRIES[Spout].items():
        forms.append(_with("spout", name, part, parts[part], parts[Periodic]["properties"] | spout))
    for name, part in REGISTRIES[Bolt].items():
        form = _with("bolt", name, part, parts[part], bolt)
        forms.append(form | {"required": [*form["required"], "from"]})
    return {"description": "a spout or a bolt", "anyOf": forms}
