"""One task that reads a log: how far it has come, what it goes back to, and what it then reads again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tideover.models.mechanisms.source_log import SourceLog
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.sim.train import Train

AGAIN = "again"
"""Column: 1 if the task had read the message before a failure."""


class Offsets(NamedTuple):
    """How far a task has read, and what it knew of windows then."""

    position: int
    windows: SavedState


class Reader:
    """One task and its log: all that arrives there, over all channels, in that order.

    offsets   those that are committed: from there it reads again after a failure
    """

    def __init__(self, job: Job, task: BoltTask) -> None:
        self._job = job
        self.task = task
        self._log = SourceLog()
        self.offsets = Offsets(0, SavedState.at_the_beginning(task))
        self._known = 0
        """Position up to which it had read when it failed last."""
        self._again: list[Train] = []
        """What it will read once more when it has its state."""

    # -- reading ---------------------------------------------------------------------------------------------

    def add(self, train: Train) -> None:
        """These messages are read from the log, into the task's queue."""
        self._log.add(train)

    def now(self) -> Offsets:
        """What a commit of this instant would commit."""
        return Offsets(self._position, SavedState.of(self.task))

    @property
    def _position(self) -> int:
        return self._log.read - sum(train.n for train in self.task.queue.trains())

    def commit(self, offsets: Offsets) -> None:
        """What is before these will not be read again."""
        self.offsets = offsets
        self._log.trim(offsets.position)

    # -- reading again ---------------------------------------------------------------------------------------

    def go_back(self) -> None:
        """The task has failed: all that it has read since the commit waits in its log again."""
        task = self.task
        waits = sum(train.n for train in task.start_over())
        task.gate.closed = task.up
        self._known = max(self._known, self._log.read)
        again = [train.adding(**{AGAIN: np.ones(train.n, np.int64)}) for train in self._log.rewind()]
        served = sum(train.n for train in again) - waits
        for train in again:  # what was in its queue has been on its way all the time
            self._job.say.reopened(task, without_markers(train.pick(slice(0, max(0, served)))))
            served -= train.n
        task.gate.held[:0] = again
        self._again += again

    def read_again(self) -> int:
        """It has its state, and is about to be opened; returns how many messages it reads once more."""
        again, self._again = self._again, []
        for train in again:
            self._job.say.replayed(self.task, without_markers(train), None)
        return sum(train.n for train in again)

    @property
    def recovering(self) -> bool:
        """From a failure until it has served all that it had read before."""
        return not self.task.available or self._position < self._known

    # -- what the log keeps ----------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Messages that were read and may be read again, and those that wait in the log."""
        gate = self.task.gate
        waiting = [*gate.held, *gate.unreadable()]
        return self._log.size + sum(train.n for train in waiting)

    def tuples(self) -> Iterator[Train]:
        """What belongs to roots of what may be read again."""
        if self.task.component.anchored:
            yield from map(without_markers, self._log.trains)
