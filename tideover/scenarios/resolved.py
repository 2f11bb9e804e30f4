"""A whole scenario as YAML, with where each value comes from and who runs where, for
``tideover scenarios show NAME --resolved``. Words for an origin stand in `said`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.arrivals import Periodic
from tideover.models.job.cluster import Hosts
from tideover.scenarios import library, loader, profiles, yaml_source
from tideover.scenarios.loader import Resolved
from tideover.scenarios.part_builder import BARE, fields_of, from_plain, to_data
from tideover.scenarios.precedence import Settings
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.yaml_source import Giver, Node, Origin
from tideover.sim.registry import kind_of


def where_tasks_run(scenario: Scenario) -> str:
    """A line for each host with its tasks, those of its workers apart; empty if the scenario names no hosts,
    but gives each task its own.

    >>> from tideover.scenarios.loader import load
    >>> print(where_tasks_run(load("wordcount", ["hosts=2", "topology.split.parallelism=3"])))
    # Who runs where, as round_robin places tasks (TASK/REPLICA; workers of a host between bars):
    #   host 0  sentences.0 split.1 count.0
    #   host 1  split.0 split.2
    <BLANKLINE>
    """
    if scenario.hosts is None:
        return ""
    kind = kind_of(scenario.hosts.placement) if isinstance(scenario.hosts, Hosts) else "round_robin"
    lines = [f"Who runs where, as {kind} places tasks (TASK/REPLICA; workers of a host between bars):"]
    cluster, heads = deployment_of(scenario).cluster, list[str]()
    several = len({host.rack for host in cluster.hosts}) > 1
    for host in cluster.hosts:  # with type and rack, if there is more than one of either
        more = ", ".join(filter(None, [host.type, f"rack {host.rack}" if several else ""]))
        heads.append(f"host {host.number}" + (f" ({more})" if more else ""))
    width = max(map(len, heads))
    for host, head in zip(cluster.hosts, heads, strict=True):
        workers = [worker for key, worker in cluster.workers.items() if key[0] == host.number]
        names = ((f"{c}.{n}" + (f"/{copy}" if copy else "") for c, n, copy in w.places) for w in workers)
        tasks = " | ".join(map(" ".join, names))
        lines.append(f"  {head:{width}}  {tasks or ('in reserve' if host.reserve else 'nobody')}")
    return "".join(f"# {line}\n" for line in lines)


_COLUMN = 60
"""Where comments begin, if the line is not longer."""


def is_sweep(source: str) -> bool:
    """Whether a file, or a built-in name, is that of a sweep; raises ScenarioError."""
    if library.is_path(source):
        root = yaml_source.read(Path(source))
        return any(root.get(block) is not None for block in sweep_file.FACTORS)
    return source in library.sweeps()


def resolve(source: str, settings: Settings = (), point: int = 0) -> Resolved:
    """A scenario, or a point of a sweep, by its file or its built-in name; raises ScenarioError."""
    if is_sweep(source):
        return sweep_file.read(source, settings).resolved(point)
    return loader.resolve(source, settings)


def to_yaml(found: Resolved) -> str:
    """All keys as a scenario file has them; the comment in each line says where its value is from."""
    data, root = to_data(found.scenario), found.root
    path = root.get(profiles.KEY)
    if path is not None and not path.is_mapping and profiles.KEY in data:
        root = root.like(root.value | {profiles.KEY: from_plain(data[profiles.KEY], path.origin)})
    return yaml_source.write(_mapping(data, root))


def said(origin: Origin | None) -> str:
    """An origin in a few words; ``default`` for None."""
    if origin is None:
        return "default"
    place = origin.file if origin.line is None else f"{origin.file}:{origin.line}"
    words = {
        Giver.DEFAULT: f"default of {origin.short}, {place}",
        Giver.PROFILE: f"profile {place}",
        Giver.SWEEP: f"{place}: {origin.shown}",
        Giver.POINT: f"{place}: {origin.shown}",
        Giver.SETTING: f"{place} {origin.short}".rstrip(),
    }
    return words.get(origin.giver, place)


def _mapping(data: dict[str, Any], node: Node | None) -> CommentedMap:
    """``node``: what the tree has in this place, which may be shorter; None if nobody gives it."""
    found = CommentedMap()
    for key, value in data.items():
        inner = _inner(node, key)
        found[key] = _value(value, inner)
        if _is_line(found[key]):
            found.yaml_add_eol_comment(said(_origin(inner)), key, column=_COLUMN)
    return found


def _value(value: Any, node: Node | None) -> Any:
    """A list is in one line if everything in it comes from one place."""
    if isinstance(value, dict):
        return _mapping(value, node)
    if not isinstance(value, list):
        return yaml_source.quoted(value)
    listed = node.value if node is not None and isinstance(node.value, list) else []
    given = listed if len(listed) == len(value) else [node] * len(value)
    found = CommentedSeq([_value(item, inner) for item, inner in zip(value, given, strict=True)])
    sources = [said(_origin(inner)) for inner in given]
    if all(_is_line(item) for item in found) and len({said(_origin(node)), *sources}) == 1:
        found.fa.set_flow_style()
        return found
    for number, source in enumerate(sources):
        if _is_line(found[number]):
            found.yaml_add_eol_comment(source, number, column=_COLUMN)
    return found


def _is_line(value: Any) -> bool:
    """Whether a value stands in the line of its key."""
    if isinstance(value, CommentedSeq) and value:
        return bool(value.fa.flow_style())
    return not isinstance(value, dict) or not value


def _inner(node: Node | None, key: str) -> Node | None:
    """What the tree has for a key of a part, which may be written in a short form there."""
    if node is None or node.value is None:
        return None
    if not node.is_mapping:  # a kind or a number alone
        return node if key in ("kind", *BARE.values()) else None
    if (found := node.get(key)) is not None:
        return found
    if key == "arrivals":
        short = {name: node.value[name] for name in fields_of(Periodic) if name in node.value}
        return next(iter(short.values())).like(short) if short else None
    return node if key == "kind" else None


def _origin(node: Node | None) -> Origin | None:
    """Where a value comes from; what was taken away by ``null`` is a default again."""
    if node is None or node.value is None:
        return None
    constant = node.get("value") if node.is_mapping else None
    return (constant or node).origin
