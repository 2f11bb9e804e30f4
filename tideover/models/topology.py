"""The topology, compiled: order of components, places in the tuple tree, routes, hosts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tideover.models.bolts.base import Bolt
from tideover.models.bolts.windowed_count import WindowedCount
from tideover.models.config import BoltConfig, Scenario, SpoutConfig
from tideover.models.groupings.base import Grouping
from tideover.sim.train import Ints

ROOT_BITS = 40
"""A run may emit 2**40 roots; the rest of a uid is the place in the tree."""


class TopologyError(ValueError):
    """A topology that cannot be simulated; ``component`` is where to look."""

    def __init__(self, component: str, message: str) -> None:
        super().__init__(f"{component}: {message}")
        self.component = component
        self.message = message


def bits_for(n: int) -> int:
    """Bits that number n things: 0 for one."""
    return max(0, n - 1).bit_length()


@dataclass
class Edge:
    """One stream: from a component to a component that reads it."""

    index: int
    up: Component
    down: Component
    grouping: Grouping
    input_index: int
    fan_bits: int
    edge_bits: int = 0
    task_bits: int = 0

    @property
    def name(self) -> str:
        return f"{self.up.name}->{self.down.name}"

    @property
    def digits(self) -> int:
        """Bits that this edge adds to a uid."""
        return self.fan_bits + self.edge_bits + self.task_bits

    def child_uid(self, uid: Ints, position: Ints | None, task: int = 0) -> Ints:
        """Uid at the receiver, from the uid at the sender, the child's position, and the task of a copy."""
        width = self.up.output_bits
        pad = self.down.bits - width - self.digits
        if self.digits:
            uid = uid << self.digits
            if position is not None and self.fan_bits:
                uid |= position << (self.edge_bits + self.task_bits)
            digit = (self.input_index << self.task_bits if self.edge_bits else 0) | task
            if digit:
                uid |= digit
        if pad:
            width += self.digits
            uid = ((uid >> width) << (width + pad)) | (uid & ((1 << width) - 1))
        return uid


@dataclass
class Component:
    """One component: its configuration, and its place in the whole."""

    name: str
    index: int
    config: SpoutConfig | BoltConfig
    inputs: list[Edge] = field(default_factory=list)
    outputs: list[Edge] = field(default_factory=list)
    bits: int = 0
    """Bits of the path in the uid of a tuple that arrives here."""
    anchored: bool = True
    """Whether the tuples that arrive here belong to a root (or are aggregates)."""
    input_keys: int = 1
    routes: int = 1
    """Logical paths by which a tuple can come here."""
    event_time: bool = False
    """Whether markers end its windows of time, whatever their trigger."""

    @property
    def tasks(self) -> int:
        return self.config.parallelism

    @property
    def is_spout(self) -> bool:
        return isinstance(self.config, SpoutConfig)

    @property
    def bolt(self) -> Bolt:
        assert isinstance(self.config, BoltConfig)
        return self.config.bolt

    @property
    def window(self) -> WindowedCount | None:
        """The windowed count that this component is; None: it keeps no state."""
        bolt = None if self.is_spout else self.bolt
        return bolt if isinstance(bolt, WindowedCount) else None

    @property
    def trigger(self) -> str | None:
        """What ends the component's windows: tick, marker, tuples; None: it has none."""
        if self.window is None:
            return None
        if self.window.window.tuples is not None:
            return "tuples"
        return "marker" if self.event_time else self.window.window.trigger

    @property
    def keys(self) -> int:
        """Number of different keys in the output."""
        config = self.config
        return (
            config.spout.key_count
            if isinstance(config, SpoutConfig)
            else config.bolt.key_count(self.input_keys)
        )

    @property
    def key_bits(self) -> int:
        return max(1, bits_for(self.keys))

    @property
    def output_bits(self) -> int:
        """Bits of the path in the uid of a tuple that leaves here; an aggregate is a root of its own."""
        return 0 if self.window else self.bits

    @property
    def output_anchored(self) -> bool:
        return self.anchored and not self.window

    @property
    def ends_roots(self) -> bool:
        """Whether anchored tuples end here: their effect is a count, or an output."""
        return self.anchored and not self.is_spout and (self.window is not None or not self.outputs)

    @property
    def fan_out(self) -> int:
        return 1 if self.is_spout or self.window else self.bolt.fan_out


class Topology:
    """Components in topological order (ties in the file's order), and the edges between them."""

    def __init__(self, scenario: Scenario) -> None:
        configs = scenario.topology
        event_time = scenario.strategy.event_time
        self.by_name: dict[str, Component] = {}
        for index, name in enumerate(_order(scenario)):
            self.by_name[name] = Component(name, index, configs[name], event_time=event_time)
        self.components = list(self.by_name.values())
        self.edges: list[Edge] = []
        for down in self.components:
            if isinstance(down.config, BoltConfig):
                self._connect(down, down.config)
        self.spouts = [c for c in self.components if c.is_spout]
        self.spout_tasks = [(c, task) for c in self.spouts for task in range(c.tasks)]
        self.spout_bits = bits_for(len(self.spout_tasks))
        self.marker_length = self._marker_length()

    def _connect(self, down: Component, config: BoltConfig) -> None:
        ups = sorted(config.from_, key=lambda name: self.by_name[name].index)
        for position, name in enumerate(ups):
            up = self.by_name[name]
            edge = Edge(len(self.edges), up, down, config.from_[name], position, bits_for(up.fan_out))
            edge.edge_bits = bits_for(len(ups))
            edge.task_bits = bits_for(down.tasks) if any(g.copies for g in config.from_.values()) else 0
            self.edges.append(edge)
            down.inputs.append(edge)
            up.outputs.append(edge)
        kinds = {edge.up.output_anchored for edge in down.inputs}
        if len(kinds) > 1:
            raise TopologyError(
                down.name, "reads aggregates and tuples of the spouts; it may read only one of the two"
            )
        down.anchored = kinds.pop()
        down.input_keys = max(edge.up.keys for edge in down.inputs)
        down.bits = max(edge.up.output_bits + edge.digits for edge in down.inputs)
        if down.bits > 63 - ROOT_BITS:
            raise TopologyError(
                down.name, f"one root can make 2**{down.bits} tuples here, allowed are 2**{63 - ROOT_BITS}"
            )
        down.routes = sum(e.up.tasks * (e.up.routes if not e.up.window else 1) for e in down.inputs)

    def _marker_length(self) -> int | None:
        lengths = {}
        for c in self.components:
            if c.window and c.trigger == "marker":
                lengths[c.window.window.length] = c.name
        if len(lengths) > 1:
            name = list(lengths.values())[1]
            all_of = "; this strategy lets markers end all windows" if self.by_name[name].event_time else ""
            raise TopologyError(name, f"all windows that markers end must have one length{all_of}")
        return next(iter(lengths), None)

    @property
    def measured(self) -> Component:
        """Where latency and throughput are taken: the last stateful bolt for anchored tuples, else the
        last component.
        """
        stateful = [c for c in self.components if c.window and c.anchored]
        return stateful[-1] if stateful else [c for c in self.components if c.anchored][-1]

    @property
    def ends(self) -> list[Component]:
        """Components where the tuples of a root end."""
        return [c for c in self.components if c.ends_roots]

    def root(self, uid: Ints, component: Component) -> Ints:
        """The root of tuples that arrive at ``component``."""
        return uid >> component.bits if component.bits else uid

    def route_offset(self, edge: Edge, task: int) -> int:
        """First route number at the receiver of what comes over ``edge`` from the sender's ``task``."""
        offset = 0
        for other in edge.down.inputs:
            per_task = 1 if other.up.window else other.up.routes
            if other is edge:
                return offset + task * per_task
            offset += other.up.tasks * per_task
        raise AssertionError(edge.name)


def _order(scenario: Scenario) -> list[str]:
    """Topological order; of those that could come next the first in the file does."""
    left = {n: set(c.from_) if isinstance(c, BoltConfig) else set() for n, c in scenario.topology.items()}
    order: list[str] = []
    while left:
        ready = next((name for name, needs in left.items() if not needs & left.keys()), None)
        if ready is None:
            raise TopologyError(next(iter(left)), f"is part of a cycle among {', '.join(left)}")
        order.append(ready)
        del left[ready]
    return order


def placement(
    topology: Topology, scenario: Scenario, replicas: dict[str, int]
) -> dict[tuple[str, int, int], int]:
    """Host of each (component, task, replica).

    A component's ``hosts`` decide; else tasks go round the scenario's hosts, or have one each. Replica r sits
    r hosts further, or, if each task has its own host, on a fresh one.
    """
    logical = sum(c.tasks for c in topology.components)
    hosts = {}
    number = 0
    for c in topology.components:
        for task in range(c.tasks):
            for replica in range(replicas[c.name]):
                if scenario.hosts is None and c.config.hosts is None:
                    host = number + replica * logical
                else:
                    first = c.config.hosts[task] if c.config.hosts is not None else number
                    host = first + replica
                    if scenario.hosts is not None:
                        host %= scenario.hosts
                hosts[c.name, task, replica] = host
            number += 1
    return hosts


def key_labels(topology: Topology, component: Component) -> tuple[str, ...] | None:
    """Names of the keys that a component emits, where they have names."""
    config = component.config
    if isinstance(config, SpoutConfig):
        return config.spout.key_names
    return config.bolt.key_names(key_labels(topology, component.inputs[0].up))


def rising(n: int) -> Ints:
    """0, 1, …, n-1."""
    return np.arange(n, dtype=np.int64)
