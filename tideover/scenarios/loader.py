"""From a scenario file to a ``Scenario``.

``load`` for one scenario; ``load_for_strategies`` for the same one under several strategies, to be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tideover.models.config import AppliedProfile, Scenario
from tideover.models.job.arrivals.base import Arrivals
from tideover.models.job.arrivals.periodic import Periodic
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig, Store
from tideover.models.job.spouts.base import SPOUTS
from tideover.models.operators.base import BOLTS
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import checks, completion, library, overrides, profiles, shorthand, yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, is_misspelt, listed, suggest
from tideover.scenarios.overrides import Settings
from tideover.scenarios.parts import Builder, fields_of, join
from tideover.scenarios.yaml_source import Node
from tideover.sim.distributions import Constant
from tideover.sim.faults.base import Fault
from tideover.sim.registry import Part

PLUGINS = "tideover.plugins"
"""Entry-point group of modules that register parts when they are imported."""

TOP = (
    "name",
    "description",
    "topology",
    "strategy",
    "strategies",
    "failures",
    "hosts",
    "links",
    "store",
    "run",
    "profile",
    "parameters",
)
ARRIVAL_KEYS = tuple(fields_of(Periodic))


@lru_cache(maxsize=1)
def load_plugins() -> None:
    """Import what other packages offer under the entry-point group ``tideover.plugins``; once per process.

    One that fails to import is left out, with a warning.
    """
    for entry in entry_points(group=PLUGINS):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(f"plugin {entry.name!r} could not be loaded: {error}", RuntimeWarning, stacklevel=2)


def load(source: str | Path | Mapping[str, Any], settings: Settings = ()) -> Scenario:
    """The scenario of a file, of a built-in name, or of a mapping as a file would hold it.

    ``settings``: texts ``dotted.key=value`` as given to ``--set``, or a mapping. Raises ScenarioError.
    """
    root, directory = tree(source)
    return build(settled(root, overrides.texts(settings)), directory)


def load_text(text: str, name: str = "scenario", settings: Sequence[str] = ()) -> Scenario:
    """The scenario of a YAML text; ``name`` stands for the file in messages. Raises ScenarioError."""
    load_plugins()
    return build(settled(yaml_source.parse(text, name), settings), Path())


def settled(root: Node, settings: Sequence[str]) -> Node:
    """The tree with the settings applied, short parameters among them; raises ScenarioError."""
    return overrides.apply(root, shorthand.expand(root, settings))


def load_for_strategies(
    source: str | Path | Mapping[str, Any], kinds: Sequence[str] | None = None, settings: Settings = ()
) -> dict[str, Scenario]:
    """The same scenario under several strategies, by their kinds; raises ScenarioError.

    ``kinds``: None for all that the file's block ``strategies`` names, or its one strategy if there is
    none. A setting of ``strategy.…`` goes to each kind that knows the key; if none does, it is an error.
    """
    root, directory = tree(source)
    settings = shorthand.expand(root, overrides.texts(settings))
    block = root.value.get("strategies")
    if kinds is None:
        names = list(block.value) if block is not None and isinstance(block.value, dict) else []
        kinds = names or [build(overrides.apply(root, settings), directory).strategy.kind]
    chosen = [s for s in settings if s.split("=")[0].strip() in ("strategy", "strategy.kind")]
    if chosen:
        raise ScenarioError([Problem(yaml_source.FROM_SET, None, "strategy.kind", _TWICE)])
    known = set().union(*(fields_of(STRATEGIES[k]) for k in kinds if k in STRATEGIES))
    trees = {}
    for kind in kinds:
        mine = [s for s in settings if not _is_for_others(s, kind, known)]
        trees[kind] = overrides.apply(root, [*mine, f"strategy.kind={kind}"])
    return dict(zip(trees, build_all(trees.values(), directory), strict=True))


_TWICE = "does not go with a list of strategies to compare; give the strategies there"


def _is_for_others(setting: str, kind: str, known: Iterable[str]) -> bool:
    """Whether a setting concerns a key that other strategies know, and this one does not."""
    steps = setting.split("=")[0].strip().split(".")
    if len(steps) < 2 or steps[0] != "strategy" or kind not in STRATEGIES:
        return False
    return steps[1] in known and steps[1] not in fields_of(STRATEGIES[kind])


def partly_used(kinds: Sequence[str], settings: Sequence[str]) -> list[str]:
    """Remarks on settings of a strategy that do not concern all of these kinds, or none of them."""
    found = []
    for setting in settings:
        steps = setting.split("=")[0].strip().split(".")
        if len(steps) < 2:
            continue
        if steps[0] == "strategies" and steps[1] not in kinds:
            found.append(f"{setting} has no effect: it is for {steps[1]}, and simulated is {listed(kinds)}")
        elif steps[0] == "strategy" and steps[1] != "kind":
            users = [k for k in kinds if k in STRATEGIES and steps[1] in fields_of(STRATEGIES[k])]
            others = [k for k in kinds if k not in users]
            if users and others:
                found.append(f"{setting} goes to {listed(users)}, not to {listed(others)}")
    return found


def tree(source: str | Path | Mapping[str, Any]) -> tuple[Node, Path]:
    """The tree of a source, and the directory in which it looks for other files."""
    load_plugins()
    if isinstance(source, Mapping):
        return yaml_source.from_plain(source, "scenario"), Path()
    if isinstance(source, str) and not library.is_path(source):
        return yaml_source.parse(library.text(source), library.file_name(source)), Path()
    return yaml_source.read(Path(source)), Path(source).parent


def build(root: Node, directory: Path) -> Scenario:
    """The scenario of a tree; ``directory``: where it looks for files. Raises ScenarioError."""
    (scenario,) = build_all([root], directory)
    return scenario


def build_all(roots: Iterable[Node], directory: Path) -> list[Scenario]:
    """Scenarios that belong together, such as one under several strategies; raises ScenarioError.

    A profile that gives nothing to any of them is refused.
    """
    idle: list[Problem] = []
    found = []
    for root in roots:
        scenario, reason = built(root, directory)
        found.append(scenario)
        idle += reason
    if len(idle) == len(found):
        raise ScenarioError(idle[:1])
    return found


def built(root: Node, directory: Path) -> tuple[Scenario, list[Problem]]:
    """The scenario of a tree, and why its profile gives it nothing, if so. Raises ScenarioError."""
    known = shorthand.declared(root, TOP)
    node = root.value.get(profiles.KEY)
    if node is None or node.value is None:
        return _loaded(root, known, directory), []
    if isinstance(node.value, dict):  # a scenario that was completed before
        builder = Builder(directory)
        applied = builder.part(AppliedProfile, node, profiles.KEY)
        if applied is None:
            raise ScenarioError(builder.problems)
        return _loaded(root, known, directory).model_copy(update={"profile": applied}), []
    profile = profiles.named(node, directory)
    completed, taken = completion.apply(root, profile)
    idle = []
    if not taken:
        message = f"{profile.name} gives nothing to this scenario: {completion.why_idle(root, profile)}"
        idle = [node.problem(profiles.KEY, f"{message}; {_fitting(profile)}")]
    try:
        scenario = _loaded(completed, known, directory)
    except ScenarioError as error:
        raise ScenarioError(_with_profile(completed, profile, error.problems)) from None
    about = AppliedProfile(name=profile.name, sha256=profile.sha256, file=profile.file, taken=taken)
    return scenario.model_copy(update={"profile": about}), idle


def _loaded(root: Node, known: Mapping[str, shorthand.Parameter], directory: Path) -> Scenario:
    """The scenario of a tree that is complete; raises ScenarioError."""
    loader = _Loader(directory)
    scenario = loader.scenario(shorthand.with_defaults(root, known))
    if scenario is None or loader.problems:
        raise ScenarioError(loader.problems)
    return scenario


def _with_profile(root: Node, profile: profiles.Profile, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Problems; of what is missing they say that the profile does not have it, and what the profile fits."""
    for problem in problems:
        more = completion.missing(root, profile, problem.key)
        said = problem.message if more is None else f"{problem.message}; {more}; {_fitting(profile)}"
        yield replace(problem, message=said)


def _fitting(profile: profiles.Profile) -> str:
    """The built-in scenarios that are complete with a profile, and take something from it, in words."""
    found = []
    for name in library.names():
        root, _ = tree(name)
        bare = overrides.fill(root, profiles.KEY, Node(None, root.source))
        completed, taken = completion.apply(bare, profile)
        try:
            _loaded(completed, shorthand.declared(root, TOP), Path())
        except ScenarioError:
            continue
        found += [name] * bool(taken)
    return f"of the built-in scenarios it fits {listed(found) or 'none'}"


class _Loader(Builder):
    """Builds a whole scenario; what is broken is left out, so that the rest can be checked all the same."""

    def scenario(self, root: Node) -> Scenario | None:
        self.root = root
        if "grid" in root.value and "topology" not in root.value:
            self.refuse(root.value["grid"], "grid", "belongs to a sweep; use this file with tideover sweep")
            return None
        self.unknown_keys(root, "", TOP)
        draft = checks.Draft(root)
        draft.topology = self._topology(root)
        draft.strategy = self._strategy(root)
        draft.failures = self._failures(root)
        draft.run = self._run(root)
        given: dict[str, Any] = {
            "topology": {name: config for name, config in draft.topology.items() if config is not None},
            "strategy": draft.strategy,
            "failures": tuple(f for f in draft.failures if f is not None),
            "run": draft.run,
            "links": self._links(root),
            "store": self.part(Store, root.value.get("store", Node({}, root.source, root.line)), "store"),
        }
        top = {key: root.value[key] for key in ("name", "description", "hosts") if key in root.value}
        top.setdefault("name", Node(Path(root.source).stem, root.source, root.line))
        scenario = self.part(Scenario, Node(top, root.source, root.line), "", given)
        self.problems += checks.check(draft, scenario if not self.problems else None)
        return scenario

    def unknown_keys(self, node: Node, key: str, known: Iterable[str]) -> list[str]:
        """The same; of a key that was set on the command line it says where else there is one."""
        known = list(known)
        unknown = [name for name in node.value if name not in known]
        for name in unknown:
            child = node.value[name]
            near = self._elsewhere(name, child) if child.is_set else []
            if not key and self.root.value.get(shorthand.KEY):
                near = shorthand.misspelt(name, [*self.root.value[shorthand.KEY].value]) or near
            owners = [kind for kind, cls in STRATEGIES.items() if name in fields_of(cls)]
            if owners and key == "strategy" and "kind" in node.value:
                hint = f"it belongs to {listed(owners)}, not to {node.value['kind'].value}"
            else:
                hint = suggest(name, known, near)
            self.refuse(child, join(key, name), f"unknown key; {hint}")
        return unknown

    def _elsewhere(self, name: str, node: Node) -> list[str]:
        """Where keys of this name are."""
        places: list[tuple[str, type[Part]]] = [("run", Run), ("store", Store), ("links", Links)]
        places += [("strategy", cls) for _, cls in STRATEGIES.items()]
        places += [(f"strategies.{kind}", cls) for kind, cls in STRATEGIES.items()]
        topology = self.root.value.get("topology", self.root).value
        for component, entry in topology.items() if isinstance(topology, dict) else ():
            if not entry.is_set and isinstance(entry.value, dict):
                cls = BoltConfig if "bolt" in entry.value else SpoutConfig
                places.append((f"topology.{component}", cls))
        fields = [join(key, field) for key, cls in places for field in fields_of(cls)]
        return overrides.elsewhere(self.root, name, node, fields)

    def _child(self, root: Node, key: str, meaning: str) -> Node | None:
        """A mapping that must be there."""
        child = root.value.get(key)
        if child is None:
            if not is_misspelt(key, (name for name in root.value if name not in TOP)):
                self.refuse(root, key, f"is missing; {meaning}")
        elif child.value is None:
            self.refuse(child, key, f"is empty; {meaning}")
        elif key == "strategy" and isinstance(child.value, str):
            return Node({"kind": child}, child.source, child.line)
        elif self.mapping(child, key):
            return child
        return None

    def _topology(self, root: Node) -> dict[str, SpoutConfig | BoltConfig | None]:
        node = self._child(root, "topology", "a mapping of components, each with spout: or bolt:")
        configs: dict[str, SpoutConfig | BoltConfig | None] = {}
        self.names = [name for name, entry in node.value.items() if not entry.is_set] if node else []
        for name, entry in node.value.items() if node else ():
            key = join("topology", name)
            fault = checks.name_fault(name)
            if fault:
                self.refuse(entry, key, fault)
            configs[name] = self._component(entry, key)
        return configs

    def _component(self, entry: Node, key: str) -> SpoutConfig | BoltConfig | None:
        if entry.is_set and not isinstance(entry.value, dict):
            name = key.removeprefix("topology.")
            if near := self._elsewhere(name, entry):
                self.refuse(entry, key, f"there is no component {name!r}; {suggest(name, self.names, near)}")
                return None
        if not self.mapping(entry, key):
            return None
        if "spout" in entry.value and "bolt" in entry.value:
            self.refuse(entry.value["bolt"], join(key, "bolt"), "does not go with spout; give one of the two")
            return None
        if "spout" in entry.value:
            return self._spout(entry, key)
        if "bolt" in entry.value:
            return self._bolt(entry, key)
        self.refuse(entry, key, "is neither a spout nor a bolt; give spout: or bolt: with a kind")
        return None

    def _spout(self, entry: Node, key: str) -> SpoutConfig | None:
        cls = self.kind(SPOUTS, entry.value["spout"], join(key, "spout"))
        own = [*fields_of(cls)] if cls else []
        short = [k for k in ARRIVAL_KEYS if k not in own]
        common = [k for k in fields_of(SpoutConfig) if k not in ("spout", "arrivals")]
        # What belongs to an unknown kind cannot be told.
        known = ["spout", *own, "arrivals", *short, *common]
        unknown = self.unknown_keys(entry, key, known) if cls is not None else []
        given = {
            "spout": cls and self.part(cls, _only(entry, own), key, unknown=unknown),
            "arrivals": self._arrivals(entry, key, short, unknown),
        }
        return self.part(SpoutConfig, _only(entry, common), key, given, unknown)

    def _arrivals(self, entry: Node, key: str, short: list[str], unknown: list[str]) -> Arrivals | None:
        given = [k for k in short if k in entry.value]
        node = entry.value.get("arrivals")
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

    def _bolt(self, entry: Node, key: str) -> BoltConfig | None:
        cls = self.kind(BOLTS, entry.value["bolt"], join(key, "bolt"))
        own = [*fields_of(cls)] if cls else []
        common = [k for k in fields_of(BoltConfig) if k != "bolt"]
        unknown = self.unknown_keys(entry, key, ["bolt", *own, *common]) if cls is not None else []
        given = {"bolt": cls and self.part(cls, _only(entry, own), key, unknown=unknown)}
        return self.part(BoltConfig, _only(entry, common), key, given, unknown)

    def _strategy(self, root: Node) -> Strategy | None:
        """The strategy, with what the block ``strategies`` says about its kind."""
        block = root.value.get("strategies")
        defaults: dict[str, Node] = {}
        if block is not None and self.mapping(block, "strategies"):
            for kind, node in block.value.items():
                cls = self.kind(STRATEGIES, Node(kind, node.source, node.line), join("strategies", kind))
                if cls is not None and self.part(cls, _mapping(node), join("strategies", kind)) is not None:
                    defaults[kind] = node
        node = self._child(root, "strategy", f"give strategy: {{kind: …}}, one of {', '.join(STRATEGIES)}")
        if node is None:
            return None
        kind = node.plain().get("kind")
        known = fields_of(STRATEGIES[kind]) if isinstance(kind, str) and kind in STRATEGIES else {}
        return self.named(Strategy, overrides.pick_strategy(node, defaults, known), "strategy")

    def _failures(self, root: Node) -> list[Fault | None]:
        node = root.value.get("failures")
        if node is None or node.value is None:
            return []
        if not isinstance(node.value, list):
            self.refuse(
                node, "failures", "must be a list, as in [{at: 75 s, kind: lose_state, component: count}]"
            )
            return []
        return [self.named(Fault, item, join("failures", str(i))) for i, item in enumerate(node.value)]

    def _run(self, root: Node) -> Run | None:
        node = self._child(root, "run", "give run: {duration: 240 s}")
        return None if node is None else self.part(Run, node, "run")

    def _links(self, root: Node) -> Links | None:
        node = root.value.get("links") or Node({}, root.source, root.line)
        absent = [k for k in ("latency", "local") if not isinstance(node.value, dict) or k not in node.value]
        return self.part(Links, node, "links", {k: Constant(value=0) for k in absent})


def _only(node: Node, keys: Iterable[str]) -> Node:
    """The mapping with these of its keys."""
    return Node({k: v for k, v in node.value.items() if k in keys}, node.source, node.line)


def _mapping(node: Node) -> Node:
    """An empty entry as a mapping without keys: ``none:`` in the block ``strategies``."""
    return Node({}, node.source, node.line) if node.value is None else node
