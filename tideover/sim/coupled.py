"""Parts of the data plane that feel one another: where a queue is bounded, its senders wait for its server.

Outside of them data flows one way, in long trains. Inside, as long as no queue is full it does so too: it is
moved as if there were no bounds, and then it is seen whether there was room for all of it. If not, all is put
back and moved only to where there was; from there on nodes are moved tuple by tuple, for a while
(`tideover.sim.backpressure`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from tideover.sim.card import NetworkChannel, Port
from tideover.sim.contend import contend
from tideover.sim.kernel import Mover
from tideover.sim.line import NONE, Line, places
from tideover.sim.link import Channel
from tideover.sim.mesh import Mesh, in_mesh
from tideover.sim.node import Action, Node
from tideover.sim.series import Series, in_series
from tideover.sim.server import Server, coming
from tideover.sim.site import Member
from tideover.sim.train import Ints, Train

LEAST, MOST = 1 << 10, 1 << 40
"""Shortest and longest stretch that is moved tuple by tuple at a time (ns)."""
ENOUGH = 4096
"""So much is done tuple by tuple before it is tried again with trains."""
PORTION, IN_BLOCKS = 1 << 15, 1 << 18
"""So much is done tuple by tuple, or in blocks, at a time, as nearly as can be told: to begin costs what
waits.
"""
FOREVER = 1 << 62


class Watch:
    """Whether a bounded queue was ever full while tuples were moved as if it had no bound."""

    def __init__(self, server: Server, now: int) -> None:
        assert server.bound is not None
        self._server, self._bound = server, server.bound
        queue = server.queue
        begins = queue.begins(now)
        waits = sum(map(places, queue.trains())) - sum(map(places, queue.in_service())) + len(begins)
        self._most = self._bound.length - waits
        if self._bound.holds_back:
            elsewhere = [*server.gate.held, *server.gate.aside, *coming(server)]
            self._most -= sum(map(places, elsewhere))
        self._begins = [begins]
        self.comes: list[Ints] = []
        """When messages were sent here (which takes a place), or, if nobody waits for one, came."""

    def begin(self) -> None:
        """Tuples are moved."""
        self._server.queue.starts = self._begins
        self._server.log = None if self._bound.holds_back else self.comes

    def end(self, sent: Iterable[tuple[object, Train]]) -> None:
        """They were; ``sent``: to whom, and when."""
        self._server.queue.starts = self._server.log = None
        if self._bound.holds_back:
            trains = (train for node, train in sent if node is self._server)
            self.comes += [t.time if t.mark is None else t.time[t.mark == 0] for t in trains]

    def full(self) -> int | None:
        """When the first message found no place (ns); None: all had room."""
        comes = np.concatenate([NONE, *self.comes])
        first = max(0, self._most)
        if len(comes) <= first:
            return None
        if len(self.comes) > 1:
            comes.sort(kind="stable")
        begins = np.concatenate(self._begins)
        begins.sort(kind="stable")  # those that were turned away give back their places before
        # the message at ``first`` needs the first place that becomes free, and so on
        begins = begins[first - self._most :]
        late = comes[first:]
        n = min(len(late), len(begins))
        # what begins at the instant of the message may be the message itself
        wrong = begins[:n] >= late[:n]
        if wrong.any():
            return int(late[int(wrong.argmax())])
        return int(late[n]) if n < len(late) else None


class Saved(Protocol):
    """What can be put back to how it was."""

    def save(self) -> Action:
        """Remember how it is; returns what brings that back."""


class Coupled:
    """Nodes that feel one another, moved as one.

    members   in topological order
    ports     of cards among them, those out first
    channels  all of which some part lies among them
    order     of nodes and ports, if data flows one way there. If not, because what a card has served may
              bring about what comes to it, or because some share cores, they are only moved tuple by tuple
    """

    def __init__(
        self,
        members: list[Member],
        ports: Sequence[Port],
        channels: Sequence[Channel],
        order: Sequence[Mover] | None,
    ) -> None:
        self._members = members
        self._ports = ports
        self._series: Series | Mesh | None = None
        unpacked = any(isinstance(channel, NetworkChannel) and channel.unpacking for channel in channels)
        alone = not ports and not unpacked and all(member.cores is None for member in members)
        if alone and in_series(members):
            self._series = Series(members)
        elif alone and in_mesh(members):
            self._series = Mesh(members)
        self.nodes: list[Node] = [member.node for member in members]
        self._order = order
        self._servers = [node for node in self.nodes if isinstance(node, Server)]
        self._bounded = [server for server in self._servers if server.bound is not None]
        self._lines: list[Line] = [node.line for node in self.nodes if node.line is not None]
        stops = (stop for channel in channels for stop in channel.stops)
        self._changed: list[Saved] = [*self.nodes, *dict.fromkeys(stops), *channels, *self._lines]
        merging = [server for server in self._servers if len(server.inputs) > 1]
        self._at_once = int(any(not channel.delay for server in merging for channel in server.inputs))
        """1 if what follows on a trigger can arrive at its instant, where it has to be in order with other
        arrivals of this instant: then this instant is moved tuple by tuple.
        """
        self._at = 0
        """All is moved to this instant."""
        self._apart = any(server.bound is not None and server.bound.apart for server in self._servers)
        """Whether inputs have their own places, which trains do not tell apart."""
        self._tight = 0
        """So much is still to be done tuple by tuple."""
        self._stretch = 1 << 20
        self._reach = FOREVER
        """How far it is tried with trains (ns)."""

    # -- a node of the data plane ----------------------------------------------------------------------------

    def flow(self, now: int) -> None:
        """Move everything at or before ``now``."""
        self._untie()
        while True:
            blocked = any(line.asked is not None or line.blocked_since is not None for line in self._lines)
            if blocked or self._tight > 0 or self._apart or self._order is None:
                fired = self._by_tuple(now)
            elif self._midway():  # trains do not tell what has come at this instant from what comes now
                fired = self._by_tuple(self._at)
            else:
                fired = self._by_train(min(now, self._at + self._reach))
            if self._at >= now and not fired:
                return

    def _untie(self) -> None:
        """The instant is over: what waits is in order, whatever comes."""
        for server in self._servers:
            server.tied, server.tied_behind, server.had_turn = [], [], True

    def _midway(self) -> bool:
        """Whether more may come at this instant, and has to be in order with what was before."""
        return any(s.tied or s.tied_behind or not s.had_turn for s in self._servers)

    def next_event(self) -> int | None:
        """The next instant at which data moves here by itself; None: never."""
        movers: list[Mover] = [*self.nodes, *self._ports]
        return min((when for each in movers if (when := each.next_event()) is not None), default=None)

    # -- tuple by tuple --------------------------------------------------------------------------------------

    def _by_tuple(self, now: int) -> bool:
        """Move some way; returns whether there may be more to do at the instant that is reached."""
        until = min(now, self._at + self._stretch)
        reached, done, portion = self._at - 1, 0, PORTION
        if isinstance(self._series, Mesh) and self._midway():
            until = self._at  # the rest of this instant
        elif self._series is not None and self._series.ready(self._at):
            self._untie()
            reached, done = self._series.move(self._at, until)
            portion = IN_BLOCKS
            if reached < until:  # what stops it happens at the next instant
                until = reached + 1
        if reached < until:
            reached, more = contend(self._members, max(reached, self._at), until, self._ports)
            done += more
        if done > 2 * portion:
            self._stretch = max(LEAST, self._stretch // 2)
        elif done < portion // 2 and reached == self._at + self._stretch:
            more_often = min(16, max(2, portion // (2 * done + 2)))
            self._stretch = min(MOST, more_often * self._stretch)
        self._at = reached
        self._tight -= done + 1
        return self._fire(reached)

    def _fire(self, now: int) -> bool:
        """What follows on triggers that have departed by now."""
        fired = False
        for server in self._servers:
            at = server.queue.trigger_at
            if at is not None and at <= now and not server.queue.in_service():
                server.queue.fire(now, server.outbox.let_out)
                fired = True
        return fired

    # -- in trains -------------------------------------------------------------------------------------------

    def _by_train(self, now: int) -> bool:
        """The same, as far as there is room everywhere."""
        watches = [Watch(server, self._at) for server in self._bounded]
        restore = [each.save() for each in self._changed]
        journal = self._pass(now, watches)
        triggers = (server.queue.trigger_at for server in self._servers)
        departed = min((t for t in triggers if t is not None), default=FOREVER)
        reached = min(now, departed - self._at_once)
        if departed <= now:
            self._tight = self._at_once
        full = min((t for watch in watches if (t := watch.full()) is not None), default=FOREVER)
        if full <= reached:
            reached = full - 1
            self._tight = ENOUGH
            self._reach = max(LEAST, 2 * (full - self._at))
        elif self._reach < FOREVER:
            self._reach = min(2 * self._reach, FOREVER)
        if reached < now:
            for put_back in restore:
                put_back()
            again = reached > self._at or (reached == self._at and full > reached + 1)
            journal = self._pass(reached, []) if again else []
        for tell in journal:
            tell()
        self._at = max(self._at, reached)
        return self._fire(self._at) or reached < now

    def _pass(self, now: int, watches: list[Watch]) -> list[Action]:
        """Move as if there were no bounds; returns what is to be told of it."""
        journal: list[Action] = []
        for watch in watches:
            watch.begin()
        for server in self._servers:
            server.queue.waits_to_fire = True
        for node in self.nodes:
            node.journal = node.outbox.journal = journal
        for line in self._lines:
            line.let_out()
        assert self._order is not None
        for each in self._order:
            each.flow(now)
        for node in self.nodes:
            node.journal = node.outbox.journal = None
        for server in self._servers:
            server.queue.waits_to_fire = False
        sent = [sending for line in self._lines for sending in line.shut()]
        for watch in watches:
            watch.end(sent)
        return journal


def couple(nodes: Sequence[Node], sharing: Iterable[Sequence[Node]] = ()) -> list[list[Mover]]:
    """All nodes, and the cards between them, in groups of those that feel one another, directly or by way of
    others; a group comes before those that read from it. Who sends to a queue whose bound holds senders back
    feels its server; those that share something (``sharing``) feel one another. Those have their turn again
    and again within an instant: who has to see what comes in each of these is moved with them.
    """
    below = ways(nodes)
    for together in sharing:
        for one, other in pairwise((*together, together[0])):
            below[one].add(other)
    for node in nodes:
        if isinstance(node, Server) and _holds_back(node):
            below[node].update(channel.up for channel in node.inputs if not channel.logged)
    groups = _circles(below)
    for node, origins in _at_once_from(groups, nodes).items():
        if len(node.inputs) > 1 or node.bound is not None:
            below[node].update(origins)
    return _circles(below)


def _at_once_from(groups: Sequence[Sequence[Mover]], nodes: Sequence[Node]) -> dict[Server, set[Mover]]:
    """Who gets, directly or by way of others, at the very instant what those send who wait for room: from
    whom.
    """
    waiting = {node for group in groups if len(group) > 1 and any(map(_holds_back, group)) for node in group}
    found: dict[Server, set[Mover]] = {}
    for node in nodes:
        if not isinstance(node, Server) or node in waiting:
            continue
        ups = [channel.up for channel in node.inputs if not channel.delay]
        origins: set[Mover] = {up for up in ups if up in waiting}
        for up in ups:
            if isinstance(up, Server):
                origins |= found.get(up, set())
        if origins:
            found[node] = origins
    return found


def _holds_back(node: Mover) -> bool:
    return isinstance(node, Server) and node.bound is not None and node.bound.holds_back


def ways(nodes: Sequence[Node]) -> dict[Mover, set[Mover]]:
    """Who hands messages on to whom: nodes, and cards between them."""
    below: dict[Mover, set[Mover]] = {node: set() for node in nodes}
    for node in nodes:
        for channel in node.inputs if isinstance(node, Server) else ():
            path: list[Mover] = [channel.up, *channel.stops, node]
            for stop, behind in pairwise(path):
                below.setdefault(stop, set()).add(behind)
    return below


def _circles(below: dict[Mover, set[Mover]]) -> list[list[Mover]]:
    """Sets of nodes that can be reached from one another, each in the order of the nodes; before any that can
    be reached from it.
    """
    nodes = list(below)
    finished: list[Mover] = []
    _walk(nodes, below, finished)
    above: dict[Mover, set[Mover]] = {node: set() for node in nodes}
    for node, others in below.items():
        for other in others:
            above[other].add(node)
    place = {node: number for number, node in enumerate(nodes)}
    groups: list[list[Mover]] = []
    seen: set[Mover] = set()
    for node in reversed(finished):
        if node not in seen:
            group: list[Mover] = []
            _walk([node], above, group, seen)
            groups.append(sorted(group, key=place.__getitem__))
    return groups


def _walk(
    starts: Sequence[Mover],
    to: dict[Mover, set[Mover]],
    finished: list[Mover],
    seen: set[Mover] | None = None,
) -> None:
    """Depth first; appends nodes when all that they lead to is finished."""
    seen = set() if seen is None else seen
    for start in starts:
        todo = [] if start in seen else [(start, iter(to[start]))]
        seen.add(start)
        while todo:
            node, others = todo[-1]
            for other in others:
                if other not in seen:
                    seen.add(other)
                    todo.append((other, iter(to[other])))
                    break
            else:
                finished.append(node)
                todo.pop()
