"""A whole scenario as YAML, with where each value comes from and who runs where:
``tideover scenarios show NAME --resolved``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.arrivals import Periodic
from tideover.models.job.cluster import Cluster, Hosts
from tideover.models.job.components import Host
from tideover.models.job.placements import Place
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
    head = f"Who runs where, as {kind} places tasks (TASK/REPLICA; workers of a host between bars):"
    cluster = deployment_of(scenario).cluster
    return "".join(f"# {line}\n" for line in [head, *_lines(cluster)])


def _lines(cluster: Cluster) -> Iterator[str]:
    heads = [f"host {host.number}{_more(cluster, host)}" for host in cluster.hosts]
    width = max(map(len, heads))
    for host, head in zip(cluster.hosts, heads, strict=True):
        workers = [w for key, w in cluster.workers.items() if key[0] == host.number]
        tasks = " | ".join(" ".join(map(_name, worker.places)) for worker in workers)
        yield f"  {head:{width}}  {tasks or ('in reserve' if host.reserve else 'nobody')}"


def _more(cluster: Cluster, host: Host) -> str:
    """Type and rack, if there is more than one of either."""
    several = len({other.rack for other in cluster.hosts}) > 1
    more = [host.type or "", f"rack {host.rack}" if several else ""]
    return f" ({', '.join(text for text in more if text)})" if any(more) else ""


def _name(place: Place) -> str:
    component, task, replica = place
    return f"{component}.{task}" + (f"/{replica}" if replica else "")


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
    return (
        sweep_file.read(source, settings).resolved(point)
        if is_sweep(source)
        else loader.resolve(source, settings)
    )


def to_yaml(found: Resolved) -> str:
    """All keys, those with a default too; a comment at the end of each line says where its value is from.

    Read as a scenario file, it is an equal scenario.
    """
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
    if isinstance(value, dict):
        return _mapping(value, node) if value else CommentedMap()
    if isinstance(value, list):
        return _list(value, node)
    return yaml_source.quoted(value)


def _list(data: list[Any], node: Node | None) -> CommentedSeq:
    """In one line if everything in it comes from one place."""
    listed = node.value if node is not None and isinstance(node.value, list) else []
    given = listed if len(listed) == len(data) else [node] * len(data)
    found = CommentedSeq([_value(value, inner) for value, inner in zip(data, given, strict=True)])
    sources = [said(_origin(inner)) for inner in given]
    if all(_is_line(item) for item in found) and len({said(_origin(node)), *sources}) == 1:
        found.fa.set_flow_style()
    else:
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
