"""From scenario files, and changes of them in Python, to scenarios: what everybody calls who needs one.

``load`` for one scenario; ``load_for_strategies`` for the same one under several strategies, to be compared.
`precedence` says who wins where several give a value, parts say what their keys may hold. Here is what only
whole scenarios have: which keys there are (`TOP`), components, short forms, and what an unknown key may mean.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, Self

from pydantic import PrivateAttr

from tideover.models import config
from tideover.models.config import AppliedProfile, Slo
from tideover.models.detectors.base import Detector
from tideover.models.job.arrivals import Arrivals, Periodic
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, QueueSettings, Run, SpoutConfig, Store
from tideover.models.job.spouts import SPOUTS
from tideover.models.job.stores import StoreKind
from tideover.models.operators.base import BOLTS
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import checks, library, plugins, precedence, profiles, yaml_source
from tideover.scenarios.checks import Draft
from tideover.scenarios.errors import Problem, ScenarioError, is_misspelt, listed, suggest, unknown_parameters
from tideover.scenarios.part_builder import PartBuilder, fields_of, from_plain, join, part_to_data
from tideover.scenarios.precedence import Setting, Settings, is_for_others, partly_used, read_settings
from tideover.scenarios.yaml_source import FROM_SET, WHOLE, Giver, Node, Origin
from tideover.sim.distributions import Constant
from tideover.sim.faults import Fault
from tideover.sim.registry import Part

_BLOCKS = ("strategies", precedence.KEY)
"""What a file may hold besides the scenario itself."""

_FIELDS = tuple(config.Scenario.model_fields)
_KEEP: Any = object()
"""Stands for an argument that was not given, where None means something."""


TOP = {
    "name": "a short title; default: the file's name",
    "description": "what the scenario shows",
    "topology": "the components by name: spouts emit tuples, bolts read and process them",
    "strategy": "how the system survives failure: the kind, and that kind's parameters",
    "strategies": "parameters by kind, used when that kind is picked (--set strategy.kind=…, compare)",
    "failures": "what breaks, and when",
    "detector": "how failures are noticed, and what they hit is restarted; default: as each failure says",
    "hosts": "number of hosts, or the machines of the cluster; default: one host for each task",
    "links": "latency between and within hosts; default: none",
    "queues": "bounds of all queues, where a component does not say otherwise (queue); short: 1000",
    "store": "the store that checkpoints are written to",
    "stores": "more stores by name, each of a kind, for whatever names one: a strategy, a failure",
    "run": "how long, how often, with which luck",
    "slo": "objectives that results are held against (tideover check): [recovery_p95 <= 20 s, lost = 0]",
    "conditions": "what the real job runs under (jvm: stock); `run` warns where its profile knows others",
    "profile": "measured values for keys that are not given here: a profile's path, from the file's folder",
    "parameters": "short names for --set, and the dotted keys that they set",
}
"""The keys of a scenario file, and what they mean."""

ARRIVAL_KEYS = tuple(fields_of(Periodic))


_PLAIN = ("name", "description", "stores", "slo", "conditions")
"""Those that need no other one to be understood."""
MOST_HOSTS = 100_000


@dataclass(frozen=True)
class Resolved:
    """A scenario, and the complete tree that it was made of; ``idle``: why its profile gives it nothing."""

    scenario: config.Scenario
    root: Node
    idle: tuple[Problem, ...] = ()


class Tree(NamedTuple):
    """The tree of a scenario, and the directory in which it looks for other files."""

    root: Node
    directory: Path


Source = str | Path | Mapping[str, Any] | config.Scenario
"""A built-in name, a path, a mapping as a file would hold it, or a scenario that is there already."""


def load(source: Source, settings: Settings = ()) -> Scenario:
    """The scenario of a source. ``settings``: texts ``key=value`` as given to ``--set``, or a mapping:
    ``{"run.seed": 3}``. Raises ScenarioError, and TypeError for settings that are no list and no mapping.
    """
    root, directory = tree(source)
    root = precedence.settle(root, read_settings(settings))
    return Scenario.of(build(root, directory).scenario, Tree(_kept(root), directory))


def load_text(text: str, name: str = "scenario", settings: Sequence[str] = ()) -> config.Scenario:
    """The scenario of a YAML text; ``name`` stands for the file in messages. Raises ScenarioError."""
    plugins.load_installed()
    root = precedence.settle(yaml_source.parse(text, name), read_settings(settings))
    return build(root, Path()).scenario


def resolve(source: Source, settings: Settings = ()) -> Resolved:
    """A scenario, and the tree that it was made of. Raises ScenarioError."""
    root, directory = tree(source)
    return build(precedence.settle(root, read_settings(settings)), directory)


def unused(source: Source, kind: str, settings: Sequence[Setting]) -> list[str]:
    """Remarks on keys of the strategy, in settings and in the file, that do not concern its ``kind``."""
    keys = precedence.left_out(precedence.settle(tree(source).root, settings))
    said = f"the file's strategy is another than {kind}, which does not have its {listed(keys)}"
    return [*partly_used([kind], settings), *([f"{said}: left out"] if keys else [])]


def load_for_strategies(
    source: Source | Tree, kinds: Sequence[str] | None = None, settings: Settings = ()
) -> dict[str, config.Scenario]:
    """The same scenario under several strategies, by kind; None: all of the block ``strategies``, or its one.
    A setting of ``strategy.…`` goes to each kind that knows the key. Raises ScenarioError.
    """
    root, directory = tree(source)
    given = precedence.expand(root, read_settings(settings))
    if kinds is None:
        block = root.get("strategies")
        names = [kind for kind, _ in block.items()] if block is not None else []
        kinds = names or [build(precedence.settle(root, given), directory).scenario.strategy.kind]
    if any(one.key in ("strategy", "strategy.kind") for one in given):
        message = "does not go with a list of strategies to compare; give the strategies there"
        raise ScenarioError([Problem(FROM_SET, None, "strategy.kind", message)])
    known = set().union(*(fields_of(STRATEGIES[k]) for k in kinds if k in STRATEGIES))
    found = {}
    for kind in kinds:
        mine = [one for one in given if not is_for_others(one, kind, known)]
        settled = precedence.settle(root, [*mine, precedence.setting("strategy.kind", kind)])
        found[kind] = build_one(settled, directory)
    if all(one.idle for one in found.values()):
        raise ScenarioError([problem for one in found.values() for problem in one.idle][:1])
    return {kind: one.scenario for kind, one in found.items()}


def tree(source: Source | Tree) -> Tree:
    """The tree of a source; of a scenario what it was built from, if that is known. Raises ScenarioError."""
    plugins.load_installed()
    if isinstance(source, Tree):
        return source
    if isinstance(source, Scenario) and source._tree is not None:
        return source._tree
    if isinstance(source, Mapping | config.Scenario):
        data = part_to_data(source, nulls=False) if isinstance(source, config.Scenario) else source
        return Tree(from_plain(data, Origin("scenario")), Path())
    if isinstance(source, str) and not library.is_path(source):
        return Tree(library.tree(source), Path())
    return Tree(yaml_source.read(Path(source), (*TOP, "grid")), Path(source).parent)


def build(root: Node, directory: Path) -> Resolved:
    """The scenario of a tree; ``directory``: where it looks for files. Raises ScenarioError."""
    found = build_one(root, directory)
    if found.idle:
        raise ScenarioError(found.idle)
    return found


def build_one(root: Node, directory: Path, texts: Mapping[str, str] = {}) -> Resolved:
    """The same of one, whose profile may give it nothing; ``texts``: of profiles that were read before."""
    root = precedence.with_block(root)
    known = precedence.declared(root, TOP)
    node, applied, profile = root.get(profiles.KEY), None, None
    idle: tuple[Problem, ...] = ()
    if node is not None and node.is_mapping:  # a scenario that was completed before
        builder = PartBuilder(directory)
        applied = builder.part(AppliedProfile, node, profiles.KEY)
        if applied is None:
            raise ScenarioError(builder.problems)
    elif node is not None and node.value is not None:
        profile = profiles.named(node, directory, texts)
        root, taken = profiles.apply(root, profile)
        applied = AppliedProfile(name=profile.name, sha256=profile.sha256, file=profile.file, taken=taken)
        if not taken:
            message = f"{profile.name} gives nothing to this scenario: {profiles.why_idle(root, profile)}"
            idle = (node.problem(profiles.KEY, f"{message}; {_fitting(profile)}"),)
    try:
        found = _built(root, known, directory)
    except ScenarioError as error:
        if profile is None:
            raise
        # Of what is missing it is said that the profile does not have it, and what the profile fits.
        problems = []
        for problem in error.problems:
            more = profiles.missing(root, profile, problem.key)
            said = problem.message if more is None else f"{problem.message}; {more}; {_fitting(profile)}"
            problems.append(replace(problem, message=said))
        raise ScenarioError(problems) from None
    if applied is None:
        return found
    return replace(found, scenario=found.scenario.model_copy(update={"profile": applied}), idle=idle)


def _built(root: Node, known: Mapping[str, precedence.Parameter], directory: Path) -> Resolved:
    """The scenario of a tree that lacks nothing but short parameters' defaults; raises ScenarioError."""
    builder = ScenarioBuilder(directory)
    complete = precedence.with_defaults(root, known)
    scenario = builder.scenario(complete)
    if scenario is None or builder.problems:
        raise ScenarioError(builder.problems)
    return Resolved(scenario, complete)


def _fitting(profile: profiles.Profile) -> str:
    """The built-in scenarios that are complete with a profile, and take something from it, in words."""
    found = []
    for name in library.names():
        root = precedence.settle(tree(name)[0], [precedence.setting(profiles.KEY, None)])
        completed, taken = profiles.apply(precedence.with_block(root), profile)
        try:
            _built(completed, precedence.declared(root, TOP), Path())
        except ScenarioError:
            continue
        found += [name] * bool(taken)
    return f"of the built-in scenarios it fits {listed(found) or 'none'}"


class ScenarioBuilder(PartBuilder):
    """Builds a whole scenario; what is broken is left out, so that the rest can be checked all the same."""

    def scenario(self, root: Node) -> config.Scenario | None:
        self.root = root
        if "grid" in root.value and "topology" not in root.value:
            self.refuse(root.value["grid"], "grid", "belongs to a sweep; use this file with tideover sweep")
            return None
        self.unknown_keys(root, "", TOP)
        draft, given = Draft(root), dict[str, Any]()
        topology = self._needed("topology", "a mapping of components, each with spout: or bolt:")
        entries = dict(topology.items()) if topology else {}
        names = [name for name, entry in entries.items() if not entry.is_set]
        draft.topology = {name: self._component(name, entry, names) for name, entry in entries.items()}
        given["topology"] = {name: config for name, config in draft.topology.items() if config is not None}
        given["strategy"] = draft.strategy = self._strategy()
        if (failures := self._given("failures")) is not None and not isinstance(failures.value, list):
            said = "must be a list, as in [{at: 75 s, kind: lose_state, component: count}]"
            self.refuse(failures, "failures", said)
        elif failures is not None:
            faults = enumerate(failures.value)
            draft.failures = [self.named(Fault, node, f"failures.{i}") for i, node in faults]
        given["failures"] = tuple(fault for fault in draft.failures if fault is not None)
        if (run := self._needed("run", "give run: {duration: 240 s}")) is not None:
            draft.run = self.part(Run, run, "run")
        given["run"] = draft.run
        if (detector := self._given("detector")) is not None:
            draft.detector = self.named(Detector, detector, "detector")
            given |= {} if draft.detector is None else {"detector": draft.detector}
        links = root.get("links") or root.like({})
        free = {key: Constant(value=0) for key in ("latency", "local") if links.get(key) is None}
        given["links"] = self.part(Links, links, "links", free)
        if (queues := self._given("queues")) is not None:
            given["queues"] = self.part(QueueSettings, queues, "queues")
        given["store"] = self.part(Store, root.get("store") or root.like({}), "store")
        if (hosts := self._given("hosts")) is not None:
            given["hosts"] = draft.hosts = self._hosts(hosts)
        top = {key: root.value[key] for key in _PLAIN if key in root.value}
        top.setdefault("name", root.like(Path(root.origin.file).stem))
        scenario = self.part(config.Scenario, root.like(top), "", given)
        self.problems += checks.check(draft, scenario if not self.problems else None)
        return scenario

    def hint(self, node: Node, key: str, name: str, known: list[str]) -> str:
        """The same; of a key that was set on the command line it says where else there is one."""
        owners = [kind for kind, cls in STRATEGIES.items() if name in fields_of(cls)]
        if owners and key == "strategy" and "kind" in node.value:
            return f"it belongs to {listed(owners)}, not to {node.value['kind'].value}"
        near = self._elsewhere(name, node.value[name])
        if not key and (short := self.root.get(precedence.KEY)) is not None:
            near = [other for other, _ in short.items() if is_misspelt(other, [name])][:1] or near
        return suggest(name, known, near)

    def _elsewhere(self, name: str, node: Node) -> list[str]:
        """Dotted keys that end in what was set from outside where no such key is: ``rate=50/s`` and
        ``sentences.rate=50/s`` find ``topology.sentences.rate``. ``node``: the value of the unknown key.
        """
        if not node.is_set:
            return []
        tails = [name]
        while node.is_mapping and len(node.value) == 1:
            ((step, node),) = node.items()
            tails.append(f"{tails[-1]}.{step}")
        places: list[tuple[str, type[Part]]]  # where this file could have keys
        places = [("run", Run), ("store", Store), ("links", Links), ("hosts", Hosts)]
        places += [("strategy", cls) for _, cls in STRATEGIES.items()]
        places += [(f"strategies.{kind}", cls) for kind, cls in STRATEGIES.items()]
        for component, entry in (self.root.get("topology") or self.root).items():
            if not entry.is_set and entry.is_mapping:
                places.append((f"topology.{component}", BoltConfig if entry.get("bolt") else SpoutConfig))
        possible = [join(place, field) for place, cls in places for field in fields_of(cls)]
        known = list(dict.fromkeys([*_keys(self.root), *possible]))
        for tail in reversed(tails):
            found = [key for key in known if key.endswith(f".{tail}")]
            # The key of the strategy that is chosen stands for those of the block.
            if found := [key for key in found if "." in tail or not key.startswith("strategies.")]:
                return found
        return []

    def _given(self, key: str) -> Node | None:
        """What a block has, if it is there and not empty."""
        node = self.root.get(key)
        return None if node is None or node.value is None else node

    def _needed(self, key: str, meaning: str) -> Node | None:
        """A mapping that must be there."""
        child = self.root.get(key)
        if child is None:
            if not is_misspelt(key, (name for name in self.root.value if name not in TOP)):
                self.refuse(self.root, key, f"is missing; {meaning}")
        elif child.value is None:
            self.refuse(child, key, f"is empty; {meaning}")
        elif self.mapping(child, key):
            return child
        return None

    def _component(self, name: str, entry: Node, names: list[str]) -> SpoutConfig | BoltConfig | None:
        """One of a topology that has components of these ``names``."""
        key = join("topology", name)
        if fault := checks.name_fault(name):
            self.refuse(entry, key, fault)
        if not entry.is_mapping and (near := self._elsewhere(name, entry)):
            self.refuse(entry, key, f"there is no component {name!r}; {suggest(name, names, near)}")
            return None
        if not self.mapping(entry, key):
            return None
        roles = [role for role in ("spout", "bolt") if role in entry.value]
        if len(roles) == 2:
            self.refuse(entry.value["bolt"], join(key, "bolt"), "does not go with spout; give one of the two")
            return None
        if not roles:
            self.refuse(entry, key, "is neither a spout nor a bolt; give spout: or bolt: with a kind")
            return None
        (role,) = roles
        config: type[SpoutConfig | BoltConfig] = SpoutConfig if role == "spout" else BoltConfig
        cls = self.kind(SPOUTS if role == "spout" else BOLTS, entry.value[role], join(key, role))
        own = [*fields_of(cls)] if cls else []
        short = [k for k in ARRIVAL_KEYS if k not in own] if role == "spout" else []
        common = [k for k in fields_of(config) if k not in (role, "arrivals")]
        known = [role, *own, *(["arrivals"] if role == "spout" else []), *short, *common]
        # What belongs to an unknown kind cannot be told.
        unknown = self.unknown_keys(entry, key, known) if cls is not None else []
        given = {role: cls and self.part(cls, _only(entry, own), key, unknown=unknown)}
        if role == "spout":
            given["arrivals"] = self._arrivals(entry, key, short, unknown)
        return self.part(config, _only(entry, common), key, given, unknown)

    def _arrivals(self, entry: Node, key: str, short: list[str], unknown: list[str]) -> Arrivals | None:
        given = [k for k in short if k in entry.value]
        node = entry.get("arrivals")
        if node is None and given:
            return self.part(Periodic, _only(entry, short), key)
        if node is None:
            if not any(is_misspelt(wanted, unknown) for wanted in ("arrivals", *short)):
                hint = "give rate, or pause (with emit_cost), or arrivals: {kind: …}"
                self.refuse(entry, key, f"has no arrivals; {hint}")
            return None
        for k in given:
            self.refuse(entry.value[k], join(key, k), "does not go with arrivals; give it there")
        return self.named(Arrivals, node, join(key, "arrivals"))

    def _strategy(self) -> Strategy | None:
        """The strategy, which has what the block ``strategies`` says about its kind; and the block."""
        broken: list[Node] = []
        for kind, given in self.entries(self.root, "strategies").items():
            place = join("strategies", kind)
            cls = self.kind(STRATEGIES, given.like(kind), place)
            own = given.get("kind")
            if cls is not None and own is not None and own.value != kind:
                self.refuse(own, join(place, "kind"), f"must be {kind}, as the key says, not {own.shown()}")
                broken.append(own)
            if cls is None or self.part(cls, given.like({}) if given.value is None else given, place) is None:
                broken += [child for _, child in given.items()]
        node = self._needed("strategy", f"give strategy: {{kind: …}}, one of {', '.join(STRATEGIES)}")
        if node is None:
            return None
        # What is wrong in the block was said there.
        usable = {key: child for key, child in node.items() if not any(child is other for other in broken)}
        return self.named(Strategy, node.like(usable), "strategy")

    def _hosts(self, node: Node) -> int | Hosts | None:
        """A number of hosts, or a cluster; None if it is nothing usable."""
        if node.is_mapping:
            return self.part(Hosts, node, "hosts")
        if type(node.value) is int and 1 <= node.value <= MOST_HOSTS:
            return node.value
        said = "must be a whole number of hosts, or a mapping that names machines"
        if type(node.value) is int:
            said = "must be at least 1" if node.value < 1 else f"must be at most {MOST_HOSTS}"
        self.refuse(node, "hosts", f"{said}, not {node.shown()}")
        return None


def _only(node: Node, keys: Iterable[str]) -> Node:
    return node.like({k: v for k, v in node.items() if k in keys})


def _keys(node: Node, key: str = "") -> Iterator[str]:
    """Every dotted key of the tree that was not set on the command line."""
    children = enumerate(node.value) if isinstance(node.value, list) else node.items()
    for step, child in children:
        if not child.is_set:
            here = join(key, str(step))
            yield here
            yield from _keys(child, here)


P = ParamSpec("P")


def _with_nearest(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that names the nearest parameter for one that it does not know."""
    _, *known = inspect.signature(init).parameters

    @wraps(init)
    def checked(*args: P.args, **given: P.kwargs) -> None:
        if problems := unknown_parameters("Scenario", given, known):
            raise ScenarioError(problems)
        init(*args, **given)

    return checked


class Scenario(config.Scenario):
    """Everything that one simulation depends on. It never changes; ``with_`` makes another one.

    Its parts are made of typed objects (``tideover.parts``), and it is checked as a scenario file is: raises
    ScenarioError, with the key. Numbers that are read from it are nanoseconds, bytes, and tuples per second.
    """

    _tree: Tree | None = PrivateAttr(default=None)
    """What it was built from, and where that looks for files; None: its fields alone say all."""

    @_with_nearest
    def __init__(
        self,
        *,
        name: str,
        topology: Mapping[str, SpoutConfig | BoltConfig],
        strategy: Strategy | str,
        run: Run,
        description: str = "",
        failures: Sequence[Fault] = (),
        detector: Detector | str | None = None,
        hosts: int | Hosts | None = None,
        links: Links | None = None,
        queues: QueueSettings | int | None = None,
        store: Store | None = None,
        stores: Mapping[str, StoreKind | str] | None = None,
        slo: Sequence[Slo | str] = (),
        conditions: Mapping[str, str | int | float] | None = None,
        profile: AppliedProfile | str | None = None,
    ) -> None:
        given = locals() | {"slo": slo or None}
        data = {key: given[key] for key in _FIELDS if given[key] is not None}
        made_of = Tree(from_plain(data, Origin("Scenario")), Path())
        plugins.load_installed()
        super().__init__(**dict(build(*made_of).scenario))
        self._tree = made_of

    @staticmethod
    def of(scenario: config.Scenario, tree: Tree | None = None) -> Scenario:
        """The same scenario, to be varied; ``tree``: what it was built from, if it is to follow from that."""
        found = Scenario.model_construct(**dict(scenario))
        found._tree = tree
        return found

    def with_(
        self,
        changes: Mapping[str, Any] = {},
        /,
        *,
        name: str = _KEEP,
        description: str = _KEEP,
        topology: Mapping[str, SpoutConfig | BoltConfig] = _KEEP,
        strategy: Strategy | str = _KEEP,
        failures: Sequence[Fault] = _KEEP,
        detector: Detector | str | None = _KEEP,
        hosts: int | Hosts | None = _KEEP,
        links: Links = _KEEP,
        queues: QueueSettings | int | None = _KEEP,
        store: Store = _KEEP,
        stores: Mapping[str, StoreKind | str] = _KEEP,
        run: Run = _KEEP,
        slo: Sequence[Slo | str] = _KEEP,
        conditions: Mapping[str, str | int | float] = _KEEP,
        profile: str | None = _KEEP,
        **parameters: Any,
    ) -> Scenario:
        """The scenario with some keys changed, as if its file or ``--set`` said so; this one stays as it is.

        A typed part replaces all that was there, its defaults included. The name of a strategy picks that one
        with what the scenario's block ``strategies`` has for it. ``changes``: values by dotted key
        (``{"strategy.message_timeout": "30 s"}``), which change nothing but that key; they are applied first.
        ``parameters``: the short parameters that the scenario's file declares.

        Raises ScenarioError, with the key, for whatever a file would be refused for; TypeError for a class
        instead of an object.

        >>> import tideover
        >>> base = tideover.load("wordcount")
        >>> slow = base.with_({"topology.sentences.rate": "5/s"}, strategy=tideover.Amnesia())
        >>> slow.topology["sentences"].arrivals.rate, base.topology["sentences"].arrivals.rate
        (5.0, 10.0)
        """
        named = locals()
        given = {key: named[key] for key in _FIELDS if named[key] is not _KEEP}
        if not isinstance(changes, Mapping):
            raise TypeError(f"with_ takes values by dotted key, as in {{'run.seed': 3}}, not {changes!r}")
        if twice := [key for key in changes if key in given or key in parameters]:
            message = "is given twice, in the mapping and by name; leave one of them out"
            raise ScenarioError([Problem("with_", None, key, message) for key in twice])
        settings = read_settings({**changes, **given, **parameters}, Origin("with_", None, Giver.SETTING))
        root, directory = tree(self)
        root = precedence.settle(root, settings)
        found = build_one(root, directory)
        if found.idle and any(setting.key == profiles.KEY for setting in settings):
            raise ScenarioError(found.idle)
        return Scenario.of(found.scenario, Tree(_kept(root), directory))

    def to_yaml(self, path: str | Path | None = None) -> str:
        """The text of a scenario file that ``load`` reads back to an equal scenario; every key is in it.

        ``path``: a file to write as well; files that the scenario names are then named from the root. Short
        parameters and the block ``strategies`` of the file that it came from are in it, too. Raises OSError.

        >>> import tideover
        >>> print(tideover.load("wordcount").to_yaml().splitlines()[0])
        name: word count
        """
        root = tree(self).root
        blocks = {key: root.value[key].plain() for key in _BLOCKS if key in root.value}
        data = part_to_data(self, nulls=False) | blocks
        # Without null for what is None a file is easier to read, but a block may then give a value instead.
        try:
            same = load(data) == self
        except ScenarioError:
            same = False
        if not same:
            data = part_to_data(self) | blocks
        for component in data["topology"].values() if path is not None else ():
            if "file" in (arrivals := component.get("arrivals", {})):
                arrivals["file"] = str(Path(arrivals["file"]).absolute())
        text = yaml_source.write(yaml_source.quoted(data))
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's; a copy with other fields no longer follows from what this one was built from."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            copied._tree = None
        return copied

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, wherever they came from."""
        return isinstance(other, config.Scenario) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


def _kept(root: Node) -> Node:
    """The tree after a change: what was set counts as given by the scenario, whose strategy is chosen."""

    def kept(node: Node) -> Origin:
        return node.origin._replace(giver=Giver.CHANGE) if node.is_set else node.origin

    return precedence.with_block(root).with_origins(kept)


def around(
    source: str | Path | Mapping[str, Any], what: str, wanted: str, meant: str, top: Collection[str]
) -> tuple[Node, Path, Tree | None]:
    """A file around a scenario (a sweep's, a plan's), or a mapping as it would hold: its tree, where it looks
    for files, and the tree of its scenario, if that is a ``Scenario`` already. Raises ScenarioError.
    """
    plugins.load_installed()
    if not isinstance(source, Mapping):
        text = yaml_source.text_of(Path(source), wanted)
        return yaml_source.parse(text, str(source), meant, top), Path(source).parent, None
    scenario = source.get("scenario")
    if isinstance(scenario, config.Scenario):
        return from_plain({**source, "scenario": {}}, Origin(what)), Path(), tree(scenario)
    return from_plain(source, Origin(what)), Path(), None


def scenario_of(root: Node, directory: Path) -> Tree:
    """The scenario that a file in this directory names, or has as a mapping. Raises ScenarioError."""
    node = root.get("scenario")
    if node is None:
        message = "is missing; give a built-in name, a path, or a mapping as in a scenario file"
        raise root.refused("scenario", message)
    if node.is_mapping:
        return Tree(node, directory)
    if not isinstance(node.value, str):
        raise node.refused("scenario", f"{node.shown()} is neither a name nor a path nor a mapping")
    path = directory / node.value
    is_path = library.is_path(node.value) or (node.value not in library.names() and os.path.exists(path))
    try:
        return tree(path if is_path else node.value)
    except ScenarioError as error:
        if not any(problem.key == WHOLE for problem in error.problems):
            raise
        messages = [f"{problem.file!r}: {problem.message}" for problem in error.problems]
        raise ScenarioError(node.problem("scenario", each) for each in messages) from None
