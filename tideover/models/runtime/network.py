"""The network of a job: the hosts' cards, and where they stand in the data plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from tideover.models.job.components import Links
from tideover.models.job.topology import Topology
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.card import IN, OUT, Card, NetworkChannel, Port, Way
from tideover.sim.kernel import Kernel, Mover
from tideover.sim.link import Channel, Latency
from tideover.sim.train import Ints

Task = SpoutTask | BoltTask
Place = tuple[Way, int]
"""A card: which way, of which host."""
Edges = dict[Mover, set[Mover]]
"""Who hands messages on to whom."""


FLOWS = 1_500_000
"""Most movements of single nodes for which cards are worth moving in short steps: about a minute."""


class Steps:
    """Lets the data plane move in steps of at most ``length`` (ns)."""

    def __init__(self, kernel: Kernel, length: int) -> None:
        self._kernel, self._length = kernel, length

    def horizon(self, now: int) -> int:
        """The end of the next step."""
        return min(now, self._kernel.moved_to + self._length)


class Network:
    """Makes the channels of a job, and the cards of its hosts.

    ``bandwidths``: of the cards that have one, by host (bytes/s). ``nothing``: sending costs nothing (in
    batches it is part of theirs). ``moves``: tasks may go to other hosts.
    """

    def __init__(
        self, links: Links, bandwidths: Mapping[int, int], nothing: bool, moves: bool = False
    ) -> None:
        self._links = links
        self._nothing = nothing
        self._bandwidths = bandwidths
        self._moves = moves
        self._sharing: list[NetworkChannel] = []
        self._cards: dict[Place, Card] = {}
        self._ports: dict[tuple[Place, int], Port] = {}
        self._steps: Steps | None = None
        for host, bandwidth in bandwidths.items() if moves and not nothing else ():
            self._cards |= {(way, host): Card(way, host, bandwidth) for way in (OUT, IN)}

    @property
    def cards(self) -> list[Card]:
        """All cards that something goes through, or may, by host, out before in."""
        return [self._cards[way] for way in sorted(self._cards, key=lambda way: (way[1], way[0] != OUT))]

    def channel(self, up: Task, down: BoltTask, latency: int | Latency) -> Channel:
        """A channel from one task to another, through cards if it goes through any."""
        size, unpacking, remote = self._message(up, down)
        if not self._limits(up, down):
            return Channel(up, down, latency, size, remote)
        channel = NetworkChannel(up, down, latency, size, unpacking, remote)
        self._sharing.append(channel)
        return channel

    def _message(self, up: Task, down: Task) -> tuple[int, int, bool]:
        """Bytes of a message; what unpacking it takes (ns); whether it goes to another host."""
        size = up.component.config.tuple_size
        if up.host == down.host:
            return size, 0, False
        size += self._links.header
        return size, self._links.deserialise + size * self._links.deserialise_cost, True

    def _limits(self, up: Task, down: Task) -> bool:
        """Whether anything but latency is to be told of what goes from one to the other, now or later."""
        if self._nothing:
            return False
        if self._moves:
            return bool(self._links.deserialise or self._links.deserialise_cost or self._bandwidths)
        _, unpacking, remote = self._message(up, down)
        return bool(remote and (unpacking or up.host in self._bandwidths or down.host in self._bandwidths))

    def lead(self, channel: Channel, latency: int | Latency, before: tuple[int, int]) -> None:
        """An end of a channel, which was between those hosts, has moved; lay the network
        again when all are told of.
        """
        up, down = channel.up, channel.down
        assert isinstance(up, Task)
        assert isinstance(down, Task)
        size, unpacking, remote = self._message(up, down)
        channel.lead(latency, size, remote, before)
        if isinstance(channel, NetworkChannel):
            channel.unpacking = unpacking

    def packing(self, channels: Sequence[Sequence[Channel]]) -> Ints | None:
        """What serialising a message costs its sender, ns, if it goes to each of these (tasks, with their
        replicas); None: nothing.
        """
        links = self._links
        if self._nothing or not (links.serialise or links.serialise_cost):
            return None
        each = [
            sum(links.serialise + c.message_bytes * links.serialise_cost for c in replicas if c.remote)
            for replicas in channels
        ]
        return np.array(each, np.int64)

    def connect(self, topology: Topology) -> None:
        """Let all channels between hosts go through cards, of which each is one node; call it once, with all
        channels made.
        """
        self._sharing.sort(key=lambda channel: (channel.up.number, channel.down.number))
        for number, channel in enumerate(self._sharing):
            channel.number = number
        self._connect(levels_of(topology), set())

    def lay(
        self,
        kernel: Kernel,
        topology: Topology,
        tasks: Sequence[Task],
        duration: int,
        step: int | None,
        together: Sequence[Sequence[Task]] = (),
    ) -> None:
        """Put the cards between the tasks; call it with all channels made, and again when tasks have moved;
        ``tasks`` in physical order; ``duration``: of the run (ns); ``step``: see `World`; ``together``: tasks
        of one level that are moved as one.

        What a card has served may bring about a message that comes to it again. If not, it moves when all who
        use it have moved. If so, the data plane moves in steps shorter than the least latency between hosts:
        what is sent in a step arrives after it, so each step begins with the cards in and ends with the cards
        out. Where these steps would be too many (``FLOWS``), or ``step`` gives their length, cards have a
        port for each level of the topology (see `tideover.sim.contention`).
        """
        if not self._sharing:
            return
        self.connect(topology)
        levels = levels_of(topology)
        channels = [channel for task in tasks if isinstance(task, BoltTask) for channel in task.inputs]
        edges = _as_one(_edges(tasks, channels), together)
        cyclic = _in_cycles(edges)
        split = {(node.card.way, node.card.host) for node in cyclic if isinstance(node, Port)}
        kernel.feedback = True
        steps: Steps | None = None
        if split:
            short = min(channel.least_delay for channel in self._sharing if channel.remote) - 1
            if step is None and short > 0 and duration // short * len(edges) <= FLOWS:
                edges = _as_one(_edges(tasks, channels, over_wires=False), together)
                steps = Steps(kernel, short)
            else:
                self._connect(levels, split)
                edges = _as_one(_edges(tasks, channels), together)
                steps = None if step is None else Steps(kernel, step)
        _share_cards(edges, max(0, kernel.moved_to))
        self._move_in(kernel, steps)
        members: dict[Mover, Sequence[Task]] = {group[0]: group for group in together}
        kernel.nodes[:] = [node for first in in_order(edges) for node in members.get(first, (first,))]

    def _connect(self, levels: Mapping[str, int], split: set[Place]) -> None:
        """Let channels go through the ports of the cards, one for each level of those that are ``split``."""
        for channel in self._sharing:
            up, down = channel.up, channel.down
            assert isinstance(up, Task)
            assert isinstance(down, Task)
            ends: tuple[tuple[Place, Task], ...] = (((OUT, up.host), up), ((IN, down.host), down))
            if not channel.remote:
                channel.go_through(None, None)
                continue
            out, into = (
                self._port(way, levels[task.component.name] if way in split else 0) for way, task in ends
            )
            channel.go_through(out, into)

    def _port(self, way: Place, level: int) -> Port | None:
        """Of that card, for that level; None: the card is no limit."""
        bandwidth = self._bandwidths.get(way[1])
        if bandwidth is None:
            return None
        if (way, level) not in self._ports:
            card = self._cards.setdefault(way, Card(*way, bandwidth))
            self._ports[way, level] = Port(card, level)
        return self._ports[way, level]

    def _move_in(self, kernel: Kernel, steps: Steps | None) -> None:
        """The data plane moves in these steps from now on, and in no others."""
        if self._steps is not None:
            kernel.sources.remove(self._steps)
        if steps is not None:
            kernel.sources.append(steps)
        self._steps = steps


def _share_cards(edges: Edges, now: int) -> None:
    """Tell cards which levels use them from now on: those that have ports."""
    levels: dict[Card, set[int]] = {}
    for node in edges:
        if isinstance(node, Port):
            levels.setdefault(node.card, set()).add(node.level)
    for card, those in levels.items():
        card.line.share(those, now)


def levels_of(topology: Topology) -> dict[str, int]:
    """How many components a tuple has passed, at most, when it comes to each."""
    levels: dict[str, int] = {}
    for c in topology.components:
        levels[c.name] = max((levels[edge.up.name] + 1 for edge in c.inputs), default=0)
    return levels


def _path(channel: Channel) -> list[Mover]:
    """The nodes that a message of a channel goes through."""
    return [channel.up, *channel.stops, channel.down]


def _edges(tasks: Sequence[Task], channels: Sequence[Channel], over_wires: bool = True) -> Edges:
    """``over_wires``: also from one host to another."""
    edges: Edges = {task: set() for task in tasks}
    for channel in channels:
        path = _path(channel)
        for node in path:
            edges.setdefault(node, set())
        for node, behind in pairwise(path):
            if over_wires or not _is_wire(channel, node, behind):
                edges[node].add(behind)
    ports: dict[Card, list[Port]] = {}
    for node in edges:
        if isinstance(node, Port):
            ports.setdefault(node.card, []).append(node)
    for each in ports.values():  # of one card, the lower levels come first
        each.sort(key=lambda port: port.level)
        for lower, higher in pairwise(each):
            edges[lower].add(higher)
    return edges


def _as_one(edges: Edges, together: Sequence[Sequence[Task]]) -> Edges:
    """The same with the first of each group in place of all of it: it hands on, and is handed, what they
    are.
    """
    first: dict[Mover, Mover] = {task: group[0] for group in together for task in group}
    found: Edges = {}
    for node, behind in edges.items():
        one = first.get(node, node)
        found.setdefault(one, set()).update(first.get(each, each) for each in behind)
    return found


def _is_wire(channel: Channel, node: Mover, behind: Mover) -> bool:
    """Whether the wire between two hosts lies between these two stops of a channel."""
    if not (isinstance(channel, NetworkChannel) and channel.remote):
        return False
    return node is (channel.out or channel.up) and behind is (channel.into or channel.down)


def in_order(edges: Edges) -> list[Mover]:
    """The nodes in topological order, as far as there is one: cards as soon as they can, tasks in physical
    order.
    """
    ahead = dict.fromkeys(edges, 0)
    for behind in edges.values():
        for each in behind:
            ahead[each] += 1
    nodes = sorted(edges, key=lambda node: not isinstance(node, Port))
    place = {node: number for number, node in enumerate(nodes)}
    ready = [place[node] for node, n in ahead.items() if n == 0]
    heapify(ready)
    order: list[Mover] = []
    while ready:
        node = nodes[heappop(ready)]
        order.append(node)
        for each in edges[node]:
            ahead[each] -= 1
            if not ahead[each]:
                heappush(ready, place[each])
    return order


def _in_cycles(edges: Edges) -> set[Mover]:
    """Nodes that are part of a cycle, or between two."""
    backwards: Edges = {node: set() for node in edges}
    for node, behind in edges.items():
        for each in behind:
            backwards[each].add(node)
    return set(edges) - set(in_order(edges)) - set(in_order(backwards))
