"""What protocols have in common that each bring back some of a job's tasks."""

from __future__ import annotations

from tideover.models.mechanisms import offsets
from tideover.models.mechanisms.buffers import UpstreamBuffers
from tideover.models.mechanisms.replicas import CheckpointFilter, DuplicateFilter
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import TaskView


class Shared:
    """The filter of duplicates and the upstream buffers of one job, whichever protocol brings a task back: a
    task that keeps buffers keeps them for those that go back to checkpoints, and not for itself.

    replicated   whether some tasks have replicas: then all tasks drop duplicates (``seen``)
    saved        whether some go back to checkpoints: then the filter does so with them (``restored``)
    """

    def __init__(self, job: Job, replicated: bool = False, saved: bool = False) -> None:
        self._job = job
        self.restored = CheckpointFilter(job) if replicated and saved else None
        self.seen = DuplicateFilter(job) if replicated and not saved else self.restored
        self._buffers: UpstreamBuffers | None = None
        offsets.follow(job)

    @property
    def buffers(self) -> UpstreamBuffers:
        """Those of all senders; there are none before somebody asks for them."""
        if self._buffers is None:
            self._buffers = UpstreamBuffers(self._job, self.restored)
        return self._buffers

    def back(self, task: TaskView) -> None:
        """A task is up, and takes in what arrives: it replays what it owes."""
        if self._buffers is not None:
            self._buffers.sender_ready(task)

    def there(self, task: TaskView, peer: TaskView | None) -> None:
        """The same of a replica, which has copied its ``peer`` (None: nobody)."""
        if self._buffers is not None and peer is not None:
            self._buffers.copy(task, peer)
        self.back(task)
