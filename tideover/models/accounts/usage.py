"""How busy everything is over time: tasks, and what they share (``kind`` and ``name`` of what that is come
from the runtime). The world asks for it; `evaluation.bottleneck` reads it.
"""

from __future__ import annotations

from functools import partial

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import Context, Kind, Resource
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.kernel import Rank

SAMPLES = 100
"""Looks at a run, if nobody says how many."""


class TaskResource:
    """A task: it does one thing at a time, with tuples, acks, checkpoints, replays; in batches, its part."""

    kind: Kind = "task"

    def __init__(self, context: Context, task: SpoutTask | BoltTask) -> None:
        self._context, self._task = context, task
        self.name = task.name
        self.host = task.host

    def busy_ns(self, now: int) -> float:
        return busy_ns(self._context, self._task, now)


def busy_ns(context: Context, task: SpoutTask | BoltTask, now: int) -> float:
    runner = context.runner
    since = runner.busy_since(task) if runner is not None and isinstance(task, BoltTask) else None
    return task.busy.until(now) + (0 if since is None else now - since)


class Usage:
    """Reads at regular moments of a run how long each resource has been busy; nothing else changes by that.

    resources   all tasks in physical order, then what they share
    times       moments (ns), rising; the first is 0
    busy        for each of them, how long each resource has been busy (ns)
    """

    def __init__(self, job: Job, duration: int, warmup: int, looks: int) -> None:
        self._job = job
        tasks: list[Resource] = [TaskResource(job.context, task) for task in job.tasks]
        self.resources = tasks + job.context.resources
        self.times = [0]
        self.busy: list[list[float]] = [[0] * len(self.resources)]
        moments = {duration * i // looks for i in range(1, looks + 1)} | {warmup}
        self._moments = sorted(moment for moment in moments if 0 < moment <= duration)

    def start(self) -> None:
        for moment in self._moments:
            self._job.kernel.at(moment, Rank.SAMPLE, partial(self._look, moment))

    def _look(self, now: int) -> None:
        self.times.append(now)
        self.busy.append([resource.busy_ns(now) for resource in self.resources])
