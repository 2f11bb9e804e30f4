"""Sending: from a task over an edge to the tasks that read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tideover.models.job.topology import Edge
from tideover.models.operators.base import Children
from tideover.sim.draws import Draws
from tideover.sim.line import Line
from tideover.sim.link import Channel
from tideover.sim.train import Columns, Ints, Train

PATH = "path"
"""Column: number of the logical path from the spout by which a tuple came."""


LATE = "late"
"""Column of tuples that were processed: 1 if it came too late for a window by event, 2 if it is known."""


class Sent(NamedTuple):
    """Tuples that left over an edge, in order of their parents. ``copies``: how many of each; None: one."""

    edge: Edge
    copies: Ints | None
    train: Train


class Outlet:
    """What one physical task sends over one edge: ``channels[task][replica]``."""

    can_pool = True

    def __init__(
        self, edge: Edge, draws: Draws, channels: list[list[Channel]], first_path: int | None
    ) -> None:
        self.edge = edge
        self.channels = channels
        self.line: Line | None = None
        """Where what is sent waits for room; None: there always is."""
        self.pooled = False
        """In a reference run: the first task gets the keys of all tuples, and counts for the others."""
        self.packing: Ints | None = None
        """What serialising a message costs, by the task that it goes to (ns); None: nothing."""
        self.draws = draws
        self._first_path = first_path
        self._new_uids = bool(edge.digits) or edge.down.bits != edge.up.output_bits
        self._copies, self._targets = edge.grouping.copies, edge.grouping.targets

    def _children(self, train: Train, children: Children) -> Train:
        """The child tuples that leave over this edge, before they are spread over tasks."""
        if children.rows is not None:
            train = train.pick(children.rows, children.key)
        elif children.key is None and self._first_path is None and not self._new_uids and train.more is None:
            return train
        columns: dict[str, object] = {"more": self._path(train)}
        if children.key is not None:
            columns["key"] = children.key
        if self._new_uids:
            columns["uid"] = self.edge.child_uid(train.uid, children.position)
        return train.replace(**columns)

    def _path(self, train: Train) -> Columns | None:
        """Of all columns of mechanisms a child has its parent's path, and the step over this edge."""
        path = None if train.more is None else train.more.get(PATH)
        if self._first_path is not None:
            path = np.full(train.n, self._first_path, np.int64) if path is None else path + self._first_path
        return None if path is None else {PATH: path}

    def send(self, parents: Train, children: Children) -> list[Sent]:
        """Put the children on the wires; returns them as they were sent, one entry a copy."""
        if self.pooled:
            self._to(0, _keys(parents, children))
            return []
        tasks = len(self.channels)
        train = self._children(parents, children)
        copies = children.of_each(parents.n)
        if self._copies:
            sent = []
            for task in range(tasks):
                copy = train if task == 0 else train.replace(uid=train.uid | task)
                self._to(task, copy)
                sent.append(Sent(self.edge, copies, copy))
            return sent
        if tasks == 1:
            self._to(0, train)
        elif train.n:
            target = self._targets(self.edge.name, self.draws, train, tasks)
            narrow = np.uint8 if tasks <= 256 else np.uint16  # sorted by radix, and without branches
            turn = np.argsort(target.astype(narrow), kind="stable")
            grouped = train.pick(turn)
            begin = 0
            for task, end in enumerate(np.cumsum(np.bincount(target, minlength=tasks)).tolist()):
                if end > begin:
                    self._to(task, grouped.pick(slice(begin, end)), turn, begin)
                begin = end
        return [Sent(self.edge, copies, train)]

    def packed(self, parents: Train, children: Children) -> Ints:
        """What serialising the children costs, by parent (ns): those that go to other hosts."""
        if self.packing is None:
            return np.zeros(parents.n, np.int64)
        train, rows = self._children(parents, children), children.rows
        if self._copies:
            each = np.full(train.n, self.packing.sum(), np.int64)
        elif len(self.packing) == 1:
            each = np.full(train.n, self.packing[0], np.int64)
        else:
            each = self.packing[self._targets(self.edge.name, self.draws, train, len(self.packing))]
        if rows is None:
            return each
        cost = np.zeros(parents.n, np.int64)
        np.add.at(cost, rows, each)
        return cost

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

    def _to(self, task: int, train: Train, rows: Ints | None = None, begin: int = 0) -> None:
        """``rows``: for each of the tuples, from ``begin`` on, the number of the child that it is."""
        for channel in self.channels[task]:
            if self.line is None:
                channel.send(train)
            else:
                self.line.put(channel, train, None if rows is None else rows[begin : begin + train.n])


def _keys(parents: Train, children: Children) -> Train:
    """Children of which only time, key and value are of use."""
    rows = slice(None) if children.rows is None else children.rows
    time, value = parents.time[rows], parents.value
    key = parents.key[rows] if children.key is None else children.key
    return Train(time, time, time, key, value=None if value is None else value[rows])
