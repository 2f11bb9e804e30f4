"""What a strategy may know of the job around it: read only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, SpoutView, TaskView
from tideover.sim.draws import Draws


class View:
    """The job that a strategy works in."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @property
    def now(self) -> int:
        """The present."""
        return self._job.kernel.now

    @property
    def draws(self) -> Draws:
        """The random draws of this replication: each is a function of what it is for."""
        return self._job.draws

    @property
    def spouts(self) -> Sequence[SpoutView]:
        """All spout tasks, in physical order."""
        return self._job.spouts

    @property
    def bolts(self) -> Sequence[BoltView]:
        """All bolt tasks and their replicas, in physical order."""
        return self._job.bolt_tasks

    @property
    def stateful(self) -> Sequence[BoltView]:
        """Those of them that have state."""
        return [task for task in self._job.bolt_tasks if task.state is not None]

    def replicas(self, task: BoltView) -> Sequence[BoltView]:
        """All replicas of a task, itself included."""
        return self._job.bolts[task.component.name, task.index]

    def is_stateful(self, task: TaskView) -> TypeGuard[BoltView]:
        """Whether a task is a bolt's that has state."""
        return task.component.window is not None
