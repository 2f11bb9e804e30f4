"""What the barriers of an unaligned snapshot overtake at one task: it is part of the snapshot."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tideover.models.runtime.bolt_task import BARRIER, BoltTask
from tideover.models.runtime.context import without_markers
from tideover.sim.line import PLACELESS, Batch
from tideover.sim.plane.plane import CHANNEL
from tideover.sim.train import Ints, Train, join


@dataclass
class Waits:
    """Messages of a task that a snapshot has: of its ``queue``, and of the ``line`` of what it sends."""

    queue: list[Train] = field(default_factory=list)
    line: list[Batch] = field(default_factory=list)

    def at(self, task: BoltTask) -> Iterator[tuple[BoltTask, Train]]:
        """Tuples, and where they wait or go to."""
        yield from ((task, without_markers(train)) for train in self.queue)
        for channel, train in (entry for batch in self.line for entry in batch.entries):
            assert isinstance(channel.down, BoltTask)
            yield channel.down, without_markers(train)

    def give_back(self, task: BoltTask, now: int) -> None:
        """They wait again at ``task``: in its queue they need no place."""
        everything = (train.adding(**{PLACELESS: np.ones(train.n, np.int64)}) for train in self.queue)
        task.gate.aside += everything
        if task.line is not None:
            task.line.put_back(self.line, now)


class InFlight:
    """One task in the newest unaligned snapshot of which it has seen a barrier.

    number   of that snapshot
    turned   positions of inputs whose barrier has had its turn
    copied   the state was copied; None: the task has not taken part
    """

    def __init__(self, task: BoltTask, spouts: Sequence[int]) -> None:
        self._task, self._spouts = task, list(spouts)
        self._begin(0)

    def _begin(self, number: int) -> None:
        self.number = number
        self.turned: set[int] = set()
        self.copied: bool | None = None
        self._passed: set[int] = set()
        """Inputs whose barrier has come."""
        self._behind: dict[int, int] = {}
        """How many messages have come behind it before the task took part."""
        self._recorded: list[Train] = []

    def reaches(self, number: int) -> None:
        """A barrier of this snapshot is there: it may be the first."""
        if number > self.number:
            self._begin(number)

    def stop(self) -> None:
        """The snapshot means nothing any more."""
        self._begin(self.number)

    def note(self, train: Train) -> None:
        """Messages have come, in this order."""
        barriers = (train.column("mark") == BARRIER).nonzero()[0].tolist()
        begin = 0
        for row in barriers:
            self._note(train.pick(slice(begin, row)))
            barrier = train.pick(slice(row, row + 1))
            self.reaches(int(barrier.key[0]))
            if int(barrier.key[0]) == self.number:
                self._passed.update(self._over(barrier).tolist())
            begin = row + 1
        self._note(train.pick(slice(begin, None)))

    def _note(self, train: Train) -> None:
        if not train.n or not (self._passed or self.copied is not None):
            return
        over = self._over(train)
        if self.copied is None:
            for position in over[np.isin(over, list(self._passed))].tolist():
                self._behind[position] = self._behind.get(position, 0) + 1
            return
        mine = ~np.isin(over, [*self._passed, *self._spouts])
        if mine.any():
            self._recorded.append(train.pick(mine))

    def _over(self, train: Train) -> Ints:
        """Positions of the channels over which messages came."""
        if train.has(CHANNEL):
            return train.column(CHANNEL)
        return np.full(train.n, 0, np.int64)

    def overtake(self) -> Waits:
        """The task takes part: what waits there and came before its channel's barrier, and what it has not
        sent.
        """
        self.copied = False
        waiting, line = self._task.queue.trains(), self._task.line
        self.overtake_line()
        waits = Waits(line=[] if line is None else list(line.batches))
        if waiting:
            train = join(waiting)
            over = self._over(train)
            before = ~np.isin(over, self._spouts)
            for position, count in self._behind.items():
                before[np.flatnonzero(over == position)[-count:]] = False
            if before.any():
                waits.queue.append(train.pick(before))
        return waits

    def overtake_line(self) -> Waits | None:
        """The snapshot's barrier leaves the line; returns what it overtakes there. None: it is not in it.
        Older ones, which mean nothing any more, go with it.
        """
        line = self._task.line
        if line is None:
            return None
        found: Waits | None = None
        rest: list[Batch] = []
        for batch in line.batches:
            barrier = batch.column("mark") == BARRIER
            mine = barrier & (batch.column("key") == self.number)
            if found is None and mine.any():
                before = ~barrier
                before[mine.argmax() :] = False
                found = Waits(line=[*rest, batch.pick(before)] if before.any() else rest.copy())
            if not barrier.all():
                rest.append(batch.pick(~barrier) if barrier.any() else batch)
        line.batches = deque(rest)
        return found

    @property
    def done(self) -> bool:
        """Whether the state is copied, and all barriers have come."""
        return bool(self.copied) and len(self.turned) == len(self._task.inputs)

    def recorded(self) -> list[Train]:
        """What came before its channel's barrier when the task had taken part."""
        return self._recorded

    def size(self, waits: Waits) -> int:
        """Bytes of what waits."""
        if not (waits.queue or waits.line):
            return 0
        queue = Counter[int]()
        for train in waits.queue:
            queue.update(self._over(without_markers(train)).tolist())
        inputs = self._task.inputs
        size = sum(inputs[position].message_bytes * count for position, count in queue.items())
        entries = [entry for batch in waits.line for entry in batch.entries]
        for outlet in self._task.outlets:
            for channel in (channel for row in outlet.channels for channel in row):
                sent = (without_markers(train).n for way, train in entries if way is channel)
                size += channel.message_bytes * sum(sent)
        return size
