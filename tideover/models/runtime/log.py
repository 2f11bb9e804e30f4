"""What a task reads of logs, and goes back in."""

from __future__ import annotations

from collections.abc import Sequence

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.wire import Wire
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Train


class TaskLog:
    """What has come to one task over these channels, in the order in which it has read it.

    A position is a number of messages, counted from the beginning.

    start   position from which the log is kept: what was trimmed is before it
    """

    def __init__(self, plane: Plane, task: BoltTask, channels: Sequence[Wire]) -> None:
        self._plane, self._task, self._c = plane, task, task.c
        self.start = 0
        self._c.bounded |= plane.lib.READS_LOG
        plane.have_chunks(0)
        for wire in channels:
            wire.c.logged = 1

    @property
    def position(self) -> int:
        """How far the task is: it is done with all before this."""
        return self.start + int(self._c.read.n)

    def done(self) -> Train:
        """What is kept, and the task is done with."""
        rows = self._plane.stored(self._c.read)
        rows["source"] = rows["task"]
        return self._plane.train(rows, self._task.number)

    def tuples(self) -> Train:
        """The tuples among it, without times."""
        return self._plane.tuples(self._c.read)

    def trim(self, position: int) -> None:
        """What is before ``position`` will not be read again."""
        if position > self.start:
            self._plane.lib.plane_trim_log(self._plane.p, self._task.number, position - self.start)
            self.start = position

    def go_back(self) -> int:
        """The task forgets what it does, and goes back to the start: all that is kept it will read again,
        ahead of what is held. Returns up to where it had read.
        """
        self._task.set_aside()
        position = self.position + int(self._c.aside.n)
        self._plane.have_messages(self._c.read.n)
        self._plane.lib.plane_go_back(self._plane.p, self._task.number)
        return position
