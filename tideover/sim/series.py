"""Coupled nodes whose bounded queues have one sender each: full queues are moved in blocks.

When there is room for a message follows from when the tuple that is so many before it as there are places
begins its service. That is known long before it is needed: each node is moved as far as can be told, in
trains, in turns, until there is nothing more to tell. Nothing is ever taken back. What happens is what
`tideover.sim.backpressure` finds one by one; the rules are those of docs/semantics.md, "Bounded queues".
"""

from __future__ import annotations

from collections.abc import Sequence

from tideover.sim.node import Node
from tideover.sim.server import Server
from tideover.sim.server_stage import ServerStage
from tideover.sim.site import Member
from tideover.sim.spout_stage import FedStage, SpoutStage
from tideover.sim.stage import Stage, Way
from tideover.sim.train import Train

LEAST_PLACES = 64
"""Below so many places a queue fills up before a train is worth its while."""


def in_series(members: Sequence[Member]) -> bool:
    """Whether coupled nodes can ever be moved in blocks: each server has one channel from others of them, or
    only such as come from elsewhere; nobody looks at what comes, and none of it comes from a log.
    """
    nodes = {member.node for member in members}
    for member in members:
        node = member.node
        if not isinstance(node, Server):
            if member.does.stamped:
                return False
            continue
        inside = [channel for channel in node.inputs if channel.up in nodes]
        if (inside and len(node.inputs) > 1) or any(channel.logged for channel in node.inputs):
            return False
        if member.does.admits():
            return False
        bound = node.bound
        if bound is not None and (not bound.holds_back or bound.apart or bound.length < LEAST_PLACES):
            return False
    return True


def as_usual(members: Sequence[Member], now: int) -> bool:
    """Whether nobody is down or stopped, nobody's arrivals are held or turned away, and nothing that is sent
    is kept to be sent again.
    """
    if any(channel.tap is not None for member in members for channel in member.outputs):
        return False
    return all(_usual(member.node, now) for member in members)


def _usual(node: Node, now: int) -> bool:
    if not node.up or node.busy.stopped_until > now:
        return False
    if not isinstance(node, Server):
        return True
    if node.gate.held or node.gate.aside or not node.available:
        return False
    if node.sieve is not None and node.sieve.active:
        return False
    return not (node.queue.in_service() and node.line is not None and node.line.holds_up)


def _go_on(stages: Sequence[Stage]) -> bool:
    """Work out what is known at each; returns whether there was anything."""
    return any([stage.step() for stage in stages])  # noqa: C419 - at all of them


def _last(servers: Sequence[ServerStage]) -> list[tuple[ServerStage, Way, ServerStage]]:
    """Servers that send nothing, and those that send to them."""
    pairs = ((up, way) for up in servers for way in up.ways.values())
    return [
        (up, way, way.to)
        for up, way in pairs
        if isinstance(way.to, ServerStage) and not way.to.ways and way.free is not None
    ]


def _leap(last: list[tuple[ServerStage, Way, ServerStage]]) -> bool:
    """Work out more than is known: a server that sends nothing, and always has something to do, frees places
    whenever its services end. Where that turns out to be wrong, because something comes too late, it is
    worked out anew up to there. Returns whether anything was.
    """
    going = False
    for up, way, server in last:
        assert way.free is not None
        going |= server.step()
        begins = server.if_in_time(up.may_send(way) - way.free - server.freed.n)
        freed, undo = server.freed.n, up.save()
        server.freed.add(begins)
        moved = up.step()
        right = server.in_time(begins)
        if way.roomy > way.free + freed + right:
            undo()
            server.freed.n = freed
            server.freed.add(begins[:right])
            moved = up.step()
        server.freed.n = freed
        going |= server.step() or moved
    return going


class Series:
    """Nodes in series. ``members``: in topological order."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def ready(self, now: int) -> bool:
        """Whether all is as usual."""
        return as_usual(self._members, now)

    def move(self, now: int, until: int) -> tuple[int, int]:
        """Move them from ``now`` to ``until``, or to right before a trigger departs (which may be before
        ``now``); returns the moment, and how much was done.
        """
        stages = self._stages(now, until)
        for stage in stages:
            stage.load()
        servers = [stage for stage in stages if isinstance(stage, ServerStage)]
        for server in servers:
            server.begin()
        spouts = [stage for stage in stages if not isinstance(stage, ServerStage)]
        last = _last(servers)
        while (_leap(last) or _go_on(servers)) | _go_on(spouts):  # spouts last, and then with long trains
            pass
        reached = min([until, *(server.trigger_at - 1 for server in servers)])
        called = [stage for stage in spouts if isinstance(stage, SpoutStage)]

        def stamps(train: Train) -> Train:
            created = train.created
            for spout in called:
                created = spout.emitted(created)
            return train if created is train.created else train.replace(created=created)

        done = sum(stage.settle(reached, stamps) for stage in stages)
        for server in servers:
            for channel in server.node.inputs:
                channel.take(reached)
        return reached, done

    def _stages(self, now: int, until: int) -> list[Stage]:
        """All nodes, with what they have to do."""
        spouts = [member.node for member in self._members if not isinstance(member.node, Server)]
        stages: dict[Node, Stage] = {}
        for member in self._members:
            node = member.node
            if isinstance(node, Server):
                stages[node] = ServerStage(member, now, until)
            elif member.does.feed is not None:
                stages[node] = FedStage(member, now, until)
            else:
                stages[node] = SpoutStage(member, now, until, spouts.index(node), len(spouts))
        for member in self._members:
            for channel in member.outputs:
                to = stages.get(channel.down)
                assert to is None or isinstance(to, ServerStage)
                stages[member.node].ways[channel] = Way(channel, to)
        for stage in stages.values():
            if isinstance(stage, ServerStage):
                self._take_over(stage, stages)
        return list(stages.values())

    def _take_over(self, stage: ServerStage, stages: dict[Node, Stage]) -> None:
        stage.take_over()
        bound = stage.node.bound
        inside = [channel for channel in stage.node.inputs if channel.up in stages]
        if not inside:
            stage.come()
        for channel in inside:
            if bound is not None:
                stages[channel.up].ways[channel].free = bound.length - stage.taken
            for train in channel.wire:
                stage.comes(channel, train)
                stage.arrivals.add(train.time)
