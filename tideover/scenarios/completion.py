"""Completing a scenario from its profile: which value goes where, and what to say if the two do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from tideover.models.job.components import BoltConfig
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import precedence
from tideover.scenarios.errors import ScenarioError, listed
from tideover.scenarios.nodes import Node
from tideover.scenarios.profiles import DRIVER, Profile, measurable
from tideover.scenarios.settings import Setting
from tideover.sim.registry import Part

_NOTICED = ("detection", "restart")
"""What failures do not say where a detector finds it out."""


def apply(root: Node, profile: Profile) -> tuple[Node, dict[str, str]]:
    """The scenario's tree with the profile's values where it has none of its own.

    Also says which: keys of the scenario, and the profile's key that each was taken from; none if the profile
    has nothing for this scenario but values of ``run``.
    """
    taken = {}
    completed = root
    for key, source in _places(root, profile):
        if key in taken:
            continue  # by a value that is more special
        with suppress(ScenarioError):  # what is there is broken, and said so when the scenario is built
            before, completed = completed, precedence.put(completed, Setting(key, profile.values[source]))
            if completed is not before:
                taken[key] = source
    return (completed, taken) if any(not _of_run(key) for key in taken) else (root, {})


def _of_run(key: str) -> bool:
    return key.startswith("run.")


def why_idle(root: Node, profile: Profile) -> str:
    """Why a scenario takes nothing from a profile, in words."""
    places = [key for key, _ in _places(root, profile) if not _of_run(key)]
    if places:
        return f"the scenario itself gives all that the profile could: {', '.join(places)}"
    wanted, there = _kinds(profile.values), _here(root)
    if not wanted:
        return "it has no value for any strategy, failure or bolt"
    parts = [f"{sort} {listed(kinds)}" for sort, kinds in wanted.items()]
    here = [f"{sort} {listed(there[sort])}" for sort in wanted if there.get(sort)]
    return (
        f"it has values for {', '.join(parts)}; the scenario has {', '.join(here) or 'nothing of the sort'}"
    )


def missing(root: Node, profile: Profile, key: str) -> str | None:
    """What to say of a key that neither the scenario nor its profile gives; None if no profile could."""
    source = _source(root, key)
    if source is None or root.get(*key.split(".")) is not None:
        return None
    sort, *_, name = source.split(".")
    near = [other for other in profile.values if other.startswith(f"{sort}.") and other.endswith(f".{name}")]
    return f"profile {profile.name} does not give {source}{f', only {listed(near)}' if near else ''}"


def _kinds(keys: Iterable[str]) -> dict[str, list[str]]:
    """Kinds of parts that dotted keys of a profile speak of, by sort."""
    found: dict[str, list[str]] = {}
    for sort, kind, *_ in (key.split(".") for key in keys if not _of_run(key)):
        if kind not in found.setdefault(sort, []):
            found[sort].append(kind)
    return found


def _here(root: Node) -> dict[str, list[str]]:
    """The same of a scenario."""
    failures = [
        DRIVER if _text(node, "component") == DRIVER else _text(node, "kind") for node in _failures(root)
    ]
    bolts = [_text(node, "bolt") for _, node in _components(root)]
    found = {
        "strategy": [precedence.strategy_kind(root)],
        "failures": failures,
        "detector": [precedence.detector_kind(root)],
        "bolts": bolts,
    }
    return {sort: [*dict.fromkeys(str(kind) for kind in kinds if kind)] for sort, kinds in found.items()}


def _source(root: Node, key: str) -> str | None:
    """What a profile calls a key of the scenario; None for one that is not in profiles."""
    steps = key.split(".")
    cls: type[Part]
    if steps[0] == "strategy" and len(steps) == 2 and (kind := precedence.strategy_kind(root)):
        sort, cls = "strategy", STRATEGIES[kind]
    elif steps[0] == "topology" and len(steps) == 3 and (node := root.get(*steps[:2])) is not None:
        sort, cls, kind = "bolts", BoltConfig, _text(node, "bolt")
    else:
        return None
    return f"{sort}.{kind}.{steps[-1]}" if kind and steps[-1] in measurable(cls) else None


def _places(root: Node, profile: Profile) -> Iterator[tuple[str, str]]:
    """Keys of the scenario that values of the profile are meant for, the more special values first."""
    for source in sorted(profile.values, key=lambda key: f".{DRIVER}." not in key):
        sort, *kind, name = source.split(".")
        if sort == "run":
            yield f"run.{name}", source
        elif sort == "strategy":
            if precedence.strategy_kind(root) == kind[0]:
                yield f"strategy.{name}", source
        elif sort == "detector":
            if precedence.detector_kind(root) == kind[0]:
                yield f"detector.{name}", source
        elif sort == "failures":
            if name in _NOTICED and precedence.detector_kind(root) is not None:
                continue  # the detector finds out
            for i, node in enumerate(_failures(root)):
                is_driver = _text(node, "component") == DRIVER
                drawn = name == "in_interval" and node.get("every") is not None
                if (_text(node, "kind") == kind[0] or (is_driver and kind[0] == DRIVER)) and not drawn:
                    yield f"failures.{i}.{name}", source
        else:
            for component, node in _components(root):
                if _text(node, "bolt") == kind[0]:
                    yield f"topology.{component}.{name}", source


def _components(root: Node) -> Iterable[tuple[str, Node]]:
    topology = root.get("topology")
    return topology.items() if topology is not None else ()


def _failures(root: Node) -> list[Node]:
    node = root.get("failures")
    return node.value if node is not None and isinstance(node.value, list) else []


def _text(node: Node, key: str) -> Any:
    found = node.get(key) if node.is_mapping else None
    return None if found is None else found.value
