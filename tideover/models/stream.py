"""Sending: from a task over an edge to the tasks that read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tideover.models.bolts.base import Children
from tideover.models.topology import Edge
from tideover.sim.draws import Draws
from tideover.sim.link import Channel
from tideover.sim.train import Ints, Train


class Sent(NamedTuple):
    """Tuples that left over an edge. ``rows``: the parent row of each (rising); None: one each, in order."""

    edge: Edge
    rows: Ints | None
    train: Train


class Outlet:
    """What one physical task sends over one edge: ``channels[task][replica]``."""

    def __init__(
        self, edge: Edge, draws: Draws, channels: list[list[Channel]], route_offset: int | None
    ) -> None:
        self.edge = edge
        self.channels = channels
        self._draws = draws
        self._route_offset = route_offset
        self._new_uids = bool(edge.digits) or edge.down.bits != edge.up.output_bits
        self._copies, self._targets = edge.grouping.copies, edge.grouping.targets

    def children(self, train: Train, children: Children) -> Train:
        """The child tuples that leave over this edge, before they are spread over tasks."""
        if children.rows is not None:
            train = train.pick(children.rows)
        elif children.key is None and self._route_offset is None and not self._new_uids and train.seq is None:
            return train
        columns: dict[str, Ints | None] = {"seq": None}
        if children.key is not None:
            columns["key"] = children.key
        if self._route_offset is not None:
            route = train.route
            columns["route"] = (
                np.full(train.n, self._route_offset, np.int64)
                if route is None
                else route + self._route_offset
            )
        if self._new_uids:
            columns["uid"] = self.edge.child_uid(train.uid, children.position)
        return train.replace(**columns)

    def send(self, train: Train, rows: Ints | None) -> list[Sent]:
        """Put the children on the wires; returns them as they were sent, one entry a copy."""
        tasks = len(self.channels)
        if self._copies:
            sent = []
            for task in range(tasks):
                copy = train if task == 0 else train.replace(uid=train.uid | task)
                self._to(task, copy)
                sent.append(Sent(self.edge, rows, copy))
            return sent
        if tasks == 1:
            self._to(0, train)
        elif train.n:
            target = self._targets(self.edge.name, self._draws, train, tasks)
            narrow = np.uint8 if tasks <= 256 else np.uint16  # sorted by radix, and without branches
            grouped = train.pick(np.argsort(target.astype(narrow), kind="stable"))
            begin = 0
            for task, end in enumerate(np.cumsum(np.bincount(target, minlength=tasks)).tolist()):
                if end > begin:
                    self._to(task, grouped.pick(slice(begin, end)))
                begin = end
        return [Sent(self.edge, rows, train)]

    def broadcast(self, train: Train) -> None:
        """To every task and replica, as it is (markers)."""
        for task in range(len(self.channels)):
            self._to(task, train)

    def follow(self, other: Outlet) -> None:
        """Let nothing arrive before what a replica's outlet has on its wires: connections that were opened
        anew.
        """
        for mine, theirs in zip(self.channels, other.channels, strict=True):
            for channel, ahead in zip(mine, theirs, strict=True):
                if ahead.last_arrival is not None:
                    channel.not_before(ahead.last_arrival + 1)

    def _to(self, task: int, train: Train) -> None:
        for channel in self.channels[task]:
            channel.send(train)
