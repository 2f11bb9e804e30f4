"""The filter of duplicates, where the compiled data plane looks at all that arrives."""

from __future__ import annotations

from tideover.models.mechanisms.duplicate_filter import CheckpointFilter, DuplicateFilter, ReplayFilter, Seen
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
        self._plane.have_rows(self._plane.p.discarded, self._plane.tasks[task.number].aside.n)
        self._plane.lib.plane_sift(self._plane.p, task.number, self._job.kernel.now)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self._plane.tasks[task.number].repeats_until = NEVER  # as long as it is not restored
        super().failed(task, outage)


class CompiledCheckpointFilter(CompiledFilter, CheckpointFilter):
    """The data plane notes, too, what of it is processed."""

    passed = Hooks.passed

    def __init__(self, job: Job, plane: Plane) -> None:
        super().__init__(job, plane)
        for task, done in self._done.items():
            plane.array(plane.tasks[task.number], "done", done.greatest)

    def go_back(self, task: BoltView, done: Seen) -> None:
        self._know(task, done)
        self._done[task].greatest[:] = done.greatest


class CompiledReplayFilter(CompiledCheckpointFilter, ReplayFilter):
    """The data plane turns away what belongs to epochs that are over, too, and tells of all of it."""

    def __init__(self, job: Job, plane: Plane) -> None:
        super().__init__(job, plane)
        for task in job.bolt_tasks:
            plane.tasks[task.number].bounded |= plane.lib.TELLS

    def begin_after(self, task: BoltView, epoch: int) -> None:
        self._plane.tasks[task.number].over = epoch


def replays_known(job: Job) -> ReplayFilter:
    """The filter of what comes again, in the job's data plane if that is compiled."""
    return ReplayFilter(job) if job.plane is None else CompiledReplayFilter(job, job.plane)


def restored_with(job: Job) -> CheckpointFilter:
    """The filter that goes back with checkpoints, in the job's data plane if that is compiled."""
    return CheckpointFilter(job) if job.plane is None else CompiledCheckpointFilter(job, job.plane)


def duplicates_of(job: Job) -> DuplicateFilter:
    """The filter of a job, in its data plane if that is compiled."""
    return DuplicateFilter(job) if job.plane is None else CompiledFilter(job, job.plane)
