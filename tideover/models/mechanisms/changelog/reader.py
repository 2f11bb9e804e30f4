"""One task that reads a log: how far it has come, what it goes back to, and what it then reads again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.log import TaskLog
from tideover.models.runtime.saved_state import SavedState
from tideover.sim.train import Train


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
        self._log = TaskLog(job.plane, task, task.inputs)
        self.offsets = Offsets(0, SavedState.at_the_beginning(task))
        self._known = 0
        """Position up to which it had read when it failed last."""
        self._returning = 0
        """Messages at the head of what is held that it will read once more."""

    def now(self) -> Offsets:
        """What a commit of this instant would commit."""
        return Offsets(self._log.position, SavedState.of(self.task))

    def commit(self, offsets: Offsets) -> None:
        """What is before these will not be read again."""
        self.offsets = offsets
        self._log.trim(offsets.position)

    def go_back(self) -> None:
        """The task has failed: all that it has read since the commit waits in its log again."""
        log, task = self._log, self.task
        # what was in its queue has been on its way all the time
        self._job.say.reopened(task, without_markers(log.done()))
        known = log.go_back()
        task.gate.closed = task.up
        self._known = max(self._known, known)
        self._returning += known - log.start

    def read_again(self) -> int:
        """It has its state, and is about to be opened; returns how many messages it reads once more."""
        n, self._returning = self._returning, 0
        held = self._job.plane.listed(self.task.c.held, self.task.number)
        self._job.say.replayed(self.task, without_markers(held.pick(slice(n))), None)
        return n

    @property
    def recovering(self) -> bool:
        """From a failure until it has served all that it had read before."""
        return not self.task.available or self._log.position < self._known

    def tuples(self) -> Iterator[Train]:
        """What belongs to roots of what may be read again."""
        if self.task.component.anchored:
            yield self._log.tuples()
            yield from map(without_markers, self.task.queue.trains())
