"""What could be built of a scenario so far: what its checks look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from tideover.models.detectors.base import Detector
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Run, SpoutConfig
from tideover.models.job.stores.base import STORES
from tideover.models.strategies.base import Strategy
from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.nodes import Node
from tideover.sim.faults.base import Fault


@dataclass
class Draft:
    """What could be built of a scenario so far, and the file's tree."""

    root: Node
    topology: dict[str, SpoutConfig | BoltConfig | None] = field(default_factory=dict)
    strategy: Strategy | None = None
    failures: list[Fault | None] = field(default_factory=list)
    run: Run | None = None
    detector: Detector | None = None
    hosts: int | Hosts | None = None

    @property
    def host_count(self) -> int | None:
        """How many hosts there are; None: one for each task."""
        return self.hosts.count if isinstance(self.hosts, Hosts) else self.hosts

    @property
    def hosts_unknown(self) -> bool:
        """Whether hosts are given of which nothing could be made."""
        node = self.root.get("hosts")
        return self.hosts is None and node is not None and node.value is not None

    def find(self, *path: str | int) -> tuple[Node, bool]:
        """The node at a path, or the last one on the way that exists; and whether it is the one."""
        node = self.root
        for step in path:
            inner = node.get(str(step))
            if inner is None:
                return node, False
            node = inner
        return node, True

    def keys(self, *path: str | int) -> dict[str, Node]:
        """The entries of the mapping at a path; empty if there is none."""
        node, found = self.find(*path)
        return dict(node.items()) if found else {}

    def problem(self, message: str, *path: str | int) -> Problem:
        """A problem of the value at a path."""
        return self.find(*path)[0].problem(".".join(map(str, path)), message)

    def unknown_store(self, name: str) -> str | None:
        """Why there is no such store; None: there is."""
        stores = self.keys("stores")
        if name in stores:
            return None
        if not stores:
            return f"there is no store {name!r}: stores has none; without this key it is the one of store"
        return f"there is no store {name!r} in stores; {suggest(name, stores)}"

    def not_local(self, name: str) -> str | None:
        """Why a store is not on each host for itself; None: it is, or it has no kind."""
        node = self.keys("stores")[name]
        inner = node.get("kind") if isinstance(node.value, dict) else node
        kind = "" if inner is None else str(inner.value)
        if kind not in STORES or STORES[kind].local:
            return None
        local = ", ".join(name for name, part in STORES.items() if part.local)
        return f"{name!r} is of kind {kind}; it has to be on each host for itself: {local}"
