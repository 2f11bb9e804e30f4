"""The reference of keys and results, as Markdown (docs/reference.md) and as JSON Schema: what may stand in
scenario files, sweep files and profiles, and what results have. Called by ``tideover scenarios``.

Pydantic makes the schema from the parts that are registered, so a part from another package is in it too;
added is what a file has and a class does not: kinds, short forms, and names of keys. The Markdown is made of
the schema and the fields; a new sort of part is added to `_SORTS` and to `_sections`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from tideover.models.config import AppliedProfile, Scenario, Slo
from tideover.models.job.arrivals import Periodic
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import (
    BoltConfig,
    Links,
    MachineType,
    QueueSettings,
    Run,
    SpoutConfig,
    Store,
)
from tideover.models.schema import RECORD, ROWS, SHARED_RECORD, TABLES, Column
from tideover.scenarios import plugins, profiles
from tideover.scenarios.loader import TOP
from tideover.scenarios.objectives.terms import EVERYDAY, EVERYDAY_IN_TIME, names
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
    """The schema of every part of scenarios, and of ``more``: a mapping with its keys, without its kind."""
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
    strategies = {
        name: {"description": meaning_of(part), "anyOf": [parts[part], {"type": "null"}]}
        for name, part in _registered("Strategy")
    }
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
        "strategies": closed(strategies, []),
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


_INTRODUCTION = """\
What a run says. `tideover run --json` prints one object (the *record*); `compare` and `sweep` print a list of
them, with more keys. `--out` writes it as `result.json`, and each of the tables below as a Parquet file that
holds units and meanings, too; `tideover.run` has them as data frames. What is undefined is null in JSON and
missing in a table."""


_WHERE_SHARED = "Where tasks share something (cores, cards, stores of a cluster), there is more:"
_COMBINED = (
    "The record has one figure of all replications: sums in `ledger` and `windows`, means in `cost`, pooled "
    "latencies, and of throughput the mean and the extremes."
)
_MORE = {
    "recoveries": "In the record, `recoveries` has an object for each of these rows.",
    "runs": _COMBINED,
    "timeline": "Not in the record.",
    "tasks": "The record has `utilisation` of it.",
    "usage": "The record has `resources` of it, and `bottleneck`.",
}


def results_reference() -> str:
    """Sections for the record and for each table, made from the schema (`tideover.models.schema`)."""

    def table(columns: Iterable[Column], places: bool) -> str:
        head = ["column", "in the record", "unit", "meaning"] if places else ["key", "unit", "meaning"]
        rows = [head, ["---"] * len(head)]
        for one in columns:
            meaning = f"{one.meaning}; undefined if {one.undefined}" if one.undefined else one.meaning
            place = f"`{'.'.join(one.record)}`" if one.record else "–"
            rows.append([f"`{one.name}`", *([place] if places else []), one.unit, meaning])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    parts = ["## Results", _INTRODUCTION, "### The record", table(RECORD, False)]
    parts += [_WHERE_SHARED, table(SHARED_RECORD, False)]
    for name, columns in TABLES.items():
        parts += [f"### `{name}`", f"{ROWS[name]} {_MORE[name]}", table(columns, True)]
    return "\n\n".join(parts) + "\n"


_OBJECTIVES = (
    "The key `slo` is a list: `[recovery_p95 <= 20 s, {objective: lost = 0, level: 0.99}]`; "
    "[checks.md](checks.md) has what such a text may say, and how it is judged."
)


Row = tuple[str, str, str, str]
"""Key, what it takes, default, meaning."""

COMMAND = "tideover scenarios reference"

_TOP = {
    "strategies": "mapping of kinds to a [strategy](#strategies)'s keys",
    "hosts": "whole number, at least 1, at most 100,000 or a [cluster](#hosts)",
    "links": "[links](#links)",
    "queues": "[queues](#queues)",
    "store": "[store](#store)",
    "stores": "mapping of names to a [store of a kind](#stores)",
    "run": "[run](#run)",
    "slo": "list, each a text or an [objective](#objectives)",
    "parameters": "mapping of names to [short parameters](#short-parameters)",
    "profile": "text",
    "topology": "mapping of names to a " + _LINKS["Component"],
}
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
_MACHINES = "In `machines`, by name: `{small: {count: 10, cores: 2, nic: 1 Gbit/s}}`."
_FROM = "In `from`, by the component that is read: `{sentences: shuffle}`, `{split: {fields: [word]}}`."
_TOPOLOGY = """\
The key `topology` names the components. Each is a spout (`spout: KIND`) or a bolt (`bolt: KIND`);
the keys of its kind stand beside those that every spout or bolt has."""
_STRATEGY = "The key `strategy`: `{kind: rsm, checkpoint_interval: 10 s}`, or a kind alone: `source_replay`."
_DETECTOR = (
    "The key `detector`: how failures are noticed, and what they hit is restarted: `{kind: heartbeats, "
    "interval: 5 s, timeout: 20 s}`. Without it each failure says how long that takes."
)
_SINKS = "The key `sink` of `aligned_snapshots`."
_RESTARTS = "The key `restarts` of a detector: how long a restart waits."
_SPOUT_KEYS = "Keys of every spout. For `arrivals`, `rate` may stand here, or `pause` with `emit_cost`."

_HEAD = f"""\
# Reference of keys

Everything that may stand in a scenario file, a sweep file and a profile, and in the results. Made by
`{COMMAND}`, which also lists parts that other packages have registered; `tideover scenarios schema` has the
keys of scenarios as JSON Schema.

Any key of a scenario can be set on the command line, with the index for an entry of a list:

```
tideover run wordcount --set failures.0.at=80s \\
    --set topology.count.service='{{kind: gamma, mean: 2ms, cv: 2}}'
```

From Python, settings are such texts or a mapping:
`tideover.run("wordcount", {{"run.seed": 3, "failures.0.at": tideover.seconds(80)}})`.

**required**: has to be given, here or by a profile. –: nothing unless given; what that means, the last column
says.

| value | written as |
|---|---|
| duration | {DURATION.hint.removeprefix("write a duration, ")} |
| rate | {RATE.hint.removeprefix("write a rate, ")} |
| size | {SIZE.hint.removeprefix("write a size, ")} |
| bandwidth | {BANDWIDTH.hint.removeprefix("write a bandwidth, ")} |
| percent | {PERCENT.hint.removeprefix("write a percentage, ")} |
| distribution | a duration, which then is always the same, or a mapping with `kind` and that kind's keys |
"""


_STORES = (
    "The key `stores` gives more stores, by names: `stores: {memory: {kind: redis, operations: 80000/s}}`. "
    "What uses one says which: `strategy: {…, store: memory}`."
)
_SHORT_PARAMETERS = "The key `parameters` gives names to keys that are mostly changed: `--set rate=30000/s`."
_SWEEPS = "`tideover sweep FILE`: one scenario, and values that some of its keys take. [Examples](sweeps.md)."
_PROFILES = (
    "A file that a scenario names with `profile`: measured values for keys that the scenario does not give."
)
_HEADINGS = (
    "Scenario",
    "Topology",
    "Distributions",
    "Strategies",
    "Sinks",
    "Failures",
    "Detector",
    "Hosts",
    "Links",
    "Queues",
    "Store",
    "Stores",
    "Run",
    "Objectives",
    "Short parameters",
    "Sweep files",
    "Profiles",
    "Results",
)


class _EveryFault(Fault):
    """What all failures have in common."""


def _sections(parts: dict[type[Part], Schema]) -> Iterator[str]:
    """All sections, in their order."""

    def rows(part: type[Part], without: Collection[str] = ()) -> Iterator[Row]:
        return _rows(part, parts[part], without=without)

    def kinds(base: str, title: str, intro: str, level: int = 2) -> Iterator[str]:
        """A section for a registry, and one for each of its kinds."""
        yield f"{'#' * level} {title}\n\n{intro}"
        for name, part in _registered(base):
            yield _section(f"`kind: {name}`", _prose(part), rows(part), level + 1)

    schema = json_schema()
    yield _HEAD
    yield " · ".join(f"[{name}](#{name.lower().replace(' ', '-')})" for name in _HEADINGS)
    yield _section("Scenario", "The keys of a scenario file.", _schema_rows(schema, _TOP))
    yield f"## Topology\n\n{_TOPOLOGY}"
    roles: dict[str, tuple[type[Part], str]]
    roles = {"spout": (SpoutConfig, _SPOUT_KEYS), "bolt": (BoltConfig, "Keys of every bolt.")}
    for role, (config, said) in roles.items():
        yield _section(f"{role.title()}s", said, rows(config, without=[role]), level=3)
        for name, part in _registered(role.title()):
            yield _section(f"`{role}: {name}`", _prose(part), rows(part), level=4)
    yield from kinds("Arrivals", "Arrivals", "The key `arrivals` of a spout.", 3)
    yield from kinds("Grouping", "Groupings", _FROM, 3)
    yield from kinds("Source", "Sources", "The key `source` of a spout.", 3)
    yield from kinds("Backend", "State backends", "The key `state` of a bolt.", 3)
    yield from kinds("Distribution", "Distributions", "Wherever a duration may vary.")
    yield f"## Strategies\n\n{_STRATEGY}"
    for name, strategy in _registered("Strategy"):
        survives = ", ".join(f"`{kind}`" for kind in sorted(strategy.survives)) or "nothing for sure"
        if strategy.survives and not strategy.stateless_too:
            survives += " (not of a bolt without state)"
        more = f"Promise: {strategy.promise}. Survives: {survives}."
        yield _section(f"`{name}`", f"{_prose(strategy)} {more}", rows(strategy), level=3)
    yield from kinds("Sink", "Sinks", _SINKS)
    intro = "The key `failures` is a list: `[{kind: crash_task, at: 75 s, component: count}]`. "
    yield _section("Failures", intro + "Keys of every kind:", rows(_EveryFault))
    common = parts[_EveryFault]["properties"]
    for name, fault in _registered("Fault"):  # with what it has beside the keys of all
        own = parts[fault]["properties"]
        same = [key for key, entry in own.items() if common.get(key) == entry]
        yield _section(f"`{name}`", _prose(fault), rows(fault, without=same), level=3)
    yield from kinds("Detector", "Detector", _DETECTOR)
    yield from kinds("RestartStrategy", "Restart strategies", _RESTARTS, 3)
    yield _section("Hosts", f"The key `hosts`, if it is no number. {_prose(Hosts)}", rows(Hosts))
    yield _section("Machines", f"{_MACHINES} {_prose(MachineType)}", rows(MachineType), level=3)
    yield from kinds("Placement", "Placements", "The key `placement` of `hosts`.", 3)
    yield from _blocks(parts, schema)


def _blocks(parts: dict[type[Part], Schema], schema: Schema) -> Iterator[str]:
    """The sections of a scenario's smaller blocks, of other files, and of results."""
    links = _rows(Links, parts[Links], required=False)  # the loader gives what is missing
    yield _section("Links", f"The key `links`. {_prose(Links)}", links)
    said = "The key `queues`, and `queue` of a component; short: the length."
    yield _section("Queues", f"{said} {_prose(QueueSettings)}", _rows(QueueSettings, parts[QueueSettings]))
    said = "The key `store`: where checkpoints and snapshots are written to."
    yield _section("Store", f"{said} {_prose(Store)}", _rows(Store, parts[Store]))
    yield f"## Stores\n\n{_STORES}"
    for name, kind in _registered("StoreKind"):
        yield _section(f"`kind: {name}`", _prose(kind), _rows(kind, parts[kind]), level=3)
    yield _section("Run", f"The key `run`. {_prose(Run)}", _rows(Run, parts[Run]))
    yield _section("Objectives", _OBJECTIVES, _rows(Slo, parts[Slo]))
    lines = ["### Names of metrics", "", "| name | column | of the table | means |", "|---|---|---|---|"]
    for in_time, block in ((False, EVERYDAY), (True, EVERYDAY_IN_TIME)):
        for name, (table, _) in block.items():
            column = names(in_time)[name].column
            lines.append(f"| `{name}` | `{column.name}` | `{table}` | {column.meaning} |")
    yield "\n".join(lines)
    parameter = schema["properties"]["parameters"]["additionalProperties"]
    yield _section("Short parameters", _SHORT_PARAMETERS, _schema_rows(parameter))
    for heading, intro, keys in (
        ("## Sweep files", _SWEEPS, sweep_file.TOP),
        ("## Profiles", _PROFILES, profiles.TOP),
        ("### Values of a profile", "The keys of the block `values`.", profiles.PARTS),
    ):
        meanings = [f"| `{key}` | {meaning} |" for key, meaning in keys.items()]
        yield "\n".join([heading, "", intro, "", "| key | meaning |", "|---|---|", *meanings])
    yield results_reference()


def markdown() -> str:
    """The whole reference."""
    parts = part_schemas(_EveryFault, QueueSettings)
    return "\n".join(text.rstrip() + "\n" for text in _sections(parts))


def _prose(part: type[Part]) -> str:
    return meaning_of(part).replace("``", "`")


def _section(title: str, intro: str, rows: Iterable[Row], level: int = 2) -> str:
    """A heading, a paragraph, and the table of keys if there are any."""
    lines = [f"{'#' * level} {title}", "", intro, ""]
    table = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    if table:
        lines += ["| key | takes | default | meaning |", "|---|---|---|---|", *table, ""]
    return "\n".join(lines)


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
    """What a key takes, in words."""
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
