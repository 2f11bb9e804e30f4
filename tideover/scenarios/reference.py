"""The reference of keys and results, as Markdown (`reference.md.j2`) and as JSON Schema: what may stand in
scenario files, sweep files and profiles, and what results have. Called by ``tideover scenarios``.

Pydantic makes the schema from the parts that are registered, so a part from another package is in it too;
added is what a file has and a class does not: kinds, short forms, and names of keys. The Markdown is made of
the schema and the fields; a new sort of part is added to `_SORTS` and to the template.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from tideover.models.config import AppliedProfile, Scenario, Slo
from tideover.models.job import components
from tideover.models.job.arrivals import Periodic
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig, Store
from tideover.models.schema import RECORD, ROWS, SHARED_RECORD, TABLES
from tideover.scenarios import plugins, profiles
from tideover.scenarios.loader import TOP
from tideover.scenarios.objectives.objective import EVERYDAY, EVERYDAY_IN_TIME, names
from tideover.scenarios.part_builder import BARE, REGISTRIES, key_of, part_to_data, unit_of, without_none
from tideover.scenarios.sweeps import sweep_file
from tideover.sim.distributions import Distribution
from tideover.sim.faults import Fault
from tideover.sim.registry import Part, Registry, kind_of
from tideover.sim.units import BANDWIDTH, DURATION, PERCENT, RATE, SIZE

Schema = dict[str, Any]

_BASES = {base.__name__: base for base in REGISTRIES}
_SORTS = {
    "Arrivals": ("when a spout emits", "[arrivals](#arrivals)"),
    "Backend": ("where tasks keep state", "[state backend](#state-backends)"),
    "Source": ("a queue that a spout reads", "[source](#sources)"),
    "Detector": ("how failures are noticed, and what they hit is restarted", "[detector](#detector)"),
    "Distribution": ("a distribution of durations, or one duration", "[distribution](#distributions)"),
    "Fault": ("what breaks, and when", "[failure](#failures)"),
    "Grouping": ("which task of the receiver gets a tuple", "[grouping](#groupings)"),
    "RestartStrategy": ("how long a restart waits", "[restart strategy](#restart-strategies)"),
    "Placement": ("which host takes which task", "[placement](#placements)"),
    "Sink": ("how what leaves the topology comes to its readers", "[sink](#sinks)"),
    "StoreKind": ("a store", "[store](#stores)"),
    "Strategy": ("how the system survives failure", "[strategy](#strategies)"),
}
"""What each registry has, for the schema, and a link to its section."""
_LINKS = {name: link for name, (_, link) in _SORTS.items()}
_LINKS["Component"] = "[spout](#spouts) or [bolt](#bolts)"
_LONG = ("Arrivals", "Distribution", "Fault")
"""Registries of which a kind alone will not do; of any other it will, if it needs no key."""
_PARAMETER = {
    "sets": {
        "description": "dotted key that is set, or several",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    },
    "default": {"description": "what the key takes if neither the file nor a profile gives it"},
    "description": {"type": "string", "description": "what it means"},
    "inverse": {"type": "boolean", "default": False, "description": "a rate; set is the time of one"},
    "divided_by": {
        "type": "integer",
        "minimum": 1,
        "default": 1,
        "description": "how many share it: each key is set to this part of it",
    },
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
                default = info.get_default(call_default_factory=True)
                unit = unit_of(info.annotation, info.metadata)
                if isinstance(default, Distribution):
                    default = part_to_data(default)
                elif isinstance(default, tuple(REGISTRIES)):
                    default = kind_of(default)
                properties[key]["default"] = unit.format(default) if unit else default
        whole = closed(properties, map(key_of, found.get("required", ())))
        bare = None if any(issubclass(part, base) for base in REGISTRIES) else BARE.get(part)
        return {"anyOf": [properties[bare], whole]} if bare else whole

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def keys_of(part: type[Part]) -> dict[str, FieldInfo]:
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
    """The schema of every part of scenarios, and of ``more``: a mapping with its keys, without its kind."""
    plugins.load_installed()
    parts: list[type[Part]] = [SpoutConfig, BoltConfig, components.MachineType, Hosts, Links, Store, Run]
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
    strategies = {
        name: {"description": meaning_of(part), "anyOf": [parts[part], {"type": "null"}]}
        for name, part in _registered("Strategy")
    }
    own = {  # what a file may have otherwise than the part
        "topology": {
            "type": "object",
            "propertyNames": {
                "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$",
                "not": {"enum": ["acker", "driver", "coordinator"]},
            },
            "additionalProperties": {"$ref": "#/$defs/Component"},
        },
        "strategies": closed(strategies, []),
        "failures": {"type": "array", "items": {"$ref": "#/$defs/Fault"}},
        "detector": {"$ref": "#/$defs/Detector"},
        "links": parts[Links] | {"required": []},
        "store": parts[Store],
        "stores": {"type": "object", "additionalProperties": {"$ref": "#/$defs/StoreKind"}},
        "profile": {"anyOf": [{"type": "string"}, parts[AppliedProfile]]},
        "parameters": {"type": "object", "additionalProperties": closed(_PARAMETER, ["sets"])},
    }
    every = {**parts[Scenario]["properties"], **own}
    properties = {key: {**every[key], "description": meaning} for key, meaning in TOP.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tideover scenario",
        "description": "Durations, sizes and rates are texts with a unit: 30 s, 256 B, 10/s.",
        **closed(properties, ["topology", "strategy", "run"]),
        "$defs": {
            "Component": _component(parts),
            **{name: _named(name, meaning, parts) for name, (meaning, _) in _SORTS.items()},
        },
    }


def meaning_of(part: type[Part]) -> str:
    """The first paragraph of a part's docstring."""
    return " ".join((part.__doc__ or "").strip().split("\n\n")[0].split())


def _with(key: str, name: str, part: type[Part], own: Schema, more: Schema | None = None) -> Schema:
    """A mapping that names the kind of a part under ``key``, with its keys and ``more``."""
    head = {key: {"const": name, "description": meaning_of(part)}}
    return closed(head | (more or {}) | own["properties"], [key, *own["required"]])


def _registered(base: str) -> list[tuple[str, Any]]:
    """Names and classes of the parts of a registry, which is named by its base class."""
    registry: Registry[Any] = REGISTRIES[_BASES[base]]
    return registry.items()


def _named(base: str, meaning: str, parts: dict[type[Part], Schema]) -> Schema:
    """Any part of a registry, by its kind, and its short forms."""
    forms: list[Schema] = []
    if base == "Distribution":
        forms.append({"type": "string", "title": "always this duration", "pattern": DURATION.pattern})
    elif base not in _LONG:
        forms.append({"enum": [name for name, part in _registered(base) if not parts[part]["required"]]})
    for name, part in _registered(base):
        whole = _with("kind", name, part, parts[part])
        # A profile, or a short parameter's default, can give what is missing.
        forms.append(whole | {"required": ["kind"]} if base in ("Strategy", "Fault") else whole)
        if name in parts[part]["properties"]:
            forms.append(parts[part])
    return {"description": meaning, "anyOf": forms}


def _component(parts: dict[type[Part], Schema]) -> Schema:
    """One form for each kind of spout and bolt; their keys stand beside those that every component has."""
    forms = []
    bolt, spout = (dict(parts[config]["properties"]) for config in (BoltConfig, SpoutConfig))
    for role, common in (("bolt", bolt), ("spout", spout)):
        del common[role]
    spout |= {"arrivals": {"$ref": "#/$defs/Arrivals"} | spout["arrivals"]}
    for name, part in _registered("Spout"):
        forms.append(_with("spout", name, part, parts[part], parts[Periodic]["properties"] | spout))
    for name, part in _registered("Bolt"):
        form = _with("bolt", name, part, parts[part], bolt)
        forms.append(form | {"required": [*form["required"], "from"]})
    return {"description": "a spout or a bolt", "anyOf": forms}


Row = tuple[str, str, str, str]
"""Key, what it takes, default, meaning."""

_PLAIN = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}
_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "minItems": "at least",
    "maxItems": "at most",
}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_UNITS = {unit.pattern: unit.name for unit in (DURATION, RATE, SIZE, BANDWIDTH, PERCENT)}


class _EveryFault(Fault):
    """What all failures have in common."""


def markdown() -> str:
    from jinja2 import Environment, StrictUndefined

    parts = part_schemas(_EveryFault, components.QueueSettings)
    environment = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    source = files("tideover.scenarios").joinpath("reference.md.j2").read_text("utf-8")
    template = environment.from_string(source)

    def rows(part: type[Part], without: Collection[str] = (), required: bool = True) -> list[Row]:
        return list(_rows(part, parts[part], without=without, required=required))

    def common(fault: type[Part]) -> list[str]:
        """The keys that every failure has."""
        every, own = (parts[part]["properties"] for part in (_EveryFault, fault))
        return [key for key, entry in own.items() if every.get(key) == entry]

    metrics = [
        (name, table, names(in_time)[name].column)
        for in_time, block in ((False, EVERYDAY), (True, EVERYDAY_IN_TIME))
        for name, (table, _) in block.items()
    ]
    text = template.render(
        parts={part.__name__.lstrip("_"): part for part in parts},
        units=(DURATION, RATE, SIZE, BANDWIDTH, PERCENT),
        schema=json_schema(),
        rows=rows,
        schema_rows=lambda *given: list(_schema_rows(*given)),
        common=common,
        prose=lambda part: meaning_of(part).replace("``", "`"),
        registered=_registered,
        metrics=metrics,
        sweep_keys=sweep_file.TOP,
        profile_keys=profiles.TOP,
        profile_values=profiles.PARTS,
        profile_measures=profiles.MEASURES,
        record=RECORD,
        shared_record=SHARED_RECORD,
        tables=TABLES,
        row_meanings=ROWS,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _rows(
    part: type[Part], schema: Schema, above: str = "", without: Collection[str] = (), required: bool = True
) -> Iterator[Row]:
    """A row a key; the keys of a part that is no registry's follow it, dotted."""
    whole = next(form for form in _forms(schema) if "properties" in form)
    for key, info in keys_of(part).items():
        if key in without:
            continue
        entry = whole["properties"][key]
        default = _shown_default(entry, required and info.is_required())
        yield (f"`{above}{key}`", _takes(entry) + _limited(info), default, info.description or "")
        inner = without_none(info.annotation)[0]
        if isinstance(inner, type) and issubclass(inner, Part) and inner not in REGISTRIES:
            yield from _rows(inner, entry, f"{above}{key}.")


def _forms(schema: Schema) -> Iterator[Schema]:
    """The forms that something may have, however deep they stand."""
    yield schema
    for form in schema.get("anyOf", ()):
        yield from _forms(form)


def _schema_rows(schema: Schema, said: Mapping[str, str] = {}) -> Iterator[Row]:
    """A row a key of a schema alone; ``said``: what some keys take, in other words."""
    for key, entry in schema["properties"].items():
        default = _shown_default(entry, key in schema["required"])
        yield f"`{key}`", said.get(key) or _takes(entry), default, str(entry["description"])


def _shown_default(entry: Schema, required: bool) -> str:
    if required:
        return "**required**"
    value = entry.get("default")
    if value in (None, "", {}, ()):
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _limited(info: FieldInfo) -> str:
    """The limits of a quantity, in its unit, beyond those that every one has."""
    unit = unit_of(info.annotation, info.metadata)
    annotation = without_none(info.annotation)[0]
    if unit is None or getattr(annotation, "__origin__", None) in (tuple, list, dict):
        return ""
    # An optional quantity has its own limits inside; what every one has comes before its unit.
    own = info.metadata[info.metadata.index(unit) + 1 :] if unit in info.metadata else info.metadata
    found = [(words, getattr(mark, name, None)) for mark in own for name, words in _BOUNDS.items()]
    return "".join(f", {words} {unit.format(limit)}" for words, limit in found if limit is not None)


def _takes(entry: Schema) -> str:
    if "$ref" in entry:
        return _LINKS[entry["$ref"].rpartition("/")[2]]
    if "enum" in entry:
        return " or ".join(f"`{value}`" for value in entry["enum"])
    if "anyOf" in entry:
        forms = [form for form in entry["anyOf"] if form.get("type") != "null"]
        return " or ".join(dict.fromkeys(map(_takes, forms)))
    kind = entry.get("type")
    if kind == "array":
        return f"list, each a {_takes(entry['items'])}" + _bounds(entry, " of them")
    if kind == "object":
        inner = entry.get("additionalProperties")
        return f"mapping of names to {_takes(inner)}" if isinstance(inner, dict) else "mapping"
    if entry.get("pattern") in _UNITS:
        return _UNITS[entry["pattern"]]
    return (_PLAIN[str(kind)] if kind else "any value") + _bounds(entry)


def _bounds(entry: Mapping[str, Any], after: str = "") -> str:
    shown = {name: entry[name] for name in _LIMITS if name in entry}
    return "".join(
        f", {_LIMITS[name]} {limit:{'g' if isinstance(limit, float) else ','}}{after}"
        for name, limit in shown.items()
    )
