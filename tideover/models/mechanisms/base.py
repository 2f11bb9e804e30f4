"""What all mechanisms have in common."""

from __future__ import annotations

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import TaskView


class Mechanism(Hooks):
    """A part of a protocol. To make one is to plug it in: from then on its hooks are called, before those of
    mechanisms that are made later, and before the protocol's own.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        job.plug(self)

    def _bolt(self, task: TaskView) -> BoltTask:
        return self._job.bolt(task)
