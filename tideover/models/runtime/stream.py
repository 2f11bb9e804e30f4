"""What a task sends over an edge to the tasks that read it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tideover.models.job.topology import Edge
from tideover.models.operators.base import Children
from tideover.models.runtime.wire import Wire
from tideover.sim.draws import Draws, Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train

GROUPINGS = frozenset({"shuffle", "fields", "direct", "global", "all"})
"""Groupings that the data plane knows."""
LATE = "late"
"""Column of tuples that were processed: 1 if it came too late for a window by event, 2 if it is known."""


class Sent(NamedTuple):
    """Tuples that left over an edge, in order of their parents. ``copies``: how many of each; None: one."""

    edge: Edge
    copies: Ints | None
    train: Train


def is_given(edge: Edge) -> bool:
    """Whether Python finds out where the tuples of an edge go."""
    grouping = edge.grouping
    return grouping.kind not in GROUPINGS and not grouping.copies and edge.down.tasks > 1


class Outlet:
    """What one physical task sends over one edge: ``channels[task][replica]``."""

    def __init__(self, edge: Edge, channels: list[list[Wire]]) -> None:
        self.edge, self.channels = edge, channels
        self.c: Any = None
        """The struct ``outlet``, as soon as it is described."""

    def describe(self, plane: Plane, o: Any, routes: int, draws: Draws) -> None:
        """Fill in the struct ``outlet``; its channels are in ``routes`` from this place on."""
        edge, lib = self.edge, plane.lib
        self.c = o
        kinds = {"shuffle": lib.SHUFFLE, "fields": lib.BY_KEY, "direct": lib.BY_KEY, "global": lib.FIRST}
        o.grouping = lib.EVERY if edge.grouping.copies else kinds.get(edge.grouping.kind, lib.FIRST)
        if is_given(edge):
            o.grouping = lib.GIVEN
        o.component = edge.down.index
        o.tasks, o.replicas, o.routes = len(self.channels), len(self.channels[0]), routes
        o.key = int(draws.key(edge.name, Purpose.TARGET))
        o.digits = edge.digits
        o.has_position = bool(edge.fan_bits)
        o.position_shift = edge.edge_bits + edge.task_bits
        o.digit = edge.input_index << edge.task_bits if edge.edge_bits else 0
        o.width = edge.up.output_bits + edge.digits
        o.pad = edge.down.bits - o.width

    def follow(self, other: Outlet) -> None:
        """Let nothing arrive before what a replica's outlet has on its wires: connections that were opened
        anew.
        """
        for mine, theirs in zip(self.channels, other.channels, strict=True):
            for wire, ahead in zip(mine, theirs, strict=True):
                wire.follow(ahead)

    def sent(self, parents: Train, children: Children) -> list[Sent]:
        """What has left over the edge, for those who look at tuples one by one."""
        train = parents if children.rows is None else parents.pick(children.rows, children.key)
        if children.key is not None:
            train = train.replace(key=children.key)
        train = train.replace(uid=self.edge.child_uid(train.uid, children.position))
        copies = children.of_each(parents.n)
        if not self.edge.grouping.copies:
            return [Sent(self.edge, copies, train)]
        tasks = range(len(self.channels))
        return [Sent(self.edge, copies, train.replace(uid=train.uid | task)) for task in tasks]
