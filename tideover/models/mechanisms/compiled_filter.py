"""The filter of duplicates, where the compiled data plane looks at all that arrives."""

from __future__ import annotations

from tideover.models.mechanisms.duplicate_filter import DuplicateFilter, Seen
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.plane.plane import NEVER, Plane


class CompiledFilter(DuplicateFilter):
    """The data plane compares, and notes what is the greatest: in the array of each task's `Seen`."""

    admit = Hooks.admit

    def __init__(self, job: Job, plane: Plane) -> None:
        super().__init__(job)
        self._plane = plane
        plane.have_paths()
        for task, seen in self._seen.items():
            c = plane.tasks[task.number]
            plane.array(c, "seen", seen.greatest)
            c.bounded |= plane.lib.FILTERS
        for sender in job.tasks:
            first = plane.tasks[sender.number].first_outlet
            for place, outlet in enumerate(sender.outlets):
                plane.outlets[first + place].first_path = job.topology.first_path(outlet.edge, sender.index)

    def _know(self, task: TaskView, seen: Seen) -> None:
        self._seen[task].greatest[:] = seen.greatest

    def admit_again(self, task: BoltView) -> None:
        self._plane.lib.plane_sift(self._plane.p, task.number, self._job.kernel.now)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self._plane.tasks[task.number].repeats_until = NEVER  # as long as it is not restored
        super().failed(task, outage)


def duplicates_of(job: Job) -> DuplicateFilter:
    """The filter of a job, in its data plane if that is compiled."""
    return DuplicateFilter(job) if job.plane is None else CompiledFilter(job, job.plane)
