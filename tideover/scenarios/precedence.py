"""Who wins, where several give a value for the same key of a scenario. Nothing else decides that: `loader`,
sweeps and plans ask here, and rules of precedence are changed here alone.

From the weakest to the strongest (``Giver``):

==============  ============================================================================================
a part's own    the default of its field; it is not in the tree, the part adds it
``DEFAULT``     the ``default`` of a short parameter
``PROFILE``     a measured value of the scenario's profile
``FILE``        the scenario file: first its block ``strategies``, then everything else
``CHANGE``      ``Scenario.with_``, and settings of ``tideover.load``, once the scenario is there
``SWEEP``       ``set``, ``seed`` and ``replications`` of a sweep file
``SETTING``     ``--set``, and settings in Python; a short parameter stands for the keys that it sets
``POINT``       a grid point; a ``--set`` of a swept key takes the place of the grid's values
==============  ============================================================================================

- The stronger one wins, whatever the order in which they are given; of two that are equal, the later one.
- Whoever gives a mapping or a list gives all of it; who is weaker may still add keys that are not in it.
- ``null`` is a value as well: nobody weaker gives the key, and the part's own default holds.
- ``strategies.KIND.key`` counts for ``strategy.key`` if the strategy is of that kind. Of the two, what is set
  from outside of the file wins over what is not; if both are, ``strategy.key`` wins.
- If somebody from outside of the file chose the kind, the file's own ``strategy`` was meant for another: its
  block wins over it, and of its keys only those count that the new kind knows.
- To a strategy that does not know a key, no profile and no short parameter's default gives it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tideover.models.detectors.base import DETECTORS
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import Problem, ScenarioError, listed, shorten, suggest
from tideover.scenarios.part_builder import PartBuilder, fields_of, from_plain, join
from tideover.scenarios.yaml_source import FROM_SET, Giver, Node, Origin, parse_value
from tideover.sim.units import format_duration, parse_rate


@dataclass(frozen=True)
class Setting:
    """A value for a dotted key of a scenario, as ``--set`` or Python gives it; list entries go by their
    index: ``failures.0.at=80s``. ``faults``: what is wrong with its text, told when it is used.
    """

    key: str
    node: Node
    text: str = ""
    """As it was written on the command line."""
    faults: tuple[Problem, ...] = ()

    @property
    def path(self) -> list[str]:
        return self.key.split(".")


Settings = Sequence[str] | Mapping[str, Any] | Sequence[Setting]
"""Texts ``dotted.key=value`` as given to ``--set``, or values by dotted key, as a file would hold them."""


_GIVEN = Origin(FROM_SET, None, Giver.SETTING)


def read_settings(settings: Settings, origin: Origin = _GIVEN) -> list[Setting]:
    """The settings, parsed where they are not yet; ``origin``: of what a mapping holds. Raises TypeError for
    what is neither list nor mapping, ScenarioError for a value that no file could hold.
    """
    if isinstance(settings, Mapping):
        return [setting(str(key), from_plain(value, origin, (str(key),))) for key, value in settings.items()]
    if isinstance(settings, str):
        key, _, value = settings.partition("=")
        one, several = [settings], {key: value}
        raise TypeError(f"settings is the text {settings!r}; give a list, {one}, or a mapping, {several}")
    return [one if isinstance(one, Setting) else _parsed(one) for one in settings]


def setting(key: str, value: Any) -> Setting:
    return Setting(key, value if isinstance(value, Node) else Node(value, _GIVEN))


def _parsed(text: Any) -> Setting:
    if not isinstance(text, str):
        raise TypeError(f"settings has {text!r}; give texts, as in 'run.seed=3', or a mapping")
    key, equals, value = text.partition("=")
    key, nothing = key.strip(), Node(None, _GIVEN)
    if not equals or not all(key.split(".")):
        said = "must be key=value, as in run.duration=300s or failures.0.at=80s"
        return Setting(key, nothing, text, (nothing.problem(shorten(text, 60) or "''", said),))
    try:
        return Setting(key, parse_value(value, key), text)
    except ScenarioError as error:
        return Setting(key, nothing, text, tuple(error.problems))


def is_for_others(setting: Setting, kind: str, known: set[str]) -> bool:
    """Whether a setting concerns a key of the strategy that others know (``known``), but not this kind."""
    if len(setting.path) < 2 or setting.path[0] != "strategy" or kind not in STRATEGIES:
        return False
    return setting.path[1] in known - {*fields_of(STRATEGIES[kind])}


def partly_used(kinds: Sequence[str], settings: Sequence[Setting]) -> list[str]:
    """Remarks on settings of a strategy that do not concern all of these kinds, or none of them."""
    found = []
    for setting in settings:
        block, name = [*setting.path, "", ""][:2]
        if block == "strategies" and name and name not in kinds:
            found.append(f"{setting.text} has no effect: it is for {name}, and simulated is {listed(kinds)}")
        elif block == "strategy" and name and name != "kind":
            users = [k for k in kinds if k in STRATEGIES and name in fields_of(STRATEGIES[k])]
            others = [k for k in kinds if k not in users]
            if users and others:
                found.append(f"{setting.text} goes to {listed(users)}, not to {listed(others)}")
    return found


# Short parameters: names that a scenario gives to the keys that are mostly changed.
#
# ```yaml
# parameters:
#   rate: {sets: topology.events.rate, default: 20000/s, description: input rate}
#   capacity: {sets: topology.job.service, inverse: true, description: most tuples per second}
# ```
#
# ``--set rate=30000/s`` then sets ``topology.events.rate``. A default is what a key takes that neither the
# file, nor ``--set``, nor a profile gives.

KEY = "parameters"
_KNOWN = ("sets", "default", "description", "inverse", "divided_by")


@dataclass(frozen=True)
class Parameter:
    """A short parameter: the dotted keys that it ``sets``; ``inverse``: to the time of one, from a rate;
    ``divided_by``: to its so-manieth part each.
    """

    name: str
    sets: tuple[str, ...]
    description: str = ""
    default: Node | None = None
    inverse: bool = False
    divided_by: int = 1

    def value(self, node: Node) -> Node:
        """What its keys are set to. Raises ValueError if a rate or a multiple is needed and it is none."""
        if self.divided_by > 1 and node.value is not None:
            whole = node.plain()
            if type(whole) is not int or whole % self.divided_by:
                raise ValueError(f"must be a multiple of {self.divided_by}, not {node.shown()}")
            return node.like(whole // self.divided_by)
        if not self.inverse or node.value is None:
            return node
        rate = parse_rate(str(node.plain()))
        return node.like(format_duration(max(1, round(1e9 / rate))))


def declared(root: Node, top: Collection[str] = ()) -> dict[str, Parameter]:
    """The parameters that a scenario declares; raises ScenarioError. ``top``: names that are taken."""
    block = root.get(KEY)
    if block is None or block.value is None:
        return {}
    reader, found = PartBuilder(Path()), dict[str, Parameter]()
    for name, node in block.items() if reader.mapping(block, KEY) else ():
        key = join(KEY, name)
        if name in top:
            reader.refuse(node, key, "is the name of a key of every scenario; choose another")
            continue
        if not name.isidentifier():
            reader.refuse(node, key, "a parameter's name is made of letters, digits and _")
            continue
        if not reader.mapping(node, key) or reader.unknown_keys(node, key, _KNOWN):
            continue
        sets, inverse, about, parts = (node.get(k) for k in ("sets", "inverse", "description", "divided_by"))
        if sets is None:
            reader.refuse(node, join(key, "sets"), "is missing; give the dotted key that is set, or a list")
            continue
        targets = sets.value if isinstance(sets.value, list) else [sets]
        if not targets or not all(isinstance(t.value, str) and "." in t.value for t in targets):
            message = "must be a dotted key, as in topology.events.rate, or a list"
            reader.refuse(sets, join(key, "sets"), message)
        elif inverse is not None and not isinstance(inverse.value, bool):
            reader.refuse(inverse, join(key, "inverse"), f"must be true or false, not {inverse.shown()}")
        elif parts is not None and (type(parts.value) is not int or parts.value < 1 or inverse is not None):
            message = f"must be a whole number of at least 1, and without inverse, not {parts.shown()}"
            reader.refuse(parts, join(key, "divided_by"), message)
        else:
            meaning = " ".join(str(about.value).split()) if about is not None else ""
            keys, is_inverse = tuple(t.value for t in targets), inverse is not None and inverse.value
            share = 1 if parts is None else parts.value
            found[name] = Parameter(name, keys, meaning, node.get("default"), is_inverse, share)
    if reader.problems:
        raise ScenarioError(reader.problems)
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
        for key in parameter.sets:
            named = node.given(short=parameter.name, key=key if node.origin.shown else "")
            found.append(replace(setting, key=key, node=named))
    return found


def settle(root: Node, settings: Sequence[Setting]) -> Node:
    """The tree with all settings, short parameters too; raises ScenarioError with all that is wrong."""
    problems: list[Problem] = []
    for setting in sorted(expand(root, settings), key=lambda setting: setting.node.origin.giver):
        try:
            root = root if setting.faults else put(root, setting)
            problems += setting.faults
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return root


def put(root: Node, setting: Setting) -> Node:
    """The tree with a setting, or the same if it does not win; raises ScenarioError if there is no key."""
    there, path, giver = root.get(*setting.path), setting.path, setting.node.origin.giver
    if there is not None and giver < there.origin.giver:
        return root
    if giver < Giver.FILE and path[0] == "strategy" and len(path) == 2:
        kind = strategy_kind(root)
        if kind is None or path[1] not in fields_of(STRATEGIES[kind]):
            return root
    return _replaced(root, setting, 0)


def with_defaults(root: Node, known: Mapping[str, Parameter]) -> Node:
    """The tree with the defaults of short parameters whose keys it does not give; raises ScenarioError."""
    problems: list[Problem] = []
    for name, parameter in known.items():
        default = parameter.default
        if default is None or (default.value is None and default.is_outside):
            continue
        try:
            node = parameter.value(default).given(giver=Giver.DEFAULT, short=name)
        except ValueError as error:
            problems.append(default.problem(f"{KEY}.{name}.default", str(error)))
            continue
        for key in parameter.sets:
            try:
                root = put(root, Setting(key, node))
            except ScenarioError as error:
                message = f"{key}: {error.problems[0].message}"
                problems.append(node.problem(f"{KEY}.{name}.sets", message))
    if problems:
        raise ScenarioError(problems)
    return root


def strategy_kind(root: Node) -> str | None:
    """The kind of the strategy, if there is such a kind."""
    kind = _kind(root, "strategy")
    return kind if kind in STRATEGIES else None


def detector_kind(root: Node) -> str | None:
    """The kind of the detector, if there is such a kind and it finds out by itself what fails."""
    kind = _kind(root, "detector")
    return kind if kind in DETECTORS and not DETECTORS[kind].by_fault else None


def _kind(root: Node, key: str) -> str:
    """The kind that a part is said to have; empty if it is none."""
    node = root.get(key, "kind") or root.get(key)
    return node.value if node is not None and isinstance(node.value, str) else ""


def with_block(root: Node) -> Node:
    """The tree, its strategy completed from the block ``strategies``."""
    node = root.get("strategy")
    if node is not None and isinstance(node.value, str):
        node = node.like({"kind": node})
    if node is None or not node.is_mapping:
        return root
    kind = node.get("kind")
    block = root.get("strategies", _kind(root, "strategy")) or root.like({})
    layer = {key: child for key, child in block.items() if key != "kind"}
    chosen = kind is not None and kind.is_set
    others = ["kind", *left_out(root)]
    own = {key: child for key, child in node.items() if key not in others}
    merged = {} if kind is None else {"kind": kind}
    for key in [*layer, *own]:
        mine, other = own.get(key), layer.get(key)
        if mine is None or (other is not None and not mine.is_set and (chosen or other.is_set)):
            mine = layer[key]
        merged[key] = mine
    return root.like({**root.value, "strategy": node.like(merged)})


def left_out(root: Node) -> list[str]:
    """Keys of the file's own ``strategy`` that do not count: somebody else chose a kind without them."""
    node = root.get("strategy")
    kind = None if node is None else node.get("kind")
    if node is None or kind is None or not kind.is_set or not isinstance(kind.value, str):
        return []
    known = fields_of(STRATEGIES[kind.value]) if kind.value in STRATEGIES else {}
    return [key for key, child in node.items() if key not in known and key != "kind" and not child.is_set]


def _replaced(node: Node, setting: Setting, level: int) -> Node:
    """A copy of ``node`` with the value at the rest of the path; what is not on the path is shared."""
    path = setting.path
    if level == len(path):
        return setting.node
    step, here = path[level], ".".join(path[:level])
    # What comes to hold it came with the setting, unless that only fills a gap of the file.
    holder = (setting.node if setting.node.is_set else node).like({})
    if isinstance(node.value, list):
        items = list(node.value)
        if not (step.isascii() and step.isdigit()) or len(step) > 9 or int(step) >= len(items):
            allowed = f"0 to {len(items) - 1}" if items else "none: the list is empty"
            hint = f"; did you mean {f'{here}.0.{step}'!r}?" if items and step.isidentifier() else ""
            message = f"no entry {step!r} in {here}; entries are {allowed}{hint}"
            raise setting.node.refused(setting.key, message)
        items[int(step)] = _replaced(items[int(step)], setting, level + 1)
        return node.like(items)
    if node.is_mapping:
        child = node.get(step)
        if child is None and path[0] == "topology" and level == 1 and len(path) > 2:
            hint = suggest(step, node.value)
            raise setting.node.refused(setting.key, f"unknown component {step!r}; {hint}")
        return node.like(node.value | {step: _replaced(child or holder, setting, level + 1)})
    if node.value is None:
        return holder.like({step: _replaced(holder, setting, level + 1)})
    # A text alone may stand for a key: ``strategy: rsm``, ``placement: k_safe``, ``window: 30 s``.
    short = None
    if path[:level] in (["strategy"], ["hosts", "placement"]):
        short = "kind"
    elif path[0] == "slo" and level == 2:
        short = "objective"
    elif path[0] == "topology" and path[level - 1] == "window":
        short = "length"
    if isinstance(node.value, str) and short:
        return _replaced(node.like({short: node}), setting, level)
    message = f"{here} is {node.shown()} and has no keys of its own; set {here} as a whole"
    raise setting.node.refused(setting.key, message)
