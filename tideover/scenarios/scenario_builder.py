"""From the tree of a scenario, complete as `precedence` makes it, to the scenario: called by `loader`.

What single keys may hold is said by their parts; here is what only whole scenarios have: which keys there
are (`TOP`), components, short forms, and what may be meant by a key that there is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tideover.models.config import Scenario
from tideover.models.detectors.base import Detector
from tideover.models.job.arrivals import Arrivals, Periodic
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, QueueSettings, Run, SpoutConfig, Store
from tideover.models.job.spouts import SPOUTS
from tideover.models.operators.base import BOLTS
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import checks, precedence
from tideover.scenarios.checks import Draft
from tideover.scenarios.errors import is_misspelt, listed, suggest
from tideover.scenarios.part_builder import PartBuilder, fields_of, join
from tideover.scenarios.yaml_source import Node
from tideover.sim.distributions import Constant
from tideover.sim.faults import Fault
from tideover.sim.registry import Part

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
    "profile": "measured values for keys that are not given here: a profile's path, from the file's folder",
    "parameters": "short names for --set, and the dotted keys that they set",
}
"""The keys of a scenario file, and what they mean."""

ARRIVAL_KEYS = tuple(fields_of(Periodic))


MOST_HOSTS = 100_000


class ScenarioBuilder(PartBuilder):
    """Builds a whole scenario; what is broken is left out, so that the rest can be checked all the same."""

    def scenario(self, root: Node) -> Scenario | None:
        self.root = root
        if "grid" in root.value and "topology" not in root.value:
            self.refuse(root.value["grid"], "grid", "belongs to a sweep; use this file with tideover sweep")
            return None
        self.unknown_keys(root, "", TOP)
        draft = Draft(root, self._topology())
        draft.strategy = self._strategy()
        draft.failures = self._failures()
        if (run := self._needed("run", "give run: {duration: 240 s}")) is not None:
            draft.run = self.part(Run, run, "run")
        given: dict[str, Any] = {
            "topology": {name: config for name, config in draft.topology.items() if config is not None},
            "strategy": draft.strategy,
            "failures": tuple(fault for fault in draft.failures if fault is not None),
            "run": draft.run,
        }
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
        top = {key: root.value[key] for key in ("name", "description", "stores", "slo") if key in root.value}
        top.setdefault("name", root.like(Path(root.origin.file).stem))
        scenario = self.part(Scenario, root.like(top), "", given)
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
        """Dotted keys that end in what was set from outside where no such key is.

        ``sentences.rate=50/s`` and ``rate=50/s`` both find ``topology.sentences.rate``. ``name``, ``node``:
        the unknown key and its value.
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

    def _topology(self) -> dict[str, SpoutConfig | BoltConfig | None]:
        node = self._needed("topology", "a mapping of components, each with spout: or bolt:")
        entries = dict(node.items()) if node else {}
        names = [name for name, entry in entries.items() if not entry.is_set]
        return {name: self._component(name, entry, names) for name, entry in entries.items()}

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

    def _failures(self) -> list[Fault | None]:
        node = self._given("failures")
        if node is not None and not isinstance(node.value, list):
            said = "must be a list, as in [{at: 75 s, kind: lose_state, component: count}]"
            self.refuse(node, "failures", said)
        faults = node.value if node is not None and isinstance(node.value, list) else []
        return [self.named(Fault, item, join("failures", str(i))) for i, item in enumerate(faults)]

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
    """The mapping with these of its keys."""
    return node.like({k: v for k, v in node.items() if k in keys})


def _keys(node: Node, key: str = "") -> Iterator[str]:
    """Every dotted key of the tree that was not set on the command line."""
    children = enumerate(node.value) if isinstance(node.value, list) else node.items()
    for step, child in children:
        if not child.is_set:
            here = join(key, str(step))
            yield here
            yield from _keys(child, here)
