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

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.nodes import Giver, Node
from tideover.scenarios.part_builder import PartBuilder, join
from tideover.scenarios.settings import Setting
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
        rate = parse_rate(str(node.plain()))
        return node.like(format_duration(max(1, round(1e9 / rate))))

    def defaults(self) -> Iterator[Setting | Problem]:
        """What its keys are set to unless somebody else gives them; a problem if that is not possible."""
        if self.default is None or (self.default.value is None and self.default.is_outside):
            return
        try:
            node = self.value(self.default).given(giver=Giver.DEFAULT, short=self.name)
        except ValueError as error:
            yield self.default.problem(f"{KEY}.{self.name}.default", str(error))
        else:
            yield from (Setting(key, node) for key in self.sets)


def declared(root: Node, top: Collection[str] = ()) -> dict[str, Parameter]:
    """The parameters that a scenario declares; raises ScenarioError. ``top``: names that are taken."""
    block = root.get(KEY)
    if block is None or block.value is None:
        return {}
    reader = _Reader(Path())
    found = list(reader.parameters(block, top))
    if reader.problems:
        raise ScenarioError(reader.problems)
    return {parameter.name: parameter for parameter in found}


class _Reader(PartBuilder):
    """Reads the block ``parameters``."""

    def parameters(self, block: Node, top: Collection[str]) -> Iterator[Parameter]:
        for name, node in block.items() if self.mapping(block, KEY) else ():
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
        sets, inverse, about = (node.get(k) for k in ("sets", "inverse", "description"))
        if sets is None:
            self.refuse(node, join(key, "sets"), "is missing; give the dotted key that is set, or a list")
            return None
        targets = sets.value if isinstance(sets.value, list) else [sets]
        if not targets or not all(isinstance(t.value, str) and "." in t.value for t in targets):
            message = "must be a dotted key, as in topology.events.rate, or a list"
            self.refuse(sets, join(key, "sets"), message)
            return None
        if inverse is not None and not isinstance(inverse.value, bool):
            self.refuse(inverse, join(key, "inverse"), f"must be true or false, not {inverse.shown()}")
            return None
        return Parameter(
            name,
            tuple(t.value for t in targets),
            " ".join(str(about.value).split()) if about is not None else "",
            node.get("default"),
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


def expand(root: Node, settings: Sequence[Setting]) -> list[Setting]:
    """The settings, short parameters replaced by what they stand for; raises ScenarioError."""
    try:
        known = declared(root)
    except ScenarioError:
        return list(settings)  # said when the scenario is built
    found: list[Setting] = []
    for setting in settings:
        parameter = known.get(setting.key)
        if parameter is None or setting.faults:
            found.append(setting)
            continue
        try:
            node = parameter.value(setting.node)
        except ValueError as error:
            raise setting.node.refused(parameter.name, str(error)) from None
        found += [setting.at(key, node, parameter.name) for key in parameter.sets]
    return found
