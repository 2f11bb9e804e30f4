"""Second copies of what tasks have saved, on the disks of their hosts."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from tideover.models.runtime.job import Job
from tideover.models.runtime.plans import Plans
from tideover.models.runtime.views import TaskView
from tideover.sim.kernel import Rank


class Copy(NamedTuple):
    """A copy that is written: of which number, on which host it lies, and since when (ns)."""

    number: int
    host: int
    since: int


class LocalCopies:
    """Copies of what tasks have in a store: nobody waits for them to be written, and who finds
    its own where it restarts need not ask the store.

    Flink's task-local recovery (``state.backend.local-recovery``; *Large State Tuning* in its documentation).
    """

    def __init__(self, job: Job, disk: str) -> None:
        """``disk``: the name of the store that they are in."""
        self._job = job
        self.disk = job.store_named(disk)
        self._plans: dict[TaskView, Plans] = {task: Plans(job.kernel) for task in job.bolt_tasks}
        self._of: dict[TaskView, list[Copy]] = {task: [] for task in job.bolt_tasks}

    def write(self, task: TaskView, number: int, size: int) -> None:
        """A copy of so many bytes of what the task saves as ``number`` is to be written where it is."""
        written = self._plans[task].unless_void(partial(self._written, task, number, task.host))
        self.disk.write(task.host, size, Rank.TRIM, written, task.number)

    def _written(self, task: TaskView, number: int, host: int) -> None:
        now = self._job.kernel.now
        self._of[task].append(Copy(number, host, now))
        self._job.step(task.name, "local copy written", f"snapshot {number}")

    def counts(self, task: TaskView, number: int) -> None:
        """The task goes back to ``number`` from now on: older copies are of no use."""
        self._of[task] = [copy for copy in self._of[task] if copy.number >= number]

    def failed(self, task: TaskView) -> None:
        """The task has: what is not written is not."""
        self._plans[task].void()

    def has(self, task: TaskView, number: int) -> bool:
        """Whether there is a copy of ``number`` where the task is now."""
        mine = (copy for copy in self._of[task] if (copy.number, copy.host) == (number, task.host))
        return any(not self._is_gone(copy) for copy in mine)

    def _is_gone(self, copy: Copy) -> bool:
        """Whether the machine that it lies on has broken since."""
        outages = self._job.supervisor.outages
        return any(copy.host in outage.broken and copy.since <= outage.failed_at for outage in outages)
