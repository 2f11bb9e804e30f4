"""What the barriers of an unaligned snapshot overtake at one task: it is part of the snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tideover.models.runtime.bolt_task import BARRIER, BoltTask
from tideover.models.runtime.context import without_markers
from tideover.sim.plane.plane import Plane, Rows
from tideover.sim.train import Train


@dataclass
class Waits:
    """Messages of a task that a snapshot has: of its ``queue``, and of the ``line`` of what it sends. They
    are rows of the data plane, by their channels in ``source``.
    """

    queue: list[Rows] = field(default_factory=list)
    line: list[Rows] = field(default_factory=list)

    def at(self, task: BoltTask) -> Iterator[tuple[BoltTask, Train]]:
        """Tuples, and where they wait or go to."""
        for rows in self.queue:
            yield task, without_markers(task.trained(rows))
        for rows in self.line:
            for route in dict.fromkeys(rows["source"].tolist()):
                down = task.wires[route].down
                yield down, without_markers(task.trained(rows[rows["source"] == route]))

    def give_back(self, task: BoltTask) -> None:
        """They wait again at ``task``: in its queue they need no place."""
        for in_line, found in enumerate((self.queue, self.line)):
            for rows in found:
                task.put_back(rows, bool(in_line))


class InFlight:
    """One task in the newest unaligned snapshot of which it has seen a barrier. The data plane notes what
    comes, and records what belongs to the snapshot.

    number   of that snapshot
    turned   positions of inputs whose barrier has had its turn
    copied   the state was copied; None: the task has not taken part
    """

    def __init__(self, task: BoltTask, plane: Plane, overtakes: bool) -> None:
        self._task, self._plane = task, plane
        self._begin(0)
        if overtakes:
            task.c.bounded |= plane.lib.OVERTAKES
            plane.log(task.c.recorded)

    def _begin(self, number: int) -> None:
        self.number = number
        self.turned: set[int] = set()
        self.copied: bool | None = None

    def reaches(self, number: int) -> None:
        """A barrier of this snapshot is there: it may be the first."""
        self._plane.lib.plane_notice(self._plane.p, self._task.number, number)
        if number > self.number:
            self._begin(number)

    def stop(self) -> None:
        """The snapshot means nothing any more."""
        self._plane.lib.plane_forget_barriers(self._plane.p, self._task.number)
        self._begin(self.number)

    def overtake(self) -> Waits:
        """The task takes part: what waits there and came before its channel's barrier, and what it has not
        sent.
        """
        self.copied = False
        self._task.c.records = 1
        line = self._in_line()
        return Waits(_some(self._task.ahead()), _some(line[line["mark"] != BARRIER]))

    def overtake_line(self) -> Waits | None:
        """The snapshot's barrier leaves the line; returns what it overtakes there. None: it is not in it.
        Older ones, which mean nothing any more, go with it.
        """
        line = self._in_line()
        mine = (line["mark"] == BARRIER) & (line["key"] == self.number)
        if not mine.any():
            return None
        before = line[: mine.argmax()]
        return Waits(line=_some(before[before["mark"] != BARRIER]))

    def _in_line(self) -> Any:
        return self._plane.rows(self._task.c.line.messages)

    @property
    def done(self) -> bool:
        """Whether the state is copied, and all barriers have come."""
        return bool(self.copied) and len(self.turned) == len(self._task.inputs)

    def recorded(self) -> list[Rows]:
        """What came before its channel's barrier when the task had taken part."""
        return _some(self._plane.read(self._task.c.recorded))

    def size(self, waits: Waits) -> int:
        """Bytes of what waits."""
        wires = self._task.wires
        queue = [self._task.inputs[way] for way in _ways(waits.queue)]
        return sum(wire.message_bytes for wire in (*queue, *(wires[way] for way in _ways(waits.line))))


def _some(rows: Rows) -> list[Rows]:
    return [rows] if len(rows) else []


def _ways(found: list[Rows]) -> Iterator[int]:
    """The ``source`` of each tuple in these rows."""
    for rows in found:
        yield from rows["source"][rows["mark"] == 0].tolist()
