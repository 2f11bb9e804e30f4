"""Coupled nodes whose full queues have several senders: who gets a place that becomes free depends on who
has asked first.

What happens is found one thing after the other, with plain numbers; what tuples turn into is worked out
ahead, and what has happened is told, in trains (`tideover.sim.mesh_node`). Where nothing special goes on,
that is what `tideover.sim.backpressure` finds; the rules are those of docs/semantics.md, "Bounded queues".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tideover.sim.line import PLACELESS, inputs_of, places
from tideover.sim.link import Channel
from tideover.sim.mesh_leaf import Leaf, is_leaf
from tideover.sim.mesh_loop import PLENTY, Credit, Loop
from tideover.sim.mesh_node import MeshNode, Way
from tideover.sim.mesh_server import MeshServer
from tideover.sim.mesh_spout import MeshFeed, MeshSpout
from tideover.sim.series import as_usual
from tideover.sim.server import Server, coming
from tideover.sim.site import Member
from tideover.sim.train import Train


def in_mesh(members: Sequence[Member]) -> bool:
    """Whether coupled nodes can ever be moved in this way: whoever finds no place waits, nobody looks at what
    comes, and none of it comes from a log.
    """
    if any(member.does.stamped for member in members if not isinstance(member.node, Server)):
        return False
    servers = [(member, member.node) for member in members if isinstance(member.node, Server)]
    for member, server in servers:
        if any(channel.logged for channel in server.inputs) or member.does.admits():
            return False
        if server.bound is not None and not server.bound.holds_back:
            return False
    return True


class Mesh:
    """Nodes of a mesh. ``members``: in topological order."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def ready(self, now: int) -> bool:
        """Whether all is as usual, and all that is there takes a place."""
        if not as_usual(self._members, now):
            return False
        for member in self._members:
            node = member.node
            if node.outbox.messages(PLENTY):
                return False
            if node.line is not None and not all(map(_plain, (train for _, train in node.line.trains()))):
                return False
            if isinstance(node, Server) and not self._is_plain(node, now):
                return False
        return True

    def _is_plain(self, node: Server, now: int) -> bool:
        trigger = node.queue.trigger_at
        there = [*node.queue.trains(), *coming(node)]
        return all(map(_plain, there)) and (trigger is None or trigger > now)

    def move(self, now: int, until: int) -> tuple[int, int]:
        """Move them from ``now`` to ``until``, or to right before a trigger departs (which may be before
        ``now``), or to where it has to be looked at more closely; returns the moment, and how much was done.
        """
        loop = Loop(now, until)
        nodes = self._nodes(loop)
        for member in self._members:
            node = nodes[member.node]
            for channel in member.outputs:
                to = nodes.get(channel.down)
                way = node.connect(channel, to)
                if isinstance(to, Leaf):
                    to.comes_from(node, way)
        servers = [node for node in nodes.values() if isinstance(node, MeshServer)]
        for server in servers:
            server.take_over()
            self._make_room(loop, server, nodes)
            server.come()
        for node in nodes.values():
            node.load()
        for server in servers:
            for room in (server.room, *server.apart):
                if room is not None:
                    room.open(loop)
        for node in nodes.values():
            node.begin_with()
        loop.run()
        for server in servers:
            if isinstance(server, Leaf):
                server.see()
        reached = loop.until
        spouts = [node for node in nodes.values() if isinstance(node, MeshSpout)]

        def stamps(train: Train) -> Train:
            created = train.created
            for spout in spouts:
                created = spout.emitted(created)
            return train if created is train.created else train.replace(created=created)

        done = sum(node.settle(reached, stamps) for node in nodes.values())
        for server in servers:
            for channel in server.node.inputs:
                channel.take(reached)
        return reached, done

    def _nodes(self, loop: Loop) -> dict[object, MeshNode]:
        spouts = [member.node for member in self._members if not isinstance(member.node, Server)]
        nodes: dict[object, MeshNode] = {}
        for member in self._members:
            node = member.node
            if isinstance(node, Server):
                nodes[node] = (Leaf if is_leaf(member) else MeshServer)(loop, member)
            elif member.does.feed is not None:
                nodes[node] = MeshFeed(loop, member)
            else:
                nodes[node] = MeshSpout(loop, member, spouts.index(node), len(spouts))
        return nodes

    def _make_room(self, loop: Loop, server: MeshServer, nodes: dict[object, MeshNode]) -> None:
        node, bound = server.node, server.node.bound
        if bound is None:
            return
        ways = [(channel, _way(nodes[channel.up], channel)) for channel in node.inputs]
        there = [*server.there, *node.queue.trains()]
        if not bound.apart:
            server.make_room([way for _, way in ways], sum(map(places, [*there, *coming(node)])))
            return
        taken: Counter[int] = Counter()
        for train in there:
            taken.update(inputs_of(train))
        for channel, way in ways:
            known = [when for when in channel.freed if when > loop.now]
            free = bound.length - taken[channel.position + 1] - sum(map(places, channel.wire)) - len(known)
            way.room = credit = Credit(free, known, channel.notice, loop, 2 * channel.up.number)
            server.apart.append(credit)


def _way(node: MeshNode, channel: Channel) -> Way:
    return next(way for way in node.ways if way.channel is channel)


def _plain(train: Train) -> bool:
    return train.mark is None and not train.has(PLACELESS)
