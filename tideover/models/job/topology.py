"""The topology, compiled: order of components, the tuple tree, what flows over each edge, and a tuple's name
in words. Everybody asks it; what a scenario says of a component is in `components.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.groupings import Grouping
from tideover.models.job.stores import Backend
from tideover.models.operators.base import Bolt, Children
from tideover.models.operators.window import Window
from tideover.sim.draws import Draws
from tideover.sim.train import Ints, Train, join
from tideover.sim.units import S, format_duration

ROOT_BITS = 40
"""A run may emit 2**40 roots; the rest of a uid is the place in the tree."""


class TopologyError(ValueError):
    """A topology that cannot be simulated; ``component`` is where to look."""

    def __init__(self, component: str, message: str) -> None:
        super().__init__(f"{component}: {message}")
        self.component, self.message = component, message


def bits_for(n: int) -> int:
    """Bits that number n things: 0 for one."""
    return max(0, n - 1).bit_length()


@dataclass(eq=False)
class Edge:
    """One stream: from a component to a component that reads it."""

    index: int
    up: Component
    down: Component
    grouping: Grouping
    input_index: int
    fan_bits: int
    edge_bits: int
    task_bits: int

    def __post_init__(self) -> None:
        self.name = f"{self.up.name}->{self.down.name}"
        self.digits = self.fan_bits + self.edge_bits + self.task_bits

    def owners(self, keys: int, tasks: int | None = None) -> Ints | None:
        """The task that gets the tuples with key 0, 1, … below ``keys``, of so many that work (None: as at
        the beginning); None: the key does not decide.

        With `max_parallelism` keys make groups, and groups go to tasks, as in Flink's
        ``KeyGroupRangeAssignment`` (`computeOperatorIndexForKeyGroup`).
        """
        tasks, groups = tasks or self.down.config.parallelism, self.down.groups
        if groups is None:
            return self.grouping.owners(keys, tasks)
        owners = self.grouping.owners(keys, groups)
        return None if owners is None else owners * tasks // groups

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


class Component:
    """One component: its configuration, and its place in the whole.

    spout_config, bolt  one of them
    bits        of the path in the uid of a tuple that arrives here
    anchored    the tuples that arrive here belong to a root (else they are aggregates)
    paths       logical paths by which a tuple can come here
    by_marker   markers end its windows of time, whatever their trigger
    window      what ends its windows; None: it keeps no state
    trigger     the same as a word: tick, marker, tuples, watermark
    backend     where its tasks keep state beside that of the bolt itself; None: they have none
    tasks       how many there are, those among them that do nothing as yet
    groups      groups that its keys make, if the number of tasks that work may change
    """

    spout_config: SpoutConfig
    bolt: Bolt

    def __init__(self, name: str, index: int, config: SpoutConfig | BoltConfig, by_marker: bool) -> None:
        self.name, self.index, self.config, self.by_marker = name, index, config, by_marker
        self.inputs: list[Edge] = []
        self.outputs: list[Edge] = []
        self.tasks, self.is_spout = config.most_tasks, isinstance(config, SpoutConfig)
        self.groups: int | None = None
        self.anchored, self.bits, self.input_keys, self.paths = True, 0, 1, 1
        self.window: Window | None = None
        self.backend: Backend | None = None
        if isinstance(config, SpoutConfig):
            self.spout_config = config
        else:
            self.bolt, self.window, self.backend = config.bolt, config.bolt.ends, config.state
            self.groups = config.max_parallelism
        self.fan_out = 1 if self.is_spout or self.window else self.bolt.fan_out
        self.keeps_state = self.window is not None or self.backend is not None
        self.saves_ids = self.window is not None and self.window.saved == "ids"
        self.trigger: str | None = None
        if self.window is not None:
            by_time = "marker" if by_marker and self.window.gap is None else self.window.trigger
            self.trigger = by_time if self.window.tuples is None else "tuples"
            if self.window.by == "event":
                self.trigger = "watermark"

    @property
    def keys(self) -> int:
        return self.spout_config.spout.key_count if self.is_spout else self.bolt.key_count(self.input_keys)

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


class Topology:
    """Components in topological order (ties in the order given), and the edges between them.

    ``by_marker``: markers in the data end all windows of time, whatever their trigger. Raises TopologyError
    if it cannot be simulated.

    ends       where roots end
    measured   where latency and throughput are taken: the last stateful bolt of anchored tuples, or the last
    """

    def __init__(self, configs: Mapping[str, SpoutConfig | BoltConfig], by_marker: bool = False) -> None:
        self.by_name: dict[str, Component] = {}
        for index, name in enumerate(_order(configs)):
            self.by_name[name] = Component(name, index, configs[name], by_marker)
        self.components = list(self.by_name.values())
        self.edges: list[Edge] = []
        for down in self.components:
            if isinstance(down.config, BoltConfig):
                self._connect(down, down.config)
        self.spouts = [c for c in self.components if c.is_spout]
        self.spout_tasks = [(c, task) for c in self.spouts for task in range(c.tasks)]
        self.spout_bits = bits_for(len(self.spout_tasks))
        self.marker_length = self._marker_length()
        self.by_event = any(c.trigger == "watermark" for c in self.components)
        self.ends = [c for c in self.components if c.ends_roots]
        anchored = [c for c in self.components if c.anchored]
        self.measured = ([c for c in anchored if c.window] or anchored)[-1]
        self._same = by_marker, *((c.name, id(c.config)) for c in self.components)

    def __hash__(self) -> int:
        return hash(self._same)

    def __eq__(self, other: object) -> bool:
        """Whether it is of the very same configurations: nobody changes these, and all runs have the same."""
        return isinstance(other, Topology) and self._same == other._same

    def _connect(self, down: Component, config: BoltConfig) -> None:
        ups = sorted(config.from_, key=lambda name: self.by_name[name].index)
        copies = any(grouping.copies for grouping in config.from_.values())
        for position, name in enumerate(ups):
            up = self.by_name[name]
            bits = bits_for(up.fan_out), bits_for(len(ups)), bits_for(down.tasks) if copies else 0
            edge = Edge(len(self.edges), up, down, config.from_[name], position, *bits)
            self.edges.append(edge)
            down.inputs.append(edge)
            up.outputs.append(edge)
        sides = config.bolt.sides
        if sides is not None and len(ups) != sides:
            message = f"tells {sides} streams apart; from must name {sides}, not {len(ups)}"
            raise TopologyError(down.name, message)
        kinds = {edge.up.output_anchored for edge in down.inputs}
        if len(kinds) > 1:
            message = "reads aggregates and tuples of the spouts; it may read only one of the two"
            raise TopologyError(down.name, message)
        down.anchored = kinds.pop()
        down.input_keys = max(edge.up.keys for edge in down.inputs)
        down.bits = max(edge.up.output_bits + edge.digits for edge in down.inputs)
        if down.bits > 63 - ROOT_BITS:
            message = f"one root can make 2**{down.bits} tuples here, allowed are 2**{63 - ROOT_BITS}"
            raise TopologyError(down.name, message)
        down.paths = sum(e.up.tasks * (e.up.paths if not e.up.window else 1) for e in down.inputs)

    def _marker_length(self) -> int | None:
        ended = [c for c in self.components if c.trigger == "marker"]
        lengths = {c.window.beat: c.name for c in ended if c.window}
        if len(lengths) > 1:
            name = list(lengths.values())[1]
            all_of = "; this strategy lets markers end all windows" if self.by_name[name].by_marker else ""
            panes = any(c.window.extent for c in self.components if c.window)
            named = " and ".join(format_duration(length) for length in lengths if length is not None)
            which = f" (panes of {named})" if panes else ""
            raise TopologyError(name, f"all windows that markers end must have one length{all_of}{which}")
        return next(iter(lengths), None)

    def spouts_above(self, component: Component) -> set[Component]:
        """The spouts of which something comes to this one."""
        if component.is_spout:
            return {component}
        return set[Component]().union(*(self.spouts_above(edge.up) for edge in component.inputs))

    def first_path(self, edge: Edge, task: int) -> int:
        """Number at the receiver of the first path that comes over ``edge`` from the sender's ``task``."""
        paths = [1 if other.up.window else other.up.paths for other in edge.down.inputs]
        before = zip(edge.down.inputs[: edge.input_index], paths, strict=False)
        return sum(other.up.tasks * each for other, each in before) + task * paths[edge.input_index]


def _order(configs: Mapping[str, SpoutConfig | BoltConfig]) -> list[str]:
    """Topological order; of those that could come next the first that was given does."""
    left = {n: set(c.from_) if isinstance(c, BoltConfig) else set() for n, c in configs.items()}
    order: list[str] = []
    while left:
        ready = next((name for name, needs in left.items() if not needs & left.keys()), None)
        if ready is None:
            raise TopologyError(next(iter(left)), f"is part of a cycle among {', '.join(left)}")
        order.append(ready)
        del left[ready]
    return order


def key_labels(topology: Topology, component: Component) -> tuple[str, ...] | None:
    """Names of the keys that a component emits, where they have names."""
    if component.is_spout:
        return component.spout_config.spout.key_names
    return component.bolt.key_names(key_labels(topology, component.inputs[0].up))


def expected_effects(topology: Topology, draws: Draws, roots: Ints) -> dict[str, Ints]:
    """Uids of all effects that the roots must have, by component."""
    return effects_of(topology, draws, _first_sent(topology, draws, roots))


def keys_of(topology: Topology, draws: Draws, component: Component, uid: Ints) -> Ints:
    """The keys of tuples of roots that have arrived at a component."""
    if not len(uid):
        return uid
    at = _first_sent(topology, draws, np.unique(uid >> component.bits))
    for other in topology.components[: component.index]:
        if at[other.name] and other.output_anchored:
            train = join(at[other.name])
            _hand_on(other, train, other.bolt.children(other.name, draws, train), at)
    train = join(at[component.name])
    order = np.argsort(train.uid)
    found: Ints = train.key[order][np.searchsorted(train.uid, uid, sorter=order)]
    return found


def _first_sent(topology: Topology, draws: Draws, roots: Ints) -> dict[str, list[Train]]:
    """What arrives of the roots at the components that read spouts."""
    at: dict[str, list[Train]] = {c.name: [] for c in topology.components}
    owner = roots & ((1 << topology.spout_bits) - 1)
    for number, (spout, _) in enumerate(topology.spout_tasks):
        mine = roots[owner == number] if topology.spout_bits else roots
        if not len(mine):
            continue
        key, _ = spout.spout_config.spout.content(spout.name, draws, mine, mine >> topology.spout_bits)
        _hand_on(spout, Train(mine, mine, mine, key), Children(), at)
    return at


def effects_of(topology: Topology, draws: Draws, at: dict[str, list[Train]]) -> dict[str, Ints]:
    """Uids of all effects that tuples waiting ``at`` components will have, by component."""
    effects: dict[str, Ints] = {}
    for component in topology.components:
        if component.is_spout or not at[component.name]:
            continue
        train = join(at.pop(component.name))
        if component.ends_roots:
            effects[component.name] = train.uid
        elif component.output_anchored:
            _hand_on(component, train, component.bolt.children(component.name, draws, train), at)
    return effects


def _hand_on(component: Component, train: Train, children: Children, at: dict[str, list[Train]]) -> None:
    rows = slice(None) if children.rows is None else children.rows
    key = train.key[rows] if children.key is None else children.key
    for edge in component.outputs:
        uid = edge.child_uid(train.uid[rows], children.position)
        copies = range(edge.down.tasks) if edge.grouping.copies else range(1)
        for task in copies:
            one = uid | task if task else uid
            at[edge.down.name].append(Train(one, one, one, key))  # without times


Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=8)  # a run asks a dozen times, and a million keys take 20 ms
def traffic(topology: Topology, over: int | None = None) -> Mapping[str, Floats]:
    """Tuples/s that reach each task of an edge's receiver, by name of the edge. A window puts out nothing
    here: how often, and how much, is its own affair.

    Of rates that change the greatest counts; with ``over`` their mean over the first so many ns.
    """
    out = leaving(topology, over)
    found = {e.name: spread(e, out[e.up.name]) for c in topology.components for e in c.inputs}
    for rates in found.values():
        rates.flags.writeable = False
    return MappingProxyType(found)


def leaving(topology: Topology, over: int | None = None) -> dict[str, Floats]:
    """Tuples/s that leave a component, by key; the rest as in ``traffic``."""
    out: dict[str, Floats] = {}
    for c in topology.components:
        if c.is_spout:
            config, arrivals = c.spout_config, c.spout_config.arrivals
            rate = S / arrivals.mean_gap_ns if over is None else arrivals.expected(over) / over * S
            out[c.name] = config.processes * rate * config.spout.shares()
            continue
        inputs = np.zeros(c.input_keys)
        for e in c.inputs:
            inputs[: e.up.keys] += out[e.up.name] * (c.tasks if e.grouping.copies else 1)
        out[c.name] = np.zeros(c.keys) if c.window else c.bolt.rates(inputs)
    return out


def spread(edge: Edge, rates: Floats) -> Floats:
    """Tuples/s that come over an edge to each task, from those that leave its sender by key."""
    tasks = edge.down.tasks
    if edge.grouping.copies:
        return np.full(tasks, rates.sum())
    owners = edge.owners(len(rates))
    if owners is None:
        working = edge.down.config.parallelism
        return np.where(np.arange(tasks) < working, rates.sum() / working, 0.0)
    return np.asarray(np.bincount(owners, weights=rates, minlength=tasks), np.float64)


class Origin(NamedTuple):
    """What a tuple comes from: a root of a spout task, or a window of a task.

    text   in words
    whole  what is the same for all tuples of this root, or of this window
    """

    text: str
    whole: tuple[str, int]


class TupleNames:
    """Says where tuples stand in the trees of a topology (uids: see docs/semantics.md)."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._labels = {c.name: key_labels(topology, c) for c in topology.components}

    def place(self, component: Component, uid: int) -> str:
        """Of a tuple that arrives at ``component``: its origin, and which of its siblings it is."""
        way = (step for step in self._way(component, uid) if step[0].fan_bits)
        steps = [f"{_ordinal(at + 1)} tuple of {edge.up.name}" for edge, at in way]
        return ", ".join([self.origin(component, uid).text, *reversed(steps)])

    def key(self, sender: Component, key: int) -> str:
        labels = self._labels[sender.name]
        return str(key) if labels is None or not 0 <= key < len(labels) else labels[key]

    def origin(self, component: Component, uid: int) -> Origin:
        root = uid >> component.bits
        if component.anchored:
            topology = self._topology
            spout, task = topology.spout_tasks[root & ((1 << topology.spout_bits) - 1)]
            return Origin(f"root {root >> topology.spout_bits} of {spout.name}.{task}", ("", root))
        source = self._way(component, uid)[-1][0].up
        number, task = divmod(root >> source.key_bits, source.tasks)
        return Origin(f"window {number} of {source.name}.{task}", (source.name, root >> source.key_bits))

    def _way(self, component: Component, uid: int) -> list[tuple[Edge, int]]:
        """The edges that a tuple has come over, the last first; its position among what one input made."""
        way, path = [], uid & ((1 << component.bits) - 1)
        while component.inputs:
            edge = component.inputs[0]
            if edge.edge_bits:
                digit = (path >> edge.task_bits) & ((1 << edge.edge_bits) - 1)
                edge = component.inputs[digit]
            way.append((edge, path >> (edge.edge_bits + edge.task_bits) & ((1 << edge.fan_bits) - 1)))
            if edge.up.window:
                break
            path, component = path >> edge.digits, edge.up
        return way


def _ordinal(number: int) -> str:
    """
    >>> [_ordinal(n) for n in (1, 2, 3, 4, 11, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '21st', '112th']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
