"""Short parameters: names that a scenario gives to the keys that are mostly changed.

```yaml
parameters:
  rate: {sets: topology.events.rate, default: 20000/s, description: input rate}
  capacity: {sets: topology.job.service, inverse: true, description: most tuples per second}
```

``--set rate=30000/s`` then sets ``topology.events.rate``. A default is what a key takes that neither the
file, nor ``--set``, nor a profile gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tideover.scenarios import overrides
from tideover.scenarios.errors import Problem, ScenarioError, is_misspelt
from tideover.scenarios.parts import Builder, join
from tideover.scenarios.yaml_source import Node, parse_value
from tideover.sim.units import format_duration, parse_rate

KEY = "parameters"
_KNOWN = ("sets", "default", "description", "inverse")


@dataclass(frozen=True)
class Parameter:
    """One short parameter: ``sets`` are dotted keys; ``inverse``: its value is a rate, and what is set is the
    duration that one takes.
    """

    name: str
    sets: tuple[str, ...]
    description: str = ""
    default: Node | None = None
    inverse: bool = False

    def value(self, node: Node) -> Node:
        """What its keys are set to. Raises ValueError if a rate is needed and it is none."""
        if not self.inverse or node.value is None:
            return node
        rate = parse_rate(str(node.value))
        return Node(format_duration(max(1, round(1e9 / rate))), node.source, node.line)


def declared(root: Node, top: Sequence[str] = ()) -> dict[str, Parameter]:
    """The parameters that a scenario declares; raises ScenarioError. ``top``: names that are taken."""
    block = root.value.get(KEY)
    if block is None or block.value is None:
        return {}
    reader = _Reader(Path())
    found = list(reader.parameters(block, top))
    if reader.problems:
        raise ScenarioError(reader.problems)
    return {parameter.name: parameter for parameter in found}


class _Reader(Builder):
    """Reads the block ``parameters``."""

    def parameters(self, block: Node, top: Sequence[str]) -> Iterator[Parameter]:
        for name, node in block.value.items() if self.mapping(block, KEY) else ():
            key = join(KEY, name)
            if name in top:
                self.refuse(node, key, "is the name of a key of every scenario; choose another")
            elif not name.isidentifier():
                self.refuse(node, key, "a parameter's name is made of letters, digits and _")
            elif self.mapping(node, key) and not self.unknown_keys(node, key, _KNOWN):
                parameter = self._parameter(name, node, key)
                if parameter is not None:
                    yield parameter

    def _parameter(self, name: str, node: Node, key: str) -> Parameter | None:
        sets = node.value.get("sets")
        if sets is None:
            self.refuse(node, join(key, "sets"), "is missing; give the dotted key that is set, or a list")
            return None
        targets = sets.value if isinstance(sets.value, list) else [sets]
        if not targets or not all(isinstance(t.value, str) and "." in t.value for t in targets):
            self.refuse(
                sets, join(key, "sets"), "must be a dotted key, as in topology.events.rate, or a list"
            )
            return None
        inverse, about = (node.value.get(k) for k in ("inverse", "description"))
        if inverse is not None and not isinstance(inverse.value, bool):
            self.refuse(inverse, join(key, "inverse"), f"must be true or false, not {inverse.shown()}")
            return None
        return Parameter(
            name,
            tuple(t.value for t in targets),
            " ".join(str(about.value).split()) if about is not None else "",
            node.value.get("default"),
            inverse is not None and inverse.value,
        )


def shown(root: Node) -> list[tuple[str, str, str]]:
    """Name, default and meaning of each short parameter, as texts; raises ScenarioError."""
    found = []
    for parameter in declared(root).values():
        default = parameter.default.plain() if parameter.default is not None else None
        meaning = parameter.description or f"sets {', '.join(parameter.sets)}"
        found.append((parameter.name, "" if default is None else str(default), meaning))
    return found


def expand(root: Node, settings: Sequence[str]) -> list[str]:
    """The settings, short parameters replaced by what they stand for; raises ScenarioError."""
    try:
        known = declared(root)
    except ScenarioError:
        return list(settings)  # said when the scenario is built
    found: list[str] = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        parameter = known.get(name.strip())
        if parameter is None or not equals:
            found.append(setting)
            continue
        if parameter.inverse:
            node = parse_value(text, parameter.name)
            try:
                text = str(parameter.value(node).value if node.value is not None else "null")
            except ValueError as error:
                raise ScenarioError([Problem("--set", None, parameter.name, str(error))]) from None
        found += [f"{key}={text}" for key in parameter.sets]
    return found


def with_defaults(root: Node, known: Mapping[str, Parameter]) -> Node:
    """The tree with the defaults of the parameters whose keys it does not give; raises ScenarioError."""
    problems: list[Problem] = []
    for parameter in known.values():
        if parameter.default is None:
            continue
        place = f"{KEY}.{parameter.name}"
        try:
            value = parameter.value(parameter.default)
        except ValueError as error:
            problems.append(parameter.default.problem(f"{place}.default", str(error)))
            continue
        for key in (key for key in parameter.sets if not overrides.has(root, key)):
            try:
                root = overrides.fill(root, key, value)
            except ScenarioError as error:
                message = f"{key}: {error.problems[0].message}"
                problems.append(parameter.default.problem(f"{place}.sets", message))
    if problems:
        raise ScenarioError(problems)
    return root


def misspelt(name: str, known: Sequence[str]) -> list[str]:
    """The parameter that a name probably means."""
    return [other for other in known if is_misspelt(other, [name])][:1]
