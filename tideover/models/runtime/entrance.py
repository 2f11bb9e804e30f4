"""What waits in the queue of a bolt's task, and before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tideover.sim.plane.plane import ROW, Plane, Rows
from tideover.sim.train import Train


class Waiting:
    """What waits in a task's queue, and what is in service there."""

    def __init__(self, task: Any, plane: Plane) -> None:
        self._task, self._plane = task, plane

    def trains(self) -> list[Train]:
        """All of it, in order; ``time`` is the arrival."""
        task, plane = self._task, self._plane
        plane.lib.plane_take_in(plane.p, task.number, plane.p.now)
        rows = plane.rows(task.c.queue)
        if task.markers_once:  # windows count them once: the others might as well not be here
            newest = np.array([task.newest_marker(wire) for wire in task.inputs], np.int64)
            rows = rows[(rows["mark"] == 0) | (rows["mark"] > newest[rows["source"]])]
        return [*self.in_service(), *(plane.train(some, task.number) for some in (rows,) if len(some))]

    def in_service(self) -> list[Train]:
        """The tuple in service."""
        c, plane = self._task.c, self._plane
        if c.state != plane.lib.SERVING:
            return []
        one = plane.ffi.new("list *", {"head": c.serving, "tail": c.serving, "n": 1})
        return [plane.listed(one[0], self._task.number)]

    def markers_first(self) -> None:
        """Put all control markers ahead of what waits."""
        plane, task = self._plane, self._task
        plane.lib.plane_markers_first(plane.p, task.number, task._kernel.now)

    def demand(self, *trains: Train) -> int:
        """How much service tuples ask for (ns): all that are there."""
        task, plane = self._task, self._plane
        served = sum(int(task.demand(train).sum()) for train in trains)
        return served + int(plane.lib.plane_serialisation(plane.p, task.number))


class Entrance:
    """What has come to a task and is not in its queue."""

    def __init__(self, task: Any, plane: Plane) -> None:
        self._task, self._plane = task, plane
        self._from_log = False
        self.stopped = False
        """It is down, and has kept its queue."""
        self.set_aside: set[int] = set()
        """Positions of the inputs over which what comes is set aside."""

    @property
    def closed(self) -> bool:
        """The task is up, but takes nothing in yet."""
        return bool(self._task.c.closed)

    @closed.setter
    def closed(self, closed: bool) -> None:
        self._task.c.closed = closed

    @property
    def hold(self) -> bool:
        """While it is down: hold what arrives, or lose it."""
        return bool(self._task.c.holds)

    @hold.setter
    def hold(self, hold: bool) -> None:
        self._task.c.holds = hold or self.from_log

    @property
    def from_log(self) -> bool:
        """What waits here waits in a log: it is always held, and no crash takes it."""
        return self._from_log

    @from_log.setter
    def from_log(self, from_log: bool) -> None:
        self._from_log = self._task.c.holds = from_log

    def _listed(self, messages: Any) -> list[Train]:
        train = self._plane.listed(messages, self._task.number)
        return [train] if train.n else []

    @property
    def held(self) -> list[Train]:
        """Arrivals that were not let in yet."""
        return self._listed(self._task.c.held)

    @property
    def aside(self) -> list[Train]:
        """What was let in, and is out of the queue for a while."""
        return self._listed(self._task.c.aside)

    def unreadable(self) -> list[Train]:
        """What has come and is not committed."""
        channels = [wire.c.transactions for wire in self._task.inputs if wire.c.transactions]
        return [train for channel in channels for train in self._listed(channel.withheld)]

    def take_away(self) -> Rows:
        """Arrivals that were not let in, as rows; they are not here any more."""
        plane = self._plane
        rows = np.empty(self._task.c.held.n, ROW)
        out = plane.ffi.from_buffer("row[]", rows, require_writable=True)
        plane.lib.plane_take_away(plane.p, self._task.number, out)
        if self._task.notes is not None:
            self._task.note_marks(plane.train(rows, self._task.number))
        return rows

    def work_off(self, rows: Rows) -> None:
        """Let these rows arrive in the queue now."""
        plane, now, n = self._plane, self._task._kernel.now, len(rows)
        plane.have_messages(n)
        plane.lib.plane_work_off(plane.p, self._task.number, now, n, plane.ffi.from_buffer("row[]", rows))

    def open(self) -> None:
        """What was set aside and held arrives now."""
        for train in (*self.aside, *self.held) if self._task.notes is not None else ():
            self._task.note_marks(train)
        for log in (self._plane.p.overflowed, self._plane.p.discarded):
            self._plane.have_rows(log, self._task.c.held.n)
        self._plane.lib.plane_open(self._plane.p, self._task.number, self._task._kernel.now)
