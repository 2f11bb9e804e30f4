"""From the tree of a scenario, complete as `precedence` makes it, to the scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

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


class _Count(Part):
    """The short form of a cluster: so many hosts, of which nothing else is said."""

    hosts: Annotated[int, Field(ge=1, le=100_000)]


class ScenarioBuilder(PartBuilder):
    """Builds a whole scenario; what is broken is left out, so that the rest can be checked all the same."""

    def scenario(self, root: Node) -> Scenario | None:
        self.root = root
        if "grid" in root.value and "topology" not in root.value:
            self.refuse(root.value["grid"], "grid", "belongs to a sweep; use this file with tideover sweep")
            return None
        self.unknown_keys(root, "", TOP)
        draft = Draft(root)
        draft.topology = self._topology(root)
        draft.strategy = self._strategy(root)
        draft.failures = self._failures(root)
        run = self._child(root, "run", "give run: {duration: 240 s}")
        draft.run = None if run is None else self.part(Run, run, "run")
        detector, queues = self._given(root, "detector"), self._given(root, "queues")
        draft.detector = None if detector is None else self.named(Detector, detector, "detector")
        given: dict[str, Any] = {
            "topology": {name: config for name, config in draft.topology.items() if config is not None},
            "strategy": draft.strategy,
            "failures": tuple(f for f in draft.failures if f is not None),
            "run": draft.run,
            **({} if draft.detector is None else {"detector": draft.detector}),
            "links": self._links(root),
            **({} if queues is None else {"queues": self.part(QueueSettings, queues, "queues")}),
            "store": self.part(Store, root.get("store") or root.like({}), "store"),
        }
        draft.hosts = self._hosts(root)
        if draft.hosts is not None or draft.hosts_unknown:
            given["hosts"] = draft.hosts
        top = {key: root.value[key] for key in ("name", "description", "stores", "slo") if key in root.value}
        top.setdefault("name", root.like(Path(root.origin.file).stem))
        scenario = self.part(Scenario, root.like(top), "", given)
        self.problems += checks.check(draft, scenario if not self.problems else None)
        return scenario

    def unknown_keys(self, node: Node, key: str, known: Iterable[str]) -> list[str]:
        """The same; of a key that was set on the command line it says where else there is one."""
        known = list(known)
        unknown = [name for name in node.value if name not in known]
        for name in unknown:
            child = node.value[name]
            near = self._elsewhere(name, child) if child.is_set else []
            if not key and (short := self.root.get(precedence.KEY)) is not None:
                near = [other for other, _ in short.items() if is_misspelt(other, [name])][:1] or near
            owners = [kind for kind, cls in STRATEGIES.items() if name in fields_of(cls)]
            if owners and key == "strategy" and "kind" in node.value:
                hint = f"it belongs to {listed(owners)}, not to {node.value['kind'].value}"
            else:
                hint = suggest(name, known, near)
            self.refuse(child, join(key, name), f"unknown key; {hint}")
        return unknown

    def _elsewhere(self, name: str, node: Node) -> list[str]:
        """Dotted keys that end in what was set where no such key is.

        ``sentences.rate=50/s`` and ``rate=50/s`` both find ``topology.sentences.rate``. ``name``, ``node``:
        the unknown key and its value.
        """
        tails = [name]
        while node.is_mapping and len(node.value) == 1:
            ((step, node),) = node.items()
            tails.append(f"{tails[-1]}.{step}")
        known = list(dict.fromkeys([*_keys(self.root), *self._possible()]))
        for tail in reversed(tails):
            found = [key for key in known if key.endswith(f".{tail}")]
            # The key of the strategy that is chosen stands for those of the block.
            if found := [key for key in found if "." in tail or not key.startswith("strategies.")]:
                return found
        return []

    def _possible(self) -> Iterator[str]:
        """Dotted keys that this file could have."""
        places: list[tuple[str, type[Part]]] = [("run", Run), ("store", Store), ("links", Links)]
        places += [("hosts", Hosts)]
        places += [("strategy", cls) for _, cls in STRATEGIES.items()]
        places += [(f"strategies.{kind}", cls) for kind, cls in STRATEGIES.items()]
        for component, entry in (self.root.get("topology") or self.root).items():
            if not entry.is_set and entry.is_mapping:
                places.append((f"topology.{component}", BoltConfig if entry.get("bolt") else SpoutConfig))
        for place, cls in places:
            yield from (join(place, field) for field in fields_of(cls))

    def _child(self, root: Node, key: str, meaning: str) -> Node | None:
        """A mapping that must be there."""
        child = root.value.get(key)
        if child is None:
            if not is_misspelt(key, (name for name in root.value if name not in TOP)):
                self.refuse(root, key, f"is missing; {meaning}")
        elif child.value is None:
            self.refuse(child, key, f"is empty; {meaning}")
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
        """The strategy, which has what the block ``strategies`` says about its kind; and the block."""
        broken: list[Node] = []
        for kind, given in self.entries(root, "strategies").items():
            place = join("strategies", kind)
            cls = self.kind(STRATEGIES, given.like(kind), place)
            own = given.get("kind")
            if cls is not None and own is not None and own.value != kind:
                self.refuse(own, join(place, "kind"), f"must be {kind}, as the key says, not {own.shown()}")
                broken.append(own)
            if cls is None or self.part(cls, given.like({}) if given.value is None else given, place) is None:
                broken += [child for _, child in given.items()]
        node = self._child(root, "strategy", f"give strategy: {{kind: …}}, one of {', '.join(STRATEGIES)}")
        if node is None:
            return None
        # What is wrong in the block was said there.
        usable = {key: child for key, child in node.items() if not any(child is other for other in broken)}
        return self.named(Strategy, node.like(usable), "strategy")

    def _failures(self, root: Node) -> list[Fault | None]:
        node = self._given(root, "failures")
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.refuse(
                node, "failures", "must be a list, as in [{at: 75 s, kind: lose_state, component: count}]"
            )
            return []
        return [self.named(Fault, item, join("failures", str(i))) for i, item in enumerate(node.value)]

    @staticmethod
    def _given(root: Node, key: str) -> Node | None:
        """What a block has, if it is there and not empty."""
        node = root.get(key)
        return None if node is None or node.value is None else node

    def _hosts(self, root: Node) -> int | Hosts | None:
        """A number of hosts, or a cluster; None if nothing is given, or nothing usable."""
        node = self._given(root, "hosts")
        if node is None:
            return None
        if node.is_mapping:
            return self.part(Hosts, node, "hosts")
        if type(node.value) is not int:
            what = "must be a whole number of hosts, or a mapping that names machines"
            self.refuse(node, "hosts", f"{what}, not {node.shown()}")
            return None
        count = self.part(_Count, root.like({"hosts": node}), "")
        return None if count is None else count.hosts

    def _links(self, root: Node) -> Links | None:
        node = root.get("links") or root.like({})
        absent = [k for k in ("latency", "local") if node.get(k) is None]
        return self.part(Links, node, "links", {k: Constant(value=0) for k in absent})


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
