"""The reference of keys and results, as Markdown and as JSON Schema: what may stand in scenario files, sweep
files and profiles, and what results have.

Pydantic makes the schema from the parts that are registered, so a part from another package is in it too;
added is what a file has and a class does not: kinds, short forms, and names of keys. The Markdown is made of
the schema and the fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from tideover.models.config import AppliedProfile, Scenario, Slo
from tideover.models.detectors.base import Detector
from tideover.models.detectors.restarts import RestartStrategy
from tideover.models.job.arrivals import Arrivals, Periodic
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
from tideover.models.job.groupings import Grouping
from tideover.models.job.placements import Placement
from tideover.models.job.sinks import Sink
from tideover.models.job.sources import Source
from tideover.models.job.spouts import Spout
from tideover.models.job.stores import Backend, StoreKind
from tideover.models.operators.base import Bolt
from tideover.models.schema import RECORD, ROWS, SHARED_RECORD, TABLES, Column
from tideover.models.strategies.base import Strategy
from tideover.scenarios import plugins, profiles
from tideover.scenarios.objectives.terms import EVERYDAY, EVERYDAY_IN_TIME, names
from tideover.scenarios.part_builder import BARE, REGISTRIES, key_of, part_to_data, unit_of, without_none
from tideover.scenarios.scenario_builder import TOP
from tideover.scenarios.sweeps import sweep_file
from tideover.sim.distributions import Distribution
from tideover.sim.faults import Fault
from tideover.sim.registry import Part, kind_of
from tideover.sim.units import BANDWIDTH, DURATION, PERCENT, RATE, SIZE

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
    keys = [(f"`{key.name}`", key.unit, _meaning(key)) for key in RECORD]
    parts = ["## Results", "", _INTRODUCTION, "", "### The record", ""]
    parts += [*_table(("key", "unit", "meaning"), keys), "", _WHERE_SHARED, ""]
    shared = [(f"`{key.name}`", key.unit, _meaning(key)) for key in SHARED_RECORD]
    parts += [*_table(("key", "unit", "meaning"), shared), ""]
    for table, columns in TABLES.items():
        rows = [(f"`{one.name}`", _place(one), one.unit, _meaning(one)) for one in columns]
        parts += [f"### `{table}`", "", f"{ROWS[table]} {_MORE[table]}", ""]
        parts += [*_table(("column", "in the record", "unit", "meaning"), rows), ""]
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _place(column: Column) -> str:
    return f"`{'.'.join(column.record)}`" if column.record else "–"


def _meaning(column: Column) -> str:
    return f"{column.meaning}; undefined if {column.undefined}" if column.undefined else column.meaning


_OBJECTIVES = (
    "The key `slo` is a list: `[recovery_p95 <= 20 s, {objective: lost = 0, level: 0.99}]`; "
    "[checks.md](checks.md) has what such a text may say, and how it is judged."
)


Row = tuple[str, str, str, str]
"""Key, what it takes, default, meaning."""

COMMAND = "tideover scenarios reference"

_LINKS = {
    "Arrivals": "[arrivals](#arrivals)",
    "Backend": "[state backend](#state-backends)",
    "Component": "[spout](#spouts) or [bolt](#bolts)",
    "Detector": "[detector](#detector)",
    "Distribution": "[distribution](#distributions)",
    "Fault": "[failure](#failures)",
    "Grouping": "[grouping](#groupings)",
    "RestartStrategy": "[restart strategy](#restart-strategies)",
    "Placement": "[placement](#placements)",
    "Sink": "[sink](#sinks)",
    "Source": "[source](#sources)",
    "StoreKind": "[store](#stores)",
    "Strategy": "[strategy](#strategies)",
}
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
_TITLES: dict[type[Part], str] = {QueueSettings: "Queues"}
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


class _Reference:
    """The sections that list keys of parts, and all of them together."""

    def __init__(self) -> None:
        self.parts = part_schemas(_EveryFault, QueueSettings)

    def text(self) -> str:
        """All sections."""
        schema = json_schema()
        parameter = schema["properties"]["parameters"]["additionalProperties"]
        links = self.rows(Links, required=False)
        sections: list[str | Iterator[str]] = [
            _HEAD,
            " · ".join(f"[{name}](#{name.lower().replace(' ', '-')})" for name in _HEADINGS),
            _section("Scenario", "The keys of a scenario file.", _schema_rows(schema, _TOP)),
            self.topology(),
            self.kinds("Distributions", Distribution, "Wherever a duration may vary."),
            self.strategies(),
            self.kinds("Sinks", Sink, _SINKS),
            self.failures(),
            self.kinds("Detector", Detector, _DETECTOR),
            self.kinds("Restart strategies", RestartStrategy, _RESTARTS, level=3),
            self.hosts(),
            _section("Links", f"The key `links`. {_prose(Links)}", links),
            self.part(QueueSettings, "The key `queues`, and `queue` of a component; short: the length."),
            self.part(Store, "The key `store`: where checkpoints and snapshots are written to."),
            self.kinds("Stores", StoreKind, _STORES),
            self.part(Run, "The key `run`."),
            self.objectives(),
            _section("Short parameters", _SHORT_PARAMETERS, _schema_rows(parameter)),
            _meanings("Sweep files", _SWEEPS, sweep_file.TOP),
            _meanings("Profiles", _PROFILES, profiles.TOP),
            _meanings("Values of a profile", "The keys of the block `values`.", profiles.PARTS, level=3),
            results_reference(),
        ]
        texts = (one if isinstance(one, str) else "\n".join(one) for one in sections)
        return "\n".join(text.rstrip() + "\n" for text in texts)

    def topology(self) -> Iterator[str]:
        """Spouts, bolts, arrivals and groupings."""
        yield f"## Topology\n\n{_TOPOLOGY}\n"
        yield _section("Spouts", _SPOUT_KEYS, self.rows(SpoutConfig, without=["spout"]), level=3)
        yield from self.each(Spout, "spout", level=4)
        yield _section("Bolts", "Keys of every bolt.", self.rows(BoltConfig, without=["bolt"]), level=3)
        yield from self.each(Bolt, "bolt", level=4)
        yield from self.kinds("Arrivals", Arrivals, "The key `arrivals` of a spout.", level=3)
        yield from self.kinds("Groupings", Grouping, _FROM, level=3)
        yield from self.kinds("Sources", Source, "The key `source` of a spout.", level=3)
        yield from self.kinds("State backends", Backend, "The key `state` of a bolt.", level=3)

    def strategies(self) -> Iterator[str]:
        """Each with its promise."""
        yield f"## Strategies\n\n{_STRATEGY}\n"
        for name, part in REGISTRIES[Strategy].items():
            survives = ", ".join(f"`{kind}`" for kind in sorted(part.survives)) or "nothing for sure"
            if part.survives and not part.stateless_too:
                survives += " (not of a bolt without state)"
            more = f"Promise: {part.promise}. Survives: {survives}."
            yield _section(f"`{name}`", f"{_prose(part)} {more}", self.rows(part), level=3)

    def failures(self) -> Iterator[str]:
        """What they have in common, and what each has beside that."""
        intro = "The key `failures` is a list: `[{kind: crash_task, at: 75 s, component: count}]`. "
        yield _section("Failures", intro + "Keys of every kind:", self.rows(_EveryFault))
        common = self.parts[_EveryFault]["properties"]
        for name, part in REGISTRIES[Fault].items():
            own = self.parts[part]["properties"]
            same = [key for key, entry in own.items() if common.get(key) == entry]
            yield _section(f"`{name}`", _prose(part), self.rows(part, without=same), level=3)

    def hosts(self) -> Iterator[str]:
        """The cluster, its machines, and who runs where."""
        yield self.part(Hosts, "The key `hosts`, if it is no number.")
        yield _section("Machines", f"{_MACHINES} {_prose(MachineType)}", self.rows(MachineType), level=3)
        yield from self.kinds("Placements", Placement, "The key `placement` of `hosts`.", level=3)

    def objectives(self) -> Iterator[str]:
        """Their keys, and the names that they know besides those of columns."""
        yield _section("Objectives", _OBJECTIVES, self.rows(Slo))
        yield "### Names of metrics\n\n| name | column | of the table | means |\n|---|---|---|---|"
        for in_time, block in ((False, EVERYDAY), (True, EVERYDAY_IN_TIME)):
            for name, (table, _) in block.items():
                column = names(in_time)[name].column
                yield f"| `{name}` | `{column.name}` | `{table}` | {column.meaning} |"
        yield ""

    def kinds(self, title: str, base: type[Part], intro: str, level: int = 2) -> Iterator[str]:
        """A registry."""
        yield f"{'#' * level} {title}\n\n{intro}\n"
        yield from self.each(base, "kind", level + 1)

    def each(self, base: type[Part], key: str, level: int) -> Iterator[str]:
        """A section for each kind of a registry."""
        for name, part in REGISTRIES[base].items():
            yield _section(f"`{key}: {name}`", _prose(part), self.rows(part), level)

    def part(self, part: type[Part], intro: str) -> str:
        """A section for a part that is no registry's."""
        return _section(_TITLES.get(part, part.__name__), f"{intro} {_prose(part)}", self.rows(part))

    def rows(self, part: type[Part], without: Collection[str] = (), required: bool = True) -> Iterator[Row]:
        """A row a key; ``required``: False if the loader gives what is missing."""
        return _rows(part, self.parts[part], without=without, required=required)


def markdown() -> str:
    """The whole reference."""
    return _Reference().text()


def _prose(part: type[Part]) -> str:
    return meaning_of(part).replace("``", "`")


def _section(title: str, intro: str, rows: Iterable[Row], level: int = 2) -> str:
    """A heading, a paragraph, and the table of keys if there are any."""
    lines = [f"{'#' * level} {title}", "", intro, ""]
    table = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    if table:
        lines += ["| key | takes | default | meaning |", "|---|---|---|---|", *table, ""]
    return "\n".join(lines)


def _meanings(title: str, intro: str, keys: Mapping[str, str], level: int = 2) -> str:
    table = [f"| `{key}` | {meaning} |" for key, meaning in keys.items()]
    return "\n".join([f"{'#' * level} {title}", "", intro, "", "| key | meaning |", "|---|---|", *table, ""])


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
